"""Radii so small that they are lost in the rounding of the points."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from cases import mlp
from torch import nn

import regionscope as rs

SEED = torch.Generator().manual_seed(0)
POINTS = 1 + torch.rand(40, 6, generator=SEED)
FRAME = torch.linalg.qr(torch.randn(6, 6, generator=SEED, dtype=torch.float64)).Q


def touching() -> nn.Module:
    """A network whose first point lies on the boundary of every unit of its first layer, in float32 and in truth."""
    torch.manual_seed(0)
    model = mlp(6, 12, 12, 2)
    weight, bias = model.get_parameter("0.weight"), model.get_parameter("0.bias")
    weight.data = (8 * weight.data).round() / 8  # sums of few bits are exact
    bias.data = -weight.data.sum(dim=1)
    return model


def crossings_at_vertices(model: nn.Module, x: torch.Tensor, radius: float) -> list[int]:
    """Units of the first layer with vertices on both sides, in float64, point by point."""
    weight, bias = (p.detach().double().numpy() for p in model.get_submodule("0").parameters())
    counts = []
    for point in x.double().numpy():
        vertices = np.concatenate([point + radius * FRAME.numpy(), point - radius * FRAME.numpy()])
        z = vertices @ weight.T + bias
        counts.append(int(((z.min(axis=0) <= 0) & (z.max(axis=0) > 0)).sum()))
    return counts


@pytest.mark.parametrize("radius", [1e-4, 1e-6, 1e-8, 1e-10])
def test_crossings_in_float32_see_radii_below_its_resolution(radius: float) -> None:
    x = torch.cat([torch.ones(1, 6), POINTS])
    found = rs.boundary_crossings(touching(), x, radius=radius, frame=FRAME, layers=[1])
    assert found.per_point.tolist() == crossings_at_vertices(touching(), x, radius)
    assert found.per_point[0] == 12


def test_small_and_large_radii_are_told_in_one_call() -> None:
    x = torch.cat([torch.ones(1, 6), POINTS])
    for found in rs.boundary_crossings(touching(), x, radius=[1e-8, 0.1], frame=FRAME, layers=[1]):
        assert found.per_point.tolist() == crossings_at_vertices(touching(), x, found.radius)


def test_deformation_is_that_of_an_affine_map_at_any_radius() -> None:
    identity = nn.Sequential(nn.Linear(6, 6), nn.ReLU())
    identity[0].weight.data, identity[0].bias.data = torch.eye(6), torch.ones(6)
    for radius in (1e-2, 1e-8, 1e-11):
        found = rs.neighbourhood_deformation(identity, torch.stack([torch.zeros(6), torch.ones(6)]), radius=radius)
        np.testing.assert_allclose(found.stretch, 1.0, rtol=1e-3)


def test_an_attack_finds_what_float32_cannot_hold() -> None:
    model = nn.Linear(2, 2)
    model.weight.data, model.bias.data = torch.tensor([[1.0, -1.0], [0.0, 0.0]]), torch.tensor([5e-9, 0.0])
    x, label = torch.full((1, 2), 0.5), torch.tensor([0])
    assert rs.robust_accuracy(model, x, label, "none").mean == 1.0
    assert rs.robust_accuracy(model, x, label, radius=1e-9).mean == 1.0
    assert rs.robust_accuracy(model, x, label, radius=1e-8).mean == 0.0


LOST: dict[str, Callable[[nn.Module, torch.Tensor], Any]] = {
    "crossings": lambda model, x: rs.boundary_crossings(model, x, radius=1e-16),
    "deformation": lambda model, x: rs.neighbourhood_deformation(model, x, radius=1e-16),
    "confirmations": lambda model, x: rs.confirmed_crossings(model, x, radius=1e-16),
    "region count": lambda model, x: rs.local_region_count(model, x, radius=1e-16),
    "attack": lambda model, x: rs.robust_accuracy(model, x, torch.zeros(len(x), dtype=torch.int64), radius=1e-16),
    "plane": lambda model, x: rs.Plane.around(x[0], 1e-16),
    "plane of coordinates": lambda model, x: rs.Plane.coordinates(x[0], radius=1e-16),
}


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_float64_cannot_hold_is_refused(name: str, dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=r"radius 1e-16 is lost in the rounding .* take at least \d"):
        LOST[name](touching().to(dtype), POINTS[:2].to(dtype))
