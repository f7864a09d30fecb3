"""The cells of a plane."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import ArrayLike
from torch import Tensor

from regionscope.geometry import decision
from regionscope.geometry.patterns import PatternTable, pattern_codes
from regionscope.geometry.plane_cells import PlaneCells
from regionscope.geometry.predicates import rounding_bound
from regionscope.plots.marks import draw_points
from regionscope.plots.style import (
    BOUNDARY,
    add_legend,
    class_colours,
    in_lines,
    layer_colours,
    layer_handles,
    new_axes,
    pale_map,
    thin,
)
from regionscope.tables import how_many
from regionscope.types import Floats, Indices, Words

COLOURS = ("class", "gradient", "layer", "pattern", "none")
FEW = 1_500  # cells; sides of more are thinner
MANY = 200_000  # cells, beyond which their sides would hide everything
SMOOTH = 20_000  # cells, beyond which their edges are not smoothed, for speed
IN_A_PATH = 500  # segments
DOTS = 5_000  # cells, beyond which vector files hold the lines as dots
DOTS_FILLED = 500  # the same for what lines enclose
CLASSES = 20  # in a legend
KEYS = {
    "layer": "similar colours: the same pattern in layer 1",
    "pattern": "a colour for each pattern: it has no other meaning",
}
SEAM = 0.8  # points: sides of neighbours in their own colours leave no gap between them


def regions(
    cells: PlaneCells,
    ax: Axes | None = None,
    *,
    colour: str | None = None,
    boundaries: bool | None = None,
    decision: bool | None = None,
    points: ArrayLike | Tensor | None = None,
    labels: Sequence[object] | None = None,
    images: ArrayLike | Tensor | bool | None = None,
    legend: bool = True,
    limits: tuple[float, float] | None = None,
) -> Axes:
    """The cells of a plane with the boundaries of each layer, the decision boundary, and the data it passes through.

    `colour` fills the cells by the "class" that is largest there, cut where it changes; the "gradient" norm along the
    plane; "pattern", a pale colour each; "layer", the same but alike for one pattern of the first layer; or "none". By
    default the class if there are several outputs and at most 200,000 cells, else the gradient; of cells up to a layer,
    "layer" if there are more than that, else none. `boundaries` draws the sides of cells in the colour of their layer
    (by default if there are at most 200,000 cells), `decision` the decision boundary in red (by default if
    there are several outputs).

    `points` are marked: (n, 2) in plane coordinates, or inputs (n, ...), each at its nearest point of the plane; by
    default those that the plane was laid through. Those of images get a thumbnail, up to eight of them; `images`
    (n, ...) gives others, False none. `labels` stand beside the points. `legend` names layers, classes, the boundary,
    and says what the colours of patterns mean.
    `limits` are the gradient norms at the ends of the colours; see `gradient_limits`.
    """
    if colour not in (None, *COLOURS):
        raise ValueError(f"colour must be one of {', '.join(COLOURS)}, got {colour!r}")
    ax = ax or new_axes(1.05)
    low, high = cells.plane.domain.min(axis=0), cells.plane.domain.max(axis=0)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xlabel="first axis", ylabel="second axis")
    ax.set_title(how_many(len(cells), "linear region") + ("" if cells.exact else " (not exact)"), y=1.0)
    several = cells.outputs is not None and cells.outputs.shape[1] > 1
    handles: list[Artist] = []
    if boundaries if boundaries is not None else len(cells) <= MANY:
        handles += _draw_boundaries(cells, ax)
    elif boundaries is None:
        ax.set_title(f"{ax.get_title()}\n(sides are not drawn beyond {MANY:,})")
    if decision if decision is not None else several:
        handles += _draw_decision(cells, ax)
    chosen = colour or _usual_colour(cells)
    handles += _fill_by_gradient(cells, ax, limits) if chosen == "gradient" else FILLS[chosen](cells, ax)
    draw_points(cells.plane, ax, points, labels, images)
    if legend and (handles or chosen in KEYS):
        add_legend(ax, handles, below=True, title=KEYS.get(chosen))
    return ax


def _usual_colour(cells: PlaneCells) -> str:
    if cells.outputs is not None and cells.outputs.shape[1] > 1:
        return "class" if len(cells) <= MANY or cells.network is None else "gradient"
    if cells.outputs is None:
        return "none" if len(cells) <= MANY else "layer"  # where no sides are drawn, there has to be something
    return "none" if cells.network is None else "gradient"


# boundaries


def _draw_boundaries(cells: PlaneCells, ax: Axes) -> list[Artist]:
    layers = max((site.layer for site in cells.sites), default=0)
    ends, finer = cells.vertices[cells.edges.vertices], min(1.0, (FEW / len(cells)) ** 0.5)
    for k, colour in reversed(list(enumerate(layer_colours(layers)))):  # the first layer on top
        mine = ends[cells.edges.layer == k + 1]
        width = finer * thin() * (2 - 0.8 * k / max(1, layers - 1))
        ax.add_collection(
            LineCollection(
                _paths_with_gaps(mine), colors=[colour], linewidths=width, zorder=2, rasterized=len(cells) > DOTS
            )
        )
    return [*layer_handles(layers, np.unique(cells.edges.layer[cells.edges.layer > 0]))]


def _draw_decision(cells: PlaneCells, ax: Axes) -> list[Artist]:
    width, found = 4.5 * thin(), cells.decision_boundary().segments
    if not len(found):
        return []
    segments = _paths_with_gaps(found)
    for colour, more, order in (("white", 1.6 * thin(), 2.9), (BOUNDARY, 0.0, 3)):  # a rim keeps it apart from lines
        ax.add_collection(
            LineCollection(segments, colors=colour, linewidths=width + more, zorder=order, capstyle="round")
        )
    return [Line2D([], [], color=BOUNDARY, linewidth=width, label="decision boundary")]


def _paths_with_gaps(segments: Floats) -> list[Floats]:
    """Segments (n, 2, 2) as paths of many, with gaps between: they take less room in vector files."""
    gaps = np.full((len(segments), 1, 2), np.nan)
    return [
        np.concatenate([part, gap], axis=1).reshape(-1, 2)
        for part, gap in zip(*(np.split(a, range(IN_A_PATH, len(a), IN_A_PATH)) for a in (segments, gaps)), strict=True)
    ]


# fills


def _add_polygons(polygons: list[Floats], ax: Axes) -> PolyCollection:
    many = len(polygons)
    added = PolyCollection(
        polygons,
        edgecolors="face",
        linewidths=SEAM,
        antialiased=many <= SMOOTH,
        rasterized=many > DOTS_FILLED,
        zorder=1,
    )
    ax.add_collection(added)
    return added


def _fill_by_class(cells: PlaneCells, ax: Axes) -> list[Artist]:
    assert cells.outputs is not None
    polygons, classes = _decided_polygons(cells)
    colours = class_colours(max(2, cells.outputs.shape[1]))  # the same whichever classes are seen
    _add_polygons(polygons, ax).set(facecolor=colours[classes])
    single = cells.outputs.shape[1] == 1
    names = ("output ≤ 0", "output > 0") if single else [f"class {c}" for c in range(len(colours))]
    return [Patch(color=colours[c], label=names[c]) for c in np.unique(classes)[:CLASSES]]


def _decided_polygons(cells: PlaneCells) -> tuple[list[Floats], Indices]:
    """The cells, those in which the largest output changes cut there, and the class of each piece."""
    places, ends, cut, classes = decided_pieces(cells)
    whole = np.ones(len(cells), bool)
    whole[cut] = False
    polygons = [polygon for polygon, kept in zip(cells.polygons, whole, strict=True) if kept]
    return [*polygons, *np.split(places, ends[:-1])[: len(ends)]], np.concatenate([cells.classes[whole], classes])


def decided_pieces(cells: PlaneCells) -> tuple[Floats, Indices, Indices, Indices]:
    """The cells in which the largest output changes, cut there: corners (q, 2), and of each piece its end among them,
    the cell and the class."""
    assert cells.outputs is not None
    single = cells.outputs.shape[1] == 1
    f = np.pad(cells.outputs, ((0, 0), (1, 0))) if single else cells.outputs  # a single output competes with zero
    changed = np.unique(cells.decision_boundary().cell)
    found = decision.realms(cells.vertices, f, cells.offsets, cells.corners, changed, rounding_bound(f))
    cell, winner = np.array(found[2], np.int64).reshape(-1, 2).T
    return np.array(found[0], np.float64).reshape(-1, 2), np.array(found[1], np.int64), cell, winner


def gradient_limits(*cells: PlaneCells) -> tuple[float, float]:
    """The range of gradient norms that colours tell apart; of several planes together, to draw them alike."""
    norms = np.concatenate([c.gradient_norms for c in cells])
    least = 1e-12  # of a network that is constant there
    return max(norms.min(), 1e-4 * norms.max(), least), max(norms.max(), least)  # the smallest do not stretch the scale


def _fill_by_gradient(cells: PlaneCells, ax: Axes, limits: tuple[float, float] | None) -> list[Artist]:
    low, high = limits or gradient_limits(cells)
    polygons = _add_polygons(cells.polygons, ax)
    norm = LogNorm(low, high) if high > 20 * low else Normalize(low, high)
    polygons.set(array=np.maximum(cells.gradient_norms, low), cmap=pale_map("cividis"), norm=norm)
    bar = ax.inset_axes((1.03, 0, 0.04, 1))  # as high as the cells
    ax.figure.colorbar(polygons, cax=bar, label=in_lines("gradient norm along the plane", (), ax))
    return []


def _fill_by_pattern(cells: PlaneCells, ax: Axes) -> list[Artist]:
    _add_polygons(cells.polygons, ax).set(facecolor=pattern_colours(cells.packed_patterns))
    return []


def _fill_by_layer(cells: PlaneCells, ax: Axes) -> list[Artist]:
    mixed = 0.75 * pattern_colours(_first_layer_patterns(cells)) + 0.25 * pattern_colours(cells.packed_patterns)
    _add_polygons(cells.polygons, ax).set(facecolor=mixed)
    return []


FILLS = {
    "class": _fill_by_class, "layer": _fill_by_layer, "pattern": _fill_by_pattern, "none": lambda cells, ax: [],
}  # fmt: skip


def _first_layer_patterns(cells: PlaneCells) -> Words:
    """The part of the patterns that belongs to the first layer."""
    layer = {part.name: site.layer for site in cells.sites for part in (site, site.tournament) if part is not None}
    words = [range(c.first_word, c.first_word + c.words) for c in cells.columns if layer[c.name] == 1]
    return np.asarray(cells.packed_patterns[:, np.array([*chain(*words)], np.int64)])


def pattern_colours(patterns: Words | PatternTable) -> Floats:
    """A pale colour for each pattern, the same in every picture."""
    shades = (pattern_codes(patterns)[:, None] >> np.array([8, 24, 40], np.uint64) & np.uint64(255)).astype(float) / 255
    return np.asarray(0.62 + 0.36 * shades)
