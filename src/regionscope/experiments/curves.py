"""Measures at the recorded steps of a training, taken from its weights afterwards: no figure trains anew to measure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from regionscope.experiments.findings import Curve
from regionscope.experiments.lab import Lab, Measurement
from regionscope.runs.watched import Watched, observation
from regionscope.training.config import Training, probes, training_data
from regionscope.training.loop import run_model


@dataclass(frozen=True)
class Watching:
    """Measures by name with their options, at so many points of probes (train, test, uniform), at every record."""

    training: Training
    measures: dict[str, dict[str, Any]] = field(default_factory=dict)
    probes: tuple[str, ...] = ("train", "test")
    points: int = 200


def measurement_at_records(
    training: Training, measures: dict[str, dict[str, Any]], *, probes: tuple[str, ...], points: int
) -> Measurement:
    """The measurement that measures this; columns are named as in `regionscope export`: train/local_rank/layer1."""
    return Measurement(_watched_columns, Watching(training, measures, probes, points))


def _watched_columns(settings: Watching, lab: Lab) -> dict[str, np.ndarray]:
    """The numbers of every record by their names, and the steps."""
    run, data = lab.run(settings.training), training_data(settings.training)
    all_probes = probes(replace(settings.training, points=settings.points), data)
    chosen = {name: all_probes[name] for name in settings.probes}
    watched = Watched.of(chosen, settings.measures, {}, settings.training.seed)
    rows = []
    for step in run.steps:
        seen = observation(run_model(run, step), watched, step, {})
        for what, error in seen.failures.items():
            raise RuntimeError(f"{what} could not be measured at step {step} of {run.path}: {error}") from error
        rows.append(seen.record.flat())
    columns = {name: np.array([np.nan if row[name] is None else row[name] for row in rows]) for name in rows[0]}
    return {"step": np.array(run.steps, np.float64), **columns}


def curve_of(found: Sequence[Mapping[str, np.ndarray]], column: str) -> Curve:
    """A column of what measurements found, one measurement a seed."""
    return Curve.of(found[0]["step"], [measurement[column] for measurement in found])


def recorded_curve(lab: Lab, trainings: Sequence[Training], column: str) -> Curve:
    """A column of what runs recorded while they trained, such as test_accuracy, one run a seed."""
    curves = [run.curve(column) for run in lab.runs(trainings)]
    return Curve.of(curves[0][0], [values for _, values in curves])
