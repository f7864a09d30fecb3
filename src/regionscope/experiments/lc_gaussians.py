"""LC figures 2 and 7: local rank and local complexity of perceptrons that map one Gaussian to another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regionscope.experiments.curves import curve_of, measurement_at_records
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.lc_mnist import DROP, EPS
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import at_least, correlates, drops_late, ends_early, reported, untested
from regionscope.training.config import Training
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENOUGH = 10_000  # steps before which nothing is called late
PEARSON = {2: 0.852, 3: 0.957, 4: 0.985}  # the paper's, of LC and the local rank of a layer
LEAST_R = 0.8
AUTHORS_RANKS = {1: 100.0, 2: 96.7, 3: 94.6, 4: 90.8}  # at step 1
WINDOW, SHARP = 10.0, 0.5  # a drop is sharp if half of it falls within a tenfold of steps


@dataclass(frozen=True)
class GaussianSettings:
    """Perceptrons from N(0, I_100) to two correlated outputs; every seed has a cross-covariance of its own."""

    depth: int = 4
    width: int = 200
    steps: int = 1_000_000
    records: int = 51
    points: int = 1000
    rank_points: int = 128
    sigma: float = 0.05
    draws: int = 16
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5)


def _trainings(settings: GaussianSettings) -> list[Training]:
    """Adam with 10^-4, mean squared error (LC B.2); weight decay and batches as on MNIST."""
    return [
        Training(
            dataset="gaussians", depth=settings.depth, width=settings.width, init="he", loss="mse", optimiser="adam",
            lr=1e-4, weight_decay=0.01, batch_size=64, steps=settings.steps, records=settings.records, measures=(),
            seed=seed,
        )
        for seed in settings.seeds
    ]  # fmt: skip


def _measurements(settings: GaussianSettings) -> list[Measurement]:
    measures: dict[str, dict[str, Any]] = {
        "local_complexity": {"sigma": settings.sigma, "draws": settings.draws, "method": "auto"},
        "local_rank": {"eps": EPS, "points": settings.rank_points},
    }
    return [measurement_at_records(t, measures, probes=("test",), points=settings.points) for t in _trainings(settings)]


def _evidence(settings: GaussianSettings, lab: Lab) -> Evidence:
    found = lab.measured(_measurements(settings))
    layers = range(1, settings.depth + 1)
    ranks = {f"LR, layer {layer}": curve_of(found, f"test/local_rank/layer{layer}") for layer in layers}
    return Evidence({"LC": curve_of(found, "test/local_complexity"), **ranks})


def _starting_ranks(settings: GaussianSettings, evidence: Evidence) -> list[Check]:
    """The authors' network has the same ranks at its start, if it is ours."""
    return [
        reported(
            f"local rank at the start, layer {layer}", evidence.curves[f"LR, layer {layer}"].runs[:, 0],
            paper=f"{AUTHORS_RANKS[layer]:g}" if settings.width == 200 and layer in AUTHORS_RANKS else "",
        )
        for layer in range(1, settings.depth + 1)
    ]  # fmt: skip


def _drop_checks(settings: GaussianSettings, evidence: Evidence) -> Sequence[Check]:
    """LC and LR of the layers behind the first drop late by a fifth, half of it within a tenfold of steps."""
    if why := ends_early(settings.steps, ENOUGH):
        return [untested("late drop of LR with LC", why), *_starting_ranks(settings, evidence)]
    names = ["LC", *(f"LR, layer {layer}" for layer in range(2, settings.depth + 1))]
    drops = [drops_late(name, evidence.curves[name], by=DROP, paper="a late drop") for name in names]
    sharp = [
        at_least(
            f"{name}: largest share of all falling within a tenfold of steps",
            [fastest_share(evidence.curves[name].x, run) for run in evidence.curves[name].runs], SHARP, paper="sharp",
        )
        for name in names[1:]
    ]  # fmt: skip
    return [*drops, *sharp, *_starting_ranks(settings, evidence)]


def fastest_share(x: Floats, values: Floats) -> float:
    """The largest net fall within a tenfold of steps, as a share of that from the highest value to a later one.

    >>> fastest_share(np.array([0.0, 1.0, 10.0, 100.0, 1000.0]), np.array([9.0, 9.0, 8.0, 2.0, 1.0]))
    0.75
    """
    falls = values[:, None] - values[None]  # from row to column
    after = x[None] >= x[:, None]
    near = after & (x[None] <= WINDOW * np.maximum(x, 1.0)[:, None])
    largest = falls[after].max()
    return float(falls[near].max() / largest) if largest > 0 else 0.0


def _correlation_checks(settings: GaussianSettings, evidence: Evidence) -> Sequence[Check]:
    """Pearson's r of LC and the local rank of layers 2, 3 and 4, over training."""
    if why := ends_early(settings.steps, ENOUGH):
        return [untested("LC and local rank go together", why), *_starting_ranks(settings, evidence)]
    return [
        correlates(
            f"LC and LR of layer {layer}", evidence.curves["LC"], evidence.curves[f"LR, layer {layer}"],
            at_least_r=LEAST_R, paper=f"{r:g}",
        )
        for layer, r in PEARSON.items()
        if layer <= settings.depth
    ] + _starting_ranks(settings, evidence)  # fmt: skip


def _draw(findings: Findings) -> "Figure":
    """Local complexity beside the local rank of every layer."""
    curves: dict[str, Curve] = dict(findings.evidence.curves)
    figure, (left, right) = panels(2)
    draw_curves(left, {"LC": curves.pop("LC")}, ylabel="local complexity", from_zero=True)
    ranks = {name.removeprefix("LR, "): curve for name, curve in curves.items()}
    draw_curves(right, ranks, ylabel="local rank", from_zero=True)
    return figure


SMOKE = GaussianSettings(
    depth=3, width=12, steps=6, records=4, points=8, rank_points=4, draws=2, seeds=(0, 1)
)  # fmt: skip
LAPTOP = GaussianSettings(steps=40_000, records=31, points=200, rank_points=64, draws=8, seeds=(0, 1, 2))
CHOICES = (
    "10,000 points to train on and 1,000 to test on, a cross-covariance of norm 0.9, weight decay 0.01"
    " and batches of 64 as on MNIST, σ = 0.05: the paper prints none of them",
    "local rank counts singular values of at least 0.01: with that the network starts with about the authors' ranks",
)
_COMMON: dict[str, Any] = {
    "scales": {"smoke": SMOKE, "laptop": LAPTOP, "paper": GaussianSettings()},
    "trainings": _trainings,
    "measurements": _measurements,
    "evidence": _evidence,
    "draw": _draw,
    "choices": CHOICES,
}
FIGURES: tuple[Experiment[GaussianSettings], ...] = (
    Experiment(
        name="lc2",
        title="Local rank and local complexity over training, from one Gaussian to another",
        claim="Late in training the local rank drops sharply, together with local complexity.",
        checks=_drop_checks,
        **_COMMON,
    ),
    Experiment(
        name="lc7",
        title="The same with other cross-covariances",
        claim="Local complexity and local rank correlate over training, the more the later the layer.",
        checks=_correlation_checks,
        **_COMMON,
    ),
)
