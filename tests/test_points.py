"""Probes come from where they say, and again from the same generator."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import mlp

import regionscope as rs


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


DATA = torch.stack([torch.arange(20.0), 100 + torch.arange(20.0)], dim=1)


def test_sampled_points_are_different_points_of_the_data() -> None:
    points = rs.sampled_points(DATA, 12, generator=seeded())
    rows = {tuple(row) for row in points.tolist()}
    assert len(rows) == 12 and rows <= {tuple(row) for row in DATA.tolist()}


def test_uniform_points_fill_the_box_of_the_data() -> None:
    points = rs.uniform_points(DATA, 5000, generator=seeded())
    assert points.min() >= 0 and points.max() <= 119
    torch.testing.assert_close(points.mean(dim=0), torch.tensor([59.5, 59.5]), rtol=0.03, atol=0)
    own = rs.uniform_points(DATA, 5000, per_entry=True, generator=seeded())
    torch.testing.assert_close(own.amin(dim=0), torch.tensor([0.0, 100.0]), rtol=0, atol=0.1)
    torch.testing.assert_close(own.amax(dim=0), torch.tensor([19.0, 119.0]), rtol=0, atol=0.1)


def test_noisy_points_lie_around_points_of_the_data() -> None:
    noise = rs.noisy_points(DATA[:1], 5000, scale=0.5, generator=seeded()) - DATA[0]
    torch.testing.assert_close(noise.std(dim=0), torch.tensor([0.5, 0.5]), rtol=0.05, atol=0)


def test_interpolated_points_lie_between_points_of_the_data() -> None:
    points = rs.interpolated_points(DATA, 500, generator=seeded())
    torch.testing.assert_close(points[:, 1] - points[:, 0], torch.full((500,), 100.0))
    assert points[:, 0].min() >= 0 and points[:, 0].max() <= 19
    assert (points[:, 0] % 1 > 0).float().mean() > 0.8


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probes_keep_shape_and_dtype_and_come_again(dtype: torch.dtype) -> None:
    images = torch.rand(9, 1, 4, 4, dtype=dtype)
    first, again = (rs.probe_points(images, [(images, 0)], n=5, generator=seeded()) for _ in range(2))
    assert list(first) == ["train", "test", "uniform", "noisy", "interpolated"]
    for name, points in first.items():
        assert points.shape == (5, 1, 4, 4) and points.dtype == dtype
        assert torch.equal(points, again[name])
    assert "test" not in rs.probe_points(images, n=5)


def test_noisy_probes_are_as_far_from_the_data_as_they_are_told() -> None:
    near, far = (rs.probe_points(DATA, n=20, noise=s, generator=seeded())["noisy"] for s in (0.1, 0.5))
    moved = float((far - near).std() / (DATA.max() - DATA.min()))
    assert moved == pytest.approx(0.4, rel=0.3)


def test_bad_input_is_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="n must be from 1 to the 20 points of the data, got 21"):
        rs.sampled_points(DATA, 21)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        rs.uniform_points(DATA, 0)
    with pytest.raises(ValueError, match="scale must be positive, got 0"):
        rs.noisy_points(DATA, 3, scale=0)
    with pytest.raises(ValueError, match="no points in the data"):
        rs.interpolated_points(DATA[:0], 3)


# arrays of numpy


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return mlp(3, 8, 8, 2)


def recorded(record: rs.Record | None) -> Any:
    assert record is not None
    return record.probes["x"]["total_variation"]["mean"]


X = torch.randn(4, 3, generator=seeded())
ARRAYS: dict[str, Callable[[Any], Any]] = {  # what is made of points, whether tensor or array
    "trace": lambda x: rs.trace(network(), x).units,
    "network": lambda x: rs.trace(network(), X)(x),
    "patterns": lambda x: rs.trace(network(), X).patterns(x),
    "line": lambda x: rs.line_cells(network(), x[0], x[1]).breakpoints,
    "lines": lambda x: [line.breakpoints for line in rs.line_cells(network(), x[:2], x[2:])],
    "curve": lambda x: rs.curve_cells(network(), x, closed=True).breakpoints,
    "plane through": lambda x: rs.Plane.through(*x[:3]).axes,
    "plane around": lambda x: rs.Plane.around(x[0], 0.5, generator=seeded()).axes,
    "plane along": lambda x: rs.Plane.coordinates(x[0], radius=0.5).origin,
    "plane": lambda x: rs.Plane(x[0], np.eye(3)[:2], [[0, 0], [1, 0], [0, 1]]).origin,
    "projection": lambda x: rs.Plane.coordinates(X[0]).project(x),
    "expected regions": lambda x: (
        rs.expected_line_regions(network(), x[0], x[1], sigma=0.1, samples=8, generator=seeded()).per_point
    ),
    "sampled": lambda x: rs.sampled_points(x, 3, generator=seeded()).float(),
    "probes": lambda x: rs.probe_points(x, x, n=3, generator=seeded())["noisy"].float(),
    "monitor": lambda x: recorded(rs.Monitor(network(), {"x": (x, x[:, 0] > 0)}, measures=["total_variation"])(0)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_go_where_tensors_go(name: str) -> None:
    made, expected = ARRAYS[name](X.double().numpy()), ARRAYS[name](X)
    for one, other in zip(made, expected, strict=True) if isinstance(made, list) else [(made, expected)]:
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_arrays_of_any_layout_are_taken_and_not_changed() -> None:
    array = np.asfortranarray(X.numpy())[::-1]
    array.flags.writeable = False
    before = array.copy()
    found = rs.total_variation(network(), array).per_point
    assert found.tolist() == pytest.approx(rs.total_variation(network(), X).per_point[::-1].tolist())
    assert np.array_equal(before, array)


def test_functions_without_parameters_take_arrays_as_they_are() -> None:
    assert rs.trace(lambda x: torch.relu(x), X.numpy()).dtype is torch.float32
    assert rs.trace(lambda x: torch.relu(x), X.double().numpy()).dtype is torch.float64


def test_batches_that_hold_no_array_are_refused() -> None:
    assert rs.sampled_points([("name", torch.ones(2, 3))], 2).shape == (2, 3)
    with pytest.raises(TypeError, match="a tuple or dict that holds one, got dict"):
        rs.sampled_points([{"name": "x"}], 1)


def test_data_in_bfloat16_which_numpy_does_not_have_is_taken() -> None:
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).bfloat16()
    plane, same = (rs.Plane.through(*points[:3]) for points in (x, x.double()))
    assert np.array_equal(plane.axes, same.axes)
    assert np.array_equal(plane.project(x), same.project(x.double()))
    rs.plane_cells(mlp(4, 6, 2), plane).plot(points=x)
    plt.close("all")
