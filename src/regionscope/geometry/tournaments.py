"""Who wins a tournament in a cell, as the sides of its rounds say.

Max-pooling and its like are played in rounds of two. On a cell every round has a side, so the winners follow without
looking at a number: the same operations are done with positions in the place of values. Competitors that are equal on a
whole cell are on no side of each other's boundary; the one that comes first wins then (see `decompositions`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry import traversals
from regionscope.geometry.patterns import WINNER
from regionscope.geometry.pieces import pieces
from regionscope.geometry.predicates import words
from regionscope.geometry.rounding import SAME
from regionscope.tracing.activations import PAIRWISE
from regionscope.tracing.lifting import lifted
from regionscope.tracing.network import Network, Site, Tournament, as_rows
from regionscope.tracing.program import Program
from regionscope.tracing.steps import Step
from regionscope.types import Bools, Indices, Ints, Words


@dataclass(frozen=True)
class _Matches:
    """The matches of a round: the slots that its two competitors are in, and whether the larger of them wins.

    Slots are the positions in what enters the tournament, then the winners of its matches, round by round; `slots` are
    those of the winners of this one.
    """

    first: Ints  # (units,)
    second: Ints
    larger: bool
    slots: slice


@dataclass(frozen=True)
class Bracket:
    """The rounds of one tournament, from what enters it, `source`, to the winners.

    The step `told` says who won, of what is `arranged` out of the source. `entrants` says what competitors are known to
    be on pieces of the site that they come from, if they come from one.
    """

    rounds: tuple[Site, ...]
    source: int
    program: Program
    told: Step
    arranged: Program
    entrants: "_Entrants | None"

    @property
    def positions(self) -> int:
        """How many there are in the source."""
        return math.prod(self.program.shapes[self.source])

    @property
    def slots(self) -> int:
        """How many there are, see `_Matches`."""
        return self.positions + sum(site.units for site in self.rounds)

    @cached_property
    def numbers(self) -> Tensor:
        """The number by which torch calls every position in the source."""
        positions = torch.arange(self.positions).reshape(1, *self.program.shapes[self.source])
        among = competitors(self.told, self.arranged.resume({self.source: positions})[0])
        numbers = torch.empty(self.positions, dtype=torch.long)
        numbers[among.flatten()] = torch.arange(among.shape[-1]).expand(among.shape).flatten()
        return numbers

    def values(self, entering: Tensor, winners: Tensor) -> Tensor:
        """What those are who are called by numbers (n, winners), given what enters the tournament."""
        among = competitors(self.told, self.arranged.resume({self.source: entering})[0])
        return among.gather(-1, winners.reshape(len(among), among.shape[1], -1)).flatten(1)

    @cached_property
    def matches(self) -> dict[str, _Matches]:
        """Who meets whom in each round, by its name: other steps only arrange competitors."""
        return self._drawn[0]

    @cached_property
    def _drawn(self) -> tuple[dict[str, _Matches], Indices]:
        """The matches, and the slots of the winners: the program is run with slots in the place of values."""
        leaving, found = {site.exit: site for site in self.rounds}, dict[str, _Matches]()

        def act(step: Step, values: Mapping[int, Tensor], shapes: Mapping[int, tuple[int, ...]]) -> list[Tensor]:
            if step.results[0] not in leaving:
                return lifted(step, values, shapes)
            site, start = leaving[step.results[0]], self.positions + sum(len(m.first) for m in found.values())
            pair = [values[step.named[name].index] for name in ("self", "other")]
            first, second = (as_rows(p)[0].to(torch.int32).numpy() for p in pair)
            slots, larger = slice(start, start + site.units), PAIRWISE[step.name] == "maximum"
            found[site.name] = _Matches(first, second, larger, slots)
            return [torch.arange(start, start + site.units).reshape(pair[0].shape)]

        start = torch.arange(self.positions).reshape(1, *self.program.shapes[self.source])
        (winners,) = self.program.resume({self.source: start}, act=act)
        return found, as_rows(winners)[0].numpy()

    def played(self, above: Mapping[str, Bools]) -> Ints:
        """The position of who is in every slot (n, slots).

        `above` has a row for each cell, a column for each match: whether the first was above the second.
        """
        won = np.empty((len(next(iter(above.values()))), self.slots), np.int32)
        won[:, : self.positions] = np.arange(self.positions)
        for name, m in self.matches.items():
            traversals.play(won, m.slots.start, above[name], m.first, m.second, m.larger)
        return won

    def winners(self, won: Ints) -> Ints:
        """The positions of those who won in the end, (n, winners), given who is in every slot."""
        return np.asarray(won[:, self._drawn[1]])

    def constant_matches(self, known: Ints, sides: Mapping[str, tuple[Bools, Bools]], name: str) -> Bools:
        """The matches of a round in which both are the same constant at points, (n, units).

        `known` (n, positions) numbers the constants that competitors are there, -1 for none; `sides` says of all
        earlier rounds in which matches the first is above the second, and below.
        """
        told = np.empty((len(known), self.slots), np.int32)
        told[:, : self.positions] = known
        names = list(self.matches)
        for earlier in names[: names.index(name)]:
            m = self.matches[earlier]
            over, under = sides[earlier] if m.larger else reversed(sides[earlier])
            traversals.play_constants(told, m.slots.start, over, under, m.first, m.second)
        first, second = told[:, self.matches[name].first], told[:, self.matches[name].second]
        return np.asarray((first >= 0) & (first == second))

    @property
    def words_of_winners(self) -> int:
        """How many words hold those who won in the end."""
        return words(WINNER * len(self._drawn[1]))

    def packed(self, winners: Ints) -> Words:
        """What torch calls the winners, two in a word."""
        packed = np.zeros((len(winners), 2 * self.words_of_winners), np.int32)
        packed[:, : winners.shape[1]] = self.numbers.numpy()[winners]
        return packed.view(np.uint64)


@dataclass(frozen=True)
class _Entrants:
    """Competitors that leave a site: `units` is the one at each position, `constants` numbers what its pieces are.

    Pieces with the same number are the same constant, those with -1 are none.
    """

    site: Site
    units: Tensor
    constants: Tensor

    @property
    def may_close(self) -> bool:
        """Whether the first piece is constant: what is not above the first breakpoint is that constant."""
        return bool(self.constants[0] >= 0)

    def known(self, pieces: Tensor) -> Tensor:
        """The constant at each position (n, positions), given the piece of every unit."""
        return self.constants[pieces.flatten(1).long()][:, self.units]


def entrants(net: Network, source: int) -> _Entrants | None:
    """What is known of the entries of a value, if they are those that leave a site."""
    for site in net.sites:
        way = between(net.program, site.exit, source)
        (step,) = (step for step in net.program.steps if site.exit in step.results)
        found = pieces(step, net.program.constants)
        if way is not None and found is not None and all(s.name in SAME for s in way.steps):
            constants = [offset if not isinstance(slope, Tensor) and slope == 0 else None for slope, offset in found]
            numbers = [-1 if c is None else constants.index(c) for c in constants]
            shape = net.program.shapes[site.exit]
            (units,) = way.resume({site.exit: torch.arange(math.prod(shape)).reshape(1, *shape)})
            return _Entrants(site, units.flatten(), torch.tensor(numbers))
    return None


def bracket(net: Network, tournament: Tournament) -> Bracket:
    """Who meets whom in a tournament that says who won."""
    rounds = tuple(site for site in net.sites if site.tournament == tournament)
    (told,) = (step for step in net.program.steps if tournament.winners in step.results)
    (told_of,) = told.used & net.program.shapes.keys()
    source = told_of  # or what it is arranged out of
    while (program := between(net.program, source, rounds[-1].exit)) is None:
        (step,) = (step for step in net.program.steps if source in step.results)
        (source,) = step.used & net.program.shapes.keys()
    arranged = between(net.program, source, told_of)
    assert arranged is not None, "it is told of those who compete"
    return Bracket(rounds, source, program, told, arranged, entrants(net, source))


def between(program: Program, source: int, end: int) -> Program | None:
    """The steps that lead from one value to another; None if the second needs more than the first."""
    needed, kept = {end}, list[Step]()
    for step in reversed(program.steps):
        if source in step.results:
            break
        if not needed.isdisjoint(step.results):
            needed = (needed - set(step.results)) | {v for v in step.used if v in program.shapes}
            kept.append(replace(step, done_with=()))
    return replace(program, steps=tuple(reversed(kept)), outputs=(end,)) if needed == {source} else None


def competitors(step: Step, entering: Tensor) -> Tensor:
    """What competes, the place of each in its group being the number that the step calls it by: (n, groups, places)."""
    if "pool" in step.name:
        spatial = len(step.named.get("kernel_size") or step.named["output_size"])
        return entering.flatten(-spatial).flatten(1, -2)
    return entering.movedim(step.named["dim"] % (entering.dim() - 1) + 1, -1)[:, None].flatten(1, -2)
