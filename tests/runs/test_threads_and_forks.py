"""Threads and forks: parallel calls give the serial result, nothing hangs, and the interpreter exits."""

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import mlp
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import regionscope as rs

POINTS = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


CALLS: dict[str, Callable[[nn.Module], Any]] = {
    "trace": lambda model: [site.name for site in rs.trace(model, POINTS).sites],
    "complexity": lambda model: rs.local_complexity(model, POINTS, draws=2, generator=seeded()).per_point.tolist(),
    "crossings": lambda model: rs.boundary_crossings(model, POINTS, radius=0.5, generator=seeded()).per_point.tolist(),
    "variation": lambda model: rs.total_variation(model, POINTS).per_point.tolist(),
    "rank": lambda model: rs.local_rank(model, POINTS, eps=0.1).per_point.tolist(),
    "distance": lambda model: rs.boundary_distance(model, POINTS).per_point.tolist(),
    "plane": lambda model: rs.plane_cells(model, rs.Plane.through(*POINTS[:3])).areas.tolist(),
    "line": lambda model: rs.line_cells(model, POINTS[0], POINTS[1]).breakpoints.tolist(),
}


def test_parallel_calls_from_several_threads_give_the_serial_result() -> None:
    shared = mlp(4, 8, 8, 2)
    own = [deepcopy(shared) for _ in CALLS]
    serial = {name: call(shared) for name, call in CALLS.items()}
    with ThreadPoolExecutor(8) as pool:
        for models in ([shared] * len(CALLS), own):
            for _ in range(2):
                calls = zip(CALLS.values(), models, strict=True)
                found = [pool.submit(call, model) for call, model in calls]
                assert {name: f.result(120) for name, f in zip(CALLS, found, strict=True)} == serial


def test_monitors_in_several_threads_leave_the_model_in_its_mode() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)).train()
    start = threading.Barrier(4)

    def watched(_: int) -> dict[str, float | None]:
        start.wait(60)
        record = rs.Monitor(model, {"x": POINTS}, measures=["total_variation", "good_units"], strict=True)(0)
        assert record is not None
        return record.flat()

    alone = rs.Monitor(model, {"x": POINTS}, measures=["total_variation", "good_units"], strict=True)(0)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(watched, range(4)):
            assert alone is not None and found == alone.flat()
    assert all(module.training for module in model.modules())


class Measured(Dataset[Tensor]):
    """Measures in the workers of a loader, which are forked."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def __len__(self) -> int:
        return 4

    def __getitem__(self, k: int) -> Tensor:
        cells = rs.plane_cells(self.model, rs.Plane.through(*POINTS[k : k + 3]))
        return torch.tensor([rs.total_variation(self.model, POINTS).mean, float(len(cells))])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_workers_that_are_forked_while_others_trace_do_not_hang(tmp_path: Path) -> None:
    model, data = mlp(4, 8, 8, 2), Measured(mlp(4, 8, 8, 2))
    serial = torch.stack([data[k] for k in range(4)])
    stop = threading.Event()

    def trace() -> None:
        while not stop.is_set():
            rs.trace(model, POINTS)

    thread = threading.Thread(target=trace)
    thread.start()
    try:
        with rs.Monitor(model, {"x": POINTS}, measures=["total_variation"], run=tmp_path / "run") as monitor:
            for step in range(2):
                loader = DataLoader(data, batch_size=4, num_workers=2, timeout=120, multiprocessing_context="fork")
                for batch in loader:
                    assert monitor(step) is not None
                    assert torch.equal(batch, serial)
    finally:
        stop.set()
        thread.join()
    assert rs.Run.open(tmp_path / "run").steps == [0, 1]


FORKED = """
import os, sys, torch, regionscope as rs
run = rs.Run.create(sys.argv[1], {})
child = os.fork()
if child == 0:
    del run
    sys.exit(0)
os.waitpid(child, 0)
from regionscope.runs.run import run_state
assert run_state(run) == 'running', "the lock went with the child"
model, x = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)), torch.randn(6, 4)
import threading
threading.Thread(target=lambda: [rs.total_variation(model, x) for _ in range(20)]).start()
rs.total_variation(model, x)
print("done")
"""


def test_a_child_does_not_take_the_lock_with_it_and_the_interpreter_exits(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path / "run")], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
