"""A network as a chain of affine maps with an activation of each unit between them, and the norms of those maps."""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from regionscope.tracing.network import Network, Site, as_rows
from regionscope.tracing.program import Program

ENTRIES = 1 << 24  # a larger matrix is not kept
EXACT_SIDE = 2048  # the norm of a matrix with a longer shorter side is bounded, not computed
AT_ONCE = 256  # columns


@dataclass(frozen=True, eq=False)
class _AffineMap:
    """A map x -> A x + c of a chain: the whole of a convolution, batch norm, pooling and so on in one."""

    matrix: Tensor | None  # (out, in), or None if it is too large
    offset: Tensor  # (out,)
    norm: float  # its operator norm, or a bound on it
    exact: bool  # is that the norm itself?
    frobenius: float
    rows: Tensor  # (out,) the norm of each row
    parameters: int  # how many numbers the model holds for it
    size: float  # and their norm

    @property
    def dense(self) -> bool:
        """Whether every entry of the matrix is a parameter of its own: a linear layer, no convolution."""
        if self.matrix is None:
            return False
        with_offset = self.matrix.numel() + len(self.offset)
        squares = self.frobenius**2 + float(self.offset.square().sum())
        return self.parameters in (self.matrix.numel(), with_offset) and math.isclose(self.size**2, squares)


@dataclass(frozen=True, eq=False)
class AffineChain:
    """Affine maps 1..H+1 with H activations between them; `slopes` (pieces, units) of each activation."""

    maps: tuple[_AffineMap, ...]
    slopes: tuple[Tensor, ...]
    breakpoints: tuple[tuple[float, ...], ...]

    @property
    def steepest(self) -> list[float]:
        """The Lipschitz constant of each activation."""
        return [float(slopes.abs().max()) if slopes.numel() else 0.0 for slopes in self.slopes]

    @property
    def matrices(self) -> list[Tensor] | None:
        """All of them, if none is too large."""
        found = [m.matrix for m in self.maps if m.matrix is not None]
        return found if len(found) == len(self.maps) else None


@torch.no_grad()
def chain_of(net: Network) -> AffineChain | None:
    """The chain that a network is, in float64; None if it is none: skips, max-pooling, competing values."""
    program = net.frozen().program.pruned([net.output])
    cuts = [value for pair in zip(net.entries, net.exits, strict=True) for value in pair]
    order = {value: place for place, step in enumerate(program.steps) for value in step.results} | {0: -1}
    if any(cut not in order for cut in cuts) or any(order[a] > order[b] for a, b in pairwise(cuts)):
        return None
    parts = program.segments(cuts)
    if any(len(part.outputs) > 1 for part in parts):  # a later one needs more than what was cut last
        return None
    sources = [0, *cuts]
    maps = [_affine(part, source, net.device) for part, source in zip(parts[::2], sources[::2], strict=True)]
    bends = zip(parts[1::2], sources[1::2], net.sites, strict=True)
    return AffineChain(
        tuple(maps),
        tuple(_piece_slopes(part, source, site, net.device) for part, source, site in bends),
        tuple(site.breakpoints for site in net.sites),
    )


def _affine(part: Program, source: int, device: torch.device) -> _AffineMap:
    """The affine map of a part of a program, by its values at 0 and at the unit vectors."""
    shape = part.shapes[source]
    inputs = math.prod(shape)

    def at(rows: Tensor) -> Tensor:
        value: Tensor = part.resume({source: rows.reshape(len(rows), *shape)})[0]
        return as_rows(value)

    offset = at(torch.zeros(1, inputs, dtype=torch.float64, device=device))[0]
    keep = inputs * len(offset) <= ENTRIES
    columns, row_sums, row_squares, largest_column = [], 0 * offset, 0 * offset, 0.0
    for start in range(0, inputs, AT_ONCE):
        units = torch.zeros(min(AT_ONCE, inputs - start), inputs, dtype=torch.float64, device=device)
        units[:, start : start + AT_ONCE] = torch.eye(len(units), dtype=torch.float64, device=device)
        some = at(units) - offset
        row_sums, row_squares = row_sums + some.abs().sum(dim=0), row_squares + some.square().sum(dim=0)
        largest_column = max(largest_column, float(some.abs().sum(dim=1).max()))
        columns += [some] if keep else []
    matrix = torch.cat(columns).T if keep else None
    frobenius = float(row_squares.sum().sqrt())
    exact = matrix is not None and min(matrix.shape) <= EXACT_SIDE
    if matrix is not None and exact:
        norm = float(torch.linalg.matrix_norm(matrix, ord=2))
    else:  # |A|^2 <= |A|_1 |A|_inf (Schur), and |A| <= |A|_F
        norm = min(math.sqrt(largest_column * float(row_sums.max())), frobenius)
    floats = [c for c in part.constants.values() if isinstance(c, Tensor) and c.is_floating_point()]
    size = math.sqrt(sum(float(c.square().sum()) for c in floats))
    return _AffineMap(
        matrix, offset, norm, exact, frobenius, row_squares.sqrt(), sum(c.numel() for c in floats), size
    )  # fmt: skip


def _piece_slopes(part: Program, source: int, site: Site, device: torch.device) -> Tensor:
    """The slope of each unit on each piece of its activation, (pieces, units)."""
    b = site.breakpoints
    inside = [(low + high) / 2 for low, high in pairwise(b)]
    places = torch.tensor([b[0] - 1, *inside, b[-1] + 1] if b else [0.0], dtype=torch.float64, device=device)
    rows = places[:, None].expand(-1, site.units).clone()
    with torch.enable_grad():
        rows.requires_grad_()
        out = part.resume({source: rows.reshape(len(rows), *part.shapes[source])})[0]
        return torch.autograd.grad(out.sum(), rows)[0]


def products(matrices: list[Tensor]) -> list[Tensor]:
    """A_1, A_2 A_1, ..., for matrices in the order in which they are applied."""
    found = matrices[:1]
    for matrix in matrices[1:]:
        found.append(matrix @ found[-1])
    return found
