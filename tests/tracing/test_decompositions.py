"""Largest values played in rounds of two."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import regionscope as rs

POOLS = {
    "1d": (nn.MaxPool1d(2), (2, 7)),
    "1d adaptive": (nn.AdaptiveMaxPool1d(3), (2, 7)),
    "2d": (nn.MaxPool2d(2), (2, 6, 5)),
    "2d overlapping and padded": (nn.MaxPool2d(3, 2, 1), (1, 7, 8)),
    "2d dilated": (nn.MaxPool2d(2, 1, 0, dilation=2), (1, 6, 6)),
    "2d with a ragged end": (nn.MaxPool2d(2, 2, ceil_mode=True), (1, 5, 5)),
    "2d adaptive": (nn.AdaptiveMaxPool2d((3, 2)), (2, 7, 5)),
    "3d": (nn.MaxPool3d(2), (1, 4, 4, 4)),
    "3d adaptive": (nn.AdaptiveMaxPool3d(2), (1, 3, 4, 5)),
    "over everything": (nn.AdaptiveMaxPool2d(1), (2, 5, 5)),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools_are_played_exactly(name: str) -> None:
    pool, shape = POOLS[name]
    x = torch.randn(6, *shape, generator=torch.Generator().manual_seed(1))
    net = rs.trace(pool, x)
    assert torch.equal(net(x), pool(x))
    assert net.layers == 1
    assert net.verify(x).holds


@given(
    size=st.integers(1, 5), stride=st.integers(1, 4), padding=st.integers(0, 2), dilation=st.integers(1, 3),
    ceil_mode=st.booleans(), length=st.integers(14, 18),
)  # fmt: skip
def test_any_pool_is_played_exactly(
    size: int, stride: int, padding: int, dilation: int, ceil_mode: bool, length: int
) -> None:
    padding = min(padding, size // 2)

    def pool(x: Tensor) -> Tensor:
        return F.max_pool1d(x, size, stride, padding, dilation, ceil_mode)

    x = torch.randn(3, 2, length, generator=torch.Generator().manual_seed(size))
    assert torch.equal(rs.trace(pool, x)(x), pool(x))


@pytest.mark.parametrize(
    ("function", "units"),
    [
        (lambda x: x.max(dim=1).values, 4),
        (lambda x: x.min(dim=-1, keepdim=True)[0], 4),
        (lambda x: x.amax(dim=1), 4),
        (lambda x: x.view(-1, 5).amin((1,)), 4),
        (lambda x: torch.fmax(x, 2 - x), 5),
        (lambda x: x.clamp(min=torch.zeros(5), max=torch.ones(5)), 10),
        (lambda x: (1 * x).clamp_(min=torch.zeros(5)), 5),
    ],
)
def test_maxima_have_one_unit_less_than_competitors(function: Any, units: int) -> None:
    x = torch.randn(8, 5, generator=torch.Generator().manual_seed(2))
    net = rs.trace(function, x)
    assert net.units == units
    assert torch.equal(net(x), function(x))
    assert net.verify(x).holds


def test_the_winner_is_where_all_differences_say_so() -> None:
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(3))
    net = rs.trace(lambda x: torch.maximum(x[:, 0], x[:, 1])[:, None], x)
    (difference,) = net.preactivations(x)
    assert torch.equal(difference > 0, x[:, 0] > x[:, 1])


def test_indices_of_the_winner_cannot_be_used() -> None:
    with pytest.raises(rs.UnsupportedModel, match="not known to be affine"):
        rs.trace(lambda x: x.gather(1, x.max(dim=1, keepdim=True).indices), torch.randn(2, 4))
