"""What the experiments beyond the papers measure themselves, on cases whose answer is known."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from regionscope.experiments.findings import Curve, Evidence, Findings, verdict_of
from regionscope.experiments.registry import EXPERIMENTS
from regionscope.experiments.x_grokking import bending_part, fall_after_memory, typical_length
from regionscope.experiments.x_membership import lower_share
from regionscope.experiments.x_migration import EDGES, distances_to_decision, nearest_segment
from regionscope.experiments.x_penalty import at_equal_loss
from regionscope.experiments.x_prediction import PREDICTORS, rank_correlations
from regionscope.geometry.plane_cells import plane_cells
from regionscope.geometry.planes import Plane
from regionscope.training.models import new_network


def test_the_auc_is_the_share_of_pairs() -> None:
    draws = np.random.default_rng(0)
    a, b = draws.integers(5, size=40).astype(float), draws.integers(7, size=30).astype(float)
    pairs = (a[:, None] < b).mean() + (a[:, None] == b).mean() / 2
    assert lower_share(a, b) == pytest.approx(pairs) and lower_share(b, a) == pytest.approx(1 - pairs)


def test_the_nearest_segment_is_that_of_many_points_along_them() -> None:
    draws = np.random.default_rng(0)
    points, segments = draws.normal(size=(20, 2)), draws.normal(size=(5, 2, 2))
    along = np.linspace(0, 1, 10_001)[:, None, None]
    places = ((1 - along) * segments[:, 0] + along * segments[:, 1]).reshape(-1, 2)
    brute = [np.linalg.norm(places - point, axis=1).min() for point in points]
    assert nearest_segment(points, segments) == pytest.approx(np.array(brute), abs=1e-3)


def test_boundaries_are_as_far_from_the_decision_boundary_as_they_were_put() -> None:
    """The output changes sign at x = 0, two units bend at x = -0.295 and x = 0.505: lengths 2 each on a square."""
    first, last = nn.Linear(2, 3), nn.Linear(3, 1)
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]))
        first.bias.copy_(torch.tensor([0.295, -0.505, 5.0]))
        last.weight.copy_(torch.tensor([[0.5, 0.5, 1.0]]))
        last.bias.fill_(-5.0 - 0.5 * 0.295)
    model = nn.Sequential(first, nn.ReLU(), last).double()
    lengths, areas = distances_to_decision(plane_cells(model, Plane.coordinates(torch.zeros(2).double(), radius=1.0)))
    assert lengths.sum() == pytest.approx(4.0) and areas.sum() == pytest.approx(4.0)
    assert {round(100 * EDGES[k]): lengths[k] for k in lengths.nonzero()[0]} == pytest.approx({29: 2.0, 50: 2.0})
    assert areas[:-1].sum() == pytest.approx(4.0) and areas[:50].sum() == pytest.approx(2.0)


def test_rank_correlations_of_resamples_are_those_of_scipy() -> None:
    draws = np.random.default_rng(0)
    a, b = draws.normal(size=12), draws.integers(4, size=12).astype(float)
    rows = draws.integers(12, size=(6, 12))
    found = rank_correlations(a, b, rows)
    assert found == pytest.approx([stats.spearmanr(a[r], b[r]).statistic for r in rows])
    assert np.isnan(rank_correlations(a, np.ones(12), rows)).all()


def test_decay_is_compared_at_the_training_loss_of_the_penalty() -> None:
    arrays = {
        "penalty: loss": np.array([[0.1, 0.5, 10.0]]), "penalty: clean": np.array([[0.9, 0.8, 0.1]]),
        "decay: loss": np.array([[1.0, 0.01, 0.1]]), "decay: clean": np.array([[0.5, 0.95, 0.7]]),
    }  # fmt: skip
    own, matched = at_equal_loss(arrays, "clean")
    between = 0.7 + (0.5 - 0.7) * np.log(0.5 / 0.1) / np.log(10)
    assert own is arrays["penalty: clean"] and matched[0, :2] == pytest.approx([0.7, between])
    assert np.isnan(matched[0, 2]), "no decay reaches that loss"


def test_a_fall_counts_from_memory_on_and_needs_one() -> None:
    assert fall_after_memory(np.array([2.0, 4.0, 1.0]), np.array([0.5, 0.99, 1.0])) == 0.75
    assert fall_after_memory(np.array([2.0, 4.0, 8.0]), np.array([0.5, 0.99, 1.0])) == -1.0
    assert np.isnan(fall_after_memory(np.array([2.0, 1.0]), np.array([0.1, 0.5])))


def test_a_transformer_bends_behind_its_embedding_and_an_mlp_everywhere() -> None:
    x = torch.eye(5)[torch.tensor([[0, 1], [2, 3], [4, 4]])]
    made = new_network("transformer", (2, 5), 5, depth=1, width=32)
    part, points = bending_part(made, x)
    assert points.shape == (3, 2, 32) and torch.allclose(part(points), made(x))
    assert bending_part(flat := new_network("mlp", (2, 5), 5, depth=1, width=3), x)[0] is flat
    assert typical_length(x) == pytest.approx(typical_length(3 * x + 1) / 3)


STEPS = np.array([0.0, 1e1, 1e2, 1e3, 1e4, 1e5, 3e5])


def curve(*values: float) -> Curve:
    return Curve.of(STEPS, [values, values, values])


def test_other_activations_are_judged_both_ways() -> None:
    figure = EXPERIMENTS["x4"]
    settings = figure.scales["paper"]
    drop, rise = curve(1, 2, 4, 5, 5, 3, 1), curve(0, 0, 0, 0, 0, 0.3, 0.8)
    for complexity, robust, verdict in ((drop, rise, "reproduced"), (rise, drop, "not reproduced")):
        curves = {
            f"{name}, {activation}": found
            for activation in settings.activations
            for name, found in {"LC": complexity, "TV": complexity, "PGD": robust, "clean": rise}.items()
        }
        assert verdict_of(figure.checks(settings, Evidence(curves))) == verdict


def test_complexity_after_grokking_is_judged_both_ways() -> None:
    figure = EXPERIMENTS["x6"]
    memory, late, never = curve(0, 0.5, 1, 1, 1, 1, 1), curve(0, 0, 0, 0, 0, 0.5, 1), curve(0, 0, 0, 0, 0, 0, 0.2)
    falls, rises = curve(1, 3, 5, 5, 4, 2, 1), curve(1, 1, 2, 3, 4, 5, 6)
    cases = ((falls, late, "reproduced"), (rises, late, "not reproduced"), (falls, never, "not testable at this scale"))
    for complexity, test, verdict in cases:
        curves = dict[str, Curve]()
        for kind in ("mlp", "transformer"):
            curves |= {f"train accuracy, {kind}": memory, f"test accuracy, {kind}": test}
            curves |= {f"{name}, {kind}": complexity for name in ("local complexity", "crossings")}
        assert verdict_of(figure.checks(figure.scales["paper"], Evidence(curves))) == verdict


def test_what_tells_members_apart_is_judged_both_ways() -> None:
    figure = EXPERIMENTS["x7"]
    late, below = curve(0.5, 0.5, 0.5, 0.5, 0.5, 0.7, 0.8), curve(0.5, 0.5, 0.5, 0.5, 0.5, 0.3, 0.2)
    early = curve(0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)  # known before it was trained, and not after
    for scores, verdict in ((late, "reproduced"), (below, "reproduced"), (early, "not reproduced")):
        curves = dict.fromkeys(("crossings", "local complexity", "loss"), scores)
        checks = figure.checks(figure.scales["paper"], Evidence(curves))
        assert verdict_of(checks) == verdict
    told = {check.words: check.found for check in checks if not check.rule}
    assert told["loss: farthest late AUC from a half"] == 0.5 and told["crossings: AUC at the end"] == 0.5


def predicted(judged: np.ndarray, other: np.ndarray, fitting: int) -> Evidence:
    """Networks whose outcomes are 0, 1, 2, ..., with what predicts them; so many of them fit their training points."""
    outcome = np.arange(60.0)
    arrays = dict.fromkeys(PREDICTORS, other) | {"local complexity": judged}
    arrays |= {"generalisation gap": outcome, "robust accuracy": -outcome}
    return Evidence({}, arrays | {"train accuracy": np.where(outcome < fitting, 1.0, 0.5)})


def test_prediction_is_judged_both_ways_among_networks_that_fit() -> None:
    figure, draws = EXPERIMENTS["x8"], np.random.default_rng(0)
    settings = figure.scales["paper"]
    good, noise = np.arange(60.0) + draws.normal(size=60), draws.normal(size=60)
    found = {name: figure.checks(settings, evidence) for name, evidence in {
        "reproduced": predicted(good, noise, 60), "not reproduced": predicted(noise, good, 60),
        "not testable at this scale": predicted(good, noise, 29),
    }.items()}  # fmt: skip
    assert {name: verdict_of(checks) for name, checks in found.items()} == {name: name for name in found}
    told = {check.words: check for check in found["reproduced"]}
    true = float(stats.spearmanr(good, np.arange(60.0)).statistic)
    assert told["local complexity and generalisation gap: rank correlation"].found == pytest.approx(true)
    assert told["local complexity and robust accuracy: rank correlation"].found == pytest.approx(-true)
    assert told["networks that fit their training points"].found == 60


def test_predictions_are_drawn_with_their_intervals_if_there_are_enough_networks() -> None:
    figure, draws = EXPERIMENTS["x8"], np.random.default_rng(0)
    for fitting, dots in ((60, len(PREDICTORS)), (10, 0)):
        evidence = predicted(np.arange(60.0), draws.normal(size=60), fitting)
        drawn = figure.draw(Findings(
            name="x8", scale="paper", claim="", checks=(), evidence=evidence, deviations=(), choices=(), settings={},
            seeds=(0,), versions={}, seconds=1.0, command="",
        ))  # fmt: skip
        marks = [np.asarray(line.get_xdata()) for line in drawn.axes[0].lines if line.get_marker() == "o"]
        assert sum(map(len, marks)) == dots
        plt.close(drawn)
