"""Every tolerance and every sign decision of the geometry.

A vertex is *above* a boundary, *below* it, or *on* it. It is on it if the value is within the rounding that float64 can
leave in a pre-activation: a share `ROUNDING` of the largest value that the site takes at any vertex. A boundary cuts a
cell only if some vertex is above and some below. So coincident boundaries, boundaries through a vertex or along an edge
and units that are zero on a whole cell cut nothing twice and leave no slivers.
"""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

ROUNDING = 256 * float(np.finfo(np.float64).eps)
SAME_MAP = 1e-8  # affine maps that differ by less than this share of their size are one function
COLLINEAR = 1e-10  # three points whose triangle is flatter than this share of its longest side span no plane
ORTHONORMAL = 1e-9
FRAME = 1e-5  # the same for directions of neighbourhoods, which may come in float32
CONVEX = 1e-12  # a corner that turns inward by no more than this share of the domain's size is straight


def rounding_bound(values: Floats) -> float:
    """How far from zero a pre-activation of this site may be by rounding alone."""
    return ROUNDING * float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def words(bits: int) -> int:
    """How many 64-bit words hold so many bits."""
    return -(-bits // 64)


@njit(cache=True, nogil=True, parallel=True)
def close_decisions(values, breakpoints, tolerance):  # type: ignore[no-untyped-def]
    """How many values are so close to a breakpoint, and not at it, that rounding may have chosen the side."""
    found = 0
    for v in prange(len(values)):
        for i in range(values.shape[1]):
            for t in range(len(breakpoints)):
                distance = abs(values[v, i] - breakpoints[t])
                if 0 < distance <= tolerance:
                    found += 1
    return found


@njit(cache=True, nogil=True, parallel=True)
def classify(values, breakpoints, tolerance, above, below):  # type: ignore[no-untyped-def]
    """Set the bits of the boundaries that each row is above and below; boundary t * units + i is unit i's t-th."""
    vertices, units = values.shape
    for v in prange(vertices):
        for w in range(above.shape[1]):
            above[v, w] = 0
            below[v, w] = 0
        bit = 0
        for t in range(len(breakpoints)):
            high, low = breakpoints[t] + tolerance, breakpoints[t] - tolerance
            for i in range(units):
                z = values[v, i]
                one = np.uint64(1) << np.uint64(bit & 63)
                if z > high:
                    above[v, bit >> 6] |= one
                elif z < low:
                    below[v, bit >> 6] |= one
                bit += 1
