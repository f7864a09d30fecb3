"""What a sweep carries from site to site: the values at all vertices, and how far off they may be."""

import copy
import math
from dataclasses import replace

import numpy as np
import torch

from regionscope.geometry import kernels, settling, traversals
from regionscope.geometry.adjoints import Adjoints
from regionscope.geometry.bases import Basis
from regionscope.geometry.complexes import Complex, Cut, Outcome, Start
from regionscope.geometry.evaluation import fill_tables, part_outputs
from regionscope.geometry.laws import Law, route
from regionscope.geometry.lineage import Among, Lineage
from regionscope.geometry.patterns import Boundaries, PatternTable, columns_of, packed_bits
from regionscope.geometry.predicates import (
    CARRIED,
    DOUBTS,
    EPS,
    ERROR,
    FAINT,
    INTERPOLATION,
    MOST_TURNS,
    MOVED,
    NORM,
    ORTHONORMAL,
    SHIFT,
    VALUE,
    words,
)
from regionscope.geometry.rounding import Spread
from regionscope.geometry.rows import SMALL, Rows, larger_copy, usual_room
from regionscope.geometry.settling import Judge
from regionscope.geometry.slopes import followed_slopes, told_slope
from regionscope.geometry.standings import Standings
from regionscope.geometry.summed import Summed
from regionscope.machine import threads_for
from regionscope.tracing.network import Network, Site
from regionscope.tracing.program import Program
from regionscope.types import Bools, Floats, Indices, Words

GROWN = 16.0  # by so much a bound on slopes may grow before they are looked at
COMPARISONS = frozenset({"gt", "lt", "ge", "le", "eq", "ne", "sign", "argmax", "argmin", "nan_to_num"})  # lose NaN


class Swept:
    """What a sweep carries from site to site: values at all vertices, how far they may be off, what cells are above.

    After it, `outputs` are those of the network at the vertices; None if it stopped at a layer.
    """

    def __init__(
        self,
        net: Network,
        start: Start,
        boundaries: list[Boundaries],
        certified: bool,
        exactly: bool,
        in_rows: bool = False,
    ) -> None:
        self.net, self.boundaries = net, boundaries
        self.columns = columns_of(boundaries, net)
        self.judge = Judge(net, boundaries, start.reach, certified, settling.WORK if exactly else 0.0)
        self.lineage = Lineage.of(start.cells)
        self.vertices, self.state = len(start.points), [Rows.of(start.points.numpy())]
        self.doubt = np.zeros((self.vertices, DOUBTS))  # see `predicates`
        self.doubt[:, [ERROR, ERROR + 1]] = start.error[:, None]
        self.doubt[:, NORM] = torch.linalg.vector_norm(start.points, dim=1) + FAINT * start.points.any(dim=1)
        self.outputs: Floats | None = None
        self._directions = start.directions
        self._drift = MOST_TURNS * INTERPOLATION * start.largest
        self._slope = np.full(2, 1 + ORTHONORMAL)  # at most how fast the state changes along the plane, and usually
        self._told: float | None = None  # the same of the state that enters the next site, as its values tell
        self._grown = 1.0  # by what norms have let it grow since it was told
        self._standings = Standings()
        self._done: Words | None = None  # boundaries of the site that cuts, which have cut in earlier passes
        self._chosen: Words | None = None  # those that cut in this one, if not all do
        self._moved: Floats | None = None  # MOVED of earlier passes
        self.table: PatternTable | None = None  # the patterns of cells that were found in blocks
        self.still = _input_with_nan(net, start)
        self._boundaries_now = 0  # of the site that was looked at last
        self.summed: Summed | None = None  # if so, the state is the values of units that may switch, and weights
        if in_rows and start.frame is not None:
            rows, weights = start.frame()
            self.summed = Summed(Basis.of(rows), Adjoints(route(net, boundaries), [b.site for b in boundaries]))
            self.state = [Rows(self.vertices, 0), Rows.of(weights)]

    @property
    def close_decisions(self) -> int:
        """How many signs bounds on rounding did not decide."""
        return self.judge.close_decisions

    @property
    def undecided(self) -> int:
        """How many of them exact arithmetic did not settle."""
        return self.judge.undecided

    @property
    def among(self) -> Among | None:
        """The units that the state has the values of, if not of all."""
        return None if self.summed is None else self.summed.among

    def patterns(self) -> Words | PatternTable:
        """The packed patterns of all cells."""
        if self.table is None and self.summed is not None:
            return PatternTable((self.lineage.block(self.columns),))
        return self.lineage.patterns(self.columns) if self.table is None else self.table

    # evaluation

    def advance(self, part: Program, known: tuple[int, ...], behind: Site | None, law: Law) -> None:
        """Take the state through a part of the network; if it is large, in the memory it has.

        Tables that become wider are filled from the end, others from the begin: what is not yet read is not written.
        The part begins `behind` a site.
        """
        if self.summed is not None:
            self._advance_rows(self.summed, part, known, behind, law)
            return
        widths = [math.prod(part.shapes[v]) for v in part.outputs]
        old, before = self.state, [rows.width for rows in self.state]
        shared = list(zip(widths, before, strict=False))
        backwards = all(new >= was for new, was in shared)
        large = self.vertices * max(*widths, *before) > SMALL
        made = [
            old[i] if large and i < len(old) and (backwards or width <= before[i]) else Rows(self.vertices, width)
            for i, width in enumerate(widths)
        ]
        for rows, width in zip(made, widths, strict=True):
            rows.make_room(self.vertices, width)
        sources = [rows.table(self.vertices, width) for rows, width in zip(old, before, strict=True)]
        targets = [rows.table(self.vertices, width) for rows, width in zip(made, widths, strict=True)]
        fill_tables(targets, part, known, sources, backwards)
        for rows, width in zip(made, widths, strict=True):
            rows.width = width
        self.state = made

    def finish(self, part: Program, known: tuple[int, ...], behind: Site | None) -> None:
        """Take the state through the last part of the network: what comes out are the outputs."""
        if self.summed is not None:
            basis, weights = self._advance_rows(self.summed, part, known, behind, None)
            self.outputs = basis.values(weights)
        else:
            self.outputs = np.empty((self.vertices, math.prod(part.shapes[part.outputs[0]])))
            fill_tables([self.outputs], part, known, [rows.table(self.vertices) for rows in self.state])

    def _advance_rows(
        self, summed: Summed, part: Program, known: tuple[int, ...], behind: Site | None, law: Law | None
    ) -> tuple[Basis, Floats]:
        """The same for rows that the state is the sum of; returns these, and their weights."""
        values, old = (rows.table(self.vertices) for rows in self.state)
        self.summed, weights, norm = summed.after(part, known, behind, law, values, old, self.doubt)
        del values, old  # memory that the copy needs
        self.state = []
        self.state = [Rows(self.vertices, 0), Rows.of(weights)]
        self.doubt[:, NORM] = norm
        return self.summed.basis, weights

    def fold(self) -> None:
        """Leave rows out whose units do not switch here, if this block is a part of that which they were made for."""
        if self.summed is not None and self.summed.parted:
            self.summed, weights, errors = self.summed.folded(self.state[1].table(self.vertices), self.doubt)
            self.state[1] = Rows.of(weights)
            self.doubt[:, [ERROR, ERROR + 1]] += errors

    def _look_at_rows(self, summed: Summed, law: Law) -> Summed:
        """Find the units that may switch, and their values at all vertices."""
        if summed.among is None:
            weights, doubt = self.state[1].table(self.vertices), self.doubt[: self.vertices]
            summed = summed.looked_at(weights, doubt, law, self._numbers(law.row), self._steep(law)[0])
            assert summed.among is not None
            self.state[0] = Rows.of(summed.basis.values(weights, summed.among.numbers))
        return summed

    def look(self, part: Program, law: Law, boundaries: Boundaries, first: bool) -> tuple[Cut, Floats]:
        """The site that comes next, with the sides of its boundaries on which vertices are; and how steep what follows
        is."""
        before, following = self._first_slopes(part, law) if first else (self._slope, self._slope * law.state.gain)
        self._slope = before
        if self._told is not None:
            following = np.minimum(following, self._told)
        if self.summed is not None:
            self.summed = self._look_at_rows(self.summed, law)
        labels = np.arange(boundaries.count, dtype=np.int32) + np.int32(boundaries.first)
        each, steep = law.rows, self._steep(law)
        if self.among is not None:
            some = self.among.numbers
            labels, each, steep = labels[some], each[some], steep[:, some]
        rows, n, width = self.state[0], self.vertices, words(len(labels))
        self._boundaries_now = len(labels)
        values = rows.table(n)
        if law.unknown is not None:  # only values themselves say how large errors are
            self.doubt[:, NORM] = np.maximum(self.doubt[:, NORM], np.linalg.norm(values, axis=1))
        room = usual_room(n)
        self.doubt = larger_copy(self.doubt, room)
        vertices = kernels.Vertices(
            values=values,
            above=np.empty((room, width), np.uint64),
            below=np.empty((room, width), np.uint64),
            doubt=self.doubt,
            parents=np.empty((room, 3), np.int32),
            weights=np.empty(room),
        )
        numbers = self._numbers(law.row)
        if self.summed is not None and boundaries.first > 0:
            self.summed = self.summed.with_carried()
            numbers[CARRIED] = self.summed.most_carried(each)
        rule = kernels.Rule(np.array(boundaries.site.breakpoints), each, np.ascontiguousarray(steep), numbers, labels)
        ties, opened = self._constant_matches(boundaries), np.empty(n, np.int32)
        for bits in (self._done, None if self._chosen is None else ~self._chosen):
            ties = ties if bits is None else _with_bits(ties, bits, n)
        kernels.classify(vertices, rule, ties, opened)
        if opened.any() and (constant := self._constant_units(boundaries, vertices, rule)) is not None:
            fixed, above, below = constant
            ties = _with_bits(ties, fixed, n)
            kernels.classify(vertices, rule, ties, opened)
            vertices.above[:n] |= above
            vertices.below[:n] |= below
        return Cut(boundaries, n, rows, vertices, rule, ties, opened), following

    def _constant_units(
        self, boundaries: Boundaries, vertices: kernels.Vertices, rule: kernels.Rule
    ) -> tuple[Words, Words, Words] | None:
        """The boundaries whose units are constant wherever the sweep goes, those that these are above, and those that
        they are proved to be below, packed.

        One look decides for all vertices: blank pixels would have exact arithmetic settle the same sign at each.
        """
        constants, units = self.judge.constant_values.get(boundaries.site.entry), vertices.values.shape[1]
        if constants is not None and self.among is not None:
            constants = constants[self.among.numbers]
        if constants is None or np.isnan(constants).all():
            return None
        fixed = np.tile(~np.isnan(constants), len(rule.breakpoints))
        z = (np.nan_to_num(constants)[None] - rule.breakpoints[:, None]).ravel()
        rows, slack = np.tile(rule.rows, len(rule.breakpoints)), 2 * EPS * np.repeat(np.abs(rule.breakpoints), units)
        bounds = [np.asarray(rows * kernels.error_of(vertices.doubt, rule.law, 0, c) + slack) for c in range(2)]
        above = z > bounds[1]
        opened = np.flatnonzero(fixed & ~(np.abs(z) > bounds[0]) & ~((z == 0) & (bounds[0] == 0)))
        if len(opened):
            signs = self.judge.constant_sides(boundaries, (rule.labels[opened] - boundaries.first).astype(np.int64))
            above[opened] = above[opened] if signs is None else signs
            self.judge.count(boundaries, len(opened), len(opened) if signs is None else 0)
        below = fixed & ~above & (z < -bounds[0])
        return packed_bits(fixed[None]), packed_bits((fixed & above)[None]), packed_bits(below[None])

    def _first_slopes(self, part: Program, law: Law) -> tuple[Floats, Floats]:
        """How fast the input, as its units see it, and the first state change along the plane.

        A unit's slope is at most its row times this. The input itself has slope 1, but of that its rows see little.
        """
        if law.unknown is not None:
            return self._slope, self._slope * law.state.gain
        groups, each = self._directions.shape[:2]
        x = np.zeros((1 + groups * each, self._directions.shape[2]))
        x[1:] = self._directions.flatten(0, 1)
        with threads_for(len(x) * part.held_entries):
            made = [value.numpy() for value in part_outputs(part, (0,), [x])]
        steps = [(m[1:] - m[0]).reshape(groups, each, m.shape[1]) for m in made]
        slopes = np.linalg.norm(steps[0], axis=1).max(axis=0, initial=0.0)  # of each unit
        rounding = [2 * (m.noise[0] + m.floor[0]) + ORTHONORMAL for m in (law.row, law.state)]
        seen = law.rows > 0
        steepest = (slopes[seen] / law.rows[seen]).max(initial=0.0) + rounding[0]
        whole = np.sqrt(sum(np.square(step).sum(axis=(1, 2)) for step in steps)).max(initial=0.0)
        gain = law.row.gain[0]
        return np.minimum(self._slope, steepest / gain if gain > 0 else 0.0), np.minimum(
            self._slope * law.state.gain, whole + rounding[1]
        )

    @np.errstate(invalid="ignore")  # what is infinite is no bound
    def _steep(self, law: Law) -> Floats:
        """At most how fast each unit changes along the plane, and usually, (2, units)."""
        steep: Floats = law.rows * (law.row.gain * self._slope)[:, None]
        steep = steep if self._told is None else np.minimum(steep, self._told)
        return steep if self.summed is None else np.minimum(steep, self.summed.basis.steepness)

    def tell_slope(self, cells: Complex, part: Program, law: Law, number: int) -> None:
        """Look how fast the state that enters a site changes, if norms have let that grow much since the last look."""
        self._told = None
        if number == 0 or self.summed is not None or law.unknown is not None or law.passes:
            return
        self._grown *= float(law.state.gain[0])
        if not self._grown > GROWN:
            return
        doubt, loose = self.doubt[: self.vertices], float(self._slope[0] * law.state.gain[0])
        error = sum(kernels.sure_errors(doubt, self._numbers(spread)) for spread in (law.whole, law.others))
        tables = [rows.table(self.vertices) for rows in self.state]

        def followed(frames: Indices) -> Floats:
            axes, chosen = cells.axes(frames)
            choices = self.lineage.pieces(self.boundaries, chosen)
            laws = route(self.net, self.boundaries).laws[: number + 1]
            return followed_slopes(self.net, laws, part.outputs, axes, choices)

        self._told = told_slope(cells, tables, error, doubt[:, SHIFT] + self._drift, loose, followed)
        self._grown = 1.0

    def _numbers(self, spread: Spread) -> Floats:
        """What compiled kernels know of a law."""
        spread = spread if self.summed is None else self.summed.rounded(spread)
        pairs = (*spread.gain, *spread.noise, *spread.floor)
        return np.array([*pairs, spread.size, spread.offset, self._drift, np.inf])

    def _constant_matches(self, boundaries: Boundaries) -> Words:
        """The matches at every vertex whose two competitors are the same constant, packed; no rows if none can be."""
        played = boundaries.tournament
        playing = self.judge.tournaments.get(played) if played is not None else None
        if playing is None:
            return np.zeros((0, 0), np.uint64)
        everywhere = self.judge.constant_numbers(playing).to(torch.int32).numpy()
        return self._standings.constant_matches(playing, everywhere, boundaries, self.vertices)

    def choose(self, cut: Cut, most: int) -> None:
        """Let only some of the boundaries that will cut do so now, so many at most."""
        over, under = (np.bitwise_or.reduce(b[: cut.old], axis=0) for b in (cut.vertices.above, cut.vertices.below))
        bits = np.unpackbits((over & under).view(np.uint8), bitorder="little")
        cutting = np.flatnonzero(bits)
        some = cutting[np.linspace(0, len(cutting) - 1, max(1, min(most, len(cutting) // 2))).astype(np.int64)]
        chosen = np.zeros(len(bits), bool)
        chosen[some] = True
        self._chosen = packed_bits(chosen[None])
        self._done = np.zeros_like(self._chosen) if self._done is None else self._done

    # what a cut changes

    @property
    def vertex_bytes(self) -> int:
        """What a vertex takes while the site cuts that was looked at: values, signs, the pattern of about one cell."""
        return 8 * sum(rows.width for rows in self.state) + 24 * words(self._boundaries_now) + 300

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        rows = 8 * self.vertices * sum(r.width for r in self.state)
        return rows + 8 * DOUBTS * self.vertices + self.lineage.nbytes

    def bytes_to_advance(self, part: Program) -> int:
        """What the state takes while it goes through a part of the network."""
        widths = sum(math.prod(part.shapes[v]) for v in part.outputs)
        if self.summed is not None:
            return self.summed.bytes_to_advance(widths, self.vertices)
        return 8 * self.vertices * (widths + sum(rows.width for rows in self.state))

    def part(self, vertices: Indices, cells: Indices, *, advanced: bool, in_place: bool = False) -> "Swept":
        """What is carried of some of the vertices and cells; they may have `advanced` to a site that has not cut.

        If `in_place`, it takes over the memory of the whole, which is of no use afterwards: no more than a block may
        have, and what it does not need of that it may soon.
        """
        part = copy.copy(self)
        if self.summed is not None:
            among = None if advanced and self._done is None else self.among  # there may be fewer
            part.summed = replace(self.summed, parted=True, among=among)
        part.vertices = len(vertices)
        part.state = self._left(vertices) if in_place else [rows.chosen(vertices) for rows in self.state]
        part.doubt, part.lineage = self.doubt[vertices], self.lineage.part(cells)
        part._standings = self._standings.of(vertices)
        part._moved = None if self._moved is None else self._moved[vertices]
        return part

    def _left(self, vertices: Indices) -> list[Rows]:
        """The state with some of the vertices, whose numbers rise, alone."""
        stays = np.zeros(self.vertices, bool)
        stays[vertices] = True
        left, self.state = self.state, []
        for rows in left:
            rows.keep(stays)
        return left

    def follow(self, outcome: Outcome, law: Law, following: Floats, *, whole: bool = True) -> None:
        """The site has cut: its new vertices belong to the state, and its cells are those that there are now.

        Unless it has cut as a `whole`, its values stay until its other boundaries cut.
        """
        cut, n = outcome.made, outcome.vertices
        for rows in self.state[1:]:
            rows.make_room(n)
            traversals.interpolate(rows.table(n), self.vertices, cut.vertices.parents, cut.vertices.weights)
        if self.judge.tournaments:
            later = {b.site.name for b in self.boundaries if b.first > cut.boundaries.first}
            self._standings = self._standings.after(cut, n, list(self.judge.tournaments.values()), later)
        if not whole or self._moved is not None:
            moved = np.zeros(n) if self._moved is None else larger_copy(self._moved, n)
            traversals.inherit_largest(moved, self.vertices, cut.vertices.parents)
            cut.vertices.doubt[:n, MOVED] += moved
            self._moved = None if whole else cut.vertices.doubt[:n, MOVED].copy()
        self.vertices = n
        self.doubt = cut.vertices.doubt[:n]
        done, chosen = self._done, self._chosen
        self._done = self._chosen = None
        if not whole:
            assert done is not None and chosen is not None
            self._done = done | chosen
            return
        if self.summed is not None:
            first = cut.boundaries.first == 0
            self.summed = self.summed.noted(self.doubt, cut.rule, self._numbers(law.state), first=first)
        norm = law.norm_after(self.doubt[:, NORM], self.doubt[:, VALUE])
        kernels.hand_on(self.doubt, self._numbers(law.state))
        self.doubt[:, NORM] = norm
        self._slope = following

    def thin(self, stays: Bools) -> None:
        """Only these vertices stay."""
        for rows in self.state:
            rows.thin(stays)
        self.doubt = self.doubt[stays]
        self._standings = self._standings.of(stays)
        self.vertices = int(stays.sum())


def _with_bits(table: Words, bits: Words, rows: int) -> Words:
    """These bits in every row of a table too, which may have no rows as yet."""
    return np.asarray(table | bits) if len(table) else np.tile(bits, (rows, 1))


def _input_with_nan(net: Network, start: Start) -> Floats | None:
    """An input (1, entries) with NaN where inputs change: what comes of it is a number only where nothing ever does."""
    if start.moving is None or start.moving.all() or not COMPARISONS.isdisjoint(s.name for s in net.program.steps):
        return None
    return np.asarray(torch.where(start.moving, torch.nan, start.points[:1]).numpy())
