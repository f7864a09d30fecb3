"""What cells are above, site by site, and who won there.

It is written down when a site has cut, for the cells of that time. Later cells come from those: only that is written
down for them, so that nothing is copied for a cell that is cut again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry.patterns import Boundaries, Column, PatternBlock, packed_bits, piece_numbers, unpacked_bits
from regionscope.types import Bools, Indices, Ints, Words


@dataclass(frozen=True)
class _Note:
    """What was noted at one time of each cell there was, and from which cell of the note before it comes."""

    name: str  # of a site, or of a tournament
    winners: bool
    packed: Words  # (cells, words)
    ancestors: Ints
    among: "Among | None" = None  # the boundaries that there is a bit for, if not for all

    def rows(self, cells: Indices | Ints) -> Words:
        """What it says of these cells, a bit for each boundary."""
        packed = self.packed.take(cells, axis=0)
        return packed if self.among is None else self.among.whole(packed)


@dataclass(frozen=True)
class Among:
    """Some boundaries of a site; all cells are above the same ones of the others."""

    numbers: Indices
    above: Bools  # (boundaries,)

    def whole(self, packed: Words) -> Words:
        """A bit for each boundary, given one for these."""
        bits = np.tile(self.above, (len(packed), 1))
        bits[:, self.numbers] = unpacked_bits(packed, len(self.numbers))
        return packed_bits(bits)


@dataclass(frozen=True)
class Lineage:
    """All notes, and the cell of the last one that each cell comes from.

    A site that cut in several passes has a note of each, whose bits belong together.
    """

    ancestors: Ints
    notes: tuple[_Note, ...] = ()

    @staticmethod
    def of(cells: int) -> "Lineage":
        return Lineage(np.arange(cells, dtype=np.int32))

    def descended(self, ancestors: Ints | Indices) -> "Lineage":
        """Of cells that come from these."""
        return Lineage(self.ancestors[ancestors], self.notes)

    def noted(self, name: str, packed: Words, *, winners: bool = False, among: Among | None = None) -> "Lineage":
        """With the boundaries of a site that every cell is above, or the winners of a tournament there."""
        note = _Note(name, winners, packed, self.ancestors, among)
        return Lineage(np.arange(len(packed), dtype=np.int32), (*self.notes, note))

    def part(self, cells: Indices) -> "Lineage":
        """Of some of the cells only, without what was noted of others."""
        used, first = np.unique(self.ancestors[cells], return_inverse=True)
        notes = list[_Note]()
        for note in reversed(self.notes):
            before, number = np.unique(note.ancestors[used], return_inverse=True)
            notes.append(replace(note, packed=note.packed[used], ancestors=number.astype(np.int32)))
            used = before
        return Lineage(first.astype(np.int32), tuple(reversed(notes)))

    @property
    def nbytes(self) -> int:
        return sum(note.packed.nbytes + note.ancestors.nbytes for note in self.notes)

    def rows(self, cells: Indices | None = None) -> Iterator[tuple[_Note, Words]]:
        """What each note says of these cells, or of all; the last note first."""
        number = self.ancestors if cells is None else self.ancestors[cells]
        for note in reversed(self.notes):
            yield note, note.rows(number)
            number = note.ancestors[number]

    def ancestors_before(self, notes: int) -> Ints:
        """The cell that each comes from, of those there were before the last notes."""
        number = self.ancestors
        for note in reversed(self.notes[-notes:]):
            number = note.ancestors[number]
        return number

    def pieces(self, boundaries: Sequence[Boundaries], cells: Indices) -> dict[int, Tensor]:
        """The piece that every unit is on in these cells: value that leaves a site -> (cells, units)."""
        sites = {b.site.name: b.site for b in boundaries}
        bits: dict[str, Words] = {}
        for note, packed in self.rows(cells):
            if not note.winners:
                bits[note.name] = packed | bits[note.name] if note.name in bits else packed
        return {
            sites[name].exit: torch.from_numpy(piece_numbers(packed, sites[name].units, len(sites[name].breakpoints)))
            for name, packed in bits.items()
        }

    def sides(self, boundaries: Sequence[Boundaries], cells: Indices) -> dict[str, Bools]:
        """Whether the first was above the second in matches of these last rounds, in cells: name -> (n, matches)."""
        units = {b.site.name: b.site.units for b in boundaries}
        last = Lineage(self.ancestors, self.notes[-len(boundaries) :])
        return {note.name: unpacked_bits(packed, units[note.name]) for note, packed in last.rows(cells)}

    def patterns(self, columns: Sequence[Column]) -> Words:
        """The columns of patterns of all cells, side by side."""
        places = {(c.name, not c.breakpoints): slice(c.first_word, c.first_word + c.words) for c in columns}
        packed = np.zeros((len(self.ancestors), sum(c.words for c in columns)), np.uint64)
        number = self.ancestors
        for note in reversed(self.notes):
            if (note.name, note.winners) in places:
                packed[:, places[note.name, note.winners]] |= note.rows(number)  # a site may have cut in passes
            number = note.ancestors[number]
        return packed

    def block(self, columns: Sequence[Column]) -> PatternBlock:
        """The same as one block, without a bit for each boundary of each cell on the way."""
        first = {c.name: c.first_word for c in columns}
        common = np.zeros(sum(c.words for c in columns), np.uint64)
        varying, bits = dict[str, Indices](), dict[str, Bools]()
        number = self.ancestors
        for note in reversed(self.notes):
            if note.among is None:
                return PatternBlock.of(self.patterns(columns))
            each = unpacked_bits(note.packed[number], len(note.among.numbers))
            if note.name not in bits:
                above = packed_bits(note.among.above[None])[0]
                common[first[note.name] : first[note.name] + len(above)] = above
            bits[note.name] = each | bits[note.name] if note.name in bits else each
            varying[note.name] = 64 * first[note.name] + note.among.numbers
            number = note.ancestors[number]
        numbers, each = np.concatenate([*varying.values()]), np.concatenate([*bits.values()], axis=1)
        return PatternBlock.differing(common, numbers, each)
