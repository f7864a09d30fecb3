"""LC figures 3, 8 and 12: complexity, variation, rank and robustness of perceptrons on a thousand images of MNIST."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from regionscope.experiments.curves import curve_of, measurement_at_records, recorded_curve
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import (
    at_most,
    correlates,
    correlation,
    drops_late,
    ends_early,
    late_part,
    reported,
    rises_late,
    untested,
)
from regionscope.training.config import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEAN, STD = 0.1307, 0.3081
ENOUGH = 50_000  # steps before which the paper's curves show no late drop
DROP, RISE = 0.2, 0.05  # least late drop as a share of the highest late value; least late rise of an accuracy
TOGETHER = 0.5  # rank correlation from which on two curves go together
EPS = 0.01  # of local rank: with it, networks start with the authors' ranks (figures 2 and 7)
Variant = Literal["paper", "script"]
COLUMNS = {"LC": "test/local_complexity", "TV": "test/total_variation", "PGD": "test/robust_accuracy"}


@dataclass(frozen=True)
class DigitSettings:
    """Perceptrons on MNIST as LC trains them, one of each scale a seed.

    The `script` variant is there once, with the first of the seeds: scales do not reach it. Local rank, which is dear,
    is taken at `rank_points`.
    """

    scales: tuple[float, ...] = (2.0,)
    depth: int = 4
    width: int = 200
    dataset: str = "mnist"
    size: int = 1000
    steps: int = 1_000_000
    records: int = 51
    points: int = 1000
    rank_points: int = 0
    sigma: float = 0.05
    draws: int = 16
    variants: tuple[Variant, ...] = ("paper", "script")
    seeds: tuple[int, ...] = (0, 1, 2)


SMOKE: dict[str, Any] = {
    "width": 16, "dataset": "mnist-sample", "size": 100, "steps": 6, "records": 4, "points": 10, "draws": 2,
    "seeds": (0, 1),
}  # fmt: skip
# fewer steps, records, points and draws, the same in all figures, so that these share their runs
LAPTOP: dict[str, Any] = {"steps": 60_000, "records": 31, "points": 200, "draws": 8}


def digit_training(settings: DigitSettings, scale: float, seed: int) -> Training:
    """Adam, He weights times the scale, decay 0.01 (LC B)."""
    return Training(
        dataset=settings.dataset, size=settings.size, test_size=settings.size, normalise=(MEAN, STD),
        depth=settings.depth, width=settings.width, init="he", init_scale=scale, optimiser="adam", lr=1e-4,
        weight_decay=0.01, batch_size=64, steps=settings.steps, records=settings.records, measures=(), seed=seed,
    )  # fmt: skip


def _script_training(settings: DigitSettings, seed: int) -> Training:
    """As the published script has it."""
    return replace(
        digit_training(settings, 1.0, seed), init="lc-script", optimiser="adamw", decay="weights",
        loss="softmax-cross-entropy",
    )  # fmt: skip


def _trainings_by_kind(settings: DigitSettings) -> dict[str, list[Training]]:
    """The runs of each scale, one a seed, and that of the script."""
    found = {}
    if "paper" in settings.variants:
        found = {
            _label(scale): [digit_training(settings, scale, s) for s in settings.seeds] for scale in settings.scales
        }
    if "script" in settings.variants:
        found["script"] = [_script_training(settings, settings.seeds[0])]
    return found


def _label(scale: float) -> str:
    return f"scale {scale:g}"


def digit_trainings(settings: DigitSettings) -> list[Training]:
    """Of all kinds."""
    return [training for trainings in _trainings_by_kind(settings).values() for training in trainings]


def complexity_options(settings: DigitSettings) -> dict[str, Any]:
    """What local complexity is told."""
    return {"sigma": settings.sigma, "draws": settings.draws, "method": "auto"}


def watched_digits(settings: DigitSettings, training: Training) -> Measurement:
    """Complexity, variation, robustness and perhaps rank of one run."""
    attack = {
        "attack": "pgd", "radius": 80 / 255, "steps": 10, "step_size": 10 / 255, "restarts": 2, "loss": "cross-entropy",
    }  # fmt: skip
    measures = {"local_complexity": complexity_options(settings), "total_variation": {}, "robust_accuracy": attack}
    if settings.rank_points:
        measures["local_rank"] = {"eps": EPS, "points": settings.rank_points}
    return measurement_at_records(training, measures, probes=("test",), points=settings.points)


def _measurements(settings: DigitSettings) -> list[Measurement]:
    return [watched_digits(settings, training) for training in digit_trainings(settings)]


def _evidence(settings: DigitSettings, lab: Lab) -> Evidence:
    """Curves are named by what is measured and the kind: "LC, scale 2"."""
    columns = dict(COLUMNS)
    if settings.rank_points:
        columns |= {f"LR {layer}": f"test/local_rank/layer{layer}" for layer in range(1, settings.depth + 1)}
    curves: dict[str, Curve] = {}
    for kind, trainings in _trainings_by_kind(settings).items():
        found = lab.measured([watched_digits(settings, training) for training in trainings])
        curves |= {f"{name}, {kind}": curve_of(found, column) for name, column in columns.items()}
        curves[f"clean, {kind}"] = recorded_curve(lab, trainings, "test_accuracy")
    return Evidence(curves)


# what is judged


def _late_checks(curves: Mapping[str, Curve], kind: str, dropping: Sequence[str]) -> list[Check]:
    """What drops late, and that robust accuracy rises."""
    drops = [
        drops_late(f"{name}, {kind}", curves[f"{name}, {kind}"], by=DROP, paper="a late drop") for name in dropping
    ]
    return [*drops, rises_late(f"PGD accuracy, {kind}", curves[f"PGD, {kind}"], by=RISE, paper="a late rise")]


def _told_only(checks: Sequence[Check]) -> list[Check]:
    """The same numbers, not judged."""
    return [replace(check, rule="", holds=None, why="") for check in checks]


def _all_checks(
    settings: DigitSettings,
    evidence: Evidence,
    dropping: Sequence[str],
    own: Callable[[Mapping[str, Curve]], Sequence[Check]],
) -> list[Check]:
    """Late changes of every scale and what else a figure claims; the script's numbers beside them, and how it ends."""
    curves, kinds = evidence.curves, list(_trainings_by_kind(settings))
    ends = [
        reported(f"{name} accuracy at the end, {kind}", curves[f"{name}, {kind}"].runs[:, -1])
        for kind in kinds
        for name in ("clean", "PGD")
    ]
    if why := ends_early(settings.steps, ENOUGH):
        return [untested(f"late change of {name}", why) for name in (*dropping, "PGD accuracy")] + ends
    judged = [check for scale in settings.scales for check in _late_checks(curves, _label(scale), dropping)]
    script = _told_only(_late_checks(curves, "script", dropping)) if "script" in kinds else []
    return [*judged, *own(curves), *script, *ends]


def _scale_2_checks(settings: DigitSettings, evidence: Evidence) -> Sequence[Check]:
    """LC and TV drop late by a fifth at least, robust accuracy rises late by 0.05 at least, LC and TV go together."""

    def together(curves: Mapping[str, Curve]) -> list[Check]:
        pair = (curves[f"{name}, {_label(settings.scales[0])}"] for name in ("LC", "TV"))
        return [correlates("LC and TV", *pair, at_least_r=TOGETHER, ranks=True, paper="most clearly here")]

    return _all_checks(settings, evidence, ("LC", "TV"), together)


def _scales_checks(settings: DigitSettings, evidence: Evidence) -> Sequence[Check]:
    """At both scales LC drops and robust accuracy rises; at the smaller one LC and TV do not go together."""

    def apart(curves: Mapping[str, Curve]) -> list[Check]:
        kinds = [_label(scale) for scale in sorted(settings.scales)]
        found = {
            kind: [
                correlation(a, b, ranks=True)
                for a, b in zip(curves[f"LC, {kind}"].runs, curves[f"TV, {kind}"].runs, strict=True)
            ]
            for kind in kinds
        }
        words = "LC and TV, {}: rank correlation"
        return [
            at_most(words.format(kinds[0]), found[kinds[0]], TOGETHER, paper="breaks down"),
            *(reported(words.format(kind), found[kind]) for kind in kinds[1:]),
        ]

    return _all_checks(settings, evidence, ("LC",), apart)


def _rank_checks(settings: DigitSettings, evidence: Evidence) -> Sequence[Check]:
    """LR of the layers behind the first drops late, with LC, while robust accuracy rises; then LR and LC go together.

    The rank of the first layer is that of a matrix: it says nothing of the data.
    """
    behind = [f"LR {layer}" for layer in range(2, settings.depth + 1)]

    def together(curves: Mapping[str, Curve]) -> list[Check]:
        kind = _label(settings.scales[0])
        late = {name: late_part(curves[f"{name}, {kind}"]) for name in ("LC", *behind)}
        return [
            correlates(f"LC and {name}, late", late["LC"], late[name], at_least_r=TOGETHER, ranks=True)
            for name in behind
        ]

    return _all_checks(settings, evidence, ("LC", *behind), together)


# pictures


def _draw(findings: Findings) -> "Figure":
    """Local complexity, total variation or local ranks, accuracies: a row for each scale and for the script."""
    curves = findings.evidence.curves
    kinds = [name.removeprefix("LC, ") for name in curves if name.startswith("LC, ")]
    figure, axes = panels(3, len(kinds))
    for k, kind in enumerate(kinds):
        first, second, third = axes[3 * k : 3 * k + 3]
        named = {name.removesuffix(f", {kind}"): c for name, c in curves.items() if name.endswith(f", {kind}")}
        ranks = {f"layer {name.split()[1]}": curve for name, curve in named.items() if name.startswith("LR ")}
        draw_curves(first, {"LC": named["LC"]}, ylabel="local complexity", from_zero=True)
        ylabel = "local rank" if ranks else "total variation"
        draw_curves(second, ranks or {"TV": named["TV"]}, ylabel=ylabel, from_zero=True)
        draw_curves(third, {name: named[name] for name in ("clean", "PGD")}, ylabel="test accuracy")
        third.set_ylim(-0.03, 1.03)
        about = "the published script's" if kind == "script" else f"the paper's setting, {kind}"
        first.set_title(about, loc="left", fontsize="medium")
    return figure


CHOICES = (
    "the script's variant is that of its training; its clipping of attacks to [-2, 2], which the images exceed"
    " themselves, and its own formulas for LC and TV are not repeated",
    "σ = 0.05, the number of draws and of seeds; PGD in the units of the normalised images and within their"
    " range, from the image and from one random start, one mistake on the way counting",
)


def _figure(
    name: str, title: str, claim: str, checks: Callable[[DigitSettings, Evidence], Sequence[Check]], *choices: str,
    smoke: Mapping[str, Any] | None = None, laptop: Mapping[str, Any] | None = None, **own: Any,
) -> Experiment[DigitSettings]:  # fmt: skip
    return Experiment(
        name=name,
        title=title,
        claim=claim,
        scales={
            "smoke": DigitSettings(**{**own, **SMOKE, **(smoke or {})}),
            "laptop": DigitSettings(**{**own, **LAPTOP, **(laptop or {})}),
            "paper": DigitSettings(**own),
        },
        trainings=digit_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=checks,
        draw=_draw,
        choices=(*CHOICES, *choices),
    )


FIGURES = (
    _figure(
        "lc3",
        "Local complexity, total variation and robustness, MNIST 4×200, scale 2",
        "Late in training local complexity and total variation drop, and robust accuracy rises.",
        _scale_2_checks,
    ),
    _figure(
        "lc8",
        "Local complexity, total variation and robustness, MNIST 4×200, scales 1 and 3",
        "Robust accuracy rises late as local complexity drops, with small and with large initial weights; with small"
        " ones total variation does not follow local complexity.",
        _scales_checks,
        scales=(1.0, 3.0),
    ),
    _figure(
        "lc12",
        "Local rank, local complexity and robustness, MNIST 3×200, scale 1",
        "Local rank drops with the second drop of local complexity, and with the rise of robust accuracy.",
        _rank_checks,
        "local rank counts singular values of at least 0.01, as the published script does, at fewer points than the"
        " other measures",
        smoke={"rank_points": 4},
        laptop={"rank_points": 16},
        scales=(1.0,),
        depth=3,
        rank_points=128,
    ),
)
