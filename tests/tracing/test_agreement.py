"""A network is its model, or is refused: points that mix, dtypes and bits that change, values that are no numbers."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regionscope as rs

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


def test_a_site_that_sees_a_whole_batch_is_refused_even_if_nothing_comes_of_it() -> None:
    with pytest.raises(rs.UnsupportedModel, match=r"depend on the other points of its batch: aten\.sum.* mixes them"):
        rs.trace(lambda x: x + 0 * torch.relu(x.sum(dim=0)), X)


def test_a_model_whose_dtype_changes_with_the_number_of_points_is_refused() -> None:
    def wider(x: Tensor) -> Tensor:
        return torch.relu(x).double() if len(x) > 1 else torch.relu(x)

    with pytest.raises(rs.UnsupportedModel, match="does different things for different numbers of points"):
        rs.trace(wider, X)


class Shared(nn.Module):
    """Its first layer is a part of its second: two tensors in the same memory."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("second", torch.randn(6, 6, generator=torch.Generator().manual_seed(1)))
        self.first: Tensor = self.second[:, :3]  # type: ignore[index]

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x @ self.first) @ self.second[:3]  # type: ignore[index]


def test_weights_that_lie_in_the_memory_of_others_are_told_apart() -> None:
    net = rs.trace(Shared(), X)
    assert net.units == 3 and torch.equal(net(X), Shared()(X))


@pytest.mark.parametrize(
    ("allow_smooth", "reason"), [(False, "aten.view.dtype"), (True, "reads the bits of a tensor as another dtype")]
)
def test_the_bits_of_values_read_as_another_dtype_are_refused(allow_smooth: bool, reason: str) -> None:
    def bits(x: Tensor) -> Tensor:
        h = 2 * x
        seen = h.view(torch.int32)
        h.add_(1)
        return torch.relu(h) + 0 * seen

    with pytest.raises(rs.UnsupportedModel, match=reason):
        rs.trace(bits, X, allow_smooth=allow_smooth)


@pytest.mark.parametrize("largest", [lambda x: F.max_pool1d(x[:, None], 2), lambda x: x.amax(dim=1, keepdim=True)])
def test_the_largest_of_values_that_are_no_numbers_is_refused(largest: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(rs.UnsupportedModel, match="could not be played in rounds of two"):
        rs.trace(lambda x: largest(torch.log(-x * x)), X, allow_smooth=True)
