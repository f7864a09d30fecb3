"""PD figures 6, 10, 11 and 13: crossings around data by width, number of images, random labels, and with GELU."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regionscope.experiments.findings import Check, Curve, Evidence
from regionscope.experiments.pd_mnist import (
    FRAME,
    LAPTOP,
    RADIUS,
    SMOKE,
    PartitionSettings,
    crossing_experiment,
    crossings_named,
    double_descent,
    partition_networks,
    too_short,
)
from regionscope.experiments.verdicts import (
    Statistic,
    ascent,
    at_most,
    each_run,
    largest_rise,
    monotone,
    peak_value,
    reported,
    untested,
)
from regionscope.types import Floats

WIDEST = 1000  # units, up to which the paper sees the peak rise
SMALLER = 0.5  # with the most images the ascent is at most this share of that with the fewest


def _curves(settings: PartitionSettings, evidence: Evidence, probe: str = "train") -> list[Curve]:
    """The crossings of each network, in the order of the sweep."""
    names = partition_networks(settings)
    return [evidence.curves[crossings_named(name, settings.radii[0], probe)] for name in names]


def _statistics(statistic: Statistic, curves: Sequence[Curve]) -> Floats:
    """A statistic of every run of every network, (seeds, networks)."""
    return np.stack([each_run(statistic, curve) for curve in curves], axis=1)


def _ascent_start(x: Floats, values: Floats) -> float:
    """The step from which the largest rise goes on."""
    return float(x[largest_rise(values)[0]])


def _peak_place(x: Floats, values: Floats) -> float:
    """The step of the top of the largest rise."""
    return float(x[largest_rise(values)[1]])


def _width_checks(settings: PartitionSettings, evidence: Evidence) -> Sequence[Check]:
    """The peak rises and the ascent begins earlier up to 1000 units; with 2000 the peak is lower than with 1000."""
    if short := too_short(settings, "peaks by width"):
        return short
    curves, widths = _curves(settings, evidence), settings.widths
    heights, starts = _statistics(peak_value, curves), _statistics(_ascent_start, curves)
    narrow = [width for width in widths if width <= WIDEST]
    up_to, n = f"up to {WIDEST} units", len(narrow)
    rises = [
        monotone(f"peak of train, {up_to}", narrow, heights[:, :n], rising=True, paper="rises"),
        monotone(f"step where the ascent begins, {up_to}", narrow, starts[:, :n], rising=False, paper="earlier"),
    ]
    words = f"peak of train with {widths[-1]} units over that with {WIDEST}"
    if widths[-1] <= WIDEST or WIDEST not in widths:
        why = f"the widest network has {widths[-1]} units"
        return [*rises, untested(f"peak of train beyond {WIDEST} units", why, paper="falls at 2000")]
    wide = heights[:, -1] / heights[:, widths.index(WIDEST)]
    return [*rises, at_most(words, wide, 1.0, paper="falls")]


def _size_checks(settings: PartitionSettings, evidence: Evidence) -> Sequence[Check]:
    """With more images the ascent gets smaller, and with the most at most half of what it is with the fewest."""
    if short := too_short(settings, "ascents by the number of images"):
        return short
    ascents = _statistics(ascent, _curves(settings, evidence))
    ends = [evidence.curves[f"{name}, test accuracy"].runs[:, -1] for name in partition_networks(settings)]
    return [
        monotone("ascent of train as a share of the valley", settings.sizes, ascents, rising=False, paper="less"),
        at_most(
            "that ascent with the most images over that with the fewest", ascents[:, -1] / ascents[:, 0], SMALLER,
            paper="gradually removed",
        ),
        monotone("test accuracy at the end", settings.sizes, np.stack(ends, axis=1), rising=True, paper="more"),
    ]  # fmt: skip


def _label_checks(settings: PartitionSettings, evidence: Evidence) -> Sequence[Check]:
    """With more images that have random labels the peak, of train and of test, is higher, and comes later."""
    if short := too_short(settings, "peaks by the number of images"):
        return short
    train, test = (_curves(settings, evidence, probe) for probe in ("train", "test"))
    sizes = settings.sizes
    return [
        monotone("peak of train", sizes, _statistics(peak_value, train), rising=True, paper="higher"),
        monotone("peak of test", sizes, _statistics(peak_value, test), rising=True, paper="higher"),
        monotone(
            "step of the peak of train", sizes, _statistics(_peak_place, train), rising=True, paper="longer ascent"
        ),
        *(
            reported(f"{name}: train accuracy at the end", evidence.curves[f"{name}, train accuracy"].runs[:, -1])
            for name in partition_networks(settings)
        ),
    ]


def _gelu_checks(settings: PartitionSettings, evidence: Evidence) -> Sequence[Check]:
    """A descent, an ascent and a second descent at every depth."""
    if short := too_short(settings, "phases with GELU"):
        return short
    pairs = zip(partition_networks(settings), _curves(settings, evidence), strict=True)
    return [check for name, curve in pairs for check in double_descent(f"{name}, train", curve)]


SIZES = (1000, 4000, 16_000)
RANDOM_SIZES = (500, 1000, 2000)

FIGURES = (
    crossing_experiment(
        name="pd6",
        title="Crossings during training by width, MNIST perceptrons of depth 3",
        claim="The peak around training points rises with width up to 1000 units, and the ascent begins earlier; with"
        " 2000 units the peak is lower again.",
        scales={
            "smoke": replace(SMOKE, depths=(3,), widths=(8, 16)),
            "laptop": replace(LAPTOP, depths=(3,), widths=(20, 100, 200, 500, 1000), wide_steps=6_000),
            "paper": PartitionSettings(depths=(3,), widths=(20, 100, 500, 1000, 2000)),
        },
        checks=_width_checks,
        choices=(FRAME, RADIUS),
    ),
    crossing_experiment(
        name="pd10",
        title="Crossings during training by the number of images, MNIST perceptrons of depth 3 and width 200",
        claim="The more images there are to train on, the less crossings rise around them.",
        scales={
            "smoke": replace(SMOKE, depths=(3,), sizes=(50, 100)),
            "laptop": replace(LAPTOP, depths=(3,), sizes=SIZES),
            "paper": PartitionSettings(depths=(3,), sizes=SIZES),
        },
        checks=_size_checks,
        choices=(FRAME, RADIUS, "1,000, 4,000 and 16,000 images: the paper prints no sizes"),
    ),
    crossing_experiment(
        name="pd11",
        title="The same with random labels, MNIST perceptrons of depth 3 and width 200",
        claim="With random labels more images make the ascent longer and the peak higher, around training points and"
        " test points.",
        scales={
            "smoke": replace(SMOKE, depths=(3,), sizes=(50, 100), label_noise=1.0),
            "laptop": replace(LAPTOP, depths=(3,), sizes=RANDOM_SIZES, label_noise=1.0),
            "paper": PartitionSettings(depths=(3,), sizes=RANDOM_SIZES, label_noise=1.0),
        },
        checks=_label_checks,
        choices=(FRAME, RADIUS, "500, 1,000 and 2,000 images, all labels drawn anew: the paper prints no sizes"),
    ),
    crossing_experiment(
        name="pd13",
        title="Crossings during training with GELU, MNIST perceptrons of depth 3 to 5 and width 200",
        claim="With GELU, too, crossings around training points fall, rise and fall again at every depth.",
        scales={
            "smoke": replace(SMOKE, depths=(3, 4), activation="gelu"),
            "laptop": replace(LAPTOP, depths=(3, 4, 5), activation="gelu", steps=12_000),
            "paper": PartitionSettings(depths=(3, 4, 5), activation="gelu"),
        },
        checks=_gelu_checks,
        choices=(FRAME, RADIUS, "a unit switches where what enters its GELU changes sign"),
    ),
)
