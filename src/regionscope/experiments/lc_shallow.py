"""LC figures 11 and 13: networks with one hidden layer on MNIST: clusters of their weights, and weight decay."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from scipy import stats
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from regionscope.experiments.curves import curve_of, measurement_at_records
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.lc_mnist import DROP, SMOKE, DigitSettings, Variant, complexity_options, digit_training
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.settings import settings_from_plain
from regionscope.experiments.verdicts import at_least, drops_late, ends_early, monotone, reported, untested
from regionscope.integrations import extra
from regionscope.training.config import Training
from regionscope.training.loop import run_model
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENOUGH = 10_000  # steps before which nothing is called late
BEFORE = 494  # the step, before the drop, at which the paper shows the weights first
CLUSTERS = 10  # as many as classes
APPEAR = 0.1  # least rise of the silhouette with which clusters appear
LEAST_R2 = 0.5  # of the linear fit; the paper's is 0.6972
Embedding = Literal["umap", "pca"]


def _complexity(settings: DigitSettings, training: Training) -> Measurement:
    measures = {"local_complexity": complexity_options(settings)}
    return measurement_at_records(training, measures, probes=("test",), points=settings.points)


# figure 11


@dataclass(frozen=True)
class ClusterSettings(DigitSettings):
    """One wide hidden layer, and how its weight vectors are laid out on the plane."""

    scales: tuple[float, ...] = (1.0,)
    depth: int = 1
    width: int = 5000
    variants: tuple[Variant, ...] = ("paper",)
    embedding: Embedding = "umap"


@dataclass(frozen=True)
class Vectors:
    """Whose weight vectors are laid out, and how."""

    training: Training
    embedding: Embedding


def _cluster_trainings(settings: ClusterSettings) -> list[Training]:
    return [digit_training(settings, settings.scales[0], seed) for seed in settings.seeds]


def _laid_out(settings: ClusterSettings) -> list[Measurement]:
    return [Measurement(_weight_clusters, Vectors(t, settings.embedding)) for t in _cluster_trainings(settings)]


def _cluster_measurements(settings: ClusterSettings) -> list[Measurement]:
    return [*(_complexity(settings, t) for t in _cluster_trainings(settings)), *_laid_out(settings)]


def _weight_clusters(asked: Vectors, lab: Lab) -> dict[str, Any]:
    """Weight vectors on the plane, (2, units, 2), and their silhouettes: at the record nearest 494 and at the end."""
    run = lab.run(asked.training)
    steps = [min(run.steps, key=lambda step: abs(step - BEFORE)), run.steps[-1]]
    vectors = [next(run_model(run, step).parameters()).detach().double().numpy() for step in steps]
    seed = asked.training.seed
    return {
        "steps": steps,
        "places": np.array([EMBEDDINGS[asked.embedding](v, seed) for v in vectors], np.float32),
        "silhouettes": [silhouette(v, _clusters(v, seed)) for v in vectors],
    }


def _umap_places(vectors: Floats, seed: int) -> Floats:
    with extra("experiments"):
        from umap import UMAP
    threads = torch.get_num_threads()
    try:
        return np.asarray(UMAP(random_state=seed, n_jobs=1).fit_transform(vectors), np.float64)
    finally:
        torch.set_num_threads(threads)  # its loops set it to all cores, which slows small trainings down


def _principal_places(vectors: Floats, seed: int) -> Floats:
    centred = vectors - vectors.mean(axis=0)
    return np.asarray(centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T)


EMBEDDINGS = {"umap": _umap_places, "pca": _principal_places}


def _clusters(vectors: Floats, seed: int) -> np.ndarray:
    """The cluster of each vector, by k-means; it is no part of the layout, which makes clusters of its own."""
    chosen = np.random.default_rng(seed).choice(len(vectors), CLUSTERS, replace=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of equal vectors some clusters stay empty
        return np.asarray(kmeans2(vectors, vectors[chosen], minit="matrix")[1])


def silhouette(vectors: Floats, labels: np.ndarray) -> float:
    """The mean of (b - a) / max(a, b): a is the mean distance to one's own cluster, b to the nearest other (Rousseeuw).

    One that is alone in its cluster counts 0.

    >>> silhouette(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1]))
    1.0
    """
    distances, names = cdist(vectors, vectors), np.unique(labels)
    if len(names) < 2:
        return 0.0
    member = labels[:, None] == names  # (n, clusters)
    sums, sizes = distances @ member, member.sum(axis=0)
    own = sums[member] / np.maximum(sizes[member.argmax(axis=1)] - 1, 1)
    other = np.where(member, np.inf, sums / sizes).min(axis=1)
    alone = sizes[member.argmax(axis=1)] == 1
    larger = np.maximum(own, other)
    return float(np.where(alone | (larger == 0), 0.0, (other - own) / np.where(larger == 0, 1.0, larger)).mean())


def _cluster_evidence(settings: ClusterSettings, lab: Lab) -> Evidence:
    """The layout is the first seed's."""
    found = lab.measured(_laid_out(settings))
    complexities = lab.measured([_complexity(settings, training) for training in _cluster_trainings(settings)])
    return Evidence(
        {"LC": curve_of(complexities, "test/local_complexity")},
        {
            "silhouettes": np.array([one["silhouettes"] for one in found]),
            "steps": found[0]["steps"],
            "places": found[0]["places"],
        },
    )


def _cluster_checks(settings: ClusterSettings, evidence: Evidence) -> Sequence[Check]:
    """LC drops late by a fifth, and the silhouette of the weight vectors is higher at the end than before that."""
    before, after = evidence.arrays["silhouettes"].T
    steps = [f"{step:,}" for step in evidence.arrays["steps"]]
    told = [reported(f"silhouette at step {step}", s) for step, s in zip(steps, (before, after), strict=True)]
    if why := ends_early(settings.steps, ENOUGH):
        return [untested("clusters of weight vectors after the drop of LC", why), *told]
    return [
        drops_late("LC", evidence.curves["LC"], by=DROP, paper="a drop"),
        at_least("rise of the silhouette of weight vectors", after - before, APPEAR, paper="clusters appear"),
        *told,
    ]


def _draw_clusters(findings: Findings) -> "Figure":
    """Local complexity with the two steps marked, and the weight vectors at each."""
    evidence = findings.evidence
    figure, axes = panels(3)
    draw_curves(axes[0], evidence.curves, ylabel="local complexity", from_zero=True)
    name = {"umap": "UMAP", "pca": "principal axes"}[findings.settings["embedding"]]
    for ax, step, places in zip(axes[1:], evidence.arrays["steps"], evidence.arrays["places"], strict=True):
        axes[0].axvline(step, color="0.5", lw=0.8, ls="--", zorder=1)
        ax.scatter(places[:, 0], places[:, 1], s=2, lw=0, color="C0", rasterized=True)
        ax.set(xticks=[], yticks=[], xlabel=f"{name} of weights")
        ax.set_title(f"step {step:,}", fontsize="medium")
    return figure


# figure 13


@dataclass(frozen=True)
class DecaySettings(DigitSettings):
    """One hidden layer and a sweep of weight decay."""

    scales: tuple[float, ...] = (1.0,)
    depth: int = 1
    width: int = 1000
    variants: tuple[Variant, ...] = ("paper",)
    decays: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1)


def _by_decay(settings: DecaySettings) -> dict[str, list[Training]]:
    """One a seed."""
    return {
        f"decay {decay:g}": [
            replace(digit_training(settings, settings.scales[0], seed), weight_decay=decay) for seed in settings.seeds
        ]
        for decay in settings.decays
    }


def _decay_trainings(settings: DecaySettings) -> list[Training]:
    return [training for trainings in _by_decay(settings).values() for training in trainings]


def _decay_measurements(settings: DecaySettings) -> list[Measurement]:
    return [_complexity(settings, training) for training in _decay_trainings(settings)]


def _decay_evidence(settings: DecaySettings, lab: Lab) -> Evidence:
    return Evidence(
        {
            name: curve_of(lab.measured([_complexity(settings, t) for t in trainings]), "test/local_complexity")
            for name, trainings in _by_decay(settings).items()
        }
    )


def _final(evidence: Evidence) -> Floats:
    """LC at the end, (seeds, decays)."""
    return np.stack([curve.runs[:, -1] for curve in evidence.curves.values()], axis=1)


def _bound_by_decay(settings: DecaySettings) -> Floats:
    """What (17) bounds LC by, but for its unknown factor: log(1/λ) C_bias n^((1-L)/2) L^(1-L/2) / n_0."""
    L = settings.depth + 1
    factor = settings.width ** ((1 - L) / 2) * L ** (1 - L / 2) / (settings.sigma * math.sqrt(2 * math.pi) * 784)
    return np.asarray(factor * np.log(1 / np.array(settings.decays)))


def _decay_checks(settings: DecaySettings, evidence: Evidence) -> Sequence[Check]:
    """More decay, less LC at the end; its linear fit by the bound explains half of its variance at least."""
    final, x = _final(evidence), _bound_by_decay(settings)
    fits = [stats.linregress(x, row) for row in final]
    if why := ends_early(settings.steps, ENOUGH):
        return [untested("LC at the end against weight decay", why), reported("LC at the end", final.mean(axis=1))]
    return [
        monotone("LC at the end with weight decay", settings.decays, final, rising=False, paper="lower for more decay"),
        at_least("R² of the linear fit by the bound", [f.rvalue**2 for f in fits], LEAST_R2, paper="0.6972"),
        reported("slope of the linear fit", [fit.slope for fit in fits], paper="positive"),
    ]


def _draw_decay(findings: Findings) -> "Figure":
    """LC over training for each decay, and at the end against the bound, with the fit through all runs."""
    figure, (left, right) = panels(2)
    draw_curves(left, findings.evidence.curves, ylabel="local complexity", from_zero=True)
    final = _final(findings.evidence)
    x = _bound_by_decay(settings_from_plain(DecaySettings, findings.settings))
    places = np.tile(x, len(final))
    right.plot(places, final.ravel(), "o", color="C0", ms=4, mfc="none")
    fit = stats.linregress(places, final.ravel())
    right.plot(x, fit.intercept + fit.slope * x, color="0.4", lw=1)
    right.set(xlabel="bound (17), but for a factor", ylabel="local complexity at the end")
    right.set_title(f"R² = {fit.rvalue**2:.3f}", fontsize="medium")
    return figure


LAPTOP: dict[str, Any] = {"steps": 20_000, "records": 31, "points": 200, "draws": 8}
FIGURES = (
    Experiment(
        name="lc11",
        title="Weight vectors of one hidden layer, before and after the drop of local complexity",
        claim="Weight vectors form clusters after the drop of local complexity.",
        scales={
            "smoke": ClusterSettings(**{**SMOKE, "width": 40}, embedding="pca"),
            "laptop": ClusterSettings(**LAPTOP, width=500),
            "paper": ClusterSettings(),
        },
        trainings=_cluster_trainings,
        measurements=_cluster_measurements,
        evidence=_cluster_evidence,
        checks=_cluster_checks,
        draw=_draw_clusters,
        choices=(
            "clusters are told by the silhouette of ten clusters that k-means finds among the weight vectors"
            " themselves: UMAP, which the paper shows, makes clusters of its own, and is for the eye",
            "initial weights of scale 1, weight decay 0.01; the first step is the record nearest 494",
        ),
    ),
    Experiment(
        name="lc13",
        title="Local complexity and weight decay, one hidden layer",
        claim="The more weight decay, the lower is local complexity at the end, in proportion to the bound (17).",
        scales={
            "smoke": DecaySettings(**SMOKE, decays=(0.01, 0.03, 0.1)),
            "laptop": DecaySettings(**LAPTOP, width=200),
            "paper": DecaySettings(),
        },
        trainings=_decay_trainings,
        measurements=_decay_measurements,
        evidence=_decay_evidence,
        checks=_decay_checks,
        draw=_draw_decay,
        choices=("the values of weight decay, and initial weights of scale 1: the paper prints neither",),
    ),
)
