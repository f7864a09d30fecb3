"""What a pattern of a cell holds, packed in 64-bit words: a bit a boundary, or the winner of a tournament."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regionscope.geometry import traversals
from regionscope.geometry.predicates import words
from regionscope.machine import points_at_once, portions
from regionscope.tracing.network import Network, Site, Tournament
from regionscope.types import Bools, Indices, Ints, Words

BITS_AT_ONCE = 1 << 23
CELLS_AT_ONCE = 1 << 14  # whose patterns are looked at
WINNER = 32  # bits


@dataclass(frozen=True)
class Boundaries:
    """The boundaries of one site: one for every breakpoint of every unit, numbered from `first`.

    Boundary `first + t * units + i` is where unit i passes breakpoint t.
    """

    site: Site
    first: int

    @property
    def count(self) -> int:
        return len(self.site.breakpoints) * self.site.units

    @property
    def tournament(self) -> Tournament | None:
        """The tournament of which this site is a round."""
        return self.site.tournament


@dataclass(frozen=True)
class Column:
    """Where a pattern keeps a site (`breakpoints` bits a unit) or a tournament (32 bits a winner, no breakpoints)."""

    name: str
    first_word: int
    words: int
    entries: int
    breakpoints: int = 0

    def unpacked(self, patterns: Words) -> NDArray[np.int32]:
        """The piece each unit is on, or the position of each winner: (n, units)."""
        part = np.ascontiguousarray(patterns[:, self.first_word : self.first_word + self.words])
        if not self.breakpoints:
            return np.asarray(part.view(np.int32)[:, : self.entries])
        return piece_numbers(part, self.entries, self.breakpoints)


@dataclass(frozen=True)
class PatternBlock:
    """The packed patterns of neighbouring cells: one row for all, and the bits in which they differ."""

    common: Words  # (words,)
    varying: Indices  # numbers of bits
    bits: NDArray[np.uint8]  # (cells, bytes)

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes + self.common.nbytes + self.varying.nbytes

    @staticmethod
    def of(patterns: Words) -> "PatternBlock":
        common = np.bitwise_and.reduce(patterns, axis=0)
        differs = (np.bitwise_or.reduce(patterns, axis=0) ^ common).view(np.uint8)
        varying = np.flatnonzero(np.unpackbits(differs, bitorder="little"))
        return PatternBlock(common, varying, traversals.chosen_bits(patterns, varying))

    @staticmethod
    def differing(common: Words, numbers: Indices, bits: Bools) -> "PatternBlock":
        """Of cells that have these bits (cells, n) where numbers say, and those of one row elsewhere."""
        always = bits.all(axis=0)
        np.bitwise_or.at(common, numbers[always] >> 6, np.uint64(1) << (numbers[always] & 63).astype(np.uint64))
        some = np.flatnonzero(bits.any(axis=0) & ~always)
        some = some[np.argsort(numbers[some])]
        return PatternBlock(common, numbers[some], np.packbits(bits[:, some], axis=1, bitorder="little"))

    def rows(self, cells: Indices) -> Words:
        """The whole patterns of some cells, (n, words)."""
        each = np.tile(np.unpackbits(self.common.view(np.uint8), bitorder="little"), (len(cells), 1))
        each[:, self.varying] = np.unpackbits(self.bits[cells], axis=1, count=len(self.varying), bitorder="little")
        return np.packbits(each, axis=1, bitorder="little").view(np.uint64)


@dataclass(frozen=True)
class PatternTable:
    """The packed patterns of many cells, block by block: what indexing gives is an array, as of a table (n, words)."""

    blocks: tuple[PatternBlock, ...]

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self.blocks[0].common)

    @cached_property
    def _ends(self) -> Indices:
        return np.cumsum([len(block.bits) for block in self.blocks])

    def __getitem__(self, chosen: Any) -> Words:
        """The rows of cells, or with a second index only these words of them."""
        rows, columns = chosen if isinstance(chosen, tuple) else (chosen, slice(None))
        cells = np.atleast_1d(np.arange(len(self))[rows])
        found = np.empty((len(cells), len(np.arange(self.shape[1])[columns])), np.uint64)
        block = np.searchsorted(self._ends, cells, side="right")
        for number in np.unique(block):
            mine = np.flatnonzero(block == number)
            first = self._ends[number] - len(self.blocks[number].bits)
            for part in _some_rows(len(mine), 64 * self.shape[1]):
                found[mine[part]] = self.blocks[number].rows(cells[mine[part]] - first)[:, columns]
        return found if np.ndim(rows) or isinstance(rows, slice) else found[0]

    def words_at(self, cells: Indices, words: Indices) -> Words:
        """One word of each of these cells, (n,)."""
        found = np.empty(len(cells), np.uint64)
        for block, mine, first in self._by_block(cells):
            word, row = words[mine], block.bits[cells[mine] - first]
            begin, end = (np.searchsorted(block.varying, 64 * (word + k)) for k in range(2))
            found[mine] = block.common[word]
            for place in range(int((end - begin).max(initial=0))):
                some = np.flatnonzero(begin + place < end)
                bit = begin[some] + place
                one = (row[some, bit >> 3] >> (bit & 7) & 1).astype(np.uint64)
                found[mine[some]] |= one << (block.varying[bit] & 63).astype(np.uint64)
        return found

    def differing_bits(self, pairs: Indices) -> tuple[Indices, Indices]:
        """See the function of this name; cells of one block are compared in the bits that vary there alone."""
        block = np.searchsorted(self._ends, pairs, side="right")
        same = block[:, 0] == block[:, 1]
        together, apart, found = np.flatnonzero(same), np.flatnonzero(~same), list[tuple[Indices, Indices]]()
        for part, mine, first in self._by_block(pairs[together, 0]):
            both = pairs[together[mine]] - first
            row, bit = _set_bits(part.bits[both[:, 0]] ^ part.bits[both[:, 1]])
            found.append((together[mine[row]], part.varying[bit]))
        for rows in _some_rows(len(apart), 64 * self.shape[1]):
            row, bit = _set_bits(self[pairs[apart[rows], 0]] ^ self[pairs[apart[rows], 1]])
            found.append((apart[rows][row], bit))
        return _both_concatenated(found)

    def _by_block(self, cells: Indices) -> Iterator[tuple[PatternBlock, Indices, int]]:
        """The blocks that have some of these cells, with the places of those, and the number of the first of each."""
        order = np.argsort(cells, kind="stable")
        ends = np.searchsorted(cells[order], self._ends)
        for number, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
            if begin < end:
                yield self.blocks[number], order[begin:end], int(self._ends[number]) - len(self.blocks[number].bits)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds of it."""
        return {
            "patterns.sizes": np.array([(len(b.bits), len(b.varying)) for b in self.blocks]),
            "patterns.common": np.stack([b.common for b in self.blocks]),
            "patterns.varying": np.concatenate([b.varying for b in self.blocks]),
            "patterns.bits": np.concatenate([b.bits.ravel() for b in self.blocks]),
        }

    @staticmethod
    def of_arrays(stored: dict[str, NDArray[Any]]) -> "PatternTable":
        """The table of which a file holds these; they are taken out of what is stored."""
        sizes, common, varying, bits = (stored.pop(f"patterns.{n}") for n in ("sizes", "common", "varying", "bits"))
        widths = -(-sizes[:, 1] // 8)
        parts = np.split(bits, np.cumsum(sizes[:, 0] * widths)[:-1])
        places = np.split(varying, np.cumsum(sizes[:, 1])[:-1])
        tables = [part.reshape(n, width) for part, (n, _), width in zip(parts, sizes, widths, strict=True)]
        return PatternTable(tuple(PatternBlock(*block) for block in zip(common, places, tables, strict=True)))


def differing_bits(patterns: Words | PatternTable, pairs: Indices) -> tuple[Indices, Indices]:
    """In which bits the packed patterns of pairs of cells (n, 2) differ: the pair and the bit, each time."""
    if isinstance(patterns, PatternTable):
        return patterns.differing_bits(pairs)
    found = list[tuple[Indices, Indices]]()
    for rows in _some_rows(len(pairs), 64 * patterns.shape[1]):
        row, bit = _set_bits(patterns[pairs[rows, 0]] ^ patterns[pairs[rows, 1]])
        found.append((rows.start + row, bit))
    return _both_concatenated(found)


def words_at(patterns: Words | PatternTable, cells: Indices, words: Indices) -> Words:
    """One word of the packed pattern of each of these cells, (n,)."""
    return patterns.words_at(cells, words) if isinstance(patterns, PatternTable) else patterns[cells, words]


def _set_bits(rows: NDArray[Any]) -> tuple[Indices, Indices]:
    """The rows of packed bits that have any, once for each, and the numbers of these."""
    each = np.ascontiguousarray(rows).view(np.uint8)
    row, byte = np.nonzero(each)
    which, bit = np.nonzero(np.unpackbits(each[row, byte][:, None], axis=1, bitorder="little"))
    return row[which], 8 * byte[which] + bit


def _both_concatenated(found: Sequence[tuple[Indices, Indices]]) -> tuple[Indices, Indices]:
    nothing = np.zeros(0, np.int64)
    return np.concatenate([nothing, *(a for a, _ in found)]), np.concatenate([nothing, *(b for _, b in found)])


def pattern_codes(patterns: Words | PatternTable) -> Words:
    """A number for each of the packed patterns (n, words), the same wherever it is met; two rarely share one."""
    codes = np.full(len(patterns), 0x9E3779B97F4A7C15, np.uint64)
    for cells in portions(len(patterns), CELLS_AT_ONCE):
        code = codes[cells]
        for word in patterns[cells].T:
            code[:] = (code ^ word) * np.uint64(0xBF58476D1CE4E5B9)
            code ^= code >> np.uint64(29)
    return codes


def pattern_groups(patterns: Words, before: Ints) -> tuple[Indices, Indices]:
    """The first of each group of cells that were the same before and have the same pattern, and the group of each.

    Whole rows are sorted only if two of them share a code: that takes three more of the table.
    """
    table = np.stack([before.astype(np.uint64), pattern_codes(patterns)], axis=1)
    _, members, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()
    if any((patterns[rows] != patterns[members[group[rows]]]).any() for rows in _some_rows(*patterns.shape)):
        table = np.concatenate([table[:, :1], patterns], axis=1)
        _, members, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return members, group.ravel()


def _some_rows(rows: int, bits: int) -> Iterator[slice]:
    """Rows in portions that take little memory when every bit is a byte."""
    return portions(rows, points_at_once(bits, floats=BITS_AT_ONCE))


def piece_numbers(bits: Words, units: int, breakpoints: int) -> Ints:
    """The number of breakpoints that each unit is above, (n, units), from a bit for each boundary."""
    each = unpacked_bits(bits, units * breakpoints).view(np.uint8)
    return np.asarray(each.reshape(len(bits), breakpoints, units).sum(axis=1, dtype=np.int32))


def unpacked_bits(bits: Words, count: int) -> Bools:
    """The first so many bits of each row, (n, count)."""
    return np.unpackbits(bits.view(np.uint8), axis=1, count=count, bitorder="little").view(bool)


def packed_bits(bits: Bools) -> Words:
    """Rows of bits (n, count) in words, (n, words)."""
    packed = np.zeros((len(bits), 8 * words(bits.shape[1])), np.uint8)
    some = np.packbits(bits, axis=1, bitorder="little")
    packed[:, : some.shape[1]] = some
    return packed.view(np.uint64)


def unpacked(columns: Sequence[Column], patterns: Words) -> Ints:
    """The patterns of all columns side by side, (n, units); (n, 0) where nothing bends."""
    return np.concatenate([np.zeros((len(patterns), 0), np.int32), *(c.unpacked(patterns) for c in columns)], axis=1)


def boundaries_of(sites: Iterable[Site]) -> list[Boundaries]:
    """The boundaries of all sites, numbered in order."""
    first, found = 0, []
    for site in sites:
        found.append(Boundaries(site, first))
        first += found[-1].count
    return found


def columns_of(boundaries: Sequence[Boundaries], net: Network) -> list[Column]:
    """The columns of a pattern, site by site; the rounds of a tournament share one."""
    columns: list[Column] = []
    first = 0
    for b in boundaries:
        name, entries, breakpoints = b.site.name, b.site.units, len(b.site.breakpoints)
        if b.tournament is not None and b.tournament.winners is not None:
            name, breakpoints = b.tournament.name, 0
            entries = math.prod(net.program.shapes[b.tournament.winners])
        if not any(c.name == name for c in columns):
            size = words(entries * (breakpoints or WINNER))
            columns.append(Column(name, first, size, entries, breakpoints))
            first += size
    return columns
