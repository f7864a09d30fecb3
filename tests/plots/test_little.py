"""Pictures of little: one record, one curve, one region, nothing to name."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import mlp
from torch import nn

import regionscope as rs
from regionscope import plots
from regionscope.geometry import patterns


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.mark.parametrize(("step", "scale"), [(0, "linear"), (5, "log")])
def test_a_single_record_is_inside_its_axes(step: int, scale: str) -> None:
    ax = plots.curve([step], [2.0])
    low, high = ax.get_xlim()
    assert ax.get_xscale() == scale and low < step < high


@pytest.mark.parametrize("steps", [(0, 3, 6), (3, 6), (0, 100, 200, 300), (40, 90)])
def test_few_steps_have_numbers_at_their_axis(steps: tuple[int, ...]) -> None:
    ax = plots.curve(steps, steps)
    low, high = ax.get_xlim()
    assert ax.get_xscale() == "linear" and sum(low <= tick <= high for tick in ax.get_xticks()) >= 3


@pytest.mark.parametrize("steps", [(0, 3, 6), (0, 1, 10, 1000), (1, 10, 1000)])
def test_marks_at_the_first_and_last_step_are_whole(steps: tuple[int, ...]) -> None:
    ax = plots.curve(steps, steps)
    ax.figure.canvas.draw()
    ends = ax.transData.transform([(steps[0], 0), (steps[-1], 0)])[:, 0]
    half = plt.rcParams["lines.markersize"] / 2 * ax.figure.dpi / 72
    box = ax.get_window_extent()
    assert ends[0] - half >= box.x0 and ends[1] + half <= box.x1


def test_one_curve_above_one_accuracy_shares_a_legend_of_both() -> None:
    upper, lower = plots.training([0, 1, 10], [3.0, 1.0, 2.0], {"test accuracy": [0.1, 0.5, 0.9]}, label="crossings")
    (legend,) = [legend for ax in (upper, lower) if (legend := ax.get_legend()) is not None]
    assert [text.get_text() for text in legend.get_texts()] == ["crossings", "test accuracy"]


def test_a_line_through_one_region_of_one_output_has_no_legend() -> None:
    ax = plots.line(rs.line_cells(nn.Linear(3, 1), torch.zeros(3), torch.ones(3)))
    assert ax.get_title() == "1 linear region" and ax.get_legend() is None


def test_bounds_whose_left_sides_are_positive_need_no_triangle() -> None:
    legend = plots.bounds([rs.Bound("a", "LC Thm 1 (1)", False, 0.5, 1.0, True)]).get_legend()
    assert legend is not None and "left side ≤ 0" not in [text.get_text() for text in legend.get_texts()]


def test_patterns_have_the_same_colours_however_many_are_coloured_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    cells = rs.plane_cells(mlp(2, 8, 2), rs.Plane.coordinates(torch.zeros(2), radius=5.0))
    together = plots.regions(cells, colour="pattern").collections
    monkeypatch.setattr(patterns, "CELLS_AT_ONCE", 3)
    apart = plots.regions(cells, colour="pattern").collections
    assert len(cells) > 6
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_array_equal(one.get_facecolor(), other.get_facecolor())
    assert len(np.unique(apart[-1].get_facecolor(), axis=0)) == len(cells)
