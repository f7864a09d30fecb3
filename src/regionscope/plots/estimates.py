"""A measure at points."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from regionscope.plots.style import HUES, in_lines, is_narrow, layer_colours, new_axes, paled
from regionscope.results import SMOOTH_IN_SHORT, Estimate, Share, options_in_words, with_interval
from regionscope.tables import how_many
from regionscope.types import Floats


def estimate(found: Estimate, ax: Axes | None = None) -> Axes:
    """The mean of each layer with its standard error, if it can be told; with one layer or none, a histogram of points.

    Of a share, how many points are right and how many are not.
    """
    ax = ax or new_axes(0.6)
    about = (",\n" if is_narrow(ax) else ", ").join([found.name, how_many(found.n, "point")])
    smooth = [SMOOTH_IN_SHORT] if found.piecewise_linear is False else []
    options = in_lines("", [*options_in_words(found.options), *smooth], ax, below=True)
    ax.set_title("\n".join(filter(None, [about, options])), fontsize="medium" if is_narrow(ax) else None)
    if found.per_layer is not None and len(found.layer_numbers) > 1:
        errors = None if np.isnan(found.layer_stderr).all() else found.layer_stderr
        colours = list(paled(layer_colours(len(found.layer_numbers)), 0.3))
        ax.bar(found.layer_numbers, found.per_layer.mean(axis=0), yerr=errors, color=colours, capsize=2)
        ax.set(xlabel="layer", ylabel=in_lines(found.quantity, (), ax), xticks=found.layer_numbers)
        return ax
    if isinstance(found, Share):
        right = found.per_point.sum()
        ax.bar(["wrong", "right"], [found.n - right, right], color="0.75")
        told = f"right: {with_interval(found.mean, *found.interval())}"
        ax.set(xlabel=in_lines(told, (), ax, below=True), ylabel="points")
        return ax
    finite = found.per_point[np.isfinite(found.per_point)]
    if len(finite):
        ax.hist(finite, bins=_bins(finite), color="0.75")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.axvline(finite.mean(), color=HUES["train"], lw=1.2, label=f"mean {finite.mean():.4g}")
        ax.legend(frameon=False)
    ax.set(xlabel=in_lines(found.quantity, (), ax, below=True), ylabel="points")
    return ax


def _bins(values: Floats) -> list[float]:
    """Edges of the bins of a histogram; of counts, in the middle between them."""
    if np.ptp(values) == 0:
        return [*np.histogram_bin_edges(values, 1)]
    edges = np.histogram_bin_edges(values, "auto")
    if (values != values.round()).any():
        return [*edges]
    width = np.ceil(edges[1] - edges[0])
    return [*np.arange(values.min() - 0.5, values.max() + width, width)]
