"""LC's figures: what they measure beyond the measures, and that their rules can say both."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Curve, Evidence, verdict_of
from regionscope.experiments.lc_bounds import largest_lipschitz
from regionscope.experiments.lc_gaussians import fastest_share
from regionscope.experiments.lc_mnist import DigitSettings, digit_trainings
from regionscope.experiments.lc_shallow import EMBEDDINGS, silhouette
from regionscope.experiments.length_maps import length_in_pixels
from regionscope.experiments.registry import EXPERIMENTS
from regionscope.inequalities.bounds import bounds
from regionscope.training.models import mlp

STEPS = np.array([0.0, *np.geomspace(1, 60_000, 25)])
SEEDS = np.array([[1.0], [1.01], [0.99]])


def curve(*values: float) -> Curve:
    """Through values at even places of the logarithm of the step, the same for three seeds but for a little."""
    places = np.linspace(0, 1, len(values))
    t = np.log1p(STEPS) / np.log1p(STEPS[-1])
    return Curve.of(STEPS, SEEDS * np.interp(t, places, values))


DROP, RISE, FLAT = (9.0, 9.0, 9.0, 1.0), (0.1, 0.1, 0.1, 0.6), (5.0, 5.0, 5.0, 5.1)


def digit_curves(lc: Any, tv: Any, pgd: Any, kinds: tuple[str, ...], ranks: tuple[int, ...] = ()) -> Evidence:
    named = {"LC": lc, "TV": tv, "PGD": pgd, "clean": RISE} | {f"LR {layer}": lc for layer in ranks}
    return Evidence({f"{name}, {kind}": curve(*values) for name, values in named.items() for kind in kinds})


def density_maps(names: tuple[str, ...], alike: bool) -> Evidence:
    rng = np.random.default_rng(0)
    f = rng.uniform(1.0, 2.0, (3, 64, 64))
    maps = {}
    for k, name in enumerate(names):  # each smoother than the one before it, or rougher
        smooth = f * 0 + 1.5 + (f - 1.5) * (0.8**k if alike else 1.2**k)
        maps[name] = smooth if alike else rng.permuted(smooth, axis=1)
    length = f.reshape(3, 32, 2, 32, 2).mean(axis=(2, 4))
    length = length if alike else rng.permuted(length, axis=1)
    return Evidence(arrays={**maps, "length": length, "offsets": np.arange(5)})


def decays(*ends: float) -> Evidence:
    return Evidence({f"decay {k}": curve(9.0, end) for k, end in enumerate(ends)})


def clusters(lc: Any, before: float, after: float) -> Evidence:
    return Evidence({"LC": curve(*lc)}, {"silhouettes": SEEDS * [before, after], "steps": np.array([494, 60_000])})


def sides(lc: Any, bound: Any, tv: Any) -> Evidence:
    return Evidence({"LC": curve(*lc), "bound": curve(*bound), "TV": curve(*tv)})


def gaussians(lc: Any, rank: Any) -> Evidence:
    return Evidence({"LC": curve(*lc)} | {f"LR, layer {layer}": curve(*rank) for layer in range(1, 5)})


TWO, BOTH = ("scale 2", "script"), ("scale 1", "scale 3", "script")
SIGMAS = ("f, σ = 0.025", "f, σ = 0.05", "f, σ = 0.1")
NOISES = ("noise on biases", "on biases and weights")
SLOPES = ("f, σ = 0.05", "f without ρ")
AS_CLAIMED_AND_NOT: dict[str, tuple[Evidence, Evidence]] = {
    "lc1": (density_maps(SIGMAS[1:2], True), density_maps(SIGMAS[1:2], False)),
    "lc2": (gaussians(DROP, DROP), gaussians(RISE, np.linspace(5, 5.1, 9))),
    "lc3": (digit_curves(DROP, DROP, RISE, TWO), digit_curves((9.0, 8.0), RISE, (0.5, 0.5), TWO)),
    "lc4": (density_maps(SIGMAS, True), density_maps(SIGMAS, False)),
    "lc5": (density_maps(NOISES, True), density_maps(NOISES, False)),
    "lc6": (density_maps(SLOPES, True), density_maps(SLOPES, False)),
    "lc7": (gaussians(DROP, DROP), gaussians(DROP, RISE)),
    "lc8": (digit_curves(DROP, RISE, RISE, BOTH), digit_curves(RISE, RISE, (0.5, 0.5), BOTH)),
    "lc9": (sides(DROP, (1.0, 1.0, 1.0, 0.1), RISE), sides(RISE, (9.0, 9.0), FLAT)),
    "lc10": (
        Evidence({"width 8": curve(1.0, 2.0), "width 200": curve(0.0, 0.0)}),
        Evidence({"width 8": curve(1.0, 2.0), "width 200": curve(0.0, 0.1)}),
    ),
    "lc11": (clusters(DROP, 0.1, 0.5), clusters(RISE, 0.1, 0.15)),
    "lc12": (digit_curves(DROP, DROP, RISE, ("scale 1",), (1, 2, 3)), Evidence({
        **digit_curves(RISE, RISE, (0.5, 0.5), ("scale 1",)).curves,
        **{f"LR {layer}, scale 1": curve(9.0, 8.0) for layer in (1, 2, 3)},
    })),
    "lc13": (decays(5.0, 4.0, 3.0, 2.0, 1.0), decays(1.0, 5.0, 2.0, 5.0, 1.0)),
}  # fmt: skip


def laptop_checks(experiment: Experiment[Any], evidence: Evidence) -> Any:
    settings: Any = experiment.scales["laptop"]
    if "variants" in vars(settings) and not any("script" in name for name in evidence.curves):
        settings = replace(settings, variants=("paper",))
    return experiment.checks(settings, evidence)


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.startswith("lc")])
def test_what_a_paper_claims_is_reproduced_and_its_opposite_is_not(name: str) -> None:
    claimed, opposite = AS_CLAIMED_AND_NOT[name]
    assert verdict_of(laptop_checks(EXPERIMENTS[name], claimed)) == "reproduced"
    assert verdict_of(laptop_checks(EXPERIMENTS[name], opposite)) == "not reproduced"


def test_lengths_in_pixels_add_up_and_are_where_segments_are() -> None:
    segments = np.random.default_rng(0).uniform(size=(40, 2, 2))
    found = length_in_pixels(segments, 5)
    lengths = np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1)
    t = (np.arange(20_000) + 0.5) / 20_000
    places = segments[:, :1] + t[:, None] * (segments[:, 1:] - segments[:, :1])
    expected = np.zeros((5, 5))
    np.add.at(
        expected, tuple((5 * places[..., ::-1]).astype(int).reshape(-1, 2).T), np.repeat(lengths / len(t), len(t))
    )
    assert found.sum() == pytest.approx(lengths.sum())
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_a_segment_between_pixels_counts_once() -> None:
    assert length_in_pixels(np.array([[[0.5, 0.0], [0.5, 1.0]]]), 2).sum() == pytest.approx(1.0)
    assert length_in_pixels(np.array([[[0.0, 0.0], [1.0, 1.0]]]), 4).trace() == pytest.approx(np.sqrt(2))


def test_the_lipschitz_constant_is_that_of_the_inequalities() -> None:
    torch.manual_seed(0)
    model = mlp([3, 5, 4, 2])
    found = [b for b in bounds(model, torch.randn(4, 3)) if b.name == "largest Lipschitz constant" and b.printed]
    assert largest_lipschitz(model) == pytest.approx(found[0].right)


def test_the_silhouette_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(12, 3)), np.array([0] * 5 + [1] * 6 + [2])
    found: list[float] = []
    for i in range(12):
        away = np.linalg.norm(x - x[i], axis=1)
        own = (labels == labels[i]) & (np.arange(12) != i)
        a, b = away[own].sum() / max(1, own.sum()), min(away[labels == k].mean() for k in {0, 1, 2} - {labels[i]})
        found.append((b - a) / max(a, b) if own.any() else 0.0)
    assert silhouette(x, labels) == pytest.approx(np.mean(found))
    assert silhouette(x, np.zeros(12)) == 0.0  # one cluster has no other


@pytest.mark.parametrize(
    ("values", "share"), [((4.0, 3.0, 2.0, 1.0), 1 / 3), ((4.0, 4.0, 1.0, 1.0), 1.0), ((1.0, 2.0, 3.0, 4.0), 0.0)]
)
def test_the_fastest_share_of_a_fall(values: tuple[float, ...], share: float) -> None:
    assert fastest_share(np.array([1.0, 10.0, 100.0, 1000.0]), np.array(values)) == pytest.approx(share)


def test_the_script_of_the_paper_may_be_run_alone() -> None:
    (training,) = digit_trainings(DigitSettings(variants=("script",), seeds=(4, 5)))
    assert (training.seed, training.optimiser, training.loss) == (4, "adamw", "softmax-cross-entropy")


def test_umap_that_is_not_there_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match=r"pip install 'regionscope\[experiments\]'"):
        EMBEDDINGS["umap"](np.zeros((4, 2)), 0)
