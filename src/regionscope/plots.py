"""Pictures of results: each function takes a result and optional axes and returns the axes."""

from itertools import chain
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
    layer = {name: site.layer for site in cells.sites for name in (site.name, site.tournament)}
    words = [range(c.first_word, c.first_word + c.words) for c in cells.columns if layer[c.name] == 1]
    return np.asarray(cells.packed_patterns[:, np.array([*chain(*words)], np.int64)])


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


PHASES = {"descent": "#56b4e9", "ascent": "#e69f00"}  # with LINES, Okabe and Ito's colour-blind safe colours
MARKS = {"memorised": "--", "generalised": "-.", "peak": ":"}
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9")


def curve(
    steps: ArrayLike,
    values: ArrayLike | dict[str, ArrayLike],
    ax: Any = None,
    *,
    stderr: ArrayLike | dict[str, ArrayLike] | None = None,
    phases: Any = None,
    label: str = "local complexity",
) -> Any:
    """Measured curves over training steps (logarithmic after step 0), with bands of ± one standard error.

    `values` is one curve or {name: curve}, `stderr` likewise. `phases` (see `rs.phases`) shades descents blue and
    ascents orange, named above, and draws lines where the network had memorised, generalised, and at the peak.
    """
    ax = ax or plt.figure(figsize=(8.5, 3.8), layout="constrained").add_subplot()
    curves = values if isinstance(values, dict) else {label: values}
    errors = stderr if isinstance(stderr, dict) else {} if stderr is None else {label: stderr}
    if unknown := set(errors) - set(curves):
        raise ValueError(f"stderr must name curves of {sorted(curves)}, got {sorted(unknown)}; use the same names")
    t = np.asarray(steps, float)
    for i, (name, y) in enumerate((name, np.asarray(y, float)) for name, y in curves.items()):
        colour = LINES[i % len(LINES)]
        ax.plot(t, y, color=colour, lw=1.6, label=name, zorder=3)
        if name in errors:
            error = np.asarray(errors[name], float)
            ax.fill_between(t, y - error, y + error, color=colour, alpha=0.25, lw=0, zorder=2)
    _log_time(ax, t)
    ax.set(xlabel="training step", ylabel=label)
    if phases is not None:
        _shade_phases(phases, ax, named=True)
        _mark_times(phases, ax)
    if len(ax.get_legend_handles_labels()[1]) > 1:
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return ax


def training(
    steps: ArrayLike,
    values: ArrayLike | dict[str, ArrayLike],
    accuracies: dict[str, ArrayLike],
    axes: Any = None,
    *,
    stderr: ArrayLike | dict[str, ArrayLike] | None = None,
    phases: Any = None,
    label: str = "local complexity",
) -> Any:
    """`curve` above the accuracies {name: accuracy} at the same steps, with the same phases; returns both axes."""
    if axes is None:
        figure = plt.figure(figsize=(8.5, 5.4), layout="constrained")
        axes = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    curve(steps, values, axes[0], stderr=stderr, phases=phases, label=label)
    axes[0].set_xlabel("")
    t = np.asarray(steps, float)
    for colour, (name, accuracy) in zip(LINES, accuracies.items(), strict=False):
        axes[1].plot(t, np.asarray(accuracy, float), color=colour, lw=1.6, label=name, zorder=3)
    _log_time(axes[1], t)
    axes[1].set(ylim=(-0.03, 1.05), xlabel="training step", ylabel="accuracy")
    axes[1].legend(handles=list(axes[1].lines), fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    if phases is not None:
        _shade_phases(phases, axes[1], named=False)
        _mark_times(phases, axes[1])
    return axes


def _log_time(ax: Any, t: NDArray[np.float64]) -> None:
    """A logarithmic axis of steps; if there is a step 0, it is linear up to the next one."""
    if t[0] > 0:
        ax.set_xscale("log")
    else:
        ax.set_xscale("symlog", linthresh=t[1], linscale=0.3)
    ax.set_xlim(t[0], t[-1])


def _shade_phases(phases: Any, ax: Any, *, named: bool) -> None:
    for name, segment in zip(phases.names, phases.segments, strict=True):
        ax.axvspan(segment.first, segment.last, color=PHASES[segment.kind], alpha=0.16, lw=0, zorder=0)
        low, high = ax.transData.transform([(segment.first, 0), (segment.last, 0)])[:, 0]
        if named and high - low > 25:  # pixels
            middle = ax.transAxes.inverted().transform(((low + high) / 2, 0))[0]
            words = name.replace(" ", "\n") if high - low < 90 else name
            ax.text(middle, 1.01, words, transform=ax.transAxes, ha="center", va="bottom", fontsize=8.5)


def _mark_times(phases: Any, ax: Any) -> None:
    for name, style in MARKS.items():
        step = getattr(phases, name)
        if step is not None:
            ax.axvline(step, color="0.2", ls=style, lw=1.4, label=f"{name}, step {step:,.0f}", zorder=1)


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


def estimate(found: Any, ax: Any = None) -> Any:
    """The mean of each layer with its standard error; with one layer or none, a histogram of the points."""
    ax = ax or plt.figure(figsize=(4, 3), layout="constrained").add_subplot()
    ax.set_title(f"{found.name}, {found.n:,} points", fontsize=10)
    if len(found.layer_numbers) > 1:
        errors = found.per_layer.std(axis=0, ddof=1) / np.sqrt(found.n) if found.n > 1 else None
        ax.bar(found.layer_numbers, found.per_layer.mean(axis=0), yerr=errors, color="0.7", capsize=2)
        ax.set(xlabel="layer", ylabel=found.quantity, xticks=found.layer_numbers)
        return ax
    finite = found.per_point[np.isfinite(found.per_point)]
    ax.hist(finite, bins="auto" if len(finite) and np.ptp(finite) > 0 else 1, color="0.7")
    if len(finite):
        ax.axvline(finite.mean(), color=BOUNDARY, lw=1.2)
    ax.set(xlabel=found.quantity, ylabel="points")
    return ax
