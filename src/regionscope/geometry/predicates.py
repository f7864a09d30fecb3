"""Every tolerance and every sign decision of the geometry.

A vertex is *above* a boundary, *below* it, or *on* it. Every value comes with a bound on its error (see `rounding`): a
proof, and what is usual. A value farther from the breakpoint than the proof has the sign that it seems to have. Any
other is *open*: it is taken for on if it is within the usual error, for what it seems to be otherwise, and then settled
in exact arithmetic where that can be done (see `exactness`). A boundary cuts a cell only if some vertex is above and
some below. So coincident boundaries, boundaries through a vertex or along an edge and units that are zero on a whole
cell cut nothing twice and leave no slivers.

What is known of the errors at a vertex is a row of numbers, its *doubt*. A vertex is where two lines meet; what is
computed is the point that divides an edge in a rounded proportion. ERROR bounds the error of the state at that point,
SHIFT how far the point is from the true vertex; both as proof and usual. NORM is the norm of the state, VALUE that of
the pre-activations, MOVED of those that count as zero. TURNS counts interpolations since the site was evaluated, each
of which rounds once more.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
import numpy as np
from numba import njit

from regionscope.types import Floats

EPS = float(np.finfo(np.float64).eps)
SAFETY = 32.0  # usual errors are at most so many roundings of what each operation adds up
ROUNDING = 256 * EPS  # of the largest output: outputs that differ by less tie
UNKNOWN_SHARE = 256 * EPS  # the usual error after an operation without a rule, of the norm of the pre-activations
INTERPOLATION = 4 * EPS  # the rounding of a + t (b - a), of the larger of the two
SAME_MAP = 1e-8  # affine maps that differ by less than this share of their size are one function
COLLINEAR = 1e-10  # three points whose triangle is flatter than this share of its longest side span no plane
ORTHONORMAL = 1e-9
FRAME = 1e-5  # the same for directions of neighbourhoods, which may come in float32
MISPLACED = 1e-5  # a vertex that may be farther from its true place than this share of the domain is placed exactly
FAINT = 1e-150  # more than numbers can lose that are too small for a float64, or for the square of one
FAINT_ROW = 1e-100  # no row that is not zero counts for less, so that its product with that is a number
CONVEX = 1e-12  # a corner that turns inward by no more than this share of the domain's size is straight

# columns of doubt; ERROR and SHIFT have two, proof and usual
ERROR, SHIFT, NORM, VALUE, MOVED, TURNS = 0, 2, 4, 5, 6, 7
DOUBTS = 8
# places in the law of a site; the first four have two; coordinates are rounded by DRIFT at most
GAIN, NOISE, FLOOR, SLOPE, SIZE, OFFSET, DRIFT = 0, 2, 4, 6, 8, 9, 10
LAWS = 11
MOST_TURNS = 4096  # no coordinates come from more interpolations


def rounding_bound(values: Floats) -> float:
    """How far from zero a value may be by rounding alone, as a share of the largest."""
    return ROUNDING * float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def words(bits: int) -> int:
    """How many 64-bit words hold so many bits."""
    return -(-bits // 64)


# Not parallel=True, here and anywhere: numba would start threads of its own, which may spin for ever when the process
# exits (TBB), end a process that was forked (OpenMP) or that calls from two threads (workqueue), and change torch's
# number of threads. Without branches these loops are faster on one core than they were with branches on two.


@njit(cache=True, nogil=True)
def computed(doubt, law, v, c):
    """How far a unit's value at a vertex may be from the true one at the computed point, for each of its `rows`."""
    turns, norm = doubt[v, TURNS], doubt[v, NORM]
    interpolated = INTERPOLATION * turns * (law[SIZE] * norm + law[OFFSET])
    faint = FAINT if norm > 0 else 0.0
    return law[GAIN + c] * doubt[v, ERROR + c] + law[NOISE + c] * norm + law[FLOOR + c] + interpolated + faint


@njit(cache=True, nogil=True)
def classify(values, breakpoints, rows, law, doubt, ties, above, below, opened):
    """Set the bits of the boundaries that each row is above and below; boundary t * units + i is unit i's t-th.

    `ties` are known to be on, if there are any. Counts in `opened` the signs at each vertex that are not proved, and
    notes norms in `doubt`.
    """
    vertices, units = values.shape
    for v in range(vertices):
        sure = computed(doubt, law, v, 0) + law[GAIN] * law[SLOPE] * doubt[v, SHIFT]
        usual = computed(doubt, law, v, 1) + law[GAIN + 1] * law[SLOPE + 1] * doubt[v, SHIFT + 1]
        squares, moved, unproved = 0.0, 0.0, 0
        for i in range(units):
            squares += values[v, i] * values[v, i]
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
                z, error = values[v, first + j] - level, rows[first + j] * sure + slack
                over |= np.int64(z > error) << (shift + j)
                under |= np.int64(z < -error) << (shift + j)
            known = np.int64(ties[v, bit >> 6]) if len(ties) else np.int64(0)
            over, under = over & ~known, under & ~known
            rest = ((np.int64(1) << run) - 1 if run < 64 else np.int64(-1)) & ~((over | under | known) >> shift)
            for j in range(run if rest else 0):
                z, row = values[v, first + j] - level, rows[first + j]
                if not (rest >> j) & 1 or (z == 0 and row * sure + slack == 0):
                    continue
                unproved += 1
                over |= np.int64(z > row * usual + slack) << (shift + j)
                under |= np.int64(z < -(row * usual + slack)) << (shift + j)
                moved += z * z if abs(z) <= row * usual + slack else 0.0
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
def hand_on(doubt, law, result):
    """What is known of the errors of all that goes on from a site, given the law of the state; its norm apart."""
    for v in range(len(doubt)):
        for c in range(2):
            result[v, ERROR + c] = computed(doubt, law, v, c) + 2 * doubt[v, MOVED]
            result[v, SHIFT + c] = doubt[v, SHIFT + c]
        result[v, NORM] = result[v, MOVED] = result[v, TURNS] = result[v, VALUE] = 0.0


@njit(cache=True, nogil=True)
def open_signs(values, breakpoints, rows, law, doubt, ties, opened, limit):
    """The vertices and boundaries whose signs are not proved, (n, 2), the first `limit` of them."""
    found, n = np.empty((min(limit, opened.sum()), 2), np.int64), 0
    units = values.shape[1]
    for v in np.flatnonzero(opened):
        sure = computed(doubt, law, v, 0) + law[GAIN] * law[SLOPE] * doubt[v, SHIFT]
        for t in range(len(breakpoints)):
            slack = 2 * EPS * abs(breakpoints[t])
            for i in range(units):
                z, error = values[v, i] - breakpoints[t], rows[i] * sure + slack
                bit = t * units + i
                if len(ties) and (ties[v, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1):
                    continue
                if not (z > error or z < -error or (z == 0 and error == 0)) and n < len(found):
                    found[n, 0], found[n, 1] = v, t * units + i
                    n += 1
    return found[:n]
