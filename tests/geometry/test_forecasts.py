"""Estimates of how many cells a plane has, against the cells that it has."""

import shutil
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import mlp
from torch import nn

import regionscope as rs
from regionscope.geometry import certificates, forecasts
from regionscope.geometry.budget import Budget
from regionscope.geometry.certificates import MOST, TRIED, CertificateCost, certificate_cost
from regionscope.geometry.forecasts import Forecast, forecast
from regionscope.geometry.sweep import exact
from regionscope.machine import GB

ROUNDING = 1e-6
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "dense": (
        lambda: nn.Sequential(nn.Linear(8, 60), nn.ReLU(), nn.Linear(60, 60), nn.ReLU(), nn.Linear(60, 3)), (8,)),
    "convolutions with max-pooling": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24, 3)),
        (1, 8, 8)),
}  # fmt: skip


def plane_of(name: str, radius: float) -> tuple[nn.Module, rs.Plane]:
    torch.manual_seed(3)
    make, shape = MODELS[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    return make(), rs.Plane.around(x, radius, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("radius", [0.5, 2.0, 8.0])
def test_a_forecast_is_right_to_within_its_error(name: str, radius: float, monkeypatch: pytest.MonkeyPatch) -> None:
    model, plane = plane_of(name, radius)
    cells, net = rs.plane_cells(model, plane), exact(rs.trace(model, plane.origin[None].float()))
    found = []
    for seed in range(6):
        monkeypatch.setattr(forecasts, "SEED", seed)
        found.append(forecast(net, plane))
    off = np.array([f.cells - len(cells) for f in found])
    errors = np.array([f.stderr for f in found])
    assert (np.abs(off) <= 4 * errors + ROUNDING).all()
    assert abs(off.mean()) <= 3 * np.sqrt(np.square(errors).sum()) / len(found) + ROUNDING  # no bias
    assert errors.mean() < 0.3 * len(cells)
    vertices = np.mean([f.vertices for f in found])
    assert 0.7 * len(cells.vertices) < vertices < 1.4 * len(cells.vertices)


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("margin", [1.2, 3.0, 30.0, 1000.0])
def test_a_forecast_is_right_where_boundaries_gather_in_the_middle(
    margin: float, trained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model, points, labels = mlp(784, 64, 64, 10), torch.rand(100, 784), torch.randint(10, (100,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(200 if trained else 0):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(points), labels).backward()
        optimizer.step()
    plane, net = rs.Plane.through(*points[:3], margin=margin), exact(rs.trace(model, points))
    cells = len(rs.plane_cells(model, plane))
    for seed in range(6):
        monkeypatch.setattr(forecasts, "SEED", seed)
        found = forecast(net, plane)
        assert abs(found.cells - cells) <= 3 * found.stderr + ROUNDING
        assert found.stderr < 0.2 * cells


def test_a_middle_that_is_too_much_to_cut_is_looked_at_in_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model, points = mlp(784, 64, 64, 10), torch.rand(3, 784)
    plane, net = rs.Plane.through(*points, margin=1000.0), exact(rs.trace(model, points))
    monkeypatch.setattr(forecasts, "MOST", 4000)  # of about twice as many
    found = forecast(net, plane)
    assert abs(found.cells - len(rs.plane_cells(model, plane))) <= 3 * found.stderr


def test_squares_that_are_all_of_a_plane_count_its_cells() -> None:
    torch.manual_seed(0)
    model, plane = mlp(5, 9, 9, 2), rs.Plane.around(torch.zeros(5), 1.0, generator=torch.Generator().manual_seed(0))
    found, cells = forecast(exact(rs.trace(model, plane.origin[None].float())), plane), rs.plane_cells(model, plane)
    assert (found.cells, found.stderr, found.vertices) == (len(cells), 0.0, len(cells.vertices))


@pytest.mark.parametrize("corners", [[[-9, -9], [9, -9], [0, 9]], [[-9, 0], [0, -9], [9, 0], [0, 9]]])
def test_a_forecast_is_of_any_polygon(corners: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = mlp(2, 60, 60, 2)
    plane, net = rs.Plane(torch.zeros(2), np.eye(2), corners), exact(rs.trace(model, torch.zeros(1, 2)))
    cells, found = len(rs.plane_cells(model, plane)), []
    for seed in range(6):
        monkeypatch.setattr(forecasts, "SEED", seed)
        found.append(forecast(net, plane).cells)
    assert np.mean(found) == pytest.approx(cells, rel=0.15)


def test_a_plane_without_boundaries_has_one_cell() -> None:
    linear = nn.Linear(3, 4)
    linear.bias.data.fill_(1e6)
    model = nn.Sequential(linear, nn.ReLU())
    net = exact(rs.trace(model, torch.zeros(1, 3)))
    found = forecast(net, rs.Plane(torch.zeros(3), np.eye(3)[:2], [[0, 0], [1, 0], [0, 1]]))
    assert (found.cells, found.stderr) == (1.0, 0.0)
    assert str(found).startswith("about 1 cells, ")


@pytest.mark.parametrize(
    ("cells", "seconds", "said"),
    [
        (1234.0, 0.2, "about 1,200 cells, give or take 10 %, 500 MB, 1 s to cut"),
        (4.56e6, 89.0, "about 4.6 million cells, give or take 10 %, 500 MB, 89 s to cut"),
        (4.56e7, 90.0, "about 46 million cells, give or take 10 %, 500 MB, 2 minutes to cut"),
        (1.2345e9, 9000.0, "about 1,234 million cells, give or take 10 %, 500 MB, 2.5 hours to cut"),
    ],
)
def test_a_forecast_is_told_in_words(cells: float, seconds: float, said: str) -> None:
    assert str(Forecast(cells, 0.1 * cells, cells, seconds, 0.5 * GB, 0.0)) == said


def test_a_forecast_tells_the_time_of_the_certificate() -> None:
    model, plane = plane_of("convolutions with max-pooling", 2.0)
    net = exact(rs.trace(model, plane.origin[None].float()))
    alone = forecast(net, plane)
    cost = certificate_cost(net, plane, alone)
    found = cost.added_to(alone)
    assert cost.each > 0 and cost.exactly > 0 and alone.certificate_seconds == 0
    assert found.certificate_seconds == cost.each * found.cells + cost.exactly
    assert str(CertificateCost(0.0, 7.0).added_to(alone)) == f"{alone} and 7 s to certify"
    assert certificate_cost(net, plane, alone, up_to_layer=1).each > 0  # without outputs


def test_the_certificate_is_timed_where_not_all_boundaries_meet() -> None:
    """As at an image with a blank background, where the competitors of a max-pooling tie: here, at the origin."""
    torch.manual_seed(0)
    net = exact(rs.trace(nn.Sequential(nn.Linear(2, 3000, bias=False), nn.ReLU()), torch.zeros(1, 2)))
    plane = rs.Plane.coordinates(torch.zeros(2))
    found = Forecast(6000.0, 0.0, 6000.0, 1.0, 0.0, 0.0)
    assert len(rs.plane_cells(net, rs.Plane.coordinates(torch.zeros(2), radius=1e-3))) == 6000, "however near"
    cells = certificates._some_cells(net, plane, found, None)
    assert cells is not None and TRIED / 2 <= len(cells) <= MOST * TRIED
    nothing = rs.trace(nn.Sequential(nn.Linear(2, 1), nn.ReLU()), torch.zeros(1, 2))
    whole = certificates._some_cells(exact(nothing), plane, replace(found, cells=2000.0), None)
    assert whole is not None and whole.plane.area == pytest.approx(plane.area), "there are no more"


def test_a_forecast_is_the_same_in_every_call_and_says_that_it_is_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "regionscope")
    model, plane = plane_of("dense", 2.0)
    net = exact(rs.trace(model, plane.origin[None].float()))
    first, again = (forecast(net, plane) for _ in range(2))
    assert (first.cells, first.stderr, first.bytes) == (again.cells, again.stderr, again.bytes)
    assert caplog.text.count("a plane of side 4 is estimated from small squares") == 2


def test_what_does_not_fit_is_refused_before_any_block_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    model, plane = plane_of("dense", 2.0)
    cells = len(rs.plane_cells(model, plane))

    def keep(*_: object) -> None:
        raise AssertionError("a block is finished")

    monkeypatch.setattr(Budget, "keep", keep)
    monkeypatch.setattr(Budget, "room", property(lambda self: 60_000 if self.memory else np.inf))
    with pytest.raises(
        rs.TooManyCells, match=r"more than max_cells=\d+ cells: about .* give or take .* by an estimate"
    ):
        rs.plane_cells(model, plane, max_cells=cells // 10)
    with pytest.raises(
        MemoryError, match=r"too little: about .* by an estimate; give .* [kM]B, look at a part of about 0"
    ):
        rs.plane_cells(model, plane, memory=10 * cells)
    full = shutil.disk_usage(".")._replace(free=cells)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: full)
    with pytest.raises(MemoryError, match=r"kB in .* are too little: about .* its outputs take \d+ kB there"):
        rs.plane_cells(model, plane)
