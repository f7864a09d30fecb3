"""PD figures 18 and 19: how a CNN and ResNet18 that learned CIFAR-10 deform neighbourhoods, layer by layer."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pd_images import (
    CNN,
    DIRECTIONS,
    RESNET,
    ImageSettings,
    image_trainings,
    laptop_images,
    smoke_images,
)
from regionscope.experiments.pd_resnet import FEWER
from regionscope.experiments.pictures import panels
from regionscope.experiments.verdicts import at_least, at_most, monotone, reported, untested
from regionscope.measures.deformation import DEFORMED, neighbourhood_deformation
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL = 0.014  # the radius up to which the paper calls deformation low
STABLE = 0.1  # up to it, eccentricities relative to the input's are those of the smallest radius to this share
GROWS = 2.0  # the defect at the largest radius is that at the small one at least so many times
ENOUGH = 100  # steps before which a network is hardly trained
SIZES = ("eccentricity", "diameter", "defect")


@dataclass(frozen=True)
class DeformationSettings(ImageSettings):
    """Networks as in the figures of crossings, and the radii of the neighbourhoods that they deform."""

    radii: tuple[float, ...] = (0.001, 0.005, 0.014, 0.05, 0.14, 0.5)


@dataclass(frozen=True)
class DeformedImages:
    """Neighbourhoods of training images in the network that a training ends with."""

    training: Training
    radii: tuple[float, ...]
    points: int


def _measurements(settings: DeformationSettings) -> list[Measurement]:
    return [
        Measurement(_layer_sizes, DeformedImages(t, settings.radii, settings.points)) for t in image_trainings(settings)
    ]


def _layer_sizes(settings: DeformedImages, lab: Lab) -> dict[str, Floats]:
    """Mean eccentricity, diameter and defect over the points, (radii, layers) each; every radius has the same frame."""
    run, training = lab.run(settings.training), settings.training
    model, images = run_model(run), training_data(training).train[0][: settings.points]
    found = [
        neighbourhood_deformation(
            model, images, radius=radius, directions=DIRECTIONS[training.model],
            generator=torch.Generator().manual_seed(training.seed),
        )
        for radius in settings.radii
    ]  # fmt: skip
    return {name: np.stack([getattr(each, name).mean(axis=0) for each in found]) for name in SIZES}


def _evidence(settings: DeformationSettings, lab: Lab) -> Evidence:
    """Over the layers, 0 being the input, by names such as "diameter, r = 0.014"."""
    found, curves = lab.measured(_measurements(settings)), {}
    for name, (k, radius) in product(SIZES, enumerate(settings.radii)):
        start = 0.0 if name == "defect" else 2 * math.sqrt(2) * radius
        runs = [[start, *measured[name][k]] for measured in found]
        curves[f"{name}, r = {radius:g}"] = Curve.of(range(len(runs[0])), runs)
    return Evidence(curves)


def _checks(settings: DeformationSettings, evidence: Evidence) -> Sequence[Check]:
    """Up to the small radius maps are nearly affine and sizes scale with the radius; at the largest they do not."""
    small, largest = [r for r in settings.radii if r <= SMALL], settings.radii[-1]
    defects = {r: evidence.curves[f"defect, r = {r:g}"].runs.max(axis=1) for r in settings.radii}
    stretches = {r: evidence.curves[f"eccentricity, r = {r:g}"].runs / r for r in settings.radii}
    least = stretches[small[0]]
    changes = np.max([np.abs(stretches[r] / least - 1).max(axis=1) for r in small], axis=0)
    rising, about = settings.model == "cnn", f"r = {largest:g}: mean eccentricity"
    ends = [reported(f"r = {r:g}: largest defect of a layer", defects[r]) for r in (small[-1], largest)]
    if settings.steps < ENOUGH:
        return [untested("deformation of a trained network", f"it trained for {settings.steps} steps"), *ends]
    layers, sizes = range(least.shape[1]), stretches[largest] * largest
    return [
        at_most(f"r ≤ {SMALL}: largest defect of a layer", defects[small[-1]], DEFORMED, paper="lower"),
        at_most(
            f"r ≤ {SMALL}: change of eccentricity / r from that of r = {small[0]:g}", changes, STABLE, paper="stable"
        ),
        at_least(f"defect at r = {largest:g} / at r = {small[-1]:g}", defects[largest] / defects[small[-1]], GROWS),
        monotone(about, layers, sizes, rising=rising, paper=f"{'rises' if rising else 'falls'} with depth"),
        *ends,
    ]


def _draw(findings: Findings) -> "Figure":
    """Eccentricity, diameter and defect over the layers, a line for each radius."""
    import matplotlib

    from regionscope.plots.style import add_shared_legend

    curves = findings.evidence.curves
    radii = [name.partition(", ")[2] for name in curves if name.startswith("defect")]
    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(radii)))
    figure, axes = panels(3, height=2.6)
    for ax, name in zip(axes, SIZES, strict=True):
        for radius, colour in zip(radii, colours, strict=True):
            curve = curves[f"{name}, {radius}"]
            first = 2 if name == "defect" else 0  # up to the first activation it is rounding
            ax.plot(curve.x[first:], curve.mean[first:], color=colour, marker="o", ms=2.5, label=radius)
        ax.set(xlabel="layer", ylabel=f"mean {name}", yscale="log")
    add_shared_legend(figure, *axes[0].get_legend_handles_labels())
    return figure


def _deformation_settings(images: ImageSettings, **others: object) -> DeformationSettings:
    return DeformationSettings(**{**asdict(images), **others})


CHOICES = (
    "the radii but 0.014, which is the paper's; vertices are embedded by the pre-activations of a layer",
    "eccentricity and diameter grow with the radius under any map: how far from affine a layer is, is told by the"
    " defect, the root mean square distance of the middles of antipodes relative to half the diagonals",
)
CLAIM = "Up to r = 0.014 neighbourhoods are deformed little and in a stable way"
_experiment = partial(
    Experiment, trainings=image_trainings, measurements=_measurements, evidence=_evidence, checks=_checks, draw=_draw
)

FIGURES = (
    _experiment(
        name="pd18",
        title="Deformation of neighbourhoods by the layers of a CNN",
        claim=f"{CLAIM}; with larger radii their eccentricity and diameter grow with depth.",
        scales={
            "smoke": _deformation_settings(smoke_images(CNN), radii=(0.005, 0.014, 0.5)),
            "laptop": _deformation_settings(laptop_images(CNN)),
            "paper": _deformation_settings(CNN, points=1000),
        },
        choices=(*CHOICES, "the CNN of depth 5 and width 32 of figure 7: the paper does not say which it is"),
    ),
    _experiment(
        name="pd19",
        title="Deformation of neighbourhoods by the layers of ResNet18",
        claim=f"{CLAIM}; ResNet18 reduces their eccentricity and diameter.",
        scales={
            "smoke": _deformation_settings(smoke_images(RESNET), radii=(0.005, 0.014, 0.5)),
            "laptop": _deformation_settings(laptop_images(RESNET, **FEWER)),
            "paper": _deformation_settings(RESNET, points=1000),
        },
        choices=(*CHOICES, "the pre-activation ResNet18 of the code without batch norm"),
    ),
)
