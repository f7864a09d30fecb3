"""The run directory: the only file that knows its format.

    runs/NAME/run.json              version, configuration, seed, versions of the libraries
    runs/NAME/status.json           how far it is, and what was found out about the whole
    runs/NAME/steps/000001000/      one recorded step: measures.json, weights.safetensors, planes/*.npz
    runs/NAME/state/000001000/      what going on from there needs: tensors.safetensors, info.json

A folder is written beside its place and renamed, so it is whole or absent. One process writes, any number read.
"""

import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from filelock import FileLock, Timeout
from torch import Tensor

from regionscope.files import plain, read_json, read_tensors, write_json, write_tensors
from regionscope.geometry.plane_cells import PlaneCells
from regionscope.measures.table import measure_label
from regionscope.runs.phases import FEWEST, Phases, phases
from regionscope.runs.record import Record
from regionscope.tables import Facts, write_rows
from regionscope.types import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VERSION = 1
SIGNAL = "train/boundary_crossings"  # the curve whose phases are told, if nothing else is said


class RunExists(ValueError):
    """There is a run in that directory already."""


class RunLocked(RuntimeError):
    """Another process writes to that run."""


class Run(Facts):
    """One training run on disk. Make it with `create`, go on with `resume`, read with `open`."""

    def __init__(self, path: str | Path, lock: FileLock | None = None) -> None:
        self.path, self._lock = Path(path), lock
        self._records: dict[int, Record] = {}  # those that were read
        about = read_json(self.path / "run.json")
        if about.get("version") != VERSION:
            raise ValueError(
                f"{self.path} has format {about.get('version')}, this version of regionscope reads {VERSION}"
            )
        self.config: dict[str, Any] = about["config"]
        self.versions: dict[str, str] = about["versions"]

    def _facts(self) -> dict[str, object]:
        steps = self.steps
        probes = self.read(steps[-1]).probes if steps else {}
        return {
            "path": self.path, "state": self.status.get("state", "recorded"),
            "records": f"{len(steps)}, from step {steps[0]} to {steps[-1]}" if steps else 0,
            "measures": ", ".join(dict.fromkeys(name for found in probes.values() for name in found)) or "none",
            "probes": ", ".join(probes) or "none",
        }  # fmt: skip

    # making and opening

    @staticmethod
    def create(path: str | Path, config: Mapping[str, Any], *, overwrite: bool = False) -> "Run":
        """A new run in a directory that has none; `overwrite` removes the run that is there, and no other files."""
        path = Path(path)
        if not overwrite:
            check_no_run(path)
        lock = _writer_lock(path)
        _remove_run(path)
        (path / "steps").mkdir(exist_ok=True)
        made = datetime.now(UTC).isoformat(timespec="seconds")
        write_json(
            path / "run.json", {"version": VERSION, "created": made, "versions": _versions(), "config": plain(config)}
        )
        return Run(path, lock)

    @staticmethod
    def resume(path: str | Path) -> "Run":
        """The run in a directory, for going on; what a kill left half-written is cleaned up."""
        _existing(path)
        run = Run(path, _writer_lock(Path(path)))
        for folder in (run.path / "steps", run.path / "state"):
            for left in folder.glob(".*"):
                shutil.rmtree(left, ignore_errors=True)
        return run

    @staticmethod
    def open(path: str | Path) -> "Run":
        """The run in a directory, for reading, also while it is being written.

        >>> Run.open("nowhere")
        Traceback (most recent call last):
        ...
        FileNotFoundError: there is no run in nowhere (no run.json)
        """
        return Run(_existing(path))

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # writing

    def record(
        self,
        record: Record,
        *,
        weights: Mapping[str, Tensor] | None = None,
        planes: Mapping[str, PlaneCells] | None = None,
    ) -> None:
        """Write one step, wholly or, after any fault, not at all."""
        with self._new_folder(self.path / "steps", record.step) as folder:
            write_json(folder / "measures.json", record.to_dict())
            if weights is not None:
                write_tensors(folder / "weights.safetensors", weights, self.config.get("architecture"))
            for name, cells in (planes or {}).items():
                (folder / "planes").mkdir(exist_ok=True)
                cells.save(folder / "planes" / f"{name}.npz")

    def save_state(self, step: int, tensors: Mapping[str, Tensor], info: Mapping[str, Any]) -> None:
        """Write what going on from this step needs; older states are removed after."""
        older = _numbered(self.path / "state")
        with self._new_folder(self.path / "state", step) as folder:
            write_tensors(folder / "tensors.safetensors", tensors)
            write_json(folder / "info.json", info)
        for left in older:
            shutil.rmtree(_place(self.path / "state", left), ignore_errors=True)

    def set_status(self, **facts: Any) -> None:
        """Change what is known about the whole run."""
        self._writable()
        write_json(self.path / "status.json", {**self.status, **facts})

    def add_to_config(self, **facts: Any) -> None:
        """Write down with the configuration what is known only when the first step is recorded."""
        self._writable()
        file = self.path / "run.json"
        self.config = {**self.config, **plain(facts)}
        write_json(file, {**read_json(file), "config": self.config})

    def _writable(self) -> None:
        if self._lock is None:
            raise RuntimeError(f"{self.path} was opened for reading; write to it with Run.create or Run.resume")

    @contextmanager
    def _new_folder(self, parent: Path, step: int) -> Iterator[Path]:
        self._writable()
        final = _place(parent, step)
        if final.exists():
            raise ValueError(f"step {step} is in {self.path} already")
        folder = parent / f".{final.name}-{uuid4().hex}"
        folder.mkdir(parents=True)
        try:
            yield folder
            os.rename(folder, final)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    # reading

    @property
    def steps(self) -> list[int]:
        """The recorded steps, in order."""
        return _numbered(self.path / "steps")

    @property
    def status(self) -> dict[str, Any]:
        """What is known about the whole run: state, step, phases."""
        file = self.path / "status.json"
        return read_json(file) if file.exists() else {}

    def read(self, step: int) -> Record:
        """What was recorded at a step; it never changes, so it is read from disk once."""
        if step not in self._records:
            self._records[step] = self._read(step)
        return self._records[step]

    def _read(self, step: int) -> Record:
        file = _place(self.path / "steps", step) / "measures.json"
        if not file.exists():
            known = ", ".join(map(str, self.steps)) or "none"
            raise FileNotFoundError(f"step {step} was not recorded in {self.path}; there are {known}")
        stored = read_json(file)
        try:
            record = Record.from_dict(stored)
        except ValueError as error:
            raise ValueError(f"{file} is damaged, or no record: {error}") from None
        if record.step != step:
            raise ValueError(f"{file} is damaged: it is the record of step {record.step}")
        return record

    def weights(self, step: int) -> dict[str, Tensor]:
        """The model's state dict at a step."""
        return read_tensors(self.checkpoint(step))[0]

    def checkpoint(self, step: int) -> Path:
        """The file with the model's weights at a step, if they were kept."""
        return _place(self.path / "steps", step) / "weights.safetensors"

    def planes(self, step: int) -> list[str]:
        """The names of the planes recorded at a step."""
        return sorted(file.stem for file in (_place(self.path / "steps", step) / "planes").glob("*.npz"))

    def plane(self, step: int, name: str, model: Model | None = None) -> PlaneCells:
        """The exact regions on a plane as they were at a step."""
        return PlaneCells.load(_place(self.path / "steps", step) / "planes" / f"{name}.npz", model)

    def files(self, step: int | None = None) -> list[Path]:
        """What is read of the run as a whole, and of a step, if one is given."""
        common = [self.path / name for name in ("run.json", "status.json", "steps")]
        if step is None:
            return common
        folder = _place(self.path / "steps", step)
        return [*common, folder, *sorted(folder.rglob("*"))]

    def latest_state(self) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
        """The newest state to go on from: step, tensors, info."""
        saved = _numbered(self.path / "state")
        if not saved:
            return None
        folder = _place(self.path / "state", saved[-1])
        return saved[-1], read_tensors(folder / "tensors.safetensors")[0], read_json(folder / "info.json")

    def rows(self) -> list[dict[str, Any]]:
        """One flat row a recorded step: "step", scalars by name, "probe/measure", ".../stderr", ".../layer1"."""
        return [{"step": step, **self.read(step).flat()} for step in self.steps]

    def table(self) -> Any:
        """The rows as a pandas DataFrame, if pandas is installed; otherwise as they are."""
        try:
            import pandas
        except ImportError:
            return self.rows()
        return pandas.DataFrame(self.rows())

    def curve(self, column: str) -> tuple[list[int], list[float]]:
        """The steps at which a column has a value, and the values."""
        rows = self.rows_with(column)
        if not rows:
            names = sorted({name for row in self.rows() for name in row})
            raise KeyError(f"{self.path} has no values for {column!r}; it has {', '.join(names) or 'no records'}")
        return [row["step"] for row in rows], [row[column] for row in rows]

    def rows_with(self, column: str) -> list[dict[str, Any]]:
        """The rows in which a column has a value."""
        return [row for row in self.rows() if row.get(column) is not None]

    def has_phases(self, column: str = SIGNAL) -> bool:
        """Whether there are enough records of a column to tell its phases."""
        return len(self.rows_with(column)) >= FEWEST

    def phases(self, column: str = SIGNAL) -> Phases:
        """The phases of a column, with the times of memorisation and generalisation if accuracies were recorded."""
        rows = self.rows_with(column)
        if not self.has_phases(column):
            raise ValueError(f"phases need at least {FEWEST} records of {column}, {self.path} has {len(rows)}")
        names = {"stderr": f"{column}/stderr", "train_accuracy": "train_accuracy", "test_accuracy": "test_accuracy"}
        known = {option: [row.get(name) for row in rows] for option, name in names.items()}
        complete = {option: values for option, values in known.items() if None not in values}
        return phases(*self.curve(column), **complete)  # type: ignore[arg-type]

    def label(self, column: str) -> str:
        """A column, or a measure, in words, with the options that it was measured with."""
        *probe, measure = column.split("/")[:2]
        name, *options = measure_label(measure, self.config.get("measures", {}).get(measure)).split(", ")
        summed = ["sum over layers"] if self.is_sum(measure) else []
        return ", ".join([f"{name} at {probe[0]}" if probe else name, *summed, *options])

    def is_sum(self, measure: str) -> bool:
        """Whether a measure has been added up over several layers."""
        return any(name.endswith(f"/{measure}/layer2") for row in self.rows()[:1] for name in row)

    def plot(self, what: str | None = None, ax: "Axes | None" = None) -> "Axes":
        """A measure at every probe, or one column, over the steps, with the phases that it tells.

        By default boundary crossings, or what was measured first; see `regionscope.plots.curves.recorded`.
        """
        from regionscope.plots.curves import recorded

        return recorded(self, what, ax)

    def export(self, path: str | Path) -> None:
        """Write the rows as .csv, .json or .parquet."""
        write_rows(self.rows(), Path(path))


def runs_in(folder: str | Path) -> list[Run]:
    """The runs in the directories below a folder, by name."""
    return [Run.open(file.parent) for file in sorted(Path(folder).glob("**/run.json"))]


def compared(runs: Sequence[Run], column: str) -> list[dict[str, Any]]:
    """One row for every step that any run recorded: "step", and the column's value in each run by its path."""
    curves = {str(run.path): dict(zip(*run.curve(column), strict=True)) for run in runs}
    steps = sorted({step for curve in curves.values() for step in curve})
    return [{"step": step, **{name: curve.get(step) for name, curve in curves.items()}} for step in steps]


def run_state(run: Run) -> str:
    """running, finished, stopped, failed, or killed if it says that it runs but nobody writes to it.

    A run of a monitor in somebody's own training says nothing: it is recorded, or running if it is being written to.
    """
    state = str(run.status.get("state", "recorded"))
    if state not in ("running", "recorded"):
        return state
    try:
        _writer_lock(run.path).release()
    except RunLocked:
        return "running"
    return "killed" if state == "running" else state


# files


def _writer_lock(path: Path) -> FileLock:
    """The writer's lock; the system lets go of it when the process ends, however it does."""
    path.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RunLocked(f"another process, or another monitor, writes to {path}") from None
    return lock


def check_no_run(path: str | Path) -> None:
    """An error if there is a run in a directory."""
    if (Path(path) / "run.json").exists():
        raise RunExists(
            f"there is a run in {path} already; take another name, resume it, or overwrite it (on the command line with"
            " --overwrite, in Python with Run.create(path, config, overwrite=True))"
        )


def _remove_run(path: Path) -> None:
    """Remove what a run consists of; without its run.json, which goes first, it is none any more."""
    for name in ("run.json", "status.json"):
        (path / name).unlink(missing_ok=True)
    for name in ("steps", "state"):
        if (path / name).exists():
            shutil.rmtree(path / name)


def _existing(path: str | Path) -> Path:
    if not (Path(path) / "run.json").exists():
        raise FileNotFoundError(f"there is no run in {path} (no run.json)")
    return Path(path)


def _place(parent: Path, step: int) -> Path:
    return parent / f"{step:09d}"


def _numbered(parent: Path) -> list[int]:
    return sorted(int(folder.name) for folder in parent.glob("[0-9]*") if folder.name.isdigit())


def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in ("regionscope", "torch", "numpy")} | {
        "python": platform.python_version()
    }
