"""Beyond the papers, x1: a penalty on local complexity against weight decay that reaches the same training loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import panels
from regionscope.experiments.verdicts import at_least, at_most, reported
from regionscope.experiments.x_runs import beyond_scales
from regionscope.measures.table import MEASURES
from regionscope.tracing.trace import trace
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ATTACKS: dict[str, tuple[dict[str, Any], tuple[float, ...]]] = {  # options, and radii
    "FGSM": ({"attack": "fgsm"}, (0.02, 0.05, 0.1)),
    "PGD Linf": ({"attack": "pgd", "restarts": 2, "steps": 20}, (0.02, 0.05, 0.1)),
    "PGD L2": ({"attack": "pgd", "norm": "L2", "restarts": 2, "steps": 20}, (0.25, 0.5, 1.0)),
}
SIMPLER = 0.8  # local complexity with the penalty over that with decay
AS_GOOD = -0.01  # difference of clean accuracies
MORE = 0.02  # difference of accuracies under attack, mean over radii
FARTHER = 1.1  # certified radius with the penalty over that with decay


@dataclass(frozen=True)
class PenaltySettings:
    """Perceptrons with three hidden layers on a part of MNIST: one a penalty, one a decay, for each seed."""

    penalties: tuple[float, ...] = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
    decays: tuple[float, ...] = (0.0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    dataset: str = "mnist"
    size: int = 1000
    width: int = 200
    steps: int = 20_000
    points: int = 1000
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class _AtTheEnd:
    training: Training
    points: int


def _plain(settings: PenaltySettings, seed: int) -> Training:
    return Training(
        dataset=settings.dataset, size=settings.size, test_size=settings.size, depth=3, width=settings.width,
        optimiser="adam", weight_decay=0.0, batch_size=64, steps=settings.steps, records=2, measures=(), seed=seed,
    )  # fmt: skip


def _trainings(settings: PenaltySettings) -> list[Training]:
    """Of every seed, first those with penalties, then those with decays."""
    found = []
    for seed in settings.seeds:
        found += [replace(_plain(settings, seed), penalty=penalty) for penalty in settings.penalties]
        found += [replace(_plain(settings, seed), weight_decay=decay) for decay in settings.decays]
    return found


def _measurements(settings: PenaltySettings) -> list[Measurement]:
    return [Measurement(_complexity_and_robustness, _AtTheEnd(t, settings.points)) for t in _trainings(settings)]


def _complexity_and_robustness(settings: _AtTheEnd, lab: Lab) -> dict[str, float]:
    """Training loss and, at test points, complexity, clean accuracy, accuracies under attack and certified radius."""
    run, data = lab.run(settings.training), training_data(settings.training)
    points, labels = (part[: settings.points] for part in data.test)
    net, last = trace(run_model(run), points[:1]), run.read(run.steps[-1]).scalars

    def mean(name: str, **options: Any) -> float:
        return MEASURES[name].estimate(net, points, labels, seed=settings.training.seed, **options).mean

    found = {
        "loss": float(last["loss"] or 0.0),
        "local complexity": mean("local_complexity", sigma=0.05, draws=8),
        "total variation": mean("total_variation"),
        "clean": mean("robust_accuracy", attack="none"),
        "certified radius": mean("certified_radius"),
    }
    for name, (options, radii) in ATTACKS.items():
        each = {r: mean("robust_accuracy", radius=r, bounds=(0.0, 1.0), **options) for r in radii}
        found |= {f"{name} {r}": accuracy for r, accuracy in each.items()}
        found[name] = float(np.mean(list(each.values())))
    return found


def _evidence(settings: PenaltySettings, lab: Lab) -> Evidence:
    """(seeds, penalties) and (seeds, decays) of every number."""
    found, count = lab.measured(_measurements(settings)), len(settings.penalties)
    arrays: dict[str, Floats] = {}
    for name in found[0]:
        values = np.array([float(one[name]) for one in found]).reshape(len(settings.seeds), -1)
        arrays |= {f"penalty: {name}": values[:, :count], f"decay: {name}": values[:, count:]}
    return Evidence(arrays={name: array for name, array in arrays.items() if not name.endswith("seconds")})


def at_equal_loss(arrays: Mapping[str, Floats], name: str) -> tuple[Floats, Floats]:
    """A number of the penalised networks (seeds, penalties), and what decay has at the same training loss.

    Between decays it is interpolated along the logarithm of the loss; no number where no decay reaches that loss.
    """
    matched = []
    for wanted, losses, values in zip(
        *(arrays[n] for n in ("penalty: loss", "decay: loss", f"decay: {name}")), strict=True
    ):
        order = np.argsort(losses)
        matched.append(np.interp(np.log(wanted), np.log(losses[order]), values[order], left=np.nan, right=np.nan))
    return arrays[f"penalty: {name}"], np.array(matched)


def _mean_of_matched(values: Floats) -> Floats:
    """The mean over the penalties whose loss some decay reaches, (seeds,); no number if there are none."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1))


def _checks(settings: PenaltySettings, evidence: Evidence) -> Sequence[Check]:
    """At the same training loss: simpler, as good on clean points, better under every attack, farther certified."""

    def compared(name: str, ratio: bool) -> Floats:
        with_penalty, with_decay = at_equal_loss(evidence.arrays, name)
        with np.errstate(divide="ignore", invalid="ignore"):  # where nothing is certified at all
            return _mean_of_matched(with_penalty / with_decay if ratio else with_penalty - with_decay)

    reached = np.isfinite(at_equal_loss(evidence.arrays, "clean")[1])
    attacked = [
        at_least(f"{name} accuracy, difference of the means over radii", compared(name, False), MORE)
        for name in ATTACKS
    ]
    return [
        at_most("local complexity, ratio", compared("local complexity", True), SIMPLER),
        at_least("clean accuracy, difference", compared("clean", False), AS_GOOD),
        *attacked,
        at_least("certified radius, ratio", compared("certified radius", True), FARTHER),
        reported("total variation, ratio", compared("total variation", True)),
        reported("share of penalties whose loss a decay reaches", reached.mean(axis=1)),
    ]  # fmt: skip


def _draw(findings: Findings) -> "Figure":
    """Everything against the training loss: both families, all seeds."""
    from regionscope.plots.style import add_shared_legend

    arrays = findings.evidence.arrays
    figure, axes = panels(3, 2, height=2.4)
    for ax, name in zip(axes, ("local complexity", "clean", *ATTACKS, "certified radius"), strict=True):
        for kind, colour, mark in (("decay", "0.55", "s"), ("penalty", "#7b3fa0", "o")):
            for loss, values in zip(arrays[f"{kind}: loss"], arrays[f"{kind}: {name}"], strict=True):
                order = np.argsort(loss)
                ax.plot(loss[order], values[order], color=colour, marker=mark, lw=0.8, ms=3)
            ax.plot([], [], color=colour, marker=mark, lw=0.8, ms=3, label=kind)
        ax.set(
            xscale="log",
            xlabel="training loss",
            ylabel=name if name.islower() and name != "clean" else f"{name} accuracy",
        )
    axes[0].set_ylim(bottom=0)
    add_shared_legend(figure, *axes[0].get_legend_handles_labels(), above=True)
    return figure


FIGURES = (
    Experiment(
        name="x1",
        title="A penalty on local complexity against weight decay at the same training loss",
        claim="At the same training loss a penalty on local complexity leaves networks that are simpler than those of"
        " weight decay, as accurate, and more robust.",
        scales=beyond_scales(
            PenaltySettings,
            {
                "penalties": (1e-3,), "decays": (0.0, 0.1), "dataset": "mnist-sample", "size": 64, "width": 8,
                "steps": 4, "points": 8,
            },
            {
                "penalties": (1e-5, 1e-4, 1e-3), "decays": (0.0, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2), "width": 64,
                "steps": 3000, "points": 200,
            },
        ),
        trainings=_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "no paper trains so: Adam with 10^-3, both penalties as terms of the gradient, σ = 0.05, one draw a step;"
            " what decay has at the same training loss is interpolated between decays along the logarithm of the loss",
            "FGSM and PGD (20 steps, two starts, margin loss) within the range of the pixels",
        ),
    ),
)  # fmt: skip
