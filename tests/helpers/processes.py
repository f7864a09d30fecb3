"""Fresh processes that start at once: forked from one that has the libraries loaded and nothing else."""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

LOADED = ["regionscope.cli.commands", "regionscope.experiments.lab", "regionscope.runs.report", "torch._dynamo"]


def forked(function: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """A process that calls a function, with nothing of this one's state."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    process = context.Process(target=function, args=arguments)
    process.start()
    return process


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What `regionscope` prints with these arguments, and how it ends."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        process = forked(_command, arguments, out, err)
        process.join(120)
        assert process.exitcode is not None, f"{arguments} did not end"
        return subprocess.CompletedProcess(arguments, process.exitcode, out.read_text(), err.read_text())


def _command(arguments: tuple[str, ...], out: Path, err: Path) -> None:
    from regionscope.cli import main

    for stream, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    sys.argv = ["regionscope", *arguments]
    main()
