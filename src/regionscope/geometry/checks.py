"""What forward passes and exact arithmetic say of cells, by other means than those that found them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regionscope.geometry.cells import Cells, Tally, point_portions
from regionscope.geometry.laws import usual_errors
from regionscope.geometry.patterns import WINNER, differing_bits, words_at
from regionscope.geometry.predicates import EPS, SAFETY
from regionscope.geometry.settling import exact_pieces
from regionscope.geometry.tournaments import competitors
from regionscope.tracing.network import Network, Tournament, as_rows
from regionscope.tracing.steps import Step
from regionscope.types import Bools, Floats, Indices

ALONG_SIDES = 16  # how many usual errors a unit may be from its breakpoint at a vertex of a side where it switches

Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class _Part:
    """The columns of patterns that one site fills, or a tournament, with the step that says who won it."""

    site: int  # among those of the network
    first: int
    entries: int
    tournament: Tournament | None = None
    step: Step | None = None


def parts_of(cells: Cells, net: Network) -> list[_Part]:
    """What the columns of `cells.patterns` stand for: the sites in order, the rounds of a tournament as one."""
    parts: list[_Part] = []
    first = 0
    for number, site in enumerate(net.sites[: len(cells.sites)]):
        part, tournament = _Part(number, first, site.units), site.tournament
        if tournament is not None and tournament.winners is not None:
            if any(tournament == other.tournament for other in parts):
                continue
            entries = int(np.prod(net.program.shapes[tournament.winners]))
            (step,) = (s for s in net.program.steps if tournament.winners in s.results)
            part = _Part(number, first, entries, tournament, step)
        parts.append(part)
        first += part.entries
    return parts


@dataclass(frozen=True)
class _Contest:
    """A tournament at points: what competes, (n, groups, places), who wins, and the usual error of a score (n, 1)."""

    competitors: Tensor
    winners: Numbers  # (n, winners), those of a group next to each other
    error: Floats

    def scores(self, winners: Numbers) -> Floats:
        """The values at these places, which are taken round about if there are not so many."""
        n, groups, places = self.competitors.shape
        chosen = torch.from_numpy(np.ascontiguousarray(winners % places)).long()
        chosen = chosen.reshape(n, groups, winners.shape[1] // max(groups, 1))
        return np.asarray(self.competitors.gather(-1, chosen).flatten(1).numpy())

    def tied(self, winners: Numbers, others: Numbers) -> Bools:
        """Whether these winners and those are equally good, but for rounding."""
        return np.asarray(np.abs(self.scores(winners) - self.scores(others)) <= self.error)

    def apart(self, point: Indices, entry: Indices, rivals: Numbers) -> Bools:
        """Whether two (n, 2) who win the same contest on two sides of a point each are not equally good there."""
        _, groups, places = self.competitors.shape
        group = entry // (self.winners.shape[1] // max(groups, 1))
        scores = self.competitors.numpy()[point[:, None], group[:, None], rivals % places]
        return np.asarray(np.abs(scores[:, 0] - scores[:, 1]) > ALONG_SIDES * self.error[point, 0])


@dataclass(frozen=True)
class _Evaluation:
    """The network at points: what enters each site and its usual errors, (n, units), and the tournaments by part."""

    values: list[Floats]
    errors: list[Floats]
    contests: dict[int, _Contest]


@torch.no_grad()
def _evaluation(cells: Cells, net: Network, places: Floats, parts: list[_Part]) -> _Evaluation:
    """Plain forward passes at places of cells, which are rounded as vertices are."""
    x = cells._points(places)
    values = net.preactivations(x)
    rounded = SAFETY * EPS * cells._size
    norm, *norms = (as_rows(v).norm(dim=1).numpy() for v in (x, *values))
    errors = usual_errors(net, norm, np.full(len(x), rounded), norms)
    contests = {}
    for number, part in enumerate(parts):
        if part.tournament is not None and part.tournament.winners is not None and part.step is not None:
            (source,) = part.step.used & net.program.shapes.keys()
            entering, winners = net.program.pruned([source, part.tournament.winners]).run(x)
            rounds = [e for e, site in zip(errors, net.sites, strict=True) if site.tournament == part.tournament]
            error = np.concatenate(rounds, axis=1).max(axis=1, keepdims=True, initial=0.0)
            contests[number] = _Contest(competitors(part.step, entering), as_rows(winners).numpy(), error)
    return _Evaluation([as_rows(v).numpy() for v in values], errors, contests)


def wrong_inside(cells: Cells, net: Network, seen: Tally = lambda points: None) -> tuple[Bools, int]:
    """Which cells have another pattern at their centre, and how many units are within rounding of a breakpoint."""
    parts, wrong, ties = parts_of(cells, net), np.zeros(len(cells), bool), 0
    for rows in point_portions(len(cells), net, seen):
        found, patterns = _evaluation(cells, net, cells.centres[rows], parts), cells.patterns_of(rows)
        for number, part in enumerate(parts):
            claimed = patterns[:, part.first : part.first + part.entries]
            if number in found.contests:
                contest = found.contests[number]
                differs = claimed != contest.winners
                tied = differs & contest.tied(claimed, contest.winners)
            else:
                away = found.values[part.site][..., None] - np.array(net.sites[part.site].breakpoints)
                tied = (np.abs(away) <= found.errors[part.site][..., None]).any(axis=-1)
                differs = claimed != (away > 0).sum(axis=-1)
            ties += int(tied.sum())
            wrong[rows] |= (differs & ~tied).any(axis=1)
    return wrong, ties


@dataclass(frozen=True)
class _Switches:
    """What of one part of the patterns changes across sides: the side, the unit or winner, each time, and what is asked
    where it ends: the number of a breakpoint (n,), or who wins on either side (n, 2)."""

    side: Indices
    entry: Indices
    what: Indices


def switches(cells: Cells, pairs: Indices) -> list[_Switches]:
    """How the two cells (n, 2) of sides differ, part by part: packed patterns are compared, and few bits differ."""
    side, bit = differing_bits(cells.packed_patterns, pairs)
    found = []
    for column in cells.columns:
        size = column.entries * (column.breakpoints or WINNER)
        mine = (bit >= 64 * column.first_word) & (bit < 64 * column.first_word + size)
        across, place = side[mine], bit[mine] - 64 * column.first_word
        if column.breakpoints:
            found.append(_Switches(across, place % column.entries, place // column.entries))
            continue
        across, entry = np.unique(np.stack([across, place // WINNER], axis=1), axis=0).T
        word, half = column.first_word + entry // 2, (WINNER * (entry % 2)).astype(np.uint64)
        both = [
            words_at(cells.packed_patterns, pairs[across, k], word) >> half & np.uint64(0xFFFFFFFF) for k in range(2)
        ]
        found.append(_Switches(across, entry, np.stack(both, axis=1).astype(np.int64)))
    return found


def wrong_switches(
    cells: Cells, net: Network, found: Sequence[_Switches], places: Floats, ends: Indices,
    seen: Tally = lambda points: None,
) -> Bools:  # fmt: skip
    """Which sides have something that changes across them and does not switch where they end, (n, m) of the places."""
    parts, wrong = parts_of(cells, net), np.zeros(len(ends), bool)
    at = [ends[s.side].ravel() for s in found]
    order = [np.argsort(a, kind="stable") for a in at]
    for rows in point_portions(len(places), net, seen):
        here = _evaluation(cells, net, places[rows], parts)
        for number, (part, s) in enumerate(zip(parts, found, strict=True)):
            mine = order[number][slice(*np.searchsorted(at[number], [rows.start, rows.stop], sorter=order[number]))]
            point, which = at[number][mine] - rows.start, mine // ends.shape[1]
            entry, what = s.entry[which], s.what[which]
            if number in here.contests:
                off = here.contests[number].apart(point, entry, what)
            else:
                away = here.values[part.site][point, entry] - np.array(net.sites[part.site].breakpoints)[what]
                off = np.abs(away) > ALONG_SIDES * here.errors[part.site][point, entry]
            wrong[s.side[which[off]]] = True
    return wrong


def wrong_exactly(cells: Cells, net: Network, chosen: Numbers) -> int | None:
    """How many of these cells have another pattern at their centre in exact arithmetic; None if that cannot be done."""
    at = cells.centres[chosen]
    exactly = exact_pieces(
        net, lambda p: cells._exact_points(at, p), cells._grid(at), cells._reach(at), len(cells.sites)
    )
    if exactly is None:
        return None
    pieces, winners = exactly
    patterns = cells.patterns_of(chosen)
    wrong = np.zeros(len(chosen), bool)
    for part in parts_of(cells, net):
        found = pieces[part.site] if part.tournament is None else winners[part.tournament]
        wrong |= (found != patterns[:, part.first : part.first + part.entries]).any(axis=1)
    return int(wrong.sum())
