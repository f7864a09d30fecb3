"""Every tolerance of the geometry, and how signs are decided; `kernels` do it.

A vertex is *above* a boundary, *below* it, or *on* it. Every value comes with a bound on its error (see `rounding`): a
proof, and what is usual. A value farther from the breakpoint than the proof has the sign that it seems to have. Any
other is *open*: it is taken for on if it is within the usual error, for what it seems to be otherwise, and then settled
in exact arithmetic where that can be done (see `settling`). A boundary cuts a cell only if some vertex is above and
some below. So coincident boundaries, boundaries through a vertex or along an edge and units that are zero on a whole
cell cut nothing twice and leave no slivers.

What is known of the errors at a vertex is a row of numbers, its *doubt*. A vertex is where two lines meet; what is
computed is the point that divides an edge in a rounded proportion. ERROR bounds the error of the state at that point,
SHIFT how far the point is from the true vertex; both as proof and usual. NORM is the norm of the state, VALUE that of
the pre-activations, MOVED of those that count as zero. TURNS counts interpolations since the site was evaluated, each
of which rounds once more.
"""

import numpy as np

from regionscope.types import Floats

EPS = float(np.finfo(np.float64).eps)
SAFETY = 32.0  # usual errors are at most so many roundings of what each operation adds up
ROUNDING = 256 * EPS  # of the largest output: outputs that differ by less tie
UNKNOWN_SHARE = 256 * EPS  # the usual error after an operation without a rule, of the norm of the pre-activations
INTERPOLATION = 4 * EPS  # the rounding of a + t (b - a), of the larger of the two
SAME_MAP = 1e-8  # affine maps that differ by less than this share of their size are one function
RESOLVED = 64  # roundings of a point: a radius of fewer is lost in them
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
# places in the law of a site; the first three have two; coordinates are rounded by DRIFT at most; errors that were made
# before count as no more than CARRIED, which is infinite if nothing is known but norms
GAIN, NOISE, FLOOR, SIZE, OFFSET, DRIFT, CARRIED = 0, 2, 4, 6, 7, 8, 9
MOST_TURNS = 4096  # no coordinates come from more interpolations


def rounding_bound(values: Floats) -> float:
    """How far from zero a value may be by rounding alone, as a share of the largest."""
    return ROUNDING * float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def words(bits: int) -> int:
    """How many 64-bit words hold so many bits."""
    return -(-bits // 64)
