"""What PD's figures of convolutional networks share: how they learn CIFAR-10, crossings around it, batch norm."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from regionscope.experiments.curves import curve_of, measurement_at_records, recorded_curve
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.verdicts import (
    Statistic,
    ascent,
    at_least,
    at_most,
    each_run,
    monotone,
    peak_value,
    reported,
    second_descent,
    untested,
)
from regionscope.training.config import Training
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBES = {"train": "train", "test": "test", "random": "uniform"}
DIRECTIONS = {"cnn": 25, "preact-resnet18": 20}
NORMALISE = {"cnn": (0.5, 0.5), "preact-resnet18": (0.4734, 0.2009)}
INTERPOLATED = 0.99  # training accuracy before which nobody would look for a second descent
NONE, CLEAR = 0.1, 0.2  # a descent of less than this share is none, of more than that a clear one
LESS = 0.1  # by this share of the peak a second descent is smaller where it is smaller
MORE = 1.1  # batch norm raises crossings, in the mean over training, by this factor
ALIKE = 0.1  # train and test crossings differ by less than this share, in the mean over training


@dataclass(frozen=True)
class ImageSettings:
    """Convolutional networks on CIFAR-10 as PD trains them: each depth with each weight decay, with or without norm."""

    model: Literal["cnn", "preact-resnet18"] = "cnn"
    depths: tuple[int, ...] = (5,)  # linear layers, as PD counts: one more than the convolutions; ResNet18 has its own
    width: int = 32
    batch_norms: tuple[bool, ...] = (False,)
    decays: tuple[float, ...] = (0.01,)
    dataset: str = "cifar10"
    size: int | None = None
    test_size: int | None = None
    batch_size: int = 256
    steps: int = 500_000
    records: int = 51
    points: int = 2000
    radius: float = 0.014
    seeds: tuple[int, ...] = (0, 1, 2)


S = TypeVar("S", bound=ImageSettings)
CNN = ImageSettings()
RESNET = ImageSettings(model="preact-resnet18", depths=(18,), width=16, decays=(0.0,), points=1024, radius=0.005)


def smoke_images(paper: S, **others: object) -> S:
    """The same at the scale of seconds."""
    fewer = {"dataset": "mnist-sample", "width": 2, "size": 32, "test_size": 16, "batch_size": 8, "steps": 3}
    return replace(paper, **{**fewer, "records": 3, "points": 4, "seeds": (0, 1), **others})  # type: ignore[arg-type]


def laptop_images(paper: S, **others: object) -> S:
    """The same at the scale of minutes: so few images that they are interpolated in a tenth of the steps."""
    fewer: dict[str, object] = {"width": 8, "size": 500, "test_size": 500, "batch_size": 32, "steps": 4000}
    return replace(paper, **{**fewer, "records": 21, "points": 64, **others})  # type: ignore[arg-type]


def image_networks(settings: ImageSettings) -> dict[str, list[Training]]:
    """The trainings of every network by its name, one a seed: AdamW with 10^-3 on the cross-entropy (PD 4.1)."""
    found = {}
    for depth, decay, norm in product(settings.depths, settings.decays, settings.batch_norms):
        found[_network_name(settings, depth, decay, norm)] = [
            Training(
                dataset=settings.dataset, size=settings.size, test_size=settings.test_size,
                normalise=NORMALISE[settings.model], model=settings.model, depth=depth - 1, width=settings.width,
                batch_norm=norm, loss="cross-entropy", optimiser="adamw", lr=1e-3, weight_decay=decay,
                batch_size=settings.batch_size, steps=settings.steps, records=settings.records, measures=(), seed=seed,
            )
            for seed in settings.seeds
        ]  # fmt: skip
    return found


def _network_name(settings: ImageSettings, depth: int, decay: float, norm: bool) -> str:
    """What is varied, in words."""
    words = {
        f"depth {depth}": settings.depths,
        f"weight decay {decay:g}": settings.decays,
        f"{'with' if norm else 'without'} batch norm": settings.batch_norms,
    }
    return ", ".join(word for word, values in words.items() if len(values) > 1) or "network"


def image_trainings(settings: ImageSettings) -> list[Training]:
    return [training for trainings in image_networks(settings).values() for training in trainings]


def image_crossings(
    training: Training, points: int, radius: float, probes: tuple[str, ...] = tuple(PROBES.values())
) -> Measurement:
    """Crossings at every record, with one frame for all points that is kept over time."""
    options = {"radius": radius, "directions": DIRECTIONS[training.model]}
    return measurement_at_records(training, {"boundary_crossings": options}, probes=probes, points=points)


def image_measurements(settings: ImageSettings) -> list[Measurement]:
    return [image_crossings(training, settings.points, settings.radius) for training in image_trainings(settings)]


def image_evidence(settings: ImageSettings, lab: Lab) -> Evidence:
    """Crossings and accuracies of every network, by names such as "depth 5: train" and "depth 5: test accuracy"."""
    curves: dict[str, Curve] = {}
    for name, trainings in image_networks(settings).items():
        found = lab.measured([image_crossings(t, settings.points, settings.radius) for t in trainings])
        curves |= {f"{name}: {probe}": curve_of(found, crossings_column(kind)) for probe, kind in PROBES.items()}
        for split in ("train", "test"):
            curves[f"{name}: {split} accuracy"] = recorded_curve(lab, trainings, f"{split}_accuracy")
    return Evidence(curves)


def crossings_column(probe: str, layer: int | None = None) -> str:
    return f"{probe}/boundary_crossings" + ("" if layer is None else f"/layer{layer}")


image_experiment = partial(
    Experiment, trainings=image_trainings, measurements=image_measurements, evidence=image_evidence
)
OURS = (
    "one frame for all points, kept over time; logits are no units",
    "batches of 256 and 500,000 steps at most, those of the code for ResNet18",
)


# checks


def _mean_statistic(statistic: Statistic, curves: Sequence[Curve]) -> Floats:
    """A statistic of each run, in the mean over networks: one number a seed."""
    return np.asarray(np.mean([each_run(statistic, curve) for curve in curves], axis=0))


def not_interpolated(evidence: Evidence, networks: Sequence[str]) -> str:
    """Why nothing can be said yet of what follows interpolation; nothing, if it can."""
    least = min(float(evidence.curves[f"{name}: train accuracy"].runs.max(axis=1).min()) for name in networks)
    return f"training accuracy reaches {least:.2f}: the images are not interpolated" if least < INTERPOLATED else ""


def norm_checks(settings: ImageSettings, evidence: Evidence) -> Sequence[Check]:
    """Without batch norm an ascent and a second descent, with it less of that and more crossings; test as train."""
    curves, names = evidence.curves, list(image_networks(settings))
    plain, normed = names[::2], names[1::2]

    def ended(columns: Sequence[str]) -> Floats:
        return np.asarray(np.mean([curves[column].runs[:, -1] for column in columns], axis=0))

    def overall(group: Sequence[str], probe: str) -> Floats:
        """Crossings in the mean over training and networks, (seeds,)."""
        return np.asarray(np.mean([curves[f"{n}: {probe}"].runs.mean(axis=1) for n in group], axis=0))

    ends = [
        reported(f"{split} accuracy at the end {words} batch norm", ended([f"{n}: {split} accuracy" for n in group]))
        for words, group in (("without", plain), ("with", normed))
        for split in ("train", "test")
    ]
    if why := not_interpolated(evidence, names):
        parts = ("ascent and second descent", "batch norm lessens it and raises crossings", "train and test alike")
        return [*(untested(part, why) for part in parts), *ends]
    without, with_norm = ([curves[f"{n}: train"] for n in group] for group in (plain, normed))
    descents = _mean_statistic(second_descent, without)
    risen = [overall(normed, probe) / overall(plain, probe) for probe in PROBES]
    apart = [_gap(curves[f"{n}: train"], curves[f"{n}: test"]) for n in names]
    checks = [
        at_least("train, without batch norm: ascent as a share of the valley", _mean_statistic(ascent, without), CLEAR),
        at_least("train, without batch norm: second descent as a share of the peak", descents, CLEAR),
        at_least(
            "the same less that with batch norm", descents - _mean_statistic(second_descent, with_norm), LESS,
            paper="removed by batch norm",
        ),
        at_least(
            "crossings with batch norm / without, over training, least of train, test and random",
            np.min(risen, axis=0), MORE, paper="higher overall",
        ),
        at_most(
            "difference of train and test as a share, over training", np.mean(apart, axis=0), ALIKE,
            paper="almost indistinguishable",
        ),
    ]  # fmt: skip
    if len(settings.depths) > 1:
        peaks = np.stack([each_run(peak_value, curve) for curve in without], axis=1)
        words = "train, without batch norm: peak of the ascent"
        checks.append(monotone(words, settings.depths, peaks, rising=True, paper="deeper, higher"))
    return [*checks, *ends]


def _gap(a: Curve, b: Curve) -> Floats:
    """The mean difference of two curves as a share of the mean of the second, (seeds,)."""
    return np.asarray(np.abs(a.runs - b.runs).mean(axis=1) / b.runs.mean(axis=1))


def with_one_legend(figure: "Figure") -> "Figure":
    """The legend of the first panel only."""
    for ax in figure.axes[1:]:
        if legend := ax.get_legend():
            legend.remove()
    return figure
