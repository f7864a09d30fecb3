"""Exact region counts around points."""

import numpy as np
import pytest
import torch
from cases import CASES, case, mlp

import regionscope as rs

PLANAR = [name for name in CASES if case(name).points[0].numel() > 1]


def one_plane(x: torch.Tensor) -> rs.Plane:
    return rs.Plane.around(x, 0.5, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", PLANAR)
def test_counts_are_those_of_planes_one_by_one(name: str) -> None:
    made = case(name)
    axes = one_plane(made.points[0]).axes
    found = rs.local_region_count(made.model, made.points, radius=0.5, axes=axes, batch_size=2)
    square = 0.5 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    expected = [len(rs.plane_cells(made.model, rs.Plane(x, axes, square))) for x in made.points]
    assert found.per_point.tolist() == expected
    assert found.exact


def test_a_disc_meets_the_cells_that_come_nearer_than_its_radius() -> None:
    torch.manual_seed(0)
    model, axes, square = mlp(2, 30, 30, 1), np.eye(2), 0.8 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    x = torch.tensor([[0.1, -0.2], [1.0, 1.0], [-0.5, 0.3]])
    disc = rs.local_region_count(model, x, radius=0.8, shape="disc", axes=axes)
    assert (disc.per_point < rs.local_region_count(model, x, radius=0.8, axes=axes).per_point).any()
    steps = np.linspace(0, 1, 500)[:, None, None]
    for point, count in zip(x, disc.per_point, strict=True):
        cells = rs.plane_cells(model, rs.Plane(point, axes, square))
        centre = cells.locate([[0.0, 0.0]])[0]
        rims = [p + steps * (np.roll(p, -1, axis=0) - p) for p in cells.polygons]
        near = [np.linalg.norm(rim, axis=-1).min() < 0.8 for rim in rims]
        assert count == sum(n or cell == centre for cell, n in enumerate(near))


def test_counts_are_repeatable_and_take_loaders() -> None:
    model, x = mlp(5, 20, 20, 2), torch.randn(12, 5)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, torch.zeros(12)), batch_size=5)
    one, two = (
        rs.local_region_count(model, data, radius=0.3, generator=torch.Generator().manual_seed(1))
        for data in (x, loader)
    )
    assert one.per_point.tolist() == two.per_point.tolist()
    assert one.mean == one.per_point.mean()
    assert one.stderr == pytest.approx(one.per_point.std(ddof=1) / 12**0.5)
    assert one.to_dict()["n"] == 12


def test_a_positively_homogeneous_network_looks_the_same_at_every_radius_around_the_origin() -> None:
    made = case("zero_bias")
    counts = [
        rs.local_region_count(made.model, torch.zeros(1, 3), radius=r, axes=np.eye(3)[:2]).mean for r in (1e-3, 1, 1e3)
    ]
    assert counts[0] == counts[1] == counts[2] > 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"radius": 0}, "radius must be positive"),
        ({"radius": np.inf}, "radius must be positive and finite, got inf"),
        ({"radius": np.nan}, "radius must be positive and finite, got nan"),
        ({"radius": 1, "shape": "ball"}, "square or disc"),
        ({"radius": 1, "axes": [[1, 0, 0], [1, 0, 0]]}, "orthonormal"),
        ({"radius": 1, "data": torch.zeros(0, 3)}, "no points"),
        ({"radius": 1, "data": torch.full((2, 3), torch.nan)}, "NaN"),
    ],
)
def test_bad_input_is_named(options: dict, match: str) -> None:  # type: ignore[type-arg]
    options = {"data": torch.zeros(2, 3)} | options
    with pytest.raises(ValueError, match=match):
        rs.local_region_count(mlp(3, 4, 1), options.pop("data"), **options)
