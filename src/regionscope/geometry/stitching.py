"""Planar subdivisions that were cut in blocks, made one again.

A block is a set of cells with a mesh of its own. The edges that it has in common with another block, its *rim*, are cut
on both sides by the same boundaries, so the two rows of vertices along such an edge are one row: vertices with one
maker are the same, and a vertex that only one side has (the other joined the cells that met there) is put in on the
other. Vertices that were there when blocks parted bear a number by which they are known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from regionscope.geometry import kernels
from regionscope.types import Indices, Ints


@dataclass(frozen=True)
class Piece:
    """What is kept of a block that is finished: its mesh, the number of each vertex or -1, and what made it or -1."""

    mesh: kernels.Mesh
    ids: Indices
    maker: Ints
    polygon: Ints

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.mesh, self.ids, self.maker, self.polygon))


@dataclass(frozen=True)
class Stitched:
    """The joined mesh, and which vertices of all pieces, one after another, it has."""

    mesh: kernels.Mesh
    vertices: Indices


def stitched(pieces: Sequence[Piece]) -> Stitched:
    """The pieces joined along their rims."""
    ids, maker = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("ids", "maker"))
    mesh, node = _side_by_side([piece.mesh for piece in pieces]), _first_with_id(ids)
    seams = Seams(mesh, node, maker)
    alike, single = seams.rows()
    glued = [single]
    for first, second in alike:
        glued.append(seams.sewn(first, second))
    return _glued(seams, np.concatenate(glued))


class Seams:
    """A mesh of several that have nothing in common yet, with room for vertices that one side of a rim lacks.

    `node` is the first vertex that each is the same as.
    """

    def __init__(self, mesh: kernels.Mesh, node: Indices, maker: Ints) -> None:
        self.node, self.maker = node, maker
        self.same: list[tuple[int, int]] = []
        self.edges = len(mesh.label)
        self.mesh = _with_room(mesh, int((mesh.rim >= 0).sum()))  # no side lacks more than all others have

    def rows(self) -> tuple[list[tuple[Indices, Indices]], Indices]:
        """The half-edges along both sides of rims that have been cut; and pairs of them (n, 2) where none was."""
        mesh, edges = self.mesh, np.flatnonzero(self.mesh.rim[: self.edges] >= 0)
        inner = 2 * edges + (mesh.face[2 * edges] < 0)
        order = np.argsort(mesh.rim[edges], kind="stable")
        rims, starts, sizes = np.unique(mesh.rim[edges[order]], return_index=True, return_counts=True)
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
        found, i, j = list[tuple[int, int]](), 0, 0
        while i < len(a) or j < len(b):
            mine = i < len(a) and makers[0][i] in makers[1][j:]  # whether the other side has it too, farther on
            yours = j < len(b) and makers[1][j] in makers[0][i:]
            if mine and yours and makers[0][i] == makers[1][j]:
                found.append((a[i], b[j]))
                i, j = i + 1, j + 1
            elif j == len(b) or (i < len(a) and (not mine, -along[0][i]) >= (not yours, -along[1][j])):
                found.append((a[i], -1))
                i += 1
            else:
                found.append((-1, b[j]))
                j += 1
        return found


def _side_by_side(meshes: Sequence[kernels.Mesh]) -> kernels.Mesh:
    """One mesh of several."""
    vertices = np.cumsum([0, *(len(m.xy) for m in meshes)])
    halves = np.cumsum([0, *(len(m.origin) for m in meshes)])
    cells = np.cumsum([0, *(len(m.start) for m in meshes)])
    moved = []
    for m, v, h, c in zip(meshes, vertices, halves, cells, strict=False):
        shifted = {"origin": m.origin + v, "after": m.after + h, "before": m.before + h, "start": m.start + h}
        shifted |= {"face": np.where(m.face >= 0, m.face + c, -1)}
        moved.append(m._replace(**{name: array.astype(np.int32) for name, array in shifted.items()}))
    return kernels.Mesh(*(np.concatenate([m[i] for m in moved]) for i in range(len(meshes[0]))))


def _with_room(mesh: kernels.Mesh, edges: int) -> kernels.Mesh:
    """The same with room for more edges."""
    sizes = {"label": 1, "rivals": 1, "rim": 1, "apart": 1, "origin": 2, "after": 2, "before": 2, "face": 2}
    return mesh._replace(**{
        name: np.concatenate([array, np.zeros((size * edges, *array.shape[1:]), array.dtype)])
        for name, size in sizes.items()
        for array in [getattr(mesh, name)]
    })  # fmt: skip


def _first_with_id(ids: Indices) -> Indices:
    """For each vertex the first that bears its number; itself if it has none."""
    node = np.arange(len(ids))
    named = np.flatnonzero(ids >= 0)
    _, first, group = np.unique(ids[named], return_index=True, return_inverse=True)
    node[named] = named[first[group]]
    return node


def _glued(seams: Seams, pairs: Indices) -> Stitched:
    """The mesh in which pairs of half-edges (n, 2) are the two sides of one edge: that of the first."""
    mesh, n = seams.mesh, len(seams.node)
    links = np.concatenate([np.stack([np.arange(n), seams.node]), np.array(seams.same, np.int64).reshape(-1, 2).T], 1)
    graph = scipy.sparse.coo_array((np.ones(links.shape[1], bool), tuple(links)), shape=(n, n))
    group = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    kept, outer = np.ones(seams.edges, bool), pairs[:, 0] ^ 1
    kept[pairs[:, 1] >> 1] = False
    known_as = np.arange(2 * seams.edges)
    known_as[pairs[:, 1]] = outer
    for array in (mesh.origin, mesh.after, mesh.before, mesh.face):
        array[outer] = array[pairs[:, 1]]
    halves = np.repeat(kept, 2)
    number = np.cumsum(halves) - 1
    used, vertex = np.unique(group[mesh.origin[: 2 * seams.edges][halves]], return_inverse=True)
    first = np.full(len(seams.node), n)
    np.minimum.at(first, group, np.arange(n))
    chosen = first[used]
    pointers = {name: number[known_as[getattr(mesh, name)[: 2 * seams.edges][halves]]] for name in ("after", "before")}
    per_edge = {name: getattr(mesh, name)[: seams.edges][kept] for name in ("label", "rivals", "rim", "apart")}
    return Stitched(
        kernels.Mesh(
            xy=mesh.xy[chosen],
            origin=vertex.astype(np.int32),
            face=mesh.face[: 2 * seams.edges][halves],
            start=number[known_as[mesh.start]].astype(np.int32),
            source=mesh.source,
            **{name: array.astype(np.int32) for name, array in pointers.items()},
            **per_edge,
        ),
        chosen,
    )
