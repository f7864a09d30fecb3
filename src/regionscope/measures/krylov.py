"""How many singular values of a large Jacobian are at least eps, from a few products with it and its transpose.

Lanczos' method from a random unit vector v of the smaller side, of dimension D, finds in k products with A = J J^T or
J^T J a tridiagonal k x k matrix. Its eigenvalues, the nodes, and the squares of the first entries of its eigenvectors,
the weights, are the Gauss quadrature of how v is spread over the eigenvalues of A (Golub and Meurant 2010). A generic v
is spread evenly, so D times the weight of the nodes above eps^2 is on average their number (Ubaru and Saad 2016, Ubaru,
Chen and Saad 2017): its variance for a number c is 2 c (D - c) / (D + 2), which is little where c is near D, as ranks
of early layers are, and where a range of c dimensions could not be found with fewer than c products (Halko, Martinsson
and Tropp 2011). If c is small, the nodes above eps^2 are the eigenvalues themselves (Musco and Musco 2015) and are
counted, equal ones as one. What k products do not tell, as eps far below most of the spectrum may be, is in the error.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd import grad

BREAKDOWN = 1e-6  # a new direction shorter than this share of its image is rounding: the space is whole
DOUBT = 3.0  # standard errors between the two answers beyond which nodes are not counted one by one
ROUNDING = 1e-13  # squares of singular values below this share of the largest are none


@dataclass(frozen=True)
class _Count:
    """How many singular values are at least eps at each point, (n,), and two standard errors, 0 if they are counted.

    `spread` is that of the vector that was drawn, `resolution` that of what so few products cannot tell: as spectra are
    alike at all points, it may be on one side at all of them.
    """

    number: Tensor
    spread: Tensor
    resolution: Tensor


class Jacobian:
    """The Jacobian of some values at points x (n, ...), as its products with vectors, by reverse mode only.

    J^T u is linear in u, so that its derivative by u along v is J v.
    """

    def __init__(self, x: Tensor, values: list[Tensor]) -> None:
        self.x, self.values = x, values
        self.rows = [torch.zeros_like(value, requires_grad=True) for value in values]
        (self.back,) = grad(values, x, self.rows, create_graph=True)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix at one point."""
        return sum(value[0].numel() for value in self.values), self.x[0].numel()

    def times(self, vectors: Tensor) -> Tensor:
        """J v of vectors (n, d): (n, m)."""
        found = grad(self.back, self.rows, vectors.view_as(self.x), retain_graph=True, materialize_grads=True)
        return torch.cat([part.flatten(1) for part in found], dim=1)

    def transposed_times(self, vectors: Tensor) -> Tensor:
        """J^T u of vectors (n, m): (n, d)."""
        parts = vectors.split([value[0].numel() for value in self.values], dim=1)
        rows = [part.reshape(value.shape) for part, value in zip(parts, self.values, strict=True)]
        (found,) = grad(self.values, self.x, rows, retain_graph=True, materialize_grads=True)
        return found.flatten(1)


def counted_singular_values(jacobian: Jacobian, start: Tensor, eps: float, relative: bool, directions: int) -> _Count:
    """How many singular values are at least eps, from so many products. `start` (n, D) are normal numbers."""
    m, d = jacobian.shape
    size = min(m, d)
    if size <= directions:  # as many products give all of them
        squares = torch.linalg.eigvalsh(_square(jacobian, start, wide=m < d)).clamp_min(0)
        number = (squares >= _least(squares, eps, relative)).sum(dim=1).double()
        return _Count(number, torch.zeros_like(number), torch.zeros_like(number))
    nodes, weights, blur = _quadrature(jacobian, start, directions, wide=m < d)
    least = _least(nodes, eps, relative)
    # an eigenvalue lies within the blur of its node; half of it, on average
    share = ((nodes + blur / 2 - least) / blur.clamp_min(torch.finfo(nodes.dtype).tiny)).clamp(0, 1)
    number = size * (weights * share).sum(dim=1)
    open_ = size * (weights * ((nodes - least).abs() <= blur)).sum(dim=1)  # about which the nodes do not tell
    one_by_one = (nodes >= least).sum(dim=1)
    few = (one_by_one <= directions // 2) & (open_ == 0)
    few &= (number - one_by_one).abs() <= DOUBT * torch.maximum(
        _count_deviation(number, size), _count_deviation(one_by_one, size)
    )
    spread, resolution = (torch.where(few, 0.0, e) for e in (_count_deviation(number, size), open_ / math.sqrt(12)))
    return _Count(torch.where(few, one_by_one, number), spread, resolution)


def _least(squares: Tensor, eps: float, relative: bool) -> Tensor:
    """The least square of a singular value that counts, (n, 1); none that is rounding does."""
    largest = squares[:, -1:]
    least = eps**2 * (largest if relative else torch.ones_like(largest))
    return least.clamp_min(ROUNDING * largest).clamp_min(torch.finfo(squares.dtype).tiny)


def _count_deviation(number: Tensor, size: int) -> Tensor:
    """The standard deviation of a number of `size` eigenvalues that is told from a random vector."""
    return (2 * number * (size - number).clamp_min(0) / (size + 2)).sqrt()


def _square(jacobian: Jacobian, like: Tensor, wide: bool) -> Tensor:
    """J J^T, if it is wide, or J^T J, column by column, (n, D, D) in float64."""
    columns = []
    for unit in torch.eye(like.shape[1], dtype=like.dtype, device=like.device):
        v = unit.expand_as(like)
        columns.append(_image(jacobian, v, wide))
    return torch.stack(columns, dim=2).double()


def _image(jacobian: Jacobian, v: Tensor, wide: bool) -> Tensor:
    """J J^T v, if it is wide, or J^T J v."""
    return jacobian.times(jacobian.transposed_times(v)) if wide else jacobian.transposed_times(jacobian.times(v))


def _quadrature(jacobian: Jacobian, start: Tensor, steps: int, wide: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The nodes, their weights and how far each may be from an eigenvalue, (n, steps) each, in float64."""
    basis = [start / start.norm(dim=1, keepdim=True)]
    diagonal, beside = [], []
    for _ in range(steps):
        v = basis[-1]
        w = _image(jacobian, v, wide)
        diagonal.append((v * w).sum(dim=1))
        whole = w.norm(dim=1)
        known = torch.stack(basis, dim=1)  # (n, so far, D)
        for _ in range(2):  # once leaves rounding
            w = w - ((known @ w[:, :, None]).mT @ known)[:, 0]
        length = w.norm(dim=1)
        ended = length <= BREAKDOWN * whole
        beside.append(torch.where(ended, 0.0, length))
        basis.append(torch.where(ended[:, None], 0.0, w / torch.where(ended, 1.0, length)[:, None]))
    a, b = torch.stack(diagonal, dim=1).double(), torch.stack(beside, dim=1).double()
    tridiagonal = torch.diag_embed(a) + torch.diag_embed(b[:, :-1], 1) + torch.diag_embed(b[:, :-1], -1)
    nodes, vectors = torch.linalg.eigh(tridiagonal)
    return nodes, vectors[:, 0].square(), b[:, -1:] * vectors[:, -1].abs()
