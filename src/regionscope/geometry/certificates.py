"""What can be checked about cells, checked by other means than those that found them."""

import sys
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import torch

from regionscope.geometry.cells import SAMPLE, Tally, point_portions
from regionscope.geometry.checks import (
    ALONG_SIDES,
    parts_of,
    switches,
    wrong_exactly,
    wrong_inside,
    wrong_switches,
)
from regionscope.geometry.complexes import TooManyCells
from regionscope.geometry.forecasts import Forecast
from regionscope.geometry.laws import usual_output_errors
from regionscope.geometry.line_cells import LineCells
from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import Plane
from regionscope.geometry.predicates import EPS, SAFETY
from regionscope.machine import busy_seconds
from regionscope.progress import tqdm
from regionscope.tables import Facts
from regionscope.tracing.given import points_kept_at_once
from regionscope.tracing.network import Network, as_rows
from regionscope.types import Bools, Floats, Indices

AREA_ERROR = 1e-9  # of the sum of areas, relative to the domain's
TRIED = 256  # cells at the most that are certified to see how long that takes
LITTLE = 0.1  # of the cells that are expected, too
MOST = 16  # times as many are too many
LARGER = 4  # times the area, if there are far fewer
LOOKS = 8  # for a part with about as many


class Verdict(Facts):
    """Says whether it holds, and what is wrong if it does not."""

    cells: int
    undecided: int
    checked_exactly: int | None

    @property
    def holds(self) -> bool:
        """Whether every check passed."""
        return not self.wrong

    @property
    @abstractmethod
    def wrong(self) -> dict[str, float]:
        """The checks that failed, by name, with what they counted."""

    def _facts(self) -> dict[str, object]:
        return {
            "verdict": "holds" if self.holds else "does not hold", "cells": f"{self.cells:,}",
            **{name.replace("_", " "): f"{value:.3g}" for name, value in self.wrong.items()},
            "checked exactly": self.checked_exactly, "undecided": self.undecided,
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class Certificate(Verdict):
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
    def wrong(self) -> dict[str, float]:
        """The checks that failed, by name, with what they counted."""
        counts = ("unpaired", "not_convex", "wrong_inside", "wrong_across", "wrong_outputs", "wrong_exactly")
        found = {name: getattr(self, name) for name in counts if getattr(self, name)}
        found |= {} if self.area_error <= AREA_ERROR else {"area_error": self.area_error}
        return found | ({} if self.euler == 1 else {"euler": self.euler})


@dataclass(frozen=True, repr=False)
class LineCertificate(Verdict):
    """What `LineCells.verify` found, as `Certificate` says it of planes.

    `not_in_order` counts breakpoints that are not between their neighbours. `wrong_across` counts breakpoints at which
    no pattern changes, or a unit that does not switch there.
    """

    cells: int
    not_in_order: int
    wrong_inside: int
    ties: int
    too_short: int
    wrong_across: int
    smallest_length: float
    close_decisions: int
    undecided: int
    checked_exactly: int | None
    wrong_exactly: int

    @property
    def wrong(self) -> dict[str, float]:
        """The checks that failed, by name, with what they counted."""
        counts = ("not_in_order", "wrong_inside", "wrong_across", "wrong_exactly")
        return {name: getattr(self, name) for name in counts if getattr(self, name)}


def certificate(
    cells: PlaneCells,
    net: Network,
    sample: int,
    generator: torch.Generator | None = None,
    *,
    show_progress: bool = False,
) -> Certificate:
    """Check everything; see `Certificate`."""
    widths = _cell_widths(cells)
    wide = widths > 1e3 * EPS * _coordinate_size(cells)
    chosen = _sample(wide, sample, generator)
    with tqdm(total=_points_seen(cells), desc="certifying", unit="point", disable=not show_progress) as bar:
        wrong, ties = wrong_inside(cells, net, bar.update)
        across, outputs = _wrong_across(cells, net, bar.update), _wrong_outputs(cells, net, bar.update)
        exactly = wrong_exactly(cells, net, chosen)
    return Certificate(
        cells=len(cells),
        area_error=abs(float(cells.areas.sum()) / cells.plane.area - 1),
        euler=len(cells.vertices) - len(cells.edges) + len(cells),
        unpaired=_unpaired_sides(cells) + _misdescribed_edges(cells),
        not_convex=_not_convex(cells, wide),
        wrong_inside=int((wrong & wide).sum()),
        ties=ties,
        too_thin=int((~wide).sum()),
        wrong_across=across,
        wrong_outputs=outputs,
        smallest_width=float(widths.min()),
        close_decisions=cells.close_decisions,
        undecided=cells.undecided,
        checked_exactly=None if exactly is None else len(chosen),
        wrong_exactly=exactly or 0,
    )


def _points_seen(cells: PlaneCells) -> int:
    """At how many points a certificate looks at the network: in cells, at vertices, and there at the outputs."""
    return len(cells) + len(cells.vertices) * (1 if cells.outputs is None else 2)


@dataclass(frozen=True)
class CertificateCost:
    """What a certificate takes: seconds for a cell with its vertices, and for those cells that are checked exactly."""

    each: float
    exactly: float

    def added_to(self, found: Forecast) -> Forecast:
        """A forecast that counts the certificate, too."""
        return replace(found, certificate_seconds=self.each * found.cells + self.exactly)


def certificate_cost(net: Network, plane: Plane, found: Forecast, *, up_to_layer: int | None = None) -> CertificateCost:
    """What certificates of the cells of a plane take, given a frozen network, from a small part of it.

    As long as to find the cells, if there is no part of a size to try.
    """
    cells = _some_cells(net, plane, found, up_to_layer)
    if cells is None:
        return CertificateCost(found.seconds / found.cells, 0.0)
    seconds = busy_seconds(lambda: (wrong_inside(cells, net), _wrong_across(cells, net), _wrong_outputs(cells, net)))
    exactly = busy_seconds(lambda: wrong_exactly(cells, net, np.arange(1)))
    return CertificateCost(seconds / len(cells), exactly * min(SAMPLE, found.cells))


def _some_cells(net: Network, plane: Plane, found: Forecast, up_to_layer: int | None) -> PlaneCells | None:
    """Those of a part of a plane, about as many as are tried: a few alone would take far longer each.

    It is away from the middle, which may be a point where thousands of boundaries meet, however near one looks.
    """
    tried = max(min(TRIED, points_kept_at_once(net), LITTLE * found.cells), 1.0)
    about = (plane.domain.mean(axis=0) + plane.domain[0]) / 2
    share, least, most, best = min(tried / found.cells, 1.0), 0.0, np.inf, None
    for _ in range(LOOKS):
        part = Plane(plane.origin, plane.axes, about + np.sqrt(share) * (plane.domain - about), plane.anchors)
        try:
            cells = plane_cells(net, part, up_to_layer=up_to_layer, max_cells=int(MOST * tried), memory=sys.maxsize)
        except TooManyCells:
            most = share
        else:
            least, best = share, cells
            if len(cells) >= tried / 2 or share == 1:
                break
        share = min(LARGER * least, 1.0) if most == np.inf else np.sqrt(least * most) if least else most / LARGER
    return best


def line_certificate(
    cells: LineCells, net: Network, sample: int, generator: torch.Generator | None = None
) -> LineCertificate:
    """Check everything; see `LineCertificate`."""
    long = cells.lengths > 1e3 * EPS * cells._size
    wrong, ties = wrong_inside(cells, net)
    chosen = _sample(long, sample, generator)
    exactly = wrong_exactly(cells, net, chosen)
    places = np.concatenate([[0.0], cells.breakpoints, [1.0]])
    return LineCertificate(
        cells=len(cells),
        not_in_order=int((np.diff(places) < 0).sum()),
        wrong_inside=int((wrong & long).sum()),
        ties=ties,
        too_short=int((~long).sum()),
        wrong_across=_wrong_at_breakpoints(cells, net),
        smallest_length=float(cells.lengths.min()),
        close_decisions=cells.close_decisions,
        undecided=cells.undecided,
        checked_exactly=None if exactly is None else len(chosen),
        wrong_exactly=exactly or 0,
    )


def _sample(chosen: Bools, most: int, generator: torch.Generator | None) -> Indices:
    """The numbers of some of these cells."""
    generator = generator or torch.Generator().manual_seed(0)
    order = torch.randperm(int(chosen.sum()), generator=generator)[:most].numpy()
    return np.asarray(np.flatnonzero(chosen)[order])


def _wrong_at_breakpoints(cells: LineCells, net: Network) -> int:
    """Breakpoints whose cells do not differ in just some of the units that switch there."""
    before = np.arange(len(cells) - 1)
    found, same = switches(cells, np.stack([before, before + 1], axis=1)), np.ones(len(before), bool)
    for part in found:
        same[part.side] = False
    return int((same | wrong_switches(cells, net, found, cells.breakpoints, before[:, None])).sum())


def _coordinate_size(cells: PlaneCells) -> float:
    """How large the numbers are whose rounding moves vertices: those of a plane far from 0 are no finer than there."""
    return max(min(1.0, float(cells.plane.origin.norm())), float(np.abs(cells.vertices).max()))


def _cell_widths(cells: PlaneCells) -> Floats:
    """Twice the area over the longest side's length: for a triangle, its height on that side."""
    first, second = cells.vertices[cells.corners], cells.vertices[cells._next_corners]
    longest = np.maximum.reduceat(np.linalg.norm(second - first, axis=1), cells.offsets[:-1])
    return np.asarray(2 * np.abs(cells.areas) / np.maximum(longest, np.finfo(float).tiny))


def _unpaired_sides(cells: PlaneCells) -> int:
    """How many sides, by cell, start and end, are only in the loops of corners or only among the edges."""
    edges = cells.edges
    loops = np.stack([np.repeat(np.arange(len(cells)), np.diff(cells.offsets)), cells.corners, cells._next_corners], 1)
    both = [np.column_stack([edges.cells[:, k], edges.vertices[:, k], edges.vertices[:, 1 - k]]) for k in range(2)]
    sides = np.concatenate(both)
    _, number = np.unique(np.concatenate([loops, sides[sides[:, 0] >= 0]]), axis=0, return_inverse=True)
    among = [np.bincount(part, minlength=number.max() + 1) for part in np.split(number.ravel(), [len(loops)])]
    return int(np.abs(among[0] - among[1]).sum())


def _misdescribed_edges(cells: PlaneCells) -> int:
    """How many edges say another layer or length than their site and their ends."""
    edges, layers = cells.edges, np.array([site.layer for site in cells.sites] + [0])
    length = np.linalg.norm(cells.vertices[edges.vertices[:, 1]] - cells.vertices[edges.vertices[:, 0]], axis=1)
    wrong = np.abs(edges.length - length) > 1e3 * EPS * _coordinate_size(cells)
    return int((wrong | (edges.layer != layers[np.clip(edges.site, -1, len(cells.sites))])).sum())


def _not_convex(cells: PlaneCells, wide: Bools) -> int:
    """Wide cells that are not convex polygons, counter-clockwise, to within the rounding of coordinates."""
    a, b = cells.vertices[cells.corners], cells.vertices[cells._next_corners]
    c = cells.vertices[cells._next_corners[cells._next_places]]
    (ax, ay), (bx, by) = (b - a).T, (c - b).T
    size = _coordinate_size(cells)
    bad = ax * by - ay * bx < -1e3 * EPS * size * (np.hypot(ax, ay) + np.hypot(bx, by))
    return int(((np.logical_or.reduceat(bad, cells.offsets[:-1]) | (cells.areas <= 0)) & wide).sum())


def _wrong_outputs(cells: PlaneCells, net: Network, seen: Tally = lambda points: None) -> int:
    """Vertices whose outputs are not those of a forward pass there, to within rounding."""
    if cells.outputs is None:
        return 0
    wrong = 0
    for rows in point_portions(len(cells.vertices), net, seen):
        x = cells._points(cells.vertices[rows])
        claimed, found = cells.outputs[rows], net(x).reshape(len(x), -1).numpy()
        norm, *norms = (as_rows(v).norm(dim=1).numpy() for v in (x, *net.preactivations(x)))
        errors = usual_output_errors(net, norm, np.full(len(x), SAFETY * EPS * cells._size), norms)
        wrong += int((~(np.abs(claimed - found) <= ALONG_SIDES * errors)).any(axis=1).sum())
    return wrong


def _wrong_across(cells: PlaneCells, net: Network, seen: Tally = lambda points: None) -> int:
    """Sides whose cells do not differ in just the units that switch along them."""
    edges = cells.edges
    inner = np.flatnonzero((edges.cells >= 0).all(axis=1))
    pairs, ends = (array[inner].astype(np.int64) for array in (edges.cells, edges.vertices))
    found, by_maker = switches(cells, pairs), np.zeros(len(inner), bool)
    for part, changed in zip(parts_of(cells, net), found, strict=True):
        site, unit = edges.site[inner[changed.side]], edges.unit[inner[changed.side]]
        if part.tournament is not None:
            rounds = [n for n, s in enumerate(net.sites) if s.tournament == part.tournament]
            by_maker[changed.side[np.isin(site, rounds)]] = True
        else:
            by_maker[changed.side[(site == part.site) & (unit == changed.entry)]] = True
    return int((~by_maker | wrong_switches(cells, net, found, cells.vertices, ends, seen)).sum())
