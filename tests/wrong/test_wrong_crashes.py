"""What once hung or crashed: every test is named after the script that showed it."""

import importlib
import pkgutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from numba.core.dispatcher import Dispatcher

import regionscope

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
    names = [module.name for module in pkgutil.walk_packages(regionscope.__path__, "regionscope.")]
    modules = [importlib.import_module(name) for name in names]
    kernels = {f: f"{m.__name__}.{n}" for m in modules for n, f in vars(m).items() if isinstance(f, Dispatcher)}
    assert len(kernels) > 20
    assert [name for kernel, name in kernels.items() if kernel.targetoptions.get("parallel")] == []
