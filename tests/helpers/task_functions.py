"""Tasks for engines: functions of a module, as other processes need them."""

import os
import signal
import time
from pathlib import Path

import torch


def doubled(x: int) -> int:
    return 2 * x


def reciprocal(x: int) -> float:
    return 1 / x


def threads(x: int) -> tuple[int, str]:
    return torch.get_num_threads(), os.environ["OMP_NUM_THREADS"]


def killed_once(path: str) -> str:
    """Its process is lost the first time."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def killed_always(x: int) -> int:
    if x == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def stopped_by(stop: type[BaseException]) -> None:
    raise stop


def slow(path: str) -> None:
    """Says that it began, and never ends."""
    Path(path).write_text(str(os.getpid()))
    time.sleep(600)
