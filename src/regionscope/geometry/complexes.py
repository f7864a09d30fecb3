"""What a sweep asks of the cells that it has cut: lines and planes are complexes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from regionscope.geometry import kernels, traversals
from regionscope.geometry.grids import Grid
from regionscope.geometry.modular import Integers
from regionscope.geometry.patterns import Boundaries
from regionscope.geometry.predicates import MOVED
from regionscope.geometry.rational import Forms
from regionscope.geometry.rows import Rows, larger_copy
from regionscope.geometry.tournaments import Bracket
from regionscope.types import Bools, Floats, Indices, Ints, Words

Signs = NDArray[np.int8]

UNSETTLED = 2  # among signs


@dataclass(frozen=True)
class Start:
    """The complex before it is cut: its vertices, and how far they are at most from where they should be."""

    cells: int
    points: Tensor  # (vertices, entries of an input) in float64
    error: Floats  # (vertices,)
    largest: float  # of the coordinates
    directions: Tensor  # (m, dimensions, entries of an input) orthonormal, in which coordinates go
    reach: float  # no point that tells a map has a larger norm
    moving: Tensor | None = None  # (entries of an input,) which of them change anywhere; None if that is not known
    # rows (n, entries of an input) that the points are sums of, and weights; None if these would be many
    frame: Callable[[], tuple[Tensor, Floats]] | None = None


@dataclass(frozen=True)
class Cut:
    """A site that cuts: its values at all vertices, and on which sides of its boundaries those are."""

    boundaries: Boundaries
    old: int  # vertices that were there before
    rows: Rows  # what the values are in
    vertices: kernels.Vertices
    rule: kernels.Rule
    ties: Words  # (old vertices, words): signs that need no look, as nothing changes there; no rows if there are none
    opened: Ints  # (old vertices,) how many signs are not proved

    @property
    def values(self) -> Floats:
        return self.vertices.values

    def with_room(self, capacity: int, values: int) -> "Cut":
        """The same with room for so many vertices, of which fewer may have room for their values as yet."""
        self.rows.make_room(values)
        room = self.rows.table(min(capacity, self.rows.room))
        rest: list[Any] = [a if len(a) >= capacity else larger_copy(a, capacity) for a in self.vertices[1:]]
        return replace(self, vertices=kernels.Vertices(room, *rest))

    def with_values(self, capacity: int) -> "Cut":
        """The same with room for the values of so many vertices."""
        self.rows.make_room(capacity)
        room = self.rows.table(min(len(self.vertices.doubt), self.rows.room))
        return replace(self, vertices=self.vertices._replace(values=room))

    def signs(self, vertex: Indices, boundary: Indices) -> Signs:
        """On which side of boundaries vertices are."""
        word, one = boundary >> 6, np.uint64(1) << (boundary & 63).astype(np.uint64)
        above, below = ((bits[vertex, word] & one) != 0 for bits in (self.vertices.above, self.vertices.below))
        return np.asarray(above.astype(np.int8) - below.astype(np.int8))

    def set_signs(self, vertex: Indices, boundary: Indices, signs: Signs) -> None:
        """Write down the signs of old vertices that were open; a value that has another sign has moved to zero."""
        word, one = boundary >> 6, np.uint64(1) << (boundary & 63).astype(np.uint64)
        known, doubt = signs != UNSETTLED, self.vertices.doubt
        for side, bits in ((1, self.vertices.above), (-1, self.vertices.below)):
            np.bitwise_and.at(bits, (vertex[known], word[known]), ~one[known])
            np.bitwise_or.at(bits, (vertex[signs == side], word[signs == side]), one[signs == side])
        units = self.values.shape[1]
        z = self.values[vertex, boundary % units] - self.rule.breakpoints[boundary // units]
        moved = np.where(self.signs(vertex, boundary) == np.sign(z), 0.0, z)
        doubt[vertex, MOVED] = 0.0
        np.add.at(doubt[:, MOVED], vertex, np.abs(moved))


@dataclass(frozen=True)
class Outcome:
    """A cut that was made: how many vertices there are now, and the cell from before that each cell comes from.

    `asked` of the signs that bounds left open were written down as questions, and there are `opened`.
    """

    made: Cut
    vertices: int
    ancestors: Ints
    asked: int
    opened: int
    torn: bool = False


@dataclass(frozen=True)
class Meetings:
    """Points where two lines meet, seen from a cell each; `lines` are those that no unit makes."""

    cell: Indices
    forms: list[Forms]  # two
    lines: Integers
    near: Floats  # (n, 2) coordinates that they are near to; on a line the second does not count

    def __getitem__(self, chosen: Indices | Bools) -> "Meetings":
        return Meetings(self.cell[chosen], [form[chosen] for form in self.forms], self.lines, self.near[chosen])


@dataclass(frozen=True)
class Finish:
    """A tournament that is over: who met in the matches that the complex asked for, and who won in each cell, packed.

    `before` is the cell that each was before its first round.
    """

    playing: Bracket
    rounds: Sequence[Boundaries]
    met: dict[str, Indices]  # (matches, 2)
    won: Words
    before: Ints


@dataclass(frozen=True)
class Merged:
    """Cells that were joined: the first of those that each was joined from, and the vertices that stay."""

    members: Indices
    vertices: Bools


@dataclass(frozen=True)
class Joined:
    """Which vertices of all blocks, one after another, the whole has, in order."""

    vertices: Indices


class Complex(Protocol):
    """Cells that are being cut. Cells and vertices are numbered, and coordinates are those of its own dimensions."""

    def start(self) -> Start:
        """What there is before the first cut."""

    def cut(self, cut: Cut, most: int, questions: kernels.Questions) -> Outcome:
        """Cut all cells by a site; may ask for signs of new vertices, and knows those that are settled."""

    def kept(self) -> dict[str, Any]:
        """All that a cut changes, as it is now."""

    def bits(self, above: Words) -> Words:
        """The boundaries that each cell is above, packed, given those that each vertex is above."""

    def merge(self, over: Finish) -> Merged | None:
        """Join the cells that a tournament cut although nobody else won; None if they stay apart."""

    def matches(self, rounds: Sequence[Boundaries]) -> dict[str, tuple[Indices, Indices]]:
        """The matches, by cell and unit, of which `merge` has to know who met: name of a round -> both."""

    def inside(self) -> Tensor:
        """A point of input space inside each cell, (cells, entries of an input)."""

    def frames(self) -> tuple[Indices, Floats]:
        """Two sides of every cell that has an inside: (n, 3) the vertex where they begin and those where they end, and
        their vectors as columns, (n, 2, 2). Of a line the second ends where it begins, and counts as long as the
        first."""

    def axes(self, frames: Indices) -> tuple[Tensor, Indices]:
        """The orthonormal directions (n, dimensions, entries of an input) of the cells with these frames, and their
        numbers."""

    # blocks

    def __len__(self) -> int:
        """The number of cells."""

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""

    def room_needed(self, cut: Cut) -> int:
        """At most how many vertices a site will add."""

    def own(self) -> Bools:
        """Which cells belong to this block alone."""

    def shares(self, parts: int, before: Ints) -> Ints:
        """The part that each cell goes to, if there are to be about so many: neighbours to the same.

        `before` is the cell that each was before a tournament that is not over; cells that were one stay together.
        """

    def split(self, share: Ints, before: Ints) -> Iterator[tuple[Any, Indices, Indices]]:
        """Blocks of cells as complexes of their own, each with the vertices and cells of this one that it has."""

    def finished(self) -> tuple[Any, ...]:
        """What is kept of a block that has been cut by all sites: arrays."""

    def join(self, pieces: Iterable[Sequence[Any]]) -> Joined:
        """Be what finished blocks are together; each is read when one comes to it, as all may not fit into memory."""

    # exact arithmetic

    def exact_points(self) -> tuple[Callable[[Indices, int], Tensor], Callable[[], Grid]]:
        """Points that tell the map of cells as they are now: modulo p (cells, points, entries), and the grid of all."""

    def coordinates(self) -> Callable[[Indices], tuple[Tensor, Tensor]]:
        """Origins and axes, in float64, of the coordinates in which those points of cells are (0, 0), (1, 0), (0, 1).

        (cells, entries) and (cells, dimensions, entries).
        """

    def local_bounds(self, vertices: Indices, units: Indices, cut: Cut) -> Floats:
        """Bounds on the errors of units at vertices, with the slopes that they have around them."""

    def corners(self, vertices: Indices, boundaries: Sequence[Boundaries]) -> Meetings:
        """Where the vertices are, as the meeting of two lines each."""

    def meetings(
        self, vertices: Indices, cell: Indices, line: Indices, other: Indices, boundaries: Sequence[Boundaries]
    ) -> Meetings:
        """The meetings of lines in cells, as those were before vertices were made there."""

    def twins(self, signs: Indices, before: dict[str, Any]) -> Indices:
        """Signs at new vertices, as in `kernels.Questions`, also as other cells may ask for them."""

    def misplaced(self, shift: Floats) -> Indices:
        """The vertices that rounding may have moved far, given how far it usually moves each."""

    def place(self, vertices: Indices, places: Floats, cell: Indices) -> Tensor:
        """Put vertices where they meet, seen from these cells; returns these points, (n, entries of an input)."""


def kept_together(share: Ints, before: Ints) -> Ints:
    """The part that each cell goes to if those that were one before go to the same."""
    _, first, group = np.unique(before, return_index=True, return_inverse=True)
    return share[first[group]]


def owners(labels: Indices | Ints, boundaries: Sequence[Boundaries]) -> tuple[Ints, Ints]:
    """The site (its place in the list, -1 for none) and the unit of each boundary number."""
    firsts, units = (np.array(n, np.int64) for n in ([b.first for b in boundaries], [b.site.units for b in boundaries]))
    site, unit = traversals.sites_and_units(labels, firsts, units)
    return site, unit


def forms_of(labels: Indices, boundaries: Sequence[Boundaries]) -> Forms:
    """The forms that vanish on boundaries; a negative label stands for the line number -1 - label."""
    site, unit = owners(labels, boundaries)
    places = np.stack([np.full(len(labels), -1), -1 - labels, np.full(len(labels), -1)], axis=1)
    levels = np.zeros(len(labels))
    for number in np.unique(site[site >= 0]):
        mine, b = site == number, boundaries[number]
        places[mine, 0], places[mine, 1] = b.site.entry, unit[mine]
        levels[mine] = np.array(b.site.breakpoints)[(labels[mine] - b.first) // b.site.units]
    return Forms(places, levels)


class TooManyCells(RuntimeError):
    """More cells than `max_cells`."""
