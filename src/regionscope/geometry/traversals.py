"""Compiled loops over what was cut: corners of cells, ancestors, rows of new vertices, the cell of a point.

None of them calls another; those that do are together in `kernels`.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import numpy as np

from regionscope.compiling import njit

LOST = -2  # instead of a cell, where a walk has gone in a circle


@njit(cache=True, nogil=True)
def cell_bits(above, cells, origin, face):
    """The boundaries each cell is above: those that one of its vertices is above."""
    bits = np.zeros((cells, above.shape[1]), np.uint64)
    for h in range(len(origin)):
        if face[h] >= 0:
            for w in range(above.shape[1]):
                bits[face[h], w] |= above[origin[h], w]
    return bits


@njit(cache=True, nogil=True)
def chosen_bits(words, numbers):
    """The bits with these numbers of each row, packed into bytes, the first lowest."""
    found, places = np.zeros((len(words), (len(numbers) + 7) // 8), np.uint8), numbers.astype(np.uint64)
    low, one = np.uint64(63), np.uint64(1)
    for row in range(len(words)):
        for i in range(len(places)):
            bit = (words[row, places[i] >> np.uint64(6)] >> (places[i] & low)) & one
            found[row, i >> 3] |= np.uint8(bit << np.uint64(i & 7))
    return found


@njit(cache=True, nogil=True)
def inherit(bits, old, parents):
    """Give new rows the bits that either of their parents has."""
    for v in range(old, len(bits)):
        for w in range(bits.shape[1]):
            bits[v, w] = bits[parents[v, 0], w] | bits[parents[v, 1], w]


@njit(cache=True, nogil=True)
def inherit_largest(numbers, old, parents):
    """Give new entries the larger number of their parents."""
    for v in range(old, len(numbers)):
        numbers[v] = max(numbers[parents[v, 0]], numbers[parents[v, 1]])


@njit(cache=True, nogil=True)
def interpolate(rows, old, parents, weights):
    """Fill the rows of the new vertices, between those of their parents, which come earlier."""
    for v in range(old, len(rows)):
        a, b, t = parents[v, 0], parents[v, 1], weights[v]
        for i in range(rows.shape[1]):
            rows[v, i] = rows[a, i] + t * (rows[b, i] - rows[a, i])


@njit(cache=True, nogil=True)
def loops(start, origin, after):
    """The corners of every cell, one after another: where each begins, the vertices and the half-edges."""
    offsets, n = np.zeros(len(start) + 1, np.int64), 0
    corners, sides = np.empty(len(origin), np.int32), np.empty(len(origin), np.int32)
    start, origin, after = start.view(np.uint32), origin.view(np.uint32), after.view(np.uint32)  # see `kernels`
    for cell in range(len(start)):
        h = start[cell]
        while True:
            corners[n], sides[n] = origin[h], h
            n += 1
            h = after[h]
            if h == start[cell]:
                break
        offsets[cell + 1] = n
    return offsets, corners[:n], sides[:n]


@njit(cache=True, nogil=True)
def lengths(xy, ends):
    """The distance between the two vertices of every edge."""
    found = np.empty(len(ends))
    for edge in range(len(ends)):
        a, b = ends[edge, 0], ends[edge, 1]
        x, y = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
        square = x * x + y * y
        found[edge] = np.sqrt(square) if 1e-200 < square < 1e200 else np.hypot(x, y)
    return found


@njit(cache=True, nogil=True)
def sites_and_units(labels, firsts, units):
    """The site and the unit of boundaries, given the number of each site's first one; -1 for what is no boundary."""
    site, unit = np.full(len(labels), -1, np.int32), np.full(len(labels), -1, np.int32)
    for i in range(len(labels)):
        if labels[i] >= 0:
            s = 0  # few sites, and few breakpoints: a search and a division take longer
            while s + 1 < len(firsts) and firsts[s + 1] <= labels[i]:
                s += 1
            number = labels[i] - firsts[s]
            while number >= units[s]:
                number -= units[s]
            site[i], unit[i] = s, number
    return site, unit


@njit(cache=True, nogil=True)
def largest_corners(xy, start, origin, after):
    """The corner of each cell whose two sides span most: it, the one after and the one before it, (cells, 3)."""
    found = np.empty((len(start), 3), np.int64)
    for cell in range(len(start)):
        h, most = start[cell], -1.0
        while True:
            v, a = origin[h], origin[after[h]]
            b = origin[after[after[h]]]
            area = abs((xy[v, 0] - xy[a, 0]) * (xy[b, 1] - xy[a, 1]) - (xy[v, 1] - xy[a, 1]) * (xy[b, 0] - xy[a, 0]))
            if area > most:
                most = area
                found[cell, 0], found[cell, 1], found[cell, 2] = a, b, v
            h = after[h]
            if h == start[cell]:
                break
    return found


@njit(cache=True, nogil=True)
def add_slope_squares(squares, table, corners, inverse):
    """Add the squared norm of the slopes that a table has along two axes, from its rows at three corners of cells.

    The inverse (cells, 2, 2) is that of the matrix whose columns are the two sides.
    """
    for cell in range(len(corners)):
        v, a, b = corners[cell]
        p, q, r, s = inverse[cell, 0, 0], inverse[cell, 0, 1], inverse[cell, 1, 0], inverse[cell, 1, 1]
        for i in range(table.shape[1]):
            first, second = table[a, i] - table[v, i], table[b, i] - table[v, i]
            squares[cell] += (first * p + second * r) ** 2 + (first * q + second * s) ** 2


@njit(cache=True, nogil=True)
def map_norms(xy, values, offsets, corners):
    """Frobenius norms of the affine maps that have these values at the corners of cells, and how wide cells are.

    By least squares over the corners; the width is about half of the smaller one. Both are 0 if all lie on one line.
    """
    norms, widths = np.zeros(len(offsets) - 1), np.zeros(len(offsets) - 1)
    for cell in range(len(norms)):
        mine = corners[offsets[cell] : offsets[cell + 1]]
        x, y, uu, uv, vv = 0.0, 0.0, 0.0, 0.0, 0.0
        for c in mine:
            x += xy[c, 0] / len(mine)
            y += xy[c, 1] / len(mine)
        for c in mine:
            u, v = xy[c, 0] - x, xy[c, 1] - y
            uu, uv, vv = uu + u * u, uv + u * v, vv + v * v
        spread = uu * vv - uv * uv
        if not spread > 0:
            continue
        squares = 0.0
        for k in range(values.shape[1]):
            mean, along, up = 0.0, 0.0, 0.0
            for c in mine:
                mean += values[c, k] / len(mine)
            for c in mine:
                along += (xy[c, 0] - x) * (values[c, k] - mean)
                up += (xy[c, 1] - y) * (values[c, k] - mean)
            squares += ((vv * along - uv * up) / spread) ** 2 + ((uu * up - uv * along) / spread) ** 2
        norms[cell], widths[cell] = np.sqrt(squares), np.sqrt(spread / (uu + vv))
    return norms, widths


@njit(cache=True, nogil=True)
def ancestors(source, known):
    """The cell, among the first `known`, that each cell was cut from."""
    found = np.empty(len(source), np.int32)
    for cell in range(len(source)):
        found[cell] = found[source[cell]] if cell >= known else cell
    return found


@njit(cache=True, nogil=True)
def play(won, start, above, first, second, larger):
    """Who wins the matches of a round in each row: `won` says who is in the slots before `start`."""
    for row in range(len(won)):
        for i in range(len(first)):
            won[row, start + i] = won[row, first[i] if above[row, i] == larger else second[i]]


@njit(cache=True, nogil=True)
def play_constants(told, start, over, under, first, second):
    """What constant, or none, the winners are: of equals, if either is a constant both are.

    Of two constants that are on no side of each other, and not known to be equal, nobody knows who has won.
    """
    for row in range(len(told)):
        for i in range(len(first)):
            a, b = told[row, first[i]], told[row, second[i]]
            if under[row, i]:
                a = b
            elif not over[row, i]:
                a = b if a < 0 else (a if b < 0 or a == b else -1)
            told[row, start + i] = a


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


@njit(cache=True, nogil=True)
def walk(points, xy, ends, cells, starts, sides, cell, short):
    """The cell of each point: from cell to cell through the side that the point lies farthest beyond; -1 outside.

    Sides that are `short` have no direction, and nothing goes through them; `LOST` if that leads in a circle.
    """
    found = np.empty(len(points), np.int64)
    for p in range(len(points)):
        x, y = points[p]
        for _ in range(len(starts)):
            worst, through = 0.0, -1
            for k in range(starts[cell], starts[cell + 1]):
                e, side = sides[k] >> 1, sides[k] & 1
                a, b = ends[e, side], ends[e, 1 - side]
                dx, dy = xy[b, 0] - xy[a, 0], xy[b, 1] - xy[a, 1]
                length = np.sqrt(dx * dx + dy * dy)
                beyond = (dy * (x - xy[a, 0]) - dx * (y - xy[a, 1])) / length if length > short else 0.0
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
            found[p] = LOST
    return found
