"""Operations that take the largest of several values, played as rounds of pairwise maxima.

max(a, b, c, d) = max(max(a, b), max(c, d)): within the boundaries of the earlier rounds each competitor is affine, so
every difference of two competitors is a unit like any other. A window over several dimensions is played one dimension
after another, which shares the rounds of overlapping windows. A slot of a window that lies in the padding is given to a
member of the same window: the two are equal, so their difference never switches.

Neighbours play each other and the last dimension comes first, so of equals the first wins, as torch has it: on a tie,
where the difference of the two is not above 0, `maximum` is taken for its second argument and `minimum` for its first.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from regionscope.tracing.activations import Arguments

Play = Callable[[Tensor, Tensor], Tensor]  # of two, of which the first comes before the second


def _larger(earlier: Tensor, later: Tensor) -> Tensor:
    return torch.maximum(later, earlier)


def _smaller(earlier: Tensor, later: Tensor) -> Tensor:
    return torch.minimum(earlier, later)


def _champion(x: Tensor, axis: int, play: Play) -> Tensor:
    """The winner along an axis, which stays with length 1; every round halves it."""
    while (competitors := x.shape[axis]) > 1:
        paired = competitors - competitors % 2
        won = play(*(torch.ops.aten.slice(x, axis, first, paired, 2) for first in range(2)))
        x = torch.cat([won, x.narrow(axis, paired, 1)], dim=axis) if competitors % 2 else won
    return x


def _over_windows(x: Tensor, windows: list[Tensor]) -> Tensor:
    """The largest value of each window; `windows` (outputs, slots) are positions along the last dimensions."""
    axes = zip(range(-1, -len(windows) - 1, -1), reversed(windows), strict=True)
    for axis, positions in sorted(axes, key=lambda each: each[1].shape[1] > 1):  # the last round ends a tournament
        outputs, slots = positions.shape
        if (plain := _regular(positions)) is not None:
            first, stride = plain
            members = x.narrow(axis, first, x.shape[axis] - first).unfold(axis, slots, stride)
            members = members.narrow(axis - 1, 0, outputs)
        else:
            members = x.index_select(axis, positions.flatten().to(x.device)).unflatten(axis, (outputs, slots))
            members = members.movedim(axis, -1)
        x = _champion(members, -1, _larger).squeeze(-1)
    return x.contiguous()


def _regular(positions: Tensor) -> tuple[int, int] | None:
    """First position and stride, if the windows are runs of neighbours at equal distances."""
    outputs, slots = positions.shape
    first = int(positions[0, 0])
    stride = int(positions[1, 0]) - first if outputs > 1 else slots
    runs = first + stride * torch.arange(outputs)[:, None] + torch.arange(slots)
    return (first, stride) if stride > 0 and torch.equal(positions, runs) else None


def _pool_windows(length: int, outputs: int, size: int, stride: int, padding: int, dilation: int) -> Tensor:
    positions = stride * torch.arange(outputs)[:, None] - padding + dilation * torch.arange(size)
    inside = (positions >= 0) & (positions < length)
    stand_in = positions.gather(1, inside.int().argmax(dim=1, keepdim=True))
    return torch.where(inside, positions, stand_in)


def _adaptive_windows(length: int, outputs: int) -> Tensor:
    i = torch.arange(outputs)[:, None]
    start, end = i * length // outputs, -(-(i + 1) * length // outputs)
    positions = start + torch.arange(int((end - start).max()))
    return torch.where(positions < end, positions, start)


def _max_pool(dimensions: int, a: Arguments, shape: tuple[int, ...]) -> Tensor:
    x = a["self"]
    size, padding, dilation = (_per_dimension(a[k], dimensions) for k in ("kernel_size", "padding", "dilation"))
    stride = _per_dimension(a["stride"] or a["kernel_size"], dimensions)
    lengths, outputs = x.shape[-dimensions:], shape[-dimensions:]
    each = zip(lengths, outputs, size, stride, padding, dilation, strict=True)
    return _over_windows(x, [_pool_windows(*one) for one in each])


def _adaptive_max_pool(dimensions: int, a: Arguments, shape: tuple[int, ...]) -> Tensor:
    x = a["self"]
    sides = zip(x.shape[-dimensions:], shape[-dimensions:], strict=True)
    return _over_windows(x, [_adaptive_windows(*side) for side in sides])


def _per_dimension(numbers: Any, dimensions: int) -> list[int]:
    each: list[int] = list(numbers) if isinstance(numbers, list | tuple) else [numbers]
    return each * dimensions if len(each) == 1 else each


def _over_dimensions(play: Play) -> Callable[[Arguments, tuple[int, ...]], Tensor]:
    def best(a: Arguments, shape: tuple[int, ...]) -> Tensor:
        x: Tensor = a["self"]
        dim = a.get("dim", [])
        axes = dim if isinstance(dim, list | tuple) else [dim]
        for axis in reversed(axes or range(x.dim())):
            x = _champion(x, axis, play)
        return x.reshape(shape)

    return best


def _indices(arg: Callable[..., Tensor]) -> Callable[[Arguments], Tensor]:
    """Who wins over one or several dimensions, as a position among all that compete."""

    def of(a: Arguments) -> Tensor:
        x: Tensor = a["self"]
        axes = [axis % x.dim() for axis in a.get("dim", [])] or list(range(x.dim()))
        others = [axis for axis in range(x.dim()) if axis not in axes]
        return arg(x.permute(*others, *axes).flatten(len(others)), dim=-1)

    return of


def _clamp(a: Arguments, shape: tuple[int, ...]) -> Tensor:
    x = a["self"]
    x = x if a.get("min") is None else torch.maximum(x, a["min"])
    return x if a.get("max") is None else torch.minimum(x, a["max"])


# aten operation -> kind of its sites, the same in terms of simpler operations given its arguments and result shape
PLAYED: dict[str, tuple[str, Callable[[Arguments, tuple[int, ...]], Tensor]]] = {
    **{f"max_pool{d}d_with_indices": ("max_pool", partial(_max_pool, d)) for d in (2, 3)},
    **{f"adaptive_max_pool{d}d": ("max_pool", partial(_adaptive_max_pool, d)) for d in (2, 3)},
    **{name: ("max", _over_dimensions(_larger)) for name in ("max", "max.dim", "amax")},
    **{name: ("min", _over_dimensions(_smaller)) for name in ("min", "min.dim", "amin")},
    **{f"{name}.Tensor": ("clamp", _clamp) for name in ("clamp", "clamp_min", "clamp_max")},
}

# the winners of those that do not say so themselves
INDICES: dict[str, Callable[[Arguments], Tensor]] = {
    **dict.fromkeys(("max", "amax"), _indices(torch.argmax)),
    **dict.fromkeys(("min", "amin"), _indices(torch.argmin)),
}
