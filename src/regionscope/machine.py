"""How much is done at once, and how freed memory is kept for the next use, or given back."""

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import torch

Part = TypeVar("Part")
Found = TypeVar("Found")
LARGEST = 31 << 20  # bytes; the C library takes no chunk above 32 MB for an example
GB = 1e9
UNITS = {"GB": GB, "MB": 1e6, "kB": 1e3}
FLOAT = 4  # bytes, at least
ALWAYS = 1 << 28  # bytes; no one is asked whether there are so many
FEW_FLOATS = 1 << 20  # so many are worked on faster by one thread than by two
FLOATS_AT_ONCE = 1 << 21  # in float64 half of that: such an array stays in the heap


def points_at_once(floats_per_point: int, batch_size: int | None = None, *, floats: int = FLOATS_AT_ONCE) -> int:
    """How many points to take together: `batch_size`, or so many that an array for all has about so many floats.

    A point that cannot fit into memory is refused before it is tried.

    >>> points_at_once(1000, floats=8000), points_at_once(1000, 5), points_at_once(1 << 22)
    (8, 5, 1)
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    needed = FLOAT * floats_per_point
    if needed > ALWAYS and needed > (free := free_memory()):
        raise MemoryError(
            f"one point alone needs {bytes_in_words(needed)} or more here, and {bytes_in_words(free)} are free: take"
            " fewer directions, method='random' where there is one, or a smaller network"
        )
    return batch_size or max(1, floats // max(1, floats_per_point))


def bytes_in_words(size: float) -> str:
    """So many bytes in the unit that suits them, with one digit behind the point below 10.

    >>> bytes_in_words(1.23e9), bytes_in_words(5e6), bytes_in_words(71_234), bytes_in_words(12), bytes_in_words(4e12)
    ('1.2 GB', '5 MB', '71 kB', '12 bytes', '4,000 GB')
    """
    for unit, one in UNITS.items():
        if (number := size / one) >= 0.9995:  # what is rounded to 1,000 of a unit is 1 of the next
            return f"{number:,.{0 if number >= 9.95 else 1}f}".removesuffix(".0") + f" {unit}"
    return f"{size:.0f} bytes"


def busy_seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """How long something takes, without the time in which this process, or what the clock is of, waits for others.

    >>> 0 <= busy_seconds(lambda: sum(range(1000))) < 1
    True
    """
    start, busy = time.perf_counter(), clock()
    work()
    return min(time.perf_counter() - start, clock() - busy)


def portions(rows: int, at_once: int) -> Iterator[slice]:
    """Rows one after another, so many at once; `points_at_once` says how many.

    >>> list(portions(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, rows, at_once):
        yield slice(start, min(start + at_once, rows))


@contextmanager
def _pool_of_threads(threads: int, **options: Any) -> Iterator[ThreadPoolExecutor]:
    """Threads that are waited for in the end, but not by who is told to stop."""
    pool, wait = ThreadPoolExecutor(threads, **options), True
    try:
        yield pool
    except (KeyboardInterrupt, SystemExit):
        wait = False
        raise
    finally:
        pool.shutdown(wait, cancel_futures=not wait)


def in_threads(function: Callable[[Part], Found], parts: Iterable[Part]) -> Iterator[Found]:
    """What a function gives for each part, in their order, worked out on as many cores as torch takes.

    For kernels that let go of Python's lock; numba's own threads may hang when the process exits.

    >>> list(in_threads(abs, [-1, 2]))
    [1, 2]
    """
    if (threads := torch.get_num_threads()) == 1:
        yield from map(function, parts)
        return
    with _pool_of_threads(threads) as pool:
        yield from pool.map(function, parts)


def one_core_each(tasks: Iterable[Callable[[], Found]]) -> Iterator[Found]:
    """What tasks return, in their order; as many at a time as torch takes cores, each on one core.

    For many small tasks: torch's threads wait for the next operation without sleep, and take the cores of others. If
    there are fewer tasks than cores, they are done one after another, each on all. So they are, in its own thread, if
    the caller has set more for that than whether gradients are enabled. Tasks are taken when it is their turn, or one
    before it.

    >>> list(one_core_each([lambda: 1, lambda: 2]))
    [1, 2]
    """
    cores, gradients, waiting = torch.get_num_threads(), torch.is_grad_enabled(), iter(tasks)
    first = [] if cores == 1 or _own_settings() else list(islice(waiting, cores))
    if len(first) < cores:
        yield from (task() for task in chain(first, waiting))
        return

    def done(task: Callable[[], Found]) -> Found:
        with torch.set_grad_enabled(gradients):
            return context.copy().run(task)

    context, begun = copy_context(), deque[Future[Found]]()  # numpy's handling of errors is in it
    try:
        with _pool_of_threads(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            for task in chain(first, waiting):
                begun.append(pool.submit(done, task))
                if len(begun) > cores:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
    finally:
        torch.set_num_threads(cores)  # else threads that others make later have one


@contextmanager
def threads_for(floats: int) -> Iterator[None]:
    """Torch on one thread for work on so few floats that waking others, and their waiting for more, costs more.

    In this thread alone; those that others make meanwhile begin with one too.

    >>> with threads_for(1000):
    ...     torch.get_num_threads()
    1
    """
    threads = torch.get_num_threads()
    if threads == 1 or floats > FEW_FLOATS:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class ProcessLock:
    """Lets one thread at a time, again and again, into `with lock():`; in a process that was forked it is free.

    There no other thread goes on, which would never let go; `forked` is called then, too.
    """

    def __init__(self, forked: Callable[[], object] = lambda: None) -> None:
        self._lock, self._forked = threading.RLock(), forked
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()
        self._forked()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            yield


_DIFFERENTIATING = ProcessLock()


def forward_derivative(
    function: Callable[..., Any], points: tuple[torch.Tensor, ...], tangents: tuple[torch.Tensor, ...]
) -> Any:
    """Values and derivatives along tangents, as torch.func.jvp has them, which fails in two threads at a time.

    >>> forward_derivative(torch.square, (torch.ones(1),), (torch.ones(1),))
    (tensor([1.]), tensor([2.]))
    """
    with _DIFFERENTIATING():
        return torch.func.jvp(function, points, tangents)


def _own_settings() -> bool:
    """Whether torch does something else in this thread than in a new one."""
    modes = torch._C._len_torch_function_stack() + torch._C._len_torch_dispatch_stack()
    return bool(modes) or torch.is_inference_mode_enabled() or torch.is_autocast_enabled("cpu")


@contextmanager
def memory_told() -> Iterator[None]:
    """What torch says where memory ends becomes a MemoryError that says what to do."""
    try:
        yield
    except RuntimeError as error:
        if "can't allocate memory" not in str(error) and not isinstance(error, torch.OutOfMemoryError):
            raise
        raise MemoryError(
            f"memory does not hold so many points at once: take a smaller batch_size, or fewer points ({error})"
        ) from error


def free_memory() -> float:
    """How many bytes can be had, as far as the system tells: what is free on Linux, elsewhere all there is."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1])
    with suppress(AttributeError, OSError, ValueError):
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    return float("inf")


@cache
def keep_freed_memory() -> None:
    """Let the C library keep freed blocks of up to 31 MB: fetching each anew, page by page, can double running times.

    It raises its threshold to the size of any block of its own that is freed, so one is made, untouched, and freed.
    """
    torch.empty(LARGEST, dtype=torch.uint8)


def return_freed_memory() -> None:
    """Have the C library give back what it keeps, where it knows how to: glibc does."""
    library = ctypes.CDLL(None) if os.name == "posix" else None
    if library is not None and hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
