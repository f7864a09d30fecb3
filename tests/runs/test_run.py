"""The run directory: what is in it is whole, whatever happens."""

import errno
import fcntl
import json
import math
import signal
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from faults import full_disk

import regionscope as rs
from regionscope.files import plain, read_json
from regionscope.runs.record import Record
from regionscope.runs.report import write_report
from regionscope.runs.run import Run, run_state


def estimate(mean: float) -> dict[str, object]:
    return {"mean": mean, "stderr": 0.1, "per_layer": [mean / 2, mean / 2]}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run.create(tmp_path / "mine", {"seed": 3, "rate": 1e-3})
    for step in (0, 10, 100):
        found = {"train": {"crossings": estimate(step + 0.5)}}
        run.record(Record(step, {"loss": 1.0 / (step + 1)}, found), weights={"weight": torch.full((2,), float(step))})
    return run


def test_what_was_recorded_is_read_again(run: Run) -> None:
    read = Run.open(run.path)
    assert read.config == {"seed": 3, "rate": 1e-3}
    assert read.versions["torch"] == torch.__version__.split("+")[0] or read.versions["torch"] == torch.__version__
    assert read.steps == [0, 10, 100]
    assert read.read(10).scalars == {"loss": 1 / 11}
    assert torch.equal(read.weights(100)["weight"], torch.full((2,), 100.0))
    assert read.curve("train/crossings") == ([0, 10, 100], [0.5, 10.5, 100.5])
    assert read.rows()[1] == {
        "step": 10, "loss": 1 / 11, "train/crossings": 10.5, "train/crossings/stderr": 0.1,
        "train/crossings/layer1": 5.25, "train/crossings/layer2": 5.25,
    }  # fmt: skip


def test_a_record_is_read_from_disk_once_and_new_ones_are_seen(run: Run) -> None:
    read = Run.open(run.path)
    first, rows = read.read(10), read.rows()
    (run.path / "steps" / "000000010" / "measures.json").write_text("lost")
    assert read.read(10) is first and read.rows() == rows
    run.record(Record(1000, {"loss": 0.0}))
    assert read.steps[-1] == 1000 and read.rows()[-1] == {"step": 1000, "loss": 0.0}


def test_all_that_a_status_says_reads_every_record_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counting(file: Path) -> dict[str, Any]:
        read.extend([file] if file.name == "measures.json" else [])
        return read_json(file)

    monkeypatch.setattr("regionscope.runs.run.read_json", counting)
    again = Run.open(run.path)
    assert (
        again.rows() and run_state(again) and not again.missing and not again.failures and again.has_phases() is False
    )
    assert read == [run.path / "steps" / f"{step:09d}" / "measures.json" for step in (0, 10, 100)]


def test_a_record_that_is_damaged_after_it_was_read_is_missing(run: Run) -> None:
    assert run.rows() and run.missing == {}
    (run.path / "steps" / "000000010" / "measures.json").write_text("{")
    (run.path / "steps" / "000000100" / "measures.json").unlink()
    assert list(run.missing) == [10, 100]


def test_a_record_without_accuracies_or_measures_does_not_silence_the_others(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    for k, step in enumerate(rs.log_steps(10_000, 20)):
        scores = {"train_accuracy": float(step > 100), "test_accuracy": 0.9 * (step > 1_000)}
        gaps = {1: {"train_accuracy": 0.0}, 2: {"train_accuracy": None, "test_accuracy": math.nan}}
        scalars: dict[str, float | None] = gaps.get(k, scores)  # type: ignore[assignment]
        probes = {"train": {"boundary_crossings": estimate(float(k))}} if k != 15 else {}
        run.record(Record(step, scalars, probes))
    found = run.phases()
    assert found.grokked and found.memorised == min(step for step in run.steps if step > 100)
    assert found.generalised == run.steps[15], "which has accuracies and no crossings"
    assert not any(step in (found.segments[0].first, found.segments[-1].last) for step in run.steps[15:16])
    run.close()


def test_labels_are_made_of_parts_whatever_a_measure_is_called(tmp_path: Path) -> None:
    options = {"local_rank": {"eps": 0.1}}
    run = Run.create(tmp_path / "run", {"measures": {**options, "mine, with comma": "function"}})
    found: dict[str, dict[str, Any]] = {"mine, with comma": {"mean": 1.0}, "local_rank": estimate(2.0)}
    run.record(Record(0, {"val/loss": 1.0, "train_accuracy": 0.5}, {"train": found}))
    assert run.name_and_options("train/mine, with comma") == ("mine, with comma at train", [])
    assert run.name_and_options("local_rank") == ("local rank", ["sum over layers", "eps 0.1"])
    assert run.label("train/local_rank") == "local rank at train, sum over layers, eps 0.1"
    assert run.label("train/local_rank/layer2") == "local rank at train, layer2, eps 0.1"
    assert run.label("val/loss") == "val/loss" and run.label("train_accuracy") == "train accuracy"
    assert run.plot("mine, with comma").get_ylabel() == "mine, with comma"
    plt.close("all")
    run.close()


def test_a_record_survives_json_and_cannot_be_changed() -> None:
    record = Record(
        3, {"loss": 0.5}, {"train": {"rank": estimate(2.0), "bounds": {"LC": {"left": 1.0, "right": 2}}}},
        {"three": 7}, {"train/broken": "ZeroDivisionError: no luck"}, 0.25,
    )  # fmt: skip
    assert Record.from_dict(json.loads(json.dumps(record.to_dict()))) == record
    assert "errors" not in Record(0).to_dict()
    with pytest.raises(FrozenInstanceError, match="cannot assign"):
        record.step = 4  # type: ignore[misc]
    flat = record.flat()
    assert flat["train/bounds/LC/left"] == 1.0 and flat["train/rank"] == 2.0 and flat["planes/three"] == 7
    assert list(flat)[:3] == ["loss", "train/rank", "train/rank/stderr"]


def test_a_run_is_not_overwritten_and_has_one_writer(run: Run) -> None:
    with pytest.raises(rs.RunExists, match="resume it"):
        Run.create(run.path, {})
    with pytest.raises(rs.RunLocked, match="another process"):
        Run.resume(run.path)
    with pytest.raises(RuntimeError, match="for reading"):
        Run.open(run.path).record(Record(1))
    run.close()
    again = Run.resume(run.path)
    with pytest.raises(ValueError, match="step 10 is in"):
        again.record(Record(10))


def test_the_lock_goes_with_the_process_that_held_it(tmp_path: Path) -> None:
    code = (
        "import sys, time; from regionscope.runs.run import Run; run = Run.create(sys.argv[1], {});"
        "print('up', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None and writer.stdout.readline()
        with pytest.raises(rs.RunLocked):
            Run.resume(tmp_path)
        writer.send_signal(signal.SIGKILL)
    Run.resume(tmp_path).close()


def test_a_run_may_be_closed_twice_and_by_those_who_only_read(run: Run) -> None:
    reader = Run.open(run.path)
    reader.close()
    assert run_state(reader) == "running"
    run.close()
    run.close()
    assert run_state(reader) == "recorded"


def test_nobody_writes_where_there_is_no_lock_or_locks_cannot_be_had(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.set_status(state="running")

    def refused(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", refused)
        assert run_state(run) == "killed"
    assert run_state(run) == "running"
    run.close()
    (run.path / "lock").unlink()
    assert run_state(run) == "killed"


def test_a_half_written_step_is_ignored_and_cleaned_up(run: Run) -> None:
    left = run.path / "steps" / ".000000200-abc"
    left.mkdir()
    (left / "measures.json").write_text('{"step": 2')
    assert Run.open(run.path).steps == [0, 10, 100]
    run.close()
    assert Run.resume(run.path).steps == [0, 10, 100]
    assert not left.exists()


def test_a_full_disk_leaves_no_half_step(run: Run) -> None:
    with full_disk(), pytest.raises(OSError, match=r"(?i)too large"):
        run.record(Record(200), weights={"weight": torch.zeros(100_000)})
    assert sorted(p.name for p in (run.path / "steps").iterdir()) == ["000000000", "000000010", "000000100"]
    run.record(Record(200), weights={"weight": torch.zeros(100_000)})
    assert run.steps[-1] == 200


def test_only_the_newest_state_is_kept(run: Run) -> None:
    assert run.latest_state() is None
    for step in (5, 50):
        run.save_state(step, {"momentum": torch.tensor([float(step)])}, {"epoch": step})
    found = run.latest_state()
    assert found is not None
    assert (found[0], found[1]["momentum"].tolist(), found[2]) == (50, [50.0], {"epoch": 50})
    assert [p.name for p in (run.path / "state").iterdir()] == ["000000050"]


def test_runs_are_listed_compared_and_exported(run: Run, tmp_path: Path) -> None:
    other = Run.create(tmp_path / "other", {})
    other.record(Record(10, probes={"train": {"crossings": estimate(7.0)}}))
    assert [r.path.name for r in rs.runs_in(tmp_path)] == ["mine", "other"]
    rows = rs.compared([run, other], "train/crossings")
    assert rows[1] == {"step": 10, str(run.path): 10.5, str(other.path): 7.0}
    assert rows[2][str(other.path)] is None
    with pytest.raises(KeyError, match="it has loss"):
        run.curve("nothing")
    for name in ("rows.csv", "rows.json", "rows.parquet"):
        run.export(tmp_path / name)
    assert (tmp_path / "rows.csv").read_text().splitlines()[1].startswith("0,1.0,0.5")
    assert json.loads((tmp_path / "rows.json").read_text())[2]["step"] == 100
    with pytest.raises(ValueError, match="must end in"):
        run.export(tmp_path / "rows.xls")
    assert len(run.table()) == 3


def test_damaged_and_foreign_files_are_named(run: Run) -> None:
    file = run.path / "steps" / "000000010" / "measures.json"
    for content, message in {
        '{"step": 1': "000000010.*damaged",
        "[10]": "damaged: it holds no table",
        '{"scalars": {}}': "no record: a record says its step",
        '{"step": 100}': "it is the record of step 100",
        '{"step": 10, "mood": 3}': "a record has no 'mood'; it has errors, planes",
        '{"step": 10, "scalars": {"loss": "low"}}': "scalars of a record cannot be {'loss': 'low'}",
        '{"step": 10, "probes": {"train": [1]}}': "probes of a record cannot be",
        '{"step": 10, "probes": {"train": {"rank": {"mean": "high"}}}}': "probes of a record cannot be",
        '{"step": 10, "probes": {"train": {"rank": {"mean": 1.0, "per_layer": 3}}}}': "probes of a record cannot be",
        '{"step": 10, "planes": {"three": 1.5}}': "planes of a record cannot be",
        '{"step": 10, "errors": {"train/rank": 1}}': "errors of a record cannot be",
        '{"step": 10, "seconds": true}': "seconds of a record cannot be True",
        '{"step": -1}': "step of a record cannot be -1",
    }.items():
        file.write_text(content)
        with pytest.raises(ValueError, match=message):
            run.read(10)
    with pytest.raises(FileNotFoundError, match=r"step 7 was not recorded in .*; there are 0, 10, 100"):
        run.read(7)
    (run.path / "run.json").write_text('{"version": 99}')
    with pytest.raises(ValueError, match="format 99"):
        Run.open(run.path)
    with pytest.raises(FileNotFoundError, match="there is no run"):
        Run.open(run.path / "nowhere")


def test_numbers_that_are_none_are_null() -> None:
    assert plain({"a": float("nan"), "b": (float("inf"), torch.tensor(2)), 3: Path("x")}) == {
        "a": None, "b": [None, 2], "3": "x",
    }  # fmt: skip


def test_a_report_shows_what_there_is(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 4 records of train/boundary_crossings"):
        run.phases()
    files = write_report(run, tmp_path / "report")
    assert [file.name for file in files] == ["curves.png", "report.md"]
    assert "crossings" in files[1].read_text() and "not recorded" in files[1].read_text()
    with pytest.raises(ValueError, match="nothing was recorded"):
        write_report(Run.create(tmp_path / "new", {}), tmp_path)


def test_a_record_whose_findings_are_no_tables_is_none() -> None:
    with pytest.raises(ValueError, match="probes of a record cannot be"):
        Record.from_dict({"step": 0, "probes": {"train": {"rank": 3.0}}})


def test_the_table_of_a_run_is_one_of_pandas_where_there_is_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run.create(tmp_path / "run", {})
    run.record(Record(3, {"loss": 0.5}, {}))
    row = {"step": 3, "loss": 0.5}
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=tuple))
    assert run.table() == (row,)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert run.table() == [row]
