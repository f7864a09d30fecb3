"""HR figures 1 and 4: functions of random networks with two inputs and with one, and their regions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.hr_planes import ORDER
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import draw_graph, panels
from regionscope.experiments.verdicts import at_most, reported, within
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

    def model(self, inputs: int) -> nn.Module:
        options = {"depth": self.depth, "width": self.width, "init": "he", "bias_std": BIAS, "seed": self.seed}
        return new_network("mlp", (inputs,), 1, **options).double()  # type: ignore[arg-type]


Measuring = Callable[[RandomNetwork, Lab], dict[str, np.ndarray]]


def each_seed(function: Measuring) -> Callable[[RandomSettings], list[Measurement]]:
    """What is measured of every network of some settings."""
    return lambda s: [
        Measurement(function, RandomNetwork(s.depth, s.width, s.drawn, s.reach, seed)) for seed in s.seeds
    ]


def evidence_of(function: Measuring, drawn: tuple[str, ...]) -> Callable[[RandomSettings, Lab], Evidence]:
    """Numbers, one row a seed, and of the first seed what is `drawn`."""

    def evidence(settings: RandomSettings, lab: Lab) -> Evidence:
        found = lab.measured(each_seed(function)(settings))
        numbers = {name: np.array([one[name] for one in found]) for name in found[0] if name not in (*drawn, "seconds")}
        return Evidence(arrays=numbers | {name: found[0][name] for name in drawn})

    return evidence


def square_around_zero(radius: float) -> Plane:
    return Plane.coordinates(torch.zeros(2, dtype=torch.float64), radius=radius)


# figure 1


def _random_surface(settings: RandomNetwork, lab: Lab) -> dict[str, np.ndarray]:
    """How many regions there are, how far the function is from affine in each, and its polygons with their heights."""
    model = settings.model(2)
    cells, everywhere = (
        plane_cells(model, square_around_zero(settings.drawn)),
        plane_cells(model, square_around_zero(settings.reach)),
    )
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
    polygons = np.split(in_units(findings.evidence.arrays["corners"]), findings.evidence.arrays["offsets"][1:-1])
    return draw_graph(polygons, xlabel="first input, 10⁻³", ylabel="second input, 10⁻³")


def in_units(values: Floats) -> Floats:
    """In standard deviations of a bias."""
    return np.asarray(values / BIAS)


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
    x, y, layers = in_units(arrays["places"]), in_units(arrays["heights"]), arrays["layers"]
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
        measurements=each_seed(_random_surface),
        evidence=evidence_of(_random_surface, ("corners", "offsets")),
        checks=_surface_checks,
        draw=_draw_surface,
        choices=(*CHOICES, "the rule: the paper's figure is an illustration, its order of units² is that of figure 8"),
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
        measurements=each_seed(_random_function),
        evidence=evidence_of(_random_function, ("places", "heights", "layers")),
        checks=_function_checks,
        draw=_draw_function,
        choices=(
            *CHOICES,
            "the rule: the paper's figure is an illustration, its number of pieces theorem 1's",
        ),
    ),
)
