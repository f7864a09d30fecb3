"""HR figures 6 and 7: the distance to the nearest boundary, while networks learn MNIST."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from regionscope.datasets.sets import Dataset
from regionscope.experiments.curves import recorded_curve
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.hr_lines import HaninSettings, epochs_at, hanin_trainings, turns_around
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import (
    at_least,
    at_most,
    correlates,
    falls_again,
    reported,
    rises_after,
    untested,
    within,
)
from regionscope.measures.distance import boundary_distance
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("random", "train", "test")  # of points
NEAR_CONSTANT = 2.0  # units × distance differ by no more than this factor; the units differ by one of 4
SAME = 1.25  # and by no more than this between training and test points
ALIKE = 0.8  # rank correlation over training between kinds of points
QUANTILES = (0.001, 0.25, 0.5, 0.75, 0.999)
DECADES = 3.0  # "many orders of magnitude", between the outermost of these
SHIFT = 0.1  # of those decades, for a median that is little changed
SPREAD = 1.5  # factor by which a quartile range that is little changed grows or shrinks
BINS = np.linspace(-9.0, 1.0, 61)  # of the logarithm of distances


@dataclass(frozen=True)
class DistanceSettings(HaninSettings):
    """And how many points of each kind are looked at."""

    points: int = 10_000
    seeds: tuple[int, ...] = tuple(range(12))


@dataclass(frozen=True)
class NearestBoundaries:
    """Points of some kinds, at every record of a training or at the first and the last only."""

    training: Training
    points: int
    kinds: tuple[str, ...] = KINDS
    ends_only: bool = False


def _points(kind: str, data: Dataset, count: int, seed: int) -> torch.Tensor:
    """Training or test images, or normal points with the mean and variance of every pixel over the training set."""
    generator = torch.Generator().manual_seed(seed)
    images = (data.test if kind == "test" else data.train)[0].double()
    if kind == "random":
        noise = torch.randn(count, images.shape[1], dtype=torch.float64, generator=generator)
        return images.mean(dim=0) + images.std(dim=0) * noise
    return images[torch.randperm(len(images), generator=generator)[:count]]


def _nearest_boundaries(settings: NearestBoundaries, lab: Lab) -> dict[str, np.ndarray]:
    """Distances by kind of points, (records, points); in float64, as the smallest of them are tiny."""
    run, data, seed = lab.run(settings.training), training_data(settings.training), settings.training.seed
    points = {kind: _points(kind, data, settings.points, seed) for kind in settings.kinds}
    steps = [run.steps[0], run.steps[-1]] if settings.ends_only else run.steps
    found: dict[str, list[np.ndarray]] = {kind: [] for kind in points}
    for step in steps:
        model = run_model(run, step).double()
        for kind, x in points.items():
            found[kind].append(boundary_distance(model, x).per_point)
    return {"step": np.array(steps, np.float64), **{kind: np.array(rows) for kind, rows in found.items()}}


# figure 6


def _measurements(settings: DistanceSettings) -> list[Measurement]:
    return [Measurement(_nearest_boundaries, NearestBoundaries(t, settings.points)) for t in hanin_trainings(settings)]


def _evidence(settings: DistanceSettings, lab: Lab) -> Evidence:
    """Units × mean distance of every network and kind of points, and its accuracy, by epoch."""
    found, trainings, seeds = lab.measured(_measurements(settings)), hanin_trainings(settings), len(settings.seeds)
    curves: dict[str, Curve] = {}
    for k, (depth, width) in enumerate(settings.networks):
        mine, name = slice(k * seeds, (k + 1) * seeds), f"depth {depth}, width {width}"
        epochs = epochs_at(found[mine][0]["step"], settings.dataset)
        for kind in KINDS:
            scaled = [depth * width * measurement[kind].mean(axis=1) for measurement in found[mine]]
            curves[f"{name}: {kind}"] = Curve.of(epochs, scaled)
        curves[f"{name}: accuracy"] = Curve.of(epochs, recorded_curve(lab, trainings[mine], "test_accuracy").runs)
    return Evidence(curves)


def _of_kind(curves: dict[str, Curve], kind: str) -> dict[str, Curve]:
    """Those of one kind, by network."""
    return {name.split(":")[0]: curve for name, curve in curves.items() if name.endswith(f": {kind}")}


def _mean_of_networks(curves: dict[str, Curve]) -> Curve:
    all_of_them = list(curves.values())
    return Curve.of(all_of_them[0].x, np.mean([curve.runs for curve in all_of_them], axis=0))


def _checks(settings: DistanceSettings, evidence: Evidence) -> Sequence[Check]:
    """Near constant over architectures, larger first, then smaller; alike at random, training and test points."""
    kinds = {kind: _of_kind(dict(evidence.curves), kind) for kind in KINDS}
    mean = {kind: _mean_of_networks(curves) for kind, curves in kinds.items()}
    products = np.stack([curve.runs for curve in kinds["random"].values()])  # (networks, seeds, records)
    factors = products.max(axis=0) / products.min(axis=0)
    apart = np.exp(np.abs(np.log(mean["train"].runs / mean["test"].runs)).max(axis=1))
    what = "units × distance, largest over smallest of the networks"
    checks = [
        at_most(f"{what}, at the start", factors[:, 0], NEAR_CONSTANT, paper="near constant"),
        at_most(f"{what}, at the end", factors[:, -1], NEAR_CONSTANT, paper="near constant"),
        *turns_around("units × distance", mean["random"], (rises_after, falls_again), "expands, then contracts"),
        at_most("largest factor between training and test points", apart, SAME, paper="similar"),
    ]
    words = "random and training points over training"
    if mean["random"].x[-1] < 1:
        checks.append(untested(words, f"it ends after {mean['random'].x[-1]:.2g} epochs", paper="similar"))
    else:
        checks.append(
            correlates(words, mean["random"], mean["train"], at_least_r=ALIKE, ranks=True, paper="similar results")
        )
    ends = [reported(f"units × distance at the start, {kind} points", mean[kind].runs[:, 0]) for kind in KINDS]
    accuracy = _mean_of_networks(_of_kind(dict(evidence.curves), "accuracy"))
    return [*checks, *ends, reported("test accuracy", accuracy.runs[:, -1], paper="95–98 %")]


def _draw(findings: Findings) -> "Figure":
    """Distances, units × distances over epochs and against accuracy; and the three kinds of points."""
    from regionscope.plots.style import add_shared_legend, curve_styles

    curves = dict(findings.evidence.curves)
    scaled, accuracies = _of_kind(curves, "random"), _of_kind(curves, "accuracy")
    sizes = {name: int(name.split()[1].rstrip(",")) * int(name.split()[3]) for name in scaled}
    plain = {name: Curve(curve.x, curve.runs / sizes[name]) for name, curve in scaled.items()}
    figure, (ax, scaled_ax, against, kinds) = panels(2, 2, height=2.5)
    draw_curves(ax, plain, xlabel="epoch", ylabel="distance", from_zero=True, legend=False)
    draw_curves(scaled_ax, scaled, xlabel="epoch", ylabel="units × distance", from_zero=True, legend=False)
    for name, style in curve_styles(scaled).items():
        against.plot(accuracies[name].mean, scaled[name].mean, markevery=3, **style)
    against.set(xlabel="test accuracy", ylabel="units × distance", ylim=scaled_ax.get_ylim())
    means = {f"{kind} points": _mean_of_networks(_of_kind(curves, kind)) for kind in KINDS}
    draw_curves(kinds, means, xlabel="epoch", ylabel="units × distance, mean", from_zero=True)
    add_shared_legend(figure, *ax.get_legend_handles_labels(), columns=3)
    return figure


# figure 7


def _end_measurements(settings: DistanceSettings) -> list[Measurement]:
    return [
        Measurement(_nearest_boundaries, NearestBoundaries(t, settings.points, ("random",), ends_only=True))
        for t in hanin_trainings(settings)
    ]


def _histograms(settings: DistanceSettings, lab: Lab) -> Evidence:
    """How large a share of points has its distance in each bin before and after, and quantiles of the logarithm."""
    logs = [np.log10(measurement["random"]) for measurement in lab.measured(_end_measurements(settings))]
    shares = np.array([[np.histogram(row, BINS)[0] / len(row) for row in both] for both in logs])  # (seeds, 2, bins)
    middles = (BINS[1:] + BINS[:-1]) / 2
    curves = {name: Curve.of(middles, shares[:, k]) for k, name in enumerate(("before training", "after training"))}
    return Evidence(curves, {"quantiles": np.array([np.quantile(both, QUANTILES, axis=1).T for both in logs])})


def _histogram_checks(settings: DistanceSettings, evidence: Evidence) -> Sequence[Check]:
    """Many orders of magnitude wide before and after; middle and width little changed, the middle a bit larger."""
    quantiles = evidence.arrays["quantiles"]  # (seeds, 2, quantiles), of the decimal logarithm
    wide, quartiles = quantiles[:, :, -1] - quantiles[:, :, 0], quantiles[:, :, 3] - quantiles[:, :, 1]
    shift = quantiles[:, 1, 2] - quantiles[:, 0, 2]
    words, many = "decades between the 0.1 % and 99.9 % quantiles", "many orders of magnitude"
    checks = [
        at_least(f"{words}, {when}", wide[:, k], DECADES, paper=many) for k, when in enumerate(("before", "after"))
    ]
    if settings.steps < 100:
        return [*checks, untested("the distribution is little changed", f"{settings.steps} steps change nothing")]
    return [
        *checks,
        at_most("shift of the median, as a share of those decades", np.abs(shift) / wide[:, 0], SHIFT, paper="slight"),
        within("quartile range, after over before", quartiles[:, 1] / quartiles[:, 0], 1 / SPREAD, SPREAD, paper="~ 1"),
        at_least("shift of the median in decades", shift, 0.0, paper="a slight skew towards larger regions"),
    ]


def _draw_histograms(findings: Findings) -> "Figure":
    from regionscope.plots.style import curve_styles

    figure, (ax,) = panels(1, height=2.6)
    curves = findings.evidence.curves
    for name, style in curve_styles(curves).items():
        ax.stairs(curves[name].mean, BINS, color=style["color"], fill=True, alpha=0.3)
        ax.stairs(curves[name].mean, BINS, color=style["color"], ls=style["linestyle"], label=name)
    seen = np.flatnonzero(sum(curve.mean for curve in curves.values()))
    ax.set(xlabel="decimal logarithm of the distance to the nearest boundary", ylabel="share of points")
    ax.set_xlim(BINS[seen[0]], BINS[seen[-1] + 1])
    ax.legend(frameon=False, fontsize="small", loc="upper left")
    return figure


FIGURES = (
    Experiment(
        name="hr6",
        title="Distance to the nearest boundary over training",
        claim="Units times the distance to the nearest boundary is near constant over architectures; regions expand,"
        " then contract; training and test points give the same.",
        scales={
            "smoke": DistanceSettings(
                networks=((2, 16), (3, 16)), dataset="mnist-sample", steps=4, records=4, points=50, seeds=(0, 1)
            ),
            "laptop": DistanceSettings(points=2000, seeds=(0, 1, 2)),
            "paper": DistanceSettings(),
        },
        trainings=hanin_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=("depths and widths and 20 epochs of batches of 128 are ours: the paper prints none of them",),
    ),
    Experiment(
        name="hr7",
        title="Distribution of the distance to the nearest boundary before and after training, 4×16",
        claim="Distances to the nearest boundary vary over many orders of magnitude, and training changes little of"
        " that, but for a slight skew towards larger ones.",
        scales={
            "smoke": DistanceSettings(
                networks=((4, 16),), dataset="mnist-sample", steps=4, records=4, points=500, seeds=(0, 1)
            ),
            "laptop": DistanceSettings(networks=((4, 16),), seeds=(0, 1, 2)),
            "paper": DistanceSettings(networks=((4, 16),)),
        },
        trainings=hanin_trainings,
        measurements=_end_measurements,
        evidence=_histograms,
        checks=_histogram_checks,
        draw=_draw_histograms,
        choices=("20 epochs of batches of 128, the random points of figure 6, and as many runs are ours",),
    ),
)
