"""PD figures 5 and 16: crossings around CIFAR-10 while ResNet18 learns it, with batch norm and ReLU by ReLU."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from regionscope.experiments.curves import curve_of
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab
from regionscope.experiments.pd_images import (
    CLEAR,
    LESS,
    NONE,
    OURS,
    PROBES,
    RESNET,
    ImageSettings,
    crossings_column,
    image_evidence,
    image_experiment,
    image_measurements,
    laptop_images,
    norm_checks,
    not_interpolated,
    smoke_images,
    with_one_legend,
)
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import at_least, at_most, each_run, reported, second_descent, untested

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHALLOW = 4  # blocks, the first two stages of ResNet18
OF_RESNETS = (
    *OURS,
    "the pre-activation ResNet18 of the code; images normalised by one mean and deviation, the code's averaged over the"
    " channels; random points within the range of the images",
)
PD5 = replace(RESNET, batch_norms=(False, True))
# what ResNet18 takes on a laptop
FEWER: dict[str, object] = {"size": 256, "test_size": 256, "steps": 1500, "records": 15}
WIDER = 0.014  # there: a network of half the width, at fewer points, would have too few crossings to tell from noise


def _layer_evidence(settings: ImageSettings, lab: Lab) -> Evidence:
    """The same, and crossings of each layer, by names such as "ReLU 3: train"."""
    found, curves = lab.measured(image_measurements(settings)), dict(image_evidence(settings, lab).curves)
    layers = sum(name.startswith("train/boundary_crossings/layer") for name in found[0])
    for layer, (probe, kind) in product(range(1, layers + 1), PROBES.items()):
        curves[f"ReLU {layer}: {probe}"] = curve_of(found, crossings_column(kind, layer))
    return Evidence(curves)


def _layer_checks(settings: ImageSettings, evidence: Evidence) -> Sequence[Check]:
    """In shallow blocks the second ReLU has a second descent, the first has none."""
    ends = [
        reported(f"{split} accuracy at the end", evidence.curves[f"network: {split} accuracy"].runs[:, -1])
        for split in ("train", "test")
    ]
    if why := not_interpolated(evidence, ["network"]):
        return [untested("the second descent alternates within a block", why), *ends]
    first, second = (each_run(second_descent, _together(evidence, range(k, 2 * SHALLOW + 1, 2))) for k in (1, 2))
    about = f"second descent as a share of the peak, first {SHALLOW} blocks"
    return [
        at_least(f"second ReLUs: {about}", second, CLEAR, paper="occurs"),
        at_most(f"first ReLUs: {about}", first, NONE, paper="does not occur"),
        at_least("the former less the latter", second - first, LESS, paper="alternates"),
        *ends,
    ]


def _together(evidence: Evidence, relus: Sequence[int]) -> Curve:
    """Crossings of several ReLUs at training points: of one they are few, and noise looks like descent."""
    curves = [evidence.curves[f"ReLU {k}: train"] for k in relus]
    return Curve.of(curves[0].x, np.sum([curve.runs for curve in curves], axis=0))


def _draw_norms(findings: Findings) -> "Figure":
    """Crossings without and with batch norm above, the accuracies below."""
    curves = findings.evidence.curves
    figure, axes = panels(2, 2, height=2.2)
    for norm, above, below in zip(("without", "with"), axes[:2], axes[2:], strict=True):
        shown = {probe: curves[f"{norm} batch norm: {probe}"] for probe in PROBES}
        draw_curves(above, shown, ylabel="crossings", xlabel="", from_zero=True)
        above.set_title(f"{norm} batch norm", fontsize="medium")
        draw_curves(
            below, {s: curves[f"{norm} batch norm: {s} accuracy"] for s in ("train", "test")}, ylabel="accuracy"
        )
        below.set_ylim(-0.03, 1.03)
    return with_one_legend(figure)


def _draw_layers(findings: Findings) -> "Figure":
    """The four shallowest ReLUs above, the four deepest below."""
    curves = findings.evidence.curves
    last = sum(name.startswith("ReLU") for name in curves) // len(PROBES)
    figure, axes = panels(4, 2, height=1.9)
    for ax, layer in zip(axes, (1, 2, 3, 4, *range(last - 3, last + 1)), strict=True):
        shown = {probe: curves[f"ReLU {layer}: {probe}"] for probe in PROBES}
        draw_curves(ax, shown, ylabel="crossings" if layer in (1, last - 3) else "", from_zero=True)
        ax.set_title(f"ReLU {layer}", fontsize="medium")
    return with_one_legend(figure)


FIGURES = (
    image_experiment(
        name="pd5",
        title="Crossings while ResNet18 learns CIFAR-10, with and without batch norm",
        claim="Batch norm reduces the second descent and raises local complexity; train and test points are alike.",
        scales={
            "smoke": smoke_images(PD5, seeds=(0,)),
            "laptop": laptop_images(PD5, **FEWER, radius=WIDER),
            "paper": PD5,
        },
        checks=norm_checks,
        draw=_draw_norms,
        choices=OF_RESNETS,
    ),
    image_experiment(
        name="pd16",
        title="Crossings of each ReLU of ResNet18 without batch norm",
        claim="In shallow blocks the second descent alternates: it occurs at the second ReLU of a block, and not at the"
        " first.",
        scales={"smoke": smoke_images(RESNET), "laptop": laptop_images(RESNET, **FEWER, radius=WIDER), "paper": RESNET},
        evidence=_layer_evidence,
        checks=_layer_checks,
        draw=_draw_layers,
        choices=(
            *OF_RESNETS,
            "shallow are the four blocks of the first two stages, whose first, and second, ReLUs are counted together",
        ),
    ),
)
