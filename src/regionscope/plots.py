"""Pictures of results: each function takes a result and optional axes and returns the axes."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

COLOURS = ("pattern", "layer", "gradient", "class", "none")
BOUNDARY = "#d62728"


def regions(
    cells: Any,
    ax: Any = None,
    *,
    colour: str = "pattern",
    boundaries: bool | None = None,
    decision: bool | None = None,
    points: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> Any:
    """The cells of a plane, filled by `colour`: "pattern", "layer", "gradient", "class" or "none".

    "layer" gives cells that share their pattern in the first layer similar colours. `boundaries` draws the sides of
    cells by layer (early layers dark; by default if there are at most 20,000 cells), `decision` the decision boundary
    in red (by default if there are several outputs), `points` (n, 2) data in plane coordinates with their `labels`.
    """
    if colour not in COLOURS:
        raise ValueError(f"colour must be one of {', '.join(COLOURS)}, got {colour!r}")
    ax = ax or plt.figure(figsize=(6, 6), layout="constrained").add_subplot()
    if colour != "none":
        _fill(cells, ax, colour)
    if boundaries if boundaries is not None else len(cells) <= 20_000:
        _draw_boundaries(cells, ax)
    several = cells.outputs is not None and cells.outputs.shape[1] > 1
    if decision if decision is not None else several:
        ax.add_collection(LineCollection(cells.decision_boundary().segments, colors=BOUNDARY, linewidths=1.6, zorder=3))
    if points is not None:
        _draw_points(np.asarray(points), labels, ax)
    low, high = cells.plane.domain.min(axis=0), cells.plane.domain.max(axis=0)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xlabel="first axis", ylabel="second axis")
    ax.set_title(f"{len(cells):,} linear regions", fontsize=10)
    return ax


def _fill(cells: Any, ax: Any, colour: str) -> None:
    polygons = PolyCollection(cells.polygons, edgecolors="face", linewidths=0.1, antialiased=len(cells) <= 20_000)
    ax.add_collection(polygons)
    if colour == "pattern":
        polygons.set(facecolor=_hashed(cells.packed_patterns))
    elif colour == "layer":
        polygons.set(facecolor=0.75 * _hashed(_first_layer(cells)) + 0.25 * _hashed(cells.packed_patterns))
    elif colour == "gradient":
        norms = np.maximum(cells.gradient_norms, 1e-12)
        log = norms.max() > 20 * norms.min()
        polygons.set(array=norms, cmap="viridis", norm=LogNorm() if log else Normalize())
        ax.figure.colorbar(polygons, ax=ax, label="gradient norm along the plane", shrink=0.8)
    else:
        classes = cells.classes
        palette = plt.get_cmap("Pastel1" if classes.max() < 9 else "tab20")
        polygons.set(facecolor=palette(classes % palette.N))
        handles = [Patch(color=palette(c % palette.N), label=str(c)) for c in np.unique(classes)[:20]]
        ax.legend(handles=handles, title="class", fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))


def _first_layer(cells: Any) -> NDArray[np.uint64]:
    """The part of the patterns that belongs to the first layer."""
    layer = {site.name: site.layer for site in cells.sites} | {s.name.split("/")[0]: s.layer for s in cells.sites}
    first = [c for c in cells.columns if layer[c.name] == 1]
    return np.concatenate([cells.packed_patterns[:, c.first_word : c.first_word + c.words] for c in first], axis=1)


def _hashed(patterns: NDArray[np.uint64]) -> NDArray[np.float64]:
    """A pale colour for each pattern, the same in every picture."""
    code = np.full(len(patterns), 0x9E3779B97F4A7C15, np.uint64)
    with np.errstate(over="ignore"):
        for word in patterns.T:
            code = (code ^ word) * np.uint64(0xBF58476D1CE4E5B9)
            code ^= code >> np.uint64(29)
    shades = (code[:, None] >> np.array([8, 24, 40], np.uint64) & np.uint64(255)).astype(float) / 255
    return 0.55 + 0.43 * shades


def _draw_boundaries(cells: Any, ax: Any) -> None:
    layers = max((site.layer for site in cells.sites), default=0)
    ends = cells.vertices[cells.edges.vertices]
    for layer in range(layers, 0, -1):
        shade = 0.55 * (layer - 1) / max(1, layers - 1)
        mine = cells.edges.layer == layer
        width = 0.9 - 0.5 * (layer - 1) / max(1, layers - 1)
        ax.add_collection(LineCollection(ends[mine], colors=str(shade), linewidths=width, zorder=2))


def _draw_points(points: NDArray[Any], labels: ArrayLike | None, ax: Any) -> None:
    ax.scatter(*points.T, s=30, c="black", edgecolors="white", linewidths=0.8, zorder=4, clip_on=False)
    centre = points.mean(axis=0) if len(points) > 1 else points - 1
    for point, label in zip(points, np.asarray(labels if labels is not None else []), strict=False):
        inward = np.sign(np.ravel(centre - point)[:2])
        text = ax.annotate(str(label), point, xytext=9 * inward, textcoords="offset points", ha="center", va="center")
        text.set(fontsize=10, fontweight="bold", zorder=5, path_effects=[withStroke(linewidth=2.5, foreground="white")])


def line(cells: Any, ax: Any = None, *, output: int | None = None) -> Any:
    """The outputs of a network along a line, with a mark at every breakpoint, dark for early layers (HR Fig. 4)."""
    ax = ax or plt.figure(figsize=(7, 3.5), layout="constrained").add_subplot()
    places = np.concatenate([[0.0], cells.breakpoints, [1.0]])
    for k in range(cells.outputs.shape[1]) if output is None else [output]:
        ax.plot(cells.corners, cells.corner_outputs[:, k], lw=1.2, label=f"output {k}")
    layers = max(cells.layers.max(initial=1), 1)
    for layer in range(1, layers + 1):
        shade = str(0.7 * (layer - 1) / max(1, layers - 1))
        ax.vlines(
            cells.breakpoints[cells.layers == layer], 0, 0.05, transform=ax.get_xaxis_transform(), colors=shade, lw=0.6
        )
    ax.set(xlim=(places[0], places[-1]), xlabel="position along the line", ylabel="output")
    ax.set_title(f"{len(cells):,} linear regions", fontsize=10)
    if 1 < cells.outputs.shape[1] <= 10 and output is None:
        ax.legend(fontsize=7, ncols=2)
    return ax


def pairs(comparison: Any, axes: Any = None) -> Any:
    """Each pair of measures against each other, a dot a point, with Spearman's rank correlation."""
    chosen = [(0, 1), (0, 2), (1, 2)]
    axes = axes if axes is not None else plt.figure(figsize=(10.5, 3.6), layout="constrained").subplots(1, 3)
    for ax, (i, j) in zip(axes, chosen, strict=True):
        a, b = comparison.measures[i], comparison.measures[j]
        ax.scatter(a.per_point, b.per_point, s=12, alpha=0.6, linewidths=0)
        ax.set(xlabel=a.name, ylabel=b.name)
        ax.set_title(f"rank correlation {comparison.rank_correlation[i, j]:.2f}, {a.n} points", fontsize=10)
    return axes


def bounds(found: Any, ax: Any = None) -> Any:
    """The tightness left/right of every inequality: printed hollow, valid filled; beyond 1 it is violated.

    `found` is what `rs.bounds` returns, or several such lists by name, one a network. A left side that is not positive
    says nothing; it is marked at the left edge.
    """
    networks = found if isinstance(found, dict) else {"": found}
    names = list(dict.fromkeys(b.reference for rows in networks.values() for b in rows if b.right == b.right))
    ax = ax or plt.figure(figsize=(8, 0.36 * len(names) + 1.4), layout="constrained").add_subplot()
    ratios = [b.ratio for rows in networks.values() for b in rows if 0 < b.ratio < np.inf]
    low = 10 ** np.floor(np.log10(min([*ratios, 0.1])))
    for k, (network, rows) in enumerate(networks.items()):
        shift = 0.5 * (k - (len(networks) - 1) / 2) / len(networks)
        for b in rows:
            if b.right != b.right:  # not available
                continue
            place = min(max(b.ratio, low), 1e300) if b.ratio == b.ratio else low
            colour = {True: f"C{k}", False: BOUNDARY, None: "0.6"}[b.holds]
            y, marker = names.index(b.reference) + shift, "o" if place > low else "<"
            ax.scatter(place, y, s=34, marker=marker, facecolors="none" if b.printed else colour, edgecolors=colour)
        ax.scatter([], [], s=34, color=f"C{k}", label=network or "holds")
    ax.scatter([], [], s=34, color=BOUNDARY, label="violated")
    ax.scatter([], [], s=34, color="0.6", label="no verdict")
    ax.scatter([], [], s=34, facecolors="none", edgecolors="black", label="as printed (filled: valid)")
    ax.axvline(1.0, color="black", lw=0.8)
    ax.set(xscale="log", yticks=range(len(names)), yticklabels=names, xlabel="left side / right side (1: attained)")
    ax.invert_yaxis()
    ax.grid(axis="y", color="0.92")
    ax.set_axisbelow(True)
    ax.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4, frameon=False)
    return ax
