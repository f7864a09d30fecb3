"""Where the points lie in a value, and whether they know of each other."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from oracles import decision_distances
from torch import Tensor, nn

import regionscope as rs

D = torch.float64


def written_twice(seed: int) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """One function of three tokens with a skip, with points first and with tokens first."""
    torch.manual_seed(seed)
    a, b, o = (nn.Linear(i, k).double() for i, k in ((2, 4), (6, 12), (12, 2)))

    def points_first(x: Tensor) -> Tensor:
        return o(F.relu((F.relu(b(x)).view(-1, 3, 4) + a(x.view(-1, 3, 2))).flatten(1)))  # type: ignore[no-any-return]

    def tokens_first(x: Tensor) -> Tensor:
        n = len(x)
        skip = a(x.view(n, 3, 2).transpose(0, 1).reshape(3 * n, 2))
        h = F.relu(b(x)).view(n, 3, 4).transpose(0, 1).reshape(3 * n, 4) + skip
        return o(F.relu(h.view(3, n, 4).transpose(0, 1).reshape(n, 12)))  # type: ignore[no-any-return]

    return points_first, tokens_first


def test_token_major_layout() -> None:
    one, other = written_twice(0)
    x = torch.randn(7, 6, dtype=D)
    assert len(rs.line_cells(one, x[0], x[1])) == len(rs.line_cells(other, x[0], x[1]))
    plane = rs.Plane.through(*x[:3])
    assert len(rs.plane_cells(one, plane)) == len(rs.plane_cells(other, plane))
    for measure in (
        lambda f: rs.boundary_crossings(f, x, radius=0.5, frame=np.eye(6)),
        lambda f: rs.boundary_distance(f, x),
        lambda f: rs.total_variation(f, x),
    ):
        assert measure(one).per_point == pytest.approx(measure(other).per_point, rel=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_token_major_certificates(seed: int) -> None:
    one, other = written_twice(seed)
    x = torch.randn(100, 6, dtype=D)
    labels = one(x).argmax(dim=1)
    found = rs.certified_radius(other, x, labels).per_point
    inside = np.minimum(decision_distances(one, x), rs.boundary_distance(one, x).per_point)
    assert (found >= (1 - 1e-6) * inside).all()
    u = torch.randn(200, 6, dtype=D)
    u /= u.norm(dim=1, keepdim=True)
    for i in range(len(x)):
        assert (one(x[i] + 0.999 * found[i] * u).argmax(dim=1) == labels[i]).all()


def test_max_batch_axis_not_first() -> None:
    torch.manual_seed(0)
    linear = nn.Linear(2, 12).double()

    def units_first(x: Tensor) -> Tensor:
        return linear(x).t().reshape(4, 3, -1).amax(1).t()  # type: ignore[no-any-return]

    grid = torch.cartesian_prod(*[torch.linspace(-3, 3, 900, dtype=D)] * 2)
    winners = len(torch.unique(linear(grid).view(-1, 4, 3).argmax(2), dim=0))
    cells = rs.plane_cells(units_first, rs.Plane.coordinates(torch.zeros(2, dtype=D), radius=3.0))
    assert len(cells) == winners
    assert cells.areas.sum() == pytest.approx(36)
    counts = rs.local_region_count(units_first, torch.zeros(5, 2, dtype=D), radius=3.0, axes=np.eye(2))
    assert counts.per_point.tolist() == [winners] * 5


def test_max_folded_batch() -> None:
    torch.manual_seed(0)
    inner, head = nn.Linear(1, 6).double(), nn.Linear(4, 2).double()

    def folded(x: Tensor) -> Tensor:
        return head(inner(x.reshape(-1, 1)).view(-1, 2, 3).amax(2).reshape(len(x), 4))  # type: ignore[no-any-return]

    cells = rs.plane_cells(folded, rs.Plane.coordinates(torch.zeros(2, dtype=D), radius=3.0))
    assert cells.patterns.shape[1] == 4
    assert len(np.unique(cells.patterns, axis=0)) == len(cells)
    assert cells.verify().holds


LINEAR = nn.Linear(6, 6)
TABLE = torch.randn(64, 6)
DEPENDENT: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "cumulative sum": (lambda x: F.relu(LINEAR(x)).cumsum(0), "cumsum"),
    "less the first point": (lambda x: F.relu(LINEAR(x) - LINEAR(x)[:1]), "aten"),
    "number in the batch": (lambda x: F.relu(LINEAR(x) + torch.arange(len(x))[:, None]), "add"),
    "table by position": (lambda x: F.relu(LINEAR(x) + TABLE[: len(x)]), "add"),
    "triangular product": (lambda x: F.relu(torch.tril(torch.ones(len(x), len(x))) @ LINEAR(x)), "mm"),
    "rolled": (lambda x: LINEAR(x).relu().roll(1, 0), "another order"),
    "sorted": (lambda x: F.relu(LINEAR(x) - LINEAR(x).flip(0)), "sub|aten"),
    "two points": (lambda x: LINEAR(x).abs() if len(x) == 2 else LINEAR(x).relu(), "numbers of points"),
    "many points": (lambda x: LINEAR(x).abs() if len(x) > 32 else LINEAR(x).relu(), "numbers of points"),
    "but the first eight": (lambda x: torch.cat([LINEAR(x[:8]).relu(), LINEAR(x[8:])]), "numbers of points"),
    "every tenth": (lambda x: LINEAR(x).relu() + (torch.arange(len(x)) % 10 == 9)[:, None], "numbers of points"),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_batch_dependence(name: str) -> None:
    function, culprit = DEPENDENT[name]
    with pytest.raises(rs.UnsupportedModel, match=f"other points of its batch.*({culprit})"):
        rs.trace(function, torch.randn(4, 6))


def cancelling(dtype: torch.dtype) -> nn.Sequential:
    """Terms of size 2^40 that add up to zero, beside biases of 2^-40: what is left depends on the order of the sums."""
    generator = torch.Generator().manual_seed(0)
    first, second, last = nn.Linear(6, 66), nn.Linear(66, 10), nn.Linear(10, 2)
    rows, large = torch.randn(33, 6, generator=generator), 2.0**40 * torch.randn(10, 33, generator=generator)
    order = torch.randperm(66, generator=generator)
    with torch.no_grad():
        first.weight.copy_(rows.repeat(2, 1)[order])
        first.bias.zero_()
        second.weight.copy_(torch.cat([large, -large], dim=1)[:, order])
        second.bias.fill_(2.0**-40)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_terms_that_cancel_are_not_taken_for_dependence(dtype: torch.dtype) -> None:
    model = cancelling(dtype)
    net = rs.trace(model, torch.randn(4, 6, dtype=dtype))
    assert net.units == 76
    x = torch.randn(1, 6, dtype=dtype)
    assert torch.equal(net(x), model(x))


@pytest.mark.parametrize("name", DEPENDENT)
def test_terms_that_cancel_hide_no_dependence(name: str) -> None:
    function, model = DEPENDENT[name][0], cancelling(torch.float32)
    with pytest.raises(rs.UnsupportedModel, match="other points of its batch"):
        rs.trace(lambda x: model(x + 0.001 * function(x)), torch.randn(4, 6))
    with pytest.raises(rs.UnsupportedModel, match="other points of its batch"):
        rs.trace(lambda x: torch.cat([model(x), x + 0.001 * function(x)], dim=1), torch.randn(4, 6))


def test_terms_that_cancel_hide_no_table_by_position() -> None:
    model = cancelling(torch.float32)
    with pytest.raises(rs.UnsupportedModel, match=r"other points of its batch.*add"):
        rs.trace(lambda x: torch.cat([model(x), x + 0.01 * TABLE[: len(x)]], dim=1), torch.randn(4, 6))


def test_numbers_alone() -> None:
    """A loop that takes numbers out of every point has the regions of the same function of rows."""
    torch.manual_seed(0)
    a, b = nn.Linear(4, 3).double(), nn.Linear(4, 5).double()

    def rows(x: Tensor) -> Tensor:
        z = a(x)
        best = torch.maximum(z[:, :1], F.leaky_relu(z[:, 1:2], 0.1)) - z[:, 2:].abs()
        return best + b(x).amax(dim=1, keepdim=True)  # type: ignore[no-any-return]

    def numbers(x: Tensor) -> Tensor:
        made = []
        for point in x:
            first, second, third = a(point)
            made.append(torch.maximum(first, F.leaky_relu(second, 0.1)) - third.abs() + b(point).max())
        return torch.stack(made)

    x = torch.randn(6, 4, dtype=D)
    net = rs.trace(numbers, x)
    assert net(x).shape == (6,) and net.units == rs.trace(rows, x).units
    assert len(rs.line_cells(net, x[0], x[1])) == len(rs.line_cells(rows, x[0], x[1]))
    cells, expected = (rs.plane_cells(f, rs.Plane.through(*x[:3])) for f in (numbers, rows))
    assert len(cells) == len(expected) and cells.verify().holds
    for measure in (
        lambda f: rs.boundary_crossings(f, x, radius=0.5, frame=np.eye(4)),
        lambda f: rs.boundary_distance(f, x),
        lambda f: rs.total_variation(f, x),
        lambda f: rs.total_variation(f, x, method="jacobian"),
        lambda f: rs.local_rank(f, x, eps=0),
        lambda f: rs.good_units(f, x),
    ):
        assert measure(numbers).per_point == pytest.approx(measure(rows).per_point, rel=1e-9)
