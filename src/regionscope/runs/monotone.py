"""The best fit to a curve of pieces that fall and rise by turns."""

import numpy as np
import scipy

from regionscope.compiling import njit
from regionscope.types import Floats, Indices


@njit(cache=True, nogil=True)
def segmentations(  # pragma: no cover
    curves: Floats, weight: Floats, price: float, most: int
) -> tuple[Indices, Indices]:
    """Of each curve: the sign of its first piece (0: constant) and where the later pieces start (0: no piece)."""
    count, n = curves.shape
    first, cuts = np.zeros(count, np.int64), np.zeros((count, most - 1), np.int64)
    for c in range(count):
        y = curves[c]
        cost = _costs(y, weight)
        best = np.full((most + 1, 2, n), np.inf)  # of k pieces that end at j, the last one falling or rising
        start = np.zeros((most + 1, 2, n), np.int64)
        best[1] = cost[:, 0]
        least = (weight * (y - (weight * y).sum() / weight.sum()) ** 2).sum()
        pieces, kind = 0, 0
        for k in range(1, most + 1):
            for rising in range(2):
                for j in range(k - 1, n) if k > 1 else range(0):
                    for i in range(k - 1, j + 1):
                        total = best[k - 1, 1 - rising, i - 1] + cost[rising, i, j]
                        if total < best[k, rising, j]:
                            best[k, rising, j], start[k, rising, j] = total, i
                if best[k, rising, n - 1] + k * price < least:
                    least, pieces, kind = best[k, rising, n - 1] + k * price, k, rising
        end = n - 1
        for k in range(pieces, 1, -1):
            cuts[c, k - 2] = start[k, kind, end]
            end, kind = start[k, kind, end] - 1, 1 - kind
        first[c] = (2 * kind - 1) if pieces else 0
    return first, cuts


@njit(cache=True, nogil=True)
def _costs(y: Floats, weight: Floats) -> Floats:  # pragma: no cover
    """Weighted squares that the best falling (0) and rising (1) fits to y[i..j] leave: (2, n, n).

    From each i, values join one by one; blocks of equal fit that are out of order are pooled.
    """
    n = len(y)
    cost = np.zeros((2, n, n))
    mean, mass, total = np.empty(n), np.empty(n), np.zeros(n + 1)  # of blocks; total[b] is left by those before b
    for rising in range(2):
        sign = 2 * rising - 1
        for i in range(n):
            blocks = 0
            for j in range(i, n):
                m, w, left = sign * y[j], weight[j], 0.0
                while blocks and mean[blocks - 1] >= m:
                    blocks -= 1
                    both = mass[blocks] + w
                    left += total[blocks + 1] - total[blocks] + mass[blocks] * w / both * (mean[blocks] - m) ** 2
                    m, w = (mass[blocks] * mean[blocks] + w * m) / both, both
                mean[blocks], mass[blocks], total[blocks + 1] = m, w, total[blocks] + left
                blocks += 1
                cost[rising, i, j] = total[blocks]
    return cost


def signs_and_cuts(first: Indices, cuts: Indices) -> tuple[Indices, Indices]:
    """The signs of the pieces of one curve, and where the later ones start."""
    inner = cuts[0][cuts[0] > 0]
    return first[0] * (-1) ** np.arange(np.count_nonzero(first) + len(inner)), inner


def fit(y: Floats, weight: Floats, signs: Indices, cuts: Indices) -> Floats:
    """The monotone regressions of the pieces, end to end; the mean if there are none."""
    if not len(signs):
        return np.full_like(y, np.average(y, weights=weight))
    parts = zip(signs, np.split(y, cuts), np.split(weight, cuts), strict=True)
    return np.concatenate(
        [scipy.optimize.isotonic_regression(part, weights=w, increasing=bool(s > 0)).x for s, part, w in parts]
    )


def turns(y: Floats, signs: Indices, cuts: Indices) -> Indices:
    """Where pieces start and end: at the more extreme one of the last value of a piece and the first of the next."""
    cuts, rows = cuts[:, : max(0, len(signs) - 1)], np.arange(len(y))[:, None]
    later = signs[: cuts.shape[1]] * (y[rows, cuts] - y[rows, cuts - 1]) > 0
    return np.pad(cuts - 1 + later, ((0, 0), (1, 1)), constant_values=((0, 0), (0, y.shape[1] - 1)))
