"""Tolerances: a sign is decided within the error of its own value, or in exact arithmetic."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regionscope as rs

D = torch.float64


def folded(rows: list[list[float]]) -> nn.Sequential:
    """relu(rows (relu(z), relu(3 z))) with z = x + 2 y + 1; the row (3, -1) is zero everywhere but for rounding."""
    layers = [nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, len(rows), bias=False), nn.ReLU()]
    model = nn.Sequential(*layers).double()
    weights = ([[1.0, 2.0], [3.0, 6.0]], [1.0, 3.0], rows)
    for p, v in zip(model.parameters(), weights, strict=True):
        p.data = torch.tensor(v, dtype=D)
    return model


def planes(n: int) -> list[rs.Plane]:
    generator = torch.Generator().manual_seed(0)
    return [rs.Plane.coordinates(torch.randn(2, generator=generator, dtype=D)) for _ in range(n)]


def crossed(plane: rs.Plane) -> int:
    """The exact number of cells of the one boundary z = 0."""
    z = plane.points(plane.domain).reshape(-1, 2) @ torch.tensor([1.0, 2.0], dtype=D) + 1
    return 1 + int(z.min() < 0 < z.max())


def test_dead_by_cancellation() -> None:
    model = folded([[3.0, -1.0]])
    for plane in planes(60):
        cells = rs.plane_cells(model, plane)
        assert len(cells) == crossed(plane)
        assert cells.verify().holds and cells.undecided == 0
    for x in ([0.7, 0.2], [0.9, 0.1]):
        counts = rs.local_region_count(model, torch.tensor([x], dtype=D), radius=1.0, axes=np.eye(2))
        assert counts.per_point.tolist() == [2]


def test_verify_false_alarm() -> None:
    model = folded([[3.0, -1.0], [1.0, 1.0]])
    for plane in planes(60):
        cells = rs.plane_cells(model, plane)
        assert len(cells) == crossed(plane)
        assert cells.verify().holds


@pytest.mark.parametrize("seed", range(6))
def test_noise_site(seed: int) -> None:
    torch.manual_seed(seed)
    layer, plane = nn.Linear(2, 12).double(), rs.Plane.coordinates(torch.zeros(2, dtype=D), radius=2.0)

    def once(x: Tensor) -> Tensor:
        return F.relu(layer(x)).sum(1, keepdim=True)

    def twice(x: Tensor) -> Tensor:  # max(s, s), s summed in another order
        return torch.maximum(once(x), F.relu(layer(x)).flip(1).cumsum(1)[:, -1:])

    cells = rs.plane_cells(twice, plane)
    assert len(cells) == len(rs.plane_cells(once, plane))
    assert cells.verify().holds


def test_max_tied_competitors() -> None:
    torch.manual_seed(40)
    layer, weights, order = nn.Linear(2, 6).double(), torch.randn(3, 6, dtype=D), torch.randperm(6)
    plane = rs.Plane.coordinates(torch.zeros(2, dtype=D))

    def best(x: Tensor, copies: int) -> Tensor:
        h = F.relu(layer(x))
        a, b = h @ weights.T, (h[:, order][:, None] * weights[:, order]).sum(2)  # a = b, summed in another order
        return torch.stack([*[a, b][:copies], h[:, :3] - 0.2, h[:, 3:]], 2).amax(2)

    cells, once = rs.plane_cells(lambda x: best(x, 2), plane), rs.plane_cells(lambda x: best(x, 1), plane)
    assert len(cells) == len(once)
    assert np.sort(cells.areas) == pytest.approx(np.sort(once.areas), rel=1e-9)
    assert cells.areas.sum() == pytest.approx(4)


@pytest.mark.parametrize("radius", [1e-9, 1e-13, 1e-100, 1e6])
def test_cells_of_tiny_and_huge_planes_are_verified(radius: float) -> None:
    torch.manual_seed(0)
    first = nn.Linear(2, 8)
    model = nn.Sequential(first, nn.ReLU(), nn.Linear(8, 3)).double()
    first.bias.data *= radius  # so that boundaries run through the domain
    cells = rs.plane_cells(model, rs.Plane.coordinates(torch.zeros(2, dtype=D), radius=radius))
    certificate = cells.verify()
    assert len(cells) == 8
    assert certificate.holds and certificate.too_thin == 0
    patterns = cells.packed_patterns.copy()
    patterns[cells.areas.argmax()] ^= np.uint64(1)
    assert not replace(cells, packed_patterns=patterns).verify().holds


@pytest.mark.parametrize("size", [1e-100, 1e-170, 1e-200])
def test_numbers_too_small_for_a_float_still_have_signs(size: float) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2, bias=False), nn.ReLU()).double()
    model[0].weight.data, model[0].bias.data = size * torch.eye(2, dtype=D), torch.zeros(2, dtype=D)
    model[2].weight.data = size * torch.tensor([[1.0, -1.0], [1.0, -2.0]], dtype=D)
    plane = rs.Plane.coordinates(torch.full((2,), 2.0, dtype=D))  # where x = y and x = 2 y run
    cells = rs.plane_cells(model, plane, certified=True)
    assert len(cells) == 3
    assert cells.verify().holds
    start, end = torch.tensor([[1.0, 3.0], [3.0, 1.0]], dtype=D)
    assert rs.line_cells(model, start, end, certified=True).breakpoints == pytest.approx([1 / 2, 5 / 6])


def test_region_count_batch() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1)).double()
    x = torch.tensor([[0.0, 0.0], [1e13, 0.0]], dtype=D)
    together = rs.local_region_count(model, x, radius=1.0, axes=np.eye(2)).per_point
    alone = [rs.local_region_count(model, x[i : i + 1], radius=1.0, axes=np.eye(2)).per_point[0] for i in range(2)]
    assert together.tolist() == alone
    assert alone[0] > 5
    with pytest.raises(ValueError, match="radius"):
        rs.local_region_count(model, x[:1], radius=float("inf"))


@pytest.mark.parametrize("size", [2.0**-40, 2.0**40])
def test_a_large_unit_does_not_hide_the_boundary_of_a_small_one(size: float) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).double()
    model[0].weight.data = torch.tensor([[1.0, 0.0], [size, size]], dtype=D)
    model[0].bias.data = torch.tensor([0.875, 0.0], dtype=D)
    cells = rs.plane_cells(model, rs.Plane.coordinates(torch.zeros(2, dtype=D)))
    assert len(cells) == 4
    assert np.sort(cells.areas) == pytest.approx([0.0078125, 0.2421875, 1.7578125, 1.9921875])


def test_a_certified_call_promises_that_every_sign_was_proved() -> None:
    cells = rs.plane_cells(folded([[3.0, -1.0]]), planes(1)[0], certified=True)
    assert cells.undecided == 0 and len(cells) == crossed(planes(1)[0])
    start, end = torch.tensor([[-2.0, -2.0], [2.0, 1.5]], dtype=D)
    line = rs.line_cells(folded([[3.0, -1.0]]), start, end, certified=True)
    assert (len(line), line.undecided) == (2, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_a_unit_that_is_zero_but_for_rounding_is_at_no_distance(dtype: torch.dtype, norm: str) -> None:
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(1)).to(dtype)
    dead, alone = (rs.boundary_distance(folded(rows).to(dtype), x, norm=norm) for rows in ([[3.0, -1.0]], [[0.0, 0.0]]))
    assert dead.per_point == pytest.approx(alone.per_point, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_unit_that_is_zero_but_for_rounding_adds_nothing_to_the_rank(dtype: torch.dtype) -> None:
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(1)).to(dtype)
    found = rs.local_rank(folded([[3.0, -1.0], [9.0, -3.0]]).to(dtype), x, eps=0).per_layer
    assert found is not None and (found == [1, 0]).all()


def test_what_float32_cannot_tell_from_rounding_is_still_a_rank() -> None:
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(1))
    found = rs.local_rank(folded([[0.3, -0.1]]).float(), x, eps=0).per_layer  # 0.3 is not 3 times 0.1 in floats
    assert found is not None
    assert (found[:, 1] == (x @ torch.tensor([1.0, 2.0]) > -1).numpy()).all()


@pytest.mark.parametrize("shared", [True, False])
def test_a_unit_that_is_zero_but_for_rounding_is_not_crossed(shared: bool) -> None:
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(1), dtype=D)
    for centre in (True, False):
        dead, alone = (
            rs.boundary_crossings(
                folded(rows), x, radius=0.3, shared_frame=shared, include_centre=centre,
                generator=torch.Generator().manual_seed(2),
            )
            for rows in ([[3.0, -1.0]], [[0.0, 0.0]])
        )  # fmt: skip
        assert (dead.per_point == alone.per_point).all()
        assert alone.per_point.sum() > 10


def test_a_layer_that_is_zero_but_for_rounding_is_not_crossed_if_it_alone_is_asked_for() -> None:
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(1), dtype=D)
    model, generator = folded([[3.0, -1.0]]), torch.Generator().manual_seed(2)
    found = rs.boundary_crossings(model, x, radius=0.3, layers=[2], generator=generator)
    assert found.per_point.tolist() == [0.0] * 50


def test_equal_competitors_are_at_no_distance_and_add_no_rank_or_crossing() -> None:
    torch.manual_seed(0)
    first, second = nn.Linear(3, 12).double(), nn.Linear(5, 4, bias=False).double()

    def model(x: Tensor) -> Tensor:
        h = first(x)[:, [0, 5, 6, 8, 9]]
        both: Tensor = torch.tensordot(h.unsqueeze(1).expand(len(x), 2, 5), second.weight, ([2], [1]))
        return both.amin(1)  # min(a, a)

    x = torch.randn(7, 3, dtype=D)
    distance = rs.boundary_distance(model, x)
    assert np.isinf(distance.per_point).all()
    assert "inf" in repr(distance)
    assert (rs.local_rank(model, x, eps=0).per_point == 0).all()
    assert (rs.boundary_crossings(model, x, radius=0.3).per_point == 0).all()
    assert (rs.certified_radius(model, x, model(x).argmax(dim=1)).per_point > 0).all()


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
@pytest.mark.parametrize("dtype", [torch.float32, D])
def test_competitors_that_differ_by_less_than_rounding_have_their_own_boundary(dtype: torch.dtype, norm: str) -> None:
    """max(3 (w x), v x) with v = 3 w but for rounding: they meet where (3 w - v) x = 0, in exact arithmetic."""
    torch.manual_seed(0)
    w = torch.tensor([0.1, 0.7, 0.3, -0.9, 0.45], dtype=dtype)
    v, x = 3 * w, torch.randn(20, 5, dtype=dtype)
    apart = [3 * Fraction(float(a)) - Fraction(float(b)) for a, b in zip(w, v, strict=True)]
    assert sum(map(bool, apart)) > 1
    sizes = [abs(float(a)) for a in apart]
    lengths = {"l2": math.hypot(*sizes), "l1": max(sizes), "linf": sum(sizes)}
    gaps = [sum(a * Fraction(float(b)) for a, b in zip(apart, point, strict=True)) for point in x]
    expected = [abs(float(gap)) / lengths[norm] for gap in gaps]

    def model(x: Tensor) -> Tensor:
        return torch.maximum(3 * (x * w).sum(dim=1, keepdim=True), x @ v[:, None])

    found = rs.boundary_distance(model, x, norm=norm)
    assert found.per_point == pytest.approx(expected, rel=1e-6 if dtype is torch.float32 else 1e-14)


def test_interpolated_copies_of_a_number_meet_where_it_is_zero() -> None:
    """Shares that add up to 1 but for rounding: the copies differ by less than floats can tell."""
    torch.manual_seed(0)
    first, second = nn.Linear(4, 3).double(), torch.randn(2, 3, dtype=D)

    def model(x: Tensor) -> Tensor:
        h = F.leaky_relu(first(x), 0.1)[:, :, None].expand(-1, -1, 3)
        return F.max_pool1d(torch.einsum("zb,abc->azc", second, F.interpolate(h, size=5, mode="linear")), 2)

    shares = F.interpolate(torch.eye(3, dtype=D)[:, None], size=5, mode="linear")[:, 0]
    sums = [sum(Fraction(float(share)) for share in column) for column in shares.T]
    assert sums[0] == sums[1] or sums[2] == sums[3]
    assert sums[0] != sums[1] or sums[2] != sums[3]
    x = torch.randn(200, 4, dtype=D)
    z = first(x).detach()
    gradients = torch.einsum("zb,nb,bi->nzi", second, torch.where(z > 0, 1.0, 0.1).double(), first.weight.detach())
    zeros = (F.leaky_relu(z, 0.1) @ second.T).abs() / gradients.norm(dim=2)
    expected = torch.cat([z.abs() / first.weight.detach().norm(dim=1), zeros], dim=1).amin(dim=1)
    assert rs.boundary_distance(model, x).per_point == pytest.approx(expected.numpy(), rel=1e-9)
    labels = model(x)[:, :, 1].argmax(dim=1)
    assert (rs.certified_radius(lambda x: model(x)[:, :, 1], x, labels).per_point > 0).all()
