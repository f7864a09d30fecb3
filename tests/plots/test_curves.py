"""Pictures of curves and lines: hues, dashes and marks."""

from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import mlp
from matplotlib.collections import LineCollection
from matplotlib.colors import rgb_to_hsv, to_rgb

import regionscope as rs
from regionscope import plots
from regionscope.plots.style import LETTERS, _in_legend, curve_styles, figure_of, layer_colours, marked_places


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")


def test_probes_have_the_papers_hues() -> None:
    t = np.arange(1, 40)
    curves = dict.fromkeys(("train", "test", "random"), t * 1.0)
    hue = {line.get_label(): 360 * rgb_to_hsv(to_rgb(line.get_color()))[0] for line in plots.curve(t, curves).lines}
    assert 260 < hue["train"] < 300 and 15 < hue["test"] < 45 and 190 < hue["random"] < 230  # purple, orange, blue
    (uniform,) = plots.curve(t, {"uniform": t}).lines
    assert to_rgb(uniform.get_color()) == to_rgb(plots.curve(t, {"random": t}).lines[0].get_color())


def test_curves_differ_without_colour_and_probes_look_the_same_everywhere() -> None:
    t = np.arange(1, 100)
    every = ["train", "test", "random", "uniform", "train, robust accuracy", "test, robust accuracy", "mine"]
    lines = plots.curve(t, dict.fromkeys(every, t)).lines
    assert len({(str(style["linestyle"]), style["marker"]) for style in curve_styles(every).values()}) == len(every)
    assert 5 <= len(t[marked_places(np.asarray(t, np.float64))]) <= 13 and all(line.get_markevery() for line in lines)
    (alone,) = plots.curve(t, {"test": t}).lines
    assert (alone.get_marker(), alone.get_linestyle()) == (lines[1].get_marker(), lines[1].get_linestyle())


@pytest.mark.parametrize("names", [
    [f"uniform layer {k}" for k in range(1, 8)], [f"test layer {k}" for k in range(35)],
    [f"{probe} layer {k}" for k in range(8) for probe in ("train", "uniform", "test", "mine")],
])  # fmt: skip
def test_many_layers_differ_without_colour(names: list[str]) -> None:
    assert len({(str(style["linestyle"]), style["marker"]) for style in curve_styles(names).values()}) == len(names)


def test_ten_outputs_along_a_line_differ_without_colour() -> None:
    torch.manual_seed(0)
    ax = plots.line(rs.line_cells(mlp(2, 8, 10), torch.zeros(2), torch.ones(2)))
    looks = {(str(line._dash_pattern), line.get_marker()) for line in ax.get_lines()}  # type: ignore[attr-defined]
    assert len(ax.get_lines()) == len(looks) == 10


def test_accuracies_share_the_legend_of_the_curves() -> None:
    t = np.arange(1, 30)
    for width, place in ((1, 1), (2, 0)):  # below in one column, beside in two
        with plots.paper(width):
            axes = plots.training(t, {"train": t, "random": t}, {"train": t / 30, "test": t / 40})
        legend = axes[place].get_legend()
        assert axes[1 - place].get_legend() is None and legend is not None
        assert [text.get_text() for text in legend.get_texts()] == ["train", "random", "test"]


def test_a_legend_leaves_the_axes_most_of_a_column() -> None:
    t = np.arange(1, 30)
    with plots.paper():
        ax = plots.curve(t, {"train": t, "test": t, "random": t})
        figure_of(ax).canvas.draw()
        assert ax.get_position().width > 0.75
        inside = figure_of(ax).bbox
        legend = ax.get_legend()
        assert legend is not None
        box = legend.get_window_extent()
        assert inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 < ax.bbox.y0


def test_a_line_has_a_mark_for_every_breakpoint_in_the_colour_of_its_layer() -> None:
    torch.manual_seed(0)
    cells = rs.line_cells(mlp(1, 8, 8, 2), torch.tensor([-3.0]), torch.tensor([3.0]))
    ax = cells.plot()
    marks: list[Any] = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert [len(c.get_segments()) for c in marks] == [(cells.layers == k).sum() for k in (1, 2)]
    assert sum(len(c.get_segments()) for c in marks) == len(cells) - 1
    assert [to_rgb(c.get_colors()[0]) for c in marks] == [*map(tuple, layer_colours(2))]
    for k, line in enumerate(ax.lines):
        np.testing.assert_array_equal(line.get_ydata(), cells.corner_outputs[:, k])
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["output 0", "output 1", "layer 1", "layer 2"]
    one = cells.plot(output=1)
    assert len(one.lines) == 1 and one.get_legend() is not None
    assert len(cells.plot(ax=one).lines) == 3


def test_the_marks_of_a_line_are_below_its_outputs() -> None:
    torch.manual_seed(1)
    cells = rs.line_cells(mlp(1, 8, 8, 1), torch.tensor([-3.0]), torch.tensor([3.0]))
    ax = cells.plot()
    low, high = ax.get_ylim()
    top = max(segment[:, 1].max() for c in ax.collections for segment in c.get_segments())
    assert cells.corner_outputs.min() > low + top * (high - low)


def test_a_long_label_of_a_curve_is_in_lines() -> None:
    ax = plots.curve([0, 1, 2], [1.0, 2.0, 3.0], label="a label that is much longer than the axes beside it are high")
    assert "\n" in ax.get_ylabel()
    plt.close("all")


def test_a_path_in_a_legend_breaks_behind_its_slashes() -> None:
    path = "/disk/somebody/experiments/of-this-year/" + "x" * 30
    lines = _in_legend(path).split("\n")
    assert "".join(lines) == path and max(map(len, lines)) <= LETTERS
    assert lines[0] == "/disk/somebody/"
