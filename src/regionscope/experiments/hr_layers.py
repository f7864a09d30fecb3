"""HR figure 2: regions after each layer of a random network with two inputs, and where boundaries bend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.hr_random import (
    CHOICES,
    RandomNetwork,
    RandomSettings,
    each_seed,
    evidence_of,
    in_units,
    square_around_zero,
)
from regionscope.experiments.lab import Lab
from regionscope.experiments.pictures import panels
from regionscope.experiments.verdicts import at_least, at_most, reported
from regionscope.geometry.plane_cells import PlaneCells, plane_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BENT = 1e-6  # sine of an angle, above which a boundary changes direction
SHORT = 1e-6  # of the square, below which rounding turns an edge
NEARLY_ALL = 0.99


def _random_layers(settings: RandomNetwork, lab: Lab) -> dict[str, np.ndarray]:
    """How many regions there are after each layer, which shares of boundaries bend, and all edges with their layers."""
    model, layers = settings.model(2), range(1, settings.depth + 1)
    parts = [plane_cells(model, square_around_zero(settings.drawn), up_to_layer=k) for k in layers]
    layer, earlier, bent = boundary_turns(parts[-1])
    inner = parts[-1].edges.site >= 0
    return {
        "regions": np.array([len(cells) for cells in parts]),
        "bent": np.array([_share(bent[layer == k]) for k in layers]),
        "bent_at_earlier": np.array([_share(bent[(layer == k) & earlier]) for k in layers]),
        "bent_elsewhere": np.array(_share(bent[~earlier])),
        "segments": parts[-1].vertices[parts[-1].edges.vertices[inner]], "layer": parts[-1].edges.layer[inner],
    }  # fmt: skip


def _share(chosen: np.ndarray) -> float:
    return float(chosen.mean()) if len(chosen) else np.nan


def boundary_turns(cells: PlaneCells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Wherever two edges of one unit meet: its layer, whether a boundary of an earlier layer is there, and if it bends.

    Edges that are so short that rounding turns them are left out.
    """
    edges, inner = cells.edges, cells.edges.site >= 0
    earliest = np.full(len(cells.vertices), np.iinfo(np.int32).max, np.int32)  # layer at each vertex
    np.minimum.at(earliest, edges.vertices[inner].ravel(), np.repeat(edges.layer[inner], 2))
    kept = np.flatnonzero(inner & (edges.length > SHORT * np.ptp(cells.plane.domain[:, 0])))
    _, unit = np.unique(np.column_stack([edges.site, edges.unit])[kept], axis=0, return_inverse=True)
    vertex, unit, layer = edges.vertices[kept].ravel(), np.repeat(unit, 2), np.repeat(edges.layer[kept], 2)
    across = cells.vertices[edges.vertices[kept, ::-1].ravel()] - cells.vertices[vertex]
    away = across / np.repeat(edges.length[kept], 2)[:, None]  # from the vertex along the edge
    order = np.lexsort((unit, vertex))
    _, start, count = np.unique(np.column_stack([vertex, unit])[order], axis=0, return_index=True, return_counts=True)
    one, other = order[start[count == 2]], order[start[count == 2] + 1]
    sines = away[one, 0] * away[other, 1] - away[one, 1] * away[other, 0]
    return layer[one], earliest[vertex[one]] < layer[one], np.abs(sines) > BENT


def _layer_checks(settings: RandomSettings, evidence: Evidence) -> Sequence[Check]:
    """Boundaries bend where they cross those of earlier layers and nowhere else: those of the first are straight."""
    arrays, what = evidence.arrays, "share of meeting edges of one unit that change direction"
    bends = [
        at_least(
            f"layer {k + 1}, where it meets an earlier one: {what}", arrays["bent_at_earlier"][:, k], NEARLY_ALL,
            paper="bent",
        )
        for k in range(1, settings.depth)
    ]  # fmt: skip
    return [
        at_most(f"layer 1: {what}", arrays["bent"][:, 0], 0.0, paper="straight"),
        *bends,
        at_most(f"where no earlier layer is: {what}", arrays["bent_elsewhere"], 0.0),
        *(reported(f"layer {k + 1}: {what}", arrays["bent"][:, k]) for k in range(1, settings.depth)),
        *(reported(f"regions after layer {k + 1}", arrays["regions"][:, k]) for k in range(settings.depth)),
    ]


def _draw_layers(findings: Findings) -> "Figure":
    from matplotlib.collections import LineCollection

    from regionscope.plots.style import add_shared_legend, layer_colours, layer_handles

    arrays = findings.evidence.arrays
    segments, layer, counts = in_units(arrays["segments"]), arrays["layer"], arrays["regions"][0]
    side, depth = np.abs(segments).max(), len(counts)
    figure, axes = panels(depth, height=2.9, sharey=True)
    for after, (ax, count) in enumerate(zip(axes, counts, strict=True), start=1):
        for k in range(after, 0, -1):
            own = LineCollection(list(segments[layer == k]), colors=[layer_colours(depth)[k - 1]], lw=1.1 - 0.2 * k)
            ax.add_collection(own)
        ax.set(xlim=(-side, side), ylim=(-side, side), aspect="equal", xlabel="first input, 10⁻³")
        ax.set_title(f"after layer {after}: {count:,} regions", fontsize="medium")
    axes[0].set_ylabel("second input, 10⁻³")
    add_shared_legend(figure, layer_handles(depth))
    return figure


FIGURES = (
    Experiment(
        name="hr2",
        title="Regions after one, two and three layers of a random network with two inputs",
        claim="Boundaries of the first layer are straight; those of later layers bend where they meet earlier ones.",
        scales={
            "smoke": RandomSettings(width=5, seeds=(0, 1)),
            "laptop": RandomSettings(width=8),
            "paper": RandomSettings(width=8),
        },
        measurements=each_seed(_random_layers),
        evidence=evidence_of(_random_layers, ("segments", "layer")),
        checks=_layer_checks,
        draw=_draw_layers,
        choices=(*CHOICES, "the rule: how often two edges of one unit that meet differ in direction"),
    ),
)
