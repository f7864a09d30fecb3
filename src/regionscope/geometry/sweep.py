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
from regionscope.tracing.network import Network
from regionscope.tracing.program import Program


@dataclass(frozen=True)
class Cut:
    """What one site does to the vertices: its values at all of them, and where the new ones come from."""

    boundaries: Boundaries
    values: Floats  # (old vertices, units)
    fresh: Floats  # (room for new vertices, units)
    above: Words  # (vertices, words): the boundaries that each vertex is above; the rest too has rows for all vertices
    below: Words
    parents: Ints
    weights: Floats
    tolerance: float

    @property
    def breakpoints(self) -> Floats:
        return np.array(self.boundaries.site.breakpoints)

    def grown(self, capacity: int) -> "Cut":
        """The same with room for so many vertices."""
        arrays: dict[str, Any] = {name: enlarged(getattr(self, name), capacity) for name in PER_VERTEX}
        return replace(self, fresh=enlarged(self.fresh, capacity - len(self.values)), **arrays)

    def blocks(self, vertices: int) -> list[Floats]:
        """The values of all vertices, in two blocks."""
        return [self.values, self.fresh[: vertices - len(self.values)]]


PER_VERTEX = ("above", "below", "parents", "weights")
ENTRIES_AT_ONCE = 1 << 21  # floats of a state that go through a part of the network together: they stay in the heap

Blocks = list[Floats]  # the rows of all vertices, one block after another


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
        self.state: list[Blocks] = [[self.points.flatten(1).numpy()]]

    @torch.no_grad()
    def cuts(self) -> Iterator[Cut]:
        """The sites one after another; between two, `moved` and `thinned` must say what became of the vertices."""
        entries = [b.site.entry for b in self.boundaries]
        program = replace(self.net.program.pruned([*entries, self.net.output]), outputs=(self.net.output,))
        *parts, last = program.segments(entries)
        known: tuple[int, ...] = (0,)
        bar = tqdm(self.boundaries, desc="cutting", unit="site", disable=not self.show_progress)
        for boundaries, part in zip(bar, parts, strict=True):
            self.state = [[rows] for rows in self._evaluated(part, known)]
            known, (values,) = part.outputs, self.state[0]
            cut = first_look(boundaries, values)
            self.tolerances.append(cut.tolerance)
            self.close_decisions += close_decisions(values, cut.breakpoints, cut.tolerance)
            del values
            yield cut
            del cut
            bar.set_postfix(vertices=self.vertices, refresh=False)
        if self.up_to_layer is None or self.up_to_layer == self.net.layers:
            (self.outputs,) = self._evaluated(last, known)
        self.state = []

    def _evaluated(self, part: Program, known: tuple[int, ...]) -> list[Floats]:
        """The outputs of a part of the network at all vertices, as rows; a limited number at a time."""
        widest = max(blocks[0].shape[1] for blocks in self.state)
        at_once = max(1, ENTRIES_AT_ONCE // max(1, widest))
        results: list[Floats] = []
        done = 0
        for block in zip(*self.state, strict=True):
            for start in range(0, len(block[0]), at_once):
                state = [torch.from_numpy(rows[start : start + at_once]) for rows in block]
                n = len(state[0])
                values = {v: rows.reshape(n, *part.shapes[v]) for v, rows in zip(known, state, strict=True)}
                rows_of = [out.flatten(1) for out in part.resume(values)]
                if n == self.vertices:
                    return [rows.numpy() for rows in rows_of]
                results = results or [np.empty((self.vertices, rows.shape[1])) for rows in rows_of]
                for whole, rows in zip(results, rows_of, strict=True):
                    torch.from_numpy(whole[done : done + n]).copy_(rows)  # on all cores
                done += n
        return results

    def moved(self, cut: Cut, vertices: int) -> None:
        """The site has been cut; there are so many vertices now."""
        others = [rows for (rows,) in self.state[1:]]
        self.state = [cut.blocks(vertices)]
        self.close_decisions += close_decisions(self.state[0][1], cut.breakpoints, cut.tolerance)
        for rows in others:
            fresh = np.empty((vertices - self.vertices, rows.shape[1]))
            kernels.interpolate(rows, fresh, cut.parents, cut.weights)
            self.state.append([rows, fresh])
        self.vertices = vertices

    def thinned(self, stays: NDArray[np.bool_]) -> None:
        """Only these vertices stay."""
        self.state = [[np.concatenate(blocks)[stays]] for blocks in self.state]
        self.vertices = int(stays.sum())


def first_look(boundaries: Boundaries, values: Floats) -> Cut:
    """Which boundaries of a site each vertex is above and below."""
    vertices, width = len(values), words(boundaries.count)
    cut = Cut(
        boundaries=boundaries,
        values=values,
        fresh=np.empty((0, values.shape[1])),
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
