"""Runs that go on while they are looked at: what has changed, and requests that newer ones have made stale."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Any

from regionscope.app.library import Exhibit
from regionscope.app.problems import Problem
from regionscope.app.summaries import run_summary
from regionscope.app.viewer import Viewer
from regionscope.files import plain

SECONDS = 1.0  # between two looks
STALE = 10.0  # seconds after which a run that says that it runs is looked at again: it may have been killed


class Watch:
    """What is known of all runs, looked at once a second however many ask."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer, self._lock, self._looked = viewer, Lock(), -SECONDS
        self._seen: dict[str, tuple[Any, float, dict[str, Any]]] = {}  # signature, when, summary

    def summaries(self) -> dict[str, dict[str, Any]]:
        """An entry for each run."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= SECONDS:
                self._seen = dict(self._look(now))
                self._looked = now
            return {name: told for name, (_, _, told) in self._seen.items()}

    def _look(self, now: float) -> Iterator[tuple[str, tuple[Any, float, dict[str, Any]]]]:
        for name, exhibit in self._viewer.library.exhibits().items():
            signature, known = _signature(exhibit), self._seen.get(name)
            if (
                known is not None
                and known[0] == signature
                and (known[2]["state"] != "running" or now - known[1] < STALE)
            ):
                yield name, known
                continue
            try:
                yield name, (signature, now, plain(run_summary(self._viewer, exhibit)))
            except (Problem, OSError, ValueError):  # it has gone meanwhile, or is damaged
                continue


def _signature(exhibit: Exhibit) -> Any:
    """What changes when a run does."""
    return exhibit.version, [_time_of_change(file) for file in exhibit.run.files()] if exhibit.run is not None else None


def _time_of_change(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None


def events(before: dict[str, dict[str, Any]], now: dict[str, dict[str, Any]]) -> str:
    """What has changed between two looks, as server-sent events."""
    changed = [("run", told) for name, told in now.items() if before.get(name) != told]
    gone = [("gone", {"id": name}) for name in before.keys() - now.keys()]
    return "".join(f"event: {kind}\ndata: {json.dumps(told, allow_nan=False)}\n\n" for kind, told in changed + gone)


@dataclass
class Turn:
    """A request that may take long; `stopped` when nobody waits for it any more."""

    stopped: Event = field(default_factory=Event)

    def check(self) -> None:
        """A problem if it is not to go on."""
        if self.stopped.is_set():
            raise Problem("superseded", "a newer request of the same view has come, or nobody waits any more")


class Turns:
    """The newest request of each view; the one before it is stopped."""

    def __init__(self, most: int) -> None:
        self._most, self._views = most, dict[str, Turn]()
        self._waiting = 0

    def take(self, view: str | None) -> Turn:
        """The turn of a new request."""
        if self._waiting >= self._most:
            raise Problem("busy", f"{self._waiting} requests wait already: try again in a moment")
        self._waiting += 1
        turn = Turn()
        if view is not None:
            if view in self._views:
                self._views[view].stopped.set()
            self._views[view] = turn
        return turn

    def give_back(self, view: str | None, turn: Turn) -> None:
        """A request is over."""
        self._waiting -= 1
        if view is not None and self._views.get(view) is turn:
            del self._views[view]
