"""HR figure 3: Telgarsky's sawtooth, many teeth of few units, and what noise on the weights leaves of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import panels
from regionscope.experiments.verdicts import at_most, reported, within
from regionscope.geometry.line_cells import LineCells, line_cells
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEVERELY = 0.5  # of the linear pieces, and of the teeth, are left at most


@dataclass(frozen=True)
class SawtoothSettings:
    """2^power teeth; standard deviations of the noise on all weights and biases, and the one that counts as slight."""

    power: int = 5
    noises: tuple[float, ...] = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
    slight: float = 0.05
    seeds: tuple[int, ...] = tuple(range(20))


@dataclass(frozen=True)
class NoisySawtooth:
    """The draw of one seed, at all sizes of the noise."""

    power: int
    noises: tuple[float, ...]
    seed: int


def sawtooth(power: int) -> nn.Sequential:
    """A network of 3 power + 4 neurons with 2^power teeth on [0, 1]: the tent map, composed with itself (Telgarsky).

    One tent is relu(2 relu(x) - 4 relu(x - 1/2)), three units; power + 1 of them have 2^power peaks. The last neuron is
    the output.

    >>> sawtooth(1)(torch.tensor([[0.0], [0.25], [0.5], [0.75], [1.0]], dtype=torch.float64)).flatten().tolist()
    [0.0, 1.0, 0.0, 1.0, 0.0]
    """
    tents = [layer for _ in range(power + 1) for layer in (nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1), nn.ReLU())]
    model = nn.Sequential(*tents, nn.Linear(1, 1)).double()
    values = {(2, 1): ([[1.0], [1.0]], [0.0, -0.5]), (1, 2): ([[2.0, -4.0]], [0.0]), (1, 1): ([[1.0]], [0.0])}
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            weight, bias = values[layer.out_features, layer.in_features]
            layer.weight.data, layer.bias.data = (torch.tensor(v, dtype=torch.float64) for v in (weight, bias))
    return model


def _neurons(model: nn.Module) -> int:
    return sum(layer.out_features for layer in model.modules() if isinstance(layer, nn.Linear))


def _along(model: nn.Module) -> LineCells:
    ends = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    cells: LineCells = line_cells(model, *ends)
    return cells


def _graph(cells: LineCells) -> Floats:
    """The corners of the function, (n, 2)."""
    return np.column_stack([cells.corners, cells.corner_outputs])


def teeth(heights: Floats) -> int:
    """How often a function with these corners rises and then falls.

    >>> teeth(np.array([0.0, 1.0, 0.0, 2.0, 2.0, 1.0, 1.5]))
    2
    """
    ways = np.sign(np.diff(heights))
    ways = ways[ways != 0]
    return int(((ways[:-1] > 0) & (ways[1:] < 0)).sum())


def _noisy_sawtooth(settings: NoisySawtooth, lab: Lab) -> dict[str, np.ndarray]:
    """Linear pieces and teeth at all sizes of the noise, one draw for all of them, and the graph of each."""
    counts, graphs = [], {}
    for k, noise in enumerate(settings.noises):
        model, generator = sawtooth(settings.power), torch.Generator().manual_seed(settings.seed)
        for parameter in model.parameters():
            parameter.data += noise * torch.randn(parameter.shape, dtype=parameter.dtype, generator=generator)
        cells = _along(model)
        graphs[f"graph{k}"] = _graph(cells)
        counts.append((cells.functional_count(), teeth(graphs[f"graph{k}"][:, 1])))
    return {"counts": np.array(counts), **graphs}


def _measurements(settings: SawtoothSettings) -> list[Measurement]:
    return [
        Measurement(_noisy_sawtooth, NoisySawtooth(settings.power, settings.noises, seed)) for seed in settings.seeds
    ]


def _evidence(settings: SawtoothSettings, lab: Lab) -> Evidence:
    found = lab.measured(_measurements(settings))
    counts = np.stack([one["counts"] for one in found])  # (seeds, noises, 2)
    model = sawtooth(settings.power)
    cells, slight = _along(model), settings.noises.index(settings.slight)
    graph = _graph(cells)
    exact = np.array([cells.functional_count(), teeth(graph[:, 1]), _neurons(model)])
    names = ("linear pieces", "teeth")
    curves = {name: Curve.of(settings.noises, counts[:, :, k] / exact[k]) for k, name in enumerate(names)}
    arrays = {"counts": counts[:, slight], "exact": exact, "graph": graph, "noisy": found[0][f"graph{slight}"]}
    return Evidence(curves, arrays)


def _checks(settings: SawtoothSettings, evidence: Evidence) -> Sequence[Check]:
    """2^n teeth of 3n + 4 neurons; of pieces and teeth at most half are left."""
    counts, exact, n = evidence.arrays["counts"], evidence.arrays["exact"], settings.power
    noise = f"with noise of {settings.slight:g}"
    return [
        within("teeth without noise", exact[1], 2**n, 2**n, paper=f"2^{n}"),
        at_most("neurons", exact[2], 3 * n + 4, paper=f"3·{n} + 4"),
        at_most(f"share of linear pieces left {noise}", counts[:, 0] / exact[0], SEVERELY, paper="severely reduced"),
        at_most(f"share of teeth left {noise}", counts[:, 1] / exact[1], SEVERELY, paper="ruined"),
        *(reported(f"{what} without noise", exact[k]) for k, what in enumerate(("linear pieces", "teeth"))),
        *(reported(f"{what} {noise}", counts[:, k]) for k, what in enumerate(("linear pieces", "teeth"))),
        *(
            reported(f"share of {what} left with noise of {curve.x[k]:g}", curve.runs[:, k])
            for what, curve in evidence.curves.items()
            for k in (0, -1)
        ),
    ]


def _draw(findings: Findings) -> "Figure":
    """The sawtooth, a noisy one, and what is left on average."""
    from matplotlib.ticker import NullFormatter

    from regionscope.plots.curves import curve_line
    from regionscope.plots.style import curve_styles

    arrays, curves = findings.evidence.arrays, findings.evidence.curves
    figure, (exact, noisy, left) = panels(3, height=2.3)
    for ax, name in ((exact, "graph"), (noisy, "noisy")):
        ax.plot(*arrays[name].T, color="0.2", lw=0.8)
        ax.set(xlim=(0, 1), xlabel="input", title=f"{teeth(arrays[name][:, 1])} teeth")
    exact.set_ylabel("output")
    for name, style in curve_styles(curves).items():
        curve_line(curves[name].x, curves[name].mean, curves[name].stderr, name, style, left)
    left.set(xscale="log", ylim=(0, None), xlabel="noise", ylabel="share left")
    left.xaxis.set_minor_formatter(NullFormatter())
    left.axvline(findings.settings["slight"], color="0.6", lw=0.8, zorder=1)
    left.legend(frameon=False, fontsize="small")
    return figure


FIGURES = (
    Experiment(
        name="hr3",
        title="Telgarsky's sawtooth with 2^n teeth of 3n + 4 neurons, and the same with noise on weights and biases",
        claim="A sawtooth with 2^n teeth takes 3n + 4 neurons, but slight noise on weights and biases severely reduces"
        " the number of its linear pieces.",
        scales={
            "smoke": SawtoothSettings(power=3, noises=(0.01, 0.05), seeds=(0, 1, 2)),
            "laptop": SawtoothSettings(),
            "paper": SawtoothSettings(),
        },
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "n, normal noise of standard deviation 0.05, where weights are 1, 2 and 4, and 20 draws of it are ours",
            "pieces are counted on [0, 1], neighbours with one slope joined; severely is by half or more",
        ),
    ),
)
