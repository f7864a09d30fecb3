"""A planar subdivision that is being cut, and how its cells are found: the exact regions of a network on planes."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regionscope.geometry import kernels
from regionscope.geometry.patterns import Ints, winners
from regionscope.geometry.planes import Planes
from regionscope.geometry.predicates import Floats, Words
from regionscope.geometry.sweep import Cut, Sweep, enlarged, is_last_round, run_to_the_end
from regionscope.tracing.network import Network

Indices = NDArray[np.int64]

ROOM_AT_ONCE = 1 << 18  # more than this and twice what there is, only when it proves necessary


class Subdivision:
    """Copies of a convex polygon, cut by one site after another; see `kernels` for the arrays."""

    def __init__(self, polygon: Floats, copies: int) -> None:
        sides = len(polygon)
        n = copies * sides
        corner, first = np.arange(n) % sides, np.arange(n) // sides * sides
        following, preceding = first + (corner + 1) % sides, first + (corner - 1) % sides
        self.xy = np.tile(polygon, (copies, 1))
        self.polygon = np.arange(copies)  # of each cell
        self.patterns: Words = np.zeros((copies, 0), np.uint64)
        # edge i runs from corner i to the next: half-edge 2i inside, 2i + 1 back outside
        self.origin = np.stack([np.arange(n), following], axis=1).astype(np.int32).ravel()
        self.after = np.stack([2 * following, 2 * preceding + 1], axis=1).astype(np.int32).ravel()
        self.before = np.stack([2 * preceding, 2 * following + 1], axis=1).astype(np.int32).ravel()
        self.face = np.stack([np.repeat(self.polygon, sides), np.full(n, -1)], axis=1).astype(np.int32).ravel()
        self.label: Ints = (-1 - corner).astype(np.int32)
        self.start = 2 * sides * np.arange(copies, dtype=np.int32)
        self.source = np.arange(copies, dtype=np.int32)

    def cut(self, cut: Cut, most: int) -> Cut:
        """Cut all cells by a site; returns the cut with the vertices it has made."""
        vertices, edges, cells = len(self.xy), len(self.label), len(self.start)
        count = np.array([vertices, edges, cells, 0, 0])
        stack = np.empty(cut.boundaries.count + 2, np.int32)
        room = kernels.room_needed(self.start, self.origin, self.after, cut.above, cut.below)
        made = [
            self._enlarge(cut, *(min(r, ROOM_AT_ONCE + 2 * n) for r, n in zip(room, (vertices, cells), strict=True)))
        ]

        def kernel() -> int:
            c = made[0]
            return int(kernels.cut_cells(
                count, c.boundaries.first, c.breakpoints, c.tolerance, c.values, c.fresh, c.above, c.below, self.xy,
                c.parents, c.weights, self.origin, self.after, self.before, self.face, self.label, self.start,
                self.source, cells, stack, most,
            ))  # fmt: skip

        def grow() -> None:
            made[0] = self._enlarge(made[0], len(self.xy), len(self.start))

        def stopped() -> str:
            site = cut.boundaries.site
            return f"more than max_cells={most:,} cells while cutting by {site.name!r} (layer {site.layer})"

        run_to_the_end(kernel, grow, stopped)
        self._shrink(*count[:3])
        ancestors = kernels.ancestors(self.source, cells)
        self.patterns, self.polygon = self.patterns[ancestors], self.polygon[ancestors]
        return made[0]

    def _enlarge(self, cut: Cut, vertices: int, cells: int) -> Cut:
        """Make room for so many more vertices and cells; every new vertex or cell comes with one new edge."""
        self.xy = enlarged(self.xy, len(self.xy) + vertices + 2)
        edges = len(self.label) + vertices + cells + 3
        self.label = enlarged(self.label, edges)
        for name in ("origin", "after", "before", "face"):
            setattr(self, name, enlarged(getattr(self, name), 2 * edges))
        for name in ("start", "source"):
            setattr(self, name, enlarged(getattr(self, name), len(self.start) + cells + 1))
        return cut.grown(len(self.xy))

    def _shrink(self, vertices: int, edges: int, cells: int) -> None:
        self.xy, self.label = self.xy[:vertices], self.label[:edges]
        for name in ("origin", "after", "before", "face"):
            setattr(self, name, getattr(self, name)[: 2 * edges])
        self.start, self.source = self.start[:cells], self.source[:cells]

    def note_bits(self, cut: Cut) -> None:
        """Add to every pattern the boundaries of this site that the cell is above."""
        bits = np.empty((len(self.start), cut.above.shape[1]), np.uint64)
        kernels.cell_bits(cut.above, self.start, self.origin, self.after, bits)
        self.patterns = np.concatenate([self.patterns, bits], axis=1)

    def merge(self, before: Indices, won: Words) -> NDArray[np.bool_]:
        """Join the cells that a tournament cut although nobody else won; returns the vertices that stay.

        `before` says which cell of the time before the tournament each cell comes from, `won` who wins in it.
        """
        table = np.concatenate([before[:, None].astype(np.uint64), won], axis=1)
        _, members, key = np.unique(table, axis=0, return_index=True, return_inverse=True)
        vertices, edges, start = kernels.merge_cells(
            key.ravel(), len(members), len(self.xy), self.origin, self.after, self.before, self.face, self.label
        )
        halves = np.repeat(edges, 2)
        new_vertex, new_half = np.cumsum(vertices) - 1, np.cumsum(halves) - 1
        self.xy, self.label = self.xy[vertices], self.label[edges]
        self.origin = new_vertex[self.origin[halves]].astype(np.int32)
        self.after = new_half[self.after[halves]].astype(np.int32)
        self.before = new_half[self.before[halves]].astype(np.int32)
        self.face = self.face[halves]
        self.start = new_half[start].astype(np.int32)
        self.source = np.arange(len(start), dtype=np.int32)
        self.patterns = np.concatenate([self.patterns, won], axis=1)[members]
        self.polygon = self.polygon[members]
        return np.asarray(vertices)

    def inside(self, planes: Planes) -> Tensor:
        """A point of input space inside each cell."""
        offsets, corners, _ = kernels.loops(self.start, self.origin, self.after)
        return planes.points(mean_corners(self.xy, offsets, corners), self.polygon)


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
) -> tuple[Subdivision, Sweep]:
    """Cut the domains of all planes, together, by all sites of a frozen network."""
    if planes.origins.shape[1] != math.prod(net.input_shape):
        raise ValueError(f"the plane lies among inputs with {planes.origins.shape[1]} entries, not {net.input_shape}")
    sweep = Sweep(net, planes.corners().reshape(-1, *net.input_shape), up_to_layer, show_progress)
    result = Subdivision(planes.domain, len(planes))
    before: Indices = np.zeros(0, np.int64)
    playing: str | None = None
    for cut in sweep.cuts():
        tournament, cells = cut.boundaries.tournament, len(result.start)
        done = result.cut(cut, max_cells)
        sweep.moved(done, len(result.xy))
        if tournament not in net.winners:
            result.note_bits(done)
        del done  # its values are in the state of the sweep now, as long as they are needed
        if tournament not in net.winners:
            continue
        before = np.arange(cells) if tournament != playing else before
        before = before[kernels.ancestors(result.source, cells)]
        playing = tournament
        if is_last_round(cut.boundaries, sweep.boundaries):
            won = winners(net, tournament, result.inside(planes).reshape(-1, *net.input_shape))
            sweep.thinned(result.merge(before, won))
    return result, sweep
