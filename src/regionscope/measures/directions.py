"""Which directions of the input to differentiate along, for all measures that need gradients.

An orthonormal basis of all that the first layer looks at gives every gradient norm and all singular values exactly
(J J^T = (J Q)(J Q)^T), with as few directions as the first layer has units, or as are open: Gram matrices of later
layers are never formed, their square roots are. The unit vectors give the Jacobians themselves. Random directions
u ~ N(0, I) give unbiased estimates for networks whose Jacobians do not fit: the derivative along u is N(0, |grad|^2).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regionscope.measures.draws import Draws
from regionscope.tracing.network import Network
from regionscope.tracing.operations import bend
from regionscope.tracing.program import Program

METHODS = ("auto", "gram", "jacobian", "random")
MOST_DIRECTIONS = 1024  # beyond, "auto" takes random ones
MOST_UNIT_VECTORS = 1 << 14  # beyond, their matrix is not made


@dataclass(frozen=True)
class Directions:
    """Directions (r, d) shared by all points. If they are not `exact`, r are drawn anew for every point.

    Only the part of a direction that the first layer sees matters: random ones are drawn as coordinates in its `basis`
    (k, d), orthonormal rows, if there is one; `vectors` (r, k) then only say how many. Unit vectors that are too many
    at once come in `chunks`: until then there are none.
    """

    vectors: Tensor
    exact: bool
    method: str
    basis: Tensor | None = None

    @property
    def options(self) -> dict[str, Any]:
        """With which a measure takes these: the method, and how many are drawn if they are."""
        return {"method": self.method} if self.exact else {"method": self.method, "directions": len(self.vectors)}

    def chunks(self) -> Iterator["Directions"]:
        """The unit vectors, so many at a time that a tangent of one point fits, made when it is their turn.

        They lie where those before them lay, unless a graph may keep those.
        """
        d, unit = self.vectors.shape[1], self.vectors.new_empty(0)
        for start in range(0, d, MOST_DIRECTIONS):
            if start == 0 or torch.is_grad_enabled():
                unit = self.vectors.new_zeros(min(MOST_DIRECTIONS, d), d)
            else:
                unit[:, start - MOST_DIRECTIONS : start].fill_diagonal_(0.0)
            unit[:, start : start + MOST_DIRECTIONS].fill_diagonal_(1.0)
            yield replace(self, vectors=unit[: d - start])

    def drawn(self, x: Tensor, key: tuple[int, ...], numbers: Draws) -> Tensor:
        """Random ones for each of the points x: (n, r, d), or (n, r, k) in the basis."""
        return numbers.normal(key, x, *self.vectors.shape)

    def norms(self, tangents: Tensor) -> Tensor:
        """Gradient norms (n, units) from tangents (r, n, units); unbiased if the directions are random.

        The root mean square of r normal numbers is on average short by a known factor.
        """
        if tangents.shape[1] > 1 and tangents.stride(1) == 0:  # the same for all points
            return self.norms(tangents[:, :1]).expand(tangents.shape[1], -1)
        if tangents.requires_grad or tangents.stride(0) == 1:  # whose derivative at zero is zero
            norms: Tensor = torch.linalg.vector_norm(tangents, dim=0)
        else:  # the same several times faster
            norms = (tangents * tangents).sum(dim=0).sqrt()
        if self.exact:
            return norms
        r = len(self.vectors)
        short = math.sqrt(2 / r) * math.exp(math.lgamma((r + 1) / 2) - math.lgamma(r / 2))
        return norms / (math.sqrt(r) * short)


def chosen_directions(net: Network, method: str = "auto", number: int = 32) -> Directions:
    """The directions to differentiate along; "auto" takes the fewest that are exact, or random ones if too many."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if number < 1:
        raise ValueError(f"directions must be at least 1, got {number}")
    d, seen = math.prod(net.input_shape), affine_width(net)
    empty = torch.empty(0, d, dtype=net.dtype, device=net.device)
    if (method == "auto" and min(seen, d) > MOST_DIRECTIONS) or method == "random":
        basis = row_space(net) if seen < min(d, MOST_DIRECTIONS) else None
        return Directions(empty.new_empty(number, d if basis is None else len(basis)), False, "random", basis)
    if method == "gram" or (method == "auto" and seen < d):
        return Directions(row_space(net) if seen < d else _identity(empty), True, "gram")
    return Directions(_identity(empty), True, "jacobian")


def exact_directions(net: Network) -> Directions:
    """As few directions as give all gradient norms exactly, however many; perhaps to be taken in `chunks`."""
    d, seen = math.prod(net.input_shape), affine_width(net)
    if seen < d and seen <= MOST_DIRECTIONS:
        return Directions(row_space(net), True, "gram")
    return unit_directions(net)


def unit_directions(net: Network) -> Directions:
    """The unit vectors: all of them, or none if there are so many that they come in `chunks`."""
    empty = torch.empty(0, math.prod(net.input_shape), dtype=net.dtype, device=net.device)
    return Directions(_identity(empty) if empty.shape[1] <= MOST_DIRECTIONS else empty, True, "jacobian")


def _identity(empty: Tensor) -> Tensor:
    d = empty.shape[1]
    if d > MOST_UNIT_VECTORS:
        raise ValueError(
            f"an input with {d:,} entries is too large for all its directions at once; say method='random' for random"
            " ones where the measure takes them, or look at a part of the input"
        )
    return torch.eye(d, dtype=empty.dtype, device=empty.device)


def tangent_floats(net: Network, along: Directions) -> int:
    """How many floats the largest tangent of one point has."""
    widest = max((site.units for site in net.sites), default=1)
    return (len(along.vectors) or MOST_DIRECTIONS) * max(widest, 1)


def affine_part_and_rest(net: Network) -> tuple[Program, Program]:
    """What happens while the network is affine, with outputs that are all that the rest depends on; and the rest."""
    program = net.program.pruned([*net.entries, net.output])
    first, rest = program.segments([bend(program, set(net.exits))])
    return first, rest


def affine_width(net: Network) -> int:
    """How many affine functions of the input all the rest depends on."""
    part, _ = affine_part_and_rest(net)
    return sum(math.prod(part.shapes[value]) for value in part.outputs)


@torch.no_grad()
def row_space(net: Network) -> Tensor:
    """Orthonormal rows that span the gradients of all that the rest of the network depends on, by reverse mode."""
    part, _ = affine_part_and_rest(net)
    x = torch.zeros(1, *net.input_shape, dtype=net.dtype, device=net.device)
    with torch.enable_grad():
        x.requires_grad_()
        outputs = torch.cat([out.flatten() for out in part.run(x)])
    units = torch.eye(len(outputs), dtype=net.dtype, device=net.device).split(256)
    rows = [torch.autograd.grad(outputs, x, some, retain_graph=True, is_grads_batched=True)[0] for some in units]
    basis: Tensor = torch.linalg.qr(torch.cat(rows).flatten(1).T).Q
    return basis.T.contiguous()
