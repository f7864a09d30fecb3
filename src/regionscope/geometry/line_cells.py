"""The exact linear regions of a network along lines and curves."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regionscope.disk import reading
from regionscope.geometry import maps, traversals
from regionscope.geometry.budget import DEFAULT
from regionscope.geometry.cells import SAMPLE, Cells, network_of, read_cells
from regionscope.geometry.complexes import owners
from regionscope.geometry.grids import Grid, grid_of
from regionscope.geometry.modular import modulo, remainders
from regionscope.geometry.patterns import PatternBlock, PatternTable
from regionscope.geometry.segments import Segments
from regionscope.geometry.stored import axis_lengths, check_numbers
from regionscope.geometry.sweep import exact, sweep
from regionscope.geometry.swept import Swept
from regionscope.points import as_tensor
from regionscope.tables import how_many
from regionscope.tracing.ledger import UnsupportedModel
from regionscope.tracing.network import Network, as_rows
from regionscope.tracing.trace import as_network
from regionscope.types import Array, Floats, Indices, Ints, Model, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regionscope.geometry.certificates import LineCertificate


@dataclass(frozen=True, eq=False, kw_only=True)
class LineCells(Cells):
    """The cells of a network along a line or curve, exact to the rounding of float64; made by `line_cells`.

    Places are fractions of the length, from 0 at the start to 1 at the end. Cell i runs from breakpoint i - 1 to i.
    `outputs` (n + 1, k) are those at the start, the breakpoints and the end. Signs are counted on all lines that were
    found together. The coordinate in which maps are affine is the length from the start; along a curve with corners,
    on the straight part that the middle of a cell lies on.
    """

    points: Tensor  # (k, *input_shape): the corners of the curve
    breakpoints: Floats  # (n - 1,) where one cell ends and the next begins
    site: Ints  # of the unit that switches at each breakpoint: its place in `sites`
    unit: Ints

    def __repr__(self) -> str:
        return f"LineCells({how_many(len(self), 'cell')}, length {self.length:.6g}{self._doubt})"

    def _facts(self) -> dict[str, object]:
        return {"cells": f"{len(self):,}", "length": f"{self.length:.6g}", "exact": self._certainty}

    @property
    def layers(self) -> Ints:
        """The layer of the unit that switches at each breakpoint."""
        return np.array([site.layer for site in self.sites] or [0], np.int32)[self.site]

    @cached_property
    def _path(self) -> Floats:
        """The fraction of the length at each corner of the curve."""
        so_far = np.concatenate([[0.0], np.cumsum(_steps(self.points))])
        return so_far / max(float(so_far[-1]), np.finfo(float).tiny)

    @property
    def length(self) -> float:
        """Of the whole curve."""
        return float(_steps(self.points).sum())

    @property
    def lengths(self) -> Floats:
        """Of every cell."""
        return np.diff(self.breakpoints, prepend=0.0, append=1.0) * self.length

    def at(self, places: Floats) -> Tensor:
        """The points of input space at these fractions of the length, (n, *input_shape)."""
        return along(self.points, self._corner_places(places))

    def _corner_places(self, places: Floats) -> Floats:
        """The same places counted in corners of the curve."""
        return np.interp(places, self._path, np.arange(len(self.points)))

    @cached_property
    def centres(self) -> Floats:
        """The middle of each cell."""
        ends = np.concatenate([[0.0], self.breakpoints, [1.0]])
        return np.asarray((ends[1:] + ends[:-1]) / 2)

    def _directions(self, places: Floats) -> Tensor:
        """The unit vector along the curve just before each place, (n, *input_shape)."""
        piece = np.clip(np.searchsorted(self._path, places) - 1, 0, len(self.points) - 2)
        step: Tensor = self.points[piece + 1] - self.points[piece]
        size: Tensor = step.flatten(1).norm(dim=1).clamp_min(1e-300)
        return step / size.view(-1, *[1] * (step.dim() - 1))

    def _points(self, places: Floats) -> Tensor:
        return self.at(places)

    def _coordinates(self, places: Floats) -> Floats:
        return self.length * places[:, None]

    def _axes(self, places: Floats) -> Tensor:
        return self._directions(places)[None]

    @cached_property
    def _size(self) -> float:
        return 2 * float(self.points.flatten(1).norm(dim=1).max())

    def _reach(self, places: Floats) -> float:
        return 2 * self._size

    def _exact_points(self, places: Floats, p: int) -> Tensor:
        piece, t = _split(self._corner_places(places), len(self.points))
        corners, share = remainders(self.points.flatten(1), p), remainders(torch.from_numpy(t), p)[:, None]
        step = modulo(corners[piece + 1] + (p - corners[piece]), p)
        return modulo(corners[piece] + modulo(share * step, p), p)

    def _grid(self, places: Floats) -> Grid:
        _, t = _split(self._corner_places(places), len(self.points))
        corners = grid_of(self.points)
        return corners.join(grid_of(torch.from_numpy(t)).product(corners))

    def functional_count(self) -> int:
        """The number of functional regions: neighbours on which the network is one affine map are joined."""
        if len(self) == 1:
            return 1
        u = self._directions(self.breakpoints)[None]
        before, after = (
            maps.derivatives(self._net, self.at(self.centres[side]), u, self.columns, self.patterns_of(side))[1]
            for side in (slice(None, -1), slice(1, None))
        )
        return 1 + int((~maps.same_maps(before, after)).sum())

    @property
    def corners(self) -> Floats:
        """All places where the outputs may bend: breakpoints and the corners of the curve."""
        return np.unique(np.concatenate([self._path, self.breakpoints]))

    @property
    def corner_outputs(self) -> Floats:
        """The outputs there."""
        return self._net(self.at(self.corners)).reshape(len(self.corners), -1).numpy()

    def plot(self, ax: "Axes | None" = None, *, output: int | None = None) -> "Axes":
        """The outputs along the line with the breakpoints; see `regionscope.plots.line`."""
        from regionscope.plots.lines import line

        return line(self, ax, output=output)

    def verify(self, *, sample: int = SAMPLE, generator: torch.Generator | None = None) -> "LineCertificate":
        """A certificate: what can be checked of these cells, checked; see `LineCertificate`.

        `sample` cells are checked in exact rational arithmetic as well, where the network allows it; without a
        `generator`, the same in every call.
        """
        from regionscope.geometry.certificates import line_certificate

        return line_certificate(self, self._any_net, sample, generator)

    def _arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("points", "breakpoints", "site", "unit")}

    @staticmethod
    def load(path: str | Path, model: Model | None = None) -> "LineCells":
        """Read the file that `save` wrote to this path. No code in it is ever executed.

        Give the model too for affine maps and `verify`.
        """
        with reading(path):
            common, stored = read_cells(path, "LineCells")
            _check_stored(stored, common)
            points = torch.from_numpy(stored.pop("points"))
        return LineCells(points=points, **stored, **common, network=network_of(model, points[0]))


def _check_stored(stored: Mapping[str, Any], common: Mapping[str, Any]) -> None:
    """An error if the breakpoints, their units and the patterns of a file do not belong together."""
    wanted = {"breakpoints": ("f", "breakpoints"), "site": ("i", "breakpoints"), "unit": ("i", "breakpoints")}
    lengths = axis_lengths(stored, wanted)
    if stored.keys() != {*wanted, "points"}:
        raise ValueError(f"it holds {', '.join(stored)}, which make no line")
    points = stored["points"]
    if points.ndim < 2 or len(points) < 2 or points.dtype.kind != "f" or not np.isfinite(points).all():
        raise ValueError(f"its points are {points.dtype} {points.shape}, or not finite: they make no line")
    if len(common["packed_patterns"]) != lengths["breakpoints"] + 1 or (np.diff(stored["breakpoints"]) < 0).any():
        raise ValueError("its breakpoints do not fit its patterns, or do not rise")
    check_numbers(stored, "site", -1, len(common["sites"]))


def line_cells(
    model: Model | Network,
    start: Array,
    end: Array,
    *,
    certified: bool = False,
    max_cells: int = 10_000_000,
    memory: int = DEFAULT,
    show_progress: bool = False,
) -> Any:
    """The exact linear regions of a piecewise-linear network on the segment from start to end (HR 3.1).

    `start` and `end` have the shape of an input, for one `LineCells`; or (n, *input_shape) for a list of n, found
    together, in blocks where `memory` bytes are not enough for all. The work is below one forward pass at the
    breakpoints. `certified` promises that every sign was proved, or raises `Undecided`; see `plane_cells`.

    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU())
    >>> _ = model[0].weight.data.fill_(1.0), model[0].bias.data.copy_(torch.tensor([-1.0, -3.0]))
    >>> cells = line_cells(model, torch.tensor([0.0]), torch.tensor([4.0]))
    >>> len(cells), cells.breakpoints
    (3, array([0.25, 0.75]))
    """
    start, end = as_tensor(start), as_tensor(end)
    if start.shape != end.shape:
        raise ValueError(f"start and end must have one shape, got {tuple(start.shape)} and {tuple(end.shape)}")
    net = exact(_as_network_of_points(model, start))
    single = tuple(start.shape) == net.input_shape
    starts, ends = (p[None] if single else p for p in (start, end))
    found = _cells_along(net, list(torch.stack([starts, ends], dim=1)), max_cells, memory, show_progress, certified)
    return found[0] if single else found


def curve_cells(
    model: Model | Network,
    points: Array,
    *,
    closed: bool = False,
    certified: bool = False,
    max_cells: int = 10_000_000,
    memory: int = DEFAULT,
    show_progress: bool = False,
) -> LineCells:
    """The exact linear regions along a polyline through points (k, *input_shape), back to its start if `closed`.

    A cell is a stretch of positive length, as long as possible, with one pattern. So a point that follows itself makes
    no cell and is left out of the corners, and a curve that touches a boundary and comes back on the same side stays in
    its cell; a corner is a breakpoint only if a unit switches there. A stretch that runs within a boundary has the
    pattern that `net.patterns` gives it: a ReLU at 0 is closed. A curve whose points are all the same is one cell of
    length 0. The start of a closed curve is no breakpoint, but its first and its last cell are counted apart. A cell
    may be so short that its ends are the same float64. `certified` promises that every sign was proved, or raises
    `Undecided`; see `plane_cells`.

    >>> corners = torch.tensor([[1.0], [0.0], [0.0], [1.0], [-1.0]])
    >>> curve_cells(torch.nn.ReLU(), corners).lengths
    array([3., 1.])
    """
    if len(points) < 2:
        raise ValueError(f"a curve needs at least 2 points, got {len(points)}")
    net, points = exact(as_network(model, points)), as_tensor(points)
    curve = _net_points(net, torch.cat([points, points[:1]]) if closed else points)
    moved = np.flatnonzero(_steps(curve) > 0) + 1
    corners = np.concatenate([[0], moved if len(moved) else [1]])
    return _cells_along(net, [curve[corners]], max_cells, memory, show_progress, certified)[0]


def _as_network_of_points(model: Model | Network, points: Tensor) -> Network:
    """A network for which `points` are one input or a batch of them; a batch if both would do."""
    if isinstance(model, Network) or points.dim() == 1:
        return as_network(model, points[None])
    try:
        return as_network(model, points)
    except UnsupportedModel:
        raise
    except (RuntimeError, ValueError):  # torch: the shapes do not fit
        return as_network(model, points[None])


def along(curve: Tensor, places: Floats) -> Tensor:
    """The points of a polyline (k, ...) at places from 0 to k - 1; corner i is at place i."""
    piece, share = _split(places, len(curve))
    t = torch.from_numpy(share).view(-1, *[1] * (curve.dim() - 1))
    return curve[piece] + t * (curve[piece + 1] - curve[piece])


def _split(places: Floats, corners: int) -> tuple[Indices, Floats]:
    """The corner before each place of a curve, and the share of the way to the next one."""
    piece = np.clip(places.astype(np.int64), 0, corners - 2)
    return piece, places - piece


def _cells_along(
    net: Network, curves: list[Tensor], max_cells: int, memory: int, show_progress: bool, certified: bool
) -> list[LineCells]:
    """The cells of all curves, cut together by all sites of a frozen network."""
    curves = [_net_points(net, curve) for curve in curves]
    made = Segments(curves)
    swept = sweep(net, made, max_cells=max_cells, memory=memory, show_progress=show_progress, certified=certified)
    patterns = swept.patterns()
    return [_line_cells_of(net, curve, made, patterns, swept, number) for number, curve in enumerate(curves)]


def _net_points(net: Network, curve: Tensor) -> Tensor:
    """The corners of a curve as float64 points of the network."""
    return net.checked(curve.cpu().double().reshape(len(curve), *net.input_shape))


def _steps(curve: Tensor) -> Floats:
    """The lengths of the straight parts of a polyline (k, ...): (k - 1,)."""
    return np.asarray((curve[1:] - curve[:-1]).flatten(1).norm(dim=1).numpy())


def _line_cells_of(
    net: Network, curve: Tensor, made: Segments, all_patterns: Words | PatternTable, swept: Swept, number: int
) -> LineCells:
    """The cells of one curve: pieces in order, those with the same pattern joined, those without length left out."""
    assert swept.outputs is not None
    chain = made.chain
    order = traversals.chain(made.heads[number], chain.after)
    whole = LineCells(
        points=curve,
        breakpoints=np.zeros(0),
        packed_patterns=all_patterns[order[:1]],
        columns=tuple(swept.columns),
        site=np.zeros(0, np.int32),
        unit=np.zeros(0, np.int32),
        sites=net.sites,
        outputs=swept.outputs[order[[0, -1]]],
        close_decisions=swept.close_decisions,
        undecided=swept.undecided,
        network=net,
    )
    fractions = np.maximum.accumulate(np.interp(chain.place[order], np.arange(len(curve)), whole._path))
    long = np.diff(fractions) > 0
    pieces = np.flatnonzero(long if swept.undecided else np.ones_like(long))  # a piece that was not proved needs length
    if not len(pieces):
        return whole
    patterns = all_patterns[order[pieces]]
    new = np.flatnonzero((patterns[1:] != patterns[:-1]).any(axis=1)) + 1  # pieces at whose start a cell begins
    starts = pieces[new]
    site, unit = owners(chain.label[order[starts]], swept.boundaries)
    cells = replace(
        whole,
        breakpoints=fractions[starts],
        packed_patterns=_as_before(all_patterns, patterns[np.concatenate([[0], new])]),
        site=site,
        unit=unit,
        outputs=swept.outputs[order[np.concatenate([[0], starts, [-1]])]],
    )
    return _named_at_corners(cells)


def _as_before(like: Words | PatternTable, patterns: Words) -> Words | PatternTable:
    """Patterns in a block, if those of all curves are in blocks."""
    return PatternTable((PatternBlock.of(patterns),)) if isinstance(like, PatternTable) else patterns


def _named_at_corners(cells: LineCells) -> LineCells:
    """The same cells, with the unit that switches where the curve crosses a boundary just at a corner of its own."""
    which = np.flatnonzero(cells.site < 0)
    if not len(which):
        return cells
    net, site, unit = cells._any_net, cells.site.copy(), cells.unit.copy()
    before, after = (net.patterns(cells.at(cells.centres[which + side])) for side in (0, 1))
    values = [as_rows(v) for v in net.preactivations(cells.at(cells.breakpoints[which]))]
    off = torch.cat([
        (v[..., None] - torch.tensor(s.breakpoints, dtype=v.dtype)).abs().amin(dim=2)
        for v, s in zip(values, net.sites, strict=True)
    ], dim=1)  # fmt: skip
    nearest = (off + (before == after) * (1 + off.max())).argmin(dim=1).numpy()  # if it can be, one that has switched
    firsts = np.cumsum([0, *(s.units for s in net.sites)])
    site[which] = np.searchsorted(firsts, nearest, side="right") - 1
    unit[which] = nearest - firsts[site[which]]
    return replace(cells, site=site, unit=unit)
