"""Beyond the papers, x6: does complexity fall when a network groks modular addition?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor, nn

from regionscope.experiments.curves import curve_of, recorded_curve
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import at_least, correlation, reported, untested
from regionscope.experiments.x_runs import beyond_scales
from regionscope.measures.complexity import local_complexity
from regionscope.measures.crossings import boundary_crossings
from regionscope.tracing.trace import trace
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("mlp", "transformer")
MEASURED = ("local complexity", "crossings")
FITTED, GENERAL = 0.99, 0.9  # training accuracy that is memory, test accuracy that is more
FALL = 0.2  # of complexity, from memory to the end, as a share of that at memory


@dataclass(frozen=True)
class Learner:
    """A network with one layer, the sums that it is trained on, of 3481 in all, and for how long."""

    model: Literal["mlp", "transformer"]
    width: int
    sums: int
    steps: int


@dataclass(frozen=True)
class ModularSettings:
    """An MLP and a transformer that learn to add modulo 59."""

    mlp: Learner = Learner("mlp", 256, 1740, 100_000)
    transformer: Learner = Learner("transformer", 128, 1200, 50_000)
    records: int = 41
    points: int = 500
    sigma: float = 0.05
    draws: int = 8
    radius: float = 0.1
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class _Embedded:
    training: Training
    points: int
    sigma: float
    draws: int
    radius: float


def _trainings_of(settings: ModularSettings, kind: str) -> list[Training]:
    """AdamW with 10^-3 and decay 1, as grokking is studied with, on batches of 512."""
    learner = settings.mlp if kind == "mlp" else settings.transformer
    return [
        Training(
            dataset="modular-addition", size=learner.sums, model=learner.model, depth=1, width=learner.width,
            weight_decay=1.0, batch_size=512, steps=learner.steps, records=settings.records, measures=(), seed=seed,
        )
        for seed in settings.seeds
    ]  # fmt: skip


def _trainings(settings: ModularSettings) -> list[Training]:
    return [training for kind in KINDS for training in _trainings_of(settings, kind)]


def _measurement(settings: ModularSettings, training: Training) -> Measurement:
    told = (settings.points, settings.sigma, settings.draws, settings.radius)
    return Measurement(_complexity_of_grokking, _Embedded(training, *told))


def _measurements(settings: ModularSettings) -> list[Measurement]:
    return [_measurement(settings, training) for training in _trainings(settings)]


def _complexity_of_grokking(settings: _Embedded, lab: Lab) -> dict[str, np.ndarray]:
    """Complexity around test points at every record, in units of their typical length there."""
    run, x = lab.run(settings.training), training_data(settings.training).test[0][: settings.points]
    found = []
    for step in run.steps:
        model, points = bending_part(run_model(run, step), x)
        net, length = trace(model, points[:1], allow_smooth=True), typical_length(points)
        generator = torch.Generator().manual_seed(settings.training.seed)
        complexity = local_complexity(
            net, points, sigma=settings.sigma, draws=settings.draws, generator=generator, allow_smooth=True
        )
        crossings = boundary_crossings(
            net, points, radius=settings.radius * length, generator=generator, allow_smooth=True
        )
        found.append([complexity.mean * length, crossings.mean])
    return {"step": np.array(run.steps, float), **dict(zip(MEASURED, np.array(found).T, strict=True))}


def bending_part(model: nn.Module, x: Tensor) -> tuple[nn.Module, Tensor]:
    """The network and its points; of a transformer, what follows its embedding and the points that it makes."""
    if not isinstance(model, nn.Sequential) or isinstance(model[0], nn.Flatten):
        return model, x
    with torch.no_grad():
        return model[1:], model[0](x)


def typical_length(points: Tensor) -> float:
    """The root mean squared distance of points from their mean."""
    flat = points.flatten(1)
    return float((flat - flat.mean(dim=0)).square().sum(dim=1).mean().sqrt())


def _evidence(settings: ModularSettings, lab: Lab) -> Evidence:
    curves: dict[str, Curve] = {}
    for kind in KINDS:
        trainings = _trainings_of(settings, kind)
        found = lab.measured([_measurement(settings, training) for training in trainings])
        curves |= {f"{name}, {kind}": curve_of(found, name) for name in MEASURED}
        for split in ("train", "test"):
            curves[f"{split} accuracy, {kind}"] = recorded_curve(lab, trainings, f"{split}_accuracy")
    return Evidence(curves)


def fall_after_memory(values: Floats, train: Floats) -> float:
    """(value when the training points were fitted first - end) / that value; no number if they never were.

    >>> fall_after_memory(np.array([9.0, 8.0, 4.0]), np.array([0.1, 1.0, 1.0]))
    0.5
    """
    fitted = train >= FITTED
    return float(1 - values[-1] / values[fitted.argmax()]) if fitted.any() else np.nan


def _checks(settings: ModularSettings, evidence: Evidence) -> Sequence[Check]:
    """Where a network generalised, its complexity has fallen since it had memorised."""
    curves, checks = evidence.curves, []
    for kind in KINDS:
        train, test = (curves[f"{split} accuracy, {kind}"] for split in ("train", "test"))
        checks.append(reported(f"{kind}: test accuracy at the end", test.runs[:, -1]))
        lowest = float(test.runs[:, -1].min())
        for name in MEASURED:
            values = curves[f"{name}, {kind}"].runs
            words = f"{kind}: fall of {name} from memory to the end, as a share"
            if lowest < GENERAL:
                checks.append(untested(words, f"it does not generalise: test accuracy {lowest:.2g} at the end"))
                continue
            checks.append(
                at_least(words, [fall_after_memory(v, t) for v, t in zip(values, train.runs, strict=True)], FALL)
            )
            together = [correlation(v, t, ranks=True) for v, t in zip(values, test.runs, strict=True)]
            checks.append(reported(f"{kind}: rank correlation of {name} and test accuracy over training", together))
    return checks


def _draw(findings: Findings) -> "Figure":
    """A row a network: accuracies, then both measures."""
    curves = findings.evidence.curves
    figure, axes = panels(3, 2, height=2.4)
    for k, kind in enumerate(KINDS):
        accuracies, *others = axes[3 * k : 3 * k + 3]
        draw_curves(
            accuracies, {split: curves[f"{split} accuracy, {kind}"] for split in ("train", "test")}, ylabel="accuracy"
        )
        accuracies.set_ylim(-0.03, 1.03)
        accuracies.set_title(kind, loc="left", fontsize="medium")
        for ax, name in zip(others, MEASURED, strict=True):
            draw_curves(ax, {name: curves[f"{name}, {kind}"]}, ylabel=name, from_zero=True)
    return figure


FIGURES = (
    Experiment(
        name="x6",
        title="Complexity while an MLP and a transformer grok addition modulo 59",
        claim="When a network that has memorised sums modulo a prime comes to generalise, its complexity falls.",
        scales=beyond_scales(
            ModularSettings,
            {
                "mlp": Learner("mlp", 16, 100, 4), "transformer": Learner("transformer", 32, 100, 4),
                "records": 3, "points": 4, "draws": 2, "seeds": (0,),
            },
            {
                "mlp": Learner("mlp", 256, 1740, 20_000), "transformer": Learner("transformer", 64, 1200, 6000),
                "records": 25, "points": 100, "draws": 4,
            },
        ),
        trainings=_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "no paper asks this: a half and a third of all pairs to train on, AdamW with 10^-3 and decay 1, σ = 0.05",
            "the MLP is measured on one-hot pairs, the transformer in the space of its embedded tokens, where attention"
            " bends the boundaries of its ReLU units; lengths are in units of the spread of the points",
        ),
    ),
)  # fmt: skip
