"""A disk that loses power: what is done to files is written down, and for any moment it is told what a cut can leave.

What was synced stays. Of the rest anything may be lost: names of files, their contents, or both.
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class RecordingOs:
    """Stands for `os` in `regionscope.disk`: does what it is told, syncs nothing, and writes down what changes."""

    def __init__(self, fail: Callable[[str, str], None] = lambda operation, path: None) -> None:
        self.operations: list[tuple[str, ...]] = []
        self.data: list[bytes] = []  # of the writes, in order
        self._open: dict[int, str] = {}
        self._fail = fail

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _note(self, *operation: str) -> None:
        self._fail(operation[0], operation[1])
        self.operations.append(operation)

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            self._note("create", str(path))
        file = os.open(path, flags, mode)
        self._open[file] = str(path)
        return file

    def write(self, file: int, data: memoryview) -> int:
        self._note("write", self._open[file], str(len(self.data)))
        self.data.append(bytes(data))
        return os.write(file, data)

    def fsync(self, file: int) -> None:
        self._note("sync", self._open[file])

    def close(self, file: int) -> None:
        del self._open[file]
        os.close(file)

    def replace(self, source: Any, target: Any) -> None:
        self._note("move", str(source), str(target))
        os.replace(source, target)

    rename = replace

    def unlink(self, path: Any) -> None:
        os.unlink(path)
        self._note("drop", str(path))

    def rmdir(self, path: Any) -> None:
        os.rmdir(path)
        self._note("drop", str(path))

    def mkdir(self, path: Any) -> None:
        self._note("mkdir", str(path))
        os.mkdir(path)


@dataclass
class File:
    data: bytes = b""
    synced: bytes = b""


@dataclass
class Folder:
    now: dict[str, "File | Folder"] = field(default_factory=dict)
    synced: dict[str, "File | Folder"] = field(default_factory=dict)
    pending: list[tuple[str, ...]] = field(default_factory=list)  # changes of names since it was synced
    things: list["File | Folder"] = field(default_factory=list)  # those that they are about


class Disk:
    """What a disk holds and what of it is synced, after some of the recorded operations below a folder."""

    def __init__(self, root: Path, recorded: RecordingOs, count: int) -> None:
        self.root, self.top = root, Folder()
        for operation in recorded.operations[:count]:
            if operation[0] in ("create", "write", "sync", "move", "drop", "mkdir"):
                self._apply(recorded, *operation)

    def _at(self, path: str) -> "File | Folder":
        thing: File | Folder = self.top
        for name in Path(path).relative_to(self.root).parts:
            assert isinstance(thing, Folder)
            thing = thing.now[name]
        return thing

    def _apply(self, recorded: RecordingOs, what: str, path: str, more: str = "") -> None:
        if what == "write":
            file = self._at(path)
            assert isinstance(file, File)
            file.data += recorded.data[int(more)]
            return
        if what == "sync":
            thing = self._at(path)
            if isinstance(thing, File):
                thing.synced = thing.data
            else:
                thing.synced, thing.pending, thing.things = dict(thing.now), [], []
            return
        parent, name = self._at(str(Path(path).parent)), Path(path).name
        assert isinstance(parent, Folder)
        thing = {"create": File, "mkdir": Folder}[what]() if what in ("create", "mkdir") else parent.now[name]
        change = ("move", name, Path(more).name) if what == "move" else ("drop" if what == "drop" else "put", name)
        _change(parent.now, change, thing)
        parent.pending.append(change)
        parent.things.append(thing)

    def left(self, how: str, seed: int, path: Path) -> None:
        """Make below a path what a cut can leave: all that was not synced is lost, or only contents, or some of it."""
        _make(self.top, path, how, random.Random(seed))


def _change(names: dict[str, File | Folder], change: tuple[str, ...], thing: File | Folder) -> None:
    names.pop(change[1], None)
    if change[0] != "drop":
        names[change[-1]] = thing


HOW = ("all lost", "contents lost", "contents zero", "some lost", "nothing lost")


def _make(thing: File | Folder, path: Path, how: str, chance: random.Random) -> None:
    if isinstance(thing, File):
        new = thing.data[len(thing.synced) :]
        kept = {
            "nothing lost": new,
            "contents zero": bytes(len(new)),
            "some lost": new[: chance.randrange(len(new) + 1)],
        }
        path.write_bytes(thing.synced + kept.get(how, b""))
        return
    path.mkdir(exist_ok=True)
    names = dict(thing.synced if how in ("all lost", "some lost") else thing.now)
    if how == "some lost":
        for change, changed in zip(thing.pending, thing.things, strict=True):
            if chance.random() < 0.5:
                _change(names, change, changed)
    for name, inside in names.items():
        _make(inside, path / name, how, chance)
