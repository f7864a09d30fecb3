"""What forward passes and exact arithmetic say of cells, by other means than those that found them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regionscope.geometry.cells import Cells, portions
from regionscope.geometry.laws import usual_errors
from regionscope.geometry.predicates import EPS, SAFETY
from regionscope.geometry.settling import exact_pieces
from regionscope.tracing.network import Network, Site, Tournament, as_rows
from regionscope.tracing.steps import Step
from regionscope.types import Bools, Floats

ALONG_SIDES = 16  # how many usual errors a unit may be from its breakpoint at a vertex of a side where it switches

Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Part:
    """The columns of patterns that one site fills, or a tournament, with the step that says who won it."""

    site: int  # among those of the network
    first: int
    entries: int
    tournament: Tournament | None = None
    step: Step | None = None


def parts_of(cells: Cells, net: Network) -> list[Part]:
    """What the columns of `cells.patterns` stand for: the sites in order, the rounds of a tournament as one."""
    parts: list[Part] = []
    first = 0
    for number, site in enumerate(net.sites[: len(cells.sites)]):
        part, tournament = Part(number, first, site.units), site.tournament
        if tournament is not None and tournament.winners is not None:
            if any(tournament == other.tournament for other in parts):
                continue
            entries = int(np.prod(net.program.shapes[tournament.winners]))
            (step,) = (s for s in net.program.steps if tournament.winners in s.results)
            part = Part(number, first, entries, tournament, step)
        parts.append(part)
        first += part.entries
    return parts


@dataclass(frozen=True)
class Contest:
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

    def tied(self, winners: Numbers, others: Numbers, errors: float = 1.0) -> Bools:
        """Whether these winners and those are equally good, but for rounding."""
        return np.asarray(np.abs(self.scores(winners) - self.scores(others)) <= errors * self.error)


@dataclass(frozen=True)
class Evaluation:
    """The network at points: what enters each site and its usual errors, (n, units), and the tournaments by part."""

    values: list[Floats]
    errors: list[Floats]
    contests: dict[int, Contest]


@torch.no_grad()
def evaluation(cells: Cells, net: Network, places: Floats, parts: list[Part]) -> Evaluation:
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
            contests[number] = Contest(_grouped(part.step, entering), as_rows(winners).numpy(), error)
    return Evaluation([as_rows(v).numpy() for v in values], errors, contests)


def _grouped(step: Step, entering: Tensor) -> Tensor:
    """Competitors, the place of each in its group being the number that the step calls it by: (n, groups, places)."""
    if "pool" in step.name:
        spatial = len(step.named.get("kernel_size") or step.named["output_size"])
        return entering.flatten(-spatial).flatten(1, -2)
    return entering.movedim(step.named["dim"] % (entering.dim() - 1) + 1, -1)[:, None].flatten(1, -2)


def wrong_inside(cells: Cells, net: Network) -> tuple[Bools, int]:
    """Which cells have another pattern at their centre, and how many units are within rounding of a breakpoint."""
    parts, wrong, ties = parts_of(cells, net), np.zeros(len(cells), bool), 0
    for rows in portions(len(cells), net):
        found, patterns = evaluation(cells, net, cells.centres[rows], parts), cells.patterns_of(rows)
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
class Ends:
    """Ends of sides: the vertex there, and what the cells on both sides say of the units of a part."""

    vertex: Numbers
    first: Numbers
    second: Numbers

    def off_breakpoints(self, site: Site, values: Floats, errors: Floats) -> Bools:
        """Units that change their piece although they are not at the breakpoints between the two."""
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        off = np.zeros(low.shape, bool)
        for t, level in enumerate(site.breakpoints):
            away = np.abs(values[self.vertex] - level) > ALONG_SIDES * errors[self.vertex]
            off |= (low <= t) & (t < high) & away
        return off

    def off_tie(self, contest: Contest) -> Bools:
        """Winners that change although the two are not equally good."""
        there = Contest(contest.competitors[self.vertex], contest.winners[self.vertex], contest.error[self.vertex])
        return np.asarray((self.first != self.second) & ~there.tied(self.first, self.second, ALONG_SIDES))

    def off(self, found: Evaluation, number: int, part: Part, net: Network) -> Bools:
        """What changes here although it does not switch here, given the evaluation at the vertices."""
        if number in found.contests:
            return self.off_tie(found.contests[number])
        return self.off_breakpoints(net.sites[part.site], found.values[part.site], found.errors[part.site])


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
