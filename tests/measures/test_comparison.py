"""Three definitions of local complexity side by side."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import mlp
from scipy import stats
from torch import nn

import regionscope as rs


def compared() -> rs.Comparison:
    torch.manual_seed(0)
    x = torch.randn(60, 3) * torch.linspace(0.2, 6.0, 60)[:, None]
    return rs.compare_complexities(
        mlp(3, 40, 40, 2), x, radius=0.5, sigma=0.3, draws=16, generator=torch.Generator().manual_seed(0)
    )


def test_the_three_definitions_rank_points_alike() -> None:
    found = compared()
    assert [m.name for m in found.measures] == ["local complexity", "boundary crossings", "local region count"]
    off_diagonal = found.rank_correlation[~np.eye(3, dtype=bool)]
    assert (off_diagonal > 0.5).all(), "far out there are few boundaries, by any definition"
    assert (found.p_values[~np.eye(3, dtype=bool)] < 1e-3).all()


def test_correlations_are_those_of_the_numbers_it_returns() -> None:
    found = compared()
    for i in range(3):
        for j in range(3):
            expected = stats.spearmanr(found.measures[i].per_point, found.measures[j].per_point)[0]
            assert found.rank_correlation[i, j] == pytest.approx(expected)


def test_a_measure_that_does_not_vary_has_no_correlation() -> None:
    model = nn.Sequential(nn.Linear(2, 1), nn.ReLU())
    far = 100 + torch.randn(5, 2)
    model[0].weight.data.fill_(1.0)  # type: ignore[operator]
    assert np.isnan(rs.compare_complexities(model, far, radius=0.1).rank_correlation[1, 2])


def test_a_comparison_is_drawn_a_dot_a_point() -> None:
    found = compared()
    axes = found.plot()
    for ax, (i, j) in zip(axes, [(0, 1), (0, 2), (1, 2)], strict=True):
        a, b = found.measures[i], found.measures[j]
        (dots,) = ax.collections
        assert np.array_equal(dots.get_offsets(), np.stack([a.per_point, b.per_point], axis=1))
        assert (ax.get_xlabel(), ax.get_ylabel()) == (a.name, b.name)
        assert f"{found.rank_correlation[i, j]:.2f}" in ax.get_title()
    plt.close("all")


def test_two_points_have_no_ranks() -> None:
    with pytest.raises(ValueError, match="at least 3 points, got 2"):
        rs.compare_complexities(mlp(3, 4, 2), torch.zeros(2, 3), radius=0.1)
