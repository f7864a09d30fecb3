"""Words beside axes keep to the figure."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from regionscope import plots
from regionscope.plots.style import in_lines, new_axes
from regionscope.results import Estimate

LABEL = "boundary crossings at uniform points, sum over layers, radius 0.05, directions 25"


def test_long_labels_keep_to_a_narrow_figure() -> None:
    with plots.paper():
        ax = new_axes(0.45, entries=6)
        ax.set_ylabel(in_lines(LABEL, ax))
        ax.figure.canvas.draw()
        box, whole = ax.yaxis.label.get_window_extent(), ax.figure.bbox
    assert whole.y0 <= box.y0 and box.y1 <= whole.y1
    assert "radius 0.05" in ax.get_ylabel(), "an option is not torn"
    plt.close("all")


@pytest.mark.parametrize("layers", [1, 3])
def test_what_is_measured_keeps_to_a_figure_of_three_inches(layers: int) -> None:
    per_layer = np.random.default_rng(0).normal(3, 1, (50, layers))
    quantity = "boundaries across a neighbourhood of radius 0.05 (lower bound)"
    with plt.rc_context({"figure.figsize": (3.0, 2.0)}):
        ax = Estimate("boundary crossings", per_layer.sum(axis=1), per_layer, quantity=quantity).plot()
        ax.figure.canvas.draw()
    whole = ax.figure.bbox
    for box in (text.get_window_extent() for text in (ax.xaxis.label, ax.yaxis.label, ax.title)):
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
    plt.close("all")
