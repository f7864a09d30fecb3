"""A planar subdivision that is being cut, and how its cells are found: the exact regions of a network on planes."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regionscope.geometry import kernels
from regionscope.geometry.patterns import Boundaries, piece_numbers
from regionscope.geometry.planes import Planes
from regionscope.geometry.predicates import EPS, MISPLACED, SHIFT
from regionscope.geometry.rational import Cells, Integers, grid_of, reduced, remainders
from regionscope.geometry.sweep import (
    ASKED_AT_ONCE,
    Cut,
    Meetings,
    Outcome,
    Sweep,
    cut_by_site,
    enlarged,
    first_doubt,
    forms_of,
    is_last_round,
    run_to_the_end,
)
from regionscope.geometry.tournaments import Tournament
from regionscope.tracing.network import Network
from regionscope.types import Floats, Indices, Ints, Words

ROOM_AT_ONCE = 1 << 18  # more than this and twice what there is, only when it proves necessary
PER_EDGE = ("label", "rivals", "apart")
PER_HALF_EDGE = ("origin", "after", "before", "face")


class Subdivision:
    """Copies of a convex polygon, cut by one site after another; see `kernels` for the arrays.

    `bits` holds the boundaries of each site that a cell is above, `won` the winners of tournaments. `apart` bounds the
    distance of an edge's vertices from the true line, as proof and usual.
    """

    def __init__(self, planes: Planes) -> None:
        sides, copies = len(planes.domain), len(planes)
        n = copies * sides
        corner, first = np.arange(n) % sides, np.arange(n) // sides * sides
        following, preceding = first + (corner + 1) % sides, first + (corner - 1) % sides
        self.planes = planes
        self.xy = np.tile(planes.domain, (copies, 1))
        self.polygon = np.arange(copies)  # of each cell
        self.bits: list[Words] = []
        self.won: dict[str, Words] = {}
        self.pairs: Indices = np.zeros((0, 3), np.int64)  # tables of rivals: the value they are in, and where
        # edge i runs from corner i to the next: half-edge 2i inside, 2i + 1 back outside
        self.origin = np.stack([np.arange(n), following], axis=1).astype(np.int32).ravel()
        self.after = np.stack([2 * following, 2 * preceding + 1], axis=1).astype(np.int32).ravel()
        self.before = np.stack([2 * preceding, 2 * following + 1], axis=1).astype(np.int32).ravel()
        self.face = np.stack([np.repeat(self.polygon, sides), np.full(n, -1)], axis=1).astype(np.int32).ravel()
        self.label: Ints = (-1 - corner).astype(np.int32)
        self.rivals: Ints = np.full(n, -1, np.int32)
        self.apart: Floats = np.zeros((n, 2))
        self.start = 2 * sides * np.arange(copies, dtype=np.int32)
        self.source = np.arange(copies, dtype=np.int32)

    def kept(self) -> dict[str, Any]:
        """All that a cut changes, as it is now."""
        return dict(vars(self))

    def cut(self, cut: Cut, most: int, settled: Indices) -> Outcome:
        """Cut all cells by a site; `settled` are signs of new vertices that are known."""
        vertices, edges, cells = len(self.xy), len(self.label), len(self.start)
        count = np.zeros(kernels.COUNTERS, np.int64)
        count[:3] = vertices, edges, cells
        stack, asked = np.empty(cut.boundaries.count + 2, np.int32), np.empty((ASKED_AT_ONCE, 5), np.int64)
        room = kernels.room_needed(self.start, self.origin, self.after, cut.above, cut.below)
        made = [
            self._enlarge(cut, *(min(r, ROOM_AT_ONCE + 2 * n) for r, n in zip(room, (vertices, cells), strict=True)))
        ]

        def kernel() -> int:
            c = made[0]
            return int(kernels.cut_cells(
                count, c.boundaries.first, c.breakpoints, c.values, c.fresh, c.rows, c.law, c.doubt, c.above, c.below,
                self.xy, c.parents, c.weights, self.origin, self.after, self.before, self.face, self.label,
                self.rivals, self.apart, self.start, self.source, cells, stack, most, asked, settled,
            ))  # fmt: skip

        def grow() -> None:
            made[0] = self._enlarge(made[0], len(self.xy), len(self.start))

        def stopped() -> str:
            site = cut.boundaries.site
            return f"more than max_cells={most:,} cells while cutting by {site.name!r} (layer {site.layer})"

        torn = run_to_the_end(kernel, grow, stopped)
        self._shrink(*count[:3])
        ancestors = kernels.ancestors(self.source, cells)
        self.bits, self.polygon = [bits[ancestors] for bits in self.bits], self.polygon[ancestors]
        self.won = {name: won[ancestors] for name, won in self.won.items()}
        return Outcome(made[0], asked[: count[kernels.ASKED]].copy(), int(count[kernels.OPEN]), torn)

    def _enlarge(self, cut: Cut, vertices: int, cells: int) -> Cut:
        """Make room for so many more vertices and cells; every new vertex or cell comes with one new edge."""
        self.xy = enlarged(self.xy, len(self.xy) + vertices + 2)
        edges = len(self.label) + vertices + cells + 3
        for name in PER_EDGE:
            setattr(self, name, enlarged(getattr(self, name), edges))
        for name in PER_HALF_EDGE:
            setattr(self, name, enlarged(getattr(self, name), 2 * edges))
        for name in ("start", "source"):
            setattr(self, name, enlarged(getattr(self, name), len(self.start) + cells + 1))
        return cut.grown(len(self.xy))

    def _shrink(self, vertices: int, edges: int, cells: int) -> None:
        self.xy = self.xy[:vertices]
        for name in PER_EDGE:
            setattr(self, name, getattr(self, name)[:edges])
        for name in PER_HALF_EDGE:
            setattr(self, name, getattr(self, name)[: 2 * edges])
        self.start, self.source = self.start[:cells], self.source[:cells]

    def note_bits(self, cut: Cut) -> None:
        """Note which boundaries of this site each cell is above."""
        bits = np.empty((len(self.start), cut.above.shape[1]), np.uint64)
        kernels.cell_bits(cut.above, self.start, self.origin, self.after, bits)
        self.bits = [*self.bits, bits]

    def patterns(self, sweep: Sweep) -> Words:
        """The packed patterns of all cells."""
        return packed_patterns(self.bits, self.won, sweep, len(self.start))

    # tournaments

    def merge(self, before: Indices, playing: Tournament, first: int, sweep: Sweep) -> NDArray[np.bool_]:
        """Join the cells that a tournament cut although nobody else won; returns the vertices that stay.

        `before` says which cell of the time before the tournament each cell comes from; its rounds begin with site
        number `first`.
        """
        winners, matches = playing.played(sides_of(self.bits, sweep.boundaries, playing))
        won = playing.packed(winners)
        self._note_rivals(playing, matches, first, sweep)
        table = np.concatenate([before[:, None].astype(np.uint64), won], axis=1)
        _, members, key = np.unique(table, axis=0, return_index=True, return_inverse=True)
        vertices, edges, start = kernels.merge_cells(
            key.ravel(), len(members), len(self.xy), self.origin, self.after, self.before, self.face, self.label,
            self.rivals, self.apart,
        )  # fmt: skip
        halves = np.repeat(edges, 2)
        new_vertex, new_half = np.cumsum(vertices) - 1, np.cumsum(halves) - 1
        self.xy = self.xy[vertices]
        for name in PER_EDGE:
            setattr(self, name, getattr(self, name)[edges])
        self.origin = new_vertex[self.origin[halves]].astype(np.int32)
        self.after = new_half[self.after[halves]].astype(np.int32)
        self.before = new_half[self.before[halves]].astype(np.int32)
        self.face = self.face[halves]
        self.start = new_half[start].astype(np.int32)
        self.source = np.arange(len(start), dtype=np.int32)
        self.won = {name: w[members] for name, w in (self.won | {str(playing.rounds[0].tournament): won}).items()}
        self.bits = [bits[members] for bits in self.bits]
        self.polygon = self.polygon[members]
        return np.asarray(vertices)

    def _note_rivals(self, playing: Tournament, matches: dict[str, Tensor], first: int, sweep: Sweep) -> None:
        """Write down which two competitors are equal on each edge that a round made: joined cells no longer tell."""
        for b in sweep.boundaries[first : first + len(playing.rounds)]:
            edges = np.flatnonzero((self.label >= b.first) & (self.label < b.first + b.count) & (self.rivals < 0))
            cell = self.face.reshape(-1, 2)[edges].max(axis=1)
            pairs = matches[b.site.name][cell, self.label[edges] - b.first].numpy()
            self.rivals[edges] = len(self.pairs) + np.arange(len(edges), dtype=np.int32)
            source = np.full((len(edges), 1), playing.source)
            self.pairs = np.concatenate([self.pairs, np.concatenate([source, pairs], axis=1)])

    def inside(self) -> Tensor:
        """A point of input space inside each cell."""
        offsets, corners, _ = kernels.loops(self.start, self.origin, self.after)
        return self.planes.points(mean_corners(self.xy, offsets, corners), self.polygon)

    # exact arithmetic

    def exact_cells(self, sweep: Sweep) -> Cells:
        """The cells as they are now, for exact arithmetic."""
        origins, axes = self.planes.origins, self.planes.axes
        polygon, bits = self.polygon, self.bits

        def points(cells: Indices, p: int) -> Tensor:
            origin, along = (remainders(part, p) for part in (origins, axes))
            told = torch.stack([origin, *(reduced(origin + along[:, i], p) for i in range(2))], dim=1)
            return told[polygon[cells]].reshape(len(cells), 3, *sweep.net.input_shape)

        def choices(cells: Indices) -> dict[int, Tensor]:
            return pieces_of(bits, sweep.boundaries, cells)

        return Cells(points, lambda: grid_of(origins).join(grid_of(axes)), choices)

    def corners(self, vertices: Indices, sweep: Sweep) -> Meetings:
        """Where the vertices are, as the meeting of two lines each: in a cell that has a proper corner there."""
        rim = len(self.planes) * len(self.planes.domain)
        half = kernels.sharpest(vertices, self.outgoing(), self.xy, self.origin, self.before, self.face, 0.0)
        edges, previous = half >> 1, self.before[half] >> 1
        meetings = self.meetings(self.face[half], self.line(edges), self.line(previous), sweep)
        corner = np.flatnonzero(vertices < rim)  # of the domain: known as they are
        for form, axis in zip(meetings.forms, range(2), strict=True):
            form.places[corner] = -1
            form.places[corner, 1] = len(self.planes.domain) + 2 * (vertices[corner] % len(self.planes.domain)) + axis
            form.levels[corner] = 0
        return meetings

    def place_exactly(self, sweep: Sweep) -> None:
        """Put vertices that rounding has moved far where exact arithmetic has them, with the outputs there."""
        far = np.flatnonzero(sweep.doubt[:, SHIFT + 1] > MISPLACED * np.abs(self.planes.domain).max())
        if len(far) == 0:
            return
        meetings = self.corners(far, sweep)
        places = sweep.placed(self.exact_cells(sweep), meetings)
        known = np.isfinite(places).all(axis=1)
        self.xy[far[known]] = places[known]
        if sweep.outputs is not None and known.any():
            points = self.planes.points(places[known], self.polygon[meetings.cell[known]])
            outputs = sweep.net(points.reshape(-1, *sweep.net.input_shape))
            sweep.outputs[far[known]] = outputs.reshape(len(points), -1).numpy()

    def outgoing(self) -> Indices:
        """A half-edge that begins at each vertex."""
        found = np.empty(len(self.xy), np.int64)
        found[self.origin] = np.arange(len(self.origin))
        return found

    def local_bounds(self, vertices: Indices, units: Indices, cut: Cut) -> Floats:
        """Bounds on the errors of units at vertices, with the slopes that they have in the cells there."""
        return np.asarray(kernels.local_bounds(
            vertices, units, self.outgoing(), self.xy, self.origin, self.before, self.face, cut.values, cut.rows,
            cut.law, cut.doubt,
        ))  # fmt: skip

    def line(self, edge: Any) -> Any:
        """What an edge lies on: a boundary, a side of the domain, or a pair of rivals."""
        return np.where(self.rivals[edge] < 0, self.label[edge], kernels.RIVALS - self.rivals[edge])

    def meetings(self, cell: Indices, line: Indices, other: Indices, sweep: Sweep) -> Meetings:
        """The meetings of lines in cells."""
        forms = []
        for lines in (line, other):
            rival = np.flatnonzero(lines <= kernels.RIVALS)
            form = forms_of(np.where(lines <= kernels.RIVALS, -1, lines), sweep.boundaries)
            form.places[rival] = self.pairs[kernels.RIVALS - lines[rival]]
            forms.append(form)
        return Meetings(np.asarray(cell, np.int64), forms, lines_of(self.planes.domain))

    def twins(self, signs: Indices, before: dict[str, Any]) -> Indices:
        """Signs at vertices by cell, line and boundaries, also as the cell on the other side of the line sees them."""
        face = before["face"].reshape(-1, 2)
        old = len(face)
        lines = np.where(before["rivals"] < 0, before["label"], kernels.RIVALS - before["rivals"])[:old]
        found = [signs]
        for row in signs:
            beside = face[(lines == row[1]) & (face == row[0]).any(axis=1)]
            for cell in np.unique(beside[(beside != row[0]) & (beside >= 0)]):
                found.append(np.concatenate([[cell], row[1:]])[None])
        return np.concatenate(found)


def lines_of(domain: Floats) -> Integers:
    """The sides of a polygon, then a vertical and a horizontal line through each corner, by their values at (0, 0),
    (1, 0) and (0, 1), as integers."""
    corners = [(Fraction(x), Fraction(y)) for x, y in domain.tolist()]
    coefficients = []
    for (x, y), (u, v) in zip(corners, [*corners[1:], corners[0]], strict=True):
        a, b = v - y, x - u
        coefficients.append((-(a * x + b * y), a, b))
    for x, y in corners:
        coefficients += [(-x, Fraction(1), Fraction(0)), (-y, Fraction(0), Fraction(1))]
    rows = []
    for c, a, b in coefficients:
        scale = math.lcm(c.denominator, a.denominator, b.denominator)
        rows.append([int(scale * part) for part in (c, c + a, c + b)])
    return np.array(rows, object)


def pieces_of(bits: list[Words], boundaries: list[Boundaries], cells: Indices) -> dict[int, Tensor]:
    """The piece that every unit is on in these cells: value that leaves a site -> (cells, units)."""
    return {
        b.site.exit: torch.from_numpy(piece_numbers(w[cells], b.site.units, len(b.site.breakpoints)))
        for w, b in zip(bits, boundaries, strict=False)
    }


def sides_of(bits: list[Words], boundaries: list[Boundaries], playing: Tournament) -> dict[str, Tensor]:
    """Whether the first was above the second in every match of a tournament, round by round."""
    names = {site.name for site in playing.rounds}
    return {
        b.site.name: torch.from_numpy(piece_numbers(w, b.site.units, 1) > 0)
        for w, b in zip(bits, boundaries, strict=False)
        if b.site.name in names
    }


def packed_patterns(bits: list[Words], won: dict[str, Words], sweep: Sweep, cells: int) -> Words:
    """The columns of patterns, side by side."""
    parts = {b.site.name: part for part, b in zip(bits, sweep.boundaries, strict=True)} | won
    return np.concatenate([np.zeros((cells, 0), np.uint64), *(parts[c.name] for c in sweep.columns)], axis=1)


def mean_corners(xy: Floats, offsets: Indices, corners: Ints) -> Floats:
    """The mean of the corners of each cell: a point inside it."""
    return np.add.reduceat(xy[corners], offsets[:-1], axis=0) / np.diff(offsets)[:, None]


@torch.no_grad()
def subdivide(
    net: Network,
    planes: Planes,
    *,
    up_to_layer: int | None = None,
    max_cells: int,
    show_progress: bool = False,
    certified: bool = False,
) -> tuple[Subdivision, Sweep]:
    """Cut the domains of all planes, together, by all sites of a frozen network."""
    if planes.origins.shape[1] != math.prod(net.input_shape):
        raise ValueError(f"the plane lies among inputs with {planes.origins.shape[1]} entries, not {net.input_shape}")
    sweep = swept(net, planes, up_to_layer, show_progress, certified)
    result = Subdivision(planes)
    before: Indices = np.zeros(0, np.int64)
    playing: str | None = None
    for number, cut in enumerate(sweep.cuts()):
        name, cells = cut.boundaries.tournament, len(result.start)
        done = cut_by_site(result, sweep, cut, max_cells)
        sweep.moved(done, len(result.xy))
        result.note_bits(done)
        del done  # its values are in the state of the sweep now, as long as they are needed
        if name not in net.winners:
            continue
        before = np.arange(cells) if name != playing else before
        before = before[kernels.ancestors(result.source, cells)]
        playing = name
        if is_last_round(cut.boundaries, sweep.boundaries):
            over = sweep.tournaments[str(name)]
            sweep.thinned(result.merge(before, over, number + 1 - len(over.rounds), sweep))
    result.place_exactly(sweep)
    return result, sweep


def swept(net: Network, planes: Planes, up_to_layer: int | None, show_progress: bool, certified: bool) -> Sweep:
    """The way of the corners of planes through a network."""
    points = planes.corners().reshape(-1, *net.input_shape)
    coordinates = np.abs(planes.domain).max()
    origins = planes.origins.norm(dim=1).numpy()
    error = 4 * EPS * np.repeat(origins + 2 * coordinates, len(planes.domain))
    doubt = first_doubt(points, error)
    reach = float(origins.max()) + 2.0
    directions = planes.axes.reshape(len(planes), 2, *net.input_shape)
    return Sweep(net, points, doubt, 2 * coordinates, directions, reach, up_to_layer, show_progress, certified)
