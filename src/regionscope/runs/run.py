"""The run directory: the only file that knows its format.

    runs/NAME/run.json              version, configuration, seed, versions of the libraries
    runs/NAME/status.json           how far it is, and what was found out about the whole
    runs/NAME/steps/000001000/      one recorded step: measures.json, weights.safetensors, planes/*.npz
    runs/NAME/state/000001000/      what going on from there needs: tensors.safetensors, info.json

A folder is written beside its place, synced and renamed, so it is whole or absent, also after a power cut. One process
writes, any number read, which need no more than to be let read. A run says which records it lacks.
"""

import platform
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock
from torch import Tensor

from regionscope.disk import DamagedFile, clear_leftovers, make_folder, reading, remove, sync_folder, whole_folder
from regionscope.files import check_name, check_tensors, plain, read_json, read_tensors, write_json, write_tensors
from regionscope.geometry.plane_cells import PlaneCells
from regionscope.results import SMOOTH_IN_SHORT, options_in_words
from regionscope.runs.locks import has_writer, kept_if_it_goes_well, writer_lock
from regionscope.runs.phases import FEWEST, Phases, phases
from regionscope.runs.record import Record, check_status, whole_step
from regionscope.tables import Facts, write_rows
from regionscope.types import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VERSION = 1
PROMISED = "promised"  # in a configuration: the steps that a finished run has recorded, with weights
ENDED = ("finished", "incomplete", "stopped")  # states in which the last step is recorded
SIGNAL = ("train", "boundary_crossings")  # probe and measure whose phases are told, if nothing else is said
SIGNAL_COLUMN = "/".join(SIGNAL)


class RunExists(ValueError):
    """There is a run in that directory already."""


class Run(Facts):
    """One training run on disk. Make it with `create`, go on with `resume`, read with `open`."""

    def __init__(self, path: str | Path, lock: FileLock | None = None) -> None:
        self.path, self._lock = Path(path), lock
        self._records: dict[int, Record] = {}  # those that were read
        self._stamps: dict[int, tuple[int, int]] = {}  # of their files
        self._left_out: set[int] = set()  # those that could not be, and it was said
        about = read_json(self.path / "run.json")
        if about.get("version") != VERSION:
            raise ValueError(
                f"{self.path} has format {about.get('version')}, this version of regionscope reads {VERSION}"
            )
        with reading(self.path / "run.json"):
            self.config, self.versions = _tables(about, "config", "versions")
            self._promised = [whole_step(step) for step in self.config.get(PROMISED, ())]

    def _facts(self) -> dict[str, object]:
        steps = self._whole_steps()
        probes = self.read(steps[-1]).probes if steps else {}
        return {
            "path": self.path, "state": self._known_status().get("state", "recorded"),
            "records": f"{len(steps)}, from step {steps[0]} to {steps[-1]}" if steps else 0,
            "measures": ", ".join(dict.fromkeys(name for found in probes.values() for name in found)) or "none",
            "probes": ", ".join(probes) or "none",
            **({"network": "smooth"} if self.piecewise_linear is False else {}),
        }  # fmt: skip

    # making and opening

    @staticmethod
    def create(path: str | Path, config: Mapping[str, Any], *, overwrite: bool = False) -> "Run":
        """A new run in a directory that has none; `overwrite` removes the run that is there, and no other files."""
        path = Path(path)
        if not overwrite:
            check_no_run(path)
        with kept_if_it_goes_well(writer_lock(path)) as lock:
            _remove_run(path)
            make_folder(path / "steps")
            made = datetime.now(UTC).isoformat(timespec="seconds")
            about = {"version": VERSION, "created": made, "versions": library_versions(), "config": plain(config)}
            write_json(path / "run.json", about)
            return Run(path, lock)

    @staticmethod
    def resume(path: str | Path) -> "Run":
        """The run in a directory, for going on; what a kill left half-written is cleaned up."""
        with kept_if_it_goes_well(writer_lock(_existing_folder(path))) as lock:
            run = Run(path, lock)
            clear_leftovers(run.path)
            if not run._known_status():
                remove(run.path / "status.json")
            for left in (*run.path.glob("steps/.*"), *run.path.glob("state/.*")):
                remove(left)
            return run

    @staticmethod
    def open(path: str | Path) -> "Run":
        """The run in a directory, for reading, also while it is being written.

        >>> Run.open("nowhere")
        Traceback (most recent call last):
        ...
        FileNotFoundError: there is no run in nowhere (no run.json)
        """
        return Run(_existing_folder(path))

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
        """Write one step, wholly or, after any fault, not at all; a damaged record of it is replaced."""
        self._writable()
        final = self._folder(whole_step(record.step))
        for name in planes or {}:
            check_name("plane", name)
        if final.exists() and self._damage(record.step) is None:
            raise ValueError(f"step {record.step} is in {self.path} already")
        with whole_folder(final) as folder:
            write_json(folder / "measures.json", record.to_dict())
            if weights is not None:
                write_tensors(folder / "weights.safetensors", weights, self.config.get("architecture"))
            for name, cells in (planes or {}).items():
                make_folder(folder / "planes")
                cells.save(folder / "planes" / f"{name}.npz")

    def save_state(
        self, step: int, tensors: Mapping[str, Tensor], info: Mapping[str, Any], *, needed: int | None = None
    ) -> None:
        """Write what going on from this step needs; older states are removed when it is safe.

        If a record is `needed` still, of an earlier step, so is the state to train again from for it.
        """
        self._writable()
        with whole_folder(_place(self.path / "state", step)) as folder:
            write_tensors(folder / "tensors.safetensors", tensors)
            write_json(folder / "info.json", info)
        self.keep_states({self.states[-1], *[s for s in self.states if needed is not None and s <= needed][-1:]})

    def keep_states(self, steps: Collection[int]) -> None:
        """Remove all states but those of these steps."""
        self._writable()
        for left in set(self.states) - set(steps):
            with suppress(OSError):
                remove(_place(self.path / "state", left))

    def set_status(self, **facts: Any) -> None:
        """Change what is known about the whole run; a file that is damaged is written anew."""
        self._writable()
        write_json(self.path / "status.json", {**self._known_status(), **facts})

    def _known_status(self) -> dict[str, Any]:
        """What of the status can be read."""
        try:
            return self.status
        except (OSError, ValueError) as error:
            warnings.warn(f"{error}; it counts as empty", stacklevel=2)
            return {}

    def add_to_config(self, **facts: Any) -> None:
        """Write down with the configuration what is known only when the first step is recorded."""
        self._writable()
        file = self.path / "run.json"
        self.config = {**self.config, **plain(facts)}
        write_json(file, {**read_json(file), "config": self.config})

    def _writable(self) -> None:
        if self._lock is None:
            raise RuntimeError(f"{self.path} was opened for reading; write to it with Run.create or Run.resume")

    # reading

    @property
    def steps(self) -> list[int]:
        """The recorded steps, in order."""
        return _step_numbers(self.path / "steps")

    @property
    def states(self) -> list[int]:
        """The steps of the states to go on from, in order, whole or not."""
        return _step_numbers(self.path / "state")

    @property
    def status(self) -> dict[str, Any]:
        """What is known about the whole run: state, step, phases."""
        file = self.path / "status.json"
        if not file.exists():
            return {}
        found = read_json(file)
        with reading(file):
            check_status(found)
        return found

    @property
    def missing(self) -> dict[int, str]:
        """The steps whose records are damaged, or should be there by now and are not, and in a line what is wrong."""
        status = self._known_status()
        reached = status.get("step", -1) + (status.get("state") in ENDED)  # the last one may be at work
        reached = max(reached, *self.states[-1:], -1)
        wanted = {step for step in self._promised if step < reached} | set(status.get("unwritten", ()))
        damage = {step: self._damage(step) for step in sorted(wanted | set(self.steps))}
        return {step: wrong for step, wrong in damage.items() if wrong is not None}

    def _damage(self, step: int) -> str | None:
        """What is wrong with the record of a step, as far as it can be told without reading all that is large."""
        folder = self._folder(step)
        if not folder.is_dir():
            return "it was not recorded"
        try:
            if self._stamps.get(step) != _stamp(folder / "measures.json"):  # no file that was read
                self._records.pop(step, None)
            record = self.read(step)
            weights = folder / "weights.safetensors"
            if step in self._promised or weights.exists():
                check_tensors(weights)
        except FileNotFoundError as error:
            return f"{error.filename or folder} is not there"
        except (OSError, ValueError) as error:
            return str(error)
        lost = [name for name in record.planes if not (folder / "planes" / f"{name}.npz").is_file()]
        return f"{folder / 'planes' / lost[0]}.npz is not there" if lost else None

    @property
    def failures(self) -> dict[str, list[int]]:
        """What could not be measured, such as "train/local_rank", and at which steps; `errors` of a record say why."""
        found: dict[str, list[int]] = {}
        for step in self._whole_steps():
            for what in self.read(step).errors:
                found.setdefault(what, []).append(step)
        return found

    def _whole_steps(self) -> list[int]:
        """The recorded steps that can be read; it is said which cannot."""
        return [step for step in self.steps if self._readable(step)]

    def _readable(self, step: int) -> bool:
        try:
            self.read(step)
        except (OSError, ValueError) as error:
            if step not in self._left_out:
                warnings.warn(f"step {step} is left out: {error}", stacklevel=4)
            self._left_out.add(step)
            return False
        return True

    def read(self, step: int) -> Record:
        """What was recorded at a step; it never changes, so it is read from disk once."""
        if step not in self._records:
            self._records[step] = self._read(step)
        return self._records[step]

    def _read(self, step: int) -> Record:
        file = self._recorded_folder(step) / "measures.json"
        stamp, stored = _stamp(file), read_json(file)
        with reading(file, "is damaged, or no record"):
            record = Record.from_dict(stored)
        if record.step != step:
            raise DamagedFile(f"{file} is damaged: it is the record of step {record.step}")
        self._stamps[step] = stamp
        return record

    def _folder(self, step: int) -> Path:
        return _place(self.path / "steps", step)

    def _recorded_folder(self, step: int) -> Path:
        """The folder of a step, which is there."""
        if not (folder := self._folder(step)).exists():
            known = ", ".join(map(str, self.steps)) or "none"
            raise FileNotFoundError(f"step {step} was not recorded in {self.path}; there are {known}")
        return folder

    def weights(self, step: int) -> dict[str, Tensor]:
        """The model's state dict at a step."""
        self._recorded_folder(step)
        return read_tensors(self.checkpoint(step))[0]

    def checkpoint(self, step: int) -> Path:
        """The file with the model's weights at a step, if they were kept."""
        return self._folder(step) / "weights.safetensors"

    def planes(self, step: int) -> list[str]:
        """The names of the planes recorded at a step."""
        return sorted(file.stem for file in (self._folder(step) / "planes").glob("[!.]*.npz"))

    def plane(self, step: int, name: str, model: Model | None = None) -> PlaneCells:
        """The exact regions on a plane as they were at a step.

        Give the model as it was then too for gradients and `verify`: `rs.run_model(run, step)`, or your own with
        `run.weights(step)`.
        """
        check_name("plane", name)
        file = self._recorded_folder(step) / "planes" / f"{name}.npz"
        if not file.exists():
            known = ", ".join(self.planes(step)) or "none"
            raise FileNotFoundError(f"there is no plane {name!r} at step {step} of {self.path}; there are {known}")
        return PlaneCells.load(file, model)

    def files(self, step: int | None = None) -> list[Path]:
        """What is read of the run as a whole, and of a step, if one is given."""
        common = [self.path / name for name in ("run.json", "status.json", "steps")]
        if step is None:
            return common
        folder = self._folder(step)
        return [*common, folder, *sorted(folder.rglob("*"))]

    def latest_state(self, at_most: int | None = None) -> tuple[int, dict[str, Tensor], dict[str, Any]] | None:
        """The newest state that is whole, perhaps of `at_most` a step: step, tensors, info. Damaged ones are named."""
        for step in reversed(self.states):
            folder = _place(self.path / "state", step)
            if at_most is None or step <= at_most:
                try:
                    return step, read_tensors(folder / "tensors.safetensors")[0], read_json(folder / "info.json")
                except (OSError, ValueError) as error:
                    warnings.warn(f"the state of step {step} is not taken: {error}", stacklevel=2)
        return None

    def rows(self) -> list[dict[str, Any]]:
        """One flat row a recorded step: "step", scalars by name, "probe/measure", ".../stderr", ".../layer1".

        Steps that cannot be read are left out, with a warning; `missing` says what is wrong with them.
        """
        return [{"step": step, **self.read(step).flat()} for step in self._whole_steps()]

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

    @property
    def places(self) -> list[tuple[str, str]]:
        """The probes and measures that records have a mean of; "probe/measure" is its column."""
        records = [self.read(step) for step in self._whole_steps()]
        found = ((probe, name, one) for r in records for probe in r.probes for name, one in r.probes[probe].items())
        return list(dict.fromkeys((probe, name) for probe, name, one in found if "mean" in one))

    @property
    def input_shape(self) -> tuple[int, ...] | None:
        """The shape of one point, if the run tells it."""
        told = [self.config.get("shape"), *(about.get("shape") for about in self.config.get("probes", {}).values())]
        return next((tuple(shape) for shape in told if shape is not None), None)

    @property
    def piecewise_linear(self) -> bool | None:
        """Whether the network is, as its records tell; None if none does, as those of older versions."""
        probes = (found for step in self._whole_steps() for found in self.read(step).probes.values())
        told = (one.get("piecewise_linear") for found in probes for one in found.values())
        return next((known for known in told if isinstance(known, bool)), None)

    def has_phases(self, column: str = SIGNAL_COLUMN) -> bool:
        """Whether there are enough records of a column to tell its phases."""
        return len(self.rows_with(column)) >= FEWEST

    def phases(self, column: str = SIGNAL_COLUMN) -> Phases:
        """The phases of a column, with the times of memorisation and generalisation if accuracies were recorded."""
        if not self.has_phases(column):
            recorded = len(self.rows_with(column))
            raise ValueError(f"phases need at least {FEWEST} records of {column}, {self.path} has {recorded}")
        rows = self.rows()  # accuracies count also where the column has no value
        names = {"values": column, "stderr": f"{column}/stderr"}
        names |= {name: name for name in ("train_accuracy", "test_accuracy")}
        told: dict[str, Any] = {option: np.array([row.get(n) for row in rows], float) for option, n in names.items()}
        return phases([row["step"] for row in rows], **told)  # what is missing is NaN

    def label(self, column: str) -> str:
        """A column, or a measure, in words, with the options that it was measured with."""
        name, options = self.name_and_options(column)
        return ", ".join([name, *options])

    def name_and_options(self, column: str) -> tuple[str, list[str]]:
        """The same apart: what it is, and each of the options; a number of the training loop has none."""
        places = {f"{probe}/{measure}": (probe, measure) for probe, measure in self.places}
        whole = next((place for place in places if f"{column}/".startswith(f"{place}/")), None)
        probe, measure = (None, column) if whole is None else places[whole]
        part = "" if whole is None else column[len(whole) + 1 :]  # of a layer, or the error
        name = measure.replace("_", " ") + (f" at {probe}" if probe is not None else "")
        summed = [part] if part else ["sum over layers"] if self.is_sum(measure) else []
        measured = any(measure == known for _, known in self.places)
        smooth = [SMOOTH_IN_SHORT] if measured and self.piecewise_linear is False else []
        return name, [*summed, *options_in_words(self._options(measure, probe)), *smooth]

    def _options(self, measure: str, probe: str | None) -> object:
        """Those that a measure was really taken with, at any probe if none is given; otherwise those asked for."""
        for step in self._whole_steps():
            for place, found in self.read(step).probes.items():
                if probe in (place, None) and "options" in found.get(measure, {}):
                    return found[measure]["options"]
        asked = self.config.get("measures")
        return asked.get(measure) if isinstance(asked, Mapping) else None

    def is_sum(self, measure: str) -> bool:
        """Whether a measure has been added up over several layers."""
        probes = [found for step in self._whole_steps()[:1] for found in self.read(step).probes.values()]
        return any(len(found.get(measure, {}).get("per_layer") or ()) > 1 for found in probes)

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
    """running, finished, incomplete, stopped, failed, or killed if it says that it runs but nobody writes to it.

    A run of a monitor in somebody's own training says nothing: it is recorded, or running if it is being written to.
    Where records are missing or damaged, a run that was finished or recorded is incomplete.
    """
    state = str(run.status.get("state", "recorded"))
    if state in ("running", "recorded") and has_writer(run.path):
        return "running"
    if state in ("finished", "recorded") and run.missing:
        return "incomplete"
    return "killed" if state == "running" else state


# files


def check_no_run(path: str | Path) -> None:
    """An error if there is a run in a directory, or if it is none."""
    if Path(path).exists() and not Path(path).is_dir():
        raise NotADirectoryError(f"{path} is a file: a run is a directory; take another name")
    if (Path(path) / "run.json").exists():
        raise RunExists(
            f"there is a run in {path} already; take another name, resume it, or overwrite it (on the command line with"
            " --overwrite, in Python with overwrite=True)"
        )


def _remove_run(path: Path) -> None:
    """Remove what a run consists of; without its run.json, which goes first, it is none any more."""
    if (path / "run.json").exists():
        remove(path / "run.json")
        sync_folder(path)
    for name in ("status.json", "steps", "state"):
        remove(path / name)
    clear_leftovers(path)


def _existing_folder(path: str | Path) -> Path:
    if not (Path(path) / "run.json").exists():
        raise FileNotFoundError(f"there is no run in {path} (no run.json)")
    return Path(path)


def _place(parent: Path, step: int) -> Path:
    return parent / f"{step:09d}"


def _stamp(file: Path) -> tuple[int, int]:
    """By which a file that was written anew is told from the one that was there."""
    about = file.stat()
    return about.st_mtime_ns, about.st_ino


def _step_numbers(parent: Path) -> list[int]:
    names = (folder.name for folder in parent.glob("[0-9]*"))
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def _tables(about: Mapping[str, Any], *names: str) -> tuple[dict[str, Any], ...]:
    """The tables in a table by these names."""
    for name in names:
        if not isinstance(about.get(name), dict):
            raise ValueError(f"its {name} is no table")
    return tuple(about[name] for name in names)


def library_versions() -> dict[str, str]:
    """What runs are made with."""
    return {name: metadata.version(name) for name in ("regionscope", "torch", "numpy")} | {
        "python": platform.python_version()
    }
