"""Pictures of inequalities: which mark says what."""

from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import mlp
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

import regionscope as rs
from regionscope import plots
from regionscope.plots.scatter import NETWORKS, UNDECIDED, UNJUDGED
from regionscope.plots.style import BOUNDARY, figure_of


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")


def dots(ax: Axes) -> list[Any]:
    """What is drawn, without the entries of the legend."""
    return [dot for dot in ax.collections if np.size(dot.get_offsets())]


def test_bounds_stand_where_their_ratio_is_in_the_colour_of_their_verdict() -> None:
    rows = [
        rs.Bound("a", "LC Thm 1 (1)", True, 3.0, 1.0, False),
        rs.Bound("a", "LC Thm 1 (1)", False, 0.5, 1.0, True),
        rs.Bound("b", "LC Thm 2 (2)", False, -1.0, 1.0, True),
        rs.Bound("c", "HR Cor. 3", True, 2.0, 1.0, None, note="printed without constants"),
        rs.Bound("d", "HR Cor. 4", True, np.nan, np.nan, None, note="not available"),
    ]
    ax = plots.bounds(rows)
    drawn = dots(ax)
    assert [tuple(np.ravel(dot.get_offsets())) for dot in drawn] == [(3, 0), (0.5, 0), (0.1, 1), (2, 2)]
    assert [to_hex(dot.get_edgecolor()[0]) for dot in drawn] == [BOUNDARY, NETWORKS[0], NETWORKS[0], to_hex(UNJUDGED)]
    assert [len(dot.get_facecolor()) for dot in drawn] == [0, 1, 1, 0]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["a\nLC Thm 1 (1)", "b\nLC Thm 2 (2)", "c\nHR Cor. 3"]
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "holds",
        "violated",
        "no verdict",
        "valid",
        "as printed",
        "left side ≤ 0",
    ]


def test_restated_and_undecided_inequalities_have_a_mark_a_colour_and_words_of_their_own() -> None:
    rows = [
        rs.Bound("a", "HR Thm 1", False, 0.5, 1.0, True, part="3"),
        rs.Bound("a", "HR Thm 1", False, 0.6, 1.0, True, restated=True, part="3"),
        rs.Bound("a", "HR Thm 1", True, 0.9, 1.0, None, stderr=0.1, part="3"),
        rs.Bound("b", "HR Cor. 7", False, -1.0, 1.0, True, restated=True),
    ]
    ax = plots.bounds(rows)
    valid, restated, undecided, below = dots(ax)
    assert not np.array_equal(valid.get_paths()[0].vertices, restated.get_paths()[0].vertices)
    assert not np.array_equal(restated.get_paths()[0].vertices, below.get_paths()[0].vertices), "a triangle at the edge"
    assert to_hex(undecided.get_edgecolor()[0]) == UNDECIDED not in (*NETWORKS, BOUNDARY, UNJUDGED)
    legend = ax.get_legend()
    assert legend is not None
    told = [text.get_text() for text in legend.get_texts()]
    assert told == "holds, violated, undecided, no verdict, valid, as restated, as printed, left side ≤ 0".split(", ")
    assert (rows[0].source, rows[0].part, rows[0].reference) == ("HR Thm 1", "3", "HR Thm 1 (3)")


def test_networks_have_marks_of_their_own_and_the_legend_is_inside_the_figure() -> None:
    found = rs.bounds(mlp(2, 4, 1), torch.randn(5, 2), generator=torch.Generator().manual_seed(0))
    ax = plots.bounds({"at initialisation": found, "after 300 steps": found})
    first, second = dots(ax)[0], dots(ax)[len(dots(ax)) // 2]
    assert not np.array_equal(first.get_paths()[0].vertices, second.get_paths()[0].vertices)
    figure_of(ax).canvas.draw()
    legend = ax.get_legend()
    assert legend is not None
    box, whole = legend.get_window_extent(), figure_of(ax).bbox
    assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0
    places = {tuple(np.ravel(dot.get_offsets())) for dot in dots(ax)}
    known = [b for b in found if b.right == b.right]
    assert len(places) > len(known)  # those of one network are beside those of the other
