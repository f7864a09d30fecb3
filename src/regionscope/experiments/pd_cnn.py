"""PD figures 4 and 7: crossings around CIFAR-10 while CNNs learn it, by depth, with batch norm and weight decay."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.pd_images import (
    CLEAR,
    CNN,
    OURS,
    PROBES,
    ImageSettings,
    image_experiment,
    image_networks,
    laptop_images,
    norm_checks,
    not_interpolated,
    smoke_images,
    with_one_legend,
)
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import (
    at_least,
    each_run,
    monotone,
    peak_value,
    reported,
    second_descent,
    untested,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OF_CNNS = (
    *OURS,
    "r = 0.014, the largest that figure 18 calls reliable: the paper prints none",
    "depth counts the last linear layer, as for the perceptrons: depth 5 has four convolutions",
    "images in [-1, 1], as the paper's random points; every second convolution halves them and doubles the channels",
)
DECAYS = (0.01, 0.1, 1.0, 3.0)
PD4 = replace(CNN, depths=(3, 5, 7), batch_norms=(False, True))


def _decay_checks(settings: ImageSettings, evidence: Evidence) -> Sequence[Check]:
    """A second descent with the least weight decay; it and the peak fall as decay grows."""
    names = list(image_networks(settings))
    curves = [evidence.curves[f"{name}: train"] for name in names]
    ends = [
        reported(f"{name}: {split} accuracy at the end", evidence.curves[f"{name}: {split} accuracy"].runs[:, -1])
        for name in (names[0], names[-1])
        for split in ("train", "test")
    ]
    if why := not_interpolated(evidence, names[:1]):
        return [*(untested(f"more decay, {what}", why) for what in ("less second descent", "lower peak")), *ends]
    descents, peaks = (np.stack([each_run(s, curve) for curve in curves], axis=1) for s in (second_descent, peak_value))
    return [
        at_least(f"train, {names[0]}: second descent as a share of the peak", descents[:, 0], CLEAR),
        monotone("train: second descent", settings.decays, descents, rising=False, paper="reduced by decay"),
        monotone("train: peak of the ascent", settings.decays, peaks, rising=False, paper="reduced by decay"),
        *ends,
    ]


def _draw_depths(findings: Findings) -> "Figure":
    """Without batch norm above, with it below; at training, test and random points."""
    curves = findings.evidence.curves
    figure, axes = panels(3, 2, height=2.1, sharey=True)
    for ax, (norm, probe) in zip(axes, product(("without", "with"), PROBES), strict=True):
        shown = {n.split(",")[0]: c for n, c in curves.items() if n.endswith(f" {norm} batch norm: {probe}")}
        draw_curves(ax, shown, ylabel="crossings" if probe == "train" else "")
        ax.set_title(f"{probe}, {norm} batch norm", fontsize="medium")
    for first in axes[::3]:  # of its row, once all of it has been drawn
        first.set_ylim(bottom=0)
    return with_one_legend(figure)


def _draw_decays(findings: Findings) -> "Figure":
    figure, axes = panels(2, height=2.6)
    for ax, probe in zip(axes, ("train", "random"), strict=True):
        shown = {n.split(":")[0]: c for n, c in findings.evidence.curves.items() if n.endswith(f": {probe}")}
        draw_curves(ax, shown, ylabel="crossings", from_zero=True)
        ax.set_title(probe, fontsize="medium")
    return with_one_legend(figure)


FIGURES = (
    image_experiment(
        name="pd4",
        title="Crossings while CNNs of several depths learn CIFAR-10, with and without batch norm",
        claim="Batch norm removes the second descent and raises local complexity; train and test points are alike, and"
        " deeper CNNs have higher peaks.",
        scales={
            "smoke": smoke_images(PD4, depths=(3, 4), seeds=(0,)),
            "laptop": laptop_images(PD4),
            "paper": PD4,
        },
        checks=norm_checks,
        draw=_draw_depths,
        choices=(*OF_CNNS, "depths 3, 5 and 7: the paper prints none"),
    ),
    image_experiment(
        name="pd7",
        title="Crossings while a CNN learns CIFAR-10 with more and more weight decay",
        claim="The more weight decay, the smaller the second descent and the lower the peak of the ascent.",
        scales={
            "smoke": smoke_images(CNN, depths=(3,), decays=(0.01, 1.0)),
            "laptop": laptop_images(CNN, decays=DECAYS),
            "paper": replace(CNN, decays=DECAYS),
        },
        checks=_decay_checks,
        draw=_draw_decays,
        choices=(*OF_CNNS, "weight decays 0.01, 0.1, 1 and 3: the paper prints none"),
    ),
)
