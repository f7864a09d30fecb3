"""Parts that fail while a model is watched: training goes on, what failed is recorded and said once."""

import errno
import os
import random
import subprocess
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases import mlp
from crashes import RecordingOs
from torch import Tensor, nn

import regionscope as rs
from regionscope import disk
from regionscope.runs.record import Record

POINTS = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))


def watching(path: Path | None = None, **options: Any) -> rs.Monitor:
    return rs.Monitor(network(), {"x": POINTS}, **{"measures": ["total_variation"], "run": path, **options})


@contextmanager
def told(*parts: str) -> Iterator[None]:
    """Each of these is warned of, once, and nothing else."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    texts = [str(warning.message) for warning in said]
    assert len(texts) == len(parts) and all(part in text for part, text in zip(parts, texts, strict=True)), texts


class Broken:
    """A logger that fails where it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where

    def log(self, step: int, values: dict[str, float]) -> None:
        if self.where == "log":
            raise ConnectionError("no network")

    def close(self) -> None:
        if self.where == "close":
            raise ZeroDivisionError("no luck")


@pytest.mark.parametrize(("where", "message"), [("log", "no network"), ("close", "no luck")])
def test_a_logger_that_raises_costs_neither_the_record_nor_the_run(where: str, message: str, tmp_path: Path) -> None:
    with told(f"the logger Broken could not {where}, training goes on: {message}"):
        monitor = watching(tmp_path / "run", loggers=[Broken(where)])
        monitor(0), monitor(1), monitor(2)
        monitor.close()
    run = rs.Run.resume(tmp_path / "run")  # it is not locked
    assert run.steps == [0, 1, 2]
    assert message in run.status["errors"]["the logger Broken"]
    strict = watching(loggers=[Broken(where)], strict=True)
    with pytest.raises((ConnectionError, ZeroDivisionError), match=message):
        [act() for act in (lambda: strict(0), strict.close)]


class Told:
    def __init__(self, value: Any) -> None:
        self.value = value

    def to_dict(self) -> Any:
        return self.value


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


ODD = {
    "text": "high", "text that looks like a number": "3.5", "bytes": b"3", "a list": [1, "a"], "a dict": {"mean": 1},
    "a vector": torch.zeros(5), "objects": np.array([object()]), "a finding of words": Told({"mean": "high"}),
    "a finding that is none": Told(3), "what holds itself": Told({"a": endless()}), "complex": torch.zeros(12) + 1j,
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_a_measure_that_returns_something_odd_is_an_error_of_its_own(name: str, tmp_path: Path) -> None:
    measures: dict[str, Any] = {"odd": lambda model, x: ODD[name], "total_variation": {}}
    with told("x/odd could not be measured"):
        monitor = watching(tmp_path, measures=measures)
        monitor(0), monitor(1)
        monitor.close()
    record = rs.Run.open(tmp_path).read(1)
    assert list(record.errors) == ["x/odd"] and list(record.probes["x"]) == ["total_variation"]


@pytest.mark.parametrize("value", ["low", "3", None, torch.zeros(3), {}, 10**400, 1j])
def test_a_scalar_that_is_no_number_is_recorded_as_an_error(value: Any, tmp_path: Path) -> None:
    with told("scalars/loss could not be measured"):
        monitor = watching(tmp_path)
        monitor(0, loss=value, other=2)
        monitor.close()
    record = rs.Run.open(tmp_path).read(0)
    assert list(record.errors) == ["scalars/loss"] and record.scalars == {"loss": None, "other": 2.0}


def test_a_loss_with_gradients_is_a_number(tmp_path: Path) -> None:
    monitor = watching(tmp_path)
    monitor(0, loss=torch.ones((), requires_grad=True) * 2)
    monitor.close()
    assert rs.Run.open(tmp_path).read(0).scalars == {"loss": 2.0}


@pytest.mark.parametrize("name", ["steps/000000000/measures.json", "status.json"])
@pytest.mark.filterwarnings("ignore:.*")
def test_a_damaged_file_at_closing_keeps_nobody_from_the_run(name: str, tmp_path: Path) -> None:
    monitor = watching(tmp_path)
    for step in range(5):
        monitor(step)
    assert monitor.run is not None
    monitor.run.set_status(state="x")
    (tmp_path / name).write_text("{")
    monitor.close()
    run = rs.Run.resume(tmp_path)
    assert "monitoring" in run.status
    assert len(run.rows()) == (4 if "steps" in name else 5)


def test_what_a_measure_of_ones_own_disturbs_is_put_right() -> None:
    model = network()
    model(POINTS).sum().backward()

    def rude(net: nn.Module, x: Tensor) -> float:
        net.train()
        net(x).sum().backward()
        random.random(), np.random.rand(), torch.rand(1)
        with torch.no_grad():
            next(net.parameters()).mul_(2)
        return 1.0

    def all_of_it() -> list[Any]:
        tensors = [
            t.tolist() for t in (*model.state_dict().values(), *(p.grad for p in model.parameters())) if t is not None
        ]
        states = [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]  # type: ignore[index]
        return [*tensors, *states, [module.training for module in model.modules()]]

    modes: list[bool] = []
    before = all_of_it()

    def mode(net: nn.Module, x: Tensor) -> float:
        modes.append(net.training)
        return 0.0

    measures: dict[str, Any] = {"rude": rude, "mode": mode}
    rs.Monitor(model, {"x": POINTS}, measures=measures, strict=True)(0)
    assert all_of_it() == before
    assert modes == [False], "the next one finds the model in evaluation mode"


def test_weights_that_are_nan_are_one_fact_and_not_an_error_of_every_measure(tmp_path: Path) -> None:
    model = network()
    model.get_parameter("0.weight").data.fill_(float("nan"))
    measures: dict[str, Any] = {"total_variation": {}, "good_units": {}, "own": lambda net, x: 7}
    with told("weights could not be measured, training goes on: ValueError: 0.weight holds NaN"):
        monitor = rs.Monitor(model, {"x": POINTS}, measures=measures, run=tmp_path)
        monitor(0), monitor(1)
        monitor.close()
    record = rs.Run.open(tmp_path).read(1)
    assert record.errors == {"weights": "ValueError: 0.weight holds NaN: there is nothing to measure"}
    assert list(record.probes["x"]) == ["own"]


class Autocast(nn.Module):
    """Computes in half precision, as many models do for speed."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.inner(x)


def test_a_model_that_uses_autocast_is_measured_in_the_dtype_of_its_weights() -> None:
    model = mlp(4, 8, 8, 2)
    measures = ["total_variation", "good_units", "local_rank", "boundary_crossings", "local_complexity"]
    options: dict[str, Any] = {"measures": measures, "strict": True, "planes": {"three": rs.Plane.through(*POINTS[:3])}}
    expected = rs.Monitor(model, {"x": POINTS}, **options)(0)
    inside = Autocast(model)
    found = [rs.Monitor(inside, {"x": POINTS}, **options)(0)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found.append(rs.Monitor(model, {"x": POINTS}, **options)(0))
    assert expected is not None
    assert all(record is not None and record.flat() == expected.flat() for record in found)
    assert inside(POINTS).dtype == torch.bfloat16, "autocast works as ever"


@pytest.mark.parametrize("name", ["a/b", "../../x", "..", "a\x00b", "x" * 300, "", "é" * 150, "a\\b", "a\nb"])
@pytest.mark.parametrize("kind", ["probe", "plane", "measure"])
def test_names_that_no_file_can_have_are_refused_at_once(kind: str, name: str, tmp_path: Path) -> None:
    plane = rs.Plane.through(*POINTS[:3])
    given: dict[str, dict[str, Any]] = {
        "probe": {"probes": {name: POINTS}}, "plane": {"planes": {name: plane}},
        "measure": {"measures": {name: lambda model, x: 0.0}},
    }  # fmt: skip
    with pytest.raises(ValueError, match=f"a {kind} cannot be named"):
        rs.Monitor(network(), **{"probes": {"x": POINTS}, **given[kind]}, run=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    run = rs.Run.create(tmp_path / "run", {})
    with pytest.raises(ValueError, match="a plane cannot be named"):
        run.record(Record(0), planes={name: rs.plane_cells(mlp(4, 3, 1), plane)})
    with pytest.raises(ValueError, match="a plane cannot be named"):
        run.plane(0, name)
    with pytest.raises(TypeError, match="a probe is named by text, got 3"):
        rs.Monitor(network(), {3: POINTS})  # type: ignore[dict-item]


@pytest.mark.parametrize("step", [-1, 1.5, float("nan"), float("inf"), "3", None, True, torch.zeros(2)])
def test_steps_are_whole_numbers_from_0_on(step: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a step must be a whole number from 0 on, got"):
        watching()(step)
    with pytest.raises(ValueError, match="a step must be a whole number from 0 on, got"):
        watching(steps=[0, step])
    with pytest.raises(ValueError, match="a step must be a whole number from 0 on, got"):
        rs.Run.create(tmp_path / "run", {}).record(Record(step))
    monitor = watching(tmp_path / "other", steps=[0, 10.0, np.int64(20)])
    kinds: list[Any] = [np.int32(0), 10.0, torch.tensor(20), 5]
    assert [monitor(kind) is not None for kind in kinds] == [True, True, True, False]
    monitor.close()
    assert rs.Run.open(tmp_path / "other").steps == [0, 10, 20]


# disks


def failing(code: int, after: int, *operations: str) -> Callable[[str, str], None]:
    """From so many operations on, every one of these kinds fails with this error."""
    done = [0]

    def fail(operation: str, path: str) -> None:
        done[0] += operation in operations
        if operation in operations and done[0] > after:
            raise OSError(code, os.strerror(code), path)

    return fail


FULL = {
    "no space left": (errno.ENOSPC, ("write",)), "no quota left": (errno.EDQUOT, ("write",)),
    "no inodes left": (errno.ENOSPC, ("create", "mkdir")), "read-only": (errno.EROFS, ("create", "mkdir", "move")),
    "broken": (errno.EIO, ("sync",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", FULL)
@pytest.mark.filterwarnings("ignore:step")
@pytest.mark.filterwarnings("ignore:what monitoring cost")
def test_records_that_a_disk_did_not_take_are_missing_and_nothing_half_written_stays(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, operations = FULL[kind]
    for after in range(0, 14):
        path = tmp_path / str(after)
        monitor = watching(path)
        monitor(0)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "os", RecordingOs(failing(code, after, *operations)))
            monitor(1), monitor(2)
        assert set(rs.Run.open(path).steps) | monitor.unwritten == {0, 1, 2}
        monitor.close()
        run = rs.Run.open(path)
        assert set(run.missing) == monitor.unwritten - set(run.steps)
        assert all(run.read(step).step == step for step in set(run.steps) - monitor.unwritten)
        run = rs.Run.resume(path)
        assert not list(path.rglob(".*"))
        run.close()
        with rs.Monitor(network(), {"x": POINTS}, measures=["total_variation"], run=path, resume=True) as again:
            for step in range(3):
                again(step)
        assert rs.Run.open(path).missing == {} and rs.Run.open(path).steps == [0, 1, 2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.decode().strip()}")
    yield place
    subprocess.run(["mount", "-o", "remount,rw", str(place)], capture_output=True, check=False)
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_really_full_makes_a_run_that_says_what_it_lacks(small_disk: Path) -> None:
    model = mlp(4, 64, 8)
    monitor = rs.Monitor(model, {"x": POINTS}, measures=["total_variation"], run=small_disk / "run")
    with pytest.warns(UserWarning, match="could not be written, training goes on: .*No space left"):
        list(map(monitor, range(60)))
    (small_disk / "run" / "steps" / "000000000" / "weights.safetensors").unlink()  # room for the last words
    monitor.close()
    run = rs.Run.open(small_disk / "run")
    assert 0 < len(run.steps) < 60
    assert set(run.missing) == set(range(60)) - set(run.steps) == set(run.status["unwritten"])


def test_a_run_on_a_disk_that_is_only_read_shows_its_state_and_its_report(small_disk: Path, tmp_path: Path) -> None:
    from regionscope.cli.commands import app

    with watching(small_disk / "run") as monitor:
        monitor(0)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    app(["status", str(small_disk)])
    app(["report", str(small_disk / "run"), "--out", str(tmp_path / "report")])
    assert (tmp_path / "report" / "report.md").exists()
    with pytest.raises(OSError, match=r"(?i)read-only file system.*; write it elsewhere with --out"):
        app(["report", str(small_disk / "run")])
    with pytest.raises(OSError, match=r"(?i)read-only file system"):
        rs.Run.resume(small_disk / "run")


def test_a_run_that_cannot_be_begun_or_read_is_not_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(disk, "os", RecordingOs(failing(errno.ENOSPC, 0, "write")))
        with pytest.raises(OSError, match="No space left") as kept:
            rs.Run.create(tmp_path / "run", {})
    run = rs.Run.create(tmp_path / "run", {})
    run.close()
    about = (tmp_path / "run" / "run.json").read_text()
    (tmp_path / "run" / "run.json").write_text("{")
    with pytest.raises(ValueError, match=r"run\.json is damaged") as damaged:
        rs.Run.resume(tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text(about)
    rs.Run.resume(tmp_path / "run").close()
    assert kept.value and damaged.value, "the errors, and what they hold, are still there"
