"""Runs that are compared; those that differ in their seed only are taken together."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regionscope.runs.run import Run
from regionscope.tables import how_many
from regionscope.types import Floats


@dataclass(frozen=True, eq=False)
class RunBundle:
    """A column of runs that differ in their seed only, at the steps that all of them recorded.

    `mean` is over the runs and `stderr` its standard error over them, sd / √runs; of a single run, what it recorded.
    Runs that repeat the seed of another say nothing new: the longest of them counts, the others are `repeats`. Of runs
    of your own loop no seed is known: those that recorded the same are repeats.
    """

    name: str
    number: str  # of runs: "3 seeds", or "3 runs" if their seeds are not known
    label: str  # of the column
    paths: tuple[Path, ...]
    steps: tuple[int, ...]
    mean: Floats  # (steps,)
    stderr: Floats | None  # (steps,)
    repeats: tuple[Path, ...] = ()


def bundled(runs: Sequence[Run], column: str) -> list[RunBundle]:
    """A column of all runs, those that differ in their seed only together, in the order of the first of each."""
    alike: dict[str, list[Run]] = {}
    for run in runs:
        alike.setdefault(json.dumps(_settings(run), sort_keys=True), []).append(run)
    settings = [_settings(group[0]) for group in alike.values()]
    return [_bundle(*_seeds_and_repeats(group), column, settings) for group in alike.values()]


def bundles_as_rows(bundles: Sequence[RunBundle]) -> list[dict[str, Any]]:
    """One row for every step that any of them has: "step", and the mean of each by its name, with ".../stderr"."""
    rows: dict[int, dict[str, Any]] = {step: {"step": step} for step in sorted({s for b in bundles for s in b.steps})}
    for bundle in bundles:
        for k, step in enumerate(bundle.steps):
            rows[step][bundle.name] = float(bundle.mean[k])
            if bundle.stderr is not None:
                rows[step][f"{bundle.name}/stderr"] = float(bundle.stderr[k])
    return list(rows.values())


def _settings(run: Run) -> dict[str, Any]:
    """What a run was begun with, but for its seed, and for the times in a plan: its choices are among the measures."""
    config = run.config.get("training", run.config)
    return {name: value for name, value in config.items() if name not in ("seed", "plan")}


def _seeds_and_repeats(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Of each seed the run with most records, and all others."""
    seeds: dict[str, list[Run]] = {}
    for run in runs:
        seeds.setdefault(_seed(run), []).append(run)
    chosen = [max(same, key=lambda run: len(run.steps)) for same in seeds.values()]
    return chosen, [run for run in runs if run not in chosen]


def _seed(run: Run) -> str:
    """The seed of a training; where a monitor does not know it, all that was recorded, which two seeds never share."""
    return json.dumps(run.config["training"]["seed"] if _has_seed(run) else run.rows())


def _has_seed(run: Run) -> bool:
    """Whether it says the seed of its training; a monitor knows only that of its measures."""
    return "seed" in run.config.get("training", {})


def _number(runs: Sequence[Run]) -> str:
    return how_many(len(runs), "seed" if all(map(_has_seed, runs)) else "run")


def _name(runs: Sequence[Run], others: Sequence[dict[str, Any]]) -> str:
    """A run by its path; several by the settings that differ from those of others, and how many they are."""
    if len(runs) == 1:
        return str(runs[0].path)
    own = _settings(runs[0])
    differing = [name for name in own if any(other.get(name) != own[name] for other in others)]
    return ", ".join([*(f"{name.replace('_', ' ')} {own[name]}" for name in differing), _number(runs)])


def _bundle(runs: Sequence[Run], repeats: Sequence[Run], column: str, others: Sequence[dict[str, Any]]) -> RunBundle:
    curves = [dict(zip(*run.curve(column), strict=True)) for run in runs]
    steps = [step for step in curves[0] if all(step in curve for curve in curves)]
    if not steps:
        raise ValueError(f"{', '.join(str(run.path) for run in runs)} have no step with {column} in common")
    values = np.array([[curve[step] for step in steps] for curve in curves])  # (runs, steps)
    errors = values.std(axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else _recorded_errors(runs[0], column)
    paths, left_out = (tuple(run.path for run in some) for some in (runs, repeats))
    name, label = _name(runs, others), runs[0].label(column)
    return RunBundle(name, _number(runs), label, paths, tuple(steps), values.mean(axis=0), errors, left_out)


def _recorded_errors(run: Run, column: str) -> Floats | None:
    """The standard errors of a column, if each of its values has one."""
    errors = [row.get(f"{column}/stderr") for row in run.rows_with(column)]
    return None if None in errors else np.array(errors, float)
