"""Estimates as tables and as pictures."""

import json
import math
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import mlp
from matplotlib.patches import Rectangle

import regionscope as rs
from regionscope.results import with_error

POINTS = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return mlp(3, 8, 8, 2)


def test_columns_are_the_measure_its_error_and_every_layer() -> None:
    complexity = rs.local_complexity(network(), POINTS, draws=4)
    assert list(complexity.columns()) == ["local complexity", "stderr", "layer 1", "layer 2"]
    deep = rs.boundary_crossings(network(), POINTS, radius=0.5, layers=[2])
    assert list(deep.columns()) == ["boundary crossings", "layer 2"]
    assert deep.columns()["layer 2"].tolist() == deep.per_point.tolist()
    near = rs.boundary_distance(network(), POINTS).columns()
    assert list(near)[1:] == ["site", "unit", "layer", "ties"] and set(near["layer"]) <= {1, 2}


class Frame:
    """What `to_pandas` asks of pandas."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns, self.axis = columns, ""

    def rename_axis(self, name: str) -> "Frame":
        self.axis = name
        return self


def test_a_table_has_one_row_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=Frame))
    found = rs.local_rank(network(), POINTS, eps=0.1)
    table = found.to_pandas()
    assert table.axis == "point" and table.columns.keys() == found.columns().keys()


def test_a_table_of_pandas_has_one_row_a_point() -> None:
    pytest.importorskip("pandas")
    found = rs.local_rank(network(), POINTS, eps=0.1)
    table = found.to_pandas()
    assert table.shape == (9, 3) and table["local rank"].mean() == found.mean
    assert (table["layer 1"] + table["layer 2"] == table["local rank"]).all()


def test_without_pandas_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_pandas needs pandas: pip install 'regionscope\[pandas\]'"):
        rs.good_units(network(), POINTS).to_pandas()


def test_a_picture_shows_the_mean_of_each_layer() -> None:
    found = rs.local_rank(network(), POINTS, eps=0.1)
    assert found.per_layer is not None
    ax = found.plot()
    assert [bar.get_height() for bar in ax.patches if isinstance(bar, Rectangle)] == pytest.approx(
        found.per_layer.mean(axis=0)
    )
    assert ax.get_ylabel() == "singular values" and "9 points" in ax.get_title()


def test_a_picture_shows_how_points_are_spread_if_there_is_one_layer() -> None:
    found = rs.total_variation(network(), POINTS)
    ax = found.plot()
    assert sum(bar.get_height() for bar in ax.patches if isinstance(bar, Rectangle)) == 9
    assert np.asarray(ax.lines[0].get_xdata())[0] == pytest.approx(found.mean)
    near = rs.boundary_distance(network(), POINTS).plot()
    assert near.get_xlabel().replace("\n", " ") == "distance to the nearest boundary"
    far = rs.boundary_distance(torch.nn.Linear(3, 2), POINTS)
    assert np.isinf(far.per_point).all() and not far.plot().lines, "what is infinitely far has no place"


def test_a_picture_goes_where_it_is_told() -> None:
    ax = rs.total_variation(network(), POINTS).plot()
    ax.clear()
    assert rs.good_units(network(), POINTS).plot(ax) is ax and ax.patches


# in words


@pytest.mark.parametrize("power", [-12, -5, -4, -1, 0, 3, 6, 7, 9])
@pytest.mark.parametrize("digits", [1.23456789, 9.96, 1.0])
def test_a_number_has_as_many_digits_as_its_error(power: int, digits: float) -> None:
    value, error = digits * 10.0**power, 0.0314159 * 10.0**power
    words = with_error(value, error).strip("()")
    number, off = (float(word.replace(")e", "e").partition("e")[0]) for word in words.split(" ± "))
    scale = 10.0 ** int(words.partition(")e")[2] or 0)
    assert off * scale == pytest.approx(error, rel=0.02)
    assert abs(number * scale - value) <= 0.0005001 * 10.0**power
    assert len(words) < 24


def test_an_estimate_is_a_number_and_takes_a_format() -> None:
    found = rs.total_variation(network(), POINTS)
    assert float(found) == found.mean
    assert f"{found:.2f}" == f"{found.mean:.2f} ± {found.stderr:.2f}"
    assert f"{found}" == str(found) == repr(found)
    assert with_error(found.mean, found.stderr) in str(found)


def test_an_error_that_cannot_be_told_is_a_question_mark_in_any_format() -> None:
    assert f"{rs.total_variation(network(), POINTS[:1]):.3f}".endswith(" ± ?")


def test_errors_of_layers_have_what_few_directions_cannot_tell_in_them() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 20)
    found = rs.local_rank(mlp(20, 64, 64, 3), x, eps=0.1, method="random", directions=4)
    assert found.layer_resolution is not None and found.layer_resolution.shape == (50, 2)
    assert (found.layer_stderr >= found.layer_resolution.mean(axis=0)).all()
    shown = found._repr_html_()
    assert found.per_layer is not None
    means = found.per_layer.mean(axis=0)
    assert all(with_error(*pair) in shown for pair in zip(means, found.layer_stderr, strict=True))
    for untold in (replace(found, layer_resolution=None), replace(found, drawn_together=True)):
        assert np.isnan(untold.layer_stderr).all()
        assert untold._repr_html_().count("± ?") >= 2
        assert not untold.plot().collections, "no whiskers"
    plt.close("all")


def test_what_is_a_sum_over_layers_is_called_one() -> None:
    deep, shallow = rs.local_rank(network(), POINTS, eps=0.1), rs.local_rank(mlp(3, 8, 2), POINTS, eps=0.1)
    assert deep.label == "local rank, sum over layers" and deep.label in repr(deep)
    assert deep.to_dict()["label"] == deep.label and deep.name == "local rank"
    assert shallow.label == "local rank"
    page = deep._repr_html_()
    assert "sum over layers" in page and "layer 2" in page and "9 points" in page


def wilson_ends(share: float, n: int, z: float) -> tuple[float, float]:
    """The smallest and largest p on a fine grid that the share is within z standard deviations of."""
    p = np.linspace(0, 1, 2_000_001)
    near = p[np.abs(share - p) <= z * np.sqrt(p * (1 - p) / n)]
    return float(near.min()), float(near.max())


@pytest.mark.parametrize(("right", "n"), [(0, 7), (7, 7), (1, 1), (30, 100), (1000, 1000)])
def test_the_error_of_a_share_is_wilsons_and_never_zero(right: int, n: int) -> None:
    share = rs.Share("accuracy", (np.arange(n) < right).astype(float))
    low, high = wilson_ends(right / n, n, 1.96)
    assert share.interval() == pytest.approx((low, high), abs=2e-6)
    low, high = wilson_ends(right / n, n, 1.0)
    assert share.stderr == pytest.approx((high - low) / 2, abs=2e-6) and share.stderr > 0
    assert json.loads(json.dumps(share.to_dict()))["interval"] == list(share.interval())


def test_accuracies_are_shares() -> None:
    labels = network()(POINTS).argmax(dim=1)
    for attack in ("none", "pgd"):
        found = rs.robust_accuracy(network(), POINTS, labels, attack, radius=1e-3)
        assert found.mean == 1.0 and found.stderr > 0 and "(0.701 to 1 at 95 %)" in repr(found)
    assert math.isnan(rs.Estimate("x", np.zeros(1)).stderr)
