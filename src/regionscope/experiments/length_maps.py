"""Maps of a square plane: how long the boundaries are in each pixel, and pieces of them."""

import numpy as np

from regionscope.geometry.plane_cells import PlaneCells
from regionscope.geometry.planes import Plane
from regionscope.machine import points_at_once
from regionscope.types import Floats, Indices


def length_map(cells: PlaneCells, side: int) -> Floats:
    """The length, in pixels, of the boundaries in each of side × side pixels of a square plane.

    The first index is that of the second axis, as images have it.
    """
    inner = (cells.edges.cells >= 0).all(axis=1)
    return side * length_in_pixels(square_shares(cells.plane, cells.vertices[cells.edges.vertices[inner]]), side)


def square_shares(plane: Plane, places: Floats) -> Floats:
    """Places of a plane (..., 2) as shares of its square: from 0 to 1."""
    low, high = plane.domain.min(axis=0), plane.domain.max(axis=0)
    return np.asarray((places - low) / (high - low))


def length_in_pixels(segments: Floats, pixels: int) -> Floats:
    """The length of segments (n, 2, 2) inside each pixel of [0, 1]², (pixels, pixels), the second coordinate first.

    Each is cut where it crosses the lines between pixels; a piece belongs to the pixel of its middle.

    >>> length_in_pixels(np.array([[[0.0, 0.25], [1.0, 0.25]]]), 2)
    array([[0.5, 0.5],
           [0. , 0. ]])
    """
    at_once = points_at_once(4 * pixels)
    parts = [_laid(segments[k : k + at_once], pixels) for k in range(0, len(segments), at_once)]
    return np.asarray(sum(parts, np.zeros((pixels, pixels))))


def middles_of_pieces(segments: Floats, count: Indices) -> tuple[Floats, Indices]:
    """The middles of so many equal pieces of each segment (n, 2, 2), one after another, and whose pieces they are.

    >>> middles_of_pieces(np.array([[[0.0, 0.0], [1.0, 0.0]]]), np.array([2]))
    (array([[0.25, 0.  ],
           [0.75, 0.  ]]), array([0, 0]))
    """
    owner = np.repeat(np.arange(len(segments)), count)
    place = (np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + 0.5) / count[owner]
    along = segments[:, 1] - segments[:, 0]
    return np.asarray(segments[owner, 0] + place[:, None] * along[owner]), owner


def _laid(segments: Floats, pixels: int) -> Floats:
    """The same of not too many."""
    lines = np.arange(1, pixels) / pixels
    start, way = segments[:, 0], segments[:, 1] - segments[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = (lines[:, None] - start[:, None]) / way[:, None]  # (n, lines, 2)
    inside = np.where((crossings > 0) & (crossings < 1), crossings, 1.0).reshape(len(start), 2 * len(lines))
    cuts = np.sort(np.concatenate([np.zeros((len(start), 1)), inside, np.ones((len(start), 1))], axis=1), axis=1)
    middles = start[:, None] + (cuts[:, 1:, None] + cuts[:, :-1, None]) / 2 * way[:, None]  # (n, pieces, 2)
    column, row = np.clip((middles * pixels).astype(int), 0, pixels - 1).transpose(2, 0, 1)
    lengths = np.diff(cuts, axis=1) * np.linalg.norm(way, axis=1)[:, None]
    found = np.bincount((row * pixels + column).ravel(), lengths.ravel(), minlength=pixels * pixels)
    return np.asarray(found, np.float64).reshape(pixels, pixels)
