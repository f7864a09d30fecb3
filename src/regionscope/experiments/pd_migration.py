"""PD figure 1: where the boundaries of regions go, on exact planes through three training images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import KDTree

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.length_maps import length_map, middles_of_pieces, square_shares
from regionscope.experiments.pd_mnist import (
    FRAME,
    LAPTOP,
    RADIUS,
    SMOKE,
    PartitionSettings,
    crossing_curves,
    crossing_measurements,
    crossings_named,
    double_descent,
    partition_networks,
    partition_trainings,
    too_short,
)
from regionscope.experiments.pictures import draw_curves
from regionscope.experiments.verdicts import at_least, at_most, largest_rise, reported
from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import Plane
from regionscope.tracing.trace import trace
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEAR = 0.1  # half-sides of the plane: so far around the images, and around the decision boundary, density is looked at
LEAVES, GATHERS = 0.8, 1.2  # factors by which it falls and rises, at least, from the peak to the end
PIECES = 4  # a pixel; so finely is the decision boundary marked
PLACES = {"data": "around the images", "decision": "around the decision boundary"}


@dataclass(frozen=True)
class SliceSettings(PartitionSettings):
    """The network of figure 1, and planes through three of its training images each."""

    planes: int = 10  # a network; the first is drawn
    side: int = 256  # pixels
    every: int = 1  # record that planes are cut at


@dataclass(frozen=True)
class Slices:
    """The planes that one network is cut along."""

    training: Training
    planes: int
    side: int
    every: int


def _measurements(settings: SliceSettings) -> list[Measurement]:
    return [*crossing_measurements(settings), *_slices(settings)]


def _slices(settings: SliceSettings) -> list[Measurement]:
    about = settings.planes, settings.side, settings.every
    return [Measurement(_migration, Slices(training, *about)) for training in partition_trainings(settings)]


def _migration(settings: Slices, lab: Lab) -> dict[str, np.ndarray]:
    """Length and area, in pixels, of all planes together (steps, 2) and of what is near marks; maps of the first."""
    run, images = lab.run(settings.training), training_data(settings.training).train[0]
    planes = [Plane.through(*images[3 * k : 3 * k + 3], centre="centroid") for k in range(settings.planes)]
    steps = run.steps[:: -settings.every][::-1]  # the last is among them
    found: dict[str, list[Floats]] = {name: [] for name in ("all", *PLACES)}
    maps, borders = [], []
    for step in steps:
        net = trace(run_model(run, step), images[:1])
        seen = [_length_map_and_marks(plane_cells(net, plane), settings.side) for plane in planes]
        found["all"].append(np.sum([[lengths.sum(), lengths.size] for lengths, _ in seen], axis=0))
        for name in PLACES:
            found[name].append(np.sum([_near(lengths, marks[name]) for lengths, marks in seen], axis=0))
        maps.append(seen[0][0].astype(np.float16))
        borders.append(_lit(seen[0][1]["decision"], settings.side))
    return {
        "step": np.array(steps, np.float64), **{name: np.array(values) for name, values in found.items()},
        "maps": np.stack(maps), "borders": np.stack(borders), "anchors": square_shares(planes[0], planes[0].anchors),
    }  # fmt: skip


def _length_map_and_marks(cells: PlaneCells, side: int) -> tuple[Floats, dict[str, Floats]]:
    """The length map of a plane; the images and points along the decision boundary on it, in pixels."""
    border = _marks_along(side * square_shares(cells.plane, cells.decision_boundary().segments))
    return length_map(cells, side), {"data": side * square_shares(cells.plane, cells.plane.anchors), "decision": border}


def _marks_along(segments: Floats) -> Floats:
    """Points (m, 2) along segments (n, 2, 2), close to each other."""
    length = np.hypot(*(segments[:, 1] - segments[:, 0]).T)
    return middles_of_pieces(segments, np.ceil(PIECES * length).astype(np.int64).clip(1))[0]


def _near(lengths: Floats, marks: Floats) -> Floats:
    """The sum of a length map within a distance of marks (n, 2), and the number of its pixels there: (2,)."""
    side = len(lengths)
    if not len(marks):
        return np.zeros(2)
    centres = np.stack(np.meshgrid(*[np.arange(side) + 0.5] * 2), axis=-1).reshape(-1, 2)
    near = np.asarray(KDTree(marks).query(centres)[0]) <= NEAR * side / 2
    return np.array([lengths.ravel()[near].sum(), near.sum()])


def relative_density(near: Floats, whole: Floats) -> Floats:
    """Length per area of parts (n, 2), as a multiple of that of the whole (n, 2); 0 where one of them has none."""
    density, usual = (part[:, 0] / np.maximum(part[:, 1], 1) for part in (near, whole))
    return np.asarray(density / np.where(usual > 0, usual, 1))


def _lit(marks: Floats, side: int) -> np.ndarray:
    """The pixels that marks lie in, (side, side)."""
    lit = np.zeros((side, side), bool)
    column, row = np.clip(marks.astype(np.int64), 0, side - 1).T
    lit[row, column] = True
    return lit


def _evidence(settings: SliceSettings, lab: Lab) -> Evidence:
    curves, found = crossing_curves(settings, lab), lab.measured(_slices(settings))
    steps = found[0]["step"]
    for name, words in PLACES.items():
        curves[words] = Curve.of(steps, [relative_density(seed[name], seed["all"]) for seed in found])
    crossings = np.interp(steps, *_train(settings, curves, 0))
    valley, peak = largest_rise(crossings)
    chosen = sorted({0, valley, peak, len(steps) - 1})
    arrays = {"steps": steps[chosen], "anchors": found[0]["anchors"]}
    return Evidence(curves, arrays | {name: found[0][name][chosen] for name in ("maps", "borders")})


def _train(settings: SliceSettings, curves: dict[str, Curve], seed: int) -> tuple[Floats, Floats]:
    curve = curves[_train_name(settings)]
    return curve.x, curve.runs[seed]


def _train_name(settings: SliceSettings) -> str:
    (name,) = partition_networks(settings)
    return crossings_named(name, settings.radii[0], "train")


def _checks(settings: SliceSettings, evidence: Evidence) -> Sequence[Check]:
    """Double descent; from the peak to the end boundaries get rarer around the images and denser around decisions."""
    if short := too_short(settings, "phases and migration"):
        return short
    train = evidence.curves[_train_name(settings)]
    change = {}
    for words in PLACES.values():
        curve = evidence.curves[words]
        peaks = [largest_rise(np.interp(curve.x, train.x, values))[1] for values in train.runs]
        change[words] = [
            values[-1] / values[peak] if values[peak] > 0 else np.nan
            for peak, values in zip(peaks, curve.runs, strict=True)
        ]
    images, decisions = PLACES.values()
    end = "at the end over that at the peak"
    return [
        *double_descent("train", train),
        at_most(f"density {images}, {end}", change[images], LEAVES, paper="boundaries move away"),
        at_least(f"density {decisions}, {end}", change[decisions], GATHERS, paper="boundaries concentrate"),
        reported(f"density {images} at the end, over the plane's", evidence.curves[images].runs[:, -1]),
        reported(f"density {decisions} at the end, over the plane's", evidence.curves[decisions].runs[:, -1]),
    ]


def _draw(findings: Findings) -> "Figure":
    """The plane at four steps above the curves: crossings, accuracies, densities."""
    import matplotlib.pyplot as plt

    from regionscope.plots.style import paper

    curves, arrays = findings.evidence.curves, findings.evidence.arrays
    with paper(2):
        columns = len(arrays["steps"])
        figure = plt.figure(figsize=(6.75, 3.9), layout="constrained")
        above, below = np.asarray(figure.subfigures(2, 1, height_ratios=[1, 1.1]))
        top = float(np.quantile(arrays["maps"].astype(float), 0.99))
        for k, ax in enumerate(np.atleast_1d(above.subplots(1, columns))):
            _draw_map(ax, arrays["maps"][k], arrays["borders"][k], arrays["anchors"], top)
            ax.set_title(f"step {arrays['steps'][k]:,.0f}")
        left, middle, right = below.subplots(1, 3)
        probes = ("train", "test", "random")
        shown = {probe: next(c for name, c in curves.items() if name.endswith(f", {probe}")) for probe in probes}
        draw_curves(left, shown, ylabel="crossings", from_zero=True)
        accuracies = {name.split(", ")[1].split()[0]: c for name, c in curves.items() if name.endswith("accuracy")}
        draw_curves(middle, accuracies, ylabel="accuracy")
        draw_curves(
            right,
            {w.removeprefix("around the "): curves[w] for w in PLACES.values()},
            ylabel="density around",
            from_zero=True,
        )
    return figure


def _draw_map(ax: "Axes", lengths: Floats, border: np.ndarray, anchors: Floats, top: float) -> None:
    """Boundaries dark, decisions red, images as dots."""
    shade = 1 - np.clip(lengths.astype(float) / max(top, 1e-9), 0, 1) ** 0.5
    picture = np.where(border[..., None], (0.84, 0.15, 0.16), shade[..., None])
    ax.imshow(picture, origin="lower", extent=(0, 1, 0, 1), interpolation="antialiased")
    x, y = anchors.T
    ax.scatter(x, y, s=22, c="#ffd000", edgecolors="black", linewidths=0.7, zorder=3, clip_on=False)
    ax.set(xticks=[], yticks=[])


FIGURES = (
    Experiment(
        name="pd1",
        title="Partition around training images during training, MNIST perceptron of depth 4 and width 200",
        claim="Crossings around training points fall, rise and fall again; during the second descent the boundaries"
        " of regions leave the training points and gather around the decision boundary.",
        scales={
            "smoke": SliceSettings(**{**vars(SMOKE), "depths": (3,)}, planes=2, side=24),
            "laptop": SliceSettings(**vars(LAPTOP), planes=3, every=2),
            "paper": SliceSettings(),
        },
        trainings=partition_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            FRAME,
            RADIUS,
            "squares around the centroid of three training images, reaching as far as the farthest of them (SplineCam);"
            " densities are lengths per area within a tenth of the half-side, as multiples of the plane's, the mean"
            " over several planes",
        ),
    ),
)
