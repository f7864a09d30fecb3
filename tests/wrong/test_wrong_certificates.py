"""Results about classes and curves that were wrong once."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from oracles import decision_distances
from torch import Tensor, nn
from torch.nn import functional as F

import regionscope as rs


def linear(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    layer = nn.Linear(len(weight[0]), len(weight)).double()
    layer.weight.data, layer.bias.data = torch.tensor(weight).double(), torch.tensor(bias).double()
    return layer


@pytest.mark.parametrize("label", range(3))
def test_certified_tie(label: int) -> None:
    model = nn.Sequential(
        linear([[1, 0], [0, 1]], [-1, -1]), nn.ReLU(), linear([[1, 2], [3, -1], [-2, 1]], [0, 0, 0])
    )  # dead at 0: all outputs are 0
    x, labels = torch.zeros(1, 2).double(), torch.tensor([label])
    assert rs.certified_radius(model, x, labels).mean == 0
    assert rs.robust_accuracy(model, x, labels, "none").mean == 0


def test_certified_smooth() -> None:
    model = nn.Sequential(linear([[5]], [0]), nn.Tanh(), linear([[0], [1]], [0.9, 0]))
    x, labels = torch.tensor([[2.0]]).double(), torch.tensor([1])
    with pytest.raises(ValueError, match="not piecewise linear: it has no linear regions"):
        rs.certified_radius(rs.trace(model, x, allow_smooth=True), x, labels)
    monitor = rs.Monitor(model, {"p": (x, labels)}, measures=["certified_radius"])
    with pytest.warns(UserWarning, match="p/certified_radius could not be measured.*not piecewise linear"):
        record = monitor(0)
    assert record is not None
    assert record.probes == {"p": {}}
    assert "no certified radius" in record.errors["p/certified_radius"]


def test_fgsm_l2() -> None:
    model = nn.Linear(100, 2)
    model.weight.data = 0.05 * torch.stack([torch.ones(100), -torch.ones(100)])
    model.bias.data.zero_()
    x, labels = torch.full((1, 100), 0.5), torch.tensor([0])  # 5 away from the decision boundary
    for attack in ("pgd", "apgd", "fgsm"):
        assert rs.robust_accuracy(model, x, labels, attack, radius=4.99, norm="L2").mean == 1
        assert rs.robust_accuracy(model, x, labels, attack, radius=5.01, norm="L2").mean == 0
    model.weight.data *= 40  # now the cross-entropy is flat in float32
    for attack in ("pgd", "apgd", "fgsm"):
        assert rs.robust_accuracy(model, x, labels, attack, radius=1.0).mean == 0
    assert rs.robust_accuracy(model, x, labels, radius=1.0, loss="cross-entropy", restarts=1).mean == 1


def length(model: nn.Module) -> float:
    return rs.plane_cells(model, rs.Plane.coordinates(torch.zeros(2).double())).decision_boundary().length


def test_decision_touching() -> None:
    first = linear([[0, 1], [0, -1], [1, 0]], [0, 0, 9])
    model = nn.Sequential(first, nn.ReLU(), linear([[3, -3, 1], [0, 0, 0], [-1, -1, 0]], [-10, 0, 0]))
    assert length(model) == pytest.approx(math.sqrt(4 + 4 / 9), rel=1e-12), "x + 3y - 1, 0 and -|y|"
    assert length(linear([[1, 0], [-1, 0], [0, 0]], [0, 0, 0])) == pytest.approx(2, rel=1e-12), "x, -x and 0"
    assert length(linear([[1, 0], [0, 0]], [1, 0])) == 0, "x + 1 and 0 tie on the rim"
    assert length(linear([[0, 0], [1, 0]], [0, 1])) == 0


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("places", [(1, 0, 1), (1, 0, 0, 1), (1, 1, 0, 0, 0, 1, 1), (1, 2, 1)])
def test_curve_repeated_point(places: tuple[int, ...], sign: int) -> None:
    model = nn.Sequential(linear([[sign]], [0]), nn.ReLU())
    cells = rs.curve_cells(model, torch.tensor(places).double()[:, None])
    assert cells.lengths.tolist() == [2.0]


def squared_distances(model: nn.Sequential, x: torch.Tensor, label: int) -> tuple[list[Fraction], list[Fraction]]:
    """The squares of how far it is, in rational arithmetic, to all boundaries and to a change of the largest output."""
    value = [Fraction(v) for v in x.tolist()]
    slopes = [[Fraction(int(i == j)) for j in range(len(x))] for i in range(len(x))]
    units: list[Fraction] = []

    def farther(gap: Fraction, slope: list[Fraction]) -> list[Fraction]:
        return [gap**2 / sum(s * s for s in slope)] if any(slope) else []

    for part in model:
        if isinstance(part, nn.ReLU):
            units += [d for v, row in zip(value, slopes, strict=True) for d in farther(v, row)]
            slopes = [[s * (v > 0) for s in row] for v, row in zip(value, slopes, strict=True)]
            value = [max(v, Fraction(0)) for v in value]
            continue
        assert isinstance(part, nn.Linear)
        weight = [[Fraction(w) for w in row] for row in part.weight.tolist()]
        value = [
            sum((w * v for w, v in zip(row, value, strict=True)), Fraction(b))
            for row, b in zip(weight, part.bias.tolist(), strict=True)
        ]
        columns = list(zip(*slopes, strict=True))
        slopes = [[sum(w * s for w, s in zip(row, column, strict=True)) for column in columns] for row in weight]
    others = [j for j in range(len(value)) if j != label]
    apart = [[a - b for a, b in zip(slopes[label], slopes[j], strict=True)] for j in others]
    return units, [
        d for j, s in zip(others, apart, strict=True) for d in farther(max(value[label] - value[j], Fraction(0)), s)
    ]


def exact_outputs(model: nn.Sequential, value: list[Fraction]) -> list[Fraction]:
    """In rational arithmetic."""
    for part in model:
        if isinstance(part, nn.ReLU):
            value = [max(v, Fraction(0)) for v in value]
            continue
        assert isinstance(part, nn.Linear)
        rows = zip(part.weight.tolist(), part.bias.tolist(), strict=True)
        value = [sum((Fraction(w) * v for w, v in zip(row, value, strict=True)), Fraction(b)) for row, b in rows]
    return value


@pytest.mark.parametrize("seed", range(40))
def test_certified_radii_and_distances_of_badly_scaled_networks_are_those_of_rational_arithmetic(seed: int) -> None:
    torch.manual_seed(seed)
    inputs, depth, span = 1 + seed % 3, 2 + seed % 5, (0, 8, 25, 50)[seed % 4]
    layers = [nn.Linear(inputs if i == 0 else 4, 4 if i < depth else 3).double() for i in range(depth + 1)]
    for layer in layers[:-1]:
        layer.weight.data *= 2.0 ** torch.randint(-span, span + 1, layer.weight.shape)
        layer.weight.data[1], layer.bias.data[1] = layer.weight.data[0], layer.bias.data[0]
    layers[-1].weight.data[:, :2] += (1e4 if span < 9 else 1.0) * torch.tensor(
        [1, -1]
    )  # of two units that are the same
    model = nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])
    x = torch.randn(8, inputs).double() + 1e3 * (not span)
    labels = model(x).argmax(dim=1)
    radii, distances = rs.certified_radius(model, x, labels).per_point, rs.boundary_distance(model, x).per_point
    for point, label, radius, distance in zip(x, labels, radii, distances, strict=True):
        units, outputs = squared_distances(model, point, int(label))
        nearest = min([*units, *outputs], default=None)
        assert nearest is None or math.isfinite(radius)
        if outputs and min(outputs) == nearest:  # the decision changes before the region ends
            assert Fraction(radius) ** 2 <= nearest
        for way in (w for axis in torch.eye(inputs).double() for w in (axis, -axis)) if math.isfinite(radius) else ():
            there = [
                Fraction(a) + Fraction(radius) * Fraction(w) for a, w in zip(point.tolist(), way.tolist(), strict=True)
            ]
            found = exact_outputs(model, there)
            assert radius == 0 or max(found) == found[int(label)]
        expected = math.sqrt(min(units)) if units else math.inf
        assert distance == pytest.approx(expected, rel=1e-9, abs=1e-9 * float(point.norm()))


def test_what_cancels_to_a_slope_of_zero_is_not_flat() -> None:
    model = nn.Sequential(
        linear([[1], [1], [1]], [0, 0, 0]), nn.ReLU(), linear([[1e16, 1, -1e16], [0, 0, 0]], [0, 1e3])
    )
    found = rs.certified_radius(model, torch.tensor([[3.0]]).double(), torch.tensor([1]))
    assert found.mean <= 3, "x - 1000, where the slopes in float64 add up to zero"


SHIFT = torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
BETWEEN: dict[str, Callable[[Tensor], Tensor]] = {
    "a quotient": lambda h: torch.addcdiv(SHIFT, h, SHIFT.abs() + 1, value=0.3),
    "an interpolation": lambda h: F.interpolate(h.view(-1, 1, 2, 2), size=(3, 2), mode="bilinear").flatten(1)[:, :4],
}


@pytest.mark.parametrize("name", BETWEEN)
def test_equal_competitors_do_not_void_a_certified_radius_behind(name: str) -> None:
    torch.manual_seed(0)
    first, last = nn.Linear(3, 4).double(), nn.Linear(4, 2).double()

    def between(x: Tensor) -> Tensor:
        return BETWEEN[name](first(x))

    def twice(x: Tensor) -> Tensor:
        h = between(x)
        out: Tensor = last(torch.maximum(h, h.clone()).relu())
        return out

    x = torch.randn(5, 3, dtype=torch.float64)

    def once(x: Tensor) -> Tensor:
        out: Tensor = last(between(x).relu())
        return out

    # of the region without a maximum
    inside = np.minimum(decision_distances(once, x), rs.boundary_distance(once, x).per_point)
    found = rs.certified_radius(twice, x, twice(x).argmax(dim=1))
    assert (inside > 0).all()
    assert (found.per_point >= (1 - 1e-6) * inside).all()
    certificate = rs.plane_cells(twice, rs.Plane.through(*x[:3]), certified=True).verify()
    assert certificate.holds and certificate.checked_exactly
