"""What the experiments beyond the papers measure themselves, on cases whose answer is known."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from regionscope.experiments.x_grokking import bending_part, fall_after_memory, typical_length
from regionscope.experiments.x_membership import lower_share
from regionscope.experiments.x_migration import EDGES, distances_to_decision, nearest_segment
from regionscope.experiments.x_penalty import at_equal_loss
from regionscope.experiments.x_prediction import rank_correlations
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
