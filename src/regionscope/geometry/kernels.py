"""Compiled loops: on which side vertices lie, and cutting cells of planes, or pieces of lines, along boundaries.

A planar subdivision is a doubly connected edge list in flat arrays, a `Mesh`. Edge e has the half-edges 2e and 2e + 1,
one on each side; half-edge h starts at vertex `origin[h]`, runs around cell `face[h]` (-1 outside) and is followed by
`after[h]`. Cells are convex and neighbours share their vertices and edges, so a cut made on one side of an edge is
there on the other side too, and no decision is made twice.

A cell is cut by a boundary that has vertices of it above and below; the two parts are looked at again for further
boundaries, so the work is proportional to the number of cells made, times their corners, not to cells times units.

All of them are in one file because numba looks only at the file of a function to see whether its compiled code is old:
a kernel calls none of another file. The numbers of `predicates` are compiled in: who changes one saves this file too.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from typing import NamedTuple

import numpy as np

from regionscope.compiling import njit
from regionscope.geometry.predicates import (
    CARRIED,
    DOUBTS,
    DRIFT,
    EPS,
    ERROR,
    FAINT,
    FLOOR,
    GAIN,
    INTERPOLATION,
    MOVED,
    NOISE,
    NORM,
    OFFSET,
    SHIFT,
    SIZE,
    TURNS,
    VALUE,
)
from regionscope.types import Floats, Indices, Ints, Words

# places in the array of counters; OPEN counts signs that are not proved, ASKED those of them that are written down
VERTICES, EDGES, CELLS, ROOT, STACKED, OPEN, ASKED = range(7)
COUNTERS = 7
# an edge between the winners of a tournament: RIVALS minus its row in the table of those
RIVALS = -(1 << 30)
# the top six bits of this number times a power of two say which (Leiserson, Prokop, Randall 1998)
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
POSITIONS = np.argsort([(int(DE_BRUIJN) << i & (1 << 64) - 1) >> 58 for i in range(64)])
# what a kernel says when it stops
DONE, FULL, TOO_MANY, TORN = range(4)

# Not parallel=True, here and anywhere: numba would start threads of its own, which may spin for ever when the process
# exits (TBB), end a process that was forked (OpenMP) or that calls from two threads (workqueue), and change torch's
# number of threads. Without branches these loops are faster on one core than they were with branches on two.

# What indexes arrays in the loops that run most is unsigned: a signed number may count from the end, so that numba
# looks at its sign wherever it is used, and makes no vectors of a loop. That was a quarter of the time of a cut.

# Of what a cut calls for each new vertex. A call counts the references to every array it is given, and more where a
# division may raise an error: that was a third of the time. No divisor is zero there.
IN_PLACE = {"forceinline": True, "error_model": "numpy"}
# Of these, what Python never calls: to take its arrays out of Python objects is compiled for each function otherwise.
INSIDE = IN_PLACE | {"no_cpython_wrapper": True}


class Vertices(NamedTuple):
    """What is known at each vertex while a site cuts: rows for all there are, and room for more."""

    values: Floats  # (vertices, units)
    above: Words  # (vertices, words): the boundaries that each vertex is above
    below: Words
    doubt: Floats  # (vertices, DOUBTS); see `predicates`
    parents: Ints  # (vertices, 3): between which two a new one lies, and the boundary that made it
    weights: Floats  # and how far from the first to the second


class Rule(NamedTuple):
    """How the signs of a site are decided: unit i of `rows` shares the errors of `law`."""

    breakpoints: Floats
    rows: Floats  # (units,)
    steep: Floats  # (2, units): at most how fast each changes along the plane, and usually
    law: Floats  # by `predicates.GAIN` to `CARRIED`
    labels: Ints  # (boundaries,) the number of each in the whole network


class Mesh(NamedTuple):
    """A planar subdivision; `apart` bounds how far the vertices of an edge are from its true line, proof and usual."""

    xy: Floats
    origin: Ints
    after: Ints
    before: Ints
    face: Ints
    label: Ints  # of edges: the boundary that made it; of a side of the domain, -1 minus its number
    rivals: Ints
    rim: Ints  # of edges that another block has too: the number of its common edge, times two, plus the side; or -1
    apart: Floats
    start: Ints  # a half-edge of each cell
    source: Ints  # the cell that each was cut from


class Chain(NamedTuple):
    """Curves: piece v runs from vertex v to vertex after[v], on a segment of length stretch[v]."""

    place: Floats
    stretch: Floats
    after: Ints
    label: Ints
    source: Ints


class Edge(NamedTuple):
    """Where a boundary makes a vertex: between a and b, on a line, of this length, `apart` at most from its line."""

    a: int
    b: int
    line: int
    length: float
    apart: Floats  # proof and usual


class Questions(NamedTuple):
    """Signs at new vertices: those that are not proved, to be `asked` for (vertex, boundary, cell, line, boundary on
    it), and those that are `settled` (cell, line, boundary on it, boundary, sign)."""

    asked: Indices
    settled: Indices


class Widest(NamedTuple):
    """The largest error and slope, proof and usual, that a boundary's value was seen to have in a cell."""

    errors: Floats
    slopes: Floats


# signs


@njit(cache=True, nogil=True, **IN_PLACE)
def error_of(doubt, law, v, c):
    """How far a unit's value at a vertex may be from the true one at the computed point, for each of its `rows`."""
    turns, norm = doubt[v, TURNS], doubt[v, NORM]
    interpolated = INTERPOLATION * turns * (law[SIZE] * norm + law[OFFSET])
    faint = FAINT if norm > 0 else 0.0
    carried = min(law[GAIN + c] * doubt[v, ERROR + c], law[CARRIED])
    return carried + law[NOISE + c] * norm + law[FLOOR + c] + interpolated + faint


@njit(cache=True, nogil=True)
def sure_errors(doubt, law):
    """How far units may be from their true values at each computed point, for each of their `rows`: the proof."""
    errors = np.empty(len(doubt))
    for v in range(len(doubt)):
        errors[v] = error_of(doubt, law, v, 0)
    return errors


@njit(cache=True, nogil=True, fastmath={"reassoc"}, **INSIDE)
def squared_norm(values, v):
    """The sum of the squares in a row, added up in any order: in that of the row alone it takes far longer."""
    squares = 0.0
    for i in range(values.shape[1]):
        squares += values[v, i] * values[v, i]
    return squares


@njit(cache=True, nogil=True)
def classify(vertices, rule, ties, opened):
    """Set the bits of the boundaries that each vertex is above and below; boundary t * units + i is unit i's t-th.

    `ties` are known to be on, if there are any. Counts in `opened` the signs at each vertex that are not proved, and
    notes norms in `doubt`.
    """
    values, above, below, doubt = vertices.values, vertices.above, vertices.below, vertices.doubt
    breakpoints, rows, law, steep, likely = rule.breakpoints, rule.rows, rule.law, rule.steep[0], rule.steep[1]
    units = values.shape[1]
    for v in range(len(values)):
        sure, shift_sure = error_of(doubt, law, v, 0), doubt[v, SHIFT]
        usual, shift_usual = error_of(doubt, law, v, 1), doubt[v, SHIFT + 1]
        squares, moved, unproved = squared_norm(values, v), 0.0, 0
        for w in range(above.shape[1]):
            above[v, w] = 0
            below[v, w] = 0
        bit, boundaries = 0, units * len(breakpoints)
        while bit < boundaries:  # a run of units that share a breakpoint and a word
            first, level = bit % units, breakpoints[bit // units]
            shift, slack = bit & 63, 2 * EPS * abs(level)
            run = min(64 - shift, units - first)
            over, under = np.int64(0), np.int64(0)
            for j in range(run):
                k = np.uint64(first) + np.uint64(j)
                z, error = values[v, k] - level, rows[k] * sure + steep[k] * shift_sure + slack
                over |= np.int64(z > error) << (shift + j)
                under |= np.int64(z < -error) << (shift + j)
            known = np.int64(ties[v, bit >> 6]) if len(ties) else np.int64(0)
            over, under = over & ~known, under & ~known
            rest = ((np.int64(1) << run) - 1 if run < 64 else np.int64(-1)) & ~((over | under | known) >> shift)
            for j in range(run if rest else 0):
                i = first + j
                z, error = values[v, i] - level, rows[i] * usual + likely[i] * shift_usual + slack
                if not (rest >> j) & 1 or (z == 0 and rows[i] * sure + steep[i] * shift_sure + slack == 0):
                    continue
                unproved += 1
                over |= np.int64(z > error) << (shift + j)
                under |= np.int64(z < -error) << (shift + j)
                moved += z * z if abs(z) <= error else 0.0
            above[v, bit >> 6] |= np.uint64(over)
            below[v, bit >> 6] |= np.uint64(under)
            bit += run
        faint = False
        if squares < FAINT:
            for i in range(units):
                faint |= values[v, i] != 0
        doubt[v, VALUE], doubt[v, MOVED] = np.sqrt(squares) + (FAINT if faint else 0.0), np.sqrt(moved)
        opened[v] = unproved


@njit(cache=True, nogil=True)
def hand_on(doubt, law):
    """Write down what is known of the errors of all that goes on from a site, given the law of the state; its norm
    apart."""
    for v in range(len(doubt)):
        for c in range(2):
            doubt[v, ERROR + c] = error_of(doubt, law, v, c) + 2 * doubt[v, MOVED]
        doubt[v, NORM] = doubt[v, MOVED] = doubt[v, TURNS] = doubt[v, VALUE] = 0.0


@njit(cache=True, nogil=True)
def open_signs(vertices, rule, ties, opened):
    """The vertices and boundaries whose signs are not proved, (n, 2), where so many are `opened`."""
    values, doubt = vertices.values, vertices.doubt
    breakpoints, rows, law = rule.breakpoints, rule.rows, rule.law
    found, n = np.empty((opened.sum(), 2), np.int64), 0
    units = values.shape[1]
    for v in np.flatnonzero(opened):
        sure = error_of(doubt, law, v, 0)
        for t in range(len(breakpoints)):
            slack = 2 * EPS * abs(breakpoints[t])
            for i in range(units):
                z, error = values[v, i] - breakpoints[t], rows[i] * sure + rule.steep[0, i] * doubt[v, SHIFT] + slack
                bit = t * units + i
                if len(ties) and (ties[v, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1):
                    continue
                if not (z > error or z < -error or (z == 0 and error == 0)):
                    found[n, 0], found[n, 1] = v, t * units + i
                    n += 1
    return found[:n]


@njit(cache=True, nogil=True, **INSIDE)
def sign(above, below, vertex, boundary):
    word, one = np.uint64(boundary >> 6), np.uint64(1) << np.uint64(boundary & 63)
    if above[vertex, word] & one:
        return 1
    if below[vertex, word] & one:
        return -1
    return 0


@njit(cache=True, nogil=True, **INSIDE)
def lowest_bit(word):
    """The position of the lowest bit that is set."""
    return POSITIONS[((word & (~word + np.uint64(1))) * DE_BRUIJN) >> np.uint64(58)]


@njit(cache=True, nogil=True)
def ones(word):
    """The number of bits that are set."""
    n = 0
    while word:
        word &= word - np.uint64(1)
        n += 1
    return n


@njit(cache=True, nogil=True, **INSIDE)
def place_of(boundary, units):
    """The unit that a boundary belongs to, and which of its breakpoints: few subtractions, as a division takes long."""
    breakpoint_ = 0
    while boundary >= units:
        boundary -= units
        breakpoint_ += 1
    return np.uint64(boundary), breakpoint_


# new vertices


@njit(cache=True, nogil=True, **INSIDE)
def settled_sign(settled, root, line, boundary, other):
    """The sign of a boundary at the vertex that another one makes on a line, if it is known; else 2."""
    for i in range(len(settled)):
        same = settled[i, 0] == root and settled[i, 1] == line
        if same and settled[i, 2] == boundary and settled[i, 3] == other:
            return settled[i, 4]
    return 2


@njit(cache=True, nogil=True, **INSIDE)
def new_doubt(edge, vertex, unit, gap, off, rule, doubt, widest, c):
    """How well a new vertex is known that a boundary makes on an edge from a to b.

    The values there are as good as at a and b. The computed point is as near to the line as a and b are, and to the
    boundary as its value, which is zero, is near to the true one. So the true point is a share `slip` of the edge
    farther: that of an error in the values at its ends, whose difference is `gap`, and of what it is `off` zero.
    Returns the error of values at the computed point, for each of `rows`, and `slip`. Notes the largest error of the
    boundary's value, and its largest slope.
    """
    length, apart = edge.length, edge.apart[c]
    spread = error_of(doubt, rule.law, vertex, c)
    error = rule.rows[unit] * spread + off
    widest.errors[c] = max(widest.errors[c], error)
    widest.slopes[c] = max(widest.slopes[c], (gap - 2 * error) / length)
    error += rule.steep[c, unit] * apart
    if 3 * error < gap:
        slip = error / (gap - 2 * error)
        doubt[vertex, SHIFT + c] = apart + slip * length
    else:
        slip = np.inf
        doubt[vertex, SHIFT + c] = apart + length + max(doubt[edge.a, SHIFT + c], doubt[edge.b, SHIFT + c])
    return spread, slip


@njit(cache=True, nogil=True, **INSIDE)
def new_vertex(edge, boundary, root, vertices, rule, questions, widest, count):
    """The point of an edge where the boundary runs: its values, and on which side of the others it lies.

    What is above (below) at both ends is so between them; only boundaries with ends on both sides need a look.
    """
    a, b, line, apart = edge.a, edge.b, edge.line, edge.apart
    values, above, below, doubt = vertices.values, vertices.above, vertices.below, vertices.doubt
    breakpoints, rows, asked = rule.breakpoints, rule.rows, questions.asked
    vertex, units = np.uint64(count[VERTICES]), values.shape[1]
    unit, which = place_of(boundary, units)
    level = breakpoints[which]
    za, zb = values[a, unit] - level, values[b, unit] - level
    opposite = (za > 0) != (zb > 0)  # otherwise exact arithmetic knows better: the vertex is as good as at an end
    t = za / (za - zb) if opposite else (1.0 if abs(zb) < abs(za) else 0.0)
    for i in range(units):
        values[vertex, i] = values[a, i] + t * (values[b, i] - values[a, i])
    off = 0.0 if opposite else abs(values[vertex, unit] - level)
    values[vertex, unit] = level
    vertices.parents[vertex, 0], vertices.parents[vertex, 1], vertices.parents[vertex, 2] = a, b, boundary
    vertices.weights[vertex] = t
    for column in range(DOUBTS):
        doubt[vertex, column] = max(doubt[a, column], doubt[b, column])
    doubt[vertex, TURNS] += 1
    gap, steep = abs(za - zb), rule.steep
    sure, slip = new_doubt(edge, vertex, unit, gap, off, rule, doubt, widest, 0)
    usual, usual_slip = new_doubt(edge, vertex, unit, gap, off, rule, doubt, widest, 1)
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
            k, which = place_of(other, units)
            level = breakpoints[which]
            z, change, slack = values[vertex, k] - level, abs(values[b, k] - values[a, k]), 2 * EPS * abs(level)
            error = rows[k] * sure + steep[0, k] * apart[0]
            side = 1 if z > 0 else -1
            if not abs(z) > error + (change + 2 * error) * slip + slack:
                count[OPEN] += 1
                if count[ASKED] < len(asked):
                    n = count[ASKED]  # one by one: a row at once takes numba as long to compile as all the rest
                    asked[n, 0], asked[n, 1], asked[n, 2], asked[n, 3] = vertex, other, root, line
                    asked[n, 4] = boundary
                    count[ASKED] += 1
                error = rows[k] * usual + steep[1, k] * apart[1]
                exact = settled_sign(questions.settled, root, line, boundary, other)
                if exact != 2 or not abs(z) > error + (change + 2 * error) * usual_slip + slack:
                    moved += z * z
                    side = exact if exact != 2 else 0
            if side > 0:
                over |= one
            elif side < 0:
                under |= one
        above[vertex, w], below[vertex, w] = over, under
    doubt[vertex, MOVED] = np.sqrt(moved)
    count[VERTICES] += 1
    return vertex


@njit(cache=True, nogil=True, **INSIDE)
def note_slope(a, b, on, boundary, length, vertices, rule, widest):
    """Note the error of a boundary's value at a vertex on it, and its slope between two on its sides."""
    values, doubt, law = vertices.values, vertices.doubt, rule.law
    unit, which = place_of(boundary, values.shape[1])
    level = rule.breakpoints[which]
    row = rule.rows[unit]
    for c in range(2):
        error = abs(values[on, unit] - level) + row * error_of(doubt, law, on, c)
        widest.errors[c] = max(widest.errors[c], error)
        slack = row * (error_of(doubt, law, a, c) + error_of(doubt, law, b, c)) + doubt[a, MOVED] + doubt[b, MOVED]
        widest.slopes[c] = max(widest.slopes[c], (abs(values[a, unit] - values[b, unit]) - slack) / length)


# planes


@njit(cache=True, nogil=True, **IN_PLACE)
def split_edge(h, vertex, mesh, count):
    """Put a vertex on the edge of h; returns the half-edge that starts at it on the side of h."""
    origin, after, before, face = mesh.origin, mesh.after, mesh.before, mesh.face
    one, n = np.uint64(1), np.uint64(2 * count[EDGES])
    m, twin = n + one, np.uint64(h) ^ one
    origin[n], origin[m], origin[twin] = vertex, origin[twin], vertex
    after[n], before[after[h]], after[h], before[n] = after[h], n, n, h
    before[m], after[before[twin]], after[m], before[twin] = before[twin], m, twin, m
    face[n], face[m] = face[h], face[twin]
    mesh.label[n >> one], mesh.rivals[n >> one] = mesh.label[h >> one], mesh.rivals[h >> one]
    mesh.rim[n >> one] = mesh.rim[h >> one]
    for c in range(2):
        mesh.apart[n >> one, c] = mesh.apart[h >> one, c]
    count[EDGES] += 1
    return n


@njit(cache=True, nogil=True, **INSIDE)
def split_cell(cell, p, q, made_by, mesh, count):
    """Join the starts of half-edges p and q of a cell by an edge; the part from p to q becomes a new cell."""
    origin, after, before, face, start = mesh.origin, mesh.after, mesh.before, mesh.face, mesh.start
    one, n, new = np.uint64(1), np.uint64(2 * count[EDGES]), np.uint64(count[CELLS])
    m = n + one
    origin[n], origin[m] = origin[p], origin[q]
    a, b = before[p], before[q]
    after[a], before[n], after[n], before[q] = n, a, q, n
    after[b], before[m], after[m], before[p] = m, b, p, m
    mesh.label[n >> one], mesh.rivals[n >> one], mesh.rim[n >> one] = made_by, -1, -1
    face[n], start[cell] = cell, n
    start[new], mesh.source[new] = m, cell
    h = m
    while True:
        face[h] = new
        h = after[h]
        if h == m:
            break
    count[EDGES] += 1
    count[CELLS] += 1
    return new


@njit(cache=True, nogil=True, **INSIDE)
def lowest_cut(cell, start, origin, after, above, below):
    """The lowest boundary that cuts a cell, or -1; and whether no other does."""
    boundary = -1
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
        mixed = over & under
        if mixed and boundary >= 0:
            return boundary, False
        if mixed:
            boundary = 64 * w + lowest_bit(mixed)
            if mixed & (mixed - np.uint64(1)):
                return boundary, False
    return boundary, True


@njit(cache=True, nogil=True)
def room_needed(start, origin, after, above, below):
    """At most how many vertices the cuts will add: c lines make at most c (c - 1) / 2 crossings in a cell."""
    crossings = 0
    start, origin, after = start.view(np.uint32), origin.view(np.uint32), after.view(np.uint32)
    for cell in range(len(start)):
        c = 0
        for w in range(above.shape[1]):
            over, under = np.uint64(0), np.uint64(0)
            h = start[cell]
            while True:
                v, u = origin[h], origin[h ^ np.uint32(1)]
                over |= above[v, w]
                under |= below[v, w]
                crossings += ones((above[v, w] & below[u, w]) | (below[v, w] & above[u, w]))
                h = after[h]
                if h == start[cell]:
                    break
            c += ones(over & under)
        crossings += c * (c - 1) // 2
    return crossings


@njit(cache=True, nogil=True, **INSIDE)
def _passage(h, side, boundary, origin, after, above, below):
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


@njit(cache=True, nogil=True, **INSIDE)
def distance(xy, a, b):
    return np.sqrt((xy[a, 0] - xy[b, 0]) ** 2 + (xy[a, 1] - xy[b, 1]) ** 2)


@njit(cache=True, nogil=True, **INSIDE)
def unsigned(mesh):
    """The same arrays; what indexes others, and is never negative, as unsigned numbers."""
    origin, after, before = mesh.origin.view(np.uint32), mesh.after.view(np.uint32), mesh.before.view(np.uint32)
    start = mesh.start.view(np.uint32)
    return Mesh(
        mesh.xy, origin, after, before, mesh.face, mesh.label, mesh.rivals, mesh.rim, mesh.apart, start, mesh.source
    )


@njit(cache=True, nogil=True, error_model="numpy")
def cut_cells(mesh, vertices, rule, questions, count, stack, roots, most):
    """Cut the cells that there were at the start, `roots`, along all boundaries of a site; can be called again."""
    mesh = unsigned(mesh)
    xy, origin, after, start = mesh.xy, mesh.origin, mesh.after, mesh.start
    above, below, doubt = vertices.above, vertices.below, vertices.doubt
    ends, widest = np.empty(2, np.uint64), Widest(np.empty(2), np.empty(2))
    most_vertices, most_edges, most_cells = min(len(xy), len(vertices.values)), len(mesh.label), len(start)
    while count[ROOT] < roots or count[STACKED] > 0:
        if count[STACKED] == 0:
            stack[0] = count[ROOT]
            count[STACKED] = 1
            count[ROOT] += 1
        room = min(most_vertices - count[VERTICES] - 2, most_edges - count[EDGES] - 3, most_cells - count[CELLS] - 1)
        if room < 0:
            return FULL
        cell = stack[count[STACKED] - 1]
        boundary, alone = lowest_cut(cell, start, origin, after, above, below)
        if boundary < 0:
            count[STACKED] -= 1
            continue
        if count[CELLS] >= most:
            return TOO_MANY
        h = start[cell]
        while sign(above, below, origin[h], boundary) <= 0:
            h = after[h]
        begin = h
        widest.errors[:], widest.slopes[:] = 0.0, 0.0
        for k in range(2):
            last, on, h = _passage(h, 1 - 2 * k, boundary, origin, after, above, below)
            a, b = origin[last if k == 0 else h], origin[h if k == 0 else last]  # the same seen from both sides
            length = distance(xy, a, b) + rule.law[DRIFT]
            if on < 0:
                e = last >> 1
                line = mesh.label[e] if mesh.rivals[e] < 0 else RIVALS - mesh.rivals[e]
                edge = Edge(a, b, line, length, mesh.apart[e])
                v = new_vertex(edge, boundary, count[ROOT] - 1, vertices, rule, questions, widest, count)
                for d in range(2):
                    xy[v, d] = xy[a, d] + vertices.weights[v] * (xy[b, d] - xy[a, d])
                on = split_edge(last, v, mesh, count)
            else:
                note_slope(a, b, origin[on], boundary, length, vertices, rule, widest)
            ends[k] = on
        while h != begin:
            if sign(above, below, origin[h], boundary) < 0:
                return TORN
            h = after[h]
        for c in range(2):
            farthest = max(doubt[origin[ends[0]], SHIFT + c], doubt[origin[ends[1]], SHIFT + c])
            near = widest.errors[c] / widest.slopes[c] if widest.slopes[c] > 0 else farthest
            mesh.apart[count[EDGES], c] = min(farthest, near)
        stack[count[STACKED]] = split_cell(cell, ends[0], ends[1], rule.labels[boundary], mesh, count)
        count[STACKED] += -1 if alone else 1  # what does not cut a cell cuts no part of it
    return DONE


@njit(cache=True, nogil=True)
def merge_cells(key, keys, mesh):
    """Join neighbouring cells with the same key: drops the edges between them and the vertices that become straight.

    Returns which vertices and edges stay, and a half-edge of every cell, in the numbering from before.
    """
    origin, after, before, face = mesh.origin, mesh.after, mesh.before, mesh.face
    label, apart = mesh.label, mesh.apart
    edges = len(label)
    stays = np.ones(edges, np.bool_)
    for e in range(edges):
        h, t = 2 * e, 2 * e + 1
        if face[h] < 0 or face[t] < 0 or key[face[h]] != key[face[t]]:
            continue
        a, b, c, d = before[h], after[h], before[t], after[t]
        after[a], before[d], after[c], before[b] = d, a, b, c
        stays[e] = False
    degree = np.zeros(len(mesh.xy), np.int32)
    for h in range(2 * edges):
        if stays[h >> 1]:
            degree[origin[h]] += 1
            face[h] = key[face[h]] if face[h] >= 0 else -1
    for h in range(2 * edges):
        p, v = before[h], origin[h]
        same = label[p >> 1] == label[h >> 1] and mesh.rim[p >> 1] == mesh.rim[h >> 1]
        if not stays[h >> 1] or degree[v] != 2 or p >> 1 == h >> 1 or not same:
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


# lines


@njit(cache=True, nogil=True, error_model="numpy")
def cut_pieces(chain, vertices, rule, questions, count, roots, most):
    """Cut the pieces that start at the first `roots` vertices along all boundaries of a site; can be called again."""
    place, stretch, after, above, below = chain.place, chain.stretch, chain.after, vertices.above, vertices.below
    room = min(len(place), len(vertices.values))
    apart, widest = np.zeros(2), Widest(np.zeros(2), np.zeros(2))
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
                if count[VERTICES] >= room:
                    return FULL
                if count[VERTICES] >= most:
                    return TOO_MANY
                length = stretch[root] * (place[b] - place[a] + rule.law[DRIFT])
                edge = Edge(a, b, -1, length, apart)
                v = new_vertex(edge, boundary, root, vertices, rule, questions, widest, count)
                place[v] = place[a] + vertices.weights[v] * (place[b] - place[a])
                chain.label[v], chain.source[v], stretch[v] = rule.labels[boundary], a, stretch[root]
                after[a], after[v] = v, b
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


# a closer look at vertices


@njit(cache=True, nogil=True)
def corner_sine(xy, v, a, b, drift):
    """The sine of a corner, at least; its coordinates may be off by the drift."""
    ax, ay, bx, by = xy[a, 0] - xy[v, 0], xy[a, 1] - xy[v, 1], xy[b, 0] - xy[v, 0], xy[b, 1] - xy[v, 1]
    first, second = np.sqrt(ax * ax + ay * ay) + drift, np.sqrt(bx * bx + by * by) + drift
    if first == 0 or second == 0:  # rounding has made two vertices one
        return -1.0
    return (abs(ax * by - ay * bx) - 2 * drift * (first + second)) / (first * second)


@njit(cache=True, nogil=True)
def sharpest(places, outgoing, mesh):
    """The half-edge at each vertex, of those that begin there, that makes the sharpest corner with the one before."""
    origin, before = mesh.origin, mesh.before
    found = np.full(len(places), -1)
    for n in range(len(places)):
        v = places[n]
        h, best = outgoing[v], -np.inf
        while True:
            if mesh.face[h] >= 0:
                turn = corner_sine(mesh.xy, v, origin[h ^ 1], origin[before[h]], 0.0)
                if turn > best:
                    best, found[n] = turn, h
            h = before[h] ^ 1
            if h == outgoing[v]:
                break
    return found


@njit(cache=True, nogil=True)
def slope_along(a, v, unit, length, vertices, rule):
    """At most how steep a unit is between two vertices."""
    values, doubt, law = vertices.values, vertices.doubt, rule.law
    error = rule.rows[unit] * (error_of(doubt, law, a, 0) + error_of(doubt, law, v, 0))
    error += doubt[a, MOVED] + doubt[v, MOVED]
    return (abs(values[a, unit] - values[v, unit]) + error) / length if length > 0 else np.inf


@njit(cache=True, nogil=True)
def bound_at(v, unit, slope, doubt, rule):
    """The bound on the error of a unit at a vertex around which it has this slope."""
    shifted = slope * doubt[v, SHIFT] if doubt[v, SHIFT] > 0 else 0.0
    return rule.rows[unit] * error_of(doubt, rule.law, v, 0) + shifted


@njit(cache=True, nogil=True)
def local_bounds(places, units, outgoing, mesh, vertices, rule):
    """Bounds on the errors of units at vertices, with the steepest slope that they have in a cell there."""
    xy, origin, before, drift = mesh.xy, mesh.origin, mesh.before, rule.law[DRIFT]
    bounds = np.empty(len(places))
    for n in range(len(places)):
        v, unit = places[n], units[n]
        h, slope = outgoing[v], 0.0
        while True:
            if mesh.face[h] >= 0:
                a, b = origin[h ^ 1], origin[before[h]]
                turn, both = corner_sine(xy, v, a, b, drift), 0.0
                for end in (a, b):
                    both += slope_along(end, v, unit, distance(xy, end, v) - drift, vertices, rule)
                slope = max(slope, both / turn) if turn > 0 else np.inf
            h = before[h] ^ 1
            if h == outgoing[v]:
                break
        bounds[n] = bound_at(v, unit, slope, vertices.doubt, rule)
    return bounds


@njit(cache=True, nogil=True)
def local_bounds_along(places, units, preceding, following, chain, vertices, rule):
    """The same along curves."""
    bounds = np.empty(len(places))
    for n in range(len(places)):
        v, unit, slope = places[n], units[n], 0.0
        for a, piece in ((preceding[n], preceding[n]), (following[n], v)):
            if a != v:
                length = chain.stretch[piece] * (abs(chain.place[a] - chain.place[v]) - rule.law[DRIFT])
                slope = max(slope, slope_along(a, v, unit, length, vertices, rule))
        bounds[n] = bound_at(v, unit, slope, vertices.doubt, rule)
    return bounds
