"""Who writes to a run: one process at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from regionscope.disk import make_folder

PATIENCE = 0.2  # seconds in which a look at the lock by `has_writer` is over


class RunLocked(RuntimeError):
    """Another process writes to that run."""


def writer_lock(path: Path) -> FileLock:
    """The writer's lock; the system lets go of it when the process ends, however it does."""
    make_folder(path)
    lock = FileLock(path / "lock")
    try:
        lock.acquire(timeout=PATIENCE)
    except Timeout:
        raise RunLocked(f"another process, or another monitor, writes to {path}") from None
    return lock


@contextmanager
def kept_if_it_goes_well(lock: FileLock) -> Iterator[FileLock]:
    """After an error others may write again."""
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


def has_writer(path: Path) -> bool:
    """Whether somebody writes to a run. Asking writes nothing, so it may be asked where nothing can be written."""
    try:
        import fcntl

        file = os.open(path / "lock", os.O_RDONLY | os.O_NONBLOCK)
    except (ImportError, OSError):  # not a Unix; or no lock, and so nobody
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # of file systems without locks
        return False
    finally:
        os.close(file)
    return False
