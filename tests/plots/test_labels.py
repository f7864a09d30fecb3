"""Words beside axes keep to the figure."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from regionscope import plots
from regionscope.plots.style import add_shared_legend, in_lines, new_axes
from regionscope.results import Estimate
from regionscope.runs.phases import phases

OPTIONS = ("sum over layers", "radius 0.05", "directions 25")


def test_long_labels_keep_to_a_narrow_figure() -> None:
    with plots.paper():
        ax = new_axes(0.45, entries=6)
        ax.set_ylabel(in_lines("boundary crossings at uniform points", OPTIONS, ax))
        ax.figure.canvas.draw()
        box, whole = ax.yaxis.label.get_window_extent(), ax.figure.bbox
    assert whole.y0 <= box.y0 and box.y1 <= whole.y1
    assert "radius 0.05" in ax.get_ylabel(), "an option is not torn"
    plt.close("all")


@pytest.mark.parametrize("layers", [1, 3])
def test_what_is_measured_keeps_to_a_figure_of_three_inches(layers: int) -> None:
    per_layer = np.random.default_rng(0).normal(3, 1, (50, layers))
    quantity = "boundaries across a neighbourhood (lower bound)"
    options = {"radius": 0.05, "norm": "Linf", "bounds": (0.0, 1.0), "draws": 32, "directions": 25}
    with plt.rc_context({"figure.figsize": (3.0, 2.0)}):
        ax = Estimate("boundary crossings", per_layer.sum(axis=1), per_layer, quantity=quantity, options=options).plot()
        ax.figure.canvas.draw()
    whole = ax.figure.bbox
    for box in (text.get_window_extent() for text in (ax.xaxis.label, ax.yaxis.label, ax.title)):
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
    plt.close("all")


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize(("columns", "names"), [(None, None), (2, ["a", "b", "c"])])
def test_a_legend_for_all_panels_lies_outside_of_each(
    above: bool, columns: int | None, names: list[str] | None
) -> None:
    figure, axes = plt.subplots(2, 2, layout="constrained")
    lines = [axes[0, 0].plot([0, 1], [0, k], label=f"curve {k}")[0] for k in range(3)]
    add_shared_legend(figure, lines, names, columns=columns, above=above)
    figure.canvas.draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == (names or ["curve 0", "curve 1", "curve 2"])
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
    panels = [ax.get_tightbbox() for ax in axes.flat]
    assert min(p.y0 for p in panels) >= box.y1 if not above else max(p.y1 for p in panels) <= box.y0
    rows = {round(text.get_window_extent().y0) for text in legend.get_texts()}
    assert len(rows) == (2 if columns else 1)
    plt.close("all")


@pytest.mark.parametrize("columns", [1, 2])
def test_long_names_of_curves_leave_the_axes_their_room_and_keep_to_the_figure(columns: int) -> None:
    steps = np.arange(1, 60)
    train = np.where(steps > 3, 1.0, 0.1)
    found = phases(steps, np.abs(steps - 30.0), train_accuracy=train, test_accuracy=np.where(steps > 40, 0.9, 0.1))
    with plots.paper(columns):
        curves = {"train": steps, "a probe with a long name of noise around the data": steps}
        ax = plots.curve(steps, curves, phases=found)
        ax.figure.canvas.draw()
    legend = ax.get_legend()
    assert legend is not None and ax.get_position().width > 0.45
    box, whole = legend.get_window_extent(), ax.figure.bbox
    assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0
    plt.close("all")


def test_a_shared_legend_of_long_names_keeps_to_the_figure() -> None:
    figure = plt.figure(figsize=(8, 4), layout="constrained")
    ax = figure.add_subplot()
    names = [f"a probe with a long name of noise around the data, measure {k}" for k in range(5)]
    lines = [ax.plot([0, 1], label=name)[0] for name in names]
    add_shared_legend(figure, lines, columns=3)
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
    plt.close("all")
