"""How many cells a plane will have, estimated beforehand from small squares that are spread over it.

By Euler's formula a convex piece of a plane on whose rim b boundaries end has 1 + b/2 cells, and each vertex inside
where d sides meet adds d/2 - 1. So what squares have inside, by their area, and what ends on their rims, by their
length, tell both for the whole plane: without bias, if the squares lie anywhere with equal chance. There is one in each
field of a grid, so that a plane that is dense in one place is seen as such. Signs are taken as they seem, without exact
arithmetic; where nothing proves signs at small cells they count as zero, and cells are missing. Times come from how
long the squares took, and are good to a factor of two or three; of wide networks, in which many vertices share rows,
from one larger square, which is about what a block will be.
"""

import logging
import shutil
import tempfile
import time
from dataclasses import dataclass

import numpy as np

from regionscope.geometry.budget import SHARE, TooMuchMemory, bytes_to_give
from regionscope.geometry.complexes import TooManyCells
from regionscope.geometry.planes import SQUARE, Plane, Planes
from regionscope.geometry.subdivision import Subdivision, subdivide
from regionscope.geometry.sweep import in_rows
from regionscope.machine import bytes_in_words
from regionscope.tracing.network import Network
from regionscope.types import Floats

_log = logging.getLogger(__name__)

SEED = 0
FIELDS = 8  # along each side of the plane: a square lies in each
SMALLEST = 1 / 4096  # of the plane, the side of the first squares
LARGEST = 1 / FIELDS
ENDS = 4.0  # boundaries that cross the side of a square: enough of them meet inside
SURE = 64  # boundaries on the rims of all squares tell how long their sides should be
LARGER = 8  # times the side, if there are fewer
MOST = 200_000  # cells of all squares together
FIXED = 4.0  # times as long as on average few vertices may take, for what does not depend on their number
IN_A_BLOCK = 2000  # vertices that share rows, at least
A_CELL = 112  # bytes that are kept of a cell, a vertex and two sides; outputs are not, if that is much
ERRORS = 3.0  # standard errors that a plane is given the benefit of
BIAS = 2.0  # and this factor: what is refused in vain is worse than what is tried in vain
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


def forecast(net: Network, plane: Plane, *, up_to_layer: int | None = None) -> Forecast:
    """About how many cells a plane has, given a frozen network; estimated, the same in every call."""
    extent = float(np.ptp(plane.domain, axis=0).max())
    _log.info("a plane of side %.3g is estimated from small squares", extent)
    side, random = SMALLEST * extent, np.random.default_rng(SEED)
    first = squares = _Squares.cut(net, plane, side, up_to_layer, random)
    while squares.ends.sum() < SURE and side < LARGEST * extent:
        side = min(LARGER * side, LARGEST * extent)
        squares = _Squares.cut(net, plane, side, up_to_layer, random)
    wanted = min(ENDS / max(squares.density, 1e-300), LARGEST * extent)
    if abs(wanted / side - 1) > 0.5:
        squares = _Squares.cut(net, plane, wanted, up_to_layer, random)
    each = squares.seconds_a_vertex(first)
    if in_rows(net) and 0 < (inside := float(squares.vertices.mean())) < IN_A_BLOCK:
        larger = min(np.sqrt(IN_A_BLOCK / inside) * squares.side, extent)
        block = _Squares.cut(net, plane, larger, up_to_layer, random, fields=1)
        each = min(each, block.seconds / block.evaluated)
    return squares.whole(plane, 0 if up_to_layer else int(np.prod(net.output_shape)), each)


@dataclass(frozen=True)
class _Squares:
    """Of small squares: the side, how many boundaries end on each rim, what is added inside, vertices, and seconds."""

    side: float
    ends: Floats  # (n,)
    inside: Floats  # (n,) cells that vertices inside add
    vertices: Floats  # (n,) inside
    evaluated: int  # vertices in all
    seconds: float

    @staticmethod
    def cut(
        net: Network,
        plane: Plane,
        side: float,
        up_to_layer: int | None,
        random: np.random.Generator,
        *,
        fields: int = FIELDS,
    ) -> "_Squares":
        """Squares of this side in so many times so many fields of a plane, cut by a network."""
        low, size = plane.domain.min(axis=0), np.ptp(plane.domain, axis=0)
        corners = np.stack(np.meshgrid(*[np.arange(fields)] * 2), axis=-1).reshape(-1, 2)
        centres = low + size * (corners + random.random(corners.shape)) / fields
        centres = centres[_inside(plane.domain, centres)]
        centres = centres if len(centres) else plane.domain.mean(axis=0)[None]
        origins, axes = plane.points(centres).flatten(1), Planes.of(plane).axes.expand(len(centres), -1, -1)
        start, busy = time.perf_counter(), time.process_time()
        together = 1 if in_rows(net) else len(centres)  # rows are those of one plane
        counts = list[_Squares]()
        for o, a in zip(origins.split(together), axes.split(together), strict=True):
            planes = Planes(o, a, side / 2 * SQUARE)
            made, _ = subdivide(net, planes, max_cells=MOST, up_to_layer=up_to_layer, exactly=False)
            counts.append(_Squares._counted(side, made))
        seconds = min(time.perf_counter() - start, time.process_time() - busy)  # not the time of others
        ends, inside, vertices = (
            np.concatenate([getattr(c, n) for c in counts]) for n in ("ends", "inside", "vertices")
        )
        return _Squares(side, ends, inside, vertices, sum(c.evaluated for c in counts), seconds)

    @staticmethod
    def _counted(side: float, made: Subdivision) -> "_Squares":
        """What there is in squares that are cut."""
        mesh, n = made.mesh, len(made.planes)
        rim = mesh.label < 0
        polygon_of_edge = made.polygon[mesh.face.reshape(-1, 2).max(axis=1)]
        ends = np.bincount(polygon_of_edge[rim], minlength=n).astype(np.float64) - 4
        cells = np.bincount(made.polygon, minlength=n)
        polygon_of_vertex = np.zeros(len(mesh.xy), np.int64)
        polygon_of_vertex[mesh.origin] = np.repeat(polygon_of_edge, 2)
        inner = np.bincount(polygon_of_vertex, minlength=n) - ends - 4
        return _Squares(side, ends, cells - 1 - ends / 2, inner, len(mesh.xy), 0.0)

    @property
    def density(self) -> float:
        """How many boundaries cross a line of length 1."""
        return float(self.ends.mean()) / (4 * self.side)

    def whole(self, plane: Plane, outputs: int, seconds: float) -> Forecast:
        """What that makes for the whole plane, of which a vertex takes so many seconds."""
        n, share = len(self.ends), plane.area / self.side**2
        rim = np.linalg.norm(plane.domain - np.roll(plane.domain, 1, axis=0), axis=1).sum() / (4 * self.side)
        cells = self.inside * share + self.ends * rim / 2
        vertices = float((self.vertices * share + self.ends * rim).mean()) + len(plane.domain)
        found = 1 + float(cells.mean())
        error = float(cells.std(ddof=1) / np.sqrt(n)) if n > 1 else found
        return Forecast(found, error, vertices, seconds * vertices, A_CELL * found / SHARE, 8 * outputs * vertices)

    def seconds_a_vertex(self, first: "_Squares") -> float:
        """What one more takes than in the first, smaller squares; on average, if those were slowed down by what is done
        once in a process."""
        mean, more = self.seconds / self.evaluated, self.evaluated - first.evaluated
        if more < first.evaluated or first.seconds > mean * first.evaluated * FIXED:
            return mean
        return max((self.seconds - first.seconds) / more, mean / FIXED)


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
