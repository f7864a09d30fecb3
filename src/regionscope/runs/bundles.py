"""Runs that are compared; those that differ in their seed only are taken together.

Of runs of a loop of one's own neither the seed nor all settings are known: each stays alone.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regionscope.runs.run import Run
from regionscope.types import Floats

RECORDING = ("records", "measures", "options", "points", "seconds_per_record", "plane")  # that change no training


@dataclass(frozen=True, eq=False)
class RunBundle:
    """A column of runs that differ in their seed only, at the steps that all of them recorded.

    `mean` is over the runs and `stderr` its standard error over them, sd / √runs; of a single run, what it recorded.
    Runs that repeat the seed of another say nothing new: the longest of them counts, the others are `repeats`.
    """

    name: str
    label: str  # of the column
    options: tuple[str, ...]  # that it was measured with, in words
    paths: tuple[Path, ...]
    steps: tuple[int, ...]
    mean: Floats  # (steps,)
    stderr: Floats | None  # (steps,)
    repeats: tuple[Path, ...] = ()


def bundles_of(runs: Sequence[Run], column: str) -> list[RunBundle]:
    """A column of all runs, those that differ in their seed only together, in the order of the first of each."""
    alike: dict[str, list[Run]] = {}
    for run in runs:
        key = json.dumps(_settings(run), sort_keys=True) if "training" in run.config else str(run.path)
        alike.setdefault(key, []).append(run)
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
    """What a run was begun with, but for its seed."""
    config = run.config.get("training", run.config)
    return {name: value for name, value in config.items() if name != "seed"}


def _seeds_and_repeats(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Of each seed the run with most records, and all others."""
    seeds: dict[int | None, list[Run]] = {}
    for run in runs:
        seeds.setdefault(run.config.get("training", {}).get("seed"), []).append(run)
    chosen = [max(same, key=lambda run: len(run.steps)) for same in seeds.values()]
    return chosen, [run for run in runs if run not in chosen]


def _name(runs: Sequence[Run], others: Sequence[dict[str, Any]]) -> str:
    """A run by its path; several by the settings that differ from those of others, and how many they are.

    What is recorded is told only if nothing else tells them apart.
    """
    if len(runs) == 1:
        return str(runs[0].path)
    own = _settings(runs[0])
    differing = [name for name in own if any(other.get(name) != own[name] for other in others)]
    trained = [name for name in differing if name not in RECORDING]
    if sum(all(other.get(name) == own[name] for name in trained) for other in others) == 1:  # itself
        differing = trained
    return ", ".join([*(f"{name.replace('_', ' ')} {own[name]}" for name in differing), f"{len(runs)} seeds"])


def _bundle(runs: Sequence[Run], repeats: Sequence[Run], column: str, others: Sequence[dict[str, Any]]) -> RunBundle:
    curves = [dict(zip(*run.curve(column), strict=True)) for run in runs]
    steps = [step for step in curves[0] if all(step in curve for curve in curves)]
    if not steps:
        raise ValueError(f"{', '.join(str(run.path) for run in runs)} have no step with {column} in common")
    values = np.array([[curve[step] for step in steps] for curve in curves])  # (runs, steps)
    errors = values.std(axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else _recorded_errors(runs[0], column)
    paths, left_out = (tuple(run.path for run in some) for some in (runs, repeats))
    name, (label, options) = _name(runs, others), runs[0].name_and_options(column)
    return RunBundle(name, label, tuple(options), paths, tuple(steps), values.mean(axis=0), errors, left_out)


def _recorded_errors(run: Run, column: str) -> Floats | None:
    """The standard errors of a column, if each of its values has one."""
    errors = [row.get(f"{column}/stderr") for row in run.rows_with(column)]
    return None if None in errors else np.array(errors, float)
