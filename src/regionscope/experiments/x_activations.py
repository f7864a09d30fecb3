"""Beyond the papers, x4: LC figure 3 with other activations, which that paper leaves open."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regionscope.experiments.curves import curve_of, recorded_curve
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.lc_mnist import (
    COLUMNS,
    DROP,
    ENOUGH,
    LAPTOP,
    RISE,
    SMOKE,
    DigitSettings,
    digit_training,
    watched_digits,
)
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import drops_late, ends_early, reported, rises_late, untested
from regionscope.experiments.x_runs import beyond_scales
from regionscope.training.config import Training
from regionscope.training.models import Activation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALE = 2.0


@dataclass(frozen=True)
class ActivationSettings:
    """LC's perceptrons with these activations; of maxout half as many units, so as many linear functions."""

    activations: tuple[Activation, ...] = ("relu", "leaky_relu", "hardtanh", "maxout")
    digits: DigitSettings = field(default_factory=DigitSettings)
    seeds: tuple[int, ...] = (0, 1, 2)


def _trainings_of(settings: ActivationSettings, activation: Activation) -> list[Training]:
    """Those with ReLU are LC's own."""
    own = [digit_training(settings.digits, SCALE, seed) for seed in settings.seeds]
    halves = 2 if activation == "maxout" else 1
    return [replace(t, activation=activation, width=t.width // halves) for t in own]


def _trainings(settings: ActivationSettings) -> list[Training]:
    return [training for activation in settings.activations for training in _trainings_of(settings, activation)]


def _measurements(settings: ActivationSettings) -> list[Measurement]:
    return [watched_digits(settings.digits, training) for training in _trainings(settings)]


def _evidence(settings: ActivationSettings, lab: Lab) -> Evidence:
    curves: dict[str, Curve] = {}
    for activation in settings.activations:
        trainings = _trainings_of(settings, activation)
        found = lab.measured([watched_digits(settings.digits, training) for training in trainings])
        curves |= {f"{name}, {activation}": curve_of(found, column) for name, column in COLUMNS.items()}
        curves[f"clean, {activation}"] = recorded_curve(lab, trainings, "test_accuracy")
    return Evidence(curves)


def _checks(settings: ActivationSettings, evidence: Evidence) -> Sequence[Check]:
    """What LC 3 is judged by, for each activation that LC does not have; ReLU's numbers are told beside them."""
    curves, checks = evidence.curves, []
    for activation in settings.activations:
        if why := ends_early(settings.digits.steps, ENOUGH):
            late = [untested(f"late change, {activation}", why)]
        else:
            late = [
                drops_late(f"{name}, {activation}", curves[f"{name}, {activation}"], by=DROP) for name in ("LC", "TV")
            ]
            late.append(rises_late(f"PGD accuracy, {activation}", curves[f"PGD, {activation}"], by=RISE))
        ends = [
            reported(f"{n} accuracy at the end, {activation}", curves[f"{n}, {activation}"].runs[:, -1])
            for n in ("clean", "PGD")
        ]
        checks += [*(replace(check, rule="", holds=None) if activation == "relu" else check for check in late), *ends]
    return checks


def _draw(findings: Findings) -> "Figure":
    """A column a measure, all activations in one panel; each as a multiple of its start where scales differ."""
    curves = findings.evidence.curves
    activations = [name.removeprefix("LC, ") for name in curves if name.startswith("LC, ")]
    figure, axes = panels(2, 2, height=2.7)
    labels = {"LC": "local complexity", "TV": "total variation", "clean": "test accuracy", "PGD": "PGD accuracy"}
    for ax, (name, label) in zip(axes, labels.items(), strict=True):
        draw_curves(ax, {a: curves[f"{name}, {a}"] for a in activations}, ylabel=label)
        if name in ("LC", "TV"):
            ax.set_yscale("log")
        else:
            ax.set_ylim(-0.03, 1.03)
    return figure


FIGURES = (
    Experiment(
        name="x4",
        title="Local complexity, total variation and robustness with LeakyReLU, hard tanh and maxout, scale 2",
        claim="What LC 3 shows for ReLU holds for LeakyReLU, hard tanh and maxout: late in training local complexity"
        " and total variation drop, and robust accuracy rises.",
        scales=beyond_scales(
            ActivationSettings, {"digits": DigitSettings(**SMOKE)}, {"digits": DigitSettings(**LAPTOP)}
        ),
        trainings=_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "LC leaves other activations open: all else as in LC 3, the initial weights too; a hard tanh has two"
            " breakpoints a unit, maxout one between its two linear functions, of which there are as many as units of"
            " the others; rules are those of lc3",
        ),
    ),
)
