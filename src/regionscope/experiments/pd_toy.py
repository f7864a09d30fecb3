"""PD figure 2: a toy affine spline from the plane to the line, its partition and its graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.length_maps import length_map
from regionscope.experiments.pictures import draw_graph
from regionscope.experiments.verdicts import at_least, correlation
from regionscope.geometry.plane_cells import plane_cells
from regionscope.geometry.planes import Plane
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TILES = 16  # a side, that density and curvature are compared on
DENSER = 1.5  # the most curved quarter of the tiles has so many times the boundaries of the least curved half
TOGETHER = 0.3  # rank correlation over the tiles


@dataclass(frozen=True)
class ToySettings:
    """A perceptron that fits a bump on [0, 1]²."""

    depth: int = 2  # hidden layers
    width: int = 32
    steps: int = 10_000
    seeds: tuple[int, ...] = (0, 1, 2)


def _trainings(settings: ToySettings) -> list[Training]:
    return [
        Training(
            dataset="bump", depth=settings.depth, width=settings.width, loss="mse", lr=1e-3, weight_decay=0.0,
            batch_size=256, steps=settings.steps, records=2, measures=(), seed=seed,
        )
        for seed in settings.seeds
    ]  # fmt: skip


def _measurements(settings: ToySettings) -> list[Measurement]:
    return [Measurement(_toy_partition, training) for training in _trainings(settings)]


def _toy_partition(training: Training, lab: Lab) -> dict[str, np.ndarray]:
    """The cells of the square with the values at their corners; boundary length and target's curvature on tiles."""
    run = lab.run(training)
    cells = plane_cells(run_model(run), Plane.coordinates(torch.full((2,), 0.5), radius=0.5))
    assert cells.outputs is not None
    target = training_data(training).train[1].double().numpy()
    side = round(len(target) ** 0.5)
    return {
        "lengths": length_map(cells, TILES), "curvature": _curvature(target.reshape(side, side)),
        "vertices": cells.vertices + 0.5, "offsets": cells.offsets, "corners": cells.corners,
        "values": cells.outputs[:, 0], "loss": np.array(run.curve("test_loss")[1][-1]),
    }  # fmt: skip


def _curvature(values: Floats) -> Floats:
    """The norm of the second derivative of a function on a grid, its mean on each tile: (TILES, TILES)."""
    second = [np.gradient(slope) for slope in np.gradient(values)]
    norms = np.sqrt(sum(np.square(part) for pair in second for part in pair))
    pixels = len(values) // TILES
    return np.asarray(norms.reshape(TILES, pixels, TILES, pixels).mean(axis=(1, 3)))


def _evidence(settings: ToySettings, lab: Lab) -> Evidence:
    found = lab.measured(_measurements(settings))
    tiles = {name: np.stack([seed[name] for seed in found]) for name in ("lengths", "curvature", "loss")}
    return Evidence({}, tiles | {name: found[0][name] for name in ("vertices", "offsets", "corners", "values")})


def _checks(settings: ToySettings, evidence: Evidence) -> Sequence[Check]:
    """Boundaries are denser where the function is curved."""
    lengths, curvature = (evidence.arrays[name].reshape(len(settings.seeds), -1) for name in ("lengths", "curvature"))
    ratios = [
        length[bend >= np.quantile(bend, 0.75)].mean() / max(length[bend <= np.median(bend)].mean(), 1e-12)
        for length, bend in zip(lengths, curvature, strict=True)
    ]
    ranks = [correlation(a, b, ranks=True) for a, b in zip(lengths, curvature, strict=True)]
    return [
        at_least("density where it is curved most over that where least", ratios, DENSER, paper="significantly higher"),
        at_least("density and curvature: rank correlation over tiles", ranks, TOGETHER),
    ]


def _draw(findings: Findings) -> "Figure":
    arrays = findings.evidence.arrays
    places = np.column_stack([arrays["vertices"], arrays["values"]])
    corners = np.split(arrays["corners"], arrays["offsets"][1:-1])
    return draw_graph([places[cell] for cell in corners], xlabel="x₁", ylabel="x₂")


FIGURES = (
    Experiment(
        name="pd2",
        title="A toy affine spline: partition and graph",
        claim="Regions are denser where the function is curved more.",
        scales={
            "smoke": ToySettings(width=16, steps=200, seeds=(0, 1)), "laptop": ToySettings(), "paper": ToySettings(),
        },
        trainings=_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "a perceptron with two hidden layers of 32 units that fits a bump; the paper says only that its spline is a"
            " toy. Curvature is the norm of the second derivative of the bump, density the length of boundaries on"
            " 16 × 16 tiles",
        ),
    ),
)  # fmt: skip
