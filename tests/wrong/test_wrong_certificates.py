"""Results about classes and curves that were wrong once."""

import math

import pytest
import torch
from torch import nn

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
