"""HR figure 5: regions along lines through the origin and a training image, while networks learn MNIST."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import at_least, at_most, falls_first, reported, rises_after, untested
from regionscope.geometry.line_cells import line_cells
from regionscope.tracing.trace import trace
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BATCH = 128
IMAGES = 60_000
NEAR_ONE = 1.25  # regions per unit at the start are within this factor of 1
SMALL_FACTOR = 3.0  # and then within this factor of the start
MOVE = 0.05  # share by which the mean over architectures falls first, and rises then


@dataclass(frozen=True)
class HaninSettings:
    """Networks as (hidden layers, units of each) on all of MNIST: what figures 5 to 8 train, and share."""

    networks: tuple[tuple[int, int], ...] = ((2, 32), (3, 64), (4, 16), (4, 32), (4, 64), (6, 32))
    dataset: str = "mnist"
    steps: int = 20 * IMAGES // BATCH
    records: int = 30
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class LineSettings(HaninSettings):
    """And the lines through the origin that are cut."""

    lines: int = 100
    reach: float = 100.0  # a line goes from -reach times the image to reach times it


@dataclass(frozen=True)
class Lines:
    """The lines that one network is cut along."""

    training: Training
    lines: int
    reach: float


def hanin_trainings(settings: HaninSettings) -> list[Training]:
    """Vectorised MNIST, He normal weights, biases N(0, 10^-6), Adam with 10^-3 (HR 3): network by network."""
    return [
        Training(
            dataset=settings.dataset, depth=depth, width=width, init="he", bias_std=1e-3, optimiser="adam", lr=1e-3,
            weight_decay=0.0, batch_size=BATCH, steps=settings.steps, records=settings.records, measures=(), seed=seed,
        )
        for depth, width in settings.networks
        for seed in settings.seeds
    ]  # fmt: skip


def epochs_at(steps: ArrayLike, dataset: str) -> Floats:
    """How often the training set was gone through at these steps."""
    return np.asarray(steps, np.float64) * BATCH / (IMAGES if dataset == "mnist" else 1000)


def turns_around(words: str, curve: Curve, rules: Sequence[Callable[..., Check]], told: str) -> list[Check]:
    """Whether a curve over epochs goes one way first, then the other, by a share of MOVE each; `told` in words."""
    if curve.x[-1] < 1:
        return [untested(f"{words}: {told}", f"it ends after {curve.x[-1]:.2g} epochs")]
    return [rule(words, curve, by=MOVE, paper=told) for rule in rules]


def _measurements(settings: LineSettings) -> list[Measurement]:
    return [Measurement(_line_regions, Lines(t, settings.lines, settings.reach)) for t in hanin_trainings(settings)]


def _line_regions(settings: Lines, lab: Lab) -> dict[str, np.ndarray]:
    """Regions on each line at each record, exact: (records, lines); lines are cut together, which is far cheaper."""
    run = lab.run(settings.training)
    images = training_data(settings.training).train[0]
    chosen = torch.randperm(len(images), generator=torch.Generator().manual_seed(settings.training.seed))
    ends = settings.reach * images[chosen[: settings.lines]].double()
    counts = []
    for step in run.steps:
        net = trace(run_model(run, step), images[:1])
        counts.append([len(cells) for cells in line_cells(net, -ends, ends)])
    return {"step": np.array(run.steps, np.float64), "regions": np.array(counts)}


def _evidence(settings: LineSettings, lab: Lab) -> Evidence:
    found = iter(lab.measured(_measurements(settings)))
    curves = {}
    for depth, width in settings.networks:
        seeds = [next(found) for _ in settings.seeds]
        ratios = [measurement["regions"].mean(axis=1) / (depth * width) for measurement in seeds]
        curves[f"depth {depth}, width {width}"] = Curve.of(epochs_at(seeds[0]["step"], settings.dataset), ratios)
    runs = lab.runs(hanin_trainings(settings))
    accuracies = np.array([run.curve("test_accuracy")[1][-1] for run in runs])
    return Evidence(curves, {"test_accuracy": accuracies.reshape(len(settings.networks), -1)})


def _checks(settings: LineSettings, evidence: Evidence) -> Sequence[Check]:
    """Near 1 at the start, within a small factor of the start, the mean over architectures falls first, rises then."""
    ratios = np.stack([curve.runs for curve in evidence.curves.values()])  # (networks, seeds, records)
    change = np.abs(np.log(ratios / ratios[:, :, :1]))
    whole = Curve.of(next(iter(evidence.curves.values())).x, ratios.mean(axis=0))
    start = "regions per unit at the start"
    checks = [
        at_least(f"{start}, least of the networks", ratios[:, :, 0].min(axis=0), 1 / NEAR_ONE, paper="close to 1"),
        at_most(f"{start}, most of the networks", ratios[:, :, 0].max(axis=0), NEAR_ONE, paper="close to 1"),
        at_most(
            "largest factor between regions and those at the start", np.exp(change.max(axis=(0, 2))), SMALL_FACTOR,
            paper="a small constant",
        ),
    ]  # fmt: skip
    checks += turns_around("mean of the networks", whole, (falls_first, rises_after), "falls first, then rises")
    return [*checks, reported("test accuracy", evidence.arrays["test_accuracy"].mean(axis=0), paper="95–98 %")]


def _draw(findings: Findings) -> "Figure":
    figure, (ax,) = panels(1, height=3.0)
    draw_curves(ax, findings.evidence.curves, xlabel="epoch", ylabel="regions on a line / units", from_zero=True)
    ax.axhline(1.0, color="0.6", lw=0.8, zorder=1)
    return figure


FIGURES = (
    Experiment(
        name="hr5",
        title="Regions on lines through the origin and a training image, over training",
        claim="The number of regions along a line is about that of the units at the start, stays within a small factor"
        " of it, and falls first, then rises.",
        scales={
            "smoke": LineSettings(
                networks=((2, 16), (3, 16)), dataset="mnist-sample", steps=4, records=4, lines=5, seeds=(0, 1)
            ),
            "laptop": LineSettings(seeds=(0, 1, 2)),
            "paper": LineSettings(),
        },
        trainings=hanin_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "depths and widths, 20 epochs of batches of 128, and lines from -100 to 100 times the image are ours: the"
            " paper prints none of them",
        ),
    ),
)
