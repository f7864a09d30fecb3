"""Beyond the papers, x5: how tight their bounds are while a network trains."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import at_most, reported
from regionscope.experiments.x_runs import (
    SIGMA,
    Sampled,
    SampledSettings,
    networks_over_training,
    sampled_experiment,
    sampled_measurements,
)
from regionscope.inequalities.bounds import bounds
from regionscope.training.config import training_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOVE = (
    "LC Cor. 3 (7)",
    "LC Thm 5 (11)",
    "LC Cor. 14 (31)",
    "LC Prop. 8 (14)",
)  # bounds on local complexity from above
EPS = 0.1  # of local rank
LOOSER = 0.5  # left over right at the end, as a share of that at the start


def _bounds_over_training(settings: Sampled, lab: Lab) -> dict[str, np.ndarray]:
    """Left over right of every bound at every record, and whether it is violated there: (records, bounds) each."""
    points = training_data(settings.training).test[0][: settings.points]
    steps, ratios, violated, names = [], [], [], []
    for step, net in networks_over_training(settings.training, lab):
        generator = torch.Generator().manual_seed(settings.training.seed)
        rows = bounds(net, points, sigma=SIGMA, eps=EPS, draws=settings.draws, generator=generator)
        names = [row.form for row in rows]
        steps.append(step)
        ratios.append([row.ratio for row in rows])
        violated.append([row.holds is False for row in rows])
    return {
        "step": np.array(steps, float),
        "ratio": np.array(ratios),
        "violated": np.array(violated),
        "form": np.array(names),
    }


def _evidence(settings: SampledSettings, lab: Lab) -> Evidence:
    found = lab.measured(sampled_measurements(settings, _bounds_over_training))
    forms, steps = found[0]["form"].tolist(), found[0]["step"]
    ratios, violated = (np.stack([one[name] for one in found]) for name in ("ratio", "violated"))
    curves = {form: Curve.of(steps, ratios[:, :, k]) for k, form in enumerate(forms)}
    curves |= {f"violated: {form}": Curve.of(steps, violated[:, :, k]) for k, form in enumerate(forms)}
    return Evidence(curves)


def _checks(settings: SampledSettings, evidence: Evidence) -> Sequence[Check]:
    """None with valid constants is ever violated; those from above on local complexity end looser than they began."""
    curves = evidence.curves
    broken = {name.removeprefix("violated: "): c.runs for name, c in curves.items() if name.startswith("violated: ")}
    valid = np.sum([runs.sum(axis=1) for name, runs in broken.items() if not name.endswith("printed")], axis=0)
    looser = [
        at_most(f"{form}: left / right at the end over that at the start", runs[:, -1] / runs[:, 0], LOOSER)
        for form in (f"{reference}, valid" for reference in ABOVE)
        for runs in [curves[form].runs]
    ]
    told = [
        reported(f"{form}: share of records where it is violated", runs.mean(axis=1))
        for form, runs in broken.items()
        if form.endswith("printed") and runs.any()
    ]
    told += [
        reported(f"{reference}, valid: left / right at the end", curves[f"{reference}, valid"].runs[:, -1])
        for reference in ABOVE
    ]
    return [at_most("violations of bounds with valid constants, all records together", valid, 0.0), *looser, *told]


def _draw(findings: Findings) -> "Figure":
    """Left over right of the bounds that hold on one side, of those as printed on the other."""
    curves = findings.evidence.curves
    figure, axes = panels(2, height=4.4, sharey=True)
    for ax, kind in zip(axes, ("valid", "printed"), strict=True):
        shown = {
            name.removesuffix(f", {kind}"): Curve.of(curve.x, np.where(curve.runs > 0, curve.runs, np.nan))
            for name, curve in curves.items()
            if name.endswith(f", {kind}") and not name.startswith("violated") and (curve.runs > 0).any()
        }
        draw_curves(ax, shown, ylabel="left / right side" if kind == "valid" else "")
        ax.axhline(1.0, color="black", lw=0.8, zorder=1)
        ax.set(yscale="log")
        ax.set_title("with constants that hold" if kind == "valid" else "as printed", loc="left", fontsize="medium")
        ax.legend(frameon=False, fontsize="x-small", ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.18))
    return figure


FIGURES = (
    sampled_experiment(
        _bounds_over_training,
        smoke=(4, 2),
        laptop=(32, 2),
        name="x5",
        title="Left over right side of every bound of the papers, over training",
        claim="With constants that hold no bound is ever violated, and the bounds on local complexity from above become"
        " looser while a network trains.",
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "no paper asks this: constants from operator norms, η = σ = 0.05, ε = 0.1; a bound counts as violated where"
            " the sides differ by more than three standard errors",
        ),
    ),
)
