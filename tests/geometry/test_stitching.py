"""Pieces that do not know the same vertices along a rim become one: either side is given what it lacks."""

import numpy as np
import pytest

from regionscope.geometry.stitching import Piece, stitched
from regionscope.types import Floats

NUMBERS = {(1.0, 0.0): 0, (1.0, 1.0): 1}  # of the corners that both squares have

Vertices = dict[float, int]  # how high on the rim, and what made it


def square(left: bool, known: Vertices) -> Piece:
    """One cell: the square on one side of the rim from (1, 0) to (1, 1), with vertices on it."""
    far, heights = (0.0, sorted(known)) if left else (2.0, sorted(known, reverse=True))
    ends = [(1.0, 0.0), (1.0, 1.0)] if left else [(1.0, 1.0), (1.0, 0.0)]
    corners = [ends[0], *((1.0, h) for h in heights), ends[1], (far, ends[1][1]), (far, ends[0][1])]
    n, edges = len(corners), np.arange(len(corners))
    following, preceding = (edges + 1) % n, (edges - 1) % n
    on_rim = np.arange(len(known) + 2)
    told = [(v, NUMBERS.get(corners[v], -1), known.get(corners[v][1], -1)) for v in on_rim.tolist()]
    return Piece(
        xy=np.array(corners),
        origin=np.stack([edges, following], axis=1).astype(np.int32).ravel(),
        after=np.stack([2 * following, 2 * preceding + 1], axis=1).astype(np.int32).ravel(),
        label=np.where(edges < len(known) + 1, 3, -1).astype(np.int32),
        start=np.zeros(1, np.int32),
        polygon=np.zeros(1, np.int32),
        rim=np.stack([on_rim[:-1], np.full(len(known) + 1, 0 if left else 1)], axis=1).astype(np.int32),
        ends=np.array(told),
    )


def area(corners: Floats) -> float:
    x, y = corners.T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({}, {0.5: 7}),
        ({0.5: 7}, {}),
        ({0.25: 7, 0.5: 8}, {0.5: 8}),
        ({0.5: 8}, {0.5: 8, 0.75: 9}),
        ({0.25: 7, 0.5: 8, 0.75: 9}, {0.5: 8}),
        ({0.5: 8}, {0.25: 7, 0.5: 8, 0.75: 9}),
        ({0.25: 7}, {0.75: 9}),
        ({0.5: 7}, {0.5: 8}),
        ({0.25: 6, 0.5: 7}, {0.5: 8, 0.75: 9}),
        ({0.25: 7, 0.75: 9}, {0.5: 8}),
        ({0.5: 8}, {0.25: 7, 0.75: 9}),
        ({0.125: 6, 0.5: 8, 0.75: 9}, {0.25: 7, 0.5: 8}),
    ],
)
def test_both_sides_have_all_vertices_of_a_rim(left: Vertices, right: Vertices) -> None:
    heights = sorted({0.0, 1.0, *left, *right})
    made = stitched([square(True, left), square(False, right)])
    mesh = made.mesh
    assert len(mesh.xy) == 4 + len(heights) and len(made.vertices) == len(mesh.xy)
    assert len(mesh.label) == 6 + len(heights) - 1  # Euler: vertices - edges + cells = 1
    loops = []
    for cell, start in enumerate(mesh.start.tolist()):
        sides = [start]
        while (after := int(mesh.after[sides[-1]])) != start:
            sides.append(after)
        assert (mesh.face[sides] == cell).all()
        loops.append(mesh.origin[sides].tolist())
        assert area(mesh.xy[loops[-1]]) == 1.0
        assert sorted(y for x, y in mesh.xy[loops[-1]].tolist() if x == 1.0) == heights
    (along, back), shared = ([*zip(loop, loop[1:] + loop[:1], strict=True)] for loop in loops), len(heights) - 1
    assert len({*along} & {(b, a) for a, b in back}) == shared
    assert (mesh.label == 3).sum() == shared
