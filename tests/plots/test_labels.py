"""Words beside axes keep to the figure."""

import matplotlib.pyplot as plt

from regionscope import plots
from regionscope.plots.curves import _in_lines
from regionscope.plots.style import new_axes

LABEL = "boundary crossings at uniform points, sum over layers, radius 0.05, directions 25"


def test_long_labels_keep_to_a_narrow_figure() -> None:
    with plots.paper():
        ax = new_axes(0.45, entries=6)
        ax.set_ylabel(_in_lines(LABEL, ax))
        ax.figure.canvas.draw()
        box, whole = ax.yaxis.label.get_window_extent(), ax.figure.bbox
    assert whole.y0 <= box.y0 and box.y1 <= whole.y1
    assert "radius 0.05" in ax.get_ylabel(), "an option is not torn"
    plt.close("all")
