"""Every tolerance and every sign decision of the geometry.

A vertex is *above* a boundary, *below* it, or *on* it. It is on it if the value is within the rounding that float64 can
leave in a pre-activation: a share `ROUNDING` of the largest value that the site takes at any vertex. A boundary cuts a
cell only if some vertex is above and some below. So coincident boundaries, boundaries through a vertex or along an edge
and units that are zero on a whole cell cut nothing twice and leave no slivers.
"""

import numpy as np
from numba import njit
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


# Not parallel=True, here and anywhere: numba would start threads of its own, which may spin for ever when the process
# exits (TBB), end a process that was forked (OpenMP) or that calls from two threads (workqueue), and change torch's
# number of threads. Without branches these loops are faster on one core than they were with branches on two.


@njit(cache=True, nogil=True)
def close_decisions(values, breakpoints, tolerance):  # type: ignore[no-untyped-def]
    """How many values are so close to a breakpoint, and not at it, that rounding may have chosen the side."""
    found = 0
    for v in range(len(values)):
        for t in range(len(breakpoints)):
            for i in range(values.shape[1]):
                distance = abs(values[v, i] - breakpoints[t])
                found += (distance > 0) & (distance <= tolerance)
    return found


@njit(cache=True, nogil=True)
def classify(values, breakpoints, tolerance, above, below):  # type: ignore[no-untyped-def]
    """Set the bits of the boundaries that each row is above and below; boundary t * units + i is unit i's t-th."""
    vertices, units = values.shape
    above[:] = 0
    below[:] = 0
    for v in range(vertices):
        for t in range(len(breakpoints)):
            high, low = breakpoints[t] + tolerance, breakpoints[t] - tolerance
            for i in range(units):
                word, place = (t * units + i) >> 6, np.uint64((t * units + i) & 63)
                above[v, word] |= np.uint64(values[v, i] > high) << place
                below[v, word] |= np.uint64(values[v, i] < low) << place
