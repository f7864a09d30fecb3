"""PD figures 14 and 17: what crossings tell, against exact counts of regions, and around a random network's origin."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from regionscope.experiments.curves import curve_of, measurement_at_records
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pd_mnist import (
    CLEAR,
    DIRECTIONS,
    LAPTOP,
    SMOKE,
    PartitionSettings,
    partition_trainings,
    too_short,
)
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import at_most, correlates, falls_again, monotone, reported, rises_after
from regionscope.measures.crossings import boundary_crossings
from regionscope.training.models import new_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOGETHER = 0.7  # rank correlation over training of crossings and counts
SATURATED = 0.5  # the last doubling of P adds at most this share of what the first adds
INPUTS = 784
FURTHEST = 10.0  # entries of the vector that the neighbourhood is shifted to
KINDS = {"crossings": "boundary_crossings", "regions": "local_region_count"}


# against exact counts


def _measurements_at(settings: PartitionSettings, radius: float) -> list[Measurement]:
    measures = {KINDS["crossings"]: {"radius": radius, "directions": DIRECTIONS}, KINDS["regions"]: {"radius": radius}}
    return [
        measurement_at_records(t, measures, probes=("train",), points=settings.points)
        for t in partition_trainings(settings)
    ]


def _count_measurements(settings: PartitionSettings) -> list[Measurement]:
    return [measurement for radius in settings.radii for measurement in _measurements_at(settings, radius)]


def _count_evidence(settings: PartitionSettings, lab: Lab) -> Evidence:
    curves: dict[str, Curve] = {}
    for radius in settings.radii:
        found = lab.measured(_measurements_at(settings, radius))
        curves |= {f"{kind}, r = {radius:g}": curve_of(found, f"train/{column}") for kind, column in KINDS.items()}
    return Evidence(curves)


def _count_checks(settings: PartitionSettings, evidence: Evidence) -> Sequence[Check]:
    """Counts beyond the one region that is always there rise and fall with crossings."""
    if short := too_short(settings, "crossings and regions over training"):
        return short
    checks = []
    for radius in settings.radii:
        at = f"r = {radius:g}"
        crossings, regions = evidence.curves[f"crossings, {at}"], evidence.curves[f"regions, {at}"]
        beyond = Curve(regions.x, regions.runs - 1)
        checks += [
            correlates(
                f"crossings and regions, {at}", crossings, regions, at_least_r=TOGETHER, ranks=True, paper="similar"
            ),
            rises_after(f"regions beyond one, {at}", beyond, by=CLEAR, paper="double descent"),
            falls_again(f"regions beyond one, {at}", beyond, by=CLEAR, paper="double descent"),
            rises_after(f"crossings, {at}", crossings, by=CLEAR, paper="double descent"),
            falls_again(f"crossings, {at}", crossings, by=CLEAR, paper="double descent"),
        ]  # fmt: skip
    return checks


def _draw_counts(findings: Findings) -> "Figure":
    """Exact counts and crossings side by side, a row for each radius."""
    curves = findings.evidence.curves
    figure, axes = panels(2, len(curves) // 2)
    how = {"crossings": "P = 25", "regions": "exact, on a plane"}
    for ax, (name, curve) in zip(axes, curves.items(), strict=True):
        kind, radius = name.split(", ")
        draw_curves(ax, {"train": curve}, ylabel=kind)
        ax.set_title(f"{radius}, {how[kind]}", fontsize="medium")
    return figure


# away from the origin


@dataclass(frozen=True)
class ShiftSettings:
    """A random network, and the neighbourhoods that are shifted: of every P at one radius, of every radius at one P."""

    depth: int = 18  # linear layers
    width: int = 100
    directions: tuple[int, ...] = (2, 5, 10, 20, 40, 80, 160)
    radius: float = 5.0
    radii: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0, 10.0)
    usual_directions: int = 20
    shifts: int = 21
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Shift:
    """The shift in one network, which its seed draws together with the directions."""

    settings: ShiftSettings
    seed: int


def _shift_measurements(settings: ShiftSettings) -> list[Measurement]:
    return [Measurement(_shifted_crossings, Shift(replace(settings, seeds=()), seed)) for seed in settings.seeds]


def _shifted_crossings(shift: Shift, lab: Lab) -> dict[str, np.ndarray]:
    """Crossings at the shifted points by P (directions, shifts) and by radius (radii, shifts)."""
    settings = shift.settings
    network = new_network(
        "mlp", (INPUTS,), 10, depth=settings.depth - 1, width=settings.width, activation="leaky_relu", seed=shift.seed
    ).double()
    points = torch.linspace(0, FURTHEST, settings.shifts, dtype=torch.float64)[:, None].expand(-1, INPUTS)

    def counted(directions: int, radii: Sequence[float]) -> list[np.ndarray]:
        generator = torch.Generator().manual_seed(shift.seed)
        found = boundary_crossings(network, points, radius=radii, directions=directions, generator=generator)
        return [crossings.per_point for crossings in found]

    return {
        "directions": np.stack([counted(P, [settings.radius])[0] for P in settings.directions]),
        "radii": np.stack(counted(settings.usual_directions, settings.radii)),
    }


def _shift_evidence(settings: ShiftSettings, lab: Lab) -> Evidence:
    found = lab.measured(_shift_measurements(settings))
    x = np.linspace(0, FURTHEST, settings.shifts)
    curves = {
        name: Curve.of(x, [seed[kind][k] for seed in found])
        for kind in ("directions", "radii")
        for k, name in enumerate(_shift_names(settings, kind))
    }
    return Evidence(curves)


def _shift_names(settings: ShiftSettings, kind: str) -> list[str]:
    if kind == "directions":
        return [f"P = {P}, r = {settings.radius:g}" for P in settings.directions]
    return [f"r = {radius:g}, P = {settings.usual_directions}" for radius in settings.radii]


def _shift_checks(settings: ShiftSettings, evidence: Evidence) -> Sequence[Check]:
    """Crossings fall with the shift everywhere, saturate in P, rise with r and then vary less."""
    curves = evidence.curves
    by_P, by_r = (
        np.stack([curves[name].runs for name in _shift_names(settings, kind)], axis=1)
        for kind in ("directions", "radii")
    )  # (seeds, values, shifts)
    falls = [
        monotone(name, list(curve.x), curve.runs, rising=False, paper="falls with the shift")
        for name, curve in curves.items()
    ]
    gains = np.diff(by_P.mean(axis=2), axis=1) / np.diff(np.log2(settings.directions))
    usual = settings.directions.index(settings.usual_directions)
    variation = (by_r[:, :, 0] - by_r[:, :, -1]) / by_r[:, :, 0]
    return [
        *falls,
        at_most(
            "crossings that the last doubling of P adds over those of the first", gains[:, -1] / gains[:, 0], SATURATED,
            paper="saturates",
        ),
        reported(
            f"crossings with P = {settings.usual_directions} over those with {settings.directions[-1]}",
            by_P[:, usual].mean(axis=1) / by_P[:, -1].mean(axis=1), paper="good enough",
        ),
        monotone("mean over the shifts, by r", settings.radii, by_r.mean(axis=2), rising=True, paper="increases"),
        monotone("share lost over the shifts, by r", settings.radii, variation, rising=False, paper="less variation"),
    ]  # fmt: skip


def _draw_shifts(findings: Findings) -> "Figure":
    """By P on the left, by r on the right."""
    figure, axes = panels(2, height=3.2)
    for ax, first in zip(axes, "Pr", strict=True):
        shown = {name: c for name, c in findings.evidence.curves.items() if name.startswith(f"{first} =")}
        draw_curves(ax, {name.split(", ")[0]: c for name, c in shown.items()}, ylabel="crossings", from_zero=True)
        ax.set(xlabel="entries of the centre", xscale="linear", title=next(iter(shown)).split(", ")[1])
    return figure


FIGURES = (
    Experiment(
        name="pd14",
        title="Crossings against exact counts of regions on planes, MNIST perceptron of depth 3 and width 200",
        claim="Crossings in 25 dimensions and exact numbers of regions in two follow the same trend over training, with"
        " a double descent.",
        scales={
            "smoke": replace(SMOKE, depths=(3,), radii=(0.001, 0.05)),
            "laptop": replace(LAPTOP, depths=(3,), radii=(0.001, 0.05), points=500),
            "paper": PartitionSettings(depths=(3,), radii=(0.001, 0.05), steps=100_000, records=21, points=500),
        },
        trainings=partition_trainings,
        measurements=_count_measurements,
        evidence=_count_evidence,
        checks=_count_checks,
        draw=_draw_counts,
        choices=(
            "a square of half-side r in a random direction around each point, the same ones at all steps; r = 0.05"
            " beside the paper's 0.001, at which hardly any neighbourhood meets a boundary",
        ),
    ),
    Experiment(
        name="pd17",
        title="Crossings of a random LeakyReLU perceptron, depth 18 and width 100, away from the origin",
        claim="Crossings fall as the neighbourhood is shifted from the origin, saturate in its dimension P, and grow"
        " with its radius r, while they vary less with the shift.",
        scales={
            "smoke": ShiftSettings(
                depth=5, width=20, directions=(2, 5, 10), usual_directions=5, radii=(1.0, 5.0), shifts=5, seeds=(0, 1)
            ),
            "laptop": ShiftSettings(),
            "paper": ShiftSettings(),
        },
        measurements=_shift_measurements,
        evidence=_shift_evidence,
        checks=_shift_checks,
        draw=_draw_shifts,
        choices=("PyTorch's initial weights and biases; the values of P and r but P = 20 and r = 5; five networks",),
    ),
)
