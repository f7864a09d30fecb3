"""Beyond the papers, x7: can training points be told from test points by the boundaries around them? (PD's remark)"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from regionscope.experiments.curves import curve_of, recorded_curve
from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.lab import Lab
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import at_least, at_most, late_part, reported, untested
from regionscope.experiments.x_runs import (
    RADIUS,
    SIGMA,
    Sampled,
    SampledSettings,
    networks_over_training,
    sampled_experiment,
    sampled_measurements,
    shared_trainings,
)
from regionscope.measures.complexity import local_complexity
from regionscope.measures.crossings import boundary_crossings
from regionscope.tracing.network import Network
from regionscope.training.config import training_data
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORES = ("crossings", "local complexity", "loss")
TELLS = 0.6  # the farthest late AUC from a half, and that of chance stays below the next
CHANCE = 0.55
ENOUGH = 200  # points of each kind, with which chance leaves an AUC within 0.06 of a half


def _membership_over_training(settings: Sampled, lab: Lab) -> dict[str, np.ndarray]:
    """The AUC of each score at every record: how often it is lower at a training point than at a test point."""
    data = training_data(settings.training)
    (x, y), (u, v) = ((p[: settings.points], q[: settings.points]) for p, q in (data.train, data.test))
    points, labels, steps, found = torch.cat([x, u]), torch.cat([y, v]), [], []
    for step, net in networks_over_training(settings.training, lab):
        scores = _scores(net, points, labels, settings)
        steps.append(step)
        found.append([lower_share(score[: len(x)], score[len(x) :]) for score in scores])
    return {"step": np.array(steps, float), **dict(zip(SCORES, np.array(found).T, strict=True))}


def _scores(net: Network, points: Tensor, labels: Tensor, settings: Sampled) -> list[Floats]:
    generator = torch.Generator().manual_seed(settings.training.seed)
    crossings = boundary_crossings(net, points, radius=RADIUS, generator=generator)
    complexity = local_complexity(net, points, sigma=SIGMA, draws=settings.draws, generator=generator)
    with torch.no_grad():
        outputs = net(points)
    errors = (outputs - torch.nn.functional.one_hot(labels, outputs.shape[1])).square().sum(dim=1)
    return [crossings.per_point, complexity.per_point, errors.double().numpy()]


def lower_share(a: Floats, b: Floats) -> float:
    """The share of pairs in which a is lower than b, ties half: the AUC of telling a from b by being low.

    >>> lower_share(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    return float(1 - stats.mannwhitneyu(a, b).statistic / (len(a) * len(b)))


def _evidence(settings: SampledSettings, lab: Lab) -> Evidence:
    found = lab.measured(sampled_measurements(settings, _membership_over_training))
    curves = {name: curve_of(found, name) for name in SCORES}
    accuracies = {
        name: recorded_curve(lab, shared_trainings(settings), f"{name}_accuracy") for name in ("train", "test")
    }
    return Evidence(curves | {f"{name} accuracy": curve for name, curve in accuracies.items()})


def _checks(settings: SampledSettings, evidence: Evidence) -> Sequence[Check]:
    """Chance at the start; late, crossings and local complexity tell far more than chance, whichever is lower."""
    if settings.points < ENOUGH:
        return [untested("late separation", f"{settings.points} points of each kind leave too much to chance")]
    checks = []
    for name in SCORES:
        curve = evidence.curves[name]
        start, late = (0.5 + np.abs(runs - 0.5).max(axis=1) for runs in (curve.runs[:, :1], late_part(curve).runs))
        if name == "loss":
            checks.append(reported("loss: farthest late AUC from a half", late))
        else:
            checks += [
                at_most(f"{name}: AUC at the start, or 1 - AUC", start, CHANCE),
                at_least(f"{name}: farthest late AUC from a half, or 1 - AUC", late, TELLS),
            ]
        checks.append(reported(f"{name}: AUC at the end", curve.runs[:, -1]))
    return checks


def _draw(findings: Findings) -> "Figure":
    curves = findings.evidence.curves
    figure, (left, right) = panels(2, height=2.8)
    draw_curves(left, {name: curves[name] for name in SCORES}, ylabel="AUC (training points are lower)")
    left.axhline(0.5, color="0.6", lw=0.8, zorder=1)
    draw_curves(right, {name: curves[f"{name} accuracy"] for name in ("train", "test")}, ylabel="accuracy")
    right.set_ylim(-0.03, 1.03)
    return figure


FIGURES = (
    sampled_experiment(
        _membership_over_training,
        smoke=(10, 2),
        laptop=(500, 2),
        name="x7",
        title="Telling training points from test points by crossings and by local complexity, over training",
        claim="Late in training, crossings and local complexity around a point tell whether it was trained on, which"
        " they do not at the start.",
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "PD only remarks on it: points, radius 0.5, σ = 0.05 and the attack, a threshold on one number, are ours",
        ),
    ),
)
