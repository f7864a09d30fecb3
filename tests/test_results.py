"""Estimates as tables and as pictures."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from cases import mlp
from matplotlib.patches import Rectangle

import regionscope as rs

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
    assert list(near)[1:] == ["site", "unit", "layer"] and set(near["layer"]) <= {1, 2}


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
    far = rs.boundary_distance(torch.nn.Linear(3, 2), POINTS)
    assert np.isinf(far.per_point).all() and not far.plot().lines, "what is infinitely far has no place"


def test_a_picture_goes_where_it_is_told() -> None:
    ax = rs.total_variation(network(), POINTS).plot()
    ax.clear()
    assert rs.good_units(network(), POINTS).plot(ax) is ax and ax.patches
