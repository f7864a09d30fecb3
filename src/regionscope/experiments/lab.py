"""The lab: where trainings and measurements are done, each once, and kept under a hash of their settings.

    OUT/runs/HASH/            a training run, shared by all figures that need it; seconds.json says how long it took
    OUT/measured/NAME-HASH.npz    what a function found with some settings
    OUT/findings/             what experiments found, by name and scale

Whatever is there is taken as it is. A training that was stopped or killed goes on, with the result of one that was not.
"""

import logging
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from regionscope import engines
from regionscope.disk import make_folder
from regionscope.experiments.settings import settings_hash, settings_to_plain
from regionscope.files import read_arrays, read_json, write_arrays, write_json
from regionscope.runs.run import Run
from regionscope.training.config import Training
from regionscope.training.loop import resume, run_config, train

_log = logging.getLogger(__name__)
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Measurement:
    """A measurement: a function of a module, and the frozen settings that, with the lab, are all that it is given.

    It returns arrays, or numbers, by name. Numbers that it draws come from generators that its settings seed.
    """

    function: Callable[[Any, "Lab"], Mapping[str, Any]]
    settings: Any

    @property
    def name(self) -> str:
        return f"{self.function.__name__.lstrip('_')}-{settings_hash(self.settings)}"


@dataclass(frozen=True)
class Lab:
    """A folder of results, and the engine that makes those that are missing."""

    folder: Path
    engine: str = "serial"
    device: str = "cpu"
    show_progress: bool = False

    def runs(self, trainings: Sequence[Training]) -> list[Run]:
        """The finished runs of trainings, in their order; what is missing is trained, each once."""
        missing = {_run_name(t): t for t in trainings if not _is_finished(self._run_folder(t))}
        self._map(_train, list(missing.values()), list(missing))
        return [_own_run(self._run_folder(training), training) for training in trainings]

    def run(self, training: Training) -> Run:
        """The finished run of one training."""
        return self.runs([training])[0]

    def measured(self, measurements: Sequence[Measurement]) -> list[dict[str, np.ndarray]]:
        """What measurements found, in their order; what is missing is measured, each once."""
        missing = {
            measurement.name: measurement for measurement in measurements if not self._file(measurement).exists()
        }
        self._map(_measure, list(missing.values()), list(missing))
        return [read_arrays(self._file(measurement)) for measurement in measurements]

    def seconds(self, trainings: Sequence[Training], measurements: Sequence[Measurement] = ()) -> float:
        """What trainings and measurements took, one after another."""
        spent = {_run_name(t): _seconds(self._run_folder(t)) for t in trainings}
        return sum(spent.values()) + sum(float(read_arrays(self._file(p))["seconds"]) for p in measurements)

    def _map(self, task: Callable[..., None], items: Sequence[Any], names: Sequence[str]) -> None:
        gpus = 0.0 if self.device == "cpu" else 1.0
        engines.map(
            partial(task, self), items, engine=self.engine, gpus=gpus, names=names, show_progress=self.show_progress
        )

    def _run_folder(self, training: Training) -> Path:
        return self.folder / "runs" / _run_name(training)

    def _file(self, measurement: Measurement) -> Path:
        return self.folder / "measured" / f"{measurement.name}.npz"


def _run_name(training: Training) -> str:
    return settings_hash(training)


# tasks: called once more, they do nothing


def _train(lab: Lab, training: Training) -> None:
    """Train, or go on training; a signal that stops it stops the map too."""
    folder = lab._run_folder(training)
    make_folder(folder)
    with FileLock(folder / "task.lock"):  # of two that want the same run, one waits
        if _is_finished(folder):
            return
        _log.info("training %s", folder)
        began, before = time.monotonic(), _seconds(folder)
        begun = (folder / "run.json").exists()
        options: dict[str, Any] = {"device": lab.device, "show_progress": lab.show_progress and lab.engine == "serial"}
        run = resume(folder, **options) if begun else train(training, folder, **options)
        write_json(folder / "seconds.json", {"seconds": before + time.monotonic() - began})
    stopped_by = run.status.get("signal")
    if stopped_by is not None:
        raise KeyboardInterrupt if stopped_by == signal.SIGINT else SystemExit(128 + stopped_by)


def _measure(lab: Lab, measurement: Measurement) -> None:
    file = lab._file(measurement)
    if file.exists():
        return
    _log.info("measuring %s", measurement.name)
    make_folder(file.parent)
    began = time.monotonic()
    here = Lab(lab.folder, device=lab.device)  # a task starts no tasks elsewhere
    found = {name: np.asarray(value) for name, value in measurement.function(measurement.settings, here).items()}
    write_arrays(file, {**found, "seconds": np.array(time.monotonic() - began)})


# files


def _is_finished(folder: Path) -> bool:
    return (folder / "run.json").exists() and Run.open(folder).status.get("state") == "finished"


def _own_run(folder: Path, training: Training) -> Run:
    """The run in a folder, if it is the one that is meant: hashes tell only what is not as usual."""
    run = Run.open(folder)
    if settings_to_plain(run_config(run)) != settings_to_plain(training):
        raise ValueError(f"{folder} holds another training: made by a version with other defaults? Remove it")
    return run


def _seconds(folder: Path) -> float:
    file = folder / "seconds.json"
    return float(read_json(file)["seconds"]) if file.exists() else 0.0
