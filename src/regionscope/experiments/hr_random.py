"""HR figures 1, 2 and 4: regions and functions of random networks with two inputs, and with one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.hr_planes import ORDER
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import WIDTH, panels
from regionscope.experiments.verdicts import at_least, at_most, reported, within
from regionscope.geometry.line_cells import line_cells
from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import Plane
from regionscope.training.models import new_network
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BIAS = 1e-3  # standard deviation of biases; weights are He normal
AFFINE = 1e-9  # of the range of the function, by which it may leave an affine map through rounding
PER_UNIT = 2.0  # regions of a function of one input are within this factor of the units
BENT = 1e-6  # sine of an angle, above which a boundary changes direction
SHORT = 1e-6  # of the square, below which rounding turns an edge
NEARLY_ALL = 0.99


@dataclass(frozen=True)
class RandomSettings:
    """Hidden layers of so many units each; what is drawn and what is counted, from -reach to reach in every input."""

    depth: int = 3
    width: int = 16
    drawn: float = 5e-3
    reach: float = 1.0
    seeds: tuple[int, ...] = tuple(range(10))


@dataclass(frozen=True)
class RandomNetwork:
    """One of them."""

    depth: int
    width: int
    drawn: float
    reach: float
    seed: int

    @property
    def units(self) -> int:
        return self.depth * self.width

    def model(self, inputs: int) -> nn.Module:
        options = {"depth": self.depth, "width": self.width, "init": "he", "bias_std": BIAS, "seed": self.seed}
        return new_network("mlp", (inputs,), 1, **options).double()  # type: ignore[arg-type]


Measuring = Callable[[RandomNetwork, Lab], dict[str, np.ndarray]]


def _each_seed(function: Measuring) -> Callable[[RandomSettings], list[Measurement]]:
    """What is measured of every network of some settings."""
    return lambda s: [
        Measurement(function, RandomNetwork(s.depth, s.width, s.drawn, s.reach, seed)) for seed in s.seeds
    ]


def _collected(function: Measuring, drawn: tuple[str, ...]) -> Callable[[RandomSettings, Lab], Evidence]:
    """Numbers, one row a seed, and of the first seed what is `drawn`."""

    def evidence(settings: RandomSettings, lab: Lab) -> Evidence:
        found = lab.measured(_each_seed(function)(settings))
        numbers = {name: np.array([one[name] for one in found]) for name in found[0] if name not in (*drawn, "seconds")}
        return Evidence(arrays=numbers | {name: found[0][name] for name in drawn})

    return evidence


def _square(radius: float) -> Plane:
    return Plane.coordinates(torch.zeros(2, dtype=torch.float64), radius=radius)


# figure 1


def _random_surface(settings: RandomNetwork, lab: Lab) -> dict[str, np.ndarray]:
    """How many regions there are, how far the function is from affine in each, and its polygons with their heights."""
    model = settings.model(2)
    cells, everywhere = plane_cells(model, _square(settings.drawn)), plane_cells(model, _square(settings.reach))
    assert cells.outputs is not None
    return {
        "regions": np.array(len(everywhere)), "functional": np.array(everywhere.functional_regions().max() + 1),
        "bent": np.array(_largest_bend(cells, model, settings.seed)),
        "corners": np.column_stack([cells.vertices, cells.outputs])[cells.corners], "offsets": cells.offsets,
    }  # fmt: skip


def _largest_bend(cells: PlaneCells, model: nn.Module, seed: int) -> float:
    """How far the model is from the affine map of a cell at a random point there, as a share of its range."""
    weights = np.random.default_rng(seed).exponential(size=len(cells.corners))
    sums = np.add.reduceat(weights[:, None] * cells.vertices[cells.corners], cells.offsets[:-1])
    inside = sums / np.add.reduceat(weights, cells.offsets[:-1])[:, None]
    slopes, constants = cells.affine_maps()
    told = np.einsum("nkd,nd->nk", slopes, inside) + constants
    with torch.no_grad():
        values = model(cells.plane.points(inside)).numpy()
    return float(np.abs(values - told).max() / np.ptp(values))


def _surface_checks(settings: RandomSettings, evidence: Evidence) -> Sequence[Check]:
    arrays, units = evidence.arrays, settings.depth * settings.width
    return [
        at_most("distance from an affine map in a region, share of the range", arrays["bent"], AFFINE, paper="linear"),
        within("regions / units²", arrays["regions"] / units**2, 1 / ORDER, ORDER, paper="of order 1"),
        reported("regions", arrays["regions"]),
        reported("share left with neighbours of one map joined", arrays["functional"] / arrays["regions"]),
    ]  # fmt: skip


def _draw_surface(findings: Findings) -> "Figure":
    """The regions in the plane, and above each of them the function, in the same colour."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import PolyCollection
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

    polygons = np.split(_in_units(findings.evidence.arrays["corners"]), findings.evidence.arrays["offsets"][1:-1])
    colours = np.random.default_rng(1).uniform(0.45, 1.0, (len(polygons), 3))
    figure = plt.figure(figsize=(WIDTH, 3.1), layout="constrained")
    flat = figure.add_subplot(1, 2, 1)
    high: Any = figure.add_subplot(1, 2, 2, projection="3d")
    high.set_box_aspect(None, zoom=1.2)
    flat.add_collection(PolyCollection([p[:, :2] for p in polygons], facecolor=colours, edgecolor="0.25", lw=0.25))
    high.add_collection3d(Poly3DCollection(polygons, facecolor=colours, edgecolor="0.25", lw=0.15))
    every = np.concatenate(polygons)
    low, top = every.min(axis=0), every.max(axis=0)
    flat.set(xlim=(low[0], top[0]), ylim=(low[1], top[1]), aspect="equal", title=f"{len(polygons):,} regions")
    flat.set(xlabel="first input, 10⁻³", ylabel="second input, 10⁻³")
    high.set(xlim=(low[0], top[0]), ylim=(low[1], top[1]), zlim=(low[2], top[2]), title="the function over them")
    high.tick_params(labelsize="small", pad=-3)
    return figure


def _in_units(values: Floats) -> Floats:
    """In standard deviations of a bias."""
    return np.asarray(values / BIAS)


# figure 2


def _random_layers(settings: RandomNetwork, lab: Lab) -> dict[str, np.ndarray]:
    """How many regions there are after each layer, which shares of boundaries bend, and all edges with their layers."""
    model, layers = settings.model(2), range(1, settings.depth + 1)
    parts = [plane_cells(model, _square(settings.drawn), up_to_layer=k) for k in layers]
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
    inner = np.flatnonzero(cells.edges.site >= 0)
    ends, layer = cells.edges.vertices[inner], cells.edges.layer[inner]
    first = np.full(len(cells.vertices), np.iinfo(np.int32).max, np.int32)  # the earliest layer at each vertex
    np.minimum.at(first, ends.ravel(), np.repeat(layer, 2))
    long = cells.edges.length[inner] > SHORT * np.ptp(cells.plane.domain[:, 0])
    ends, layer = ends[long], np.repeat(layer[long], 2)
    _, owner = np.unique(
        np.column_stack([cells.edges.site[inner], cells.edges.unit[inner]])[long], axis=0, return_inverse=True
    )
    vertex, who = ends.ravel(), np.repeat(owner, 2)
    away = (cells.vertices[ends[:, ::-1].ravel()] - cells.vertices[vertex]) / np.repeat(
        cells.edges.length[inner][long], 2
    )[:, None]
    order = np.lexsort((who, vertex))
    _, start, count = np.unique(np.column_stack([vertex, who])[order], axis=0, return_index=True, return_counts=True)
    one, other = order[start[count == 2]], order[start[count == 2] + 1]
    sines = away[one, 0] * away[other, 1] - away[one, 1] * away[other, 0]
    return layer[one], first[vertex[one]] < layer[one], np.abs(sines) > BENT


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

    from regionscope.plots.style import layer_colours, layer_handles

    arrays = findings.evidence.arrays
    segments, layer, counts = _in_units(arrays["segments"]), arrays["layer"], arrays["regions"][0]
    side, depth = np.abs(segments).max(), len(counts)
    figure, axes = panels(depth, height=2.6, sharey=True)
    for after, (ax, count) in enumerate(zip(axes, counts, strict=True), start=1):
        for k in range(after, 0, -1):
            own = LineCollection(list(segments[layer == k]), colors=[layer_colours(depth)[k - 1]], lw=1.1 - 0.2 * k)
            ax.add_collection(own)
        ax.set(xlim=(-side, side), ylim=(-side, side), aspect="equal", xlabel="first input, 10⁻³")
        ax.set_title(f"after layer {after}: {count:,} regions", fontsize="medium")
    axes[0].set_ylabel("second input, 10⁻³")
    figure.legend(
        handles=layer_handles(depth), loc="outside lower center", ncols=depth, frameon=False, fontsize="small"
    )
    return figure


# figure 4


def _random_function(settings: RandomNetwork, lab: Lab) -> dict[str, np.ndarray]:
    """How many regions there are, how far the function is from a line in each, and its corners in what is drawn."""
    model, draws = settings.model(1), np.random.default_rng(settings.seed)
    ends = torch.tensor([[settings.reach], [settings.drawn]], dtype=torch.float64)
    everywhere, cells = line_cells(model, -ends, ends)
    places, heights = cells.corners, cells.corner_outputs[:, 0]
    between = np.sort(draws.uniform(size=20 * len(cells)))
    with torch.no_grad():
        values = model(cells.at(between)).numpy()[:, 0]
    return {
        "regions": np.array(len(everywhere)), "functional": np.array(everywhere.functional_count()),
        "bent": np.array(np.abs(values - np.interp(between, places, heights)).max() / np.ptp(heights)),
        "places": cells.at(places).numpy()[:, 0], "heights": heights, "layers": cells.layers,
    }  # fmt: skip


def _function_checks(settings: RandomSettings, evidence: Evidence) -> Sequence[Check]:
    arrays, units = evidence.arrays, settings.depth * settings.width
    return [
        at_most("distance from a line in a region, share of the range", arrays["bent"], AFFINE, paper="linear"),
        within("regions / units", arrays["regions"] / units, 1 / PER_UNIT, PER_UNIT, paper="of order 1"),
        reported("regions", arrays["regions"], paper=f"at most 2^{units} for any weights"),
        reported("regions, neighbours with one map joined, / units", arrays["functional"] / units),
    ]


def _draw_function(findings: Findings) -> "Figure":
    from regionscope.plots.style import layer_colours

    arrays = findings.evidence.arrays
    x, y, layers = _in_units(arrays["places"]), _in_units(arrays["heights"]), arrays["layers"]
    figure, (ax,) = panels(1, height=2.8)
    ax.plot(x, y, color="0.3", lw=1.0, zorder=1)
    for k, colour in enumerate(layer_colours(layers.max()), start=1):
        mine = np.flatnonzero(layers == k) + 1  # the first and last corners are the ends
        ax.scatter(x[mine], y[mine], s=9, color=colour, zorder=2, label=f"breakpoint of layer {k}")
    ax.set(xlim=(x[0], x[-1]), xlabel="input, 10⁻³", ylabel="output, 10⁻³")
    ax.legend(frameon=False, fontsize="small")
    return figure


CHOICES = (
    "depth and width are ours, and biases N(0, 10^-6) as in the paper's experiments: it prints no settings here",
)
FIGURES = (
    Experiment(
        name="hr1",
        title="Regions of a random network with two inputs, and its function over them",
        claim="A ReLU network of two inputs is linear on each region of the plane, of which there are of the order of"
        " units².",
        scales={
            "smoke": RandomSettings(depth=2, width=6, seeds=(0, 1)),
            "laptop": RandomSettings(),
            "paper": RandomSettings(),
        },
        measurements=_each_seed(_random_surface),
        evidence=_collected(_random_surface, ("corners", "offsets")),
        checks=_surface_checks,
        draw=_draw_surface,
        choices=(*CHOICES, "the rule: the paper's figure is an illustration, its order of units² is that of figure 8"),
    ),
    Experiment(
        name="hr2",
        title="Regions after one, two and three layers of a random network with two inputs",
        claim="Boundaries of the first layer are straight; those of later layers bend where they meet earlier ones.",
        scales={
            "smoke": RandomSettings(width=5, seeds=(0, 1)),
            "laptop": RandomSettings(width=8),
            "paper": RandomSettings(width=8),
        },
        measurements=_each_seed(_random_layers),
        evidence=_collected(_random_layers, ("segments", "layer")),
        checks=_layer_checks,
        draw=_draw_layers,
        choices=(*CHOICES, "the rule: how often two edges of one unit that meet differ in direction"),
    ),
    Experiment(
        name="hr4",
        title="The function of a random network with one input, and its breakpoints",
        claim="A ReLU network of one input is piecewise linear, with about as many pieces as units.",
        scales={
            "smoke": RandomSettings(depth=2, width=8, seeds=(0, 1)),
            "laptop": RandomSettings(),
            "paper": RandomSettings(),
        },
        measurements=_each_seed(_random_function),
        evidence=_collected(_random_function, ("places", "heights", "layers")),
        checks=_function_checks,
        draw=_draw_function,
        choices=(
            *CHOICES,
            "the rule: the paper's figure is an illustration, its number of pieces theorem 1's",
        ),
    ),
)
