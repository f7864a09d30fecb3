"""What there is to look at: the runs below the folders that were given, and nothing else on this machine."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from torch import Tensor

from regionscope.app.problems import Problem
from regionscope.geometry.planes import Plane
from regionscope.runs.run import Run
from regionscope.tables import some_of
from regionscope.tracing.network import Network
from regionscope.types import Model

SECONDS = 0.5  # between two looks at the folders
NAMED = 8  # others that an error names


@dataclass(frozen=True)
class Images:
    """Points to choose from (n, ...), their classes (n,) if they have some, and the names of classes."""

    points: Tensor
    labels: Tensor | None = None
    classes: tuple[str, ...] = ()

    def label(self, index: int) -> str | None:
        """The name of a point's class."""
        if self.labels is None:
            return None
        number = int(self.labels[index])
        return self.classes[number] if 0 <= number < len(self.classes) else str(number)


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A run, or a network that was given: what the explorer may know of it.

    `model` gives the network as it was at a step; without it, `reason` says what is missing. `images` gives the
    training points, if they can be had: an error otherwise.
    """

    id: str
    run: Run | None = None
    model: Callable[[int], Model | Network] | None = None
    reason: str | None = None
    images: Callable[[], Images] | None = None
    planes: Mapping[str, Plane] = field(default_factory=dict)
    version: int = 0  # another one for each run that was ever in the same folder

    @property
    def steps(self) -> list[int]:
        """Those that can be asked for."""
        return [0] if self.run is None else self.run.steps


Describe = Callable[[str, Run], Exhibit]  # what is known of a run, which is to have this id


class Library:
    """The exhibits that were given, and those below folders, which may come and go."""

    def __init__(self, folders: Sequence[Path], describe: Describe, given: Sequence[Exhibit] = ()) -> None:
        self._folders, self._describe = [folder.resolve() for folder in folders], describe
        self._given = {exhibit.id: exhibit for exhibit in given}
        self._found: dict[tuple[Path, int], Exhibit] = {}
        self._looked, self._lock = -SECONDS, Lock()

    def exhibits(self) -> dict[str, Exhibit]:
        """All that there are now, by their ids."""
        with self._lock:
            if self._folders and time.monotonic() - self._looked >= SECONDS:
                self._found = dict(self._on_disk())
                self._looked = time.monotonic()
            return self._given | {exhibit.id: exhibit for exhibit in self._found.values()}

    def exhibit(self, name: str) -> Exhibit:
        """The one with an id: ids are looked up, never followed as paths."""
        known = self.exhibits()
        if name not in known:
            others = [*known][:NAMED]
            raise Problem("unknown", f"there is no run {name[:80]!r}; there are {', '.join(others) or 'none'}")
        return known[name]

    def _on_disk(self) -> Iterator[tuple[tuple[Path, int], Exhibit]]:
        taken = set(self._given)
        for folder in self._folders:
            for file in sorted(folder.glob("**/run.json")):
                try:
                    place = file.parent.relative_to(folder)
                    version = file.stat().st_mtime_ns
                    name = _free(folder.name if place == Path() else f"{folder.name}/{place.as_posix()}", taken)
                    key = (file.parent, version)
                    known = self._found.get(key)
                    yield key, known if known is not None and known.id == name else self._exhibit(folder, key, name)
                except (OSError, ValueError, KeyError, Problem):  # gone, half removed, damaged, or elsewhere
                    continue
                taken.add(name)

    def _exhibit(self, folder: Path, key: tuple[Path, int], name: str) -> Exhibit:
        path, version = key
        check_inside(folder, [path / "run.json"])
        found = self._describe(name, Run.open(path))
        return Exhibit(**{**vars(found), "version": version})

    def check(self, exhibit: Exhibit, step: int) -> Run:
        """The run of an exhibit, if a step of it was recorded and all its files are where they seem to be."""
        run = exhibit.run
        if run is None or step not in run.steps:
            raise unknown_step(exhibit, step)
        check_inside(run.path, run.files(step))
        return run


def check_inside(folder: Path, files: Sequence[Path]) -> None:
    """A problem if a file is a link that leads out of a folder."""
    root = folder.resolve()
    for file in files:
        if not file.resolve().is_relative_to(root):
            raise Problem("refused", f"{file.name} is a link that leaves {folder.name}: it is not followed")


def unknown_step(exhibit: Exhibit, step: int) -> Problem:
    known = exhibit.steps
    some = ", ".join(str(known[i]) for i in some_of(len(known), NAMED)) or "none"
    return Problem("unknown", f"step {step} was not recorded in {exhibit.id}; there are {some}")


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number if another folder has it already."""
    number = 2
    while (found := name if number == 2 and name not in taken else f"{name}~{number}") in taken:
        number += 1
    return found
