"""Beyond the papers, x2: three definitions of complexity, and the distance to a boundary, over one training."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import torch

from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import at_least, correlates, correlation
from regionscope.experiments.x_runs import (
    RADIUS,
    SIGMA,
    Sampled,
    SampledSettings,
    networks_over_training,
    sampled_experiment,
    sampled_measurements,
)
from regionscope.measures.comparison import compare_complexities
from regionscope.measures.distance import boundary_distance
from regionscope.training.config import training_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("local complexity", "crossings", "regions", "nearness")  # the last is 1 / distance to the nearest boundary
PAIRS = tuple(combinations(range(len(NAMES)), 2))
TOGETHER = 0.7  # rank correlation of two curves over training
ALIKE = 0.3  # rank correlation of two measures over points, at the end


def _definitions_over_training(settings: Sampled, lab: Lab) -> dict[str, np.ndarray]:
    """Means over the points (records, 4), and rank correlations over the points (records, pairs)."""
    points = training_data(settings.training).test[0][: settings.points]
    steps, means, correlations = [], [], []
    for step, net in networks_over_training(settings.training, lab):
        generator = torch.Generator().manual_seed(settings.training.seed)
        compared = compare_complexities(
            net, points, radius=RADIUS, sigma=SIGMA, draws=settings.draws, generator=generator
        )
        distances = boundary_distance(net, points).per_point
        each = [*(measure.per_point for measure in compared.measures), -distances]
        steps.append(step)
        means.append([*(measure.mean for measure in compared.measures), 1 / distances.mean()])
        correlations.append([correlation(each[i], each[j], ranks=True) for i, j in PAIRS])
    return {"step": np.array(steps, float), "means": np.array(means), "correlations": np.array(correlations)}


def _pair(i: int, j: int) -> str:
    return f"{NAMES[i]} and {NAMES[j]}"


def _evidence(settings: SampledSettings, lab: Lab) -> Evidence:
    found = lab.measured(sampled_measurements(settings, _definitions_over_training))
    steps, means, points = found[0]["step"], *(np.stack([f[n] for f in found]) for n in ("means", "correlations"))
    curves = {name: Curve.of(steps, means[:, :, k]) for k, name in enumerate(NAMES)}
    curves |= {f"points: {_pair(*pair)}": Curve.of(steps, points[:, :, k]) for k, pair in enumerate(PAIRS)}
    return Evidence(curves)


def _checks(settings: SampledSettings, evidence: Evidence) -> Sequence[Check]:
    """Every two go together over training, and rank points alike at its end."""
    curves = evidence.curves
    over_time = [
        correlates(f"{_pair(i, j)} over training", curves[NAMES[i]], curves[NAMES[j]], at_least_r=TOGETHER, ranks=True)
        for i, j in PAIRS
    ]
    over_points = [
        at_least(f"{pair} over points at the end, rank correlation", curves[f"points: {pair}"].runs[:, -1], ALIKE)
        for pair in (_pair(i, j) for i, j in PAIRS)
    ]
    return [*over_time, *over_points]


def _draw(findings: Findings) -> "Figure":
    """Each as a multiple of its start, and how alike they rank points."""
    curves = findings.evidence.curves
    figure, (left, right) = panels(2, height=3.2)
    relative = {name: Curve.of(curves[name].x, curves[name].runs / curves[name].runs[:, :1]) for name in NAMES}
    draw_curves(left, relative, ylabel="mean over test points / start", from_zero=True)
    pairs = {name.removeprefix("points: "): curve for name, curve in curves.items() if name.startswith("points: ")}
    draw_curves(right, pairs, ylabel="rank correlation over points")
    right.axhline(0.0, color="0.6", lw=0.8, zorder=1)
    right.set_ylim(-1.03, 1.03)
    return figure


FIGURES = (
    sampled_experiment(
        _definitions_over_training,
        smoke=(10, 2),
        laptop=(100, 8),
        name="x2",
        title="Local complexity, crossings, exact region counts and nearness of a boundary, over training",
        claim="The definitions of complexity tell one story: over training they rise and fall together, and at its end"
        " they rank points alike.",
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "no paper asks this: PD's perceptron with three hidden layers of 200, σ = 0.05, radius 0.5, one random"
            " plane a point for the count",
        ),
    ),
)
