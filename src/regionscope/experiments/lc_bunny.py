"""LC figures 1, 4, 5 and 6: the density of local complexity beside the exact regions of a picture of a bunny."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import panels
from regionscope.experiments.verdicts import at_least, correlation, monotone, reported
from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import Plane
from regionscope.measures.complexity import complexity_density
from regionscope.tracing.network import Network
from regionscope.tracing.trace import trace
from regionscope.training.config import Training, new_model
from regionscope.training.loop import run_model
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLLOWS = 0.7  # rank correlation from which on one map follows another
RESEMBLES = 0.5  # and from which on it resembles it


@dataclass(frozen=True)
class BunnySettings:
    """A perceptron on [0, 1]² that learns a grey picture; with no steps it is left as it was drawn.

    f is taken at `grid` × `grid` points and compared with the length of boundaries in pixels of `block` × `block` of
    them.
    """

    depth: int = 3
    width: int = 64
    bias_std: float = 0.0
    steps: int = 200_000
    grid: int = 128
    block: int = 4
    draws: int = 64
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class DensityMap:
    """How f is estimated on the grid."""

    settings: BunnySettings
    seed: int
    sigma: float = 0.05
    density: bool = True
    weight_noise: bool = False


def _bunny_training(settings: BunnySettings, seed: int) -> Training:
    """Mean squared error, Adam with 10^-4 (LC B.1)."""
    return Training(
        dataset="bunny", depth=settings.depth, width=settings.width, init="he", bias_std=settings.bias_std, loss="mse",
        optimiser="adam", lr=1e-4, weight_decay=0.0, batch_size=256, steps=max(1, settings.steps), records=2,
        measures=(), seed=seed,
    )  # fmt: skip


def _trainings(settings: BunnySettings) -> list[Training]:
    return [_bunny_training(settings, seed) for seed in settings.seeds] if settings.steps else []


def _network(settings: BunnySettings, seed: int, lab: Lab) -> Network:
    training = _bunny_training(settings, seed)
    model = run_model(lab.run(training)) if settings.steps else new_model(training, (2,), 1)
    return trace(model.double(), torch.zeros(1, 2, dtype=torch.float64))


# what is measured


def _bunny_density(asked: DensityMap, lab: Lab) -> dict[str, np.ndarray]:
    """f at the centres of a grid on [0, 1]², (grid, grid), the second coordinate first."""
    n = asked.settings.grid
    centres = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    points = torch.cartesian_prod(centres, centres).flip(1)
    f = complexity_density(
        _network(asked.settings, asked.seed, lab), points, sigma=asked.sigma, draws=asked.settings.draws,
        density=asked.density, weight_noise=asked.weight_noise, generator=torch.Generator().manual_seed(asked.seed),
    )  # fmt: skip
    return {"f": f.per_point.reshape(n, n)}


@dataclass(frozen=True)
class ExactMap:
    """Whose exact regions are found."""

    settings: BunnySettings
    seed: int


def _bunny_regions(asked: ExactMap, lab: Lab) -> dict[str, np.ndarray]:
    """The cells of [0, 1]² as polygons, and the length of the boundaries between them in each pixel."""
    plane = Plane.coordinates(torch.full((2,), 0.5), radius=0.5)
    cells = plane_cells(_network(asked.settings, asked.seed, lab), plane)
    inner = cells.edges.layer > 0
    ends = cells.vertices[cells.edges.vertices[inner]] + 0.5  # (edges, 2, 2)
    return {
        "length": length_in_pixels(ends, asked.settings.grid // asked.settings.block), **_polygons(cells),
    }  # fmt: skip


def _polygons(cells: PlaneCells) -> dict[str, np.ndarray]:
    return {
        "vertices": np.asarray(cells.vertices + 0.5, np.float32), "corners": cells.corners, "offsets": cells.offsets,
    }  # fmt: skip


def length_in_pixels(segments: Floats, pixels: int) -> Floats:
    """The length of segments (n, 2, 2) inside each pixel of [0, 1]², (pixels, pixels), the second coordinate first.

    Each is cut where it crosses the lines between pixels; a piece belongs to the pixel of its middle.

    >>> length_in_pixels(np.array([[[0.0, 0.25], [1.0, 0.25]]]), 2)
    array([[0.5, 0.5],
           [0. , 0. ]])
    """
    lines = np.arange(1, pixels) / pixels
    start, way = segments[:, 0], segments[:, 1] - segments[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = (lines[:, None] - start[:, None]) / way[:, None]  # (n, lines, 2)
    inside = np.where((crossings > 0) & (crossings < 1), crossings, 1.0).reshape(len(start), 2 * len(lines))
    cuts = np.sort(np.concatenate([np.zeros((len(start), 1)), inside, np.ones((len(start), 1))], axis=1), axis=1)
    middles = start[:, None] + (cuts[:, 1:, None] + cuts[:, :-1, None]) / 2 * way[:, None]  # (n, pieces, 2)
    column, row = np.clip((middles * pixels).astype(int), 0, pixels - 1).transpose(2, 0, 1)
    lengths = np.diff(cuts, axis=1) * np.linalg.norm(way, axis=1)[:, None]
    found = np.bincount((row * pixels + column).ravel(), lengths.ravel(), minlength=pixels * pixels)
    return np.asarray(found, np.float64).reshape(pixels, pixels)


def in_blocks(f: Floats, block: int) -> Floats:
    """The mean of a map (n, n) over blocks of so many entries a side."""
    n = len(f) // block
    return np.asarray(f.reshape(n, block, n, block).mean(axis=(1, 3)))


# the four figures differ in the maps of f that they show

Maps = Mapping[str, Mapping[str, Any]]  # how f is estimated, by the title of its panel
SIGMAS = (0.025, 0.05, 0.1)
FIGURE_1: Maps = {"f, σ = 0.05": {}}
FIGURE_4: Maps = {f"f, σ = {sigma:g}": {"sigma": sigma} for sigma in SIGMAS}
FIGURE_5: Maps = {"noise on biases": {}, "on biases and weights": {"weight_noise": True}}
FIGURE_6: Maps = {"f, σ = 0.05": {}, "f without ρ": {"density": False}}


def _measurements_of(settings: BunnySettings, maps: Maps) -> dict[str, list[Measurement]]:
    """By the title of their panel, one a seed."""
    found = {
        title: [Measurement(_bunny_density, DensityMap(settings, seed, **options)) for seed in settings.seeds]
        for title, options in maps.items()
    }
    return {"": [Measurement(_bunny_regions, ExactMap(settings, seed)) for seed in settings.seeds], **found}


def _evidence(settings: BunnySettings, lab: Lab, maps: Maps) -> Evidence:
    """All maps (seeds, n, n) by title, the lengths, and the first seed's polygons."""
    found = {title: lab.measured(tasks) for title, tasks in _measurements_of(settings, maps).items()}
    exact = found.pop("")
    arrays = {title: np.stack([one["f"] for one in seeds]) for title, seeds in found.items()}
    arrays["length"] = np.stack([one["length"] for one in exact])
    return Evidence(arrays=arrays | {name: exact[0][name] for name in ("vertices", "corners", "offsets")})


def _map_correlations(a: np.ndarray, b: np.ndarray) -> list[float]:
    """Spearman's, of two maps for each seed, after both have the resolution of the coarser."""
    coarse = min(a.shape[1], b.shape[1])
    return [
        correlation(*(in_blocks(one, len(one) // coarse).ravel() for one in pair), ranks=True)
        for pair in zip(a, b, strict=True)
    ]


def _with_length(evidence: Evidence, title: str) -> list[float]:
    return _map_correlations(evidence.arrays[title], evidence.arrays["length"])


LENGTH = "{} and the exact length of boundaries in a pixel: rank correlation"


def _density_checks(settings: BunnySettings, evidence: Evidence) -> Sequence[Check]:
    """f follows the exact length of boundaries."""
    found = _with_length(evidence, "f, σ = 0.05")
    return [at_least(LENGTH.format("f"), found, FOLLOWS, paper="high f where regions crowd"), _count(evidence)]


def _sigma_checks(settings: BunnySettings, evidence: Evidence) -> Sequence[Check]:
    """Maps of neighbouring σ follow each other, and the larger σ, the smoother."""
    maps = {sigma: evidence.arrays[f"f, σ = {sigma:g}"] for sigma in SIGMAS}
    same = [
        at_least(
            f"f with σ = {a:g} and with {b:g}: rank correlation", _map_correlations(maps[a], maps[b]), FOLLOWS,
            paper="the same structure",
        )
        for a, b in pairwise(SIGMAS)
    ]  # fmt: skip
    rough = np.array([[roughness(f) for f in maps[sigma]] for sigma in SIGMAS]).T
    return [*same, monotone("roughness of f with σ", SIGMAS, rough, rising=False, paper="smoother"), _count(evidence)]


def roughness(f: Floats) -> float:
    """The mean step between neighbours of a map, as a share of its mean.

    >>> roughness(np.array([[1.0, 3.0], [1.0, 3.0]]))
    0.5
    """
    steps = np.concatenate([np.abs(np.diff(f, axis=axis)).ravel() for axis in (0, 1)])
    return float(steps.mean() / f.mean())


def _noise_checks(settings: BunnySettings, evidence: Evidence) -> Sequence[Check]:
    """Noise on weights too gives a map that follows the one without."""
    a, b = (evidence.arrays[title] for title in FIGURE_5)
    words = "f with noise on biases, and on weights too: rank correlation"
    return [at_least(words, _map_correlations(a, b), FOLLOWS, paper="similar"), _count(evidence)]


def _slope_checks(settings: BunnySettings, evidence: Evidence) -> Sequence[Check]:
    """Without ρ the map still resembles the exact length of boundaries."""
    found = _with_length(evidence, "f without ρ")
    return [
        at_least(LENGTH.format("f without ρ"), found, RESEMBLES, paper="a strong resemblance"),
        reported(LENGTH.format("f"), _with_length(evidence, "f, σ = 0.05")),
        _count(evidence),
    ]


def _count(evidence: Evidence) -> Check:
    return reported("regions, first seed", [len(evidence.arrays["offsets"]) - 1])


# pictures


def _draw(findings: Findings, maps: Maps) -> "Figure":
    """The exact regions, then the maps of f, of the first seed."""
    arrays = findings.evidence.arrays
    figure, axes = panels(1 + len(maps), height=2.6 if len(maps) < 3 else 2.0)
    _draw_regions(axes[0], arrays)
    for ax, title in zip(axes[1:], maps, strict=True):
        image = ax.imshow(arrays[title][0], origin="lower", extent=(0, 1, 0, 1), cmap="viridis")
        ax.set_title(title, fontsize="medium")
        figure.colorbar(image, ax=ax, shrink=0.7, pad=0.03)
    for ax in axes:
        ax.set(aspect="equal", xticks=[], yticks=[])
    return figure


def _draw_regions(ax: "Axes", arrays: Mapping[str, np.ndarray]) -> None:
    from matplotlib.collections import PolyCollection

    polygons = np.split(arrays["vertices"][arrays["corners"]], arrays["offsets"][1:-1])
    colours = np.random.default_rng(0).uniform(0.45, 1.0, (len(polygons), 3))
    ax.add_collection(
        PolyCollection(polygons, facecolors=colours, edgecolors="black", linewidths=0.15, rasterized=True)
    )
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.set_title(f"{len(polygons):,} regions", fontsize="medium")


def _figure(name: str, title: str, claim: str, maps: Maps, checks: Any) -> Experiment[BunnySettings]:
    return Experiment(
        name=name,
        title=title,
        claim=claim,
        scales={
            "smoke": BunnySettings(depth=2, width=10, bias_std=0.3, steps=0, grid=16, draws=4, seeds=(0, 1)),
            "laptop": BunnySettings(steps=30_000, grid=64, block=2, draws=16),
            "paper": BunnySettings(),
        },
        trainings=_trainings,
        measurements=lambda settings: [m for tasks in _measurements_of(settings, maps).values() for m in tasks],
        evidence=lambda settings, lab: _evidence(settings, lab, maps),
        checks=checks,
        draw=lambda findings: _draw(findings, maps),
        choices=(
            "three hidden layers of 64 units, batches of 256 of 64 × 64 pixels, no weight decay, the number of steps"
            " and the pixels that lengths are taken in: the paper prints none of them",
        ),
    )


FIGURES = (
    _figure(
        "lc1",
        "Exact regions of a network that learns a picture, and the density of local complexity",
        "The density of local complexity is high where linear regions crowd.",
        FIGURE_1,
        _density_checks,
    ),
    _figure(
        "lc4",
        "The same with less and with more noise",
        "With more noise the density of local complexity has the same structure, and is smoother.",
        FIGURE_4,
        _sigma_checks,
    ),
    _figure(
        "lc5",
        "The same with noise on the weights too",
        "Noise on biases, and on biases and weights, give similar densities.",
        FIGURE_5,
        _noise_checks,
    ),
    _figure(
        "lc6",
        "The same without the density of the biases",
        "Without the density of the biases the map still resembles the linear regions.",
        FIGURE_6,
        _slope_checks,
    ),
)
