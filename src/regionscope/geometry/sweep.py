"""Carries the vertices of cells through a network, site by site, and has every site cut the cells.

Between the boundaries of earlier sites everything is affine, so the values of a new vertex lie between those of its two
neighbours on the edge where it was made. The network is therefore evaluated part by part, from one site to the next,
each part once at every vertex there is by then: less than one forward pass at the vertices of the result. Beside the
values goes a bound on their errors (see `rounding`); signs that it does not decide are settled in exact arithmetic.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm.auto import tqdm

from regionscope.geometry import kernels, predicates
from regionscope.geometry.patterns import Boundaries, columns_of, numbered, owners, piece_numbers
from regionscope.geometry.planes import Plane
from regionscope.geometry.predicates import (
    DOUBTS,
    EPS,
    ERROR,
    FAINT,
    INTERPOLATION,
    MOST_TURNS,
    MOVED,
    NORM,
    ORTHONORMAL,
    VALUE,
    classify,
    open_signs,
    words,
)
from regionscope.geometry.rational import Cells, Exact, Forms, Integers, grid_of, reduced, remainders
from regionscope.geometry.rounding import Law, Measure, law_of
from regionscope.geometry.tournaments import Tournament, tournament
from regionscope.tracing.network import Network, Site
from regionscope.tracing.program import Program
from regionscope.types import Floats, Indices, Ints, Words

Signs = NDArray[np.int8]

UNSETTLED = 2  # among signs
ASKED_AT_ONCE = 1 << 18  # signs of one site that are written down to be settled; the rest is counted
WORK = 4e9  # products in exact arithmetic that one sweep may spend; a few seconds
CERTIFIED_WORK = 4e12


@dataclass(frozen=True)
class Cut:
    """What one site does to the vertices: its values at all of them, and where the new ones come from."""

    boundaries: Boundaries
    values: Floats  # (old vertices, units)
    fresh: Floats  # (room for new vertices, units)
    above: Words  # (vertices, words): the boundaries that each vertex is above; the rest too has rows for all vertices
    below: Words
    parents: Ints
    weights: Floats
    doubt: Floats  # (vertices, DOUBTS); see `predicates`
    rows: Floats  # (units,)
    law: Floats  # (LAWS,)

    @property
    def breakpoints(self) -> Floats:
        return np.array(self.boundaries.site.breakpoints)

    def grown(self, capacity: int) -> "Cut":
        """The same with room for so many vertices."""
        arrays: dict[str, Any] = {name: enlarged(getattr(self, name), capacity) for name in PER_VERTEX}
        return replace(self, fresh=enlarged(self.fresh, capacity - len(self.values)), **arrays)

    def blocks(self, vertices: int) -> list[Floats]:
        """The values of all vertices, in two blocks."""
        return [self.values, self.fresh[: vertices - len(self.values)]]

    def set_signs(self, vertex: Indices, boundary: Indices, signs: Signs) -> None:
        """Write down the signs of old vertices that were open; a value that has another sign has moved to zero."""
        word, one = boundary >> 6, np.uint64(1) << (boundary & 63).astype(np.uint64)
        known = signs != UNSETTLED
        for side, bits in ((1, self.above), (-1, self.below)):
            np.bitwise_and.at(bits, (vertex[known], word[known]), ~one[known])
            np.bitwise_or.at(bits, (vertex[signs == side], word[signs == side]), one[signs == side])
        units = self.values.shape[1]
        z = self.values[vertex, boundary % units] - self.breakpoints[boundary // units]
        moved = np.where(signs_of(self, vertex, boundary) == np.sign(z), 0.0, z)
        self.doubt[vertex, MOVED] = 0.0
        np.add.at(self.doubt[:, MOVED], vertex, np.abs(moved))


PER_VERTEX = ("above", "below", "parents", "weights", "doubt")
ENTRIES_AT_ONCE = 1 << 21  # floats of a state that go through a part of the network together: they stay in the heap

Blocks = list[Floats]  # the rows of all vertices, one block after another


def enlarged(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    """The same array with room for more rows."""
    new = np.empty((capacity, *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    return new


def boundaries_of(net: Network, up_to_layer: int | None) -> list[Boundaries]:
    """The boundaries of the sites to cut by."""
    if up_to_layer is not None and not 1 <= up_to_layer <= net.layers:
        raise ValueError(f"up_to_layer must be from 1 to {net.layers}, got {up_to_layer}")
    return [b for b in numbered(net.sites) if up_to_layer is None or b.site.layer <= up_to_layer]


def exact(net: Network) -> Network:
    """A float64 copy of a network whose regions can be found exactly; otherwise an error."""
    if not net.piecewise_linear:
        smooth = sorted({site.kind for site in net.sites if site.smooth})
        what = f" ({', '.join(smooth)})" if smooth else ""
        raise ValueError(f"the network is not piecewise linear{what}: it has no linear regions to find exactly")
    return net.frozen()


@dataclass(frozen=True)
class Route:
    """The way through a network: its parts from site to site, with their laws, and the last part, to the output."""

    parts: tuple[Program, ...]
    laws: tuple[Law, ...]
    last: Program


def route(net: Network, boundaries: list[Boundaries]) -> Route:
    """The way through the first sites of a frozen network; kept with it, as many sweeps may go there."""
    known: dict[int, Route] = vars(net).setdefault("_routes", {})
    if len(boundaries) not in known:
        entries = [b.site.entry for b in boundaries]
        program = replace(net.program.pruned([*entries, net.output]), outputs=(net.output,))
        parts = program.segments(entries)
        laws = laws_of(parts, [b.site for b in boundaries])
        known[len(boundaries)] = Route(tuple(parts[:-1]), tuple(laws), parts[-1])
    return known[len(boundaries)]


def laws_of(parts: Sequence[Program], sites: Sequence[Site | None]) -> Iterator[Law]:
    """The laws of the parts before all sites; after the first round of a tournament, from the end of that round on.

    The last part, which ends at the output, has a law too if None stands for it behind the sites.
    """
    played = [site and site.tournament for site in sites]
    begin = 0
    for number, (part, site) in enumerate(zip(parts, sites, strict=False)):
        before = played[number - 1] if number else None
        if before is None or number == 1 or played[number - 2] != before:
            begin = number
        some = parts[begin : number + 1]
        whole = replace(
            part, steps=tuple(s for p in some for s in p.steps), held={i: h for p in some for i, h in p.held.items()}
        )
        known = parts[begin - 1].outputs if begin else (0,)
        used = site is not None and any(site.entry in s.used for later in parts[number + 1 :] for s in later.steps)
        passes = played[number] is not None and played[number] == before
        yield law_of(whole, known, used=used, passes=passes)


class Undecided(ArithmeticError):
    """Signs could not be proved although `certified=True` asked for it; the message says at which site and why."""


@dataclass
class Sweep:
    """A pass through the network: `cuts` gives the sites in turn, and is told of the vertices that they make.

    `doubt` says how far off the points are, and how far a coordinate may move by rounding; see `predicates`.
    """

    net: Network
    points: Tensor  # (vertices, *input_shape) in float64
    doubt: Floats
    largest: float  # of the coordinates
    directions: Tensor  # (m, 1 or 2, *input_shape) orthonormal, in which coordinates go
    reach: float  # no point that tells a map has a larger norm
    up_to_layer: int | None = None
    show_progress: bool = False
    certified: bool = False

    def __post_init__(self) -> None:
        self.boundaries = boundaries_of(self.net, self.up_to_layer)
        self.columns = columns_of(self.boundaries, self.net)
        self.route = route(self.net, self.boundaries)
        self.slope = np.full(2, 1 + ORTHONORMAL)  # at most how fast the state changes along the plane, and usually
        self.budget = CERTIFIED_WORK if self.certified else WORK
        self.above: dict[str, Words] = {}  # of sites whose constants compete in tournaments, at every vertex
        self.close_decisions = 0
        self.undecided = 0
        self.outputs: Floats | None = None
        self.vertices = len(self.points)
        self.state: list[Blocks] = [[self.points.flatten(1).numpy()]]

    @torch.no_grad()
    def cuts(self) -> Iterator[Cut]:
        """The sites one after another; between two, `moved` and `thinned` must say what became of the vertices."""
        known: tuple[int, ...] = (0,)
        bar = tqdm(self.boundaries, desc="cutting", unit="site", disable=not self.show_progress)
        for boundaries, part, law in zip(bar, self.route.parts, self.route.laws, strict=True):
            self.state = [[rows] for rows in self._evaluated(part, known)]
            slopes = self._first_slopes(part, law) if known == (0,) else (self.slope, self.slope * law.state.gain)
            known, (values,), self.law = part.outputs, self.state[0], law
            self.slope, following = slopes
            cut = self._first_look(boundaries, values)
            del values
            yield cut
            del cut
            self.slope = following
            bar.set_postfix(vertices=self.vertices, refresh=False)
        if self.up_to_layer is None or self.up_to_layer == self.net.layers:
            (self.outputs,) = self._evaluated(self.route.last, known)
        self.state = []

    def _evaluated(self, part: Program, known: tuple[int, ...]) -> list[Floats]:
        """The outputs of a part of the network at all vertices, as rows; a limited number at a time."""
        widest = max(blocks[0].shape[1] for blocks in self.state)
        at_once = max(1, ENTRIES_AT_ONCE // max(1, widest))
        results: list[Floats] = []
        done = 0
        for block in zip(*self.state, strict=True):
            for start in range(0, len(block[0]), at_once):
                state = [torch.from_numpy(rows[start : start + at_once]) for rows in block]
                n = len(state[0])
                values = {v: rows.reshape(n, *part.shapes[v]) for v, rows in zip(known, state, strict=True)}
                rows_of = [out.flatten(1) for out in part.resume(values)]
                if n == self.vertices:
                    return [rows.numpy() for rows in rows_of]
                results = results or [np.empty((self.vertices, rows.shape[1])) for rows in rows_of]
                for whole, rows in zip(results, rows_of, strict=True):
                    torch.from_numpy(whole[done : done + n]).copy_(rows)  # on all cores
                done += n
        return results

    def _first_slopes(self, part: Program, law: Law) -> tuple[Floats, Floats]:
        """How fast the input, as its units see it, and the first state change along the plane.

        A unit's slope is at most its row times this. The input itself has slope 1, but of that its rows see little.
        """
        if law.unknown is not None:
            return self.slope, self.slope * law.state.gain
        groups, each = self.directions.shape[:2]
        x = torch.cat([torch.zeros(1, *self.net.input_shape).double(), self.directions.flatten(0, 1)])
        made = [value.flatten(1).numpy() for value in part.resume({0: x[:, None]})]
        steps = [(m[1:] - m[0]).reshape(groups, each, m.shape[1]) for m in made]
        slopes = np.linalg.norm(steps[0], axis=1).max(axis=0, initial=0.0)  # of each unit
        rounding = [2 * (m.noise[0] + m.floor[0]) + ORTHONORMAL for m in (law.row, law.state)]
        seen = law.rows > 0
        steepest = (slopes[seen] / law.rows[seen]).max(initial=0.0) + rounding[0]
        whole = np.sqrt(sum(np.square(step).sum(axis=(1, 2)) for step in steps)).max(initial=0.0)
        gain = law.row.gain[0]
        return np.minimum(self.slope, steepest / gain if gain > 0 else 0.0), np.minimum(
            self.slope * law.state.gain, whole + rounding[1]
        )

    def _first_look(self, boundaries: Boundaries, values: Floats) -> Cut:
        """Which boundaries of a site each vertex is above and below."""
        vertices, width, law = len(values), words(boundaries.count), self.law
        if law.unknown is not None:  # only values themselves say how large errors are
            self.doubt[:, NORM] = np.maximum(self.doubt[:, NORM], np.linalg.norm(values, axis=1))
        cut = Cut(
            boundaries=boundaries,
            values=values,
            fresh=np.empty((0, values.shape[1])),
            above=np.empty((vertices, width), np.uint64),
            below=np.empty((vertices, width), np.uint64),
            parents=np.empty((vertices, 2), np.int32),
            weights=np.empty(vertices),
            doubt=self.doubt,
            rows=law.rows,
            law=self._numbers(law.row),
        )
        self.opened = np.empty(vertices, np.int64)
        self.ties = self._constant_matches(boundaries)
        classify(values, cut.breakpoints, cut.rows, cut.law, cut.doubt, self.ties, cut.above, cut.below, self.opened)
        return cut

    def _constant_matches(self, boundaries: Boundaries) -> Words:
        """The matches at every vertex whose two competitors are the same constant, packed; no rows if none can be."""
        playing = self.tournaments.get(boundaries.tournament or "")
        if playing is None or playing.entrants is None or playing.entrants.site.name not in self.above:
            return np.zeros((0, 0), np.uint64)
        site, bits = playing.entrants.site, self.above[playing.entrants.site.name]
        packed = np.zeros((self.vertices, 8 * words(boundaries.count)), np.uint8)
        at_once = max(1, ENTRIES_AT_ONCE // site.units)
        for start in range(0, self.vertices, at_once):
            rows = slice(start, start + at_once)
            closed = torch.from_numpy(piece_numbers(bits[rows], site.units, 1) == 0)
            found = np.packbits(
                playing.constant_matches(closed, boundaries.site.name).numpy(), axis=1, bitorder="little"
            )
            packed[rows, : found.shape[1]] = found
        return packed.view(np.uint64)

    def moved(self, cut: Cut, vertices: int) -> None:
        """The site has been cut; there are so many vertices now."""
        others = [rows for (rows,) in self.state[1:]]
        self.state = [cut.blocks(vertices)]
        for rows in others:
            fresh = np.empty((vertices - self.vertices, rows.shape[1]))
            kernels.interpolate(rows, fresh, cut.parents, cut.weights)
            self.state.append([rows, fresh])
        self._keep_above(cut, vertices)
        self.vertices = vertices
        law = self.law
        self.doubt = np.empty((vertices, DOUBTS))
        predicates.hand_on(cut.doubt[:vertices], self._numbers(law.state), self.doubt)
        self.doubt[:, NORM] = law.norm_after(cut.doubt[:vertices, NORM], cut.doubt[:vertices, VALUE])

    def _keep_above(self, cut: Cut, vertices: int) -> None:
        """Note which units each vertex is above of sites whose constants compete later; a new one if a parent is."""
        playing = [t for t in self.tournaments.values() if t.entrants is not None and t.entrants.may_close]
        later = {b.site.name for b in self.boundaries if b.first > cut.boundaries.first}
        waiting = {t.entrants.site.name for t in playing if t.entrants is not None and t.rounds[-1].name in later}
        self.above = {name: enlarged(bits, vertices) for name, bits in self.above.items() if name in waiting}
        for bits in self.above.values():
            kernels.inherit(bits, self.vertices, cut.parents)
        site = cut.boundaries.site
        if site.name in waiting:
            first = cut.above[:vertices, : words(site.units)].copy()
            spare = 64 * first.shape[1] - site.units
            first[:, -1] &= np.uint64((1 << (64 - spare)) - 1)
            self.above[site.name] = first

    def _numbers(self, measure: Measure) -> Floats:
        """What compiled kernels know of a law."""
        drift = MOST_TURNS * INTERPOLATION * self.largest
        pairs = (*measure.gain, *measure.noise, *measure.floor, *self.slope)
        return np.array([*pairs, measure.size, measure.offset, drift])

    def thinned(self, stays: NDArray[np.bool_]) -> None:
        """Only these vertices stay."""
        self.state = [[np.concatenate(blocks)[stays]] for blocks in self.state]
        self.doubt = self.doubt[stays]
        self.above = {name: bits[stays] for name, bits in self.above.items()}
        self.vertices = int(stays.sum())

    # exact arithmetic

    @cached_property
    def tournaments(self) -> dict[str, Tournament]:
        """Those whose winners are part of a pattern."""
        names = dict.fromkeys(b.tournament for b in self.boundaries if b.tournament in self.net.winners)
        return {str(name): tournament(self.net, str(name)) for name in names}

    @cached_property
    @np.errstate(invalid="ignore")  # what is infinite is no bound
    def exactly(self) -> Exact:
        """The network in exact arithmetic."""
        sizes, norm = {}, self.reach
        sources = {t.rounds[0].entry: t.source for t in self.tournaments.values()}
        for b, law in zip(self.boundaries, self.route.laws, strict=True):
            norm = norm if law.unknown is None else math.inf
            sizes[b.site.entry] = law.whole.size * norm + law.whole.offset
            if b.site.entry in sources:
                sizes[sources[b.site.entry]] = law.others.size * norm + law.others.offset
            norm = law.norm_after(norm, sizes[b.site.entry])
        return Exact(self.net.program.pruned(list(sizes)), sizes)

    def settled(self, cells: Cells, cell: Indices, meeting: list[Forms], target: Forms, lines: Integers) -> Signs:
        """The signs of forms where two others vanish, exactly; `UNSETTLED` if that cannot be done or is too much."""
        signs = np.full(len(cell), UNSETTLED, np.int8)
        able, moduli = self._affordable(cells, cell, [*meeting, target])
        if able.any():
            forms = [form[able] for form in (*meeting, target)]
            signs[able] = self.exactly.signs(cells, cell[able], forms[:2], forms[2], lines, moduli)
        return signs

    def placed(self, cells: Cells, meetings: "Meetings") -> Floats:
        """The coordinates (n, 2) of meetings, rounded once; NaN if that cannot be done or is too much."""
        found = np.full((len(meetings.cell), 2), np.nan)
        able, moduli = self._affordable(cells, meetings.cell, meetings.forms)
        if able.any():
            forms = [form[able] for form in meetings.forms]
            found[able] = self.exactly.places(cells, meetings.cell[able], forms, meetings.lines, moduli)
        return found

    def _affordable(
        self, cells: Cells, cell: Indices, forms: Sequence[Forms]
    ) -> tuple[NDArray[np.bool_], Sequence[int]]:
        """Which of these forms there is time for, and the primes that they need."""
        values = {int(v) for form in forms for v in np.unique(form.places[:, 0]) if v >= 0}
        affordable = self.budget > 3.0 * self.exactly.work
        moduli = self.exactly.enough(sorted(values), cells.grid()) if affordable else None
        if moduli is None:
            return np.zeros(len(cell), bool), []
        each = 3.0 * len(moduli) * max(self.exactly.work, 1)
        able = np.asarray(np.unique(cell, return_inverse=True)[1] < self.budget / each)
        self.budget -= each * len(np.unique(cell[able]))
        return able, moduli

    def judged(self, site: Boundaries, open_signs: int, unproved: int) -> None:
        """So many signs at a site the bounds left open, and so many of them nothing has proved."""
        self.close_decisions += open_signs
        self.undecided += unproved
        if self.certified and unproved:
            raise Undecided(f"{unproved} signs at site {site.site.name!r} could not be proved: {self._why()}")

    def _why(self) -> str:
        unknown = next((law.unknown for law in self.route.laws if law.unknown), None)
        if unknown:
            return f"there is no bound on the rounding of {unknown}"
        if self.exactly.obstacle:
            return f"they are within the bounds of rounding, and {self.exactly.obstacle} has no exact form"
        return "they are within the bounds of rounding, and exact arithmetic would take too long"


@dataclass(frozen=True)
class Meetings:
    """Points where two lines meet, seen from a cell each; `lines` are those that no unit makes."""

    cell: Indices
    forms: list[Forms]  # two
    lines: Integers


@dataclass(frozen=True)
class Outcome:
    """A cut that was made: signs that were `asked` for (vertex, boundary, cell, line, boundary on it), and how many."""

    made: Cut
    asked: Indices
    opened: int
    torn: bool


class Complex(Protocol):
    """Cells that are being cut, of a plane or along lines."""

    def cut(self, cut: Cut, most: int, settled: Indices) -> "Outcome":
        """Cut all cells by a site; `settled` are signs of new vertices that are known."""

    def kept(self) -> dict[str, Any]:
        """All that a cut changes, as it is now."""

    def exact_cells(self, sweep: Sweep) -> Cells:
        """The cells as they are now, for exact arithmetic."""

    def local_bounds(self, vertices: Indices, units: Indices, cut: Cut) -> Floats:
        """Bounds on the errors of units at vertices, with the slopes that they have around them."""

    def corners(self, vertices: Indices, sweep: Sweep) -> Meetings:
        """Where the vertices are, as the meeting of two lines each."""

    def meetings(self, cell: Indices, line: Indices, other: Indices, sweep: Sweep) -> Meetings:
        """The meetings of lines in cells."""

    def twins(self, signs: Indices, before: dict[str, Any]) -> Indices:
        """Signs at new vertices (cell, line, boundary on it, boundary, sign), also as other cells may ask for them."""


def cut_by_site(cells: Complex, sweep: Sweep, cut: Cut, most: int) -> Cut:
    """Cut all cells by a site, with every sign that is not proved settled in exact arithmetic, if that can be done.

    The cut is made with the signs as they seem. If exact arithmetic finds another one, it is made again with that.
    """
    before, as_they_were = cells.kept(), cells.exact_cells(sweep)
    opened, unproved = settle_vertices(cells, as_they_were, sweep, cut)
    known, signs = np.zeros((0, 5), np.int64), np.zeros(0, np.int8)
    while True:
        outcome = cells.cut(cut, most, known)
        if len(outcome.asked) == 0:
            break
        vertex, boundary, cell, line, maker = outcome.asked.T
        meetings = cells.meetings(cell, line, maker + cut.boundaries.first, sweep)
        signs = settled_signs(as_they_were, sweep, cut, meetings, boundary)
        wrong = (signs != UNSETTLED) & (signs != signs_of(outcome.made, vertex, boundary))
        if not wrong.any():
            break
        known = np.concatenate([known, cells.twins(np.stack([cell, line, maker, boundary, signs], 1)[wrong], before)])
        vars(cells).update(before)
    if outcome.torn:
        raise ArithmeticError("rounding has torn a cell: a boundary crosses it more than once; look at a larger part")
    unproved += outcome.opened - int((signs != UNSETTLED).sum())
    sweep.judged(cut.boundaries, opened + outcome.opened, unproved)
    return outcome.made


def settle_vertices(cells: Complex, as_they_were: Cells, sweep: Sweep, cut: Cut) -> tuple[int, int]:
    """Settle the signs at the vertices there are; returns how many bounds leave open, and how many are not proved.

    A look at the slopes that a unit has around a vertex often decides, where norms of the network did not.
    """
    opened = int(sweep.opened.sum())
    if opened == 0:
        return 0, 0
    vertex, boundary = open_signs(
        cut.values, cut.breakpoints, cut.rows, cut.law, cut.doubt, sweep.ties, sweep.opened, ASKED_AT_ONCE
    ).T
    unit, level = boundary % cut.values.shape[1], cut.breakpoints[boundary // cut.values.shape[1]]
    away = cut.values[vertex, unit] - level
    clear = np.abs(away) > cells.local_bounds(vertex, unit, cut) + 2 * EPS * np.abs(level)
    signs = np.where(clear, np.sign(away), UNSETTLED).astype(np.int8)
    rest = np.flatnonzero(~clear)
    if len(rest):
        signs[rest] = settled_signs(as_they_were, sweep, cut, cells.corners(vertex[rest], sweep), boundary[rest])
    cut.set_signs(vertex, boundary, signs)
    return opened - int(clear.sum()), opened - int((signs != UNSETTLED).sum())


def settled_signs(cells: Cells, sweep: Sweep, cut: Cut, meetings: Meetings, boundary: Indices) -> Signs:
    """The signs of boundaries of a site at meetings of lines."""
    target = forms_of(boundary + cut.boundaries.first, sweep.boundaries)
    signs = np.full(len(boundary), UNSETTLED, np.int8)
    signs[tied(cells, sweep, cut, meetings.cell, boundary)] = 0
    asked = np.flatnonzero((meetings.cell >= 0) & (signs == UNSETTLED))
    if len(asked):
        forms = [form[asked] for form in (*meetings.forms, target)]
        signs[asked] = sweep.settled(cells, meetings.cell[asked], forms[:2], forms[2], meetings.lines)
    return signs


def tied(cells: Cells, sweep: Sweep, cut: Cut, cell: Indices, boundary: Indices) -> NDArray[np.bool_]:
    """The matches of a tournament in which, in these cells, a competitor meets itself, or two are the same constant."""
    playing = sweep.tournaments.get(cut.boundaries.tournament or "")
    if playing is None or not len(cell):
        return np.zeros(len(cell), bool)
    used, place = np.unique(cell, return_inverse=True)
    choices = cells.choices(used)
    later = {s.name: torch.zeros(len(used), s.units, dtype=torch.bool) for s in playing.rounds}
    above = later | {s.name: choices[s.exit] > 0 for s in playing.rounds if s.exit in choices}
    first, second = playing.played(above)[1][cut.boundaries.site.name][place, boundary].T
    same = first == second
    if playing.entrants is not None:
        constants = playing.entrants.known(choices[playing.entrants.site.exit])
        same |= (constants[place, first] >= 0) & (constants[place, first] == constants[place, second])
    return np.asarray(same.numpy() & (cell >= 0))


def signs_of(cut: Cut, vertex: Indices, boundary: Indices) -> Signs:
    word, one = boundary >> 6, np.uint64(1) << (boundary & 63).astype(np.uint64)
    above, below = ((bits[vertex, word] & one) != 0 for bits in (cut.above, cut.below))
    return np.asarray(above.astype(np.int8) - below.astype(np.int8))


def forms_of(labels: Indices, boundaries: list[Boundaries]) -> Forms:
    """The forms that vanish on boundaries; a negative label stands for the line number -1 - label."""
    site, unit = owners(labels, boundaries)
    places = np.stack([np.full(len(labels), -1), -1 - labels, np.full(len(labels), -1)], axis=1)
    levels = np.zeros(len(labels))
    for number in np.unique(site[site >= 0]):
        mine, b = site == number, boundaries[number]
        places[mine, 0], places[mine, 1] = b.site.entry, unit[mine]
        levels[mine] = np.array(b.site.breakpoints)[(labels[mine] - b.first) // b.site.units]
    return Forms(places, levels)


def usual_errors(
    net: Network, norm: Floats, error: Floats, entering: Sequence[Floats], *, linear: bool = False
) -> list[Floats]:
    """How far from the true numbers what enters each site of a frozen network usually is, (n, units).

    `norm` (n,) is that of the points, `error` how far off they are, `entering` the norms of what enters each site. Or
    `linear`, of tangents instead of points: constants do not count.
    """
    return _errors(route(net, numbered(net.sites)).laws, norm, error, entering, linear, 1)


def proved_errors(
    net: Network, norm: Floats, error: Floats, entering: Sequence[Floats], *, linear: bool = False
) -> list[Floats]:
    """The same as a proof, and of the outputs too, (n, outputs), which come last."""
    found = _errors(_laws_to_output(net), norm, error, [*entering, np.zeros_like(norm)], linear, 0)
    return [np.where(np.isnan(e), np.inf, e) for e in found]


def usual_output_errors(net: Network, norm: Floats, error: Floats, entering: Sequence[Floats]) -> Floats:
    """How far from the true numbers the outputs of a frozen network usually are, (n, outputs)."""
    return _errors(_laws_to_output(net), norm, error, [*entering, np.zeros_like(norm)], False, 1)[-1]


def _laws_to_output(net: Network) -> list[Law]:
    """The laws of the parts before all sites and of the last part, which ends at the output."""
    sites = [b.site for b in numbered(net.sites)]
    entries = [site.entry for site in sites]
    program = replace(net.program.pruned([*entries, net.output]), outputs=(net.output,))
    return list(laws_of(program.segments(entries), [*sites, None]))


@np.errstate(all="ignore")  # what is infinite is no bound
def _errors(
    laws: Sequence[Law], norm: Floats, error: Floats, entering: Sequence[Floats], linear: bool, c: int
) -> list[Floats]:
    """Bounds of one of the two kinds, from law to law."""
    errors = []
    for each, value in zip(laws, entering, strict=True):
        law = each.linear() if linear else each
        norm = norm if law.unknown is None else np.maximum(norm, value)
        spread, handed_on = (m.gain[c] * error + m.noise[c] * norm + m.floor[c] for m in (law.row, law.state))
        errors.append(np.asarray(law.rows * (spread + FAINT * (norm > 0))[:, None]))
        error, norm = handed_on, law.norm_after(norm, value)
    return errors


def exact_pieces(
    net: Network, plane: Plane, u: Floats, sites: int
) -> tuple[list[Ints], dict[str, NDArray[np.int64]]] | None:
    """The piece of every unit (n, units) of the first sites at plane coordinates u (n, 2), in exact arithmetic.

    Also who wins the tournaments. None if the network has an operation without an exact form.
    """
    doubt = first_doubt(plane.origin.reshape(1, *net.input_shape), np.zeros(1))
    reach = float(plane.origin.norm()) + 2 * float(np.abs(u).sum(axis=1).max(initial=0.0))
    directions = torch.from_numpy(plane.axes).reshape(1, 2, *net.input_shape)
    sweep = Sweep(net, plane.origin.reshape(1, *net.input_shape), doubt, 1.0, directions, reach)
    origin, axes, at = plane.origin.flatten(), torch.from_numpy(plane.axes), torch.from_numpy(u)
    grid = grid_of(origin).join(grid_of(at).product(grid_of(axes)))

    def points(p: int) -> Tensor:
        along = reduced(remainders(at, p) @ remainders(axes, p), p)
        return reduced(remainders(origin, p) + along, p).reshape(-1, *net.input_shape)

    found = sweep.exactly.pieces(points, grid, [b.site for b in sweep.boundaries[:sites]])
    if found is None:
        return None
    winners = {}
    for name, playing in sweep.tournaments.items():
        above = {s.name: torch.from_numpy(found[s.exit] > 0) for s in playing.rounds}
        winners[name] = playing.numbers[playing.played(above)[0]].numpy()
    return [found[b.site.exit] for b in sweep.boundaries[:sites]], winners


def is_last_round(boundaries: Boundaries, all_of_them: list[Boundaries]) -> bool:
    """Whether a tournament is over after this site."""
    return [b for b in all_of_them if b.tournament == boundaries.tournament][-1] is boundaries


def say_if_compiling() -> None:
    """Tell on standard error that the first call takes longer, if the compiled kernels are not cached."""
    kernel: Any = kernels.cut_cells
    if not kernel.signatures and not any(Path(kernel._cache.cache_path).glob("kernels.cut_cells-*.nbi")):
        print("regionscope: compiling the geometry kernels, once, about 10 seconds", file=sys.stderr, flush=True)


class TooManyCells(RuntimeError):
    """More cells than `max_cells`."""


def run_to_the_end(kernel: Callable[[], int], grow: Callable[[], None], stopped: Callable[[], str]) -> bool:
    """Call a kernel again with more room until it is done; returns whether it had to stop at a torn cell."""
    while (outcome := kernel()) != kernels.DONE:
        if outcome == kernels.TOO_MANY:
            raise TooManyCells(stopped())
        if outcome == kernels.TORN:
            return True
        grow()
    return False


def first_doubt(points: Tensor, error: Floats) -> Floats:
    """What is known of points that were rounded by so much at most."""
    doubt = np.zeros((len(points), DOUBTS))
    doubt[:, [ERROR, ERROR + 1]] = error[:, None]
    doubt[:, NORM] = (points.flatten(1).norm(dim=1) + FAINT * (points.flatten(1) != 0).any(dim=1)).numpy()
    return doubt
