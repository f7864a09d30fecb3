"""The exact linear regions of a network along lines and curves."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry import kernels, maps
from regionscope.geometry.patterns import Column, owners, unpacked
from regionscope.geometry.predicates import MISPLACED, SHIFT
from regionscope.geometry.rational import Cells, grid_of, remainders
from regionscope.geometry.subdivision import packed_patterns, pieces_of, sides_of
from regionscope.geometry.sweep import (
    ASKED_AT_ONCE,
    Cut,
    Meetings,
    Outcome,
    Sweep,
    cut_by_site,
    enlarged,
    exact,
    first_doubt,
    forms_of,
    is_last_round,
    run_to_the_end,
    say_if_compiling,
)
from regionscope.geometry.tournaments import Tournament
from regionscope.points import as_tensor
from regionscope.tracing.ledger import UnsupportedModel
from regionscope.tracing.network import Network, Site
from regionscope.tracing.trace import as_network
from regionscope.types import Array, Floats, Indices, Ints, Model, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class LineCells:
    """The cells of a network along a line or curve, exact to the rounding of float64; made by `line_cells`.

    Places are fractions of the length, from 0 at the start to 1 at the end. Cell i runs from breakpoint i - 1 to i.
    """

    points: Tensor  # (k, *input_shape): the corners of the curve
    breakpoints: Floats  # (n - 1,) where one cell ends and the next begins
    packed_patterns: Words
    columns: tuple[Column, ...]
    site: Ints  # of the unit that switches at each breakpoint: its place in `sites`
    unit: Ints
    sites: tuple[Site, ...]
    outputs: Floats  # (n + 1, k) at the start, the breakpoints and the end
    undecided: int  # signs that could not be proved, on all lines found together
    network: Network = field(repr=False)

    def __len__(self) -> int:
        """The number of activation regions."""
        return len(self.breakpoints) + 1

    def __repr__(self) -> str:
        return f"LineCells({len(self)} cells, length {self.length:.6g})"

    @property
    def layers(self) -> Ints:
        """The layer of the unit that switches at each breakpoint."""
        return np.array([site.layer for site in self.sites] or [0], np.int32)[self.site]

    @property
    def patterns(self) -> Ints:
        """The piece every unit is on, and the position of every winner of max-pooling and its like: (n, units)."""
        return unpacked(self.columns, self.packed_patterns)

    @cached_property
    def _path(self) -> Floats:
        """The fraction of the length at each corner of the curve."""
        so_far = np.concatenate([[0.0], np.cumsum(steps(self.points))])
        return so_far / max(float(so_far[-1]), np.finfo(float).tiny)

    @property
    def length(self) -> float:
        """Of the whole curve."""
        return float(steps(self.points).sum())

    @property
    def lengths(self) -> Floats:
        """Of every cell."""
        return np.diff(self.breakpoints, prepend=0.0, append=1.0) * self.length

    def at(self, places: Floats) -> Tensor:
        """The points of input space at these fractions of the length, (n, *input_shape)."""
        return along(self.points, np.interp(places, self._path, np.arange(len(self.points))))

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

    def affine_maps(self) -> tuple[Floats, Floats]:
        """Slope (n, k) per unit of length and value (n, k) of the outputs at the centre of each cell."""
        x = self.at(self.centres)
        values, slopes = maps.derivatives(self.network, x, self._directions(self.centres)[None])
        return slopes[:, :, 0], values

    def functional_count(self) -> int:
        """The number of functional regions: neighbours on which the network is one affine map are joined."""
        if len(self) == 1:
            return 1
        u = self._directions(self.breakpoints)[None]
        before, after = (
            maps.derivatives(self.network, self.at(side), u)[1] for side in (self.centres[:-1], self.centres[1:])
        )
        return 1 + int((~maps.same_maps(before, after)).sum())

    @property
    def corners(self) -> Floats:
        """All places where the outputs may bend: breakpoints and the corners of the curve."""
        return np.unique(np.concatenate([self._path, self.breakpoints]))

    @property
    def corner_outputs(self) -> Floats:
        """The outputs there."""
        return self.network(self.at(self.corners)).reshape(len(self.corners), -1).numpy()

    def plot(self, ax: "Axes | None" = None, *, output: int | None = None) -> "Axes":
        """The outputs along the line with the breakpoints; see `regionscope.plots.line`."""
        from regionscope.plots.lines import line

        return line(self, ax, output=output)


def line_cells(
    model: Model | Network,
    start: Array,
    end: Array,
    *,
    certified: bool = False,
    max_cells: int = 10_000_000,
    show_progress: bool = False,
) -> Any:
    """The exact linear regions of a piecewise-linear network on the segment from start to end (HR 3.1).

    `start` and `end` have the shape of an input, for one `LineCells`; or (n, *input_shape) for a list of n, found
    together. The work is below one forward pass at the breakpoints. `certified` promises that every sign was proved, or
    raises `Undecided`; see `plane_cells`.

    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU())
    >>> _ = model[0].weight.data.fill_(1.0), model[0].bias.data.copy_(torch.tensor([-1.0, -3.0]))
    >>> cells = line_cells(model, torch.tensor([0.0]), torch.tensor([4.0]))
    >>> len(cells), cells.breakpoints
    (3, array([0.25, 0.75]))
    """
    start, end = as_tensor(start), as_tensor(end)
    if start.shape != end.shape:
        raise ValueError(f"start and end must have one shape, got {tuple(start.shape)} and {tuple(end.shape)}")
    net = exact(as_network_of_points(model, start))
    single = tuple(start.shape) == net.input_shape
    starts, ends = (p[None] if single else p for p in (start, end))
    found = cells_along(net, list(torch.stack([starts, ends], dim=1)), max_cells, show_progress, certified)
    return found[0] if single else found


def curve_cells(
    model: Model | Network,
    points: Array,
    *,
    closed: bool = False,
    certified: bool = False,
    max_cells: int = 10_000_000,
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
    curve = net_points(net, torch.cat([points, points[:1]]) if closed else points)
    moved = np.flatnonzero(steps(curve) > 0) + 1
    corners = np.concatenate([[0], moved if len(moved) else [1]])
    return cells_along(net, [curve[corners]], max_cells, show_progress, certified)[0]


def as_network_of_points(model: Model | Network, points: Tensor) -> Network:
    """A network for which `points` are one input or a batch of them; a batch if both would do."""
    if isinstance(model, Network) or points.dim() == 1:
        return as_network(model, points[None])
    try:
        return as_network(model, points)
    except UnsupportedModel:
        raise
    except (RuntimeError, ValueError):  # torch: the shapes do not fit
        return as_network(model, points[None])


class Chains:
    """Curves that are being cut: piece v runs from vertex v to vertex after[v]; the last vertex of a curve has none."""

    def __init__(self, curves: Sequence[Tensor]) -> None:
        sizes = np.array([len(curve) for curve in curves])
        n, self.ends = int(sizes.sum()), np.cumsum(sizes) - 1
        self.begins = self.ends - sizes + 1
        self.points = torch.cat(list(curves))
        self.curve = np.repeat(np.arange(len(curves)), sizes)
        self.segment = np.arange(n)  # the corner before each vertex
        self.place = np.arange(n) - np.repeat(self.begins, sizes).astype(np.float64)  # corner i is at place i
        self.after = np.arange(1, n + 1, dtype=np.int32)
        self.after[self.ends] = -1
        self.stretch = np.zeros(n)  # the length of the segment
        self.stretch[:-1] = (self.points[1:] - self.points[:-1]).flatten(1).norm(dim=1).numpy()
        self.stretch[self.ends] = 0.0
        self.label = np.full(n, -1, np.int32)
        self.source = np.arange(n, dtype=np.int32)
        self.bits: list[Words] = []
        self.won: dict[str, Words] = {}

    def directions(self) -> Tensor:
        """The unit vectors along all segments, (segments, 1, *input_shape)."""
        steps = (self.points[1:] - self.points[:-1])[self.stretch[:-1] > 0]
        lengths = steps.flatten(1).norm(dim=1).view(-1, *[1] * (steps.dim() - 1))
        return torch.div(steps, lengths)[:, None]

    def kept(self) -> dict[str, Any]:
        """All that a cut changes, as it is now."""
        return dict(vars(self))

    def cut(self, cut: Cut, most: int, settled: Indices) -> Outcome:
        """Cut all pieces by a site; `settled` are signs of new vertices that are known."""
        roots, site = len(self.place), cut.boundaries.site
        room = kernels.piece_room(self.after, cut.above, cut.below)
        for name in PER_PIECE:
            setattr(self, name, enlarged(getattr(self, name), roots + room))
        cut, count = cut.grown(roots + room), np.zeros(kernels.COUNTERS, np.int64)
        count[kernels.VERTICES] = roots
        asked = np.empty((ASKED_AT_ONCE, 5), np.int64)

        def kernel() -> int:
            return int(kernels.cut_pieces(
                count, cut.boundaries.first, cut.breakpoints, cut.values, cut.fresh, cut.rows, cut.law, cut.doubt,
                cut.above, cut.below, self.place, self.stretch, cut.parents, cut.weights, self.after, self.label,
                self.source, roots, most, asked, settled,
            ))  # fmt: skip

        def full() -> None:
            raise AssertionError("a piece has more breakpoints than its ends differ in")

        run_to_the_end(kernel, full, lambda: f"more than max_cells={most:,} breakpoints, cutting by {site.name!r}")
        for name in PER_PIECE:
            setattr(self, name, getattr(self, name)[: count[kernels.VERTICES]])
        ancestors = kernels.ancestors(self.source, roots)
        self.bits = [bits[ancestors] for bits in self.bits]
        self.won = {name: won[ancestors] for name, won in self.won.items()}
        self.curve, self.segment = self.curve[ancestors], self.segment[ancestors]
        return Outcome(cut, asked[: count[kernels.ASKED]].copy(), int(count[kernels.OPEN]), torn=False)

    def note_bits(self, cut: Cut) -> None:
        """Note which boundaries of this site each piece is above."""
        following = np.where(self.after >= 0, self.after, np.arange(len(self.after)))
        above = cut.above[: len(self.place)]
        self.bits = [*self.bits, above | above[following]]

    def crown(self, playing: Tournament, sweep: Sweep) -> None:
        """Note who has won a tournament on each piece."""
        winners, _ = playing.played(sides_of(self.bits, sweep.boundaries, playing))
        self.won = self.won | {str(playing.rounds[0].tournament): playing.packed(winners)}

    # exact arithmetic

    def exact_cells(self, sweep: Sweep) -> Cells:
        """The pieces as they are now: the ends of their segments tell their maps."""
        points, segment, bits = self.points, self.segment, self.bits

        def ends(pieces: Indices, p: int) -> Tensor:
            corners = remainders(points, p)
            return torch.stack([corners[segment[pieces]], corners[segment[pieces] + 1]], dim=1)

        return Cells(ends, lambda: grid_of(points), lambda pieces: pieces_of(bits, sweep.boundaries, pieces))

    def place_exactly(self, sweep: Sweep) -> None:
        """Put vertices that rounding may have moved far where exact arithmetic has them, with the outputs there."""
        made = np.flatnonzero(self.label >= 0)
        far = made[sweep.doubt[made, SHIFT + 1] > MISPLACED * self.stretch[made]]
        if len(far) == 0:
            return
        meetings = self.corners(far, sweep)
        along = sweep.placed(self.exact_cells(sweep), meetings)[:, 0]
        known = np.isfinite(along)
        far, along = far[known], along[known]
        first = self.segment[meetings.cell[known]]
        self.place[far] = first - self.begins[self.curve[far]] + along
        if sweep.outputs is not None and len(far):
            t = torch.from_numpy(along).view(-1, *[1] * (self.points.dim() - 1))
            points = self.points[first] + t * (self.points[first + 1] - self.points[first])
            sweep.outputs[far] = sweep.net(points).reshape(len(far), -1).numpy()

    def preceding(self) -> Indices:
        """The vertex before each, itself at the begin of a curve."""
        before = np.arange(len(self.after))
        before[self.after[self.after >= 0]] = np.flatnonzero(self.after >= 0)
        return before

    def local_bounds(self, vertices: Indices, units: Indices, cut: Cut) -> Floats:
        """Bounds on the errors of units at vertices, with the slopes that they have on the pieces there."""
        before = self.preceding()[vertices]
        after = np.where(self.after[vertices] >= 0, self.after[vertices], vertices)
        bounds = kernels.local_bounds_along(
            vertices, before, after, units, self.place, self.stretch, cut.values, cut.rows, cut.law, cut.doubt
        )
        return np.asarray(bounds)

    def corners(self, vertices: Indices, sweep: Sweep) -> Meetings:
        """Where the vertices are: at a boundary of the piece that begins there, or at an end of a segment."""
        piece = vertices.copy()
        last = np.flatnonzero(self.after[vertices] < 0)
        piece[last] = self.preceding()[vertices[last]]
        line = np.where(self.label[vertices] >= 0, self.label[vertices], -2)
        line[last] = -3
        return self.meetings(piece, np.full(len(piece), -1), line, sweep)

    def meetings(self, cell: Indices, line: Indices, other: Indices, sweep: Sweep) -> Meetings:
        """Boundaries on pieces, as if these were lines in a plane on which nothing changes across them."""
        return Meetings(cell, [forms_of(lines, sweep.boundaries) for lines in (line, other)], ALONG)

    def twins(self, signs: Indices, before: dict[str, Any]) -> Indices:
        """No other piece may ask for them."""
        return signs


PER_PIECE = ("place", "after", "label", "source", "stretch")
# the line itself, and those across it at the start and the end of a segment: values at (0, 0), (1, 0) and (0, 1)
ALONG = np.array([[0, 0, 1], [0, 1, 0], [-1, 0, -1]], object)


def along(curve: Tensor, places: Floats) -> Tensor:
    """The points of a polyline (k, ...) at places from 0 to k - 1; corner i is at place i."""
    piece = np.clip(places.astype(np.int64), 0, len(curve) - 2)
    t = torch.from_numpy(places - piece).view(-1, *[1] * (curve.dim() - 1))
    return curve[piece] + t * (curve[piece + 1] - curve[piece])


@torch.no_grad()
def cells_along(
    net: Network, curves: list[Tensor], max_cells: int, show_progress: bool, certified: bool = False
) -> list[LineCells]:
    """The cells of all curves, cut together by all sites of a frozen network."""
    curves = [net_points(net, curve) for curve in curves]
    say_if_compiling()
    chains = Chains(curves)
    reach = float(chains.points.flatten(1).norm(dim=1).max())
    sweep = Sweep(
        net, chains.points, first_doubt(chains.points, np.zeros(len(chains.points))), float(chains.place.max()),
        chains.directions(), reach, None, show_progress, certified,
    )  # fmt: skip
    for cut in sweep.cuts():
        done = cut_by_site(chains, sweep, cut, max_cells)
        sweep.moved(done, len(chains.place))
        chains.note_bits(done)
        name = cut.boundaries.tournament
        if name in net.winners and is_last_round(cut.boundaries, sweep.boundaries):
            chains.crown(sweep.tournaments[str(name)], sweep)
    chains.place_exactly(sweep)
    patterns = packed_patterns(chains.bits, chains.won, sweep, len(chains.place))
    return [gathered(net, curve, chains, patterns, sweep, number) for number, curve in enumerate(curves)]


def net_points(net: Network, curve: Tensor) -> Tensor:
    """The corners of a curve as float64 points of the network."""
    return net.checked(curve.cpu().double().reshape(len(curve), *net.input_shape))


def steps(curve: Tensor) -> Floats:
    """The lengths of the straight parts of a polyline (k, ...): (k - 1,)."""
    return np.asarray((curve[1:] - curve[:-1]).flatten(1).norm(dim=1).numpy())


def gathered(net: Network, curve: Tensor, chains: Chains, all_patterns: Words, sweep: Sweep, number: int) -> LineCells:
    """The cells of one curve: pieces in order, those with the same pattern joined, those without length left out."""
    assert sweep.outputs is not None
    order = kernels.chain(chains.begins[number], chains.after)
    whole = LineCells(
        points=curve,
        breakpoints=np.zeros(0),
        packed_patterns=all_patterns[order[:1]],
        columns=tuple(sweep.columns),
        site=np.zeros(0, np.int32),
        unit=np.zeros(0, np.int32),
        sites=net.sites,
        outputs=sweep.outputs[order[[0, -1]]],
        undecided=sweep.undecided,
        network=net,
    )
    fractions = np.maximum.accumulate(np.interp(chains.place[order], np.arange(len(curve)), whole._path))
    long = np.diff(fractions) > 0
    pieces = np.flatnonzero(long if sweep.undecided else np.ones_like(long))  # a piece that was not proved needs length
    if not len(pieces):
        return whole
    patterns = all_patterns[order[pieces]]
    new = np.flatnonzero((patterns[1:] != patterns[:-1]).any(axis=1)) + 1  # pieces at whose start a cell begins
    starts = pieces[new]
    site, unit = owners(chains.label[order[starts]], sweep.boundaries)
    cells = replace(
        whole,
        breakpoints=fractions[starts],
        packed_patterns=patterns[np.concatenate([[0], new])],
        site=site,
        unit=unit,
        outputs=sweep.outputs[order[np.concatenate([[0], starts, [-1]])]],
    )
    return named_at_corners(cells)


def named_at_corners(cells: LineCells) -> LineCells:
    """The same cells, with the unit that switches where the curve crosses a boundary just at a corner of its own."""
    which = np.flatnonzero(cells.site < 0)
    if not len(which):
        return cells
    net, site, unit = cells.network, cells.site.copy(), cells.unit.copy()
    before, after = (net.patterns(cells.at(cells.centres[which + side])) for side in (0, 1))
    values = [v.flatten(1) for v in net.preactivations(cells.at(cells.breakpoints[which]))]
    off = torch.cat([
        (v[..., None] - torch.tensor(s.breakpoints, dtype=v.dtype)).abs().amin(dim=2)
        for v, s in zip(values, net.sites, strict=True)
    ], dim=1)  # fmt: skip
    nearest = (off + (before == after) * (1 + off.max())).argmin(dim=1).numpy()  # if it can be, one that has switched
    firsts = np.cumsum([0, *(s.units for s in net.sites)])
    site[which] = np.searchsorted(firsts, nearest, side="right") - 1
    unit[which] = nearest - firsts[site[which]]
    return replace(cells, site=site, unit=unit)
