"""How many cells a plane will have, estimated beforehand from small squares that are spread over it.

By Euler's formula a convex piece of a plane on whose rim b boundaries end has 1 + b/2 cells, and each vertex inside
where d sides meet adds d/2 - 1. So what squares have inside, by their area, and what ends on their rims, by their
length, tell both for the whole plane: without bias, if the squares lie anywhere with equal chance. There is one in
each field of a grid, out of the equal parts of that field, so that a plane that is dense in one place is seen as such.
Where boundaries gather in the middle of a large plane, the four fields there have a grid of their own, and so on:
rings, each a quarter as large as the one around it, of which totals and variances are added. What is cut wholly has no
error. Signs are taken as they seem, without exact arithmetic; where nothing proves signs at small cells they count as
zero, and cells are missing. Times come from how long the squares took, and are good to a factor of two or three; of
wide networks, in which many vertices share rows, from one larger square, which is about what a block will be.
"""

import logging
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from regionscope.geometry.budget import SHARE, TooMuchMemory, bytes_to_give
from regionscope.geometry.complexes import TooManyCells
from regionscope.geometry.planes import SQUARE, Plane, Planes
from regionscope.geometry.subdivision import Subdivision, subdivide
from regionscope.geometry.sweep import in_rows
from regionscope.machine import busy_seconds, bytes_in_words
from regionscope.progress import tqdm
from regionscope.tracing.network import Network
from regionscope.types import Bools, Floats

_log = logging.getLogger(__name__)

SEED = 0
FIELDS = 8  # along each side of the plane: a square lies in each
FINEST = 512  # parts of the side of a field: the first squares
GATHERED = 1.5  # times as many boundaries in the middle as around it: that is looked at by itself
DEEPEST = 8  # rings, each a quarter as large as that around it
ENDS = 4.0  # boundaries that cross the side of a square: enough of them meet inside
SURE = 64  # boundaries on the rims of all squares tell how long their sides should be
LARGER = 8  # times the side, if there are fewer
MOST = 200_000  # cells of all squares together
FIXED = 4.0  # times as long as on average few vertices may take, for what does not depend on their number
IN_A_BLOCK = 2000  # vertices that share rows, at least
A_CELL = 112  # bytes that are kept of a cell, a vertex and two sides; outputs are not, if that is much
ERRORS = 3.0  # standard errors that a plane is given the benefit of
BIAS = 2.0  # and this factor: what is refused in vain is worse than what is tried in vain
PATIENCE = 5.0  # seconds, before a bar is shown
OF_DISK = 0.5  # at most, of what is free for temporary files


@dataclass(frozen=True)
class Forecast:
    """About how many cells a plane has, with the standard error, how many vertices, and how long cutting takes, and
    the certificate after it, if that is asked for."""

    cells: float
    stderr: float
    vertices: float
    seconds: float
    bytes: float  # of memory
    bytes_on_disk: float  # of outputs, if cells have to go through the network in blocks
    certificate_seconds: float = 0.0

    def __str__(self) -> str:
        off = f", give or take {100 * self.stderr / self.cells:.0f} %" if self.cells > 1 else ""
        cells, size = _two_digits(self.cells), bytes_in_words(self.bytes)
        certified = f" and {_duration(self.certificate_seconds)} to certify" if self.certificate_seconds else ""
        return f"about {cells} cells{off}, {size}, {_duration(self.seconds)} to cut{certified}"

    @property
    def least(self) -> float:
        """So many cells at least, most likely."""
        return max((self.cells - ERRORS * self.stderr) / BIAS, 1.0)

    def check(self, max_cells: int, memory: int) -> None:
        """Refuse a plane that will have too many cells, or take too much memory or space on disk, even if the
        estimate is too large."""
        smaller = self._smaller(max_cells, memory)
        if self.least > max_cells:
            raise TooManyCells(f"more than max_cells={max_cells:,} cells: {self}, by an estimate; {smaller}")
        if self.least * self.bytes / self.cells > memory:
            raise TooMuchMemory(
                f"{bytes_in_words(memory)} of memory are too little: {self}, by an estimate; give"
                f" {bytes_in_words(bytes_to_give(1.2 * self.bytes))}, {smaller}, or fewer layers"
            )
        folder = tempfile.gettempdir()
        if self.least / self.cells * self.bytes_on_disk > (free := shutil.disk_usage(folder).free) * OF_DISK:
            raise TooMuchMemory(
                f"{bytes_in_words(free)} in {folder} are too little: {self}, by an estimate, and its outputs take"
                f" {bytes_in_words(self.bytes_on_disk)} there; {smaller}, or set TMPDIR to a larger disk"
            )

    def excess(self, max_cells: int, memory: int) -> str | None:
        """What is said of a plane that is not refused, but too large if the estimate is right; None of others."""
        allowed = [f"{max_cells:,} cells"] if self.cells > max_cells else []
        allowed += [bytes_in_words(memory)] if self.bytes > memory else []
        if not allowed:
            return None
        return (
            f"more is expected than the {' and '.join(allowed)} that are allowed: {self}, by an"
            f" estimate; the work may stop before its end: allow more, or {self._smaller(max_cells, memory)}"
        )

    def _smaller(self, max_cells: int, memory: int) -> str:
        """What would fit."""
        kept = min(max_cells, memory * self.cells / self.bytes)
        return f"look at a part of about {np.sqrt(kept / self.cells):.1g} times its side"


def forecast(net: Network, plane: Plane, *, up_to_layer: int | None = None, show_progress: bool = False) -> Forecast:
    """About how many cells a plane has, given a frozen network; estimated, the same in every call."""
    extent = float(np.ptp(plane.domain, axis=0).max())
    _log.info("a plane of side %.3g is estimated from small squares", extent)
    with tqdm(desc="estimating", unit=" squares", delay=PATIENCE, leave=False, disable=not show_progress) as bar:
        cut = partial(_Squares.cut, net, plane, up_to_layer, np.random.default_rng(SEED), bar)
        whole = box = _Box(plane.domain.min(axis=0), np.ptp(plane.domain, axis=0))
        first, outer = _suited_squares(cut, box, FINEST, ring=box.inner.within(plane.domain))
        strata = [outer]
        while strata[-1].ring:
            box = box.inner
            strata.append(_middle(cut, box, strata[-1], deepest=len(strata) > DEEPEST))
        each = outer.seconds_a_vertex(first)
        if in_rows(net) and 0 < (inside := float(outer.vertices.mean())) < IN_A_BLOCK:
            larger = min(np.sqrt(IN_A_BLOCK / inside) * outer.size.max(), extent)
            block = cut(whole, round(extent / larger), fields=1)
            each = min(each, block.seconds / block.evaluated)
    return _whole(plane, strata, 0 if up_to_layer else int(np.prod(net.output_shape)), each)


def _suited_squares(
    cut: "_Cut", box: "_Box", finest: int, *, fields: int = FIELDS, ring: bool = False
) -> tuple["_Squares", "_Squares"]:
    """The first, smallest squares, and those of a size that boundaries meet in."""
    first = squares = cut(box, finest, fields=fields, ring=ring)
    while squares.ends.sum() < SURE and squares.parts > 1:
        squares = cut(box, max(squares.parts // LARGER, 1), fields=fields, ring=ring)
    parts = max(round(squares.parts * float(squares.ends.mean()) / (4 * ENDS)), 1)
    return first, squares if abs(squares.parts / parts - 1) <= 0.5 else cut(box, parts, fields=fields, ring=ring)


def _middle(cut: "_Cut", box: "_Box", around: "_Squares", *, deepest: bool) -> "_Squares":
    """Squares in the middle of a ring: all over it if boundaries are about as dense there, or in a ring of it."""
    try:
        core = _suited_squares(cut, box, around.parts // 2 or LARGER, fields=FIELDS // 2)[1]
        if deepest or core.density <= GATHERED * around.density or core.parts == 1:
            return core
    except TooManyCells:  # nearly all cells of a large plane can be in one square
        if deepest:
            raise
    return _suited_squares(cut, box, max(around.parts, LARGER), ring=True)[1]


@dataclass(frozen=True)
class _Box:
    """A rectangle of a plane: its lower left corner and its size."""

    low: Floats  # (2,)
    size: Floats  # (2,)

    @property
    def inner(self) -> "_Box":
        """The four fields in the middle."""
        return _Box(self.low + self.size * (FIELDS / 2 - 1) / FIELDS, self.size * 2 / FIELDS)

    def within(self, polygon: Floats) -> bool:
        """Whether it lies in a convex polygon."""
        return bool(_inside(polygon, self.low + self.size * (SQUARE + 1) / 2).all())


class _Cut(Protocol):
    """Squares in a box, of which each field has so many times so many."""

    def __call__(self, box: _Box, parts: int, *, fields: int = FIELDS, ring: bool = False) -> "_Squares": ...


@dataclass(frozen=True)
class _Squares:
    """Of small squares: how many boundaries end on their sides, what is added inside, vertices, and seconds."""

    size: Floats  # (2,) of each
    area: float  # of what they are drawn from
    parts: int  # along the sides of a field, of which a square is one
    ring: bool  # whether they are drawn around the middle
    outward: Bools  # (n, 4) whether a side is the one towards the rim, in a field at the rim
    side_ends: Floats  # (n, 4) by side: below, right, above, left
    inside: Floats  # (n,) cells that vertices inside add
    vertices: Floats  # (n,) inside
    evaluated: int  # vertices in all
    seconds: float

    @staticmethod
    def cut(
        net: Network, plane: Plane, up_to_layer: int | None, random: np.random.Generator, bar: Any,
        box: _Box, parts: int, *, fields: int = FIELDS, ring: bool = False,
    ) -> "_Squares":  # fmt: skip
        """One of so many times so many squares of each field, cut by a network."""
        corners = np.stack(np.meshgrid(*[np.arange(fields)] * 2), axis=-1).reshape(-1, 2)
        corners = corners[np.abs(corners + 0.5 - fields / 2).max(axis=1) > 1] if ring else corners
        size = box.size / fields / parts
        centres = box.low + size * (corners * parts + random.integers(parts, size=corners.shape) + 0.5)
        kept = _inside(plane.domain, centres)
        centres = centres[kept] if kept.any() else plane.domain.mean(axis=0)[None]
        i, j = corners[kept if kept.any() else slice(1)].T
        outward = np.stack([j == 0, i == fields - 1, j == fields - 1, i == 0], axis=1)
        whole = min(plane.area, float(box.size.prod()))
        area = whole - float(box.inner.size.prod()) if ring else whole
        origins, axes = plane.points(centres).flatten(1), Planes.of(plane).axes.expand(len(centres), -1, -1)
        together = 1 if in_rows(net) else len(centres)  # rows are those of one plane
        counts = list[_Counts]()

        def count() -> None:
            for o, a in zip(origins.split(together), axes.split(together), strict=True):
                planes = Planes(o, a, size / 2 * SQUARE)
                made, _ = subdivide(net, planes, max_cells=MOST, up_to_layer=up_to_layer, exactly=False)
                counts.append(_counts(made))
                bar.update(len(o))

        seconds = busy_seconds(count)
        sides, inside, vertices = (np.concatenate([found[k] for found in counts]) for k in range(3))
        evaluated = sum(found[3] for found in counts)
        return _Squares(size, area, parts, ring, outward, sides, inside, vertices, evaluated, seconds)

    @property
    def ends(self) -> Floats:
        """How many boundaries end on each rim, (n,)."""
        return np.asarray(self.side_ends.sum(axis=1))

    @property
    def density(self) -> float:
        """How many boundaries cross a line of length 1."""
        return float(self.ends.mean() / (2 * self.size.sum()))

    @property
    def share(self) -> float:
        """How many squares there would be."""
        return self.area / float(self.size.prod())

    def total(self, found: Floats) -> tuple[float, float]:
        """What that makes of all, and its variance: none if these are all."""
        left = max(1 - len(found) / self.share, 0.0)
        return self.share * float(found.mean()), self.share**2 * left * _variance_of_mean(found)

    def ends_on_rim(self, plane: Plane) -> tuple[float, float]:
        """How many boundaries end on the rim of the plane, and the variance: by the sides that are nearest to it, which
        boundaries that leave the middle cross more often than others; of a plane that is no rectangle, by all."""
        lengths = np.linalg.norm(plane.domain - np.roll(plane.domain, 1, axis=0), axis=1)
        if len(lengths) != 4 or self.outward.sum() != 4 * FIELDS:
            rim = float(lengths.sum() / (2 * self.size.sum()))
            return rim * float(self.ends.mean()), rim**2 * _variance_of_mean(self.ends)
        near = self.side_ends[self.outward]  # of a field each
        left = 1 - 1 / self.parts  # of the rim: all of it is known if squares are fields
        return self.parts * float(near.sum()), (self.parts * len(near)) ** 2 * left * _variance_of_mean(near)

    def seconds_a_vertex(self, first: "_Squares") -> float:
        """What one more takes than in the first, smaller squares; on average, if those were slowed down by what is done
        once in a process."""
        mean, more = self.seconds / self.evaluated, self.evaluated - first.evaluated
        if more < first.evaluated or first.seconds > mean * first.evaluated * FIXED:
            return mean
        return max((self.seconds - first.seconds) / more, mean / FIXED)


_Counts = tuple[Floats, Floats, Floats, int]


def _counts(made: Subdivision) -> _Counts:
    """Of squares that are cut: ends by side, cells that vertices inside add, vertices inside; vertices in all."""
    mesh, n = made.mesh, len(made.planes)
    rim = mesh.label < 0
    polygon_of_edge = made.polygon[mesh.face.reshape(-1, 2).max(axis=1)]
    sides: Floats = (
        np.bincount(4 * polygon_of_edge[rim] - 1 - mesh.label[rim], minlength=4 * n).reshape(n, 4).astype(np.float64)
        - 1
    )
    ends = sides.sum(axis=1)
    cells = np.bincount(made.polygon, minlength=n)
    polygon_of_vertex = np.zeros(len(mesh.xy), np.int64)
    polygon_of_vertex[mesh.origin] = np.repeat(polygon_of_edge, 2)
    inner = np.bincount(polygon_of_vertex, minlength=n) - ends - 4
    return sides, cells - 1 - ends / 2, inner, len(mesh.xy)


def _variance_of_mean(found: Floats) -> float:
    """Of independent numbers; that of a single one is not known, and as large as it."""
    return float(found.var(ddof=1)) / len(found) if len(found) > 1 else float(found[0]) ** 2


def _whole(plane: Plane, strata: list[_Squares], outputs: int, seconds: float) -> Forecast:
    """What strata make for the whole plane, of which a vertex takes so many seconds."""
    ends, variance = strata[0].ends_on_rim(plane)
    totals = [s.total(s.inside) for s in strata]
    found = 1 + ends / 2 + sum(t for t, _ in totals)
    error = np.sqrt(variance / 4 + sum(v for _, v in totals))
    vertices = sum(s.total(s.vertices)[0] for s in strata) + ends + len(plane.domain)
    return Forecast(found, float(error), vertices, seconds * vertices, A_CELL * found / SHARE, 8 * outputs * vertices)


def _inside(polygon: Floats, points: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which points (n, 2) are inside a convex polygon, whose corners go counter-clockwise."""
    along, to = np.roll(polygon, -1, axis=0) - polygon, points[:, None] - polygon
    return np.asarray((along[:, 0] * to[..., 1] - along[:, 1] * to[..., 0] >= 0).all(axis=1))


def _two_digits(number: float) -> str:
    """Two digits are known at the most."""
    if number >= 1e6:
        return f"{number / 1e6:.2g} million" if number < 1e8 else f"{number / 1e6:,.0f} million"
    return f"{float(f'{number:.2g}'):,.0f}"


def _duration(seconds: float) -> str:
    """A time that is not known precisely."""
    if seconds < 90:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
