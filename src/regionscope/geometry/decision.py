"""Where the decision changes on a plane whose cells have affine outputs.

The decision at a point is the set of outputs that are largest there: one, or several on open sets where they tie. The
decision boundary is the common border of the open sets on each of which the decision is one and the same. It runs
through cells, where affine outputs change places, and along sides, where they bend. Outputs that meet and part again
leave the same decision on both sides and no boundary; nor is there any on the rim, which has one side only.

Values that differ by no more than `tolerance` are equal. Cells share their vertices, so no equality is decided twice.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import numpy as np

from regionscope.compiling import njit


@njit(cache=True, nogil=True)
def _contenders(f, corners, tolerance):
    """The outputs that may be largest somewhere between the corners: some corner lifts them to the floor of all."""
    k = f.shape[1]
    highest, floor = np.full(k, -np.inf), -np.inf
    for j in range(k):
        lowest = np.inf
        for c in corners:
            highest[j] = max(highest[j], f[c, j])
            lowest = min(lowest, f[c, j])
        floor = max(floor, lowest)
    return np.flatnonzero(highest >= floor - tolerance)


@njit(cache=True, nogil=True)
def _overtakes(f, corners, i, j, tolerance):
    """Whether output i is above output j at some corner."""
    most = -np.inf
    for c in corners:
        most = max(most, f[c, i] - f[c, j])
    return most > tolerance


@njit(cache=True, nogil=True)
def _leaders(f, corners, able, tolerance):
    """For each output the first that it is equal to at all corners, and so everywhere between them; itself, if none."""
    first = able.copy()
    for n in range(len(able)):
        for m in range(n):
            i, j = able[n], able[m]
            if not _overtakes(f, corners, i, j, tolerance) and not _overtakes(f, corners, j, i, tolerance):
                first[n] = first[m]
                break
    return first


@njit(cache=True, nogil=True)
def _clipped(rows, a, b, tolerance):
    """The part of a convex polygon where column a is not below column b; rows are its corners, all columns affine."""
    kept, n = [], len(rows)
    for i in range(n):
        here, there = rows[i], rows[(i + 1) % n]
        before, after = here[a] - here[b], there[a] - there[b]
        if before >= -tolerance:
            kept.append(here)
        if min(before, after) < -tolerance and max(before, after) > tolerance:
            between = here + before / (before - after) * (there - here)
            between[b] = between[a]
            kept.append(between)
    return kept


@njit(cache=True, nogil=True)
def _realm(xy, f, corners, different, mine, tolerance):
    """The part of a cell where an output is the largest of several `different` ones: corners x, y, values; or nothing.

    It has an inside if, for each of the others, the output is above that one at one of its corners.
    """
    rows = []
    for c in corners:
        row = np.empty(2 + len(different))
        row[0], row[1] = xy[c, 0], xy[c, 1]
        for n in range(len(different)):
            row[2 + n] = f[c, different[n]]
        rows.append(row)
    for other in range(len(different)):
        if other != mine:
            rows = _clipped(rows, 2 + mine, 2 + other, tolerance)
    for other in range(len(different)):
        above = other == mine
        for row in rows:
            above = above or row[2 + mine] - row[2 + other] > tolerance
        if not above:
            return rows[:0]
    return rows


@njit(cache=True, nogil=True)
def _border(rows, a, b, tolerance):
    """The two corners farthest apart at which columns a and b are equal; the same one twice if there is one only."""
    size, ends = -1.0, (0.0, 0.0, 0.0, 0.0)
    for p in rows:
        for q in rows:
            length = (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2
            if length > size and abs(p[a] - p[b]) <= tolerance and abs(q[a] - q[b]) <= tolerance:
                size, ends = length, (p[0], p[1], q[0], q[1])
    return size > 0, ends


@njit(cache=True, nogil=True)
def through_cells(xy, f, offsets, corners, tolerance):
    """The boundary inside cells: ends (x, y, x, y) and (cell, output, output) of each segment; and the tied cells.

    A cell is tied if several outputs are the largest, and equal, on a part of it that has an inside.
    """
    ends, owners, tied = [(0.0, 0.0, 0.0, 0.0)][:0], [(0, 0, 0)][:0], [0][:0]
    for cell in range(len(offsets) - 1):
        mine = corners[offsets[cell] : offsets[cell + 1]]
        able = _contenders(f, mine, tolerance)
        if len(able) == 1:
            continue
        first = _leaders(f, mine, able, tolerance)
        different = able[first == able]
        realms = [_realm(xy, f, mine, different, n, tolerance) for n in range(len(different))]
        for n in range(len(different)):
            if len(realms[n]) > 0 and np.sum(first == different[n]) > 1:
                tied.append(cell)
                break
        for n in range(len(different)):
            for m in range(n + 1, len(different)):
                if len(realms[m]) == 0:
                    continue
                there, segment = _border(realms[n], 2 + n, 2 + m, tolerance)
                if there:
                    ends.append(segment)
                    owners.append((cell, different[n], different[m]))
    return ends, owners, tied


@njit(cache=True, nogil=True)
def realms(xy, f, offsets, corners, cells, tolerance):
    """Some cells, cut where the largest output changes: all corners (x, y), where each piece ends, (cell, output)."""
    places, ends, owners = [(0.0, 0.0)][:0], [0][:0], [(0, 0)][:0]
    for cell in cells:
        mine = corners[offsets[cell] : offsets[cell + 1]]
        able = _contenders(f, mine, tolerance)
        different = able[_leaders(f, mine, able, tolerance) == able]
        for n in range(len(different)):
            rows = _realm(xy, f, mine, different, n, tolerance)
            if len(rows) > 2:
                for row in rows:
                    places.append((row[0], row[1]))
                ends.append(len(places))
                owners.append((cell, different[n]))
    return places, ends, owners


@njit(cache=True, nogil=True)
def stretch(f, u, v, k, others, tolerance):
    """The part [low, high] of the way from vertex u to vertex v on which no other output is larger than output k."""
    low, high = 0.0, 1.0
    for j in others:
        start, end = f[u, k] - f[u, j], f[v, k] - f[v, j]
        if j == k:
            continue
        if start <= tolerance and end <= tolerance:
            return 1.0, 0.0
        if start < 0:
            low = max(low, start / (start - end))
        elif end < 0:
            high = min(high, start / (start - end))
    return low, high


@njit(cache=True, nogil=True)
def _winners_inside(f, corners, equal, tolerance):
    """Which of some outputs that are equal along a side of a cell are largest inside it.

    The difference of two is zero along the side and has one sign in the cell, so one corner tells. Both may be off by
    the tolerance from the first of them.
    """
    wins = np.ones(len(equal), np.bool_)
    for n in range(len(equal)):
        for other in equal:
            if _overtakes(f, corners, other, equal[n], 2 * tolerance):
                wins[n] = False
    return wins


@njit(cache=True, nogil=True)
def along_sides(xy, f, offsets, corners, vertices, cells, tolerance):
    """The boundary along the sides between cells, in the form of `through_cells`."""
    ends, owners = [(0.0, 0.0, 0.0, 0.0)][:0], [(0, 0, 0)][:0]
    for side in range(len(vertices)):
        p, q = cells[side]
        if p < 0 or q < 0:
            continue
        able = _contenders(f, vertices[side], tolerance)
        if len(able) == 1:
            continue
        first = _leaders(f, vertices[side], able, tolerance)
        different = able[first == able]
        for k in different:
            equal = able[first == k]
            u, v = vertices[side]
            low, high = stretch(f, u, v, k, different, tolerance)
            if len(equal) == 1 or low >= high:
                continue
            left = _winners_inside(f, corners[offsets[p] : offsets[p + 1]], equal, tolerance)
            right = _winners_inside(f, corners[offsets[q] : offsets[q + 1]], equal, tolerance)
            if np.all(left == right):
                continue
            (a, b), (dx, dy) = (xy[u, 0], xy[u, 1]), (xy[v, 0] - xy[u, 0], xy[v, 1] - xy[u, 1])
            ends.append((a + low * dx, b + low * dy, a + high * dx, b + high * dy))
            one, two = _sole(equal, left, right), _sole(equal, right, left)
            owners.append((min(p, q), min(one, two), max(one, two)))
    return ends, owners


@njit(cache=True, nogil=True)
def _sole(outputs, here, there):
    """The first of the outputs that win here, if possible one that does not win there."""
    for n in range(len(outputs)):
        if here[n] and not there[n]:
            return outputs[n]
    return outputs[np.argmax(here)]
