"""Carries the vertices of a complex through a network, site by site, and has every site cut the cells.

Between the boundaries of earlier sites everything is affine, so the values of a new vertex lie between those of its two
neighbours on the edge where it was made. The network is therefore evaluated part by part, from one site to the next,
each part once at every vertex there is by then: less than one forward pass at the vertices of the result. Beside the
values goes a bound on their errors (see `laws`); signs that it does not decide are settled in exact arithmetic.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry import kernels, traversals
from regionscope.geometry.complexes import Complex, Cut, Finish, Outcome, Start
from regionscope.geometry.laws import Law, route
from regionscope.geometry.lineage import Lineage
from regionscope.geometry.patterns import Boundaries, columns_of, numbered, piece_numbers
from regionscope.geometry.predicates import (
    DOUBTS,
    ERROR,
    FAINT,
    INTERPOLATION,
    MOST_TURNS,
    NORM,
    ORTHONORMAL,
    SHIFT,
    VALUE,
    words,
)
from regionscope.geometry.rounding import Spread
from regionscope.geometry.rows import Rows, enlarged
from regionscope.geometry.settling import Judge, cut_by_site
from regionscope.geometry.tournaments import Bracket
from regionscope.machine import points_at_once, return_freed_memory
from regionscope.progress import tqdm
from regionscope.tracing.network import Network, as_rows
from regionscope.tracing.program import Program
from regionscope.types import Bools, Floats, Words

MUCH = 1 << 28  # bytes of values: from here on holes in the heap are given back
ROOM = 1 << 10  # for new vertices, at least
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

    @property
    def close_decisions(self) -> int:
        """How many signs bounds on rounding did not decide."""
        return self.judge.close_decisions

    @property
    def undecided(self) -> int:
        """How many of them exact arithmetic did not settle."""
        return self.judge.undecided

    def patterns(self) -> Words:
        """The packed patterns of all cells."""
        return self.lineage.patterns(self.columns)

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
            parents=np.empty((room, 2), np.int32),
            weights=np.empty(room),
        )
        rule = kernels.Rule(np.array(boundaries.site.breakpoints), law.rows, self._numbers(law.row))
        ties, opened = self._constant_matches(boundaries), np.empty(n, np.int32)
        kernels.classify(vertices, rule, ties, opened)
        return Cut(boundaries, n, rows, vertices, rule, ties, opened), following

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
        if playing is None or playing.entrants is None or playing.entrants.site.name not in self._above:
            return np.zeros((0, 0), np.uint64)
        site, bits = playing.entrants.site, self._above[playing.entrants.site.name]
        packed = np.zeros((self.vertices, 8 * words(boundaries.count)), np.uint8)
        at_once = points_at_once(site.units, floats=ENTRIES_AT_ONCE)
        for start in range(0, self.vertices, at_once):
            rows = slice(start, start + at_once)
            closed = torch.from_numpy(piece_numbers(bits[rows], site.units, 1) == 0)
            found = np.packbits(
                playing.constant_matches(closed, boundaries.site.name).numpy(), axis=1, bitorder="little"
            )
            packed[rows, : found.shape[1]] = found
        return packed.view(np.uint64)

    def _playing(self, boundaries: Boundaries) -> Bracket | None:
        """The tournament that a site is a round of, if its winners are part of a pattern."""
        played = boundaries.tournament
        return self.judge.tournaments.get(played) if played is not None else None

    # what a cut changes

    def follow(self, outcome: Outcome, law: Law, following: Floats) -> None:
        """The site has cut: its new vertices belong to the state, and its cells are those that there are now."""
        cut, n = outcome.made, outcome.vertices
        for rows in self.state[1:]:
            rows.make_room(n)
            traversals.interpolate(rows.table(n), self.vertices, cut.vertices.parents, cut.vertices.weights)
        self._keep_above(cut, n)
        self.vertices = n
        self.doubt = cut.vertices.doubt[:n]
        norm = law.norm_after(self.doubt[:, NORM], self.doubt[:, VALUE])
        kernels.hand_on(self.doubt, self._numbers(law.state))
        self.doubt[:, NORM] = norm
        self._slope = following

    def _keep_above(self, cut: Cut, vertices: int) -> None:
        """Note which units each vertex is above of sites whose constants compete later; a new one if a parent is."""
        playing = [t for t in self.judge.tournaments.values() if t.entrants is not None and t.entrants.may_close]
        later = {b.site.name for b in self.boundaries if b.first > cut.boundaries.first}
        waiting = {t.entrants.site.name for t in playing if t.entrants is not None and t.rounds[-1].name in later}
        self._above = {name: enlarged(bits, vertices) for name, bits in self._above.items() if name in waiting}
        for bits in self._above.values():
            traversals.inherit(bits, self.vertices, cut.vertices.parents)
        site = cut.boundaries.site
        if site.name in waiting:
            first = cut.vertices.above[:vertices, : words(site.units)].copy()
            spare = 64 * first.shape[1] - site.units
            first[:, -1] &= np.uint64((1 << (64 - spare)) - 1)
            self._above[site.name] = first

    def thin(self, stays: Bools) -> None:
        """Only these vertices stay."""
        for rows in self.state:
            rows.thin(stays)
        self.doubt = self.doubt[stays]
        self._above = {name: bits[stays] for name, bits in self._above.items()}
        self.vertices = int(stays.sum())


def _evaluated(part: Program, known: tuple[int, ...], state: Sequence[Floats]) -> list[Tensor]:
    """The outputs of a part of the network, as rows, given rows of the values that it knows; none of them shared."""
    given = [torch.from_numpy(rows) for rows in state]
    values = {v: rows.reshape(len(rows), *part.shapes[v]) for v, rows in zip(known, given, strict=True)}
    used = {rows.untyped_storage().data_ptr() for rows in given}
    made = [as_rows(value) for value in part.resume(values)]
    return [rows.clone() if rows.untyped_storage().data_ptr() in used else rows for rows in made]


@torch.no_grad()
def sweep(
    net: Network,
    cells: Complex,
    *,
    max_cells: int,
    up_to_layer: int | None = None,
    show_progress: bool = False,
    certified: bool = False,
) -> Sweep:
    """Cut the cells of a complex by all sites of a frozen network, one after another."""
    boundaries = _boundaries(net, up_to_layer)
    way = route(net, boundaries)
    swept = Sweep(net, cells.start(), boundaries, certified)
    known: tuple[int, ...] = (0,)
    bar = tqdm(boundaries, desc="cutting", unit="site", disable=not show_progress)
    for site, part, law in zip(bar, way.parts, way.laws, strict=True):
        swept.advance(part, known)
        cut, following = swept.look(part, law, site, known == (0,))
        if cut.values.nbytes > MUCH:
            return_freed_memory()
        outcome = cut_by_site(cells, swept.lineage, swept.judge, cut, max_cells)
        swept.follow(outcome, law, following)
        above, ancestors = outcome.made.vertices.above[: outcome.vertices], outcome.ancestors
        del cut, outcome  # memory that the notes need
        swept.lineage = swept.lineage.descended(ancestors).noted(site.site.name, cells.bits(above))
        del above, ancestors
        if site.tournament in swept.judge.tournaments and _is_last_round(site, boundaries):
            _finish(cells, swept, site)
        known = part.outputs
        bar.set_postfix(vertices=swept.vertices, refresh=False)
    if up_to_layer is None or up_to_layer == net.layers:
        swept.advance(way.last, known)
        swept.outputs = swept.state[0].table(swept.vertices).copy()
    swept.state = []
    _place_exactly(cells, swept)
    return swept


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
    winners, matches = playing.played(lineage.sides(rounds))
    won = playing.packed(winners)
    merged = cells.merge(Finish(playing, rounds, matches, won, lineage.ancestors_before(len(rounds))))
    if merged is not None:
        swept.thin(merged.vertices)
        lineage, won = lineage.descended(merged.members), won[merged.members]
    swept.lineage = lineage.noted(last.tournament.name, won, winners=True)


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
