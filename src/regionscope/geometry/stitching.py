"""Planar subdivisions that were cut in blocks, made one again.

A block is a set of cells with a mesh of its own. The edges that it has in common with another block, its *rim*, are cut
on both sides by the same boundaries, so the two rows of vertices along such an edge are one row: vertices with one
maker are the same, and a vertex that only one side has (the other joined the cells that met there) is put in on the
other. Vertices that were there when blocks parted bear a number by which they are known.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from regionscope.geometry import kernels, traversals
from regionscope.geometry.rows import row_portions
from regionscope.types import Bools, Floats, Indices, Ints

SAME_PLACE = 1e-9  # of a rim, between vertices that only one side knows by their makers: more is not rounding


class Piece(NamedTuple):
    """What is kept of a block that is finished: of its mesh only what the rest follows from, and its rim.

    `rim` (n, 2) has the edges there and the numbers of their common edges, `ends` (n, 3) the vertices there, the number
    that each bears or -1, and what made it or -1.
    """

    xy: Floats
    origin: Ints
    after: Ints
    label: Ints
    start: Ints
    polygon: Ints
    rim: Ints
    ends: Indices

    @staticmethod
    def of(mesh: kernels.Mesh, ids: Indices, maker: Ints, polygon: Ints) -> "Piece":
        """The piece of a mesh whose vertices bear these numbers, or -1, and were made by these boundaries."""
        edges = np.flatnonzero(mesh.rim >= 0)
        ends = np.unique(mesh.origin.reshape(-1, 2)[edges])
        return Piece(
            xy=mesh.xy,
            origin=mesh.origin,
            after=mesh.after,
            label=mesh.label,
            start=mesh.start,
            polygon=polygon,
            rim=np.stack([edges, mesh.rim[edges]], axis=1).astype(np.int32),
            ends=np.stack([ends, ids[ends], maker[ends]], axis=1).astype(np.int64),
        )


@dataclass(frozen=True)
class _Stitched:
    """The joined mesh, which vertices of all pieces, one after another, it has, and the polygon of each cell."""

    mesh: kernels.Mesh
    vertices: Indices
    polygon: Ints


def stitched(pieces: Iterable[Sequence[Any]]) -> _Stitched:
    """The pieces, given as what they consist of, joined along their rims; they are gone through twice."""
    sizes, polygons = list[list[int]](), list[Ints]()
    for piece in map(Piece._make, pieces):
        sizes.append([len(part) for part in (piece.xy, piece.label, piece.start, piece.rim)])
        polygons.append(piece.polygon)
    polygon, (vertices, edges, cells, rims) = np.concatenate(polygons), np.sum(sizes, axis=0).tolist()
    seams = _Seams.of(pieces, vertices, edges, cells, edges + rims)  # no side lacks more than all others have
    alike, single = seams.rows()
    glued = [single]
    for first, second in alike:
        glued.append(seams.sewn(first, second))
    return _glued(seams, np.concatenate(glued), polygon)


class _Seams:
    """A mesh of several that have nothing in common yet, with room for vertices that one side of a rim lacks.

    `node` is the first vertex that each is the same as.
    """

    def __init__(self, mesh: kernels.Mesh, edges: int, rim: Ints, node: Ints, maker: Ints) -> None:
        self.mesh, self.edges, self.rim, self.node, self.maker = mesh, edges, rim, node, maker
        self.same: list[tuple[int, int]] = []

    @staticmethod
    def of(pieces: Iterable[Sequence[Any]], vertices: int, edges: int, cells: int, room: int) -> "_Seams":
        """Pieces with so many vertices, edges and cells side by side, with room for some more edges."""
        label = np.empty(room, np.int32)
        whole = kernels.Mesh(
            xy=np.empty((vertices, 2)),
            **{name: np.empty(2 * room, np.int32) for name in ("origin", "after", "before", "face")},
            label=label,
            rivals=label,  # what nobody asks for any more takes no memory
            rim=label,
            apart=np.zeros((room, 0)),
            start=np.empty(cells, np.int32),
            source=np.zeros(0, np.int32),
        )
        node, maker = np.arange(vertices, dtype=np.int32), np.full(vertices, -1, np.int32)
        named, rim, v, e, c = list[Indices](), list[Ints](), 0, 0, 0
        for piece in map(Piece._make, pieces):
            _copy(piece, whole, v, e, c)
            maker[v + piece.ends[:, 0]] = piece.ends[:, 2]
            named.append(piece.ends[piece.ends[:, 1] >= 0, :2] + np.array([v, 0]))
            rim.append(piece.rim + np.array([e, 0], np.int32))
            v, e, c = v + len(piece.xy), e + len(piece.label), c + len(piece.start)
        known = np.concatenate(named)
        _, first, group = np.unique(known[:, 1], return_index=True, return_inverse=True)
        node[known[:, 0]] = known[first[group], 0]
        return _Seams(whole, edges, np.concatenate(rim), node, maker)

    def rows(self) -> tuple[list[tuple[Indices, Indices]], Indices]:
        """The half-edges along both sides of rims that have been cut; and pairs of them (n, 2) where none was."""
        edges, number = self.rim.T.astype(np.int64)
        inner = 2 * edges + (self.mesh.face[2 * edges] < 0)
        order = np.argsort(number, kind="stable")
        rims, starts, sizes = np.unique(number[order], return_index=True, return_counts=True)
        inner = inner[order]
        first, second = np.arange(0, len(rims), 2), np.arange(1, len(rims), 2)
        assert len(first) == len(second) and (rims[first] + 1 == rims[second]).all()
        whole = (sizes[first] == 1) & (sizes[second] == 1)
        single = np.stack([inner[starts[first[whole]]], inner[starts[second[whole]]]], axis=1)
        cut = [
            inner[starts[k] : starts[k] + sizes[k]]
            for pair in zip(first[~whole], second[~whole], strict=True)
            for k in pair
        ]
        ordered = [self._in_order(halves) for halves in cut]
        return list(zip(ordered[::2], ordered[1::2], strict=True)), single

    def _in_order(self, halves: Indices) -> Indices:
        """Half-edges, each of which begins where another one ends, in a row."""
        if len(halves) == 1:
            return halves
        origin, node = self.mesh.origin, self.node
        begin = dict(zip(node[origin[halves]].tolist(), halves.tolist(), strict=True))
        ends = set(node[origin[halves ^ 1]].tolist())
        row = [next(h for vertex, h in begin.items() if vertex not in ends)]
        while (vertex := int(node[origin[row[-1] ^ 1]])) in begin:
            row.append(begin[vertex])
        assert len(row) == len(halves)
        return np.array(row)

    def sewn(self, first: Indices, second: Indices) -> Indices:
        """The pairs of half-edges that are two sides of one edge, along a rim; the second side runs the other way."""
        here, there = first.tolist(), second.tolist()[::-1]
        pairs = []
        left, right = here.pop(0), there.pop(0)
        for a, b in self._vertices(first, second[::-1]):
            one, other = left, right
            left = self._put_in(left, b) if a < 0 else here.pop(0)
            if b < 0:
                other = self._put_in(right, a)
            else:
                right = there.pop(0)
            if a >= 0 and b >= 0:
                self.same.append((a, b))
            pairs.append((one, other))
        return np.array([*pairs, (left, right)])

    def _put_in(self, half: int, vertex: int) -> int:
        """Put a vertex on an edge; returns the half-edge that begins there."""
        count = np.zeros(kernels.COUNTERS, np.int64)
        count[kernels.EDGES] = self.edges
        new = int(kernels.split_edge(half, vertex, self.mesh, count))
        self.edges += 1
        return new

    def _vertices(self, first: Indices, second: Indices) -> list[tuple[int, int]]:
        """The vertices inside a rim in order, as both sides know them; -1 if one of them does not."""
        a, b = self.mesh.origin[first[1:]].tolist(), self.mesh.origin[second[:-1]].tolist()
        makers = [self.maker[v].tolist() for v in (a, b)]
        if makers[0] == makers[1]:
            return list(zip(a, b, strict=True))
        start, end = self.mesh.xy[self.mesh.origin[first[0]]], self.mesh.xy[self.mesh.origin[second[-1]]]
        along = [((self.mesh.xy[v] - start) @ (end - start)).tolist() if v else [] for v in (a, b)]
        near, found, i, j = SAME_PLACE * float((end - start) @ (end - start)), list[tuple[int, int]](), 0, 0
        while i < len(a) or j < len(b):
            mine = i < len(a) and makers[0][i] in makers[1][j:]  # whether the other side has it too, farther on
            yours = j < len(b) and makers[1][j] in makers[0][i:]
            there = i < len(a) and j < len(b)
            both = there and not mine and not yours and abs(along[0][i] - along[1][j]) <= near
            if both or (mine and yours and makers[0][i] == makers[1][j]):  # where several meet each names one of them
                found.append((a[i], b[j]))
                i, j = i + 1, j + 1
            elif j == len(b) or (i < len(a) and (not mine, -along[0][i]) >= (not yours, -along[1][j])):
                found.append((a[i], -1))
                i += 1
            else:
                found.append((-1, b[j]))
                j += 1
        return found


def _copy(piece: Piece, whole: kernels.Mesh, vertices: int, edges: int, cells: int) -> None:
    """Put a piece into a mesh that has so many vertices, edges and cells before it."""
    halves, n = slice(2 * edges, 2 * (edges + len(piece.label))), len(piece.origin)
    before, face = np.empty(n, np.int32), np.full(n, -1, np.int32)
    before[piece.after] = np.arange(n, dtype=np.int32)
    offsets, _, sides = traversals.loops(piece.start, piece.origin, piece.after)
    face[sides] = np.repeat(np.arange(cells, cells + len(piece.start), dtype=np.int32), np.diff(offsets))
    whole.xy[vertices : vertices + len(piece.xy)] = piece.xy
    whole.origin[halves] = piece.origin + np.int32(vertices)
    whole.after[halves] = piece.after + np.int32(2 * edges)
    whole.before[halves] = before + np.int32(2 * edges)
    whole.face[halves] = face
    whole.label[edges : edges + len(piece.label)] = piece.label
    whole.start[cells : cells + len(piece.start)] = piece.start + np.int32(2 * edges)


def _glued(seams: _Seams, pairs: Indices, polygon: Ints) -> _Stitched:
    """The mesh in which pairs of half-edges (n, 2) are the two sides of one edge: that of the first.

    Only what goes around cells is kept right, and arrays become shorter where they are: nothing is there twice.
    """
    mesh, edges, node = seams.mesh, seams.edges, _first_of_all(seams)
    origin, after, before, face = mesh.origin, mesh.after, mesh.before, mesh.face
    outer, gone = pairs[:, 0] ^ 1, pairs[:, 1]
    for array in (origin, after, before, face):
        array[outer] = array[gone]
    order = np.argsort(gone)
    for array in (after, before):  # neighbours along a rim are known by other numbers, too
        place = order[np.minimum(np.searchsorted(gone, array[outer], sorter=order), len(order) - 1)]
        array[outer] = np.where(gone[place] == array[outer], outer[place], array[outer])
    after[before[outer]], before[after[outer]] = outer, outer
    first = mesh.start[face[outer]] == gone
    mesh.start[face[outer][first]] = outer[first]
    kept = np.ones(edges, bool)
    kept[gone >> 1] = False
    halves, used = np.repeat(kept, 2), np.zeros(len(node), bool)
    for rows in row_portions(2 * edges, 1):
        origin[rows] = node[origin[rows]]
        used[origin[rows][halves[rows]]] = True
    chosen, vertex, number = np.flatnonzero(used), _numbers_of(used), _numbers_of(halves)
    mesh.start[:] = number[mesh.start]
    return _Stitched(
        kernels.Mesh(
            xy=_thinned(mesh.xy, used),
            origin=_thinned(origin, halves, vertex),
            after=_thinned(after, halves, number),
            face=_thinned(face, halves),
            start=mesh.start,
            label=_thinned(mesh.label, kept),
            apart=mesh.apart,
            **{name: np.zeros(0, np.int32) for name in ("before", "rivals", "rim", "source")},
        ),
        chosen,
        polygon,
    )


def _first_of_all(seams: _Seams) -> Ints:
    """The first vertex that each is the same as, also along rims."""
    node, same = seams.node, np.array(seams.same, np.int64).reshape(-1, 2)
    links = node[same]
    some, ends = np.unique(links, return_inverse=True)
    graph = scipy.sparse.coo_array((np.ones(len(links), bool), tuple(ends.reshape(-1, 2).T)), shape=(len(some),) * 2)
    group = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    first = np.full(len(some), len(node))
    np.minimum.at(first, group, some)
    leads = np.arange(len(node), dtype=np.int32)
    leads[some] = first[group]
    for rows in row_portions(len(node), 1):
        node[rows] = leads[node[rows]]
    return node


def _numbers_of(chosen: Bools) -> Ints:
    """The number of each among those that are chosen."""
    return np.cumsum(chosen, dtype=np.int32) - np.int32(1)


def _thinned(array: NDArray[Any], stays: Bools, numbers: Ints | None = None) -> NDArray[Any]:
    """Some rows of an array, in the memory that it has; with other numbers, if these are given."""
    end = 0
    for rows in row_portions(len(stays), 1):
        part = array[rows][stays[rows]]
        array[end : end + len(part)] = part if numbers is None else numbers[part]
        end += len(part)
    return array[:end]
