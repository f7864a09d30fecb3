"""What every engine is told of independent tasks, and what it says of those that failed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Function = Callable[[Any], Any]  # of one item, importable by its name: it is sent to other processes


@dataclass(frozen=True)
class Tasks:
    """A function to be called with each of the items, and what one call needs of a machine."""

    function: Function
    items: Sequence[Any]
    names: Sequence[str]
    cpus: int = 1
    gpus: float = 0.0


class TasksFailed(RuntimeError):
    """Some tasks failed; the others are done.

    `failures` are the exceptions by the names of their tasks.
    """

    def __init__(self, failures: dict[str, BaseException], done: int) -> None:
        self.failures, self.done = failures, done
        reasons = "; ".join(f"{name}: {type(error).__name__}: {error}" for name, error in failures.items())
        super().__init__(f"{len(failures)} of {len(failures) + done} tasks failed, the others are done: {reasons}")

    def __reduce__(self) -> tuple[Any, ...]:
        return TasksFailed, (self.failures, self.done)


@dataclass(frozen=True)
class Ended:
    """What one task returned, or the exception that it ended with."""

    place: int  # among the items
    value: Any = None
    error: BaseException | None = None
