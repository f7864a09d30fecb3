"""What the command does when it is stopped, when nobody looks and when nobody reads: real processes."""

import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from terminals import read_to_end
from torch import nn

import regionscope as rs
from regionscope.cli import main
from regionscope.runs.run import run_state
from regionscope.training.config import training_data
from regionscope.training.loop import run_config

COMMAND = [sys.executable, "-c", "import sys; from regionscope.cli import main; sys.argv[0] = 'regionscope'; main()"]
SMALL = "--size 200 --test-size 100 --depth 1 --width 8 --points 5 --records 10 --measures total_variation".split()


def started(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*COMMAND, *arguments], **{**pipes, **options})


def training(path: Path, **options: Any) -> subprocess.Popen[str]:
    """A run that would take very long, after its second record."""
    process = started("train", str(path), "--steps", "1000000", *SMALL, **options)
    while not (path / "steps" / "000000001").exists() and process.poll() is None:
        time.sleep(0.05)
    return process


def test_ctrl_c_answers_at_once_and_the_run_goes_on_after_it(tmp_path: Path) -> None:
    path = tmp_path / "run"
    process = training(path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    answer = re.search(r"finishing step ([\d,]+), once more to stop now", err)
    assert answer is not None
    assert f"go on with: regionscope resume {path}" in out
    run = rs.Run.open(path)
    state = run.latest_state()
    assert run_state(run) == "stopped"
    assert state is not None and state[0] == run.status["step"] >= int(answer[1].replace(",", ""))
    first = re.search(r"stopped at step ([\d,]+) of 1,000,000: loss ([\d.e-]+)", out)
    assert first is not None and float(first[2]) == pytest.approx(run.status["loss"], rel=1e-3)
    config = run_config(run)
    (x, y), model = (
        training_data(config).train,
        nn.Sequential(nn.Flatten(), nn.Linear(784, 8), nn.ReLU(), nn.Linear(8, 10)),
    )
    model.load_state_dict({n.removeprefix("model/"): t for n, t in state[1].items() if n.startswith("model/")})
    assert run.status["loss"] == pytest.approx(float(nn.functional.cross_entropy(model(x), y).detach()), rel=1e-5)
    assert re.match(r"step 0 of 1,000,000: measuring total_variation at train\n", err), "a line says where it is"


def test_a_second_ctrl_c_stops_a_measure_that_takes_long(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import sys, time\n"
        "import regionscope.runs.monitor as monitor\n"
        "def observation(*_):\n"
        "    open('measuring', 'w').close()\n"
        "    while True: time.sleep(0.1)\n"
        "monitor.observation = observation\n"
        "from regionscope.cli import main\n"
        "sys.argv[0] = 'regionscope'\n"
        "main()\n"
    )
    command = [sys.executable, "slow.py", "train", "run", "--steps", "100", *SMALL]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "measuring").exists() and process.poll() is None:
        time.sleep(0.05)
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    said = ""
    while "once more to stop now" not in said:
        said = process.stderr.readline()
        assert said, "it ended without an answer"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "regionscope: stopped; go on with: regionscope resume run\n" in err
    assert "Traceback" not in err
    assert run_state(rs.Run.open(tmp_path / "run")) == "killed"


def test_nobody_who_reads_is_no_error(tmp_path: Path) -> None:
    rs.train(rs.Training(size=50, depth=1, width=4, steps=2, records=3, measures=(), points=5), tmp_path / "run")
    read, write = os.pipe()
    process = started("export", str(tmp_path / "run"), stdout=write)
    os.close(write)
    os.close(read)
    assert (process.communicate(timeout=120)[1], process.returncode) == ("", 141)


def test_on_a_terminal_a_bar_says_what_is_measured(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 200))
    process = training(tmp_path / "run", stderr=follower)
    process.send_signal(signal.SIGINT)
    os.close(follower)
    seen = read_to_end(leader)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert b"measuring total_variation at test:" in seen and b"once more to stop now" in seen
    assert b"1000000" in seen and b"step 0 of" not in seen


class Loading(ModuleType):
    """A module that somebody stops while it is loaded."""

    def __getattr__(self, name: str) -> object:
        raise KeyboardInterrupt


def test_ctrl_c_while_it_starts_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "regionscope.cli.commands", Loading("regionscope.cli.commands"))
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 130
    assert capsys.readouterr() == (
        "",
        "regionscope: stopped; give the same command again; what was kept before stays\n",
    )
