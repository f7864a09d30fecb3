"""What can be checked about the cells of a plane, checked by other means than those that found them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regionscope.geometry.plane_cells import PlaneCells
from regionscope.geometry.predicates import EPS, SAFETY
from regionscope.geometry.sweep import exact_pieces, usual_errors, usual_output_errors
from regionscope.tracing.network import Network, Site
from regionscope.tracing.steps import Step
from regionscope.types import Floats

AREA_ERROR = 1e-9  # of the sum of areas, relative to the domain's
ALONG_SIDES = 16  # how many usual errors a unit may be from its breakpoint at a vertex of a side where it switches
AT_ONCE = 4096  # points

Mask = NDArray[np.bool_]
Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Certificate:
    """What `PlaneCells.verify` found.

    Every number comes from forward passes of the network and from the polygons, not from what the search for the cells
    had written down. `unpaired` counts sides of cells that are no edges and edges that are no sides of the cells they
    name, or not of the length or layer that they say. `wrong_inside` counts cells whose centre has another pattern by a
    forward pass there, among those wider than the rounding of the coordinates (`too_thin` are not); a unit that is as
    near to a breakpoint there as rounding may bring it says nothing, and `ties` counts them. `wrong_across` counts
    sides whose two cells have the same pattern, or differ in a unit that does not switch there, or not in the one that
    made the side; `wrong_outputs`, vertices where the network has other outputs. `checked_exactly` cells were evaluated
    in exact arithmetic, None if the network has an operation without an exact form; `wrong_exactly` of them had another
    pattern. `undecided` signs were not proved when the cells were found.
    """

    cells: int
    area_error: float
    euler: int  # vertices - edges + cells: 1 for a disc
    unpaired: int
    not_convex: int  # cells with a corner that turns the wrong way, or without area
    wrong_inside: int
    ties: int
    too_thin: int
    wrong_across: int
    wrong_outputs: int
    smallest_width: float
    close_decisions: int  # signs that bounds on rounding left open
    undecided: int
    checked_exactly: int | None
    wrong_exactly: int

    @property
    def holds(self) -> bool:
        """Whether every check passed."""
        wrong = (
            *(self.unpaired, self.not_convex, self.wrong_inside, self.wrong_across),
            *(self.wrong_outputs, self.wrong_exactly),
        )
        return self.area_error <= AREA_ERROR and self.euler == 1 and not any(wrong)


def certificate(cells: PlaneCells, net: Network, sample: int, generator: torch.Generator | None = None) -> Certificate:
    """Check everything; see `Certificate`."""
    widths = cell_widths(cells)
    wide = widths > 1e3 * EPS * coordinate_size(cells)
    wrong, ties = wrong_inside(cells, net)
    chosen = np.flatnonzero(wide)[torch.randperm(int(wide.sum()), generator=generator)[:sample].numpy()]
    exactly = wrong_exactly(cells, net, chosen)
    return Certificate(
        cells=len(cells),
        area_error=abs(float(cells.areas.sum()) / cells.plane.area - 1),
        euler=len(cells.vertices) - len(cells.edges) + len(cells),
        unpaired=unpaired(cells) + misdescribed(cells),
        not_convex=not_convex(cells, wide),
        wrong_inside=int((wrong & wide).sum()),
        ties=ties,
        too_thin=int((~wide).sum()),
        wrong_across=wrong_across(cells, net),
        wrong_outputs=wrong_outputs(cells, net),
        smallest_width=float(widths.min()),
        close_decisions=cells.close_decisions,
        undecided=cells.undecided,
        checked_exactly=None if exactly is None else len(chosen),
        wrong_exactly=exactly or 0,
    )


def coordinate_size(cells: PlaneCells) -> float:
    """How large the numbers are whose rounding moves vertices: those of a plane far from 0 are no finer than there."""
    return max(min(1.0, float(cells.plane.origin.norm())), float(np.abs(cells.vertices).max()))


def cell_widths(cells: PlaneCells) -> Floats:
    """Twice the area over the longest side's length: for a triangle, its height on that side."""
    first, second = cells.vertices[cells.corners], cells.vertices[cells._next_corners]
    longest = np.maximum.reduceat(np.linalg.norm(second - first, axis=1), cells.offsets[:-1])
    return np.asarray(2 * np.abs(cells.areas) / np.maximum(longest, np.finfo(float).tiny))


def unpaired(cells: PlaneCells) -> int:
    """How many sides, by cell, start and end, are only in the loops of corners or only among the edges."""
    edges = cells.edges
    loops = np.stack([np.repeat(np.arange(len(cells)), np.diff(cells.offsets)), cells.corners, cells._next_corners], 1)
    both = [np.column_stack([edges.cells[:, k], edges.vertices[:, k], edges.vertices[:, 1 - k]]) for k in range(2)]
    sides = np.concatenate(both)
    _, number = np.unique(np.concatenate([loops, sides[sides[:, 0] >= 0]]), axis=0, return_inverse=True)
    among = [np.bincount(part, minlength=number.max() + 1) for part in np.split(number.ravel(), [len(loops)])]
    return int(np.abs(among[0] - among[1]).sum())


def misdescribed(cells: PlaneCells) -> int:
    """How many edges say another layer or length than their site and their ends."""
    edges, layers = cells.edges, np.array([site.layer for site in cells.sites] + [0])
    length = np.linalg.norm(cells.vertices[edges.vertices[:, 1]] - cells.vertices[edges.vertices[:, 0]], axis=1)
    wrong = np.abs(edges.length - length) > 1e3 * EPS * coordinate_size(cells)
    return int((wrong | (edges.layer != layers[np.clip(edges.site, -1, len(cells.sites))])).sum())


def not_convex(cells: PlaneCells, wide: Mask) -> int:
    """Wide cells that are not convex polygons, counter-clockwise, to within the rounding of coordinates."""
    following = np.arange(1, len(cells.corners) + 1)
    following[cells.offsets[1:] - 1] = cells.offsets[:-1]
    a, b = cells.vertices[cells.corners], cells.vertices[cells.corners[following]]
    c = cells.vertices[cells.corners[following[following]]]
    (ax, ay), (bx, by) = (b - a).T, (c - b).T
    size = coordinate_size(cells)
    bad = ax * by - ay * bx < -1e3 * EPS * size * (np.hypot(ax, ay) + np.hypot(bx, by))
    return int(((np.logical_or.reduceat(bad, cells.offsets[:-1]) | (cells.areas <= 0)) & wide).sum())


# patterns by forward passes


@dataclass(frozen=True)
class Part:
    """The columns of patterns that one site or tournament fills; `step` says who won it."""

    site: int  # among those of the network
    first: int
    entries: int
    step: Step | None = None


def parts_of(cells: PlaneCells, net: Network) -> list[Part]:
    """What the columns of `cells.patterns` stand for: the sites in order, the rounds of a tournament as one."""
    parts: list[Part] = []
    first, seen = 0, set()
    for number, site in enumerate(net.sites[: len(cells.sites)]):
        entries, step = site.units, None
        if site.tournament in net.winners:
            if site.tournament in seen:
                continue
            seen.add(site.tournament)
            winners = net.winners[str(site.tournament)]
            entries = int(np.prod(net.program.shapes[winners]))
            (step,) = (s for s in net.program.steps if winners in s.results)
        parts.append(Part(number, first, entries, step))
        first += entries
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

    def tied(self, winners: Numbers, others: Numbers, errors: float = 1.0) -> Mask:
        """Whether these winners and those are equally good, but for rounding."""
        return np.asarray(np.abs(self.scores(winners) - self.scores(others)) <= errors * self.error)


@dataclass(frozen=True)
class Evaluation:
    """The network at points: what enters each site and its usual errors, (n, units), and the tournaments by part."""

    values: list[Floats]
    errors: list[Floats]
    contests: dict[int, Contest]


def rounding_of(cells: PlaneCells) -> float:
    """How far points usually are from where plane coordinates say, which are rounded as the vertices are."""
    return SAFETY * EPS * (float(cells.plane.origin.norm()) + float(np.abs(cells.vertices).max()))


@torch.no_grad()
def evaluated(cells: PlaneCells, net: Network, u: Floats, parts: list[Part]) -> Evaluation:
    """Plain forward passes at plane coordinates, which are rounded as the vertices are."""
    x = cells._points(u)
    values = net.preactivations(x)
    rounded = rounding_of(cells)
    norm, *norms = (v.flatten(1).norm(dim=1).numpy() for v in (x, *values))
    errors = usual_errors(net, norm, np.full(len(x), rounded), norms)
    contests = {}
    for number, part in enumerate(parts):
        if part.step is not None:
            (source,) = part.step.used & net.program.shapes.keys()
            name = str(net.sites[part.site].tournament)
            entering, winners = net.program.pruned([source, net.winners[name]]).run(x)
            rounds = [e for e, site in zip(errors, net.sites, strict=True) if site.tournament == name]
            error = np.concatenate(rounds, axis=1).max(axis=1, keepdims=True, initial=0.0)
            contests[number] = Contest(grouped(part.step, entering), winners.flatten(1).numpy(), error)
    return Evaluation([v.flatten(1).numpy() for v in values], errors, contests)


def grouped(step: Step, entering: Tensor) -> Tensor:
    """Competitors, the place of each in its group being the number that the step calls it by: (n, groups, places)."""
    if "pool" in step.name:
        spatial = len(step.named.get("kernel_size") or step.named["output_size"])
        return entering.flatten(-spatial).flatten(1, -2)
    return entering.movedim(step.named["dim"] % (entering.dim() - 1) + 1, -1).flatten(1, -2)


def wrong_inside(cells: PlaneCells, net: Network) -> tuple[Mask, int]:
    """Which cells have another pattern at their centre, and how many units are within rounding of a breakpoint."""
    parts, wrong, ties = parts_of(cells, net), np.zeros(len(cells), bool), 0
    for start in range(0, len(cells), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        found = evaluated(cells, net, cells.centres[rows], parts)
        for number, part in enumerate(parts):
            claimed = cells.patterns[rows, part.first : part.first + part.entries]
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


def wrong_outputs(cells: PlaneCells, net: Network) -> int:
    """Vertices whose outputs are not those of a forward pass there, to within rounding."""
    wrong = 0
    for start in range(0, len(cells.vertices) if cells.outputs is not None else 0, AT_ONCE):
        x = cells._points(cells.vertices[start : start + AT_ONCE])
        claimed, found = cells.outputs[start : start + AT_ONCE], net(x).reshape(len(x), -1).numpy()
        norm, *norms = (v.flatten(1).norm(dim=1).numpy() for v in (x, *net.preactivations(x)))
        errors = usual_output_errors(net, norm, np.full(len(x), rounding_of(cells)), norms)
        wrong += int((~(np.abs(claimed - found) <= ALONG_SIDES * errors)).any(axis=1).sum())
    return wrong


def wrong_across(cells: PlaneCells, net: Network) -> int:
    """Sides whose cells do not differ in just the units that switch along them."""
    parts, edges = parts_of(cells, net), cells.edges
    inner = (edges.cells >= 0).all(axis=1)
    wrong = inner & ~differ_in_maker(cells, net, parts)
    half = np.flatnonzero(np.repeat(inner, 2))  # an end of a side each, by vertices
    half = half[np.argsort(edges.vertices.ravel()[half], kind="stable")]
    vertex = edges.vertices.ravel()[half]
    for start in range(0, len(cells.vertices), AT_ONCE):
        mine = slice(*np.searchsorted(vertex, [start, start + AT_ONCE]))
        found = evaluated(cells, net, cells.vertices[start : start + AT_ONCE], parts)
        edge = half[mine] >> 1
        for number, part in enumerate(parts):
            first, second = (cells.patterns[c, part.first : part.first + part.entries] for c in edges.cells[edge].T)
            changed = (first != second).any(axis=1)
            here = Ends((vertex[mine] - start)[changed], first[changed], second[changed])
            if number in found.contests:
                off = here.off_tie(found.contests[number])
            else:
                off = here.off_breakpoints(net.sites[part.site], found.values[part.site], found.errors[part.site])
            wrong[edge[changed][off.any(axis=1)]] = True
    return int(wrong.sum())


def differ_in_maker(cells: PlaneCells, net: Network, parts: list[Part]) -> Mask:
    """Whether the two cells of each inner side differ in the unit that made it, or who wins its tournament."""
    edges = cells.edges
    result = np.zeros(len(edges), bool)
    for part in parts:
        name = net.sites[part.site].tournament if part.step is not None else None
        sites = [n for n, s in enumerate(cells.sites) if n == part.site or (name is not None and s.tournament == name)]
        mine = np.flatnonzero(np.isin(edges.site, sites) & (edges.cells >= 0).all(axis=1))
        a, b = (cells.patterns[c, part.first : part.first + part.entries] for c in edges.cells[mine].T)
        each = np.arange(len(mine))
        differs = (a != b).any(axis=1) if name is not None else a[each, edges.unit[mine]] != b[each, edges.unit[mine]]
        result[mine] = differs
    return result


@dataclass(frozen=True)
class Ends:
    """Ends of sides: the vertex there, and what the cells on both sides say of the units of a part."""

    vertex: Numbers
    first: Numbers
    second: Numbers

    def off_breakpoints(self, site: Site, values: Floats, errors: Floats) -> Mask:
        """Units that change their piece although they are not at the breakpoints between the two."""
        low, high = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        off = np.zeros(low.shape, bool)
        for t, level in enumerate(site.breakpoints):
            away = np.abs(values[self.vertex] - level) > ALONG_SIDES * errors[self.vertex]
            off |= (low <= t) & (t < high) & away
        return off

    def off_tie(self, contest: Contest) -> Mask:
        """Winners that change although the two are not equally good."""
        there = Contest(contest.competitors[self.vertex], contest.winners[self.vertex], contest.error[self.vertex])
        return np.asarray((self.first != self.second) & ~there.tied(self.first, self.second, ALONG_SIDES))


def wrong_exactly(cells: PlaneCells, net: Network, chosen: Numbers) -> int | None:
    """How many of these cells have another pattern at their centre in exact arithmetic; None if that cannot be done."""
    exactly = exact_pieces(net, cells.plane, cells.centres[chosen], len(cells.sites))
    if exactly is None:
        return None
    pieces, winners = exactly
    wrong = np.zeros(len(chosen), bool)
    for part in parts_of(cells, net):
        site = net.sites[part.site]
        found = pieces[part.site] if part.step is None else winners[str(site.tournament)]
        wrong |= (found != cells.patterns[chosen, part.first : part.first + part.entries]).any(axis=1)
    return int(wrong.sum())
