"""The lab: each thing once, shared, whole or absent, and the same after any interruption."""

import os
import signal
import time
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import forked

from regionscope.engines.tasks import TasksFailed
from regionscope.experiments.curves import curve_of, measurement_at_records, recorded_curve
from regionscope.experiments.lab import Lab, Measurement, _measure, _train
from regionscope.runs.run import Run, runs_in
from regionscope.training import loop
from regionscope.training.config import Training

SMALL = Training(size=100, test_size=50, depth=1, width=6, steps=20, records=5, points=5, measures=("total_variation",))


@dataclass(frozen=True)
class Wanted:
    value: float


CALLS: list[float] = []


def squared(settings: Wanted, lab: Lab) -> dict[str, Any]:
    CALLS.append(settings.value)
    if settings.value < 0:
        raise ArithmeticError("negative")
    return {"square": settings.value**2}


def test_what_is_measured_is_measured_once(tmp_path: Path) -> None:
    CALLS.clear()
    wanted = [Measurement(squared, Wanted(v)) for v in (2.0, 3.0, 2.0)]
    for _ in range(2):
        assert [float(found["square"]) for found in Lab(tmp_path).measured(wanted)] == [4.0, 9.0, 4.0]
    assert CALLS == [2.0, 3.0]


def test_a_task_that_another_process_did_meanwhile_does_nothing(tmp_path: Path) -> None:
    lab, wanted = Lab(tmp_path), Measurement(squared, Wanted(2.0))
    CALLS.clear()
    for _ in range(2):
        _measure(lab, wanted)
        _train(lab, SMALL)
        files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")}
    assert CALLS == [2.0]
    _train(lab, SMALL)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")} == files


def test_what_cannot_be_measured_at_a_record_is_named(tmp_path: Path) -> None:
    training = replace(SMALL, activation="gelu", steps=2, records=2, measures=())
    wanted = measurement_at_records(training, {"local_region_count": {"radius": 0.1}}, probes=("train",), points=2)
    lab = Lab(tmp_path)
    lab.runs([training])
    with pytest.raises(TasksFailed, match=r"train/local_region_count could not be measured at step 0 of .*smooth|gelu"):
        lab.measured([wanted])


def test_a_measurement_that_fails_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    wanted = [Measurement(squared, Wanted(v)) for v in (-1.0, 5.0)]
    with pytest.raises(TasksFailed, match=r"1 of 2 tasks failed.*squared-[0-9a-f]+: ArithmeticError: negative"):
        Lab(tmp_path).measured(wanted)
    CALLS.clear()
    assert float(Lab(tmp_path).measured(wanted[1:])[0]["square"]) == 25.0
    assert CALLS == []


def test_a_training_is_shared_and_measures_can_be_taken_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(tmp_path)
    run = lab.run(SMALL)
    monkeypatch.setattr(loop, "_take_step", None)  # nothing is trained any more
    assert lab.run(SMALL).path == run.path and len(runs_in(tmp_path)) == 1
    found = lab.measured([measurement_at_records(SMALL, {"total_variation": {}}, probes=("train", "test"), points=5)])
    for column in ("train/total_variation", "test/total_variation"):
        assert np.allclose(curve_of(found, column).runs[0], run.curve(column)[1], rtol=1e-5)
    assert recorded_curve(lab, [SMALL], "test_accuracy").runs[0] == pytest.approx(run.curve("test_accuracy")[1])
    assert lab.seconds([SMALL, SMALL]) == lab.seconds([SMALL]) > 0


def test_a_run_of_another_version_is_not_taken_for_this_one(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    run = lab.run(SMALL)
    file = run.path / "run.json"
    file.write_text(file.read_text().replace('"lr": 0.001', '"lr": 0.002'))
    with pytest.raises(ValueError, match="holds another training"):
        lab.run(SMALL)


LONG = Training(size=100, test_size=50, depth=1, width=6, steps=1500, records=8, measures=())


def _trains(folder: str, engine: str) -> None:
    """What a process does that trains into a folder."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    Lab(Path(folder), engine).run(LONG)


def _ended(process: BaseProcess) -> int | None:
    process.join(300)
    return process.exitcode


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    assert _ended(forked(_trains, str(folder), "serial")) == 0
    return runs_in(folder)[0]


@pytest.mark.parametrize(
    ("engine", "number"),
    [
        ("serial", signal.SIGINT),
        ("processes", signal.SIGINT),
        ("serial", signal.SIGKILL),
        ("processes", signal.SIGKILL),
    ],
)
def test_a_training_that_is_stopped_goes_on_with_equal_results(
    tmp_path: Path, whole: Run, engine: str, number: signal.Signals
) -> None:
    process = forked(_trains, str(tmp_path), engine)
    while not list(tmp_path.glob("runs/*/steps/000000001")):
        assert process.is_alive()
        time.sleep(0.02)
    assert process.pid is not None
    os.kill(process.pid, number)
    assert _ended(process) not in (0, None)
    (stopped,) = runs_in(tmp_path)
    assert stopped.status["state"] != "finished"
    assert _ended(forked(_trains, str(tmp_path), engine)) == 0
    (again,) = runs_in(tmp_path)
    assert _recorded(again) == _recorded(whole)


def _recorded(run: Run) -> dict[int, dict[str, bytes]]:
    return {step: {name: w.numpy().tobytes() for name, w in run.weights(step).items()} for step in run.steps}
