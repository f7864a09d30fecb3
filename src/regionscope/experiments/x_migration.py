"""Beyond the papers, x3: region migration as a number, the distance from region boundaries to the decision boundary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regionscope.experiments.curves import recorded_curve
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.length_maps import middles_of_pieces
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import at_least, at_most
from regionscope.experiments.x_runs import (
    LAPTOP,
    SMOKE,
    SharedSettings,
    beyond_scales,
    networks_over_training,
    shared_trainings,
)
from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import Plane
from regionscope.training.config import Training, training_data
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEAR = (0.02, 0.05, 0.1)  # distances, as shares of a plane's half-side
JUDGED = 0.05
EDGES = np.linspace(0.0, 1.0, 101)  # of the distribution of distances; what is farther is in no bin
CROWDED = 1.2  # boundary near the decision boundary at the end, over what chance would put there
GAIN = 1.1  # and over that when the training points were fitted first
FITTED = 0.99
NEARER = 0.9  # median distance of boundaries over that of the plane's points
PIECE = 0.02  # boundaries are looked at in pieces of at most so much of the half-side
GRID = 100  # points a side that stand for the plane's area


@dataclass(frozen=True)
class MigrationSettings(SharedSettings):
    """So many planes, each through three training images of different classes."""

    planes: int = 30


@dataclass(frozen=True)
class _Migration:
    training: Training
    planes: int


def _measurements(settings: MigrationSettings) -> list[Measurement]:
    return [Measurement(_migration_over_training, _Migration(t, settings.planes)) for t in shared_trainings(settings)]


def _migration_over_training(settings: _Migration, lab: Lab) -> dict[str, np.ndarray]:
    """How boundary length, and area, are spread over distances at every record: shares (records, bins + 1)."""
    planes = _planes(*training_data(settings.training).train, settings)
    steps: list[int] = []
    lengths: list[Floats] = []
    areas: list[Floats] = []
    for step, net in networks_over_training(settings.training, lab):
        found = [distances_to_decision(plane_cells(net, plane)) for plane in planes]
        steps.append(step)
        for shares, spread in ((lengths, [one[0] for one in found]), (areas, [one[1] for one in found])):
            whole = np.sum(spread, axis=0)
            shares.append(np.cumsum(whole) / whole.sum() if whole.sum() else np.full_like(whole, np.nan))
    return {"step": np.array(steps, float), "lengths": np.array(lengths), "areas": np.array(areas)}


def _planes(images: Tensor, labels: Tensor, settings: _Migration) -> list[Plane]:
    generator = torch.Generator().manual_seed(settings.training.seed)
    found: list[Plane] = []
    while len(found) < settings.planes:
        chosen = torch.randperm(len(images), generator=generator)[:3]
        if len(labels[chosen].unique()) == 3:
            found.append(Plane.through(*images[chosen], centre="centroid"))
    return found


def distances_to_decision(cells: PlaneCells) -> tuple[Floats, Floats]:
    """Boundary length, and area, by their distance to the decision boundary in half-sides: sums in `EDGES`, and beyond.

    Nothing where one class has the whole plane.
    """
    decision, half = cells.decision_boundary().segments, float(np.abs(cells.plane.domain).max())
    ends = cells.vertices[cells.edges.vertices[cells.edges.site >= 0]]  # (n, 2, 2)
    if not len(decision) or not len(ends):
        return np.zeros(len(EDGES)), np.zeros(len(EDGES))
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    pieces = np.maximum(1, np.ceil(length / (PIECE * half))).astype(int)
    middles, owner = middles_of_pieces(ends, pieces)
    side = half * (2 * (np.arange(GRID) + 0.5) / GRID - 1)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    lengths = _binned_shares(nearest_segment(middles, decision) / half, (length / pieces)[owner])
    return lengths, _binned_shares(nearest_segment(grid, decision) / half, np.full(len(grid), 4 * half**2 / len(grid)))


def nearest_segment(points: Floats, segments: Floats) -> Floats:
    """The distance of each point (n, 2) from the nearest of the segments (m, 2, 2).

    >>> nearest_segment(np.array([[0.0, 1.0], [3.0, 0.0]]), np.array([[[0.0, 0.0], [2.0, 0.0]]]))
    array([1., 1.])
    """
    nearest = np.full(len(points), np.inf)
    for start, end in segments:
        along = end - start
        place = np.clip((points - start) @ along / (along @ along), 0.0, 1.0)
        nearest = np.minimum(nearest, np.linalg.norm(points - start - place[:, None] * along, axis=1))
    return nearest


def _binned_shares(distances: Floats, weights: Floats) -> Floats:
    bins = np.minimum((distances / EDGES[1]).astype(int), len(EDGES) - 1)
    return np.asarray(np.bincount(bins, weights, minlength=len(EDGES)), np.float64)


def _evidence(settings: MigrationSettings, lab: Lab) -> Evidence:
    found = lab.measured(_measurements(settings))
    steps, lengths, areas = found[0]["step"], *(np.stack([f[name] for f in found]) for name in ("lengths", "areas"))
    curves = {}
    for near in NEAR:
        k = round(near / EDGES[1]) - 1  # the bin that ends there
        curves[f"length within {near}"] = Curve.of(steps, lengths[:, :, k])
        curves[f"crowding within {near}"] = Curve.of(steps, lengths[:, :, k] / areas[:, :, k])
    for name, shares in (("boundaries", lengths), ("area", areas)):
        curves[f"median distance of {name}"] = Curve.of(steps, _medians(shares))
    curves["train accuracy"] = recorded_curve(lab, shared_trainings(settings), "train_accuracy")
    return Evidence(curves, {"lengths": lengths.mean(axis=0), "areas": areas.mean(axis=0)})


def _medians(shares: Floats) -> Floats:
    """The distance within which half of it lies, from cumulative shares (seeds, records, bins + 1)."""
    inside = np.concatenate([np.zeros_like(shares[:, :, :1]), shares[:, :, :-1]], axis=2)
    return np.array([[np.interp(0.5, row, EDGES) if row[-1] >= 0.5 else np.nan for row in rows] for rows in inside])


def _checks(settings: MigrationSettings, evidence: Evidence) -> Sequence[Check]:
    """At the end boundaries crowd along the decision boundary, more than when the points were fitted first."""
    curves = evidence.curves
    crowding, accuracy = curves[f"crowding within {JUDGED}"].runs, curves["train accuracy"].runs
    nearness = curves["median distance of boundaries"].runs / curves["median distance of area"].runs
    fitted = [int((row >= FITTED).argmax()) if (row >= FITTED).any() else len(row) - 1 for row in accuracy]
    before = crowding[np.arange(len(crowding)), fitted]
    where = f"within {JUDGED} half-sides of the decision boundary"
    return [
        at_least(f"share of boundary length {where} over the share of area, at the end", crowding[:, -1], CROWDED),
        at_least("that over its value when the training points were fitted", crowding[:, -1] / before, GAIN),
        at_most("median distance of boundaries over that of area, at the end", nearness[:, -1], NEARER),
    ]


def _draw(findings: Findings) -> "Figure":
    """How boundaries crowd, how far they are, and how they are spread at three moments."""
    curves, arrays = findings.evidence.curves, findings.evidence.arrays
    figure, (left, middle, right) = panels(3, height=2.8)
    draw_curves(
        left,
        {f"within {near}": curves[f"crowding within {near}"] for near in NEAR},
        ylabel="share of length / share of area",
    )
    left.axhline(1.0, color="0.6", lw=0.8, zorder=1)
    named = {name: curves[f"median distance of {name}"] for name in ("boundaries", "area")}
    draw_curves(middle, named, ylabel="median distance / half-side", from_zero=True)
    steps = curves["train accuracy"].x
    for k, colour in zip(sorted({0, len(steps) // 2, len(steps) - 1}), ("0.7", "#2a7fc1", "#7b3fa0"), strict=False):
        right.plot(EDGES[1:], arrays["lengths"][k, :-1], color=colour, label=f"step {steps[k]:,.0f}")
        right.plot(EDGES[1:], arrays["areas"][k, :-1], color=colour, ls=":")
    right.set(xlabel="distance / half-side", ylabel="share within (dotted: of area)", xlim=(0, 0.5), ylim=(0, 1))
    for ax in (left, middle, right):  # lines go everywhere in a panel
        ax.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


FIGURES = (
    Experiment(
        name="x3",
        title="Distance between region boundaries and the decision boundary on exact planes, over training",
        claim="Region boundaries migrate to the decision boundary: late in training more of their length lies near it"
        " than chance would put there, and more than when the training points were fitted first.",
        scales=beyond_scales(MigrationSettings, {"runs": SMOKE, "planes": 2}, {"runs": LAPTOP, "planes": 6}),
        trainings=shared_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "the papers show pictures only: squares around three training images of different classes as PD figure 1"
            " has them, distances in half-sides of the square, the share of area at the same distances as chance",
        ),
    ),
)
