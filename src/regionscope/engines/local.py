"""Tasks on this machine: one after another here, or in processes that share its cores."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import torch

from regionscope.engines.tasks import Ended, Tasks

TRIES = 2  # of a task whose process is lost
GRACE = 10.0  # seconds in which a worker that is ended can finish a step and save it
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class WorkerLost(RuntimeError):
    """The process of a task ended, as often as it was tried: killed, or short of memory."""


def in_turn(tasks: Tasks) -> Generator[Ended, None, None]:
    """One task after another, here."""
    for place, item in enumerate(tasks.items):
        yield _end_of(tasks, place, item)


def _end_of(tasks: Tasks, place: int, item: Any) -> Ended:
    try:
        return Ended(place, tasks.function(item))
    except Exception as error:
        return Ended(place, error=error)


def in_processes(tasks: Tasks, workers: int | None = None) -> Generator[Ended, None, None]:
    """Tasks in processes of their own, so many at a time: as many as have their cores, if not given.

    A task has as many threads as cores, and a pool of one worker, so that a process that is lost is the loss of one
    task, which is tried again. The processes are started afresh (spawn), because torch's threads do not survive a fork,
    and end with this one.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = max(1, min(workers or cores // tasks.cpus, len(tasks.items)))
    waiting = [(place, 1) for place in reversed(range(len(tasks.items)))]
    idle: list[ProcessPoolExecutor] = []
    running: dict[Future[Any], tuple[int, int, ProcessPoolExecutor]] = {}
    with _threads(tasks.cpus) as threads:
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    (place, tried), pool = waiting.pop(), idle.pop() if idle else _pool(threads)
                    running[pool.submit(tasks.function, tasks.items[place])] = place, tried, pool
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    place, tried, pool = running.pop(future)
                    error = future.exception()
                    if isinstance(error, KeyboardInterrupt | SystemExit):
                        raise error  # somebody stopped it, which is no fault of the task
                    if not isinstance(error, BrokenExecutor):
                        idle.append(pool)
                        yield Ended(place, None if error else future.result(), error)
                    elif tried < TRIES:
                        waiting.append((place, tried + 1))
                    else:
                        yield Ended(place, error=WorkerLost(f"its process ended {TRIES} times without a result"))
        finally:
            _end([pool for _, _, pool in running.values()])
            for pool in idle:
                pool.shutdown()


def _pool(threads: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin, (threads,))


def _begin(threads: int) -> None:
    """In a new process: its share of the cores, no Ctrl-C of its own, and an end when the one that started it ends."""
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that hands out the tasks hears it, and ends the others
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)  # nobody is left to take a result; what was written is whole

    threading.Thread(target=follow, daemon=True).start()


def _end(pools: Sequence[ProcessPoolExecutor]) -> None:
    """End workers, in the middle of a task too: what they write is whole or absent."""
    processes = [process for pool in pools for process in (pool._processes or {}).values()]
    managers: list[Any] = [pool._executor_manager_thread for pool in pools]  # each has begun a task
    for pool in pools:
        pool.shutdown(wait=False, cancel_futures=True)  # a training that is told to stop ends, and its worker with it
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + GRACE
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        process.kill()
    for manager in managers:
        manager.join()


@contextmanager
def _threads(count: int) -> Iterator[int]:
    """Libraries that new processes load take so many threads."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(count)))
    try:
        yield count
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
