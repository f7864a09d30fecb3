"""PD figures 3 and 15: crossings around data while perceptrons learn a thousand images of MNIST, by depth and layer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Literal

import numpy as np

from regionscope.experiments.curves import curve_of, measurement_at_records, recorded_curve
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import (
    ascent,
    at_least,
    at_most,
    each_run,
    falls_again,
    falls_first,
    largest_rise,
    monotone,
    rises_after,
    second_descent,
    untested,
)
from regionscope.training.config import Training
from regionscope.training.models import Activation
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIRECTIONS = 25
FINE_AND_COARSE = (0.005, 0.5)
PROBES = {"train": "train", "test": "test", "random": "uniform"}
ENOUGH = 5_000  # steps before which nobody would look for a second descent
NONE, CLEAR = 0.1, 0.2  # a descent of less than this share is none, of more than that a clear one
ALIKE, APART = 0.1, 0.1  # train and test crossings at the peak are alike, or apart, by this share of the former
FRAME = (
    "one frame of 25 directions for all points, kept over time, as in the published code; logits are no units, though"
    " they are in that code"
)
RADIUS = (
    "r = 0.05, the smallest of the published code and between the 0.005 and 0.5 of figure 3: the paper prints none here"
)


@dataclass(frozen=True)
class PartitionSettings:
    """Perceptrons on MNIST as PD trains them, each depth with each width and each number of images."""

    depths: tuple[int, ...] = (4,)  # linear layers, as PD counts: one more than the hidden ones
    widths: tuple[int, ...] = (200,)
    sizes: tuple[int, ...] = (1000,)
    label_noise: float = 0.0
    activation: Activation = "relu"
    init_scale: float = 1.0
    radii: tuple[float, ...] = (0.05,)
    dataset: str = "mnist"
    steps: int = 1_000_000
    wide_steps: int | None = None  # of networks wider than 200, if they have fewer
    records: int = 101
    points: int = 10_000
    dtype: Literal["float32", "float64"] = "float64"
    seeds: tuple[int, ...] = (0,)


SMOKE = PartitionSettings(
    widths=(16,), sizes=(100,), dataset="mnist-sample", steps=6, records=4, points=10, seeds=(0, 1)
)
LAPTOP = PartitionSettings(steps=20_000, records=41, points=1000, dtype="float32", seeds=(0, 1, 2))


def partition_networks(settings: PartitionSettings) -> dict[str, list[Training]]:
    """The trainings of every network by its name, one a seed (PD 4.1; images with replacement as in its code)."""
    found = {}
    for depth, width, size in product(settings.depths, settings.widths, settings.sizes):
        swept = {
            f"depth {depth}": settings.depths,
            f"width {width}": settings.widths,
            f"{size:,} images": settings.sizes,
        }
        name = ", ".join(words for words, values in swept.items() if len(values) > 1) or f"depth {depth}"
        fewer = settings.wide_steps if width > 200 else None
        found[name] = [
            Training(
                dataset=settings.dataset, size=size, replacement=True, label_noise=settings.label_noise,
                depth=depth - 1, width=width, activation=settings.activation, init_scale=settings.init_scale,
                dtype=settings.dtype, loss="mse", optimiser="adamw", lr=1e-3, weight_decay=0.01, batch_size=200,
                steps=fewer or settings.steps, records=settings.records, measures=(), seed=seed,
            )
            for seed in settings.seeds
        ]  # fmt: skip
    return found


def partition_trainings(settings: PartitionSettings) -> list[Training]:
    return [training for trainings in partition_networks(settings).values() for training in trainings]


def _watched_crossings(settings: PartitionSettings, trainings: list[Training], radius: float) -> list[Measurement]:
    measures = {"boundary_crossings": {"radius": radius, "directions": DIRECTIONS}}
    return [
        measurement_at_records(t, measures, probes=tuple(PROBES.values()), points=settings.points) for t in trainings
    ]


def crossing_measurements(settings: PartitionSettings) -> list[Measurement]:
    return [
        measurement for trainings in partition_networks(settings).values() for radius in settings.radii
        for measurement in _watched_crossings(settings, trainings, radius)
    ]  # fmt: skip


def crossing_curves(settings: PartitionSettings, lab: Lab) -> dict[str, Curve]:
    """Crossings and accuracies of every network over training, by names such as those of `crossings_named`."""
    curves = {}
    for name, trainings in partition_networks(settings).items():
        for radius in settings.radii:
            found = lab.measured(_watched_crossings(settings, trainings, radius))
            for probe, column in PROBES.items():
                curves[crossings_named(name, radius, probe)] = curve_of(found, f"{column}/boundary_crossings")
        for split in ("train", "test"):
            curves[f"{name}, {split} accuracy"] = recorded_curve(lab, trainings, f"{split}_accuracy")
    return curves


def crossings_named(name: str, radius: float, probe: str) -> str:
    return f"{name}, r = {radius:g}, {probe}"


def _partition_evidence(settings: PartitionSettings, lab: Lab) -> Evidence:
    return Evidence(crossing_curves(settings, lab))


# checks


def double_descent(words: str, curve: Curve) -> list[Check]:
    """A first descent of a tenth at least, an ascent and a second descent of a fifth."""
    return [
        falls_first(words, curve, by=NONE, paper="descent"),
        rises_after(words, curve, by=CLEAR, paper="ascent"),
        falls_again(words, curve, by=CLEAR, paper="second descent"),
    ]


def too_short(settings: PartitionSettings, words: str) -> list[Check]:
    """What takes the place of checks where training ends too early, else nothing."""
    return [untested(words, f"it ends after {settings.steps:,} steps")] if settings.steps < ENOUGH else []


def _depth_checks(settings: PartitionSettings, evidence: Evidence) -> Sequence[Check]:
    """Train crossings rise more than test crossings, less so when deeper; only the shallowest has one descent."""
    if short := too_short(settings, "phases at each depth"):
        return short
    curves, names, (fine, coarse) = evidence.curves, list(partition_networks(settings)), settings.radii
    checks: list[Check] = []
    for radius in settings.radii:
        gaps = np.stack([
            each_run(ascent, curves[crossings_named(name, radius, "train")])
            - each_run(ascent, curves[crossings_named(name, radius, "test")])
            for name in names
        ], axis=1)  # fmt: skip
        words = f"r = {radius:g}: ascent of train less that of test, as shares of their valleys"
        checks += [
            at_least(f"{words}, mean of the depths", gaps.mean(axis=1), 0.0, paper="sharper on train"),
            monotone(words, settings.depths, gaps, rising=False, paper="less when deeper"),
        ]
    for name in names[1:]:
        checks += double_descent(f"{name}, r = {fine:g}, train", curves[crossings_named(name, fine, "train")])
    first = {radius: curves[crossings_named(names[0], radius, "train")] for radius in settings.radii}
    words = "train: second descent as a share of the peak"
    return [
        *checks,
        at_most(f"{names[0]}, r = {fine:g}, {words}", each_run(second_descent, first[fine]), NONE, paper="none"),
        at_least(f"{names[0]}, r = {coarse:g}, {words}", each_run(second_descent, first[coarse]), CLEAR, paper="seen"),
    ]


# layers


def _layer_evidence(settings: PartitionSettings, lab: Lab) -> Evidence:
    ((_, trainings),) = partition_networks(settings).items()
    curves = {}
    for radius in settings.radii:
        found = lab.measured(_watched_crossings(settings, trainings, radius))
        for layer, (probe, column) in product(range(1, settings.depths[0]), PROBES.items()):
            name = crossings_named(f"layer {layer}", radius, probe)
            curves[name] = curve_of(found, f"{column}/boundary_crossings/layer{layer}")
    return Evidence(curves)


def _layer_checks(settings: PartitionSettings, evidence: Evidence) -> Sequence[Check]:
    """The deeper a layer, the less its ascent and the nearer its test crossings to its train crossings at the peak."""
    if short := too_short(settings, "peaks of each layer"):
        return short
    layers, checks = list(range(1, settings.depths[0])), list[Check]()
    for radius in settings.radii:
        train, test = (
            [evidence.curves[crossings_named(f"layer {layer}", radius, probe)] for layer in layers]
            for probe in ("train", "test")
        )
        sharpness = np.stack([each_run(ascent, curve) for curve in train], axis=1)
        gaps = np.stack([_gap_at_peak(a, b) for a, b in zip(train, test, strict=True)], axis=1)
        words = f"r = {radius:g}: how far test is from train at the peak of train, as a share of it"
        checks += [
            monotone(f"r = {radius:g}: ascent of train", layers, sharpness, rising=False, paper="sharper when shallow"),
            at_least(f"{words}, layer 1", gaps[:, 0], APART, paper="distinct"),
            at_most(f"{words}, layer {layers[-1]}", gaps[:, -1], ALIKE, paper="negligible"),
        ]
    return checks


def _gap_at_peak(train: Curve, test: Curve) -> Floats:
    """How far test is from train where train is at the top of its largest rise, as a share of train: (seeds,)."""
    peaks = [largest_rise(values)[1] for values in train.runs]
    return np.array(
        [abs(1 - b[k] / a[k]) if a[k] > 0 else np.nan for k, a, b in zip(peaks, train.runs, test.runs, strict=True)]
    )


# pictures


def _draw_crossings(findings: Findings, names: Sequence[str], *, accuracies: bool = True) -> "Figure":
    """A column for each name and a row for each radius, with the accuracies below."""
    from regionscope.plots.style import add_shared_legend, paper

    curves, radii = findings.evidence.curves, findings.settings["radii"]
    with paper(2):  # many panels: small letters, and one legend for all
        figure, axes = panels(len(names), len(radii) + accuracies, height=1.6)
        for k, ax in enumerate(axes):
            row, column = divmod(k, len(names))
            name = names[column]
            if row < len(radii):
                shown = {probe: curves[crossings_named(name, radii[row], probe)] for probe in PROBES}
                ylabel = f"crossings, r = {radii[row]:g}"
                draw_curves(ax, shown, ylabel=ylabel, from_zero=True, legend=False)
            else:
                shown = {split: curves[f"{name}, {split} accuracy"] for split in ("train", "test")}
                draw_curves(ax, shown, ylabel="accuracy", legend=False)
                ax.set_ylim(-0.03, 1.03)
            ax.set(title="" if row else name, xlabel="training step" if k >= len(axes) - len(names) else "")
            ax.set_ylabel("" if column else ax.get_ylabel())
        add_shared_legend(figure, *axes[0].get_legend_handles_labels(), above=True)
    return figure


def _draw_networks(findings: Findings) -> "Figure":
    """A column for each network."""
    ends = ", test accuracy"
    return _draw_crossings(findings, [n.removesuffix(ends) for n in findings.evidence.curves if n.endswith(ends)])


def _draw_layers(findings: Findings) -> "Figure":
    names = dict.fromkeys(name.split(",")[0] for name in findings.evidence.curves)
    return _draw_crossings(findings, list(names), accuracies=False)


crossing_experiment = partial(
    Experiment,
    trainings=partition_trainings,
    measurements=crossing_measurements,
    evidence=_partition_evidence,
    draw=_draw_networks,
)

FIGURES = (
    crossing_experiment(
        name="pd3",
        title="Crossings during training, MNIST perceptrons of depth 2 to 5 and width 200, two radii",
        claim="Around training points crossings fall, rise and fall again; they rise more sharply than around test"
        " points, less so in deeper networks; the shallowest has no second descent at the small radius.",
        scales={
            "smoke": replace(SMOKE, depths=(2, 3), radii=FINE_AND_COARSE),
            "laptop": replace(LAPTOP, depths=(2, 3, 4, 5), radii=FINE_AND_COARSE),
            "paper": PartitionSettings(depths=(2, 3, 4, 5), radii=FINE_AND_COARSE),
        },
        checks=_depth_checks,
        choices=(FRAME,),
    ),
    crossing_experiment(
        name="pd15",
        title="Crossings of each layer during training, MNIST perceptron of depth 6 and width 200",
        claim="Shallow layers have a sharper peak, with train and test apart; in deep layers train and test are alike.",
        scales={
            "smoke": replace(SMOKE, depths=(4,), radii=FINE_AND_COARSE),
            "laptop": replace(LAPTOP, depths=(6,), radii=FINE_AND_COARSE),
            "paper": PartitionSettings(depths=(6,), radii=FINE_AND_COARSE),
        },
        evidence=_layer_evidence,
        checks=_layer_checks,
        draw=_draw_layers,
        choices=(FRAME, "the two radii are those of figure 3"),
    ),
)  # fmt: skip
