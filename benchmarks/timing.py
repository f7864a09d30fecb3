"""Times two things against each other in one run, so that a noisy machine disturbs both alike."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Ratio:
    """How much a thing costs in units of another, with the limit it must keep."""

    name: str
    value: float
    limit: float

    @property
    def holds(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        return f"{'ok  ' if self.holds else 'MISS'} {self.value:8.3f}  (at most {self.limit:g})  {self.name}"


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def printed(code: str) -> float:
    """The number that this code prints in a new process."""
    folder = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    return float(done.stdout)


def peak_memory(code: str) -> float:
    """The largest size in GB of a new process that does nothing but this; Linux only."""
    # not getrusage, whose maximum a new process takes over from its parent
    size = "float(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    return printed(f"import torch, regionscope as rs, networks; {code}; print({size} * 1024 / 1e9)")


def forward(model: nn.Module, points: Tensor, at_once: int) -> Callable[[], None]:
    """Plain forward passes, of so many points at a time: the unit of most costs."""

    def run() -> None:
        with torch.no_grad():
            for part in points.split(at_once):
                model(part)

    return run


def cost(function: Callable[[], object], unit: Callable[[], object], *, rounds: int = 15) -> float:
    """The median over rounds of seconds of the function per second of the unit, taken in turn."""
    function(), unit()
    return median(seconds(function) / seconds(unit) for _ in range(rounds))
