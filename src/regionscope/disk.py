"""Files and folders that are there wholly or not at all, also after a power cut, and files that are opened with care.

What is written goes to a name beside its own, is synced, takes its name, and the folder that holds the name is synced:
until then what was there before stays. What is in a new folder is synced with it, when it is complete. A writer that
was killed leaves names beside, which no reader looks at and `clear_leftovers` removes. Nothing else in the library
writes files; every operation goes through `os`, so that tests can record them and let them fail.
"""

import errno
import logging
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from regionscope.machine import ALWAYS, bytes_in_words, free_memory

BESIDE = re.compile(r"\..+-[0-9a-f]{32}")
_log = logging.getLogger(__name__)
CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP)  # what some network file systems say of folders
KINDS = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


class DamagedFile(ValueError):
    """A file is not what it should be."""


# writing


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file in memory to write to: it takes its place on the disk at the end, and leaves nothing after a fault."""
    file = BytesIO()
    yield file
    write_whole(path, file.getvalue())


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file whole or not at all; what was there before stays until the new one would outlive a power cut."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is no regular file: it is not written to")
    beside = _beside(path)
    try:
        _fill(beside, data, os.O_CREAT | os.O_EXCL, synced=not _in_new_folder(path))
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError) and error.filename is not None:
            error.filename = str(path)  # nobody knows the other name
            del error.filename2
        raise
    _sync_name(path)
    if not _in_new_folder(path):
        _log.info("wrote %s, %d bytes", path, len(data))


def append(path: str | Path, data: bytes) -> None:
    """Add to a file; after a fault its end may be missing."""
    _fill(Path(path), data, os.O_APPEND, synced=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to fill: at the end it takes its place, instead of one that may be there; after a fault it is gone."""
    make_folder(path.parent)
    beside, before = _beside(path), _beside(path)
    try:
        os.mkdir(beside)
        yield beside
        _sync_tree(beside)
        if path.exists():
            os.rename(path, before)
        os.rename(beside, path)
    except BaseException:
        with suppress(OSError):
            if before.exists() and not path.exists():
                os.rename(before, path)
            remove(beside)
        raise
    _sync_name(path)
    _log.info("wrote %s", path)
    with suppress(OSError):
        remove(before)


def make_folder(path: str | Path) -> None:
    """Make a folder and those above it, if they are not there."""
    path = Path(path)
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        os.mkdir(path)
    except FileExistsError:
        if not path.is_dir():
            raise
    _sync_name(path)


def check_writable(folder: Path) -> None:
    """An error if nothing can be written into a folder, or, where it is not made yet, into the nearest above it."""
    there = next(place for place in (folder, *folder.parents) if os.path.exists(place))
    if not there.is_dir():
        raise NotADirectoryError(f"{there} is a file, not a folder")
    trial = _beside(there / "trial")  # permissions alone do not tell: file systems can be read-only, or none
    try:
        os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        os.unlink(trial)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise PermissionError(f"no file can be made in the folder {there} ({why})") from error


def remove(path: Path) -> None:
    """Remove a file, or a folder and what is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        for inside in path.iterdir():
            remove(inside)
        os.rmdir(path)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)


def clear_leftovers(folder: Path) -> None:
    """Remove what killed writers left in a folder; no other may be at work there."""
    for left in folder.iterdir() if folder.is_dir() else ():
        if BESIDE.fullmatch(left.name):
            with suppress(OSError):
                remove(left)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder, and that others are gone, outlive a power cut."""
    if os.name == "nt":  # where folders cannot be opened, and names are kept in a journal
        return
    try:
        _sync(folder)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:50]}-{uuid4().hex}")


def _in_new_folder(path: Path) -> bool:
    """Whether it is synced with a folder that is not complete yet."""
    return any(BESIDE.fullmatch(parent.name) for parent in path.parents)


def _fill(path: Path, data: bytes, flags: int, *, synced: bool) -> None:
    file = os.open(path, os.O_WRONLY | flags | getattr(os, "O_BINARY", 0), 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        if synced:
            os.fsync(file)
    finally:
        os.close(file)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _sync_tree(folder: Path) -> None:
    for inside in folder.iterdir():
        if inside.is_dir():
            _sync_tree(inside)
        else:
            _sync(inside)
    sync_folder(folder)


def _sync_name(path: Path) -> None:
    if not _in_new_folder(path):
        sync_folder(path.parent)


# reading


def open_file(path: str | Path) -> BinaryIO:
    """A regular file, opened to read: a pipe or a device in its place is refused, never waited for."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    kind = stat.S_IFMT(os.fstat(file).st_mode)
    if kind != stat.S_IFREG:
        os.close(file)
        raise DamagedFile(f"{path} is no file but a {KINDS.get(kind, 'thing of another kind')}")
    return os.fdopen(file, "rb")


def read_whole(path: str | Path, *, most: int | None = None) -> bytes:
    """What a regular file holds, if it has at most so many bytes; by default, as many as memory has room for."""
    with open_file(path) as file, reading(path, "cannot be read"):
        size = os.fstat(file.fileno()).st_size
        room = most or max(ALWAYS, int(free_memory()))
        if size > room:
            raise DamagedFile(
                f"{path} is too large: it has {bytes_in_words(size)}, and {bytes_in_words(room)} are the most"
            )
        return file.read(size)


@contextmanager
def reading(path: str | Path, said: str = "is damaged") -> Iterator[None]:
    """Whatever a broken file leads its reader into, inside, is said in one line that names the file."""
    try:
        yield
    except DamagedFile:
        raise
    except OSError as error:
        if error.filename is not None:
            raise
        raise DamagedFile(f"{path} {said}: {one_line(error)}") from error
    except Exception as error:
        raise DamagedFile(f"{path} {said}: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """What an error says, or its kind if it says nothing, in a line of bounded length.

    >>> one_line(ValueError("no\\nluck")), one_line(KeyError("step")), one_line(MemoryError())
    ('no', "there is no 'step'", 'MemoryError')
    """
    if isinstance(error, KeyError):
        return f"there is no {error}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    said = next(iter(str(error).splitlines()), "") or type(error).__name__
    return said if len(said) <= 300 else f"{said[:300]}…"
