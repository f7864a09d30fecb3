"""PD figures 8 and 9: crossings while perceptrons grok, because their first weights are eight times as large."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.signal import find_peaks

from regionscope.experiments.findings import Check, Curve, Evidence
from regionscope.experiments.pd_mnist import (
    FRAME,
    LAPTOP,
    RADIUS,
    SMOKE,
    PartitionSettings,
    crossing_experiment,
    crossings_named,
    partition_networks,
)
from regionscope.experiments.verdicts import at_least, each_run, falls_again, monotone, reported, untested
from regionscope.types import Floats, Indices

ENOUGH = 50_000  # steps, before which networks of this kind have not generalised
PROMINENT = 0.1  # a peak stands out by this share of the highest value, at least
MOST = 0.5  # of what an accuracy rises, at least, happens in its phase
HALF_WAY = 0.5  # of the rise of test accuracy: there generalisation is said to happen
SCALED = PartitionSettings(init_scale=8.0)
CHOICES = (FRAME, RADIUS, "depths 3, 4 and 5, and 100,000 steps as in the grokking code that PD follows")


def peaks(values: Floats) -> Indices:
    """Where a curve has a peak that stands out, neither at its start nor at its end."""
    return np.asarray(find_peaks(values, prominence=PROMINENT * values.max())[0], np.int64)


def share_of_rise(accuracy: Floats, place: int) -> float:
    """The share of an accuracy's rise, from its start to its highest value, that is done at a place."""
    whole = accuracy.max() - accuracy[0]
    return float((accuracy[: place + 1].max() - accuracy[0]) / whole) if whole > 0 else np.nan


def half_way(x: Floats, accuracy: Floats) -> float:
    """The step from which an accuracy has risen half of the way."""
    return float(x[np.argmax(accuracy - accuracy[0] >= HALF_WAY * (accuracy.max() - accuracy[0]))])


def _risen_at_peak(crossings: Curve, accuracy: Curve, which: int) -> Floats:
    """How much of its rise an accuracy has done at the first (0) or last (-1) peak of crossings: (seeds,)."""
    pairs = zip(crossings.runs, accuracy.runs, strict=True)
    return np.array([share_of_rise(a, peaks(c)[which]) if len(peaks(c)) else np.nan for c, a in pairs])


def _checks(settings: PartitionSettings, evidence: Evidence) -> Sequence[Check]:
    """At each depth two peaks, memorisation before the first, generalisation after the last; what depth changes."""
    if settings.steps < ENOUGH:
        return [untested("peaks, memorisation and generalisation", f"it ends after {settings.steps:,} steps")]
    curves, checks, highest, generalised = evidence.curves, list[Check](), [], []
    for name in partition_networks(settings):
        train = curves[crossings_named(name, settings.radii[0], "train")]
        memorised, tested = (curves[f"{name}, {split} accuracy"] for split in ("train", "test"))
        highest.append(train.runs.max(axis=1))
        generalised.append(each_run(half_way, tested))
        checks += [
            at_least(f"{name}: peaks of train crossings", [len(peaks(v)) for v in train.runs], 2, paper="two ascents"),
            falls_again(f"{name}, train", train, paper="second descent"),
            at_least(
                f"{name}: share of the rise of train accuracy before the first peak",
                _risen_at_peak(train, memorised, 0), MOST, paper="memorisation during the ascent",
            ),
            at_least(
                f"{name}: share of the rise of test accuracy after the last peak",
                1 - _risen_at_peak(train, tested, -1), MOST, paper="generalisation during the second descent",
            ),
            reported(f"{name}: test accuracy at the end", tested.runs[:, -1]),
        ]  # fmt: skip
    if len(settings.depths) < 3:
        return checks
    words = "step at which test accuracy has risen half of its way"
    return [
        *checks,
        monotone("highest crossings", settings.depths, np.stack(highest, axis=1), rising=True, paper="rise with depth"),
        monotone(words, settings.depths, np.stack(generalised, axis=1), rising=True, paper="depth delays it"),
    ]


FIGURES = (
    crossing_experiment(
        name="pd8",
        title="Crossings and accuracies during grokking, MNIST perceptron of width 200, weights × 8 at the start",
        claim="Networks memorise while crossings rise; a second peak comes just before they generalise, which happens"
        " during the second descent.",
        scales={
            "smoke": replace(SMOKE, init_scale=8.0),
            "laptop": replace(LAPTOP, init_scale=8.0, steps=80_000, records=61),
            "paper": replace(SCALED, depths=(3, 4, 5), steps=100_000),
        },
        checks=_checks,
        choices=CHOICES,
    ),
    crossing_experiment(
        name="pd9",
        title="Effect of depth on grokking and crossings, MNIST perceptrons of width 200, weights × 8 at the start",
        claim="At every depth networks memorise while crossings rise and generalise during the second descent; deeper"
        " ones have a higher peak and generalise later.",
        scales={
            "smoke": replace(SMOKE, depths=(3, 4), init_scale=8.0),
            "laptop": replace(LAPTOP, depths=(3, 4, 5), init_scale=8.0, steps=80_000, records=61),
            "paper": replace(SCALED, depths=(3, 4, 5), steps=100_000),
        },
        checks=_checks,
        choices=CHOICES,
    ),
)
