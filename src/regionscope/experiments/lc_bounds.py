"""LC figures 9 and 10: terms of the paper's lower bounds on local complexity, over training on MNIST."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from regionscope.experiments.curves import curve_of, measurement_at_records
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.lc_mnist import (
    DROP,
    ENOUGH,
    LAPTOP,
    SMOKE,
    DigitSettings,
    digit_training,
    digit_trainings,
)
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import (
    at_least,
    at_most,
    drops_late,
    ends_early,
    late_part,
    reported,
    rises_after,
    untested,
)
from regionscope.inequalities.chains import products
from regionscope.measures.complexity import local_complexity
from regionscope.measures.variation import total_variation
from regionscope.tracing.trace import trace
from regionscope.training.config import Training, probes, training_data
from regionscope.training.loop import run_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPIKE = 0.2  # least late rise of TV, as a share of the valley before it


# figure 9


@dataclass(frozen=True)
class VariationBound:
    """At how many test points of a run the two sides are taken, and with which noise; η is σ."""

    training: Training
    points: int
    sigma: float
    draws: int


def _bound_settings(settings: DigitSettings) -> list[VariationBound]:
    return [VariationBound(t, settings.points, settings.sigma, settings.draws) for t in digit_trainings(settings)]


def _bound_measurements(settings: DigitSettings) -> list[Measurement]:
    return [Measurement(_variation_bound, asked) for asked in _bound_settings(settings)]


def _variation_bound(asked: VariationBound, lab: Lab) -> dict[str, np.ndarray]:
    """LC, TV and TV H c_η / max_l |W_L … W_l| (LC eq. 42) at every record; H hidden layers, as the proof has them."""
    run, data = lab.run(asked.training), training_data(asked.training)
    points, _ = probes(replace(asked.training, points=asked.points), data)["test"]
    c_eta = math.exp(-0.5) / (asked.sigma * math.sqrt(2 * math.pi))
    rows = []
    for step in run.steps:
        model = run_model(run, step)
        net = trace(model, points[:1])
        generator = torch.Generator().manual_seed(asked.training.seed)
        complexity = local_complexity(net, points, sigma=asked.sigma, draws=asked.draws, generator=generator).mean
        variation = total_variation(net, points).mean
        rows.append((complexity, variation, variation * asked.training.depth * c_eta / largest_lipschitz(model)))
    return {"step": np.array(run.steps, np.float64), **dict(zip(("LC", "TV", "bound"), np.array(rows).T, strict=True))}


@torch.no_grad()
def largest_lipschitz(model: nn.Module) -> float:
    """max over l of |W_L … W_l|, the paper's estimate of the largest Lipschitz constant of what follows a layer."""
    weights = [layer.weight.double() for layer in model.modules() if isinstance(layer, nn.Linear)]
    return max(float(torch.linalg.matrix_norm(p, ord=2)) for p in products([w.T for w in reversed(weights)]))


def _bound_evidence(settings: DigitSettings, lab: Lab) -> Evidence:
    found = lab.measured(_bound_measurements(settings))
    return Evidence({name: curve_of(found, name) for name in ("LC", "TV", "bound")})


def _bound_checks(settings: DigitSettings, evidence: Evidence) -> Sequence[Check]:
    """LC stays above the bound at all records; late both drop by a fifth, and TV rises by a fifth before or after."""
    lc, tv, bound = (evidence.curves[name] for name in ("LC", "TV", "bound"))
    left = 1 - bound.runs / lc.runs
    holds = at_least("LC less the bound, as a share of LC: least over training", left.min(axis=1), 0.0, paper="holds")
    if why := ends_early(settings.steps, ENOUGH):
        return [holds, *(untested(f"late change of {name}", why) for name in ("LC", "the bound", "TV"))]
    return [
        holds,
        drops_late("LC", lc, by=DROP, paper="a late drop"),
        drops_late("the bound", bound, by=DROP, paper="falls with LC"),
        rises_after("TV, late", late_part(tv), by=SPIKE, paper="spikes"),
        reported("LC / bound at the end", lc.runs[:, -1] / bound.runs[:, -1]),
    ]


def _draw_bound(findings: Findings) -> "Figure":
    """Both sides with TV dotted, then their difference."""
    curves = findings.evidence.curves
    figure, (left, right) = panels(2)
    draw_curves(left, {"LC": curves["LC"], "lower bound": curves["bound"]}, ylabel="boundary density, σ = 1")
    left.set_yscale("log")
    beside = left.twinx()
    beside.plot(curves["TV"].x, curves["TV"].mean, ":", color="0.4")
    beside.set_ylabel("total variation (dotted)")
    difference = Curve.of(curves["LC"].x, curves["LC"].runs - curves["bound"].runs)
    draw_curves(right, {"LC - bound": difference}, ylabel="LC - lower bound")
    right.axhline(0.0, color="0.6", lw=0.8, zorder=1)
    return figure


# figure 10


@dataclass(frozen=True)
class WidthSettings(DigitSettings):
    """A wide and a narrow network."""

    narrow: int = 8


def _networks(settings: WidthSettings) -> dict[str, list[Training]]:
    """By width, one a seed."""
    return {
        f"width {width}": [
            digit_training(replace(settings, width=width), settings.scales[0], s) for s in settings.seeds
        ]
        for width in (settings.narrow, settings.width)
    }


def _width_trainings(settings: WidthSettings) -> list[Training]:
    return [training for trainings in _networks(settings).values() for training in trainings]


def _good(settings: WidthSettings, training: Training) -> Measurement:
    return measurement_at_records(training, {"good_units": {}}, probes=("test",), points=settings.points)


def _good_measurements(settings: WidthSettings) -> list[Measurement]:
    return [_good(settings, training) for training in _width_trainings(settings)]


def _good_evidence(settings: WidthSettings, lab: Lab) -> Evidence:
    """B, the units that are not good."""
    curves = {}
    for name, trainings in _networks(settings).items():
        good = curve_of(lab.measured([_good(settings, t) for t in trainings]), "test/good_units")
        curves[name] = Curve.of(good.x, trainings[0].depth * trainings[0].width - good.runs)
    return Evidence(curves)


def _good_checks(settings: WidthSettings, evidence: Evidence) -> Sequence[Check]:
    """B of the wide network is 0 at all records."""
    narrow, wide = (evidence.curves[f"width {width}"] for width in (settings.narrow, settings.width))
    words = "units that are not good, width {}: most over training"
    return [
        at_most(words.format(settings.width), wide.runs.max(axis=1), 0.0, paper="0 at all steps"),
        reported(words.format(settings.narrow), narrow.runs.max(axis=1)),
    ]


def _draw_good(findings: Findings) -> "Figure":
    figure, (ax,) = panels(1, height=2.8)
    draw_curves(ax, findings.evidence.curves, ylabel="units that are not good, B")
    ax.set_ylim(bottom=min(-0.02, ax.get_ylim()[0]))
    return figure


FIGURES = (
    Experiment(
        name="lc9",
        title="The lower bound on local complexity by total variation, MNIST 4×200, scale 1",
        claim="The lower bound by total variation holds, and falls with local complexity although total variation"
        " spikes.",
        scales={
            "smoke": DigitSettings(scales=(1.0,), sigma=1.0, variants=("paper",), **SMOKE),
            "laptop": DigitSettings(scales=(1.0,), sigma=1.0, variants=("paper",), **LAPTOP),
            "paper": DigitSettings(scales=(1.0,), sigma=1.0, variants=("paper",), seeds=tuple(range(8))),
        },
        trainings=digit_trainings,
        measurements=_bound_measurements,
        evidence=_bound_evidence,
        checks=_bound_checks,
        draw=_draw_bound,
        choices=(
            "L is the number of hidden layers, as in the proof; the terms ξ and B of the bound are left out, as in the"
            " paper's figure, which makes it harder to hold; total variation without noise",
        ),
    ),
    Experiment(
        name="lc10",
        title="Units that are not good, in a narrow and in a wide network, MNIST depth 4",
        claim="In a wide network all units are good at all steps.",
        scales={
            "smoke": WidthSettings(scales=(1.0,), narrow=3, variants=("paper",), **SMOKE),
            "laptop": WidthSettings(scales=(1.0,), variants=("paper",), **LAPTOP),
            "paper": WidthSettings(scales=(1.0,), variants=("paper",)),
        },
        trainings=_width_trainings,
        measurements=_good_measurements,
        evidence=_good_evidence,
        checks=_good_checks,
        draw=_draw_good,
        choices=("8 units in the narrow network: the paper does not say how many; good without noise on the biases",),
    ),
)
