"""Carries the vertices of a complex through a network, site by site, and has every site cut the cells.

Between the boundaries of earlier sites everything is affine, so the values of a new vertex lie between those of its two
neighbours on the edge where it was made. The network is therefore evaluated part by part, from one site to the next,
each part once at every vertex there is by then: less than one forward pass at the vertices of the result. Beside the
values goes a bound on their errors (see `laws`); signs that it does not decide are settled in exact arithmetic. Cells
whose values would take too much memory go on in blocks, depth first (see `budget`).
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regionscope.geometry import bases
from regionscope.geometry.budget import LEAST, OVER, Budget, TooMuchMemory
from regionscope.geometry.complexes import Complex, Cut, Finish, Outcome, TooManyCells
from regionscope.geometry.laws import Way, route
from regionscope.geometry.lineage import Lineage
from regionscope.geometry.patterns import Boundaries, PatternBlock, PatternTable, boundaries_of
from regionscope.geometry.predicates import SHIFT
from regionscope.geometry.rows import ENTRIES_AT_ONCE
from regionscope.geometry.settling import Still, cut_by_site
from regionscope.geometry.spilled import Spilled, rows_in_file
from regionscope.geometry.swept import Swept
from regionscope.geometry.tournaments import Bracket
from regionscope.machine import bytes_in_words, points_at_once, return_freed_memory
from regionscope.progress import tqdm
from regionscope.tracing.network import Network, kept_with
from regionscope.types import Indices, Words

_log = logging.getLogger(__name__)
MUCH = 1 << 28  # bytes of values: from here on holes in the heap are given back
FEW = 64  # cells: so few are not split if the site that cuts them can do so in passes
MOST_PARTS = 16  # that a block is split into
BAR = "{l_bar}{bar}| {n:.0f}/{total} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"  # blocks bring in parts of a site


@dataclass
class _CellBlock:
    """Cells that go through the network together: up to which site they are cut, and their share of all cells.

    It is `advanced` if it has the values that enter the next site.
    """

    cells: Any  # a Complex
    swept: Swept
    site: int = 0
    advanced: bool = False
    share: float = 1.0

    @property
    def nbytes(self) -> int:
        return self.swept.nbytes + int(self.cells.nbytes)

    def split(self, parts: int, rounds: int = 0) -> "list[_CellBlock]":
        """The same cells in about so many blocks; none if they cannot be split.

        So many rounds of a tournament have cut them, which may join those again that were one cell before it.
        """
        lineage = self.swept.lineage
        before = lineage.ancestors_before(rounds) if rounds else np.arange(len(self.cells), dtype=np.int32)
        share = self.cells.shares(parts, before)
        if not share.any():
            return []
        first, *others = self.cells.split(share, before)
        blocks = [self._part(*other, in_place=False) for other in others]
        return [self._part(*first, in_place=True), *blocks]  # the first is the one to go on with

    def _part(self, cells: Complex, vertices: Indices, chosen: Indices, *, in_place: bool) -> "_CellBlock":
        swept = self.swept.part(vertices, chosen, advanced=self.advanced, in_place=in_place)
        return _CellBlock(cells, swept, self.site, self.advanced, self.share * len(cells) / max(1, len(self.cells)))


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
    exactly: bool = True,
    before_blocks: Callable[[], None] | None = None,
    check: Callable[[], None] = lambda: None,
) -> Swept:
    """Cut the cells of a complex by all sites of a frozen network, one after another.

    What would take more than its share of `memory` bytes goes on in blocks, depth first, that are joined at the end;
    `before_blocks` is called before that begins. Unless `exactly`, signs are taken as they seem. `check` is called
    before each of them is cut by each site; what it raises ends the sweep.
    """
    boundaries = _boundaries(net, up_to_layer)
    way, budget = route(net, boundaries), Budget(memory)
    budget.check(8 * max((sum(math.prod(p.shapes[v]) for v in p.outputs) for p in way.parts), default=0))
    swept = Swept(net, cells.start(), boundaries, certified, exactly, in_rows(net, boundaries))
    swept.judge.constants = Still(*cells.exact_points(), swept.still) if swept.still is not None else None
    bar = tqdm(total=len(boundaries), desc="cutting", unit="site", bar_format=BAR, disable=not show_progress)
    waiting, done = [_CellBlock(cells, swept)], _Finished()
    while waiting:
        block = waiting.pop()
        bases_waiting = [b.swept.summed.basis for b in waiting if b.swept.summed is not None]
        shared = {id(basis): basis.nbytes for basis in bases_waiting}
        budget.waiting = sum(b.nbytes for b in waiting) + sum(shared.values())
        others = sum(len(b.cells) for b in waiting) + done.cells
        parts = _parts_left(block, way, budget, max_cells - others, bar, check)
        if parts and before_blocks is not None and block.share == 1.0:
            before_blocks()
        waiting += reversed(parts)
        if parts:
            continue
        _place_exactly(block.cells, block.swept)
        if not waiting and not done.cells:
            bar.close()
            return block.swept
        size = done.keep(block)
        budget.keep(size, block.share, done.cells)
    bar.close()
    swept.table = PatternTable(tuple(PatternBlock(*arrays) for arrays in done.patterns))
    swept.outputs = rows_in_file(done.outputs, cells.join(done.pieces).vertices)
    return swept


class _Finished:
    """What is kept of blocks that all sites have cut, in files."""

    def __init__(self) -> None:
        self.pieces, self.patterns, self.outputs, self.cells = Spilled(), Spilled(), Spilled(), 0

    def keep(self, block: _CellBlock) -> int:
        """Keep a block; returns how many bytes of it will be in memory when all are joined."""
        cells, swept = block.cells, block.swept
        own = np.flatnonzero(cells.own())
        piece, patterns = cells.finished(), swept.lineage.descended(own).block(swept.columns)
        self.pieces.append(*piece)
        self.patterns.append(patterns.common, patterns.varying, patterns.bits)
        if swept.outputs is not None:
            self.outputs.append(swept.outputs)
        self.cells += len(own)
        return int(sum(array.nbytes for array in piece)) + patterns.nbytes


def _parts_left(
    block: _CellBlock, way: Way, budget: Budget, most: int, bar: Any, check: Callable[[], None]
) -> list[_CellBlock]:
    """Take a block through all sites that have not cut it yet; or return its parts if it is too large."""
    swept, cells = block.swept, block.cells
    boundaries = swept.boundaries
    for number in range(block.site, len(boundaries)):
        check()
        site, part, law = boundaries[number], way.parts[number], way.laws[number]
        known = way.parts[number - 1].outputs if number else (0,)
        rounds = _rounds_before(number, boundaries)
        block.site = number
        if not block.advanced:
            swept.fold()
            size = swept.bytes_to_advance(part)
            if size > budget.room and (parts := block.split(_parts(size, budget), rounds)):
                return parts
            swept.advance(part, known, boundaries[number - 1].site if number else None, law)
            swept.tell_slope(cells, part, law, number)
            block.advanced = True
        while True:  # passes
            cut, following = swept.look(part, law, site, known == (0,))
            more, each = 0 if budget.memory is None else cells.room_needed(cut), swept.vertex_bytes
            size = (swept.vertices + more) * each
            whole = more == 0 or size <= budget.room
            in_passes = site.tournament is None and len(cells) < FEW and 2 * swept.vertices * each < budget.room
            if not whole and not in_passes and (parts := block.split(_parts(size, budget), rounds)):
                return parts
            whole = whole or site.tournament is not None  # its rounds are counted by their notes
            if not whole:
                swept.choose(cut, int(math.sqrt(max(1.0, 2 * budget.room / each))))
                cut, following = swept.look(part, law, site, known == (0,))
            if cut.values.nbytes > MUCH:
                return_freed_memory()
            outcome = _cut_within(block, cut, most, budget, each, size)
            swept.follow(outcome, law, following, whole=whole)
            above, ancestors = outcome.made.vertices.above[: outcome.vertices], outcome.ancestors
            del cut, outcome  # memory that the notes need
            bits = cells.bits(above)
            swept.lineage = swept.lineage.descended(ancestors).noted(site.site.name, bits, among=swept.among)
            del above, ancestors, bits
            if whole:
                break
        if site.tournament in swept.judge.tournaments and _is_last_round(site, boundaries):
            _finish(cells, swept, site)
        block.advanced = False
        if not bar.disable:
            bar.update(min(block.share, len(boundaries) - bar.n))  # shares add up to 1 but for rounding
            bar.set_postfix(vertices=swept.vertices, refresh=False)
        _log.info("site %d of %d has cut: %d vertices", number + 1, len(boundaries), swept.vertices)
    block.site = len(boundaries)
    if len(boundaries) == len(swept.net.sites):
        swept.fold()
        known, behind = (way.parts[-1].outputs, boundaries[-1].site) if way.parts else ((0,), None)
        swept.finish(way.last, known, behind)
    swept.state = []
    return []


def _cut_within(block: _CellBlock, cut: Cut, most: int, budget: Budget, each: int, size: int) -> Outcome:
    """Cut a block by a site, unless that makes more cells than are allowed, or than there is room for at `each`.

    It becomes at most so many bytes in `size`.
    """
    cells, swept, now = block.cells, block.swept, len(block.cells)
    room = max(OVER * budget.room / each, now + LEAST)
    try:
        return cut_by_site(cells, swept.lineage, swept.judge, cut, int(min(most, room)))
    except TooManyCells as error:
        if most <= room:
            raise
        needed = budget.needed(size / OVER)
        raise TooMuchMemory(
            f"all that {cut.boundaries.site.name!r}, a round of max-pooling or its like, makes of"
            f" {now:,} {'cell' if now == 1 else 'cells'} has to stay in memory together, and there is room for"
            f" {room:,.0f}: give more memory ({bytes_in_words(needed)} do whatever it makes, twice as much as now often"
            " does), or look at a smaller part"
        ) from error


def _parts(size: float, budget: Budget) -> int:
    """In how many blocks to split one of this size."""
    return min(MOST_PARTS, max(2, math.ceil(size / max(budget.room, 1.0))))


def _rounds_before(number: int, boundaries: Sequence[Boundaries]) -> int:
    """How many rounds of the tournament that a site is one of have cut before it."""
    played = boundaries[number].tournament
    return 0 if played is None else sum(b.tournament == played for b in boundaries[:number])


def in_rows(net: Network, boundaries: Sequence[Boundaries] | None = None) -> bool:
    """Whether one plane is carried through these sites of a frozen network, or all, as sums of rows."""
    sites = boundaries_of(net.sites) if boundaries is None else boundaries
    return bases.fits(route(net, sites), sites)


def _boundaries(net: Network, up_to_layer: int | None) -> list[Boundaries]:
    """The boundaries of the sites to cut by."""
    if up_to_layer is not None and not 1 <= up_to_layer <= net.layers:
        raise ValueError(f"up_to_layer must be from 1 to {net.layers}, got {up_to_layer}")
    return [b for b in boundaries_of(net.sites) if up_to_layer is None or b.site.layer <= up_to_layer]


def _is_last_round(boundaries: Boundaries, all_of_them: list[Boundaries]) -> bool:
    """Whether a tournament is over after this site."""
    return [b for b in all_of_them if b.tournament == boundaries.tournament][-1] is boundaries


def _finish(cells: Complex, swept: Swept, last: Boundaries) -> None:
    """Note who has won a tournament in each cell, and join the cells that only its earlier rounds had cut."""
    rounds = [b for b in swept.boundaries if b.tournament == last.tournament]
    assert last.tournament is not None
    playing, lineage = swept.judge.tournaments[last.tournament], swept.lineage
    won, met = _winners_and_meetings(playing, lineage, rounds, cells.matches(rounds))
    merged = cells.merge(Finish(playing, rounds, met, won, lineage.ancestors_before(len(rounds))))
    if merged is not None:
        swept.thin(merged.vertices)
        lineage, won = lineage.descended(merged.members), won[merged.members]
    swept.lineage = lineage.noted(last.tournament.name, won, winners=True)


def _winners_and_meetings(
    playing: Bracket,
    lineage: Lineage,
    rounds: Sequence[Boundaries],
    asked: dict[str, tuple[Indices, Indices]],
) -> tuple[Words, dict[str, Indices]]:
    """Who won in each cell, packed; and who met in the matches (cells, units) asked for, (n, 2); some cells at once."""
    at_once = points_at_once(playing.slots, floats=ENTRIES_AT_ONCE)
    won = np.empty((len(lineage.ancestors), playing.words_of_winners), np.uint64)
    met = {name: np.zeros((len(cell), 2), np.int64) for name, (cell, _) in asked.items()}
    order = {name: np.argsort(cell, kind="stable") for name, (cell, _) in asked.items()}
    for start in range(0, len(lineage.ancestors), at_once):
        some = np.arange(start, min(start + at_once, len(lineage.ancestors)))
        slots = playing.played(lineage.sides(rounds, some))
        won[some] = playing.packed(playing.winners(slots))
        for name, (cell, unit) in asked.items():
            mine = order[name][slice(*np.searchsorted(cell, [start, start + at_once], sorter=order[name]))]
            both = (playing.matches[name].first, playing.matches[name].second)
            met[name][mine] = np.stack([slots[cell[mine] - start, side[unit[mine]]] for side in both], axis=1)
    return won, met


def _place_exactly(cells: Complex, swept: Swept) -> None:
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
    """A float64 copy of a network whose regions can be found exactly; otherwise an error. Of such a copy, itself."""
    if kept_with(net, exact, lambda: False):  # no second copy: the first has what sweeps have found out about it
        return net
    if not net.piecewise_linear:
        smooth = sorted({site.kind for site in net.sites if site.smooth})
        what = f" ({', '.join(smooth)})" if smooth else ""
        raise ValueError(f"the network is not piecewise linear{what}: it has no linear regions to find exactly")
    copy = net.frozen()
    kept_with(copy, exact, lambda: True)
    return copy
