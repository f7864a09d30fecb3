"""Times two things against each other in one run, so that a noisy machine disturbs both alike."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


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
        return f"{'ok  ' if self.holds else 'MISS'} {self.value:8.2f}  (at most {self.limit:g})  {self.name}"


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def cost(function: Callable[[], object], unit: Callable[[], object], *, rounds: int = 15) -> float:
    """The median over rounds of seconds of the function per second of the unit, taken in turn."""
    function(), unit()
    return median(seconds(function) / seconds(unit) for _ in range(rounds))
