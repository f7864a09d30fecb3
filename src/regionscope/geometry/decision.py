"""Where the largest output changes inside cells on which all outputs are affine."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def tie(xy, f, corners, k, other):
    """The two points on the rim of a cell where outputs k and `other` are equal, with all outputs there.

    `other` -1 stands for the number 0: the boundary of a single output.
    """
    points, values, found = np.empty((2, 2)), np.empty((2, f.shape[1])), 0
    n = len(corners)
    for i in range(n):
        a, b = corners[i], corners[(i + 1) % n]
        da, db = f[a, k], f[b, k]
        if other >= 0:
            da, db = da - f[a, other], db - f[b, other]
        if (da > 0) == (db > 0) or found == 2:
            continue
        t = da / (da - db)
        for d in range(2):
            points[found, d] = xy[a, d] + t * (xy[b, d] - xy[a, d])
        for j in range(f.shape[1]):
            values[found, j] = f[a, j] + t * (f[b, j] - f[a, j])
        found += 1
    return found == 2, points, values


@njit(cache=True, nogil=True)
def where_largest(values, k, other):
    """The part [low, high] of the segment on which no third output is larger than the two that tie."""
    low, high = 0.0, 1.0
    for j in range(values.shape[1]):
        if j in (k, other):
            continue
        start, end = values[0, k] - values[0, j], values[1, k] - values[1, j]
        if start < 0 and end < 0:
            return 1.0, 0.0
        if start < 0:
            low = max(low, start / (start - end))
        elif end < 0:
            high = min(high, start / (start - end))
    return low, high


@njit(cache=True, nogil=True)
def contenders(f, corners):
    """The outputs that may be the largest somewhere in the cell: some corner lifts them above the floor of all."""
    k = f.shape[1]
    highest, floor = np.full(k, -np.inf), -np.inf
    for j in range(k):
        lowest = np.inf
        for c in corners:
            highest[j] = max(highest[j], f[c, j])
            lowest = min(lowest, f[c, j])
        floor = max(floor, lowest)
    return np.flatnonzero(highest >= floor)


@njit(cache=True, nogil=True)
def everywhere_largest(f, corners, k):
    """Whether output k is larger than all others at every corner, and so, the set where it is being convex, inside."""
    for c in corners:
        for j in range(f.shape[1]):
            if j != k and f[c, j] >= f[c, k]:
                return False
    return True


@njit(cache=True, nogil=True)
def segments(xy, f, offsets, corners):
    """All places in cells where two outputs tie for the largest: (n, 4) end points and (n, 3) cell and the outputs.

    A tie along a side is found from the cell on which the first of the two is larger, or from both.
    """
    ends, owners = [], []
    for cell in range(len(offsets) - 1):
        mine = corners[offsets[cell] : offsets[cell + 1]]
        if f.shape[1] == 1:
            there, points, _ = tie(xy, f, mine, 0, -1)
            if there:
                ends.append((points[0, 0], points[0, 1], points[1, 0], points[1, 1]))
                owners.append((cell, 0, -1))
            continue
        if everywhere_largest(f, mine, np.argmax(f[mine[0]])):
            continue
        able = contenders(f, mine)
        for i in range(len(able)):
            for j in range(i + 1, len(able)):
                there, points, values = tie(xy, f, mine, able[i], able[j])
                if not there:
                    continue
                low, high = where_largest(values, able[i], able[j])
                if low >= high:
                    continue
                (x0, y0), (x1, y1) = points
                ends.append((x0 + low * (x1 - x0), y0 + low * (y1 - y0), x0 + high * (x1 - x0), y0 + high * (y1 - y0)))
                owners.append((cell, able[i], able[j]))
    result, who = np.empty((len(ends), 4)), np.empty((len(ends), 3), np.int64)
    for i in range(len(ends)):
        for d in range(4):
            result[i, d] = ends[i][d]
        for d in range(3):
            who[i, d] = owners[i][d]
    return result, who
