"""Measures against each other, and the sides of inequalities."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from regionscope.inequalities.bound import Bound
from regionscope.measures.comparison import Comparison
from regionscope.plots.style import (
    BOUNDARY,
    HUES,
    MARKERS,
    OTHERS,
    add_legend,
    figure_of,
    is_narrow,
    new_axes,
    new_figure,
)

NETWORKS = (HUES["random"], HUES["train"], *OTHERS)
UNJUDGED = "0.6"
UNDECIDED = HUES["test"]  # which is no colour of a network
EDGE = "<"  # of what lies beyond the left one
VERDICTS = {"violated": BOUNDARY, "undecided": UNDECIDED, "no verdict": UNJUDGED}


def pairs(comparison: Comparison, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Each pair of measures against each other, a dot a point, with Spearman's rank correlation."""
    chosen = [(0, 1), (0, 2), (1, 2)]
    axes = axes if axes is not None else new_figure(0.36).subplots(1, 3)
    for ax, (i, j) in zip(axes, chosen, strict=True):
        a, b = comparison.measures[i], comparison.measures[j]
        ax.scatter(a.per_point, b.per_point, s=10, alpha=0.6, linewidths=0, color=HUES["random"])
        ax.set(xlabel=a.name, ylabel=b.name, title=f"rank corr. {comparison.rank_correlation[i, j]:.2f}")
    return axes


def bounds(found: Sequence[Bound] | Mapping[str, Sequence[Bound]], ax: Axes | None = None) -> Axes:
    """The tightness left/right of every inequality: printed hollow, valid filled, restated crossed; beyond 1 violated.

    `found` is what `rs.bounds` returns, or several such lists by name, one a network. A left side that is not positive
    says nothing; it is marked by a triangle at the left edge.
    """
    networks = found if isinstance(found, Mapping) else {"holds": found}
    known = {network: [b for b in rows if b.right == b.right] for network, rows in networks.items()}
    names = list(dict.fromkeys(b.reference for rows in known.values() for b in rows))
    what = {b.reference: b.name for rows in known.values() for b in rows}
    ax = ax or new_axes(0.062 * len(names) + 0.25)
    ratios = [b.ratio for rows in known.values() for b in rows if 0 < b.ratio < np.inf]
    low = 10 ** np.floor(np.log10(min([*ratios, 0.1])))
    for k, (network, rows) in enumerate(known.items()):
        shift = 0.5 * (k - (len(networks) - 1) / 2) / len(networks)
        shape, own = MARKERS[k % len(MARKERS)], NETWORKS[k % len(NETWORKS)]
        for b in rows:
            place = min(max(b.ratio, low), 1e300) if b.ratio == b.ratio else low
            _draw_bound(ax, place, names.index(b.reference) + shift, shape if place > low else EDGE, b, own)
        ax.scatter([], [], s=20, marker=shape, color=own, label=network)
    drawn = {word for rows in known.values() for b in rows for word in (b.verdict, b.kind)}
    for name, colour in VERDICTS.items():
        if name in drawn or name != "undecided":
            ax.scatter([], [], s=20, color=colour, label=name)
    ax.scatter([], [], s=20, color="black", label="valid")
    if "as restated" in drawn:
        ax.scatter([], [], s=45, marker="X", color="black", edgecolors="white", linewidths=0.5, label="as restated")
    ax.scatter([], [], s=64, facecolors="none", edgecolors="black", label="as printed")
    if any(not b.ratio > low for rows in known.values() for b in rows):
        ax.scatter([], [], s=20, marker=EDGE, color="black", label="left side ≤ 0")
    ax.axvline(1.0, color="black", lw=0.8, zorder=1)
    ax.set(xscale="log", yticks=range(len(names)), xlabel="left / right side (beyond 1: violated)")
    words = names if is_narrow(ax) else [f"{what[name]}\n{name}" for name in names]
    ax.set_yticklabels(words, fontsize="small", linespacing=1.1)
    ax.invert_yaxis()
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    figure_of(ax).draw_without_rendering()  # the labels take their room before the legend
    add_legend(ax, ax.get_legend_handles_labels()[0], below=True)
    return ax


def _draw_bound(ax: Axes, x: float, y: float, shape: str, bound: Bound, own: str) -> None:
    """A mark whose colour says the verdict (that of the network, if it holds), and whose kind whose constants."""
    colour = VERDICTS.get(bound.verdict, own)
    if bound.printed:
        ax.scatter(x, y, marker=shape, s=64, facecolors="none", edgecolors=colour, zorder=2)
    elif bound.restated:
        shape = shape if shape == EDGE else "X"
        ax.scatter(x, y, marker=shape, s=45, facecolors=colour, edgecolors="white", linewidths=0.5, zorder=3)
    else:
        ax.scatter(x, y, marker=shape, s=20, facecolors=colour, edgecolors=colour, zorder=2)
