"""Tangents of a value along many directions, and what a dense layer makes of them.

About half the units behind a ReLU are closed at a point: a dense layer takes the tangents and weights of the open ones
only. If all else follows from those k open units, and only lengths and angles matter, k directions are enough: the rows
of a square root of their k x k Gram matrix have the lengths and angles of their gradients.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding, pad

from regionscope.compiling import njit

MOSTLY_OPEN = 0.8  # with more open units than this share, picking them is not worth it
FEW = 64  # nor with fewer directions than this
INDEPENDENT = 1e-9  # the least eigenvalue of the correlations of units for which a root is found without trouble


@dataclass(frozen=True)
class Tangent:
    """The tangents of a value along r directions: `every` (r, n, units), or (r, 1, units) if all points have the same.

    Behind a ReLU they are zero but where `open` (n, units) says, whatever stands there. With `gram`, the scalar
    products (units, units) of tangents that all points share, `times` may take other directions at every point.
    """

    every: Tensor
    open: Tensor | None = None
    gram: Tensor | None = None

    @property
    def rows(self) -> Tensor:
        """With the zeros written out."""
        return self.every if self.open is None else self.every * self.open.to(self.every.dtype)

    def times(self, weight: Tensor) -> Tensor:
        """The rows times a matrix (units, out); of closed units neither the tangents nor the weights are touched."""
        counts = None if self.open is None or len(self.every) < FEW else self.open.sum(dim=1)
        if counts is None or (most := max(1, int(counts.max()))) > MOSTLY_OPEN * len(weight):
            return self.rows @ weight
        is_open, unit = self.open.to(torch.uint8).sort(dim=1, descending=True)  # type: ignore[union-attr]
        is_open, unit = is_open[:, :most], unit[:, :most]  # (n, most): the open units first
        if self.gram is not None:  # the tangents of the other units are zero
            weights = embedding(unit, weight.contiguous())
            return torch.bmm(weights.mT, roots(self.gram, unit, counts).mT).permute(2, 0, 1)
        weights = embedding(torch.where(is_open > 0, unit, len(weight)), pad(weight, (0, 0, 0, 1)))  # (n, most, out)
        by_unit = self.every.permute(1, 2, 0).flatten(0, 1).contiguous()  # (n * units, r), or (units, r)
        if self.every.shape[1] > 1:
            unit = unit + torch.arange(len(unit), device=unit.device)[:, None] * len(weight)
        return torch.bmm(weights.mT, embedding(unit, by_unit)).permute(2, 0, 1)


def gram_of(rows: Tensor) -> Tensor | None:
    """The scalar products of the columns of (r, units) in double precision, if any choice of them has a root.

    That is when all of them together are independent, by far more than the rounding of double precision. A root has
    then the precision of `rows` if that is single.
    """
    if rows.dtype != torch.float32 or rows.device.type != "cpu" or rows.requires_grad:
        return None
    gram = rows.T.double() @ rows.double()
    lengths = gram.diag().sqrt()
    correlations = gram / torch.outer(lengths, lengths) - INDEPENDENT * torch.eye(len(gram), dtype=gram.dtype)
    return None if torch.linalg.cholesky_ex(correlations).info else gram


def roots(gram: Tensor, chosen: Tensor, counts: Tensor) -> Tensor:
    """U (n, r, most), upper triangular, with U^T U = the Gram matrix of the first `counts` of the `chosen` units.

    There are `most` rows, filled up with zeros to a multiple of eight: matrix products are faster.
    """
    n, most = chosen.shape
    found = torch.empty(n, -(-most // 8) * 8, most)
    # a few points at a time: done before other threads have begun
    _fill_roots(gram.numpy(), *(a.numpy() for a in (chosen.contiguous(), counts, found)))
    return found


@njit(cache=True, nogil=True, fastmath={"contract"})
def _fill_roots(gram, chosen, counts, found):
    """Cholesky's method, four rows at a time, on matrices filled up to a multiple of four.

    LAPACK's is meant for one large matrix: on many small ones, of a hundred rows, it takes longer.
    """
    for p in range(len(chosen)):
        units = chosen[p, : counts[p]]
        size = -(-len(units) // 4) * 4
        a = np.eye(size)
        flat = a.ravel()
        for i in range(len(units)):
            scalar, row, others = gram[units[i]], a[i, i:], units[i:]
            for j in range(len(others)):
                row[j] = scalar[others[j]]
        for k in range(0, size, 4):
            for i in range(k, k + 4):
                for q in range(k, i):
                    _take_off(flat, i * size + i, a[q, i], q * size + i, size - i)
                row = a[i, i:]
                row *= 1 / np.sqrt(row[0])
            for i in range(k + 4, size, 2):
                c = a[k, i], a[k + 1, i], a[k + 2, i], a[k + 3, i]
                d = a[k, i + 1], a[k + 1, i + 1], a[k + 2, i + 1], a[k + 3, i + 1]
                _take_four_off(flat, i * size + i, c, d, k * size + i, size, size - i)
        found[p] = 0
        for i in range(len(units)):
            for j in range(i, len(units)):
                found[p, i, j] = a[i, j]


# In the flat array, at unsigned places: views of rows and a look at each sign would cost more than the sums.


@njit(cache=True, nogil=True, fastmath={"contract"})
def _take_off(a, row, c, other, length):
    x, u = np.uint64(row), np.uint64(other)
    for j in range(np.uint64(length)):
        a[x + j] -= c * a[u + j]


@njit(cache=True, nogil=True, fastmath={"contract"})
def _take_four_off(a, row, c, d, other, size, length):
    """Take c times four rows off a row, and d times them off the next one: what is loaded is used twice."""
    c0, c1, c2, c3 = c
    d0, d1, d2, d3 = d
    x, y = np.uint64(row), np.uint64(row + size)
    u0, u1, u2, u3 = np.uint64(other), np.uint64(other + size), np.uint64(other + 2 * size), np.uint64(other + 3 * size)
    for j in range(np.uint64(length)):
        v0, v1, v2, v3 = a[u0 + j], a[u1 + j], a[u2 + j], a[u3 + j]
        a[x + j] -= (c0 * v0 + c1 * v1) + (c2 * v2 + c3 * v3)
        a[y + j] -= (d0 * v0 + d1 * v1) + (d2 * v2 + d3 * v3)
