"""LC figure 3: local complexity, total variation and robustness of perceptrons on a thousand images of MNIST."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import correlates, drops_late, reported, rises_late, untested
from regionscope.experiments.watching import curve_of, recorded_curve, watching
from regionscope.training.config import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEAN, STD = 0.1307, 0.3081
ENOUGH = 50_000  # steps before which the paper's curves show no late drop
Variant = Literal["paper", "script"]
COLUMNS = {"LC": "test/local_complexity", "TV": "test/total_variation", "PGD": "test/robust_accuracy"}


@dataclass(frozen=True)
class DigitSettings:
    """A perceptron on MNIST as LC trains it; the `script` variant once beside it, with the first of the seeds."""

    scale: float = 2.0
    depth: int = 4
    width: int = 200
    dataset: str = "mnist"
    size: int = 1000
    steps: int = 1_000_000
    records: int = 51
    points: int = 1000
    sigma: float = 0.05
    draws: int = 16
    variants: tuple[Variant, ...] = ("paper", "script")
    seeds: tuple[int, ...] = (0, 1, 2)


def _digit_training(settings: DigitSettings, seed: int, variant: Variant = "paper") -> Training:
    """Adam, He weights times the scale, decay 0.01 (LC B); as the published script has it for variant "script"."""
    paper = Training(
        dataset=settings.dataset, size=settings.size, test_size=settings.size, normalise=(MEAN, STD),
        depth=settings.depth, width=settings.width, init="he", init_scale=settings.scale, optimiser="adam", lr=1e-4,
        weight_decay=0.01, batch_size=64, steps=settings.steps, records=settings.records, measures=(), seed=seed,
    )  # fmt: skip
    script = {"init": "lc-script", "init_scale": 1.0, "optimiser": "adamw", "decay": "weights"}
    return paper if variant == "paper" else replace(paper, loss="softmax-cross-entropy", **script)  # type: ignore[arg-type]


def _seeds(settings: DigitSettings, variant: Variant) -> tuple[int, ...]:
    return settings.seeds if variant == "paper" else settings.seeds[:1]


def _trainings_of(settings: DigitSettings, variant: Variant) -> list[Training]:
    return [_digit_training(settings, seed, variant) for seed in _seeds(settings, variant)]


def _digit_trainings(settings: DigitSettings) -> list[Training]:
    """Of all variants."""
    return [training for variant in settings.variants for training in _trainings_of(settings, variant)]


def _measurements_of(settings: DigitSettings, variant: Variant) -> list[Measurement]:
    attack = {
        "attack": "pgd", "radius": 80 / 255, "steps": 10, "step_size": 10 / 255, "restarts": 2, "loss": "cross-entropy",
    }  # fmt: skip
    complexity = {"sigma": settings.sigma, "draws": settings.draws, "method": "auto"}
    measures = {"local_complexity": complexity, "total_variation": {}, "robust_accuracy": attack}
    return [
        watching(training, measures, probes=("test",), points=settings.points)
        for training in _trainings_of(settings, variant)
    ]


def _measurements(settings: DigitSettings) -> list[Measurement]:
    return [m for variant in settings.variants for m in _measurements_of(settings, variant)]


def _evidence(settings: DigitSettings, lab: Lab) -> Evidence:
    curves: dict[str, Curve] = {}
    for variant in settings.variants:
        found = lab.measured(_measurements_of(settings, variant))
        named = {name: curve_of(found, column) for name, column in COLUMNS.items()}
        named["clean"] = recorded_curve(lab, _trainings_of(settings, variant), "test_accuracy")
        curves |= {name if variant == "paper" else f"{name}, script": curve for name, curve in named.items()}
    return Evidence(curves)


def _checks(settings: DigitSettings, evidence: Evidence) -> Sequence[Check]:
    """LC and TV drop late by a fifth at least, robust accuracy rises late by 0.05 at least, LC and TV go together."""
    curves = evidence.curves
    ends = [
        reported(f"{name} at the end", curve.runs[:, -1]) for name, curve in curves.items() if name in ("clean", "PGD")
    ]
    if settings.steps < ENOUGH:
        why = f"{settings.steps:,} steps end before the late phase"
        return [untested(f"late change of {name}", why) for name in ("LC", "TV", "PGD accuracy")] + ends
    late = [
        drops_late("LC", curves["LC"], by=0.2, paper="a late drop"),
        drops_late("TV", curves["TV"], by=0.2, paper="a late drop"),
        rises_late("PGD accuracy", curves["PGD"], by=0.05, paper="a late rise"),
        correlates("LC and TV", curves["LC"], curves["TV"], at_least_r=0.5, ranks=True, paper="most clearly here"),
    ]
    script = [
        replace(check, rule="", holds=None)
        for name, judge in {"LC, script": drops_late, "TV, script": drops_late}.items()
        for check in ([judge(name, curves[name])] if name in curves else [])
    ]
    return [*late, *script, *ends]


def _draw(findings: Findings) -> "Figure":
    """Local complexity and total variation beside the accuracies; the script's variant in the row below."""
    curves = findings.evidence.curves
    rows = [suffix for suffix in ("", ", script") if f"LC{suffix}" in curves]
    figure, axes = panels(3, len(rows))
    for k, suffix in enumerate(rows):
        about = "the paper's setting" if not suffix else "the published script's"
        for ax, name, label in zip(axes[3 * k :], ("LC", "TV"), ("local complexity", "total variation"), strict=False):
            draw_curves(ax, {name: curves[f"{name}{suffix}"]}, ylabel=label, from_zero=True)
        both = {"clean": curves[f"clean{suffix}"], "PGD": curves[f"PGD{suffix}"]}
        draw_curves(axes[3 * k + 2], both, ylabel="test accuracy")
        axes[3 * k + 2].set_ylim(-0.03, 1.03)
        axes[3 * k].set_title(about, loc="left", fontsize="medium")
    return figure


FIGURES = (
    Experiment(
        name="lc3",
        title="Local complexity, total variation and robustness, MNIST 4×200, scale 2",
        claim="Late in training local complexity and total variation drop, and robust accuracy rises.",
        scales={
            "smoke": DigitSettings(
                width=16, dataset="mnist-sample", size=100, steps=6, records=4, points=10, draws=2, seeds=(0, 1)
            ),
            "laptop": DigitSettings(steps=60_000, records=31, points=200, draws=8),
            "paper": DigitSettings(),
        },
        trainings=_digit_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "the script's variant is that of its training; its clipping of attacks to [-2, 2], which the images exceed"
            " themselves, and its own formulas for LC and TV are not repeated",
            "σ = 0.05, the number of draws and of seeds; PGD in the units of the normalised images and within their"
            " range, from the image and from one random start, one mistake on the way counting",
        ),
    ),
)
