"""Planes as a complex: a planar subdivision that is being cut, and the exact regions of a network found with it."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry import kernels, traversals
from regionscope.geometry.bases import halves_of
from regionscope.geometry.complexes import (
    Cut,
    Finish,
    Joined,
    Meetings,
    Merged,
    Outcome,
    Start,
    TooManyCells,
    forms_of,
    kept_together,
)
from regionscope.geometry.grids import Grid, grid_of
from regionscope.geometry.modular import Integers, modulo, remainders
from regionscope.geometry.patterns import Boundaries, pattern_groups
from regionscope.geometry.planes import Planes
from regionscope.geometry.predicates import EPS, MISPLACED
from regionscope.geometry.rows import larger_copy, marked_copy, usual_room
from regionscope.geometry.stitching import Piece, stitched
from regionscope.geometry.sweep import sweep
from regionscope.geometry.swept import Swept
from regionscope.machine import threads_for
from regionscope.tracing.network import Network
from regionscope.types import Bools, Floats, Indices, Ints, Words

VERTEX, EDGE, HALF_EDGE, CELL = range(4)
ROWS = (VERTEX, *[HALF_EDGE] * 4, *[EDGE] * 4, CELL, CELL)  # what the rows of each array of a mesh are, in its order


class Subdivision:
    """Copies of a convex polygon, cut by one site after another; `mesh` holds the arrays."""

    def __init__(self, planes: Planes) -> None:
        sides, copies = len(planes.domain), len(planes)
        n = copies * sides
        corner, first = np.arange(n) % sides, np.arange(n) // sides * sides
        following, preceding = first + (corner + 1) % sides, first + (corner - 1) % sides
        self.planes = planes
        self.polygon = np.arange(copies, dtype=np.int32)  # of each cell
        self.pairs: Indices = np.zeros((0, 3), np.int64)  # tables of rivals: the value they are in, and where
        self.corner = corner.astype(np.int32)  # of the domain that each vertex is, -1 for none
        self.ids = np.full(n, -1)  # numbers of vertices that several blocks may have; -1 for none
        self.maker = np.full(n, -1, np.int32)  # the boundary that made each vertex
        self.numbers = [0, 0]  # that vertices and common edges have got so far, in all blocks
        # edge i runs from corner i to the next: half-edge 2i inside, 2i + 1 back outside
        self.mesh = kernels.Mesh(
            xy=np.tile(planes.domain, (copies, 1)),
            origin=np.stack([np.arange(n), following], axis=1).astype(np.int32).ravel(),
            after=np.stack([2 * following, 2 * preceding + 1], axis=1).astype(np.int32).ravel(),
            before=np.stack([2 * preceding, 2 * following + 1], axis=1).astype(np.int32).ravel(),
            face=np.stack([np.repeat(self.polygon, sides), np.full(n, -1)], axis=1).astype(np.int32).ravel(),
            label=(-1 - corner).astype(np.int32),
            rivals=np.full(n, -1, np.int32),
            rim=np.full(n, -1, np.int32),
            apart=np.zeros((n, 2)),
            start=2 * sides * np.arange(copies, dtype=np.int32),
            source=np.arange(copies, dtype=np.int32),
        )

    def __len__(self) -> int:
        """The number of cells."""
        return len(self.mesh.start)

    def start(self) -> Start:
        """The corners of all planes."""
        planes = self.planes
        with threads_for(len(planes.domain) * planes.origins.numel()):
            points = planes.corners()
        coordinates = float(np.abs(planes.domain).max())
        origins = torch.linalg.vector_norm(planes.origins, dim=1).numpy()
        error = 4 * EPS * np.repeat(origins + 2 * coordinates, len(planes.domain))
        moving = planes.axes.flatten(0, 1).any(dim=0)
        if len(planes) > 1:
            moving |= (planes.origins != planes.origins[:1]).any(dim=0)
        reach = float(origins.max()) + 2.0
        frame = self._frame if len(planes) == 1 else None
        return Start(len(self), points, error, 2 * coordinates, planes.axes, reach, moving, frame)

    def _frame(self) -> tuple[Tensor, Floats]:
        """The origin and the axes of the first plane, and what its corners are made of."""
        planes = self.planes
        weights = np.concatenate([np.ones((len(planes.domain), 1)), planes.domain], axis=1)
        return torch.cat([planes.origins[:1], planes.axes[0]]), weights

    def kept(self) -> dict[str, Any]:
        """All that a cut changes, as it is now."""
        return dict(vars(self))

    def loops(self) -> tuple[Indices, Ints, Ints]:
        """The corners of every cell, one after another: where each begins, the vertices and the half-edges."""
        offsets, corners, sides = traversals.loops(self.mesh.start, self.mesh.origin, self.mesh.after)
        return offsets, corners, sides

    # cutting

    def cut(self, cut: Cut, most: int, questions: kernels.Questions) -> Outcome:
        """Cut all cells by a site; may ask for signs of new vertices, and knows those that are settled."""
        vertices, cells = len(self.mesh.xy), len(self)
        count = np.zeros(kernels.COUNTERS, np.int64)
        count[:3] = vertices, len(self.mesh.label), cells
        stack = np.empty(cut.boundaries.count + 2, np.int32)
        made = self._enlarge(cut, usual_room(vertices), usual_room(cells))
        counted = questions, count, stack, cells, most
        while (end := kernels.cut_cells(self.mesh, made.vertices, made.rule, *counted)) == kernels.FULL:
            made = self._with_more_room(made, count[kernels.VERTICES])
        if end == kernels.TOO_MANY:
            site = cut.boundaries.site
            where = f"while cutting by {site.name!r} (layer {site.layer})"
            raise TooManyCells(f"more than max_cells={most:,} cells {where}")
        self._shrink(*count[:3])
        ancestors = traversals.ancestors(self.mesh.source, cells)
        self.polygon = self.polygon[ancestors]
        new = cut.rule.labels[made.vertices.parents[vertices : len(self.mesh.xy), 2]]
        self.maker = np.concatenate([self.maker, new])
        self.corner, self.ids = (marked_copy(array, len(self.mesh.xy)) for array in (self.corner, self.ids))
        asked, opened = int(count[kernels.ASKED]), int(count[kernels.OPEN])
        return Outcome(made, len(self.mesh.xy), ancestors, asked, opened, torn=end == kernels.TORN)

    def room_needed(self, cut: Cut) -> int:
        """At most how many vertices a site will add."""
        mesh, above, below = self.mesh, cut.vertices.above, cut.vertices.below
        return int(kernels.room_needed(mesh.start, mesh.origin, mesh.after, above, below))

    def _enlarge(self, cut: Cut, vertices: int, cells: int) -> Cut:
        """Make room for so many vertices and cells in all; every new vertex or cell comes with one new edge."""
        known = len(self.mesh.xy)
        edges = len(self.mesh.label) + vertices - known + cells - len(self)
        self._resize(vertices, edges, cells, larger_copy)
        return cut.with_room(vertices, known + 2)

    def _with_more_room(self, made: Cut, vertices: int) -> Cut:
        """For more values if those are full, otherwise for twice as many vertices and cells."""
        known, capacity = len(made.values), len(self.mesh.xy)
        if known < capacity and vertices + 2 > known:
            return made.with_values(known + 2)
        return self._enlarge(made, 2 * capacity, 2 * len(self))

    def _shrink(self, vertices: int, edges: int, cells: int) -> None:
        self._resize(vertices, edges, cells, lambda array, size: array[:size])

    def _resize(self, vertices: int, edges: int, cells: int, sized: Callable[[Any, int], Any]) -> None:
        """Every array of the mesh with another number of rows."""
        sizes = vertices, edges, 2 * edges, cells
        self.mesh = kernels.Mesh(*[sized(array, sizes[rows]) for array, rows in zip(self.mesh, ROWS, strict=True)])

    def bits(self, above: Words) -> Words:
        """The boundaries that each cell is above, packed, given those that each vertex is above."""
        return np.asarray(traversals.cell_bits(above, len(self), self.mesh.origin, self.mesh.face))

    def inside(self) -> Tensor:
        """A point of input space inside each cell."""
        offsets, corners, _ = self.loops()
        return self.planes.points(mean_corners(self.mesh.xy, offsets, corners), self.polygon)

    def frames(self) -> tuple[Indices, Floats]:
        """The two sides of every cell that span most."""
        mesh = self.mesh
        corners = traversals.largest_corners(mesh.xy, mesh.start, mesh.origin, mesh.after)
        places = mesh.xy[corners]
        return corners, (places[:, 1:] - places[:, :1]).transpose(0, 2, 1)

    def axes(self, frames: Indices) -> tuple[Tensor, Indices]:
        """Those of the planes that cells are on."""
        return self.planes.axes[self.polygon[frames]], frames

    # tournaments

    def merge(self, over: Finish) -> Merged:
        """Join the cells that a tournament cut although nobody else won."""
        self._note_rivals(over)
        members, key = pattern_groups(over.won, over.before)
        mesh = self.mesh
        vertices, edges, start = kernels.merge_cells(key, len(members), mesh)
        halves = np.repeat(edges, 2)
        new_vertex, new_half = np.cumsum(vertices) - 1, np.cumsum(halves) - 1
        self.mesh = kernels.Mesh(
            xy=mesh.xy[vertices],
            origin=new_vertex[mesh.origin[halves]].astype(np.int32),
            after=new_half[mesh.after[halves]].astype(np.int32),
            before=new_half[mesh.before[halves]].astype(np.int32),
            face=mesh.face[halves],
            label=mesh.label[edges],
            rivals=mesh.rivals[edges],
            rim=mesh.rim[edges],
            apart=mesh.apart[edges],
            start=new_half[start].astype(np.int32),
            source=np.arange(len(start), dtype=np.int32),
        )
        self.polygon = self.polygon[members]
        self.maker, self.corner, self.ids = (array[vertices] for array in (self.maker, self.corner, self.ids))
        return Merged(members, np.asarray(vertices))

    def matches(self, rounds: Sequence[Boundaries]) -> dict[str, tuple[Indices, Indices]]:
        """The matches, by cell and unit, that made edges in each round of a tournament."""
        face, found = self.mesh.face.reshape(-1, 2), {}
        for b in rounds:
            edges = self._made_by(b)
            unit = (self.mesh.label[edges] - b.first).astype(np.int64)
            found[b.site.name] = (face[edges].max(axis=1).astype(np.int64), unit)
        return found

    def _made_by(self, round_: Boundaries) -> Indices:
        label = self.mesh.label
        mine = (label >= round_.first) & (label < round_.first + round_.count)
        return np.flatnonzero(mine & (self.mesh.rivals < 0))

    def _note_rivals(self, over: Finish) -> None:
        """Write down which two competitors are equal on each edge that a round made: joined cells no longer tell."""
        for b in over.rounds:
            edges, pairs = self._made_by(b), over.met[b.site.name]
            self.mesh.rivals[edges] = len(self.pairs) + np.arange(len(edges), dtype=np.int32)
            source = np.full((len(edges), 1), over.playing.source)
            self.pairs = np.concatenate([self.pairs, np.concatenate([source, pairs], axis=1)])

    # blocks

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.mesh)

    def own(self) -> Bools:
        """All cells belong to this block alone."""
        return np.ones(len(self), bool)

    def shares(self, parts: int, before: Ints) -> Ints:
        """The part that each cell goes to: neighbours to the same, about as many to each."""
        offsets, corners, _ = self.loops()
        centres = mean_corners(self.mesh.xy, offsets, corners)
        share = np.zeros(len(self), np.int32)
        groups = [np.arange(len(self))]
        while len(groups) < parts and max(map(len, groups)) > 1:
            groups = halves_of(groups, centres)
        for number, group in enumerate(groups):
            share[group] = number
        return np.unique(kept_together(share, before), return_inverse=True)[1].astype(np.int32)

    def split(self, share: Ints, before: Ints) -> Iterator[tuple["Subdivision", Indices, Indices]]:
        """Blocks of cells with meshes of their own, each with the vertices and cells of this one that it has.

        Edges between the same two cells of those before are one edge of a rim: what cut it may be joined again.
        """
        new = self.ids < 0
        self.ids = np.where(new, self.numbers[0] + np.cumsum(new) - 1, self.ids)
        face = self.mesh.face.reshape(-1, 2)
        owner = np.where(face >= 0, share[face], -1)
        parted = np.flatnonzero((owner[:, 0] != owner[:, 1]) & (owner >= 0).all(axis=1))
        sides = before[face[parted]]
        line = np.concatenate([np.sort(sides, axis=1), self.mesh.label[parted, None]], axis=1)
        number = np.unique(line, axis=0, return_inverse=True)[1].ravel()
        rim = np.full(face.shape, -1)
        rim[parted] = 2 * (self.numbers[1] + number)[:, None] + (sides > sides[:, ::-1])
        self.numbers[:] = self.numbers[0] + int(new.sum()), self.numbers[1] + int(number.max(initial=-1)) + 1
        for part in range(int(share.max()) + 1):
            yield self._block(owner == part, np.flatnonzero(share == part), rim)

    def _block(self, inner: Bools, cells: Indices, rim: Indices) -> tuple["Subdivision", Indices, Indices]:
        """The block of these cells, given the half-edges (edges, 2) inside it and the numbers of new rims."""
        mesh, edges = self.mesh, np.flatnonzero(inner.any(axis=1))
        halves: Indices = (2 * edges[:, None] + np.arange(2)).ravel()
        used, origin = np.unique(mesh.origin[halves], return_inverse=True)
        vertices: Indices = used.astype(np.int64)
        number = np.full(len(mesh.origin), -1)
        number[halves] = np.arange(len(halves))
        after = number[_around(halves, mesh, inner.ravel())]
        before = np.empty_like(after)
        before[after] = np.arange(len(after))
        new_cell = np.full(len(self) + 1, -1)
        new_cell[cells] = np.arange(len(cells))
        part = copy.copy(self)
        part.mesh = kernels.Mesh(
            xy=mesh.xy[vertices],
            origin=origin.astype(np.int32),
            after=after.astype(np.int32),
            before=before.astype(np.int32),
            face=np.where(inner.ravel()[halves], new_cell[mesh.face[halves]], -1).astype(np.int32),
            label=mesh.label[edges],
            rivals=mesh.rivals[edges],
            rim=np.where(rim[edges, 0] >= 0, rim[edges, inner[edges, 1].astype(int)], mesh.rim[edges]).astype(np.int32),
            apart=mesh.apart[edges],
            start=number[mesh.start[cells]].astype(np.int32),
            source=np.arange(len(cells), dtype=np.int32),
        )
        part.polygon = self.polygon[cells]
        part.maker, part.corner, part.ids = (array[vertices] for array in (self.maker, self.corner, self.ids))
        return part, vertices, cells

    def finished(self) -> Piece:
        """What is kept of a block."""
        return Piece.of(self.mesh, self.ids, self.maker, self.polygon)

    def join(self, pieces: Iterable[Sequence[Any]]) -> Joined:
        """Be what the blocks are together."""
        whole = stitched(pieces)
        self.mesh, self.polygon = whole.mesh, whole.polygon
        return Joined(whole.vertices)

    # exact arithmetic

    def exact_points(self) -> tuple[Callable[[Indices, int], Tensor], Callable[[], Grid]]:
        """The origin of the plane that a cell is on, and the ends of its axes."""
        origins, axes, polygon = self.planes.origins, self.planes.axes, self.polygon

        def points(cells: Indices, p: int) -> Tensor:
            origin, along = (remainders(part, p) for part in (origins, axes))
            told = torch.stack([origin, *(modulo(origin + along[:, i], p) for i in range(2))], dim=1)
            return told[polygon[cells]]

        return points, lambda: grid_of(origins).join(grid_of(axes))

    def coordinates(self) -> Callable[[Indices], tuple[Tensor, Tensor]]:
        """Those of the planes that cells are on."""
        planes, polygon = self.planes, self.polygon
        return lambda cells: (planes.origins[polygon[cells]], planes.axes[polygon[cells]])

    def corners(self, vertices: Indices, boundaries: Sequence[Boundaries]) -> Meetings:
        """Where the vertices are, as the meeting of two lines each: in a cell that has a proper corner there."""
        sides = len(self.planes.domain)
        half = kernels.sharpest(vertices, self._outgoing_edges(), self.mesh)
        edges, previous = half >> 1, self.mesh.before[half] >> 1
        meetings = self.meetings(vertices, self.mesh.face[half], self._line(edges), self._line(previous), boundaries)
        corner = np.flatnonzero(self.corner[vertices] >= 0)  # of the domain: known as they are
        for form, axis in zip(meetings.forms, range(2), strict=True):
            form.places[corner] = -1
            form.places[corner, 1] = sides + 2 * self.corner[vertices[corner]] + axis
            form.levels[corner] = 0
        return meetings

    def meetings(
        self, vertices: Indices, cell: Indices, line: Indices, other: Indices, boundaries: Sequence[Boundaries]
    ) -> Meetings:
        """The meetings of lines in cells, as those were before vertices were made there."""
        forms = []
        for lines in (line, other):
            rival = np.flatnonzero(lines <= kernels.RIVALS)
            form = forms_of(np.where(lines <= kernels.RIVALS, -1, lines), boundaries)
            form.places[rival] = self.pairs[kernels.RIVALS - lines[rival]]
            forms.append(form)
        return Meetings(np.asarray(cell, np.int64), forms, _lines(self.planes.domain), self.mesh.xy[vertices])

    def twins(self, signs: Indices, before: dict[str, Any]) -> Indices:
        """Signs at vertices by cell, line and boundaries, also as the cell on the other side of the line sees them."""
        mesh: kernels.Mesh = before["mesh"]
        face = mesh.face.reshape(-1, 2)
        lines = np.where(mesh.rivals < 0, mesh.label, kernels.RIVALS - mesh.rivals)
        found = [signs]
        for row in signs:
            beside = face[(lines == row[1]) & (face == row[0]).any(axis=1)]
            for cell in np.unique(beside[(beside != row[0]) & (beside >= 0)]):
                found.append(np.concatenate([[cell], row[1:]])[None])
        return np.concatenate(found)

    def local_bounds(self, vertices: Indices, units: Indices, cut: Cut) -> Floats:
        """Bounds on the errors of units at vertices, with the slopes that they have in the cells there."""
        return np.asarray(
            kernels.local_bounds(vertices, units, self._outgoing_edges(), self.mesh, cut.vertices, cut.rule)
        )

    def misplaced(self, shift: Floats) -> Indices:
        """The vertices that rounding may have moved far, given how far it usually moves each."""
        return np.flatnonzero(shift > MISPLACED * np.abs(self.planes.domain).max())

    def place(self, vertices: Indices, places: Floats, cell: Indices) -> Tensor:
        """Put vertices at these plane coordinates; returns these points."""
        self.mesh.xy[vertices] = places
        return self.planes.points(places, self.polygon[cell])

    def _outgoing_edges(self) -> Ints:
        """A half-edge that begins at each vertex."""
        found = np.empty(len(self.mesh.xy), np.int32)
        found[self.mesh.origin] = np.arange(len(self.mesh.origin), dtype=np.int32)
        return found

    def _line(self, edge: Indices) -> Indices:
        """What an edge lies on: a boundary, a side of the domain, or a pair of rivals."""
        rivals = self.mesh.rivals[edge]
        return np.where(rivals < 0, self.mesh.label[edge], kernels.RIVALS - rivals)


def _around(halves: Indices, mesh: kernels.Mesh, inner: Bools) -> Indices:
    """The half-edge after each of some: along its cell, or along the rim of a block on the outside."""
    after = mesh.after[halves].astype(np.int64)
    outside = np.flatnonzero(~inner[halves])
    turned = mesh.before[halves[outside] ^ 1]
    while (more := inner[turned ^ 1]).any():  # about the vertex, through the cells of the block
        turned[more] = mesh.before[turned[more] ^ 1]
    after[outside] = turned ^ 1
    return after


def _lines(domain: Floats) -> Integers:
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


def mean_corners(xy: Floats, offsets: Indices, corners: Ints) -> Floats:
    """The mean of the corners of each cell: a point inside it."""
    return np.add.reduceat(xy[corners], offsets[:-1], axis=0) / np.diff(offsets)[:, None]


def subdivide(
    net: Network,
    planes: Planes,
    *,
    max_cells: int,
    memory: int | None = None,
    up_to_layer: int | None = None,
    show_progress: bool = False,
    certified: bool = False,
    exactly: bool = True,
    before_blocks: Callable[[], None] | None = None,
    check: Callable[[], None] = lambda: None,
) -> tuple[Subdivision, Swept]:
    """Cut the domains of all planes, together, by all sites of a frozen network; see `sweep`."""
    if planes.origins.shape[1] != math.prod(net.input_shape):
        raise ValueError(f"the plane lies among inputs with {planes.origins.shape[1]} entries, not {net.input_shape}")
    cells = Subdivision(planes)
    return cells, sweep(
        net,
        cells,
        max_cells=max_cells,
        memory=memory,
        up_to_layer=up_to_layer,
        show_progress=show_progress,
        certified=certified,
        exactly=exactly,
        before_blocks=before_blocks,
        check=check,
    )
