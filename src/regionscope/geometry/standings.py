"""On which sides vertices are of units whose constants compete in tournaments later, and of rounds that were played."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from regionscope.geometry import traversals
from regionscope.geometry.complexes import Cut
from regionscope.geometry.patterns import Boundaries, unpacked_bits
from regionscope.geometry.predicates import words
from regionscope.geometry.rows import ENTRIES_AT_ONCE, larger_copy
from regionscope.geometry.tournaments import Bracket
from regionscope.machine import points_at_once, portions
from regionscope.types import Bools, Indices, Ints, Words


@dataclass(frozen=True)
class Standings:
    """Of sites by name, packed, a row a vertex: the units that each is above, and of rounds those that it is below."""

    above: dict[str, Words] = field(default_factory=dict)
    below: dict[str, Words] = field(default_factory=dict)

    def of(self, vertices: Indices | Bools) -> "Standings":
        """Of some of the vertices only."""
        above, below = ({name: bits[vertices] for name, bits in kept.items()} for kept in (self.above, self.below))
        return Standings(above, below)

    def after(self, cut: Cut, vertices: int, brackets: Sequence[Bracket], later: set[str]) -> "Standings":
        """After a site has cut, with these sites `later`; a new vertex is above, or below, what a parent is.

        What constants of the site become is kept until they compete; rounds, as long as their tournament goes on.
        """
        playing = [t for t in brackets if t.rounds[-1].name in later]
        waiting = {t.entrants.site.name for t in playing if t.entrants is not None and t.entrants.may_close}
        rounds = {site.name for t in playing for site in t.rounds}
        above = _bits_of_all(self.above, waiting | rounds, cut, cut.vertices.above, vertices)
        return Standings(above, _bits_of_all(self.below, rounds, cut, cut.vertices.below, vertices))

    def constant_matches(self, playing: Bracket, everywhere: Ints, boundaries: Boundaries, vertices: int) -> Words:
        """The matches at every vertex whose two competitors are the same constant, packed; no rows if none can be.

        `everywhere` numbers the constants that competitors are at all vertices, -1 for none.
        """
        entrants = playing.entrants
        may_close = entrants is not None and entrants.site.name in self.above
        if not may_close and not (everywhere >= 0).any():
            return np.zeros((0, 0), np.uint64)
        packed = np.zeros((vertices, 8 * words(boundaries.count)), np.uint8)
        earlier = [site for site in playing.rounds if site.name in self.below]
        for rows in portions(vertices, points_at_once(playing.slots, floats=ENTRIES_AT_ONCE)):
            known = np.tile(everywhere, (rows.stop - rows.start, 1))
            if may_close and entrants is not None:
                opened = unpacked_bits(self.above[entrants.site.name][rows], entrants.site.units)
                known[~opened[:, entrants.units.numpy()]] = int(entrants.constants[0])
            sides = {
                s.name: (
                    unpacked_bits(self.above[s.name][rows], s.units),
                    unpacked_bits(self.below[s.name][rows], s.units),
                )
                for s in earlier
            }
            found = playing.constant_matches(known, sides, boundaries.site.name)
            bits = np.packbits(found, axis=1, bitorder="little")
            packed[rows, : bits.shape[1]] = bits
        return packed.view(np.uint64)


def _bits_of_all(kept: dict[str, Words], names: set[str], cut: Cut, bits: Words, vertices: int) -> dict[str, Words]:
    """What was kept under these names, with rows for new vertices too, and the bits of the site that has cut."""
    grown = {name: larger_copy(old, vertices) for name, old in kept.items() if name in names}
    for rows in grown.values():
        traversals.inherit(rows, cut.old, cut.vertices.parents)
    site = cut.boundaries.site
    if site.name in names:
        first = bits[:vertices, : words(site.units)].copy()  # of its first breakpoint
        spare = 64 * first.shape[1] - site.units
        first[:, -1] &= np.uint64((1 << (64 - spare)) - 1)
        grown[site.name] = first | grown[site.name] if site.name in grown else first
    return grown
