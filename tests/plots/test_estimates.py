"""Pictures of estimates."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from regionscope.results import Estimate, Share


def test_layers_are_bars_with_their_errors() -> None:
    per_layer = np.random.default_rng(0).normal(3, 1, (50, 3))
    ax = Estimate("m", per_layer.sum(axis=1), per_layer, quantity="things").plot()
    bars: list[Any] = list(ax.patches)
    assert [bar.get_height() for bar in bars] == pytest.approx(per_layer.mean(axis=0))
    assert (ax.get_ylabel(), ax.get_xlabel(), ax.get_title()) == ("things", "layer", "m, 50 points")
    (whiskers,) = ax.collections
    lengths = [np.ptp(path.vertices[:, 1]) for path in whiskers.get_paths()]  # type: ignore[index]
    assert lengths == pytest.approx(2 * per_layer.std(axis=0, ddof=1) / 50**0.5)
    plt.close("all")


def test_points_without_layers_are_a_histogram_of_those_that_are_finite() -> None:
    ax = Estimate("m", np.array([1.0, 2.0, 2.0, np.inf]), quantity="things").plot()
    bars: list[Any] = list(ax.patches)
    assert sum(bar.get_height() for bar in bars) == 3
    assert np.ravel(ax.lines[0].get_xdata()).tolist() == pytest.approx([5 / 3] * 2)
    assert Estimate("m", np.array([np.inf])).plot().get_ylabel() == "points"
    plt.close("all")


@pytest.mark.parametrize("most", [3, 40, 3000])
def test_counts_are_in_the_middle_of_their_bars(most: int) -> None:
    counts = np.random.default_rng(0).integers(1, most, 200, endpoint=True).astype(float)
    ax = Estimate("m", counts).plot()
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    bars: list[Any] = list(ax.patches)
    assert sum(bar.get_height() for bar in bars) == 200
    ends = np.array([(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars])
    assert (ends % 1 == 0.5).all() and ends[0, 0] == counts.min() - 0.5 and ends[-1, 1] >= counts.max() + 0.5
    if most == 3:
        assert [bar.get_height() for bar in bars] == [(counts == k).sum() for k in (1, 2, 3)]
    assert (ax.get_yticks() % 1 == 0).all()
    plt.close("all")


def test_a_share_is_drawn_as_the_points_that_are_right_and_wrong() -> None:
    ax = Share("accuracy", np.array([1.0, 1.0, 0.0, 1.0]), quantity="share of points").plot()
    bars: list[Any] = list(ax.patches)
    assert [bar.get_height() for bar in bars] == [1, 3]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["wrong", "right"]
    assert ax.get_xlabel() == "right: 0.75 (0.301 to 0.954 at 95 %)"
    plt.close("all")
