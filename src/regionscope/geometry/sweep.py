"""Carries the vertices of cells through a network, site by site, and has every site cut the cells.

Between the boundaries of earlier sites everything is affine, so the values of a new vertex lie between those of its two
neighbours on the edge where it was made. The network is therefore evaluated part by part, from one site to the next,
each part once at every vertex there is by then: less than one forward pass at the vertices of the result.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from regionscope.geometry import kernels
from regionscope.geometry.patterns import Boundaries, Ints, columns_of, numbered
from regionscope.geometry.predicates import Floats, Words, classify, close_decisions, rounding_bound, words
from regionscope.network import Network
from regionscope.program import from_rows, to_rows


@dataclass(frozen=True)
class Cut:
    """What one site does to the vertices: its values at all of them, new ones included, and where those come from."""

    boundaries: Boundaries
    values: Floats  # (capacity, units), filled for the first `vertices`
    above: Words
    below: Words
    parents: Ints
    weights: Floats
    tolerance: float

    @property
    def breakpoints(self) -> Floats:
        return np.array(self.boundaries.site.breakpoints)

    def grown(self, capacity: int) -> "Cut":
        """The same with room for so many vertices."""
        if capacity <= len(self.values):
            return self
        arrays: dict[str, Any] = {name: enlarged(getattr(self, name), capacity) for name in PER_VERTEX}
        return replace(self, **arrays)


PER_VERTEX = ("values", "above", "below", "parents", "weights")


def enlarged(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    """The same array with room for more rows."""
    new = np.empty((capacity, *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    return new


def boundaries_of(net: Network, up_to_layer: int | None) -> list[Boundaries]:
    """The boundaries of the sites to cut by."""
    if up_to_layer is not None and not 1 <= up_to_layer <= net.layers:
        raise ValueError(f"up_to_layer must be from 1 to {net.layers}, got {up_to_layer}")
    return [b for b in numbered(net.sites) if up_to_layer is None or b.site.layer <= up_to_layer]


def exact(net: Network) -> Network:
    """A float64 copy of a network whose regions can be found exactly; otherwise an error."""
    if not net.piecewise_linear:
        smooth = sorted({site.kind for site in net.sites if site.smooth})
        what = f" ({', '.join(smooth)})" if smooth else ""
        raise ValueError(f"the network is not piecewise linear{what}: it has no linear regions to find exactly")
    return net.frozen()


@dataclass
class Sweep:
    """A pass through the network: `cuts` gives the sites in turn, and is told of the vertices that they make."""

    net: Network
    points: Tensor  # (vertices, *input_shape) in float64
    up_to_layer: int | None
    show_progress: bool

    def __post_init__(self) -> None:
        self.boundaries = boundaries_of(self.net, self.up_to_layer)
        self.columns = columns_of(self.boundaries, self.net)
        self.tolerances: list[float] = []
        self.close_decisions = 0
        self.outputs: Floats | None = None
        self.vertices = len(self.points)
        self.others: list[Floats] = []
        self.cut: Cut | None = None

    @torch.no_grad()
    def cuts(self) -> Iterator[Cut]:
        """The sites one after another; between two, `moved` and `thinned` must say what became of the vertices."""
        site_of = dict(zip((s.name for s in self.net.sites), self.net.entries, strict=True))
        entries = [site_of[b.site.name] for b in self.boundaries]
        program = replace(self.net.program.pruned([*entries, self.net.output]), outputs=(self.net.output,))
        *parts, last = program.segments(entries)
        state = {0: self.points}
        bar = tqdm(self.boundaries, desc="cutting", unit="site", disable=not self.show_progress)
        for boundaries, part in zip(bar, parts, strict=True):
            values = part.resume(state, self.vertices)
            shapes = [program.shapes[value] for value in part.outputs]
            rows = [to_rows(v, shape, self.vertices).numpy() for v, shape in zip(values, shapes, strict=True)]
            self.others = rows[1:]
            self.cut = first_look(boundaries, rows[0])
            self.tolerances.append(self.cut.tolerance)
            self.close_decisions += close_decisions(rows[0], self.cut.breakpoints, self.cut.tolerance)
            yield self.cut
            carried = [self.cut.values[: self.vertices], *self.others]
            tensors = [from_rows(torch.from_numpy(r), shape) for r, shape in zip(carried, shapes, strict=True)]
            state = dict(zip(part.outputs, tensors, strict=True))
        if self.up_to_layer is None or self.up_to_layer == self.net.layers:
            self.outputs = to_rows(
                last.resume(state, self.vertices)[0], program.shapes[self.net.output], self.vertices
            ).numpy()

    def moved(self, cut: Cut, vertices: int) -> None:
        """The site has been cut; there are so many vertices now."""
        self.others = [enlarged(rows, vertices) for rows in self.others]
        for rows in self.others:
            kernels.interpolate(rows, cut.parents, cut.weights, self.vertices)
        self.cut, self.vertices = cut, vertices

    def thinned(self, stays: NDArray[np.bool_]) -> None:
        """Only these vertices stay."""
        assert self.cut is not None
        self.others = [rows[stays] for rows in self.others]
        self.cut = replace(self.cut, **{name: getattr(self.cut, name)[: self.vertices][stays] for name in PER_VERTEX})
        self.vertices = int(stays.sum())


def first_look(boundaries: Boundaries, values: Floats) -> Cut:
    """Which boundaries of a site each vertex is above and below."""
    vertices, width = len(values), words(boundaries.count)
    cut = Cut(
        boundaries=boundaries,
        values=values,
        above=np.empty((vertices, width), np.uint64),
        below=np.empty((vertices, width), np.uint64),
        parents=np.empty((vertices, 2), np.int32),
        weights=np.empty(vertices),
        tolerance=rounding_bound(values),
    )
    classify(values, cut.breakpoints, cut.tolerance, cut.above, cut.below)
    return cut


def is_last_round(boundaries: Boundaries, all_of_them: list[Boundaries]) -> bool:
    """Whether a tournament is over after this site."""
    return [b for b in all_of_them if b.tournament == boundaries.tournament][-1] is boundaries


def say_if_compiling() -> None:
    """Tell on standard error that the first call takes longer, if the compiled kernels are not cached."""
    kernel: Any = kernels.cut_cells
    if not kernel.signatures and not any(Path(kernel._cache.cache_path).glob("kernels.cut_cells-*.nbi")):
        print("regionscope: compiling the geometry kernels, once, about 10 seconds", file=sys.stderr, flush=True)


class TooManyCells(RuntimeError):
    """More cells than `max_cells`."""


def run_to_the_end(kernel: Callable[[], int], grow: Callable[[], None], stopped: Callable[[], str]) -> None:
    """Call a kernel again with more room until it is done."""
    while (outcome := kernel()) != kernels.DONE:
        if outcome == kernels.TOO_MANY:
            raise TooManyCells(stopped())
        if outcome == kernels.TORN:
            raise ArithmeticError(
                "rounding has torn a cell: a boundary crosses it more than once; look at a larger part"
            )
        grow()
