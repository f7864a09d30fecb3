"""Beyond the papers, x8: which measure predicts how a network generalises, and how robust it is?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from torch import Tensor

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import panels
from regionscope.experiments.verdicts import interval_above, reported, untested
from regionscope.experiments.x_runs import beyond_scales
from regionscope.measures.table import MEASURES
from regionscope.tracing.trace import trace
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model
from regionscope.types import Floats, Indices

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUTCOMES = ("generalisation gap", "robust accuracy")
PREDICTORS = (
    "local complexity", "crossings", "regions", "distance", "total variation", "local rank", "weight norm", "units",
)  # fmt: skip
JUDGED = "local complexity"
FITTED = 0.99  # training accuracy of networks that are compared
PREDICTS = 0.3  # rank correlation, whatever its sign
FEWEST = 30  # networks that a rank correlation is taken of
RESAMPLES = 2000
ATTACK: dict[str, Any] = {"radius": 0.05, "bounds": (0.0, 1.0), "restarts": 1, "steps": 10}


@dataclass(frozen=True)
class PredictionSettings:
    """So many networks a seed, whose sizes and training are drawn, and how they are measured."""

    networks: int = 300
    dataset: str = "mnist"
    size: int = 1000
    steps: int = 5000
    widest: int = 256
    points: int = 500
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class _Predicting:
    training: Training
    points: int


def _drawn_trainings(settings: PredictionSettings) -> list[Training]:
    """Depth, width, learning rate, decay, batch and scale of the initial weights, each drawn from a few values."""
    found = []
    for seed in settings.seeds:
        draws = np.random.default_rng([seed, 8])
        for number in range(settings.networks):
            found.append(
                Training(
                    dataset=settings.dataset, size=settings.size, test_size=settings.size, optimiser="adamw",
                    depth=int(draws.integers(1, 5)), width=settings.widest >> int(draws.integers(0, 4)),
                    lr=float(draws.choice([3e-4, 1e-3, 3e-3])), weight_decay=float(draws.choice([0.0, 0.1, 1.0])),
                    batch_size=int(draws.choice([16, 64, 256])), init_scale=float(draws.choice([0.5, 1.0, 2.0])),
                    steps=settings.steps, records=2, measures=(), seed=seed * settings.networks + number,
                )
            )  # fmt: skip
    return found


def _measurements(settings: PredictionSettings) -> list[Measurement]:
    return [Measurement(_predictors_and_outcomes, _Predicting(t, settings.points)) for t in _drawn_trainings(settings)]


def _predictors_and_outcomes(settings: _Predicting, lab: Lab) -> dict[str, float]:
    """All that is known of one network at its end: measures at test points, and what they are to predict."""
    training = settings.training
    run, data = lab.run(training), training_data(training)
    points, labels = (part[: settings.points] for part in data.test)
    few, model = points[: settings.points // 4], run_model(run)
    net = trace(model, points[:1])

    def mean(name: str, x: Tensor, *labels: Tensor, **options: Any) -> float:
        return MEASURES[name].estimate(net, x, *labels, seed=training.seed, **options).mean

    last = run.read(run.steps[-1]).scalars
    train, test = (float(last[f"{name}_accuracy"] or 0.0) for name in ("train", "test"))
    return {
        "train accuracy": train,
        "generalisation gap": train - test,
        "robust accuracy": mean("robust_accuracy", points, labels, **ATTACK),
        "local complexity": mean("local_complexity", points, sigma=0.05, draws=4),
        "crossings": mean("boundary_crossings", points, radius=0.5),
        "regions": mean("local_region_count", few, radius=0.5),
        "distance": mean("boundary_distance", points),
        "total variation": mean("total_variation", points),
        "local rank": mean("local_rank", few, eps=0.1),
        "weight norm": float(sum(p.detach().square().sum() for p in model.parameters()) ** 0.5),
        "units": net.units,
    }


def _evidence(settings: PredictionSettings, lab: Lab) -> Evidence:
    found = lab.measured(_measurements(settings))
    names = ("train accuracy", *OUTCOMES, *PREDICTORS)
    return Evidence(arrays={name: np.array([float(one[name]) for one in found]) for name in names})


def rank_correlations(predictor: Floats, outcome: Floats, rows: Indices) -> Floats:
    """Spearman's of the chosen rows of two arrays, (resamples, n) -> (resamples,); no number where one is constant."""
    a, b = (stats.rankdata(values[rows], axis=1) for values in (predictor, outcome))
    a, b = (ranks - ranks.mean(axis=1, keepdims=True) for ranks in (a, b))
    with np.errstate(invalid="ignore"):
        return np.asarray((a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1)))


def _correlations_and_resamples(arrays: Mapping[str, Floats], outcome: str) -> tuple[Floats, Floats]:
    """Rank correlations of all predictors with an outcome (p,), and those of bootstrap resamples (r, p)."""
    count = len(arrays[outcome])
    rows = np.concatenate([np.arange(count)[None], np.random.default_rng(0).integers(count, size=(RESAMPLES, count))])
    found = np.stack([rank_correlations(arrays[p], arrays[outcome], rows) for p in PREDICTORS], axis=1)
    return found[0], found[1:]


def _fitted_networks(arrays: Mapping[str, Floats]) -> dict[str, Floats]:
    """Those networks that have learned their training points."""
    return {name: array[arrays["train accuracy"] >= FITTED] for name, array in arrays.items()}


def _checks(settings: PredictionSettings, evidence: Evidence) -> Sequence[Check]:
    """Local complexity predicts either outcome, and better than each of the others."""
    arrays, checks = _fitted_networks(evidence.arrays), []
    count = len(arrays["train accuracy"])
    told = [reported("networks that fit their training points", [count])]
    if count < FEWEST:
        return [*told, untested("prediction", f"{count} networks are too few to rank")]
    judged = PREDICTORS.index(JUDGED)
    others = [k for k in range(len(PREDICTORS)) if k != judged]
    for outcome in OUTCOMES:
        found, resampled = _correlations_and_resamples(arrays, outcome)
        size, sizes, both = np.abs(found), np.abs(resampled), f"{JUDGED} and {outcome}"
        lead, leads = size[judged] - size[others].max(), sizes[:, judged] - sizes[:, others].max(axis=1)
        checks += [
            interval_above(f"{both}: size of the rank correlation", float(size[judged]), sizes[:, judged], PREDICTS),
            interval_above(f"{both}: that less the largest of all other measures", float(lead), leads, 0.0),
        ]
        told += [
            Check(f"{p} and {outcome}: rank correlation", float(r), float(e))
            for p, r, e in zip(PREDICTORS, found, resampled.std(axis=0), strict=True)
        ]
    return [*checks, *told]


def _draw(findings: Findings) -> "Figure":
    """Rank correlations with their bootstrap intervals, and the judged measure against both outcomes."""
    whole = findings.evidence.arrays
    arrays = _fitted_networks(whole)
    figure, axes = panels(2, 2, height=2.6)
    for k, outcome in enumerate(OUTCOMES):
        rows = range(len(PREDICTORS))
        if len(arrays[outcome]) >= FEWEST:
            found, resampled = _correlations_and_resamples(arrays, outcome)
            axes[k].hlines(rows, *np.quantile(resampled, (0.025, 0.975), axis=0), color="#2a7fc1")
            axes[k].plot(found, rows, "o", color="#2a7fc1")
        axes[k].axvline(0.0, color="0.6", lw=0.8, zorder=1)
        axes[k].set(yticks=rows, xlim=(-1, 1), xlabel=f"rank correlation with\n{outcome}")
        axes[k].set_yticklabels(PREDICTORS if k == 0 else [""] * len(PREDICTORS))
        axes[k].invert_yaxis()
        axes[2 + k].plot(whole[JUDGED], whole[outcome], ".", color="0.8", label="not fitted")
        axes[2 + k].plot(arrays[JUDGED], arrays[outcome], ".", color="#7b3fa0", label="fitted")
        axes[2 + k].set(xscale="log", xlabel=JUDGED, ylabel=outcome)
    axes[2].legend(frameon=False, fontsize="small")
    return figure


FIGURES = (
    Experiment(
        name="x8",
        title="Rank correlations of measures with generalisation gap and robust accuracy, over many small networks",
        claim="Of all measures, local complexity ranks networks best, both by their generalisation gap and by their"
        " robust accuracy.",
        scales=beyond_scales(
            PredictionSettings,
            {
                "networks": 4, "dataset": "mnist-sample", "size": 50, "steps": 10, "widest": 16, "points": 8,
                "seeds": (0,),
            },
            {"networks": 100, "steps": 1500, "widest": 128, "points": 100, "seeds": (0,)},
        ),
        trainings=_drawn_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "no paper asks this: 1 to 4 hidden layers, widths that halve from the widest, AdamW with rates 3·10^-4 to"
            " 3·10^-3, decay 0 to 1, batches of 16 to 256, initial weights times 0.5 to 2; networks below 99% training"
            " accuracy are left out; PGD within 0.05 in Linf",
        ),
    ),
)  # fmt: skip
