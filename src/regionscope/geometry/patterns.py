"""What a pattern of a cell holds, packed in 64-bit words: a bit a boundary, or the winner of a tournament."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regionscope.geometry.predicates import words
from regionscope.tracing.network import Network, Site, Tournament
from regionscope.types import Ints, Words


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


def piece_numbers(bits: Words, units: int, breakpoints: int) -> Ints:
    """The number of breakpoints that each unit is above, (n, units), from a bit for each boundary."""
    each = np.unpackbits(bits.view(np.uint8), axis=1, count=units * breakpoints, bitorder="little")
    return np.asarray(each.reshape(len(bits), breakpoints, units).sum(axis=1, dtype=np.int32))


def unpacked(columns: Sequence[Column], patterns: Words) -> Ints:
    """The patterns of all columns side by side, (n, units); (n, 0) where nothing bends."""
    return np.concatenate([np.zeros((len(patterns), 0), np.int32), *(c.unpacked(patterns) for c in columns)], axis=1)


def numbered(sites: Iterable[Site]) -> list[Boundaries]:
    """The boundaries of all sites, numbered in order."""
    first, found = 0, []
    for site in sites:
        found.append(Boundaries(site, first))
        first += found[-1].count
    return found


def owners(labels: NDArray[np.integer[Any]], boundaries: Sequence[Boundaries]) -> tuple[Ints, Ints]:
    """The site (its place in the list, -1 for none) and the unit of each boundary number."""
    firsts = np.array([b.first for b in boundaries], np.int64)
    site = np.where(labels >= 0, np.searchsorted(firsts, labels, side="right") - 1, -1).astype(np.int32)
    units = np.array([b.site.units for b in boundaries] or [1], np.int64)
    unit = np.where(labels >= 0, (labels - firsts[site]) % units[site] if len(firsts) else 0, -1)
    return site, unit.astype(np.int32)


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
            size = words(entries * breakpoints if breakpoints else 32 * entries)
            columns.append(Column(name, first, size, entries, breakpoints))
            first += size
    return columns
