"""Compiled loops: cutting the cells of a plane, or the pieces of lines, along the boundaries of one site.

A planar subdivision is a doubly connected edge list in flat arrays. Edge e has the half-edges 2e and 2e + 1, one on
each side; half-edge h starts at vertex `origin[h]`, runs around cell `face[h]` (-1 outside) and is followed by
`after[h]`. Cells are convex and neighbours share their vertices and edges, so a cut made on one side of an edge is
there on the other side too, and no decision is made twice.

A cell is cut by a boundary that has vertices of it above and below; the two parts are looked at again for further
boundaries, so the work is proportional to the number of cells made, times their corners, not to cells times units.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import numpy as np
from numba import njit

from regionscope.geometry.predicates import (
    DRIFT,
    EPS,
    GAIN,
    MOVED,
    SHIFT,
    SLOPE,
    TURNS,
    computed,
)

# places in the array of counters; OPEN counts signs that are not proved, ASKED those of them that are written down
VERTICES, EDGES, CELLS, ROOT, STACKED, OPEN, ASKED = range(7)
COUNTERS = 7
# an edge between the winners of a tournament: RIVALS minus its row in the table of those
RIVALS = -(1 << 30)
# what a kernel says when it stops
DONE, FULL, TOO_MANY, TORN = range(4)


@njit(cache=True, nogil=True)
def sign(above, below, vertex, boundary):
    word, one = boundary >> 6, np.uint64(1) << np.uint64(boundary & 63)
    if above[vertex, word] & one:
        return 1
    if below[vertex, word] & one:
        return -1
    return 0


@njit(cache=True, nogil=True)
def lowest_bit(word):
    """The position of the lowest bit that is set."""
    position = 0
    for half in (32, 16, 8, 4, 2, 1):
        if not word & ((np.uint64(1) << np.uint64(half)) - np.uint64(1)):
            word >>= np.uint64(half)
            position += half
    return position


@njit(cache=True, nogil=True)
def told(settled, root, line, boundary, other):
    """The sign of a boundary at the vertex that another one makes on a line, if it is known; else 2."""
    for i in range(len(settled)):
        same = settled[i, 0] == root and settled[i, 1] == line
        if same and settled[i, 2] == boundary and settled[i, 3] == other:
            return settled[i, 4]
    return 2


@njit(cache=True, nogil=True)
def new_doubt(a, b, vertex, gap, off, row, length, apart, law, doubt, errors, slopes, c):
    """How well a new vertex is known that a boundary makes on the edge from a to b, `apart` at most from its line.

    The values there are as good as at a and b. The computed point is as near to the line as a and b are, and to the
    boundary as its value, which is zero, is near to the true one. So the true point is a share `slip` of the edge
    farther: that of an error in the values at its ends, whose difference is `gap`, and of what it is `off` zero.
    Returns the error of values along the true line, for each of `rows`, and `slip`. Notes the largest error of the
    boundary's value, and its largest slope.
    """
    spread = computed(doubt, law, vertex, c)
    error = row * spread + off
    errors[c] = max(errors[c], error)
    slopes[c] = max(slopes[c], (gap - 2 * error) / length)
    spread += law[GAIN + c] * law[SLOPE + c] * apart[c]
    error = row * spread + off
    if 3 * error < gap:
        slip = error / (gap - 2 * error)
        doubt[vertex, SHIFT + c] = apart[c] + slip * length
    else:
        slip = np.inf
        doubt[vertex, SHIFT + c] = apart[c] + length + max(doubt[a, SHIFT + c], doubt[b, SHIFT + c])
    return spread, slip


@njit(cache=True, nogil=True)
def new_vertex(
    a, b, boundary, vertex, root, line, length, apart, values, fresh, breakpoints, rows, law, doubt, above, below,
    parents, weights, errors, slopes, count, asked, settled,
):  # fmt: skip
    """The point between a and b where the boundary runs: its values, and on which side of the others it lies.

    What is above (below) at both ends is so between them; only boundaries with ends on both sides need a look.
    """
    old, units = values.shape
    at_a = values[a] if a < old else fresh[a - old]
    at_b = values[b] if b < old else fresh[b - old]
    here = fresh[vertex - old]
    unit, level = boundary % units, breakpoints[boundary // units]
    za, zb = at_a[unit] - level, at_b[unit] - level
    opposite = (za > 0) != (zb > 0)  # otherwise exact arithmetic knows better: the vertex is as good as at an end
    t = za / (za - zb) if opposite else (1.0 if abs(zb) < abs(za) else 0.0)
    for i in range(units):
        here[i] = at_a[i] + t * (at_b[i] - at_a[i])
    off = 0.0 if opposite else abs(here[unit] - level)
    here[unit] = level
    parents[vertex, 0], parents[vertex, 1], weights[vertex] = a, b, t
    for column in range(doubt.shape[1]):
        doubt[vertex, column] = max(doubt[a, column], doubt[b, column])
    doubt[vertex, TURNS] += 1
    gap, row = abs(za - zb), rows[unit]
    sure, slip = new_doubt(a, b, vertex, gap, off, row, length, apart, law, doubt, errors, slopes, 0)
    usual, usual_slip = new_doubt(a, b, vertex, gap, off, row, length, apart, law, doubt, errors, slopes, 1)
    moved = doubt[vertex, MOVED] ** 2 + off * off
    for w in range(above.shape[1]):
        over, under = above[a, w] | above[b, w], below[a, w] | below[b, w]
        mixed = over & under
        over, under = over & ~mixed, under & ~mixed
        while mixed:
            bit = lowest_bit(mixed)
            one = np.uint64(1) << np.uint64(bit)
            mixed &= ~one
            other = 64 * w + bit
            if other == boundary:
                continue
            k, level = other % units, breakpoints[other // units]
            z, change, slack = here[k] - level, abs(at_b[k] - at_a[k]), 2 * EPS * abs(level)
            error = rows[k] * sure
            side = 1 if z > 0 else -1
            if not abs(z) > error + (change + 2 * error) * slip + slack:
                count[OPEN] += 1
                if count[ASKED] < len(asked):
                    asked[count[ASKED]] = vertex, other, root, line, boundary
                    count[ASKED] += 1
                error = rows[k] * usual
                exact = told(settled, root, line, boundary, other)
                if exact != 2 or not abs(z) > error + (change + 2 * error) * usual_slip + slack:
                    moved += z * z
                    side = exact if exact != 2 else 0
            if side > 0:
                over |= one
            elif side < 0:
                under |= one
        above[vertex, w], below[vertex, w] = over, under
    doubt[vertex, MOVED] = np.sqrt(moved)


@njit(cache=True, nogil=True)
def note_slope(a, b, on, unit, level, length, values, fresh, rows, law, doubt, errors, slopes):
    """Note the error of a boundary's value at a vertex on it, and its slope between two on its sides."""
    old = len(values)
    at_a = values[a, unit] if a < old else fresh[a - old, unit]
    at_b = values[b, unit] if b < old else fresh[b - old, unit]
    here = values[on, unit] if on < old else fresh[on - old, unit]
    for c in range(2):
        errors[c] = max(errors[c], abs(here - level) + rows[unit] * computed(doubt, law, on, c))
        slack = rows[unit] * (computed(doubt, law, a, c) + computed(doubt, law, b, c))
        slack += doubt[a, MOVED] + doubt[b, MOVED]
        slopes[c] = max(slopes[c], (abs(at_a - at_b) - slack) / length)


@njit(cache=True, nogil=True)
def split_edge(h, vertex, count, origin, after, before, face, label, rivals, apart):
    """Put a vertex on the edge of h; returns the half-edge that starts at it on the side of h."""
    n, twin = 2 * count[EDGES], h ^ 1
    m = n + 1
    origin[n], origin[m], origin[twin] = vertex, origin[twin], vertex
    after[n], before[after[h]], after[h], before[n] = after[h], n, n, h
    before[m], after[before[twin]], after[m], before[twin] = before[twin], m, twin, m
    face[n], face[m] = face[h], face[twin]
    label[n >> 1], rivals[n >> 1] = label[h >> 1], rivals[h >> 1]
    for c in range(2):
        apart[n >> 1, c] = apart[h >> 1, c]
    count[EDGES] += 1
    return n


@njit(cache=True, nogil=True)
def split_cell(cell, p, q, made_by, count, origin, after, before, face, label, rivals, start, source):
    """Join the starts of half-edges p and q of a cell by an edge; the part from p to q becomes a new cell."""
    n, new = 2 * count[EDGES], count[CELLS]
    m = n + 1
    origin[n], origin[m] = origin[p], origin[q]
    a, b = before[p], before[q]
    after[a], before[n], after[n], before[q] = n, a, q, n
    after[b], before[m], after[m], before[p] = m, b, p, m
    label[n >> 1], rivals[n >> 1] = made_by, -1
    face[n], start[cell] = cell, n
    start[new], source[new] = m, cell
    h = m
    while True:
        face[h] = new
        h = after[h]
        if h == m:
            break
    count[EDGES] += 1
    count[CELLS] += 1
    return new


@njit(cache=True, nogil=True)
def cutting(cell, start, origin, after, above, below):
    """The lowest boundary that cuts a cell, or -1."""
    for w in range(above.shape[1]):
        over, under = np.uint64(0), np.uint64(0)
        h = start[cell]
        while True:
            v = origin[h]
            over |= above[v, w]
            under |= below[v, w]
            h = after[h]
            if h == start[cell]:
                break
        if over & under:
            return 64 * w + lowest_bit(over & under)
    return -1


@njit(cache=True, nogil=True)
def ones(word):
    """The number of bits that are set."""
    n = 0
    while word:
        word &= word - np.uint64(1)
        n += 1
    return n


@njit(cache=True, nogil=True)
def room_needed(start, origin, after, above, below):
    """At most how many vertices and cells the cuts will add: c lines make at most c (c - 1) / 2 crossings in a cell."""
    vertices = cells = 0
    for cell in range(len(start)):
        c = 0
        for w in range(above.shape[1]):
            over, under = np.uint64(0), np.uint64(0)
            h = start[cell]
            while True:
                v, u = origin[h], origin[h ^ 1]
                over |= above[v, w]
                under |= below[v, w]
                vertices += ones((above[v, w] & below[u, w]) | (below[v, w] & above[u, w]))
                h = after[h]
                if h == start[cell]:
                    break
            c += ones(over & under)
        vertices += c * (c - 1) // 2
        cells += c + c * (c - 1) // 2
    return vertices, cells


@njit(cache=True, nogil=True)
def passage(h, side, boundary, origin, after, above, below):
    """From a vertex on one side to the first on the other: the last half-edge before, one that starts on it or -1."""
    last, on = h, -1
    while True:
        h = after[h]
        s = sign(above, below, origin[h], boundary)
        if s == side:
            last, on = h, -1
        elif s == 0:
            on = h if on < 0 else on
        else:
            return last, on, h


@njit(cache=True, nogil=True)
def distance(xy, a, b):
    return np.sqrt((xy[a, 0] - xy[b, 0]) ** 2 + (xy[a, 1] - xy[b, 1]) ** 2)


@njit(cache=True, nogil=True)
def cut_cells(
    count, first_label, breakpoints, values, fresh, rows, law, doubt, above, below, xy, parents, weights,
    origin, after, before, face, label, rivals, apart, start, source, roots, stack, most, asked, settled,
):  # fmt: skip
    """Cut the cells that there were at the start, `roots`, along all boundaries of a site; can be called again."""
    units = values.shape[1]
    ends, errors, slopes = np.empty(2, np.int64), np.empty(2), np.empty(2)
    while count[ROOT] < roots or count[STACKED] > 0:
        if count[STACKED] == 0:
            stack[0] = count[ROOT]
            count[STACKED] = 1
            count[ROOT] += 1
        room = min(len(xy) - count[VERTICES] - 2, len(label) - count[EDGES] - 3, len(start) - count[CELLS] - 1)
        if room < 0:
            return FULL
        cell = stack[count[STACKED] - 1]
        boundary = cutting(cell, start, origin, after, above, below)
        if boundary < 0:
            count[STACKED] -= 1
            continue
        if count[CELLS] >= most:
            return TOO_MANY
        h = start[cell]
        while sign(above, below, origin[h], boundary) <= 0:
            h = after[h]
        begin = h
        errors[:], slopes[:] = 0.0, 0.0
        for k in range(2):
            last, on, h = passage(h, 1 - 2 * k, boundary, origin, after, above, below)
            a, b = origin[last], origin[h]
            length = np.sqrt((xy[a, 0] - xy[b, 0]) ** 2 + (xy[a, 1] - xy[b, 1]) ** 2) + law[DRIFT]
            if on < 0:
                v, edge = count[VERTICES], last >> 1
                line = label[edge] if rivals[edge] < 0 else RIVALS - rivals[edge]
                new_vertex(
                    a, b, boundary, v, count[ROOT] - 1, line, length, apart[edge], values, fresh, breakpoints,
                    rows, law, doubt, above, below, parents, weights, errors, slopes, count, asked, settled,
                )  # fmt: skip
                for d in range(2):
                    xy[v, d] = xy[a, d] + weights[v] * (xy[b, d] - xy[a, d])
                count[VERTICES] += 1
                on = split_edge(last, v, count, origin, after, before, face, label, rivals, apart)
            else:
                note_slope(
                    a, b, origin[on], boundary % units, breakpoints[boundary // units], length, values, fresh, rows,
                    law, doubt, errors, slopes,
                )  # fmt: skip
            ends[k] = on
        while h != begin:
            if sign(above, below, origin[h], boundary) < 0:
                return TORN
            h = after[h]
        for c in range(2):
            farthest = max(doubt[origin[ends[0]], SHIFT + c], doubt[origin[ends[1]], SHIFT + c])
            apart[count[EDGES], c] = min(farthest, errors[c] / slopes[c]) if slopes[c] > 0 else farthest
        made_by = first_label + boundary
        new = split_cell(
            cell, ends[0], ends[1], made_by, count, origin, after, before, face, label, rivals, start, source
        )  # fmt: skip
        stack[count[STACKED]] = new
        count[STACKED] += 1
    return DONE


@njit(cache=True, nogil=True)
def cell_bits(above, start, origin, after, bits):
    """The boundaries each cell is above: those that one of its vertices is above."""
    for cell in range(len(start)):
        for w in range(above.shape[1]):
            over = np.uint64(0)
            h = start[cell]
            while True:
                over |= above[origin[h], w]
                h = after[h]
                if h == start[cell]:
                    break
            bits[cell, w] = over


@njit(cache=True, nogil=True)
def inherit(bits, old, parents):
    """Give new rows the bits that either of their parents has."""
    for v in range(old, len(bits)):
        for w in range(bits.shape[1]):
            bits[v, w] = bits[parents[v, 0], w] | bits[parents[v, 1], w]


@njit(cache=True, nogil=True)
def interpolate(rows, fresh, parents, weights):
    """Fill the rows of the new vertices, between those of their parents, which come earlier."""
    old = len(rows)
    for v in range(old, old + len(fresh)):
        a, b, t = parents[v, 0], parents[v, 1], weights[v]
        at_a = rows[a] if a < old else fresh[a - old]
        at_b = rows[b] if b < old else fresh[b - old]
        for i in range(rows.shape[1]):
            fresh[v - old, i] = at_a[i] + t * (at_b[i] - at_a[i])


@njit(cache=True, nogil=True)
def loops(start, origin, after):
    """The corners of every cell, one after another: where each begins, the vertices and the half-edges."""
    offsets = np.zeros(len(start) + 1, np.int64)
    for cell in range(len(start)):
        h, n = start[cell], 0
        while True:
            n += 1
            h = after[h]
            if h == start[cell]:
                break
        offsets[cell + 1] = offsets[cell] + n
    corners, sides = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)
    for cell in range(len(start)):
        h = start[cell]
        for k in range(offsets[cell], offsets[cell + 1]):
            corners[k], sides[k] = origin[h], h
            h = after[h]
    return offsets, corners, sides


@njit(cache=True, nogil=True)
def ancestors(source, known):
    """The cell, among the first `known`, that each cell was cut from."""
    found = np.arange(len(source))
    for cell in range(known, len(source)):
        found[cell] = found[source[cell]]
    return found


# lines: vertices in a chain, piece v runs from vertex v to vertex after[v]


@njit(cache=True, nogil=True)
def cut_pieces(
    count, first_label, breakpoints, values, fresh, rows, law, doubt, above, below, place, stretch, parents, weights,
    after, label, source, roots, most, asked, settled,
):  # fmt: skip
    """Cut the pieces that start at the first `roots` vertices along all boundaries of a site; can be called again."""
    apart, errors, slopes = np.zeros(2), np.zeros(2), np.zeros(2)
    while count[ROOT] < roots:
        root = a = count[ROOT]
        while after[a] >= 0:
            b = after[a]
            boundary = -1
            for w in range(above.shape[1]):
                mixed = (above[a, w] & below[b, w]) | (below[a, w] & above[b, w])
                if mixed:
                    boundary = 64 * w + lowest_bit(mixed)
                    break
            if boundary >= 0:
                if count[VERTICES] >= len(place):
                    return FULL
                if count[VERTICES] >= most:
                    return TOO_MANY
                v = count[VERTICES]
                length = stretch[root] * (place[b] - place[a] + law[DRIFT])
                new_vertex(
                    a, b, boundary, v, root, -1, length, apart, values, fresh, breakpoints, rows, law, doubt, above,
                    below, parents, weights, errors, slopes, count, asked, settled,
                )  # fmt: skip
                place[v] = place[a] + weights[v] * (place[b] - place[a])
                label[v], source[v], stretch[v] = first_label + boundary, a, stretch[root]
                after[a], after[v] = v, b
                count[VERTICES] += 1
            elif b < roots:
                break
            else:
                a = b
        count[ROOT] += 1
    return DONE


@njit(cache=True, nogil=True)
def piece_room(after, above, below):
    """At most how many vertices the cuts of a site will add to all pieces."""
    vertices = 0
    for a in range(len(after)):
        for w in range(above.shape[1] if after[a] >= 0 else 0):
            b = after[a]
            vertices += ones((above[a, w] & below[b, w]) | (below[a, w] & above[b, w]))
    return vertices


@njit(cache=True, nogil=True)
def chain(first, after):
    """The vertices of a curve in order."""
    n, v = 1, first
    while after[v] >= 0:
        v = after[v]
        n += 1
    order, v = np.empty(n, np.int64), first
    for i in range(n):
        order[i] = v
        v = after[v]
    return order


# a closer look at vertices


@njit(cache=True, nogil=True)
def sharpest(vertices, outgoing, xy, origin, before, face, drift):
    """The half-edge at each vertex, of those that begin there, that makes the sharpest corner with the one before."""
    found = np.full(len(vertices), -1)
    for n in range(len(vertices)):
        v = vertices[n]
        h, best = outgoing[v], -np.inf
        while True:
            if face[h] >= 0:
                turn = corner_sine(xy, v, origin[h ^ 1], origin[before[h]], drift)
                if turn > best:
                    best, found[n] = turn, h
            h = before[h] ^ 1
            if h == outgoing[v]:
                break
    return found


@njit(cache=True, nogil=True)
def corner_sine(xy, v, a, b, drift):
    """The sine of a corner, at least; its coordinates may be off by the drift."""
    ax, ay, bx, by = xy[a, 0] - xy[v, 0], xy[a, 1] - xy[v, 1], xy[b, 0] - xy[v, 0], xy[b, 1] - xy[v, 1]
    first, second = np.sqrt(ax * ax + ay * ay) + drift, np.sqrt(bx * bx + by * by) + drift
    if first == 0 or second == 0:  # rounding has made two vertices one
        return -1.0
    return (abs(ax * by - ay * bx) - 2 * drift * (first + second)) / (first * second)


@njit(cache=True, nogil=True)
def slope_along(a, v, unit, length, values, rows, law, doubt):
    """At most how steep a unit is between two vertices."""
    error = rows[unit] * (computed(doubt, law, a, 0) + computed(doubt, law, v, 0)) + doubt[a, MOVED] + doubt[v, MOVED]
    return (abs(values[a, unit] - values[v, unit]) + error) / length if length > 0 else np.inf


@njit(cache=True, nogil=True)
def local_bounds(vertices, units, outgoing, xy, origin, before, face, values, rows, law, doubt):
    """Bounds on the errors of units at vertices, with the steepest slope that they have in a cell there."""
    bounds = np.empty(len(vertices))
    for n in range(len(vertices)):
        v, unit = vertices[n], units[n]
        h, slope = outgoing[v], 0.0
        while True:
            if face[h] >= 0:
                a, b = origin[h ^ 1], origin[before[h]]
                turn, both = corner_sine(xy, v, a, b, law[DRIFT]), 0.0
                for end in (a, b):
                    length = np.sqrt((xy[end, 0] - xy[v, 0]) ** 2 + (xy[end, 1] - xy[v, 1]) ** 2) - law[DRIFT]
                    both += slope_along(end, v, unit, length, values, rows, law, doubt)
                slope = max(slope, both / turn) if turn > 0 else np.inf
            h = before[h] ^ 1
            if h == outgoing[v]:
                break
        shifted = slope * doubt[v, SHIFT] if doubt[v, SHIFT] > 0 else 0.0
        bounds[n] = rows[unit] * computed(doubt, law, v, 0) + shifted
    return bounds


@njit(cache=True, nogil=True)
def local_bounds_along(vertices, before, after, units, place, stretch, values, rows, law, doubt):
    """The same along curves."""
    bounds = np.empty(len(vertices))
    for n in range(len(vertices)):
        v, unit, slope = vertices[n], units[n], 0.0
        for a, piece in ((before[n], before[n]), (after[n], v)):
            if a != v:
                length = stretch[piece] * (abs(place[a] - place[v]) - law[DRIFT])
                slope = max(slope, slope_along(a, v, unit, length, values, rows, law, doubt))
        shifted = slope * doubt[v, SHIFT] if doubt[v, SHIFT] > 0 else 0.0
        bounds[n] = rows[unit] * computed(doubt, law, v, 0) + shifted
    return bounds


# taking boundaries away again


@njit(cache=True, nogil=True)
def merge_cells(key, keys, vertices, origin, after, before, face, label, rivals, apart):
    """Join neighbouring cells with the same key: drops the edges between them and the vertices that become straight.

    Returns which vertices and edges stay, and a half-edge of every cell, in the numbering from before.
    """
    edges = len(label)
    stays = np.ones(edges, np.bool_)
    for e in range(edges):
        h, t = 2 * e, 2 * e + 1
        if face[h] < 0 or face[t] < 0 or key[face[h]] != key[face[t]]:
            continue
        a, b, c, d = before[h], after[h], before[t], after[t]
        after[a], before[d], after[c], before[b] = d, a, b, c
        stays[e] = False
    degree = np.zeros(vertices, np.int32)
    for h in range(2 * edges):
        if stays[h >> 1]:
            degree[origin[h]] += 1
            face[h] = key[face[h]] if face[h] >= 0 else -1
    for h in range(2 * edges):
        p, v = before[h], origin[h]
        if not stays[h >> 1] or degree[v] != 2 or p >> 1 == h >> 1 or label[p >> 1] != label[h >> 1]:
            continue
        for c in range(2):
            apart[p >> 1, c] = max(apart[p >> 1, c], apart[h >> 1, c])
        origin[p ^ 1] = origin[h ^ 1]
        after[p], before[after[h]] = after[h], p
        before[p ^ 1], after[before[h ^ 1]] = before[h ^ 1], p ^ 1
        stays[h >> 1] = False
        degree[v] = 0
    start = np.full(keys, -1, np.int32)
    for h in range(2 * edges):
        if stays[h >> 1] and face[h] >= 0:
            start[face[h]] = h
    return degree > 0, stays, start


# finding points


@njit(cache=True, nogil=True)
def walk(points, xy, ends, cells, starts, sides):
    """The cell of each point: from cell to cell through the side that the point lies farthest beyond; -1 outside."""
    found = np.empty(len(points), np.int64)
    cell = 0
    for p in range(len(points)):
        x, y = points[p]
        for _ in range(len(starts)):
            worst, through = 0.0, -1
            for k in range(starts[cell], starts[cell + 1]):
                e, side = sides[k] >> 1, sides[k] & 1
                a, b = ends[e, side], ends[e, 1 - side]
                dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
                beyond = (dy * (x - xy[a, 0]) - dx * (y - xy[a, 1])) / max(np.sqrt(dx * dx + dy * dy), 1e-300)
                if beyond > worst:
                    worst, through = beyond, sides[k]
            if through < 0:
                found[p] = cell
                break
            following = cells[through >> 1, 1 - (through & 1)]
            if following < 0:
                found[p] = -1
                break
            cell = following
        else:
            found[p] = cell  # it went in a circle: on a border, to within rounding
    return found
