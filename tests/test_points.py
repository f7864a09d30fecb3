"""Probes come from where they say, and again from the same generator."""

import pytest
import torch

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


def test_bad_input_is_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="n must be from 1 to the 20 points of the data, got 21"):
        rs.sampled_points(DATA, 21)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        rs.uniform_points(DATA, 0)
    with pytest.raises(ValueError, match="scale must be positive, got 0"):
        rs.noisy_points(DATA, 3, scale=0)
    with pytest.raises(ValueError, match="no points in the data"):
        rs.interpolated_points(DATA[:0], 3)
