"""What once hung or crashed: every test is named after the script that showed it."""

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from numba.core.dispatcher import Dispatcher
from torch import nn

import regionscope as rs
from regionscope.plots import COLOURS
from regionscope.plots.style import figure_of

SHORT = """
import numba, torch, regionscope as rs
torch.set_num_threads(1)
model, x = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)), torch.zeros(4, 2)
for _ in range(20):
    rs.plane_cells(model, rs.Plane.coordinates(x[0]))
rs.local_region_count(model, x, radius=1.0, batch_size=1)
assert torch.get_num_threads() == 1
try:
    print("numba has started", numba.threading_layer())
except ValueError:
    print("numba has started no threads")
"""


@pytest.mark.parametrize("processes", [4, pytest.param(60, marks=pytest.mark.exhaustive)])
def test_exit_hang(processes: int) -> None:
    """Processes that cut planes end, two at a time; the threads that could keep them from it are never started."""

    def ended(_: int) -> tuple[int, str, str]:
        done = subprocess.run([sys.executable, "-c", SHORT], capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout, done.stderr

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(ended, range(processes))) == {(0, "numba has started no threads\n", "")}


def test_exit_hang_cannot_come_from_any_kernel() -> None:
    names = [module.name for module in pkgutil.walk_packages(rs.__path__, "regionscope.")]
    modules = [importlib.import_module(name) for name in names]
    kernels = {f: f"{m.__name__}.{n}" for m in modules for n, f in vars(m).items() if isinstance(f, Dispatcher)}
    assert len(kernels) > 20
    assert [name for kernel, name in kernels.items() if kernel.targetoptions.get("parallel")] == []


def straight() -> nn.Module:
    return nn.Linear(5, 2)


def one_cell() -> nn.Module:
    layer = nn.Linear(5, 2)
    nn.init.constant_(layer.bias, 99.0)
    return nn.Sequential(layer, nn.ReLU())


@pytest.mark.parametrize(("make", "units"), [(straight, 0), (nn.Identity, 0), (one_cell, 2)])
def test_nothing_bends(make: Callable[[], nn.Module], units: int, tmp_path: Path) -> None:
    model, x = make(), torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    cells, line = rs.plane_cells(model, rs.Plane.around(x[0], 0.1)), rs.line_cells(model, x[0], x[1])
    cells.save(tmp_path / "cells")
    for found in (cells, rs.PlaneCells.load(tmp_path / "cells", model)):
        assert found.patterns.shape == (1, units)
        assert found.functional_regions().tolist() == [0]
        assert found.adjacency().toarray().tolist() == [[0]]
        assert found.boundary_length().tolist() == [0] * (units > 0)
        assert found.verify().holds
    for colour in COLOURS:
        plt.close(figure_of(cells.plot(colour=colour)))
    assert line.patterns.shape == (1, units)
    assert line.functional_count() == len(line) == 1
    assert line.affine_maps()[0].shape == (*cells.affine_maps()[0].shape[:2], 1)
    plt.close(figure_of(line.plot()))
    assert rs.curve_cells(model, x, closed=True).patterns.shape == (1, units)
    assert rs.local_region_count(model, x, radius=0.1).per_point.tolist() == [1, 1, 1]
    assert rs.boundary_crossings(model, x, radius=0.1).mean == 0
    assert rs.good_units(model, x, per_unit=True).per_point.tolist() == [units] * 3


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_measures_differentiate_wherever_they_are_called(mode: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 2))
    seed = torch.Generator().manual_seed
    measures: list[Callable[[torch.Tensor], Any]] = [
        lambda x: rs.local_complexity(model, x, generator=seed(0)).per_point,
        lambda x: rs.total_variation(model, x).per_point,
        lambda x: rs.good_units(model, x).per_point,
        lambda x: rs.boundary_distance(model, x, good=True).per_point,
        lambda x: rs.local_rank(model, x, eps=0).per_point,
        lambda x: [
            b.left for b in rs.bounds(model, x, sigma=0.1, eta=0.1, eps=0.1, generator=torch.Generator().manual_seed(0))
        ],
    ]
    x = torch.randn(6, 3)
    for measure in measures:
        with mode():
            found = measure(1.0 * x)
        assert found == pytest.approx(measure(x), nan_ok=True)


@pytest.mark.parametrize("method", ["auto", "gram", "jacobian"])
def test_the_total_variation_of_one_number_a_point(method: str) -> None:
    x = torch.tensor([[1.0, -1.0, 2.0], [-1.0, -2.0, -3.0]])
    found = rs.total_variation(lambda x: torch.relu(x).sum(1), x, method=method)
    assert found.per_point == pytest.approx([2**0.5, 0])


def test_values_that_overflow_where_exact_arithmetic_is_needed_are_an_error() -> None:
    w = torch.tensor([0.1, 0.7, 0.3, -0.9, 0.45], dtype=torch.float64)

    def model(x: torch.Tensor) -> torch.Tensor:  # competitors that differ by less than rounding
        return torch.maximum(3 * (x * w).sum(dim=1, keepdim=True), x @ (3 * w)[:, None])

    torch.manual_seed(0)
    x = torch.randn(3, 5, dtype=torch.float64)
    assert (rs.boundary_distance(model, x).per_point > 0).all()
    x[1] = 1.7e308
    with pytest.raises(ValueError, match=r"no room for values as large as (inf|nan|1\.\d+e\+308); scale the points"):
        rs.boundary_distance(model, x)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors:UserWarning")
def test_a_layer_without_units() -> None:
    torch.manual_seed(0)
    first = nn.Linear(3, 4)
    model = nn.Sequential(first, nn.ReLU(), nn.Linear(4, 0), nn.ReLU(), nn.Linear(0, 2))
    x = torch.randn(5, 3)
    assert torch.equal(rs.trace(model, x)(x), model(x))
    plane = rs.Plane.around(x[0], 2.0, generator=torch.Generator().manual_seed(0))
    assert len(rs.plane_cells(model, plane)) == len(rs.plane_cells(nn.Sequential(first, nn.ReLU()), plane)) > 1
