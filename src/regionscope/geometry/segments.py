"""Lines and curves as a complex: chains of pieces that are being cut."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry import kernels, traversals
from regionscope.geometry.complexes import (
    Cut,
    Finish,
    Joined,
    Meetings,
    Outcome,
    Start,
    TooManyCells,
    forms_of,
    kept_together,
)
from regionscope.geometry.grids import Grid, grid_of
from regionscope.geometry.modular import remainders
from regionscope.geometry.patterns import Boundaries
from regionscope.geometry.predicates import MISPLACED
from regionscope.geometry.rows import larger_copy, marked_copy
from regionscope.types import Bools, Floats, Indices, Ints, Words

# the line itself, and those across it at the start and the end of a segment: values at (0, 0), (1, 0) and (0, 1)
ALONG = np.array([[0, 0, 1], [0, 1, 0], [-1, 0, -1]], object)


class _Stretch(NamedTuple):
    """What is kept of a block of curves that is finished: numbers, owners and places of its vertices, and its chain."""

    ids: Indices
    borrowed: Bools
    curve: Indices
    segment: Indices
    place: Floats
    stretch: Floats
    after: Ints
    label: Ints
    source: Ints


class Segments:
    """Curves, cut by one site after another, pieces being the cells: piece v runs from vertex v to the one after it.

    The last vertex of a curve begins no piece; it counts as a cell without length.
    """

    def __init__(self, curves: Sequence[Tensor]) -> None:
        sizes = np.array([len(curve) for curve in curves])
        n, ends = int(sizes.sum()), np.cumsum(sizes) - 1
        self.begins = ends - sizes + 1
        self.heads = self.begins  # the first vertex of each curve
        self.ids = np.full(n, -1)  # numbers of vertices that two blocks may have; -1 for none
        self.borrowed = np.zeros(n, bool)  # ends of blocks that are the begin of another one
        self.numbers = [0]  # that vertices have got so far, in all blocks
        self.points = torch.cat([curve.flatten(1) for curve in curves])
        self.curve = np.repeat(np.arange(len(curves)), sizes)
        self.segment = np.arange(n)  # the corner before each vertex
        after = np.arange(1, n + 1, dtype=np.int32)
        after[ends] = -1
        stretch = np.zeros(n)
        stretch[:-1] = (self.points[1:] - self.points[:-1]).norm(dim=1).numpy()
        stretch[ends] = 0.0
        self.chain = kernels.Chain(
            place=np.arange(n, dtype=np.float64) - np.repeat(self.begins, sizes),  # corner i is at place i
            stretch=stretch,
            after=after,
            label=np.full(n, -1, np.int32),
            source=np.arange(n, dtype=np.int32),
        )

    def __len__(self) -> int:
        """The number of vertices, of which all but the last of every curve begin a piece."""
        return len(self.chain.place)

    def start(self) -> Start:
        """The corners of all curves."""
        steps = (self.points[1:] - self.points[:-1])[self.chain.stretch[:-1] > 0]
        directions = (steps / steps.norm(dim=1, keepdim=True))[:, None]
        largest, reach = float(self.chain.place.max()), float(self.points.norm(dim=1).max())
        moving = (self.points != self.points[0]).any(dim=0)
        return Start(len(self), self.points, np.zeros(len(self)), largest, directions, reach, moving)

    def kept(self) -> dict[str, Any]:
        """All that a cut changes, as it is now."""
        return dict(vars(self))

    def cut(self, cut: Cut, most: int, questions: kernels.Questions) -> Outcome:
        """Cut all pieces by a site; may ask for signs of new vertices, and knows those that are settled."""
        roots = len(self)
        capacity = roots + self.room_needed(cut)
        chain = kernels.Chain(*(larger_copy(array, capacity) for array in self.chain))
        made, count = cut.with_room(capacity, capacity), np.zeros(kernels.COUNTERS, np.int64)
        count[kernels.VERTICES] = roots
        end = kernels.cut_pieces(chain, made.vertices, made.rule, questions, count, roots, most)
        assert end != kernels.FULL, "a piece has more breakpoints than its ends differ in"
        if end == kernels.TOO_MANY:
            raise TooManyCells(f"more than max_cells={most:,} breakpoints, cutting by {cut.boundaries.site.name!r}")
        cut_now: list[Any] = [array[: count[kernels.VERTICES]] for array in chain]
        self.chain = kernels.Chain(*cut_now)
        ancestors = traversals.ancestors(self.chain.source, roots)
        self.curve, self.segment = self.curve[ancestors], self.segment[ancestors]
        new = len(self) - roots
        self.ids = marked_copy(self.ids, len(self.ids) + new)
        self.borrowed = np.concatenate([self.borrowed, np.zeros(new, bool)])
        asked, opened = count[[kernels.ASKED, kernels.OPEN]].tolist()
        return Outcome(made, len(self), ancestors, asked, opened)

    def bits(self, above: Words) -> Words:
        """The boundaries that each piece is above: those that one of its ends is above."""
        after = self.chain.after
        return np.asarray(above | above[np.where(after >= 0, after, np.arange(len(after)))])

    def merge(self, over: Finish) -> None:
        """Pieces stay apart: those with one pattern are joined at the end."""

    def matches(self, rounds: Sequence[Boundaries]) -> dict[str, tuple[Indices, Indices]]:
        """None has to be known."""
        return {}

    # blocks

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.chain)

    def room_needed(self, cut: Cut) -> int:
        """At most how many vertices a site will add."""
        return int(kernels.piece_room(self.chain.after, cut.vertices.above, cut.vertices.below))

    def own(self) -> Bools:
        """Which vertices belong to no other block."""
        return ~self.borrowed

    def shares(self, parts: int, before: Ints) -> Ints:
        """The part that each piece goes to: neighbours to the same, about as many to each."""
        after, share = self.chain.after, np.zeros(len(self), np.int32)
        order = np.concatenate([traversals.chain(head, after) for head in _heads(after)])
        share[order] = np.arange(len(order)) * parts // len(order)
        share = kept_together(share, before)
        last = np.flatnonzero(after >= 0)[after[after[after >= 0]] < 0]  # an end stays with the piece before it
        share[after[last]] = share[last]
        return np.unique(share, return_inverse=True)[1].astype(np.int32)

    def split(self, share: Ints, before: Ints) -> Iterator[tuple["Segments", Indices, Indices]]:
        """Blocks of pieces, each with the vertices of this one that it has; the last may be borrowed from another."""
        new, after = self.ids < 0, self.chain.after
        self.ids = np.where(new, self.numbers[0] + np.cumsum(new) - 1, self.ids)
        self.numbers[0] += int(new.sum())
        for number in range(int(share.max()) + 1):
            mine = np.flatnonzero(share == number)
            following = after[mine][after[mine] >= 0]
            vertices = np.union1d(mine, following)
            place = np.full(len(self) + 1, -1)
            place[vertices] = np.arange(len(vertices))
            theirs = share[vertices] != number
            part = copy.copy(self)
            chain: list[Any] = [array[vertices] for array in self.chain]
            part.chain = kernels.Chain(*chain)._replace(
                after=np.where(theirs, -1, place[after[vertices]]).astype(np.int32),
                source=np.arange(len(vertices), dtype=np.int32),
            )
            part.curve, part.segment, part.ids = (a[vertices] for a in (self.curve, self.segment, self.ids))
            part.borrowed = self.borrowed[vertices] | theirs
            yield part, vertices, vertices

    def finished(self) -> "_Stretch":
        """What is kept of a block."""
        return _Stretch(self.ids, self.borrowed, self.curve, self.segment, *self.chain)

    def join(self, pieces: Iterable[Sequence[Any]]) -> Joined:
        """Be what the blocks are together."""
        parts = [_Stretch._make(piece) for piece in pieces]
        ids, borrowed, curve, segment = (np.concatenate(arrays) for arrays in zip(*(p[:4] for p in parts), strict=True))
        starts = np.cumsum([0, *(len(part.ids) for part in parts)])
        chains = [
            kernels.Chain(*part[4:])._replace(after=np.where(part.after >= 0, part.after + start, -1))
            for part, start in zip(parts, starts, strict=False)
        ]
        chain = kernels.Chain(*(np.concatenate(arrays) for arrays in zip(*chains, strict=True)))
        own = np.flatnonzero(~borrowed)
        known = own[ids[own] >= 0]
        number = np.full(len(ids) + 1, -1)
        number[own] = np.arange(len(own))
        holder = np.full(self.numbers[0] + 1, -1)
        holder[ids[known]] = number[known]
        number[:-1][borrowed] = holder[ids[borrowed]]
        kept: list[Any] = [array[own] for array in chain]
        self.chain = kernels.Chain(*kept)._replace(
            after=number[chain.after[own]].astype(np.int32), source=np.arange(len(own), dtype=np.int32)
        )
        self.curve, self.segment, self.ids, self.borrowed = curve[own], segment[own], ids[own], borrowed[own]
        heads = _heads(self.chain.after)
        self.heads = heads[np.argsort(self.curve[heads])]
        return Joined(own)

    def inside(self) -> Tensor:
        """The middle of each piece; the last vertex of a curve itself."""
        _, following = self._neighbours(np.arange(len(self)))
        first = self.begins[self.curve]
        middle = (self.chain.place + self.chain.place[following]) / 2
        segment = np.minimum(self.segment, np.maximum(len(self.points) - 2, 0))
        return self._at(segment, middle - (segment - first))

    def frames(self) -> tuple[Indices, Floats]:
        """The pieces."""
        begin = self._with_length
        end = self.chain.after[begin]
        length = self.chain.stretch[begin] * (self.chain.place[end] - self.chain.place[begin])
        return np.stack([begin, end, begin], axis=1), length[:, None, None] * np.eye(2)

    def axes(self, frames: Indices) -> tuple[Tensor, Indices]:
        """The directions of the segments that pieces are on."""
        piece = self._with_length[frames]
        along = self.points[self.segment[piece] + 1] - self.points[self.segment[piece]]
        return (along / along.norm(dim=1, keepdim=True))[:, None], piece

    @property
    def _with_length(self) -> Indices:
        """The pieces that have one."""
        return np.flatnonzero((self.chain.after >= 0) & (self.chain.stretch > 0))

    # exact arithmetic

    def exact_points(self) -> tuple[Callable[[Indices, int], Tensor], Callable[[], Grid]]:
        """The ends of the segment that a piece is on."""
        points, segment = self.points, self.segment

        def ends(pieces: Indices, p: int) -> Tensor:
            corners = remainders(points, p)
            return torch.stack([corners[segment[pieces]], corners[segment[pieces] + 1]], dim=1)

        return ends, lambda: grid_of(points)

    def coordinates(self) -> Callable[[Indices], tuple[Tensor, Tensor]]:
        """Shares of the segments that pieces are on."""
        points, segment = self.points, self.segment
        return lambda pieces: (
            points[segment[pieces]],
            (points[segment[pieces] + 1] - points[segment[pieces]])[:, None],
        )

    def corners(self, vertices: Indices, boundaries: Sequence[Boundaries]) -> Meetings:
        """Where the vertices are: at a boundary of the piece that begins there, or at an end of a segment."""
        piece, label = vertices.copy(), self.chain.label[vertices]
        last = np.flatnonzero(self.chain.after[vertices] < 0)
        piece[last] = self._neighbours(vertices[last])[0]
        line = np.where(label >= 0, label, -2)
        line[last] = np.where(label[last] >= 0, label[last], -3)  # of a block, or of the curve
        return self.meetings(vertices, piece, np.full(len(piece), -1), line, boundaries)

    def meetings(
        self, vertices: Indices, cell: Indices, line: Indices, other: Indices, boundaries: Sequence[Boundaries]
    ) -> Meetings:
        """Boundaries on pieces, as if these were lines in a plane on which nothing changes across them."""
        share = self.chain.place[vertices] - (self.segment[cell] - self.begins[self.curve[vertices]])
        near = np.stack([share, np.zeros(len(share))], axis=1)
        return Meetings(cell, [forms_of(lines, boundaries) for lines in (line, other)], ALONG, near)

    def twins(self, signs: Indices, before: dict[str, Any]) -> Indices:
        """No other piece may ask for them."""
        return signs

    def local_bounds(self, vertices: Indices, units: Indices, cut: Cut) -> Floats:
        """Bounds on the errors of units at vertices, with the slopes that they have on the pieces there."""
        preceding, following = self._neighbours(vertices)
        return np.asarray(
            kernels.local_bounds_along(vertices, units, preceding, following, self.chain, cut.vertices, cut.rule)
        )

    def misplaced(self, shift: Floats) -> Indices:
        """The vertices that rounding may have moved far, given how far it usually moves each."""
        made = np.flatnonzero(self.chain.label >= 0)
        return made[shift[made] > MISPLACED * self.chain.stretch[made]]

    def place(self, vertices: Indices, places: Floats, cell: Indices) -> Tensor:
        """Put vertices at these shares of their segments; returns these points."""
        first, along = self.segment[cell], places[:, 0]
        self.chain.place[vertices] = first - self.begins[self.curve[vertices]] + along
        return self._at(first, along)

    def _at(self, segment: Indices, along: Floats) -> Tensor:
        """The points at shares of segments."""
        return self.points[segment] + torch.from_numpy(along)[:, None] * (
            self.points[segment + 1] - self.points[segment]
        )

    def _neighbours(self, vertices: Indices) -> tuple[Indices, Indices]:
        """The vertices before and after these on their curves; themselves at an end."""
        after = self.chain.after
        preceding = np.arange(len(after))
        preceding[after[after >= 0]] = np.flatnonzero(after >= 0)
        return preceding[vertices], np.where(after[vertices] >= 0, after[vertices], vertices)


def _heads(after: Ints) -> Indices:
    """The vertices that come after no other."""
    return np.setdiff1d(np.arange(len(after)), after)
