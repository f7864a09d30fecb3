"""What can be checked about the cells of a plane, checked."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from regionscope.geometry import rational
from regionscope.geometry.patterns import patterns_at
from regionscope.geometry.predicates import Floats
from regionscope.tracing.network import Network

if TYPE_CHECKING:
    from regionscope.geometry.plane_cells import PlaneCells

AREA_ERROR = 1e-9  # of the sum of areas, relative to the domain's


@dataclass(frozen=True)
class Certificate:
    """What `PlaneCells.verify` found.

    `wrong_inside` counts cells whose centre has another pattern by a forward pass there, among those wider than the
    rounding of the coordinates (`too_thin` are not). `wrong_across` counts sides whose two cells differ in a unit that
    does not switch there, or not in the one that does. `checked_exactly` cells were evaluated in rational arithmetic,
    None if the network is not dense; `wrong_exactly` of them had another pattern.
    """

    cells: int
    area_error: float
    euler: int  # vertices - edges + cells: 1 for a disc
    wrong_inside: int
    too_thin: int
    wrong_across: int
    smallest_width: float
    close_decisions: int  # signs that rounding may have decided
    checked_exactly: int | None
    wrong_exactly: int

    @property
    def holds(self) -> bool:
        """Whether every check passed."""
        wrong = self.wrong_inside + self.wrong_across + self.wrong_exactly
        return self.area_error <= AREA_ERROR and self.euler == 1 and wrong == 0


def certificate(
    cells: "PlaneCells", net: Network, sample: int, generator: torch.Generator | None = None
) -> Certificate:
    """Check everything; see `Certificate`."""
    widths = cell_widths(cells)
    wide = widths > 1e3 * np.finfo(float).eps * max(1.0, np.abs(cells.vertices).max())
    inside = patterns_at(net, cells.columns, cells._points(cells.centres))
    wrong = (inside != cells.packed_patterns).any(axis=1)
    chosen = torch.randperm(int(wide.sum()), generator=generator)[:sample].numpy()
    exactly = wrong_exactly(cells, net, np.flatnonzero(wide)[chosen])
    return Certificate(
        cells=len(cells),
        area_error=abs(float(cells.areas.sum()) / cells.plane.area - 1),
        euler=len(cells.vertices) - len(cells.edges) + len(cells),
        wrong_inside=int((wrong & wide).sum()),
        too_thin=int((~wide).sum()),
        wrong_across=wrong_across(cells, net),
        smallest_width=float(widths.min()),
        close_decisions=cells.close_decisions,
        checked_exactly=None if exactly is None else len(chosen),
        wrong_exactly=exactly or 0,
    )


def cell_widths(cells: "PlaneCells") -> Floats:
    """Twice the area over the longest side's length: for a triangle, its height on that side."""
    first, second = cells.vertices[cells.corners], cells.vertices[cells._next_corners]
    longest = np.maximum.reduceat(np.linalg.norm(second - first, axis=1), cells.offsets[:-1])
    return np.asarray(2 * np.abs(cells.areas) / np.maximum(longest, np.finfo(float).tiny))


def wrong_across(cells: "PlaneCells", net: Network) -> int:
    """Sides whose cells do not differ in just the units that are zero along them."""
    edges = cells.edges
    inner = np.flatnonzero((edges.cells >= 0).all(axis=1))
    a, b = edges.cells[inner].T
    difference = cells.packed_patterns[a] ^ cells.packed_patterns[b]
    bits = np.bitwise_count(difference).sum(axis=1)
    wrong = int((bits == 0).sum())
    plural = inner[bits > 1]
    if len(plural) == 0:
        return wrong
    # several units switch at once: each must be within rounding of a breakpoint at both ends
    ends = edges.vertices[plural]
    used, places = np.unique(ends, return_inverse=True)
    values = net.preactivations(cells._points(cells.vertices[used]), batch_size=4096)
    names = [site.name for site in net.sites]
    for column in cells.columns:
        pieces = column.unpacked(cells.packed_patterns)
        if not column.breakpoints:
            continue
        site = names.index(column.name)
        z = values[site].reshape(len(used), -1).numpy()
        breakpoints = np.array(net.sites[site].breakpoints)
        off = np.abs(z[:, :, None] - breakpoints).min(axis=2) > 16 * cells.tolerances[names.index(column.name)]
        off = off[places.reshape(-1, 2)].any(axis=1)
        wrong += int(((pieces[edges.cells[plural, 0]] != pieces[edges.cells[plural, 1]]) & off).any(axis=1).sum())
    return wrong


def wrong_exactly(cells: "PlaneCells", net: Network, chosen: NDArray[np.int64]) -> int | None:
    """How many of these cells have another pattern at their centre in exact arithmetic; None if that cannot be done."""
    if not rational.can_check(net):
        return None
    x = rational.exact_points(cells.plane.origin, cells.plane.axes, cells.centres[chosen])
    found = rational.exact_bits(net, x, [c.name for c in cells.columns])
    wrong = np.zeros(len(chosen), bool)
    for column, bits in zip(cells.columns, found, strict=True):
        pieces = bits.reshape(len(chosen), column.breakpoints, -1).sum(axis=1)
        wrong |= (pieces != column.unpacked(cells.packed_patterns[chosen])).any(axis=1)
    return int(wrong.sum())
