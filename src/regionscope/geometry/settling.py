"""Cuts cells by a site, with every sign that bounds on rounding leave open settled in exact arithmetic if it can be."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry import kernels
from regionscope.geometry.complexes import UNSETTLED, Complex, Cut, Meetings, Outcome, Signs, forms_of
from regionscope.geometry.filters import Filter
from regionscope.geometry.grids import Grid
from regionscope.geometry.laws import route
from regionscope.geometry.lineage import Lineage
from regionscope.geometry.patterns import Boundaries, boundaries_of
from regionscope.geometry.predicates import DRIFT, EPS, SHIFT
from regionscope.geometry.rational import CellMaps, Exact, Forms
from regionscope.geometry.rounding import SURE
from regionscope.geometry.tournaments import Bracket, bracket
from regionscope.tracing.lifting import lifted
from regionscope.tracing.network import Network, Tournament, as_rows
from regionscope.tracing.steps import Step
from regionscope.types import Bools, Floats, Indices, Ints

ASKED_AT_ONCE = 1 << 18  # signs that are settled together; of new vertices of a site no more, the rest is counted
ROUNDED = 4.0  # times what rounding does to coordinates: a vertex that is not known to be nearer is looked at
WORK = 4e12  # products in exact arithmetic that one sweep may spend
PLACING = 0.01  # of that at most, to put vertices where they are: what they are the corners of is known without


@dataclass(frozen=True)
class Still:
    """What never changes on a complex: `still` (1, entries) is an input of it, NaN where inputs differ.

    Points and grid are those of `Complex.exact_points` before it was cut.
    """

    points: Callable[[Indices, int], Tensor]
    grid: Callable[[], Grid]
    still: Floats

    @torch.no_grad()
    def values(self, net: Network, wanted: Sequence[int]) -> dict[int, Floats]:
        """Values of the network, (entries,) each, NaN where they change: sums and products hand NaN on."""
        sites = {site.exit: site.entry for site in net.sites}

        def act(step: Step, values: Mapping[int, Tensor], shapes: Mapping[int, tuple[int, ...]]) -> list[Tensor]:
            made = lifted(step, values, shapes)
            if step.results[0] in sites:  # activations, which compare, may lose it
                entering = torch.isnan(values[sites[step.results[0]]]).reshape(made[0].shape)
                made = [torch.where(entering, torch.nan, made[0]), *made[1:]]
            return made

        numbers = list(dict.fromkeys([*net.entries, *wanted]))
        found = net.program.pruned(numbers).run(torch.from_numpy(self.still).reshape(1, *net.input_shape), act=act)
        return {number: np.asarray(as_rows(rows)[0].numpy()) for number, rows in zip(numbers, found, strict=True)}

    def point(self, p: int) -> Tensor:
        """One point, modulo p."""
        return self.points(np.zeros(1, np.int64), p)[:, 0]


class Undecided(ArithmeticError):
    """Signs could not be proved although `certified=True` asked for it; the message says at which site and why."""


@dataclass
class Judge:
    """Settles signs in exact arithmetic, as long as its budget lasts, and counts what nothing has proved.

    No point that tells a map of a cell has a norm above `reach`.
    """

    net: Network
    boundaries: Sequence[Boundaries]
    reach: float
    certified: bool = False
    budget: float = WORK
    constants: "Still | None" = None
    close_decisions: int = 0
    undecided: int = 0

    def __post_init__(self) -> None:
        self.laws = route(self.net, self.boundaries).laws
        self._to_place = PLACING * self.budget
        self._numbers: dict[int, Tensor] = {}  # see `constant_numbers`

    @cached_property
    def tournaments(self) -> dict[Tournament, Bracket]:
        """Those whose winners are part of a pattern."""
        played = dict.fromkeys(b.tournament for b in self.boundaries)
        return {t: bracket(self.net, t) for t in played if t is not None and t.winners is not None}

    @cached_property
    @np.errstate(invalid="ignore")  # what is infinite is no bound
    def exactly(self) -> Exact:
        """The network in exact arithmetic."""
        sizes, norm = {}, self.reach
        sources = {t.rounds[0].entry: t.source for t in self.tournaments.values()}
        for b, law in zip(self.boundaries, self.laws, strict=True):
            norm = norm if law.unknown is None else math.inf
            sizes[b.site.entry] = law.whole.size * norm + law.whole.offset
            if b.site.entry in sources:
                sizes[sources[b.site.entry]] = law.others.size * norm + law.others.offset
            norm = law.norm_after(norm, sizes[b.site.entry])
        return Exact(self.net.program.pruned(list(sizes)), sizes)

    @cached_property
    def _filter(self) -> Filter:
        """What needs no exact arithmetic."""
        return Filter(self.net, route(self.net, self.boundaries), self.boundaries)

    @property
    def _has_budget(self) -> bool:
        """Whether the network can be evaluated once more."""
        return self.budget > 3.0 * self.exactly.work

    def may_settle(self, boundaries: Boundaries) -> bool:
        """Whether it is worth asking for signs of a site: there is budget, or a look at who plays may do."""
        return boundaries.tournament in self.tournaments or self._has_budget

    def constant_sides(self, boundaries: Boundaries, boundary: Indices) -> Bools | None:
        """Whether units that are constant are above these boundaries of a site; None if exact arithmetic cannot say."""
        if self._pieces_somewhere is None:
            return None
        units = boundaries.site.units
        pieces = self._pieces_somewhere[boundaries.site.exit][0].numpy()
        return np.asarray(pieces[boundary % units] > boundary // units)

    @cached_property
    def _pieces_somewhere(self) -> dict[int, Tensor] | None:
        """The pieces of all units at one point of the complex: value that leaves a site -> (1, units)."""
        if self.constants is None or not self._has_budget:
            return None
        given, shape = self.constants, (1, *self.net.input_shape)
        sites = [b.site for b in self.boundaries]
        self.budget -= 3.0 * self.exactly.work
        found = self.exactly.pieces(lambda p: given.point(p).reshape(shape), given.grid(), sites)
        return None if found is None else {value: torch.from_numpy(pieces) for value, pieces in found.items()}

    @cached_property
    def constant_values(self) -> dict[int, Floats]:
        """What enters sites and tournaments wherever the complex is, NaN where that changes; nothing if all does."""
        wanted = [b.site.entry for b in self.boundaries] + [t.source for t in self.tournaments.values()]
        return {} if self.constants is None else self.constants.values(self.net, wanted)

    def constant_numbers(self, playing: Bracket) -> Tensor:
        """Numbers of the constants that competitors are wherever the complex is, (positions,); -1 for none.

        Equal numbers are proved to be equal constants; they begin where those of `Bracket.entrants` end.
        """
        if playing.source not in self._numbers:
            self._numbers[playing.source] = self._new_numbers(playing)
        return self._numbers[playing.source]

    def _new_numbers(self, playing: Bracket) -> Tensor:
        nothing = np.full(math.prod(playing.program.shapes[playing.source]), np.nan)
        values = self.constant_values.get(playing.source, nothing)
        numbers, fixed = torch.full((len(values),), -1), np.flatnonzero(~np.isnan(values))
        if not len(fixed) or self._pieces_somewhere is None or self.constants is None:
            return numbers
        _, first, group = np.unique(values[fixed], return_index=True, return_inverse=True)
        places = np.stack([np.full(len(fixed), playing.source), fixed, fixed[first[group]]], axis=1)
        pieces, given, shape = self._pieces_somewhere, self.constants, (1, 1, *self.net.input_shape)
        here = CellMaps(lambda _, p: given.point(p).reshape(shape), given.grid, lambda _: pieces)
        moduli = self.exactly.enough([playing.source], given.grid())
        if moduli is None:
            return numbers
        none = np.zeros(len(fixed), np.int64)
        residues = self.exactly.residues(here, none, Forms(places, np.zeros(len(fixed))), moduli)
        same = ~residues.any(axis=(0, 2))
        pieces_known = 0 if playing.entrants is None else len(playing.entrants.constants)
        numbers[fixed[same]] = pieces_known + torch.from_numpy(group[same])
        return numbers

    def maps(self, cells: Complex, lineage: Lineage) -> CellMaps:
        """The cells of a complex as they are now."""
        points, grid = cells.exact_points()

        def shaped(chosen: Indices, p: int) -> Tensor:
            told = points(chosen, p)
            return told.reshape(*told.shape[:2], *self.net.input_shape)

        return CellMaps(shaped, grid, lambda chosen: lineage.pieces(self.boundaries, chosen), cells.coordinates())

    def signs(self, maps: CellMaps, cut: Cut, meetings: Meetings, boundary: Indices) -> Signs:
        """The signs of boundaries of a site at meetings of lines; `UNSETTLED` if that cannot be done or is too much."""
        target = forms_of(cut.rule.labels[boundary].astype(np.int64), self.boundaries)
        signs = np.full(len(boundary), UNSETTLED, np.int8)
        signs[self.tied(maps, cut.boundaries, meetings.cell, boundary)] = 0
        for settled in (self._filter.signs, self._settled_signs):
            asked = np.flatnonzero((meetings.cell >= 0) & (signs == UNSETTLED))
            if len(asked):
                signs[asked] = settled(maps, meetings[asked], target[asked])
        return signs

    def _settled_signs(self, maps: CellMaps, meetings: Meetings, target: Forms) -> Signs:
        """The signs of forms at meetings, in exact arithmetic."""
        signs = np.full(len(target), UNSETTLED, np.int8)
        able, moduli = self._affordable(maps, meetings.cell, [*meetings.forms, target])
        if able.any():
            some = meetings[able]
            signs[able] = self.exactly.signs(maps, some.cell, some.forms, target[able], some.lines, moduli)
        return signs

    def distances(self, maps: CellMaps, meetings: Meetings) -> Floats:
        """At most how far meetings are from what they are near to, along both axes, (n, 2); infinite if not proved."""
        far, asked = np.full((len(meetings.cell), 2), np.inf), np.flatnonzero(meetings.cell >= 0)
        far[asked] = self._filter.distances(maps, meetings[asked])
        return far

    def places(self, maps: CellMaps, meetings: Meetings) -> Floats:
        """The coordinates (n, 2) of meetings, rounded once; NaN if that cannot be done or is too much."""
        found = np.full((len(meetings.cell), 2), np.nan)
        before = self.budget
        able, moduli = self._affordable(maps, meetings.cell, meetings.forms, self._to_place)
        self._to_place -= before - self.budget
        if able.any():
            some = meetings[able]
            found[able] = self.exactly.places(maps, some.cell, some.forms, some.lines, moduli)
        return found

    def _affordable(
        self, maps: CellMaps, cell: Indices, forms: Sequence[Forms], most: float = math.inf
    ) -> tuple[Bools, Sequence[int]]:
        """Which of these forms there is time for, or at `most` so many products, and the primes that they need."""
        values = {int(v) for form in forms for v in np.unique(form.places[:, 0]) if v >= 0}
        able = min(most, self.budget) > 3.0 * self.exactly.work
        moduli = self.exactly.enough(sorted(values), maps.grid()) if able else None
        if moduli is None:
            return np.zeros(len(cell), bool), []
        each = 3.0 * len(moduli) * max(self.exactly.work, 1)
        chosen = np.asarray(np.unique(cell, return_inverse=True)[1] < min(most, self.budget) / each)
        self.budget -= each * len(np.unique(cell[chosen]))
        return chosen, moduli

    def tied(self, maps: CellMaps, boundaries: Boundaries, cell: Indices, boundary: Indices) -> Bools:
        """The matches of a tournament in which, in these cells, one meets itself, or two are the same constant."""
        playing = self.tournaments.get(boundaries.tournament) if boundaries.tournament is not None else None
        if playing is None or not len(cell):
            return np.zeros(len(cell), bool)
        used, place = np.unique(cell, return_inverse=True)
        choices = maps.choices(used)
        later = {s.name: np.zeros((len(used), s.units), bool) for s in playing.rounds}
        above = later | {s.name: (choices[s.exit] > 0).numpy() for s in playing.rounds if s.exit in choices}
        won, matches = playing.played(above), playing.matches[boundaries.site.name]
        first, second = (
            torch.from_numpy(won[place, side[boundary]]).long() for side in (matches.first, matches.second)
        )
        same = first == second
        constants = self.constant_numbers(playing).repeat(len(used), 1)
        if playing.entrants is not None:
            known = playing.entrants.known(choices[playing.entrants.site.exit])
            constants = torch.where(known >= 0, known, constants)
        same |= (constants[place, first] >= 0) & (constants[place, first] == constants[place, second])
        return np.asarray(same.numpy() & (cell >= 0))

    def count(self, boundaries: Boundaries, open_signs: int, unproved: int) -> None:
        """So many signs at a site the bounds left open, and so many of them nothing has proved."""
        self.close_decisions += open_signs
        self.undecided += unproved
        if self.certified and unproved:
            raise Undecided(f"{unproved} signs at site {boundaries.site.name!r} could not be proved: {self._why()}")

    def _why(self) -> str:
        unknown = next((law.unknown for law in self.laws if law.unknown), None)
        if unknown:
            return f"there is no bound on the rounding of {unknown}"
        if self.exactly.obstacle:
            return f"they are within the bounds of rounding, and {self.exactly.obstacle} has no exact form"
        return "they are within the bounds of rounding, and exact arithmetic would take too long"


def cut_by_site(cells: Complex, lineage: Lineage, judge: Judge, cut: Cut, most: int) -> Outcome:
    """Cut all cells by a site, with every sign that is not proved settled in exact arithmetic, if that can be done.

    The cut is made with the signs as they seem. If exact arithmetic finds another one, it is made again with that.
    """
    maps, before = judge.maps(cells, lineage), cells.kept()
    opened, unproved = _settle_vertices(cells, maps, judge, cut)
    asked, settled = np.empty((ASKED_AT_ONCE, 5), np.int64), np.zeros((0, 5), np.int64)
    outcome, signs = cells.cut(cut, most, kernels.Questions(asked, settled)), np.zeros(0, np.int8)
    able = outcome.asked > 0 and judge.may_settle(cut.boundaries)
    while able and outcome.asked:
        vertex, boundary, cell, line, maker = asked[: outcome.asked].T
        meetings = cells.meetings(vertex, cell, line, cut.rule.labels[maker].astype(np.int64), judge.boundaries)
        signs = judge.signs(maps, cut, meetings, boundary)
        wrong = (signs != UNSETTLED) & (signs != outcome.made.signs(vertex, boundary))
        if not wrong.any():
            break
        found = cells.twins(np.stack([cell, line, maker, boundary, signs], 1)[wrong], before)
        settled = np.concatenate([settled, found])
        vars(cells).update(before)
        outcome, signs = cells.cut(cut, most, kernels.Questions(asked, settled)), signs[:0]
    if outcome.torn:
        raise ArithmeticError("rounding has torn a cell: a boundary crosses it more than once; look at a larger part")
    unproved += outcome.opened - int((signs != UNSETTLED).sum())
    judge.count(cut.boundaries, opened + outcome.opened, unproved)
    return outcome


def _settle_vertices(cells: Complex, maps: CellMaps, judge: Judge, cut: Cut) -> tuple[int, int]:
    """Settle the signs at the vertices there are; returns how many bounds leave open, and how many are not proved.

    A look at the slopes that a unit has around a vertex often decides, where norms of the network did not. If not, the
    vertex is usually not known to be near enough to its true place: a look at that serves all who ask, here and later.
    """
    unclear, unproved = 0, 0
    if not cut.opened.any():
        return unclear, unproved
    behind = np.cumsum(cut.opened) // ASKED_AT_ONCE
    for part in np.unique(behind[cut.opened > 0]):
        some = np.where(behind == part, cut.opened, 0).astype(np.int32)
        vertex, boundary = kernels.open_signs(cut.vertices, cut.rule, cut.ties, some).T
        signs = _clear_signs(cells, cut, vertex, boundary)
        rest = np.flatnonzero(signs == UNSETTLED)
        unclear += len(rest)
        if len(rest) and judge.may_settle(cut.boundaries):
            _note_distances(cells, maps, judge, cut, _displaced(cut, np.unique(vertex[rest])))
            signs[rest] = _clear_signs(cells, cut, vertex[rest], boundary[rest])
            rest = np.flatnonzero(signs == UNSETTLED)
            meetings = cells.corners(vertex[rest], judge.boundaries)
            signs[rest] = judge.signs(maps, cut, meetings, boundary[rest])
        cut.set_signs(vertex, boundary, signs)
        unproved += int((signs == UNSETTLED).sum())
    return unclear, unproved


def _clear_signs(cells: Complex, cut: Cut, vertex: Indices, boundary: Indices) -> Signs:
    """The signs that slopes around vertices prove."""
    units = cut.values.shape[1]
    unit, level = boundary % units, cut.rule.breakpoints[boundary // units]
    away = cut.values[vertex, unit] - level
    clear = np.abs(away) > cells.local_bounds(vertex, unit, cut) + 2 * EPS * np.abs(level)
    return np.where(clear, np.sign(away), UNSETTLED).astype(np.int8)


def _displaced(cut: Cut, vertices: Indices) -> Indices:
    """Those of which more than the rounding of coordinates may be between them and their true places."""
    return np.asarray(vertices[cut.vertices.doubt[vertices, SHIFT] > ROUNDED * cut.rule.law[DRIFT]])


def _note_distances(cells: Complex, maps: CellMaps, judge: Judge, cut: Cut, vertices: Indices) -> None:
    """Write down how far vertices are from their true places, where that is less than what is known."""
    if maps.frames is None or not len(vertices):
        return
    meetings, doubt = cells.corners(vertices, judge.boundaries), cut.vertices.doubt
    far = judge.distances(maps, meetings) + cut.rule.law[DRIFT]  # coordinates are rounded
    axes = maps.frames(meetings.cell)[1].norm(dim=2).numpy()
    with np.errstate(invalid="ignore"):  # of a line without length
        shift = SURE * (far[:, : axes.shape[1]] * axes).sum(axis=1)
    for column in (SHIFT, SHIFT + 1):
        doubt[vertices, column] = np.fmin(doubt[vertices, column], shift)


def exact_pieces(
    net: Network, points: Callable[[int], Tensor], grid: Grid, reach: float, sites: int
) -> tuple[list[Ints], dict[Tournament, Indices]] | None:
    """The piece of every unit (n, units) of the first sites at points, in exact arithmetic.

    The points (n, entries of an input) are given modulo p, with the grid that holds them and a bound on their norms.
    Also who wins the tournaments. None if the network has an operation without an exact form.
    """
    judge = Judge(net, boundaries_of(net.sites), reach)
    rounds = [b.site for b in judge.boundaries[:sites]]
    found = judge.exactly.pieces(lambda p: points(p).reshape(-1, *net.input_shape), grid, rounds)
    if found is None:
        return None
    winners = {}
    for tournament, playing in judge.tournaments.items():
        if playing.rounds[-1].exit in found:
            above = {s.name: found[s.exit] > 0 for s in playing.rounds}
            winners[tournament] = playing.numbers.numpy()[playing.winners(playing.played(above))]
    return [found[site.exit] for site in rounds], winners
