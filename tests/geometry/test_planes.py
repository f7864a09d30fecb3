"""Planes: where to look."""

from typing import Any

import numpy as np
import pytest
import torch

import regionscope as rs
from regionscope.geometry.planes import Planes


def test_a_plane_through_three_points_holds_them_on_a_circle() -> None:
    points = torch.randn(3, 7, generator=torch.Generator().manual_seed(0))
    plane = rs.Plane.through(*points, margin=1.5)
    u = plane.project(points)
    assert torch.allclose(plane.points(u), points.double())
    radii = np.linalg.norm(u, axis=1)
    assert np.allclose(radii, radii[0])
    assert np.allclose(np.abs(plane.domain), 1.5 * radii[0])


def test_a_plane_around_the_centroid_holds_three_points_that_are_nearly_in_line() -> None:
    points = torch.tensor([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [1.0, 0.01, 1.0]], dtype=torch.float64)
    plane = rs.Plane.through(*points, centre="centroid", margin=1.1)
    assert torch.allclose(plane.origin, points.mean(dim=0))
    assert np.allclose(np.abs(plane.domain), 1.1 * float((points - points.mean(dim=0)).norm(dim=1).max()))
    assert np.allclose(plane.anchors, plane.project(points))
    assert torch.allclose(plane.points(plane.anchors), points)
    assert rs.Plane.through(*points).area > 1000 * plane.area
    with pytest.raises(ValueError, match="centre must be circumcentre or centroid, got 'middle'"):
        rs.Plane.through(*points, centre="middle")


def test_a_plane_keeps_the_shape_of_images() -> None:
    images = torch.rand(3, 1, 4, 4)
    plane = rs.Plane.through(*images)
    assert plane.points(plane.domain).shape == (4, 1, 4, 4)


def test_a_random_plane_is_orthonormal_and_repeatable() -> None:
    one, two = (rs.Plane.around(torch.zeros(50), 0.1, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert np.allclose(one.axes @ one.axes.T, np.eye(2), atol=1e-14)
    assert np.array_equal(one.axes, two.axes)
    assert one.area == pytest.approx(0.04)


@pytest.mark.parametrize("dimension", [2, 5, 8, 50])
def test_random_planes_belong_to_points_however_many_there_are(dimension: int) -> None:
    x = torch.randn(9, dimension)

    def axes(*parts: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator().manual_seed(3)
        return torch.cat([Planes.around(part, 0.1, generator=generator).axes for part in parts])

    together = axes(x)
    for number in range(1, 9):
        assert torch.equal(axes(x[:number]), together[:number])
    assert torch.equal(axes(*x.split(4)), together), "batch by batch"
    alone = rs.Plane.around(x[0], 0.1, generator=torch.Generator().manual_seed(3))
    assert np.array_equal(alone.axes, together[0].numpy())
    eye = torch.eye(2, dtype=torch.float64).expand(9, 2, 2)
    assert torch.allclose(together @ together.transpose(1, 2), eye, atol=1e-14)


def test_a_clockwise_domain_is_turned_around() -> None:
    plane = rs.Plane(torch.zeros(2), np.eye(2), [[0, 0], [0, 1], [1, 0]])
    assert plane.area == 0.5


def test_coordinates_choose_two_entries() -> None:
    plane = rs.Plane.coordinates(torch.tensor([1.0, 2.0, 3.0]), (2, 0), radius=2.0)
    assert plane.points([[0.5, 0.25]]).tolist() == [[1.25, 2.0, 3.5]]


def between_two_points(kind: str) -> list[Any]:
    """Two points and one between them, as far as the dtype lets it."""
    a, b = torch.rand(2, 784, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    if kind == "numpy":
        a, b = a.float().numpy(), b.float().numpy()
    else:
        a, b = a.to(getattr(torch, kind)), b.to(getattr(torch, kind))
    return [a, b, a + 0.3 * (b - a)]


def test_points_that_are_nearly_on_a_line_span_a_plane_if_their_dtype_holds_it() -> None:
    a, b, c = between_two_points("float64")
    c[0] += 1e-6
    assert rs.Plane.through(a, b, c).area > 0
    with pytest.raises(ValueError, match="but for rounding"):
        rs.Plane.through(a.float(), b.float(), c.float())


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: rs.Plane.through(*torch.tensor([[0.0, 0], [1, 1], [2, 2]])), "lie on one line"),
        (lambda: rs.Plane.through(*torch.zeros(3, 2)), "lie on one line"),
        *(
            (lambda kind=kind: rs.Plane.through(*between_two_points(kind)), "lie on one line, but for rounding")
            for kind in ("float32", "float16", "numpy", "float64")
        ),
        (lambda: rs.Plane.through(*torch.full((3, 2), torch.nan)), "NaN"),
        (lambda: rs.Plane.through(*torch.eye(3), margin=0), "margin must be positive"),
        (lambda: rs.Plane.around(torch.zeros(3), 0), "radius must be positive"),
        (lambda: rs.Plane.through(*torch.eye(3), margin=np.nan), "margin must be positive and finite, got nan"),
        (lambda: rs.Plane.through(*torch.eye(3), margin=np.inf), "margin must be positive and finite, got inf"),
        (lambda: rs.Plane.around(torch.zeros(3), np.nan), "radius must be positive and finite, got nan"),
        (lambda: rs.Plane.around(torch.zeros(3), np.inf), "radius must be positive and finite, got inf"),
        (lambda: rs.Plane.coordinates(torch.zeros(3), radius=np.nan), "radius must be positive and finite, got nan"),
        (lambda: rs.Plane.coordinates(torch.zeros(3), radius=np.inf), "radius must be positive and finite, got inf"),
        (lambda: rs.Plane.around(torch.zeros(1), 1), "no planes; use line_cells"),
        (lambda: rs.Plane.coordinates(torch.zeros(3), (1, 1)), "two different entries"),
        (lambda: rs.Plane(torch.zeros(2), [[1, 0], [1, 0]], [[0, 0], [1, 0], [0, 1]]), "orthonormal"),
        (lambda: rs.Plane(torch.zeros(3), np.eye(2), [[0, 0], [1, 0], [0, 1]]), r"axes must be \(2, 3\)"),
        (lambda: rs.Plane(torch.zeros(2), np.eye(2), [[0, 0], [1, 0]]), "k >= 3"),
        (lambda: rs.Plane(torch.zeros(2), np.eye(2), [[0, 0], [1, 1], [2, 2]]), "empty"),
        (lambda: rs.Plane(torch.zeros(2), np.eye(2), [[0, 0], [2, 0], [0.1, 0.1], [0, 2]]), "convex"),
        (lambda: rs.Plane(torch.zeros(2), np.eye(2), [[0, 0], [1, 0], [1, 0], [0, 1]]), "convex"),
        (lambda: rs.Plane(torch.zeros(2), np.eye(2), [[0, 0], [np.inf, 0], [0, 1]]), "NaN or infinite"),
    ],
)
def test_bad_planes_are_named(make, match: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=match):
        make()


def test_a_star_is_not_convex() -> None:
    angles = 4 * np.pi * np.arange(5) / 5  # every corner turns left, twice around
    with pytest.raises(ValueError, match="convex"):
        rs.Plane(torch.zeros(2), np.eye(2), np.stack([np.cos(angles), np.sin(angles)], axis=1))
