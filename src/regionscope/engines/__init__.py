"""Engines: where independent tasks run. `engines.map(task, items)` here, in processes, or on a cluster of Ray.

A task is a function of one item that does no harm when it is called twice: it writes what it finds whole or not at all,
and returns at once if that is there. So a map that was interrupted goes on where it was when it is called again.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import TypeVar

from regionscope.engines.local import in_processes, in_turn
from regionscope.engines.tasks import Ended, Tasks, TasksFailed
from regionscope.progress import tqdm

Item = TypeVar("Item")
Result = TypeVar("Result")
ENGINES = ("serial", "processes", "ray")


def map(
    task: Callable[[Item], Result], items: Sequence[Item], *, engine: str = "serial", cpus: int = 1, gpus: float = 0.0,
    names: Sequence[str] | None = None, show_progress: bool = False,
) -> list[Result]:  # fmt: skip
    """What a task returns for each of the items, in their order.

    `engine` is "serial" (one after another, here), "processes" (all cores of this machine; "processes:3" for three at
    a time), or "ray" (a cluster on this machine for as long as it takes; "ray:ADDRESS" for one that is there). But for
    the first, task and items are pickled: the task is a function of a module. It needs `cpus` cores and `gpus` GPUs.
    If tasks fail, the others are done first; then `TasksFailed` says which and why, by their `names`.

    >>> map(abs, [-1, 2])
    [1, 2]
    """
    told = names or [f"task {k}" for k in range(len(items))]
    tasks = Tasks(task, items, told, cpus, gpus)
    found: dict[int, Ended] = {}
    with closing(_all_ended(tasks, engine)) as every:  # whatever stops it, it leaves no process behind
        for ended in tqdm(every, total=len(items), desc="tasks", disable=not show_progress or len(items) < 2):
            found[ended.place] = ended
    failures = {told[place]: error for place in sorted(found) if (error := found[place].error) is not None}
    if failures:
        raise TasksFailed(failures, len(items) - len(failures))
    return [found[place].value for place in range(len(items))]


def _all_ended(tasks: Tasks, engine: str) -> Generator[Ended, None, None]:
    """What becomes of the tasks, as they end."""
    check_engine(engine)
    kind, _, detail = engine.partition(":")
    if kind == "ray":
        from regionscope.engines.clusters import on_ray  # ray takes seconds to import, and is an extra

        return on_ray(tasks, detail or None)
    return in_processes(tasks, int(detail) if detail else None) if kind == "processes" else in_turn(tasks)


def check_engine(engine: str) -> None:
    """An error if there is no such engine: told before anything is run."""
    kind, _, detail = engine.partition(":")
    if (
        kind not in ENGINES
        or (kind == "serial" and detail)
        or (kind == "processes" and detail and not _is_count(detail))
    ):
        raise ValueError(f"engine must be serial, processes, processes:COUNT, ray or ray:ADDRESS, got {engine!r}")


def _is_count(text: str) -> bool:
    return text.isdigit() and int(text) > 0
