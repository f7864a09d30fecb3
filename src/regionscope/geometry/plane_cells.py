"""The exact linear regions of a network on a plane."""

import json
import zipfile
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from regionscope.files import whole_file
from regionscope.geometry import decision, kernels, maps
from regionscope.geometry.patterns import Column, owners, unpacked
from regionscope.geometry.planes import Plane, Planes, as_array
from regionscope.geometry.predicates import rounding_bound
from regionscope.geometry.subdivision import Subdivision, mean_corners, subdivide
from regionscope.geometry.sweep import Sweep, exact, say_if_compiling
from regionscope.tracing.network import Network, Site
from regionscope.tracing.trace import as_network
from regionscope.types import Floats, Indices, Ints, Model, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regionscope.geometry.certificates import Certificate

FORMAT = 2


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


@dataclass(frozen=True, eq=False)
class PlaneCells:
    """The cells of a network on a plane: convex polygons, exact to the rounding of float64; made by `plane_cells`.

    Cells, vertices and edges are numbered; cell i has the corners `corners[offsets[i]:offsets[i + 1]]`, in order
    counter-clockwise. Coordinates are those of the plane.
    """

    plane: Plane
    vertices: Floats  # (n, 2)
    offsets: Indices
    corners: Ints
    packed_patterns: Words
    columns: tuple[Column, ...]
    edges: Edges
    sites: tuple[Site, ...]
    outputs: Floats | None  # (vertices, k); None for cells up to a layer
    close_decisions: int  # signs that bounds on rounding did not decide
    undecided: int  # those of them that exact arithmetic did not settle
    network: Network | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """The number of activation regions."""
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"PlaneCells({len(self)} cells, {len(self.vertices)} vertices, {len(self.edges)} edges)"

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
    def patterns(self) -> Ints:
        """The piece every unit is on, site by site, and the position of every winner of max-pooling and its like."""
        return unpacked(self.columns, self.packed_patterns)

    @cached_property
    def _next_corners(self) -> Ints:
        following = np.arange(1, len(self.corners) + 1)
        following[self.offsets[1:] - 1] = self.offsets[:-1]
        return self.corners[following]

    @cached_property
    def _maps(self) -> tuple[Floats, Floats]:
        axes = torch.from_numpy(self.plane.axes).reshape(2, *self._net.input_shape)
        values, slopes = maps.derivatives(self._net, self._points(self.centres), axes)
        return slopes, values - np.einsum("nkd,nd->nk", slopes, self.centres)

    @property
    def _net(self) -> Network:
        if self.network is None:
            raise ValueError("these cells were loaded without their network; say PlaneCells.load(path, model=...)")
        if self.outputs is None:
            raise ValueError("these cells stop at a layer: the network's output is not affine in them")
        return self.network

    def _points(self, u: Floats) -> Tensor:
        assert self.network is not None
        return self.plane.points(u).reshape(-1, *self.network.input_shape)

    def affine_maps(self) -> tuple[Floats, Floats]:
        """The network inside each cell: output = A @ u + c at plane coordinates u; A (n, k, 2) and c (n, k)."""
        return self._maps

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
        u = as_array(u).reshape(-1, 2)
        sides = np.concatenate([2 * np.arange(len(self.edges)), 2 * np.arange(len(self.edges)) + 1])
        order = np.lexsort((sides, self.edges.cells.T.ravel()))
        inner = order[np.searchsorted(self.edges.cells.T.ravel()[order], 0) :]
        starts = np.searchsorted(self.edges.cells.T.ravel()[inner], np.arange(len(self) + 1))
        return np.asarray(kernels.walk(u, self.vertices, self.edges.vertices, self.edges.cells, starts, sides[inner]))

    def verify(self, *, sample: int = 8, generator: torch.Generator | None = None) -> "Certificate":
        """A certificate: what can be checked of these cells, checked; see `Certificate`.

        `sample` cells of a dense network are checked in exact rational arithmetic as well.
        """
        if self.network is None:
            raise ValueError("these cells were loaded without their network; say PlaneCells.load(path, model=...)")
        from regionscope.geometry.certificates import certificate

        return certificate(self, self.network, sample, generator)

    def plot(self, ax: "Axes | None" = None, **options: Any) -> "Axes":
        """A picture of the cells; see `regionscope.plots.regions` for the options."""
        from regionscope.plots.planes import regions

        return regions(self, ax, **options)

    def save(self, path: str | Path) -> None:
        """Write an npz file to exactly this path, whole or not at all, without the network."""
        about = {
            "format": FORMAT,
            "columns": [asdict(c) for c in self.columns],
            "sites": [asdict(s) for s in self.sites],
            "close_decisions": self.close_decisions,
            "undecided": self.undecided,
        }
        arrays = {
            name: getattr(self, name) for name in ("vertices", "offsets", "corners", "packed_patterns", "outputs")
        }
        arrays |= {f"edges.{name}": array for name, array in vars(self.edges).items()}
        arrays |= {f"plane.{name}": np.asarray(array) for name, array in vars(self.plane).items()}
        stored = {name: array for name, array in arrays.items() if array is not None}
        with whole_file(path) as beside, beside.open("wb") as file:  # given a name, numpy would append .npz
            np.savez_compressed(file, about=np.array(json.dumps(about)), **stored, allow_pickle=False)

    @staticmethod
    def load(path: str | Path, model: Model | None = None) -> "PlaneCells":
        """Read the file that `save` wrote to this path. No code in it is ever executed.

        Give the model too for affine maps and `verify`.
        """
        about, stored = read_arrays(Path(path))
        origin, axes, domain = (stored[f"plane.{name}"] for name in ("origin", "axes", "domain"))
        plane = Plane(origin, axes, domain, stored.get("plane.anchors", ()))
        network = None if model is None else exact(as_network(model, plane.origin[None]))
        return PlaneCells(
            plane=plane,
            **{name: stored[name] for name in ("vertices", "offsets", "corners", "packed_patterns")},
            columns=tuple(Column(**c) for c in about["columns"]),
            edges=Edges(**{n.removeprefix("edges."): a for n, a in stored.items() if n.startswith("edges.")}),
            sites=tuple(Site(**{**s, "breakpoints": tuple(s["breakpoints"]), "shape": tuple(s["shape"])})
                        for s in about["sites"]),
            outputs=stored.get("outputs"),
            close_decisions=about["close_decisions"],
            undecided=about["undecided"],
            network=network,
        )  # fmt: skip


def read_arrays(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a file of cells says of itself, and its arrays."""
    if path.exists() and not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is no file of cells: PlaneCells.save writes them")
    with np.load(path, allow_pickle=False) as file:
        if "about" not in file.files:
            raise ValueError(f"{path} is no file of cells: PlaneCells.save writes them")
        about = json.loads(str(file["about"]))
        if about["format"] != FORMAT:
            raise ValueError(f"{path} has format {about['format']}, this version of regionscope reads {FORMAT}")
        return about, {name: file[name] for name in file.files}


def plane_cells(
    model: Model | Network,
    plane: Plane,
    *,
    up_to_layer: int | None = None,
    certified: bool = False,
    max_cells: int = 10_000_000,
    show_progress: bool = False,
) -> PlaneCells:
    """The exact linear regions of a piecewise-linear network on a plane (HR 3.3, PD 3.3).

    Layer by layer: between the boundaries of earlier sites a pre-activation is affine, so its values at the corners of
    a cell say how it cuts the cell. The network is evaluated less than once at each vertex of the result; the cutting
    itself grows with the number of cells. `up_to_layer` stops after a layer (HR Fig. 2). Raises `TooManyCells` beyond
    `max_cells`.

    On which side of a boundary a vertex lies is proved by a bound on the rounding of its value, or settled in exact
    arithmetic; `undecided` counts what neither can do. `certified` promises that there is none, or raises `Undecided`:
    it costs nothing where the bounds suffice, and may otherwise take exact arithmetic a thousand times longer than the
    few seconds it has without. See docs/exactness.md.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> _ = model[0].weight.data.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> _ = model[0].bias.data.fill_(0.5)
    >>> len(plane_cells(model, Plane.coordinates(torch.zeros(2), radius=9.0)))
    7
    """
    net = exact(as_network(model, plane.origin[None]))
    say_if_compiling()
    made, sweep = subdivide(
        net,
        Planes.of(plane),
        up_to_layer=up_to_layer,
        max_cells=max_cells,
        show_progress=show_progress,
        certified=certified,
    )
    return finished(plane, net, made, sweep)


def finished(plane: Plane, net: Network, made: Subdivision, sweep: Sweep) -> PlaneCells:
    offsets, corners, _ = kernels.loops(made.start, made.origin, made.after)
    ends, sides = made.origin.reshape(-1, 2), made.face.reshape(-1, 2)
    site, unit = owners(made.label, sweep.boundaries)
    layers = np.array([b.site.layer for b in sweep.boundaries] + [0], np.int32)
    return PlaneCells(
        plane=plane,
        vertices=made.xy,
        offsets=offsets,
        corners=corners,
        packed_patterns=made.patterns(sweep),
        columns=tuple(sweep.columns),
        edges=Edges(
            ends, sides, site, unit, layers[site], np.linalg.norm(made.xy[ends[:, 1]] - made.xy[ends[:, 0]], axis=1)
        ),
        sites=tuple(b.site for b in sweep.boundaries),
        outputs=sweep.outputs,
        close_decisions=sweep.close_decisions,
        undecided=sweep.undecided,
        network=net,
    )
