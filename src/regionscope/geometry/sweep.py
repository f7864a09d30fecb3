"""Carries the vertices of a complex through a network, site by site, and has every site cut the cells.

Between the boundaries of earlier sites everything is affine, so the values of a new vertex lie between those of its two
neighbours on the edge where it was made. The network is therefore evaluated part by part, from one site to the next,
each part once at every vertex there is by then: less than one forward pass at the vertices of the result. Beside the
values goes a bound on their errors (see `laws`); signs that it does not decide are settled in exact arithmetic. Cells
whose values would take too much memory go on in blocks, depth first (see `budget`).
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry import kernels, traversals
from regionscope.geometry.budget import LEAST, OVER, Budget, TooMuchMemory
from regionscope.geometry.complexes import Complex, Cut, Finish, Outcome, Start, TooManyCells
from regionscope.geometry.laws import Law, Way, route
from regionscope.geometry.lineage import Lineage
from regionscope.geometry.patterns import (
    Boundaries,
    PatternBlock,
    PatternTable,
    columns_of,
    numbered,
    piece_numbers,
)
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
    SHIFT,
    VALUE,
    words,
)
from regionscope.geometry.rounding import Spread
from regionscope.geometry.rows import Rows, enlarged
from regionscope.geometry.settling import Judge, Still, cut_by_site
from regionscope.geometry.tournaments import Bracket
from regionscope.machine import points_at_once, return_freed_memory
from regionscope.progress import tqdm
from regionscope.tracing.network import Network, Site, as_rows
from regionscope.tracing.program import Program
from regionscope.types import Bools, Floats, Indices, Words

MUCH = 1 << 28  # bytes of values: from here on holes in the heap are given back
ROOM = 1 << 10  # for new vertices, at least
COMPARISONS = frozenset({"gt", "lt", "ge", "le", "eq", "ne", "sign", "argmax", "argmin", "nan_to_num"})  # lose NaN
FEW = 64  # cells: so few are not split if the site that cuts them can do so in passes
MOST_PARTS = 16  # that a block is split into
ENTRIES_AT_ONCE = 1 << 18  # floats of a state that go through a part of the network together: they stay in the heap


class Sweep:
    """What a sweep carries from site to site: values at all vertices, how far they may be off, what cells are above.

    After it, `outputs` are those of the network at the vertices; None if it stopped at a layer.
    """

    def __init__(self, net: Network, start: Start, boundaries: list[Boundaries], certified: bool) -> None:
        self.net, self.boundaries = net, boundaries
        self.columns = columns_of(boundaries, net)
        self.judge = Judge(net, boundaries, start.reach, certified)
        self.lineage = Lineage.of(start.cells)
        self.vertices, self.state = len(start.points), [Rows.of(start.points.numpy())]
        self.doubt = np.zeros((self.vertices, DOUBTS))  # see `predicates`
        self.doubt[:, [ERROR, ERROR + 1]] = start.error[:, None]
        self.doubt[:, NORM] = (start.points.norm(dim=1) + FAINT * (start.points != 0).any(dim=1)).numpy()
        self.outputs: Floats | None = None
        self._directions = start.directions
        self._drift = MOST_TURNS * INTERPOLATION * start.largest
        self._slope = np.full(2, 1 + ORTHONORMAL)  # at most how fast the state changes along the plane, and usually
        self._above: dict[str, Words] = {}  # of sites whose constants compete in tournaments, at every vertex
        self._below: dict[str, Words] = {}  # of rounds of a tournament that goes on
        self._done: Words | None = None  # boundaries of the site that cuts, which have cut in earlier passes
        self._chosen: Words | None = None  # those that cut in this one, if not all do
        self._moved: Floats | None = None  # MOVED of earlier passes
        self.table: PatternTable | None = None  # the patterns of cells that were found in blocks
        self.still = _poisoned(net, start)

    @property
    def close_decisions(self) -> int:
        """How many signs bounds on rounding did not decide."""
        return self.judge.close_decisions

    @property
    def undecided(self) -> int:
        """How many of them exact arithmetic did not settle."""
        return self.judge.undecided

    def patterns(self) -> Words | PatternTable:
        """The packed patterns of all cells."""
        return self.lineage.patterns(self.columns) if self.table is None else self.table

    # evaluation

    def advance(self, part: Program, known: tuple[int, ...]) -> None:
        """Take the state through a part of the network, in the memory it has, a limited number of vertices at a time.

        Tables that become wider are filled from the end, others from the begin: what is not yet read is not written.
        """
        widths = [math.prod(part.shapes[v]) for v in part.outputs]
        old, before = self.state, [rows.width for rows in self.state]
        shared = list(zip(widths, before, strict=False))
        backwards = all(new >= was for new, was in shared)
        made = [
            old[i] if i < len(old) and (backwards or width <= before[i]) else Rows(self.vertices, width)
            for i, width in enumerate(widths)
        ]
        for rows, width in zip(made, widths, strict=True):
            rows.make_room(self.vertices, width)
        sources = [rows.table(self.vertices, width) for rows, width in zip(old, before, strict=True)]
        targets = [rows.table(self.vertices, width) for rows, width in zip(made, widths, strict=True)]
        at_once = points_at_once(max(1, *before), floats=ENTRIES_AT_ONCE)
        starts = range(0, self.vertices, at_once)
        for start in reversed(starts) if backwards else starts:
            some = slice(start, min(start + at_once, self.vertices))
            for target, result in zip(targets, _evaluated(part, known, [s[some] for s in sources]), strict=True):
                torch.from_numpy(target[some]).copy_(result)  # on all cores
        for rows, width in zip(made, widths, strict=True):
            rows.width = width
        self.state = made

    def look(self, part: Program, law: Law, boundaries: Boundaries, first: bool) -> tuple[Cut, Floats]:
        """The site that comes next, with the sides of its boundaries on which vertices are; and how steep what follows
        is."""
        before, following = self._first_slopes(part, law) if first else (self._slope, self._slope * law.state.gain)
        self._slope = before
        rows, n, width = self.state[0], self.vertices, words(boundaries.count)
        values = rows.table(n)
        if law.unknown is not None:  # only values themselves say how large errors are
            self.doubt[:, NORM] = np.maximum(self.doubt[:, NORM], np.linalg.norm(values, axis=1))
        room = 3 * n + ROOM  # what is not used takes no memory
        self.doubt = enlarged(self.doubt, room)
        vertices = kernels.Vertices(
            values=values,
            above=np.empty((room, width), np.uint64),
            below=np.empty((room, width), np.uint64),
            doubt=self.doubt,
            parents=np.empty((room, 3), np.int32),
            weights=np.empty(room),
        )
        rule = kernels.Rule(np.array(boundaries.site.breakpoints), law.rows, self._numbers(law.row))
        ties, opened = self._constant_matches(boundaries), np.empty(n, np.int32)
        constant = self._constant_units(boundaries, vertices, rule)
        apart = [constant[0]] if constant is not None else []
        apart += [bits for bits in (self._done, None if self._chosen is None else ~self._chosen) if bits is not None]
        if apart:
            bits = np.bitwise_or.reduce(apart)
            ties = ties | bits if len(ties) else np.tile(bits, (n, 1))
        kernels.classify(vertices, rule, ties, opened)
        if constant is not None:
            vertices.above[:n] |= constant[1]
        return Cut(boundaries, n, rows, vertices, rule, ties, opened), following

    def _constant_units(
        self, boundaries: Boundaries, vertices: kernels.Vertices, rule: kernels.Rule
    ) -> tuple[Words, Words] | None:
        """The boundaries whose units are constant wherever the sweep goes, and those that these are above, packed.

        One look decides for all vertices: blank pixels would have exact arithmetic settle the same sign at each.
        """
        constants, units = self.judge.constant_values.get(boundaries.site.entry), boundaries.site.units
        if constants is None or np.isnan(constants).all():
            return None
        fixed = np.tile(~np.isnan(constants), len(rule.breakpoints))
        z = (np.nan_to_num(constants)[None] - rule.breakpoints[:, None]).ravel()
        rows, slack = np.tile(rule.rows, len(rule.breakpoints)), 2 * EPS * np.repeat(np.abs(rule.breakpoints), units)
        bounds = [np.asarray(rows * kernels.computed(vertices.doubt, rule.law, 0, c) + slack) for c in range(2)]
        above = z > bounds[1]
        opened = np.flatnonzero(fixed & ~(np.abs(z) > bounds[0]) & ~((z == 0) & (bounds[0] == 0)))
        if len(opened):
            signs = self.judge.constant_sides(boundaries, opened)
            above[opened] = above[opened] if signs is None else signs
            self.judge.count(boundaries, len(opened), len(opened) if signs is None else 0)
        return _packed(fixed), _packed(fixed & above)

    def _first_slopes(self, part: Program, law: Law) -> tuple[Floats, Floats]:
        """How fast the input, as its units see it, and the first state change along the plane.

        A unit's slope is at most its row times this. The input itself has slope 1, but of that its rows see little.
        """
        if law.unknown is not None:
            return self._slope, self._slope * law.state.gain
        groups, each = self._directions.shape[:2]
        x = torch.cat([torch.zeros(1, self._directions.shape[2]).double(), self._directions.flatten(0, 1)])
        made = [value.numpy() for value in _evaluated(part, (0,), [x.numpy()])]
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

    def _numbers(self, measure: Spread) -> Floats:
        """What compiled kernels know of a law."""
        pairs = (*measure.gain, *measure.noise, *measure.floor, *self._slope)
        return np.array([*pairs, measure.size, measure.offset, self._drift])

    def _constant_matches(self, boundaries: Boundaries) -> Words:
        """The matches at every vertex whose two competitors are the same constant, packed; no rows if none can be."""
        playing = self._playing(boundaries)
        if playing is None:
            return np.zeros((0, 0), np.uint64)
        entrants, everywhere = playing.entrants, self.judge.constant_numbers(playing)
        may_close = entrants is not None and entrants.site.name in self._above
        if not may_close and not (everywhere >= 0).any():
            return np.zeros((0, 0), np.uint64)
        packed = np.zeros((self.vertices, 8 * words(boundaries.count)), np.uint8)
        at_once = points_at_once(len(everywhere), floats=ENTRIES_AT_ONCE)
        for start in range(0, self.vertices, at_once):
            rows = slice(start, min(start + at_once, self.vertices))
            known = everywhere.repeat(rows.stop - start, 1)
            if may_close and entrants is not None:
                known[~self._sides(self._above, entrants.site, rows)[:, entrants.units]] = int(entrants.constants[0])
            earlier = [site for site in playing.rounds if site.name in self._below]
            sides = {s.name: (self._sides(self._above, s, rows), self._sides(self._below, s, rows)) for s in earlier}
            found = playing.constant_matches(known, sides, boundaries.site.name).numpy()
            bits = np.packbits(found, axis=1, bitorder="little")
            packed[rows, : bits.shape[1]] = bits
        return packed.view(np.uint64)

    def _sides(self, kept: dict[str, Words], site: Site, rows: slice) -> Tensor:
        """Whether vertices are on a side of the first breakpoint of units, (n, units)."""
        return torch.from_numpy(piece_numbers(kept[site.name][rows], site.units, 1) > 0)

    def _playing(self, boundaries: Boundaries) -> Bracket | None:
        """The tournament that a site is a round of, if its winners are part of a pattern."""
        played = boundaries.tournament
        return self.judge.tournaments.get(played) if played is not None else None

    def choose(self, cut: Cut, most: int) -> None:
        """Let only some of the boundaries that will cut do so now, so many at most."""
        over, under = (np.bitwise_or.reduce(b[: cut.old], axis=0) for b in (cut.vertices.above, cut.vertices.below))
        bits = np.unpackbits((over & under).view(np.uint8), bitorder="little")
        cutting = np.flatnonzero(bits)
        some = cutting[np.linspace(0, len(cutting) - 1, max(1, min(most, len(cutting) // 2))).astype(np.int64)]
        chosen = np.zeros(len(bits), bool)
        chosen[some] = True
        self._chosen = _packed(chosen)
        self._done = np.zeros_like(self._chosen) if self._done is None else self._done

    # what a cut changes

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        rows = 8 * self.vertices * sum(r.width for r in self.state)
        return rows + 8 * DOUBTS * self.vertices + self.lineage.nbytes

    def part(self, vertices: Indices, cells: Indices) -> "Sweep":
        """What is carried of some of the vertices and cells."""
        part = copy.copy(self)
        part.vertices = len(vertices)
        part.state = [Rows.of(rows.table(self.vertices)[vertices]) for rows in self.state]
        part.doubt, part.lineage = self.doubt[vertices], self.lineage.part(cells)
        part._above, part._below = ({n: b[vertices] for n, b in kept.items()} for kept in (self._above, self._below))
        part._moved = None if self._moved is None else self._moved[vertices]
        return part

    def follow(self, outcome: Outcome, law: Law, following: Floats, *, whole: bool = True) -> None:
        """The site has cut: its new vertices belong to the state, and its cells are those that there are now.

        Unless it has cut as a `whole`, its values stay until its other boundaries cut.
        """
        cut, n = outcome.made, outcome.vertices
        for rows in self.state[1:]:
            rows.make_room(n)
            traversals.interpolate(rows.table(n), self.vertices, cut.vertices.parents, cut.vertices.weights)
        self._keep_above(cut, n)
        if not whole or self._moved is not None:
            moved = np.zeros(n) if self._moved is None else enlarged(self._moved, n)
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
        norm = law.norm_after(self.doubt[:, NORM], self.doubt[:, VALUE])
        kernels.hand_on(self.doubt, self._numbers(law.state))
        self.doubt[:, NORM] = norm
        self._slope = following

    def _keep_above(self, cut: Cut, vertices: int) -> None:
        """Note which units each vertex is above of sites whose constants compete later; a new one if a parent is.

        Of the rounds of a tournament, also which they are below, as long as it goes on.
        """
        later = {b.site.name for b in self.boundaries if b.first > cut.boundaries.first}
        playing = [t for t in self.judge.tournaments.values() if t.rounds[-1].name in later]
        waiting = {t.entrants.site.name for t in playing if t.entrants is not None and t.entrants.may_close}
        rounds = {site.name for t in playing for site in t.rounds}
        self._above = _inherited(self._above, waiting | rounds, self.vertices, vertices, cut)
        self._below = _inherited(self._below, rounds, self.vertices, vertices, cut)
        site = cut.boundaries.site
        for kept, bits, names in (
            (self._above, cut.vertices.above, waiting | rounds),
            (self._below, cut.vertices.below, rounds),
        ):
            if site.name in names:
                first = bits[:vertices, : words(site.units)].copy()
                spare = 64 * first.shape[1] - site.units
                first[:, -1] &= np.uint64((1 << (64 - spare)) - 1)
                kept[site.name] = first | kept[site.name] if site.name in kept else first

    def thin(self, stays: Bools) -> None:
        """Only these vertices stay."""
        for rows in self.state:
            rows.thin(stays)
        self.doubt = self.doubt[stays]
        self._above = {name: bits[stays] for name, bits in self._above.items()}
        self._below = {name: bits[stays] for name, bits in self._below.items()}
        self.vertices = int(stays.sum())


def _poisoned(net: Network, start: Start) -> Floats | None:
    """An input (1, entries) with NaN where inputs change: what comes of it is a number only where nothing ever does."""
    if start.moving is None or start.moving.all() or not COMPARISONS.isdisjoint(s.name for s in net.program.steps):
        return None
    return np.asarray(torch.where(start.moving, torch.nan, start.points[:1]).numpy())


def _inherited(kept: dict[str, Words], names: set[str], old: int, vertices: int, cut: Cut) -> dict[str, Words]:
    """What was kept under these names, with rows for new vertices too."""
    grown = {name: enlarged(bits, vertices) for name, bits in kept.items() if name in names}
    for bits in grown.values():
        traversals.inherit(bits, old, cut.vertices.parents)
    return grown


def _packed(chosen: Bools) -> Words:
    """Boundaries as bits, (1, words)."""
    bits = np.zeros(8 * words(len(chosen)), np.uint8)
    some = np.packbits(chosen, bitorder="little")
    bits[: len(some)] = some
    return bits.view(np.uint64)[None]


def _evaluated(part: Program, known: tuple[int, ...], state: Sequence[Floats]) -> list[Tensor]:
    """The outputs of a part of the network, as rows, given rows of the values that it knows; none of them shared."""
    given = [torch.from_numpy(rows) for rows in state]
    values = {v: rows.reshape(len(rows), *part.shapes[v]) for v, rows in zip(known, given, strict=True)}
    used = {rows.untyped_storage().data_ptr() for rows in given}
    made = [as_rows(value) for value in part.resume(values)]
    return [rows.clone() if rows.untyped_storage().data_ptr() in used else rows for rows in made]


@dataclass
class CellBlock:
    """Cells that go through the network together: up to which site they are cut, and their share of all cells.

    It is `advanced` if it has the values that enter the next site.
    """

    cells: Any  # a Complex
    swept: Sweep
    site: int = 0
    advanced: bool = False
    share: float = 1.0

    @property
    def nbytes(self) -> int:
        return self.swept.nbytes + int(self.cells.nbytes)

    def split(self, parts: int) -> "list[CellBlock]":
        """The same cells in about so many blocks; none if they cannot be split."""
        share = self.cells.shares(parts)
        if not share.any():
            return []
        return [
            CellBlock(
                part,
                self.swept.part(vertices, cells),
                self.site,
                self.advanced,
                self.share * len(part) / max(1, len(self.cells)),
            )
            for part, vertices, cells in self.cells.split(share)
        ]


@torch.no_grad()
def sweep(
    net: Network,
    cells: Complex,
    *,
    max_cells: int,
    memory: int | None = None,
    up_to_layer: int | None = None,
    show_progress: bool = False,
    certified: bool = False,
) -> Sweep:
    """Cut the cells of a complex by all sites of a frozen network, one after another.

    What would take more than its share of `memory` bytes goes on in blocks, depth first, that are joined at the end.
    """
    boundaries = _boundaries(net, up_to_layer)
    way, budget = route(net, boundaries), Budget(memory)
    budget.check(max((_vertex_bytes(part, b) for part, b in zip(way.parts, boundaries, strict=True)), default=0))
    swept = Sweep(net, cells.start(), boundaries, certified)
    swept.judge.constants = Still(*cells.exact_points(), swept.still) if swept.still is not None else None
    bar = tqdm(total=len(boundaries), desc="cutting", unit="site", disable=not show_progress)
    waiting, done = [CellBlock(cells, swept)], list[Finished]()
    while waiting:
        block = waiting.pop()
        budget.waiting = sum(b.nbytes for b in waiting)
        others = sum(len(b.cells) for b in waiting) + sum(len(f.patterns.bits) for f in done)
        parts = _carried(block, way, budget, max_cells - others, bar)
        waiting += reversed(parts)
        if parts:
            continue
        if not waiting and not done:
            _place_exactly(block.cells, block.swept)
            bar.close()
            return block.swept
        done.append(_finished(block))
        budget.keep(done[-1].nbytes, block.share, sum(len(f.patterns.bits) for f in done))
    bar.close()
    joined = cells.join([f.piece for f in done])
    if done[0].outputs is not None:
        swept.outputs = np.concatenate([f.outputs for f in done if f.outputs is not None])[joined.vertices]
    swept.table = PatternTable(tuple(f.patterns for f in done))
    return swept


@dataclass(frozen=True)
class Finished:
    """What is kept of a block that all sites have cut."""

    piece: Any
    patterns: PatternBlock
    outputs: Floats | None

    @property
    def nbytes(self) -> int:
        outputs = 0 if self.outputs is None else self.outputs.nbytes
        return int(self.piece.nbytes) + outputs + self.patterns.bits.nbytes + self.patterns.common.nbytes


def _finished(block: CellBlock) -> Finished:
    """What is kept of a block."""
    cells, swept = block.cells, block.swept
    _place_exactly(cells, swept)
    lineage = swept.lineage.descended(np.flatnonzero(cells.own()))
    return Finished(cells.finished(), PatternBlock.of(lineage.patterns(swept.columns)), swept.outputs)


def _vertex_bytes(part: Program, boundaries: Boundaries) -> int:
    """What a vertex takes while a site cuts: values, signs, and the pattern of about one cell."""
    values = 8 * sum(math.prod(part.shapes[v]) for v in part.outputs)
    return values + 24 * words(boundaries.count) + 300


def _carried(block: CellBlock, way: Way, budget: Budget, most: int, bar: Any) -> list[CellBlock]:
    """Take a block through all sites that have not cut it yet; or return its parts if it is too large."""
    swept, cells = block.swept, block.cells
    boundaries = swept.boundaries
    for number in range(block.site, len(boundaries)):
        site, part, law = boundaries[number], way.parts[number], way.laws[number]
        known = way.parts[number - 1].outputs if number else (0,)
        each, together = _vertex_bytes(part, site), number > 0 and _play_together(boundaries[number - 1], site)
        block.site = number
        if not block.advanced:
            size = swept.vertices * (each + 8 * sum(rows.width for rows in swept.state))
            if size > budget.room and not together and (parts := block.split(_parts(size, budget))):
                return parts
            swept.advance(part, known)
            block.advanced = True
        for _ in range(site.count + 1):  # passes
            cut, following = swept.look(part, law, site, known == (0,))
            more = 0 if budget.memory is None else cells.room_needed(cut)
            size = (swept.vertices + more) * each
            whole = more == 0 or size <= budget.room or together
            in_passes = site.tournament is None and len(cells) < FEW and 2 * swept.vertices * each < budget.room
            if not whole and not in_passes and (parts := block.split(_parts(size, budget))):
                return parts
            whole = whole or site.tournament is not None  # its rounds are counted by their notes
            if not whole:
                swept.choose(cut, int(math.sqrt(max(1.0, 2 * budget.room / each))))
                cut, following = swept.look(part, law, site, known == (0,))
            if cut.values.nbytes > MUCH:
                return_freed_memory()
            outcome = _cut_within(block, cut, most, OVER * budget.room / each)
            swept.follow(outcome, law, following, whole=whole)
            above, ancestors = outcome.made.vertices.above[: outcome.vertices], outcome.ancestors
            del cut, outcome  # memory that the notes need
            swept.lineage = swept.lineage.descended(ancestors).noted(site.site.name, cells.bits(above))
            del above, ancestors
            if whole:
                break
        if site.tournament in swept.judge.tournaments and _is_last_round(site, boundaries):
            _finish(cells, swept, site)
        block.advanced = False
        bar.update(block.share)
        bar.set_postfix(vertices=swept.vertices, refresh=False)
    block.site = len(boundaries)
    if len(boundaries) == len(swept.net.sites):
        swept.advance(way.last, way.parts[-1].outputs if way.parts else (0,))
        swept.outputs = swept.state[0].table(swept.vertices).copy()
    swept.state = []
    return []


def _cut_within(block: CellBlock, cut: Cut, most: int, room: float) -> Outcome:
    """Cut a block by a site, unless that makes more cells than are allowed, or than there is room for."""
    cells, swept, least = block.cells, block.swept, len(block.cells) + LEAST
    try:
        return cut_by_site(cells, swept.lineage, swept.judge, cut, int(min(most, max(room, least))))
    except TooManyCells as error:
        if most <= max(room, least):
            raise
        raise TooMuchMemory(
            f"{least - LEAST:,} cells that have to stay together become more than {room:,.0f}, cut by"
            f" {cut.boundaries.site.name!r}: give more memory, or look at a smaller part"
        ) from error


def _parts(size: float, budget: Budget) -> int:
    """In how many blocks to split one of this size."""
    return min(MOST_PARTS, max(2, math.ceil(size / max(budget.room, 1.0))))


def _play_together(before: Boundaries, site: Boundaries) -> bool:
    """Whether two sites are rounds of one tournament."""
    return site.tournament is not None and site.tournament == before.tournament


def _boundaries(net: Network, up_to_layer: int | None) -> list[Boundaries]:
    """The boundaries of the sites to cut by."""
    if up_to_layer is not None and not 1 <= up_to_layer <= net.layers:
        raise ValueError(f"up_to_layer must be from 1 to {net.layers}, got {up_to_layer}")
    return [b for b in numbered(net.sites) if up_to_layer is None or b.site.layer <= up_to_layer]


def _is_last_round(boundaries: Boundaries, all_of_them: list[Boundaries]) -> bool:
    """Whether a tournament is over after this site."""
    return [b for b in all_of_them if b.tournament == boundaries.tournament][-1] is boundaries


def _finish(cells: Complex, swept: Sweep, last: Boundaries) -> None:
    """Note who has won a tournament in each cell, and join the cells that only its earlier rounds had cut."""
    rounds = [b for b in swept.boundaries if b.tournament == last.tournament]
    assert last.tournament is not None
    playing, lineage = swept.judge.tournaments[last.tournament], swept.lineage
    won, met = _played(playing, lineage, rounds, cells.matches(rounds))
    merged = cells.merge(Finish(playing, rounds, met, won, lineage.ancestors_before(len(rounds))))
    if merged is not None:
        swept.thin(merged.vertices)
        lineage, won = lineage.descended(merged.members), won[merged.members]
    swept.lineage = lineage.noted(last.tournament.name, won, winners=True)


def _played(
    playing: Bracket,
    lineage: Lineage,
    rounds: Sequence[Boundaries],
    asked: dict[str, tuple[Indices, Indices]],
) -> tuple[Words, dict[str, Indices]]:
    """Who won in each cell, packed; and who met in the matches (cells, units) asked for, (n, 2); some cells at once."""
    at_once = points_at_once(sum(b.site.units for b in rounds), floats=ENTRIES_AT_ONCE)
    won, met = list[Words](), {name: np.zeros((len(cell), 2), np.int64) for name, (cell, _) in asked.items()}
    order = {name: np.argsort(cell, kind="stable") for name, (cell, _) in asked.items()}
    for start in range(0, len(lineage.ancestors), at_once):
        some = np.arange(start, min(start + at_once, len(lineage.ancestors)))
        winners, matches = playing.played(lineage.sides(rounds, some))
        won.append(playing.packed(winners))
        for name, (cell, unit) in asked.items():
            mine = order[name][slice(*np.searchsorted(cell, [start, start + at_once], sorter=order[name]))]
            met[name][mine] = matches[name][cell[mine] - start, unit[mine]].numpy()
    return np.concatenate(won), met


def _place_exactly(cells: Complex, swept: Sweep) -> None:
    """Put vertices that rounding may have moved far where exact arithmetic has them, with the outputs there."""
    far = cells.misplaced(swept.doubt[:, SHIFT + 1])
    if len(far) == 0:
        return
    meetings = cells.corners(far, swept.boundaries)
    places = swept.judge.places(swept.judge.maps(cells, swept.lineage), meetings)
    known = np.isfinite(places).all(axis=1)
    if not known.any():
        return
    points = cells.place(far[known], places[known], meetings.cell[known])
    if swept.outputs is not None:
        outputs = swept.net(points.reshape(-1, *swept.net.input_shape))
        swept.outputs[far[known]] = outputs.reshape(len(points), -1).numpy()


def exact(net: Network) -> Network:
    """A float64 copy of a network whose regions can be found exactly; otherwise an error."""
    if not net.piecewise_linear:
        smooth = sorted({site.kind for site in net.sites if site.smooth})
        what = f" ({', '.join(smooth)})" if smooth else ""
        raise ValueError(f"the network is not piecewise linear{what}: it has no linear regions to find exactly")
    return net.frozen()
