"""What exact arithmetic cannot settle is said to be open, and why; what it can settle it settles right."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regionscope as rs
from regionscope.geometry import bases, kernels, rational, settling
from regionscope.geometry.budget import Budget
from regionscope.geometry.modular import primes_below
from regionscope.geometry.rational import Exact
from regionscope.geometry.settling import Undecided

SQUARE = rs.Plane.coordinates(torch.zeros(2).double(), radius=1.0)


def no_bend(x: Tensor) -> Tensor:
    """relu(3 z) - 3 relu(z) is 0, but for rounding, so it bends nowhere."""
    z = x @ torch.tensor([[0.3, -0.7], [0.9, 0.1]]).double() + 0.2
    return torch.relu(torch.relu(3 * z) - 3 * torch.relu(z))


def blank_images() -> tuple[nn.Module, rs.Plane]:
    """Max-pooling of images that differ in their middle only: elsewhere equal constants compete."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 8), nn.ReLU())
    with torch.no_grad():
        model[0].bias.copy_(torch.tensor([0.1, -0.1, 0.3, 0.0]))  # type: ignore[operator]
    corners = torch.zeros(3, 1, 8, 8)
    corners[:, :, 2:5, 3:6] = torch.rand(3, 1, 3, 3, generator=torch.Generator().manual_seed(1))
    return model, rs.Plane.through(*corners)


def test_what_is_settled_exactly_does_not_bend() -> None:
    cells = rs.plane_cells(no_bend, SQUARE, certified=True)
    assert len(cells) == 4 and cells.close_decisions > 0 == cells.undecided


def test_without_work_signs_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "WORK", 0.0)
    cells = rs.plane_cells(no_bend, SQUARE)
    assert not cells.exact and cells.undecided > 0
    with pytest.raises(Undecided, match="within the bounds of rounding, and exact arithmetic would take too long"):
        rs.plane_cells(no_bend, SQUARE, certified=True)


def test_without_enough_primes_signs_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rational, "LARGEST", 1000)
    assert rs.plane_cells(no_bend, SQUARE).undecided > 0


def test_cells_that_rounding_has_torn_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "cut_cells", lambda *_: kernels.TORN)
    with pytest.raises(ArithmeticError, match="a boundary crosses it more than once; look at a larger part"):
        rs.plane_cells(no_bend, SQUARE)


def test_primes_are_all_that_there_are() -> None:
    assert list(primes_below(60)) == [59, 53, 47, 43, 41, 37, 31, 29, 23, 19, 17, 13, 11, 7, 5, 3]


def test_division_by_many_numbers_has_no_exact_form() -> None:
    divisors = torch.arange(3, 1200, 2).double()
    weights = torch.randn(2, len(divisors), generator=torch.Generator().manual_seed(1)).double()

    def divided(x: Tensor, at: slice = slice(None)) -> Tensor:
        z = torch.relu(x @ weights[:, at] / divisors[at])
        return torch.relu(3 * z.sum(dim=1, keepdim=True) - (3 * z).sum(dim=1, keepdim=True))

    corner = rs.Plane.coordinates(torch.ones(2).double(), radius=0.1)
    with pytest.raises(Undecided, match="division by many different numbers has no exact form"):
        rs.plane_cells(divided, corner, certified=True)
    few = rs.plane_cells(lambda x: divided(x, slice(20)), corner, certified=True)
    assert few.close_decisions > 0 == few.undecided


def test_constants_are_compared_once_or_said_to_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    model, plane = blank_images()
    cells = rs.plane_cells(model, plane, certified=True)
    assert cells.exact and cells.close_decisions > 0
    monkeypatch.setattr(settling, "WORK", 0.0)
    hasty = rs.plane_cells(model, plane)
    assert hasty.undecided > 0 and len(hasty) == len(cells)


def test_constants_too_large_to_be_numbered_are_compared_in_every_match(monkeypatch: pytest.MonkeyPatch) -> None:
    model, plane = blank_images()
    cells, enough = rs.plane_cells(model, plane), Exact.enough
    pooled = [rs.trace(model, torch.zeros(1, 1, 8, 8)).sites[0].exit]
    monkeypatch.setattr(Exact, "enough", lambda self, v, points: None if v == pooled else enough(self, v, points))
    one_by_one = rs.plane_cells(model, plane, certified=True)
    assert one_by_one.close_decisions > cells.close_decisions and (one_by_one.patterns == cells.patterns).all()


@pytest.mark.parametrize("room", [8_000, 30_000])
def test_constants_are_the_same_if_units_come_in_passes(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, plane = blank_images()
    whole = rs.plane_cells(model, plane)
    monkeypatch.setattr(Budget, "room", property(lambda self: np.inf if self.memory is None else room))
    monkeypatch.setattr(Budget, "check", lambda self, widest: None)
    cells = rs.plane_cells(model, plane)
    number = whole.locate(cells.centres)
    assert cells.exact and sorted(number) == list(range(len(whole)))
    assert (cells.patterns == whole.patterns[number]).all()


def test_constants_of_wide_networks_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.1 - 0.1 behind the first layer is 0 where images are blank, which bounds on rounding leave open."""
    first, second = nn.Conv2d(1, 2, 3), nn.Conv2d(2, 1, 1, bias=False)
    torch.manual_seed(0)
    nn.init.normal_(first.weight)
    with torch.no_grad():
        first.bias.fill_(0.1)  # type: ignore[union-attr]
        second.weight.copy_(torch.tensor([1.0, -1.0]).view(1, 2, 1, 1))
    model, plane = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Flatten()), blank_images()[1]
    whole = rs.plane_cells(model, plane, certified=True)
    monkeypatch.setattr(bases, "WIDE", 0)
    cells = rs.plane_cells(model, plane, certified=True)
    number = whole.locate(cells.centres)
    assert cells.close_decisions > 0 and sorted(number) == list(range(len(whole)))
    assert (cells.patterns == whole.patterns[number]).all()


def test_constants_that_are_clear_leave_others_open() -> None:
    """The boundary of the first unit only touches two corners; the third unit is 5 everywhere."""
    plane = rs.Plane.coordinates(torch.zeros(3).double(), radius=1.0)
    cells = rs.plane_cells(lambda x: torch.relu(x + torch.tensor([-1.0, 0.0, 5.0])), plane, certified=True)
    assert len(cells) == 2 and cells.patterns[:, 2].all() and not cells.patterns[:, 0].any()


def test_blank_inputs_that_compete_at_once_are_equal() -> None:
    plane = blank_images()[1]
    cells = rs.plane_cells(nn.Sequential(nn.MaxPool2d(4), nn.Flatten()), plane, certified=True)
    assert cells.exact and len(cells) > 4 and cells.verify().holds


def test_a_limit_below_another_is_taken_as_torch_takes_it() -> None:
    """The boundary of the second layer meets corners of the first, so exact arithmetic has to know the constant."""

    def limited(x: Tensor) -> Tensor:
        return torch.relu(torch.relu(x) + torch.clamp(x, 1.0, -0.5))

    cells = rs.plane_cells(limited, SQUARE, certified=True)
    also = rs.plane_cells(lambda x: torch.relu(torch.relu(x) - 0.5), SQUARE, certified=True)
    assert len(cells) == len(also) == 9
    assert cells.verify().holds and cells.verify().checked_exactly
    assert np.sort(cells.areas) == pytest.approx(np.sort(also.areas), abs=1e-12)


def test_cells_of_the_first_layers_are_verified_though_maxima_follow() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Unflatten(1, (2, 4)), nn.MaxPool1d(2), nn.Flatten())
    cells = rs.plane_cells(model, SQUARE, up_to_layer=1)
    certificate = cells.verify()
    assert certificate.holds and certificate.checked_exactly
