"""The exact linear regions of a network on a plane."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from regionscope.disk import reading
from regionscope.geometry import decision, maps, traversals
from regionscope.geometry.budget import DEFAULT
from regionscope.geometry.cells import SAMPLE, Cells, network_of, read_cells
from regionscope.geometry.complexes import owners
from regionscope.geometry.forecasts import forecast
from regionscope.geometry.grids import Grid, grid_of
from regionscope.geometry.modular import modulo, remainders
from regionscope.geometry.planes import Plane, Planes
from regionscope.geometry.predicates import rounding_bound
from regionscope.geometry.stored import axis_lengths, check_numbers, check_rising
from regionscope.geometry.subdivision import Subdivision, mean_corners, subdivide
from regionscope.geometry.sweep import exact
from regionscope.geometry.swept import Swept
from regionscope.points import as_array
from regionscope.tracing.network import Network
from regionscope.tracing.trace import as_network
from regionscope.types import Floats, Indices, Ints, Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regionscope.geometry.certificates import Certificate


@dataclass(frozen=True)
class Edges:
    """The sides of cells. `unit` of `cells.sites[site]` made it; both are -1 on the rim of the domain."""

    vertices: Ints  # (n, 2)
    cells: Ints  # (n, 2) on the left and the right of the way from the first vertex to the second; -1 outside
    site: Ints
    unit: Ints
    layer: Ints  # from 1; 0 on the rim
    length: Floats

    def __len__(self) -> int:
        return len(self.length)


@dataclass(frozen=True)
class DecisionBoundary:
    """The common border of the open sets on each of which the decision is one and the same, as segments (n, 2, 2).

    The decision at a point is the set of outputs that are largest there. So an output that only touches the largest,
    as 0 touches |x|, makes no boundary, and no tie on the rim of the domain does. Where several outputs are largest on
    an open set, that tie is a decision of its own: it has a border with others, and the cells that hold such sets are
    `tied_cells`. Every piece of the boundary is there once, whichever cells it separates.

    Along each segment the two `classes` (n, 2) share the largest output; it lies in the cell `cell` (n,) or on a side
    of it. A network with one output decides by its sign: it competes with zero, whose number is -1.
    """

    segments: Floats
    classes: NDArray[np.int64]
    cell: NDArray[np.int64]
    tied_cells: NDArray[np.int64]

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.segments[:, 1] - self.segments[:, 0], axis=1).sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class PlaneCells(Cells):
    """The cells of a network on a plane: convex polygons, exact to the rounding of float64; made by `plane_cells`.

    Cells, vertices and edges are numbered; cell i has the corners `corners[offsets[i]:offsets[i + 1]]`, in order
    counter-clockwise. Coordinates are those of the plane.
    """

    plane: Plane
    vertices: Floats  # (n, 2)
    offsets: Indices
    corners: Ints
    edges: Edges

    def __repr__(self) -> str:
        return f"PlaneCells({len(self)} cells, {len(self.vertices)} vertices, {len(self.edges)} edges{self._doubt})"

    def _facts(self) -> dict[str, object]:
        counts = {"cells": len(self), "vertices": len(self.vertices), "edges": len(self.edges)}
        layers = max((site.layer for site in self.sites), default=0)
        return {what: f"{n:,}" for what, n in counts.items()} | {"layers": layers, "exact": self._certainty}

    @property
    def polygons(self) -> list[Floats]:
        """The corners (k, 2) of every cell."""
        return np.split(self.vertices[self.corners], self.offsets[1:-1])

    @cached_property
    def areas(self) -> Floats:
        """Of every cell."""
        centre = np.repeat(self.centres, np.diff(self.offsets), axis=0)
        (x, y), (u, v) = (self.vertices[self.corners] - centre).T, (self.vertices[self._next_corners] - centre).T
        return np.add.reduceat((x * v - y * u) / 2, self.offsets[:-1])

    @cached_property
    def centres(self) -> Floats:
        """A point inside each cell: the mean of its corners, (n, 2)."""
        return mean_corners(self.vertices, self.offsets, self.corners)

    @cached_property
    def _next_places(self) -> Indices:
        """The place, among all corners, of the corner after each."""
        following = np.arange(1, len(self.corners) + 1)
        following[self.offsets[1:] - 1] = self.offsets[:-1]
        return following

    @property
    def _next_corners(self) -> Ints:
        return self.corners[self._next_places]

    def _points(self, places: Floats) -> Tensor:
        return self.plane.points(places).reshape(-1, *self._any_net.input_shape)

    def _coordinates(self, places: Floats) -> Floats:
        return places

    def _axes(self, places: Floats) -> Tensor:
        return torch.from_numpy(self.plane.axes).reshape(2, *self._any_net.input_shape)

    @property
    def _size(self) -> float:
        return float(self.plane.origin.norm()) + float(np.abs(self.vertices).max())

    def _reach(self, places: Floats) -> float:
        return float(self.plane.origin.norm()) + 2 * float(np.abs(places).sum(axis=1).max(initial=0.0))

    def _exact_points(self, places: Floats, p: int) -> Tensor:
        origin, axes, at = self.plane.origin.flatten(), torch.from_numpy(self.plane.axes), torch.from_numpy(places)
        along = modulo(remainders(at, p) @ remainders(axes, p), p)
        return modulo(remainders(origin, p) + along, p)

    def _grid(self, places: Floats) -> Grid:
        axes = torch.from_numpy(self.plane.axes)
        return grid_of(self.plane.origin).join(grid_of(torch.from_numpy(places)).product(grid_of(axes)))

    @property
    def gradient_norms(self) -> Floats:
        """Frobenius norm of the derivative along the plane in each cell, (n,)."""
        return np.asarray(np.linalg.norm(self._maps[0], axis=(1, 2)))

    @property
    def classes(self) -> NDArray[np.int64]:
        """The largest output at the centre of each cell; of a single output, whether it is positive."""
        if self.outputs is None:
            raise ValueError("these cells stop at a layer: the network's output is not affine in them")
        return self._classes_at_centres

    def boundary_length(self) -> Floats:
        """The total length of the boundaries of each layer inside the domain: (layers,), layer 1 first."""
        layers = max((site.layer for site in self.sites), default=0)
        return np.asarray(np.bincount(self.edges.layer, self.edges.length, minlength=layers + 1)[1:], np.float64)

    def adjacency(self) -> "scipy.sparse.csr_array":
        """The dual graph: (n, n), entry i, j the length of the side that cells i and j share."""
        inner = (self.edges.cells >= 0).all(axis=1)
        i, j = self.edges.cells[inner].T
        length = np.maximum(self.edges.length[inner], np.finfo(float).tiny)
        return scipy.sparse.coo_array(
            (np.tile(length, 2), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(len(self), len(self))
        ).tocsr()

    def to_networkx(self) -> Any:
        """The dual graph for NetworkX; an edge has the `weight` of its length."""
        import networkx

        return networkx.from_scipy_sparse_array(self.adjacency())

    def functional_regions(self) -> NDArray[np.int32]:
        """The number of the functional region of each cell: neighbours with one affine map on the plane are joined."""
        inner = np.flatnonzero((self.edges.cells >= 0).all(axis=1))
        i, j = self.edges.cells[inner].T
        slopes = self._maps[0]
        same = maps.same_maps(slopes[i], slopes[j])
        joined = scipy.sparse.coo_array((np.ones(same.sum()), (i[same], j[same])), shape=(len(self), len(self)))
        return np.asarray(scipy.sparse.csgraph.connected_components(joined, directed=False)[1], np.int32)

    def decision_boundary(self) -> DecisionBoundary:
        """Where the decision changes, exactly, for any number of outputs; see `DecisionBoundary`."""
        if self.outputs is None:
            raise ValueError("these cells stop at a layer: the network's output is not affine in them")
        return self._decision_boundary

    @cached_property
    def _decision_boundary(self) -> DecisionBoundary:
        assert self.outputs is not None
        single = self.outputs.shape[1] == 1
        f = np.pad(self.outputs, ((0, 0), (0, 1))) if single else self.outputs  # a single output competes with zero
        cells, tolerance = (self.vertices, f, self.offsets, self.corners), rounding_bound(f)
        ends, owners, tied = decision.through_cells(*cells, tolerance)
        more_ends, more_owners = decision.along_sides(*cells, self.edges.vertices, self.edges.cells, tolerance)
        segments = np.array(ends + more_ends, np.float64).reshape(-1, 2, 2)
        who = np.array(owners + more_owners, np.int64).reshape(-1, 3)
        who[:, 2] = -1 if single else who[:, 2]
        long = np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1) > rounding_bound(self.vertices)
        return DecisionBoundary(segments[long], who[long, 1:], who[long, 0], np.array(tied, np.int64))

    @cached_property
    def _classes_at_centres(self) -> NDArray[np.int64]:
        assert self.outputs is not None
        centre = mean_corners(self.outputs, self.offsets, self.corners)
        return np.asarray(centre.argmax(axis=1) if centre.shape[1] > 1 else centre[:, 0] > 0, np.int64)

    def locate(self, u: ArrayLike) -> Indices:
        """The cell that holds each point with plane coordinates u (n, 2); -1 outside the domain."""
        u, short = as_array(u).reshape(-1, 2), rounding_bound(self.vertices)
        ends, owners = self.edges.vertices, self.edges.cells
        order = np.argsort(owners.ravel(), kind="stable")
        sides = order[np.searchsorted(owners.ravel()[order], 0) :]  # of the cells, one after another
        starts = np.searchsorted(owners.ravel()[sides], np.arange(len(self) + 1))
        largest = int(self.areas.argmax())
        found = np.asarray(traversals.walk(u, self.vertices, ends, owners, starts, sides, largest, short))
        for lost in np.flatnonzero(found == traversals.LOST):
            found[lost] = self._nearest(u[lost], starts, sides, short)
        return found

    def _nearest(self, point: Floats, starts: Indices, sides: Indices, short: float) -> int:
        """The cell whose sides a point is least beyond, by a look at all of them; -1 outside the domain."""
        edge, side = sides >> 1, sides & 1
        a, b = (self.vertices[self.edges.vertices[edge, end]] for end in (side, 1 - side))
        (x, y), (dx, dy) = (point - a).T, (b - a).T
        length = np.hypot(dx, dy)
        beyond = np.where(length > short, (dy * x - dx * y) / np.maximum(length, short), -np.inf)
        worst = np.maximum.reduceat(beyond, starts[:-1])
        cell = int(np.where(np.isfinite(worst), worst, np.inf).argmin())
        last = starts[cell] + int(beyond[starts[cell] : starts[cell + 1]].argmax())
        return -1 if worst[cell] > short and self.edges.cells[edge[last], 1 - side[last]] < 0 else cell

    def verify(
        self, *, sample: int = SAMPLE, generator: torch.Generator | None = None, show_progress: bool = False
    ) -> "Certificate":
        """A certificate: what can be checked of these cells, checked; see `Certificate`.

        `sample` cells of a dense network are checked in exact rational arithmetic as well; without a `generator`, the
        same in every call.
        """
        from regionscope.geometry.certificates import certificate

        return certificate(self, self._any_net, sample, generator, show_progress=show_progress)

    def plot(self, ax: "Axes | None" = None, **options: Any) -> "Axes":
        """A picture of the cells; see `regionscope.plots.regions` for the options."""
        from regionscope.plots.planes import regions

        return regions(self, ax, **options)

    def _arrays(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name) for name in ("vertices", "offsets", "corners")}
        arrays |= {f"edges.{name}": array for name, array in vars(self.edges).items()}
        return arrays | {f"plane.{name}": array for name, array in vars(self.plane).items()}

    @staticmethod
    def load(path: str | Path, model: Model | None = None) -> "PlaneCells":
        """Read the file that `save` wrote to this path. No code in it is ever executed.

        Give the model too for affine maps and `verify`.
        """
        with reading(path):
            common, stored = read_cells(path, "PlaneCells")
            _check_stored(stored, common)
            origin, axes, domain = (stored[f"plane.{name}"] for name in ("origin", "axes", "domain"))
            plane = Plane(origin, axes, domain, stored.get("plane.anchors", ()))
            edges = Edges(**{n.removeprefix("edges."): a for n, a in stored.items() if n.startswith("edges.")})
            shapes = {name: stored[name] for name in ("vertices", "offsets", "corners")}
        return PlaneCells(plane=plane, **shapes, edges=edges, **common, network=network_of(model, plane.origin))


def _check_stored(stored: Mapping[str, Any], common: Mapping[str, Any]) -> None:
    """An error if the polygons, sides, patterns and outputs of a file do not belong together."""
    outputs = {} if common["outputs"] is None else {"outputs": common["outputs"]}
    lengths = axis_lengths({**stored, **outputs}, _STORED | ({"outputs": ("f", "vertices", "k")} if outputs else {}))
    cells = len(common["packed_patterns"])
    if cells < 1 or lengths["ends"] != cells + 1:
        raise ValueError(f"it has {lengths['ends'] - 1} cells with corners, and {cells} with patterns")
    check_rising(stored, "offsets", lengths["corners"], least=3)
    check_numbers(stored, "corners", 0, lengths["vertices"])
    check_numbers(stored, "edges.vertices", 0, lengths["vertices"])
    check_numbers(stored, "edges.cells", -1, cells)
    check_numbers(stored, "edges.site", -1, len(common["sites"]))
    units = np.array([*(site.units for site in common["sites"]), 0])  # the last of the rim, whose site is -1
    check_numbers(stored, "edges.unit", -1, units[stored["edges.site"]])
    check_numbers(stored, "edges.layer", 0, 1 + max((site.layer for site in common["sites"]), default=0))


_STORED: dict[str, tuple[str | int, ...]] = {
    "vertices": ("f", "vertices", 2), "offsets": ("i", "ends"), "corners": ("i", "corners"),
    "edges.vertices": ("i", "edges", 2), "edges.cells": ("i", "edges", 2), "edges.site": ("i", "edges"),
    "edges.unit": ("i", "edges"), "edges.layer": ("i", "edges"), "edges.length": ("f", "edges"),
    "plane.axes": ("f", 2, "inputs"), "plane.domain": ("f", "sides", 2),
}  # fmt: skip


def plane_cells(
    model: Model | Network,
    plane: Plane,
    *,
    up_to_layer: int | None = None,
    certified: bool = False,
    max_cells: int = 10_000_000,
    memory: int = DEFAULT,
    show_progress: bool = False,
    check: Callable[[], None] = lambda: None,
) -> PlaneCells:
    """The exact linear regions of a piecewise-linear network on a plane (HR 3.3, PD 3.3).

    Layer by layer: between the boundaries of earlier sites a pre-activation is affine, so its values at the corners of
    a cell say how it cuts the cell. The network is evaluated less than once at each vertex of the result; the cutting
    itself grows with the number of cells. `up_to_layer` stops after a layer (HR Fig. 2). Raises `TooManyCells` beyond
    `max_cells`, and `TooMuchMemory` for what does not fit into `memory` bytes: as a rule within seconds, by an estimate
    from small squares. Where memory is short, cells go through the network in blocks, and their order is that of the
    blocks.

    On which side of a boundary a vertex lies is proved by a bound on the rounding of its value, or settled in exact
    arithmetic, for up to 4e12 products; `undecided` counts what neither can do, `exact` says whether that is nothing.
    `certified` promises so, or raises `Undecided`. See docs/exactness.md. `check` is called again and again meanwhile:
    what it raises ends the search.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> _ = model[0].weight.data.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> _ = model[0].bias.data.fill_(0.5)
    >>> len(plane_cells(model, Plane.coordinates(torch.zeros(2), radius=9.0)))
    7
    """
    net = exact(as_network(model, plane.origin[None]))
    made, sweep = subdivide(
        net,
        Planes.of(plane),
        up_to_layer=up_to_layer,
        max_cells=max_cells,
        memory=memory,
        show_progress=show_progress,
        certified=certified,
        before_blocks=lambda: forecast(net, plane, up_to_layer=up_to_layer).check(max_cells, memory),
        check=check,
    )
    return _plane_cells_of(plane, net, made, sweep)


def _plane_cells_of(plane: Plane, net: Network, made: Subdivision, sweep: Swept) -> PlaneCells:
    mesh, (offsets, corners, _) = made.mesh, made.loops()
    made.mesh = mesh = mesh._replace(after=mesh.after[:0], before=mesh.before[:0])  # of millions of cells much memory
    ends, sides = mesh.origin.reshape(-1, 2), mesh.face.reshape(-1, 2)
    site, unit = owners(mesh.label, sweep.boundaries)
    layers = np.array([b.site.layer for b in sweep.boundaries] + [0], np.int32)
    return PlaneCells(
        plane=plane,
        vertices=mesh.xy,
        offsets=offsets,
        corners=corners,
        packed_patterns=sweep.patterns(),
        columns=tuple(sweep.columns),
        edges=Edges(ends, sides, site, unit, layers[site], traversals.lengths(mesh.xy, ends)),
        sites=tuple(b.site for b in sweep.boundaries),
        outputs=sweep.outputs,
        close_decisions=sweep.close_decisions,
        undecided=sweep.undecided,
        network=net,
    )
