"""A run outlives power cuts and kills at any moment: what a cut can leave resumes to the same result, bit for bit."""

import errno
import os
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from crashes import HOW, Disk, RecordingOs

import regionscope as rs
from regionscope import disk
from regionscope.cli.commands import app
from regionscope.files import read_tensors
from regionscope.runs.run import run_state
from regionscope.training import loop
from regionscope.training.config import Training, training_data
from regionscope.training.loop import resume, train

TINY = Training(
    size=16, test_size=8, depth=1, width=3, batch_size=8, steps=9, records=5, points=2, plane=True,
    measures=("total_variation",),
)  # fmt: skip


@dataclass(frozen=True)
class Recorded:
    """A run that nothing disturbed: the operations on files, and what it came to."""

    root: Path
    operations: RecordingOs
    durable: list[tuple[int, int]]  # a step, and after how many operations its record was promised to stay
    result: Any


def result(path: Path) -> Any:
    """All that a run comes to, but how long it took: records, weights, the last state, the names of all files."""
    run = rs.Run.open(path)
    assert run.missing == {}
    records = {step: replace(run.read(step), seconds=None) for step in run.steps}
    state = run.latest_state()
    assert state is not None
    files = [file for file in path.rglob("*") if file.name not in ("lock", "run.json", "status.json", "measures.json")]
    contents = {str(f.relative_to(path)): tensors(f) if f.suffix == ".safetensors" else {} for f in files}
    told = ("monitoring", "errors", "unwritten")  # how it went
    status = {name: value for name, value in run.status.items() if name not in told}
    return records, state[0], contents, status


def tensors(file: Path) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in read_tensors(file)[0].items()}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    root = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        data = training_data(TINY)  # read once for hundreds of runs
        patch.setattr(loop, "training_data", lambda config: data)
        os_layer, durable = RecordingOs(), []
        patch.setattr(disk, "os", os_layer)
        write = rs.Run.record

        def noted(run: rs.Run, record: Any, **options: Any) -> None:
            write(run, record, **options)
            durable.append((record.step, len(os_layer.operations)))

        patch.setattr(rs.Run, "record", noted)
        train(TINY, root / "run", save_every=0)
        patch.setattr(rs.Run, "record", write)
        patch.setattr(disk, "os", os)  # what follows is not of this run
        yield Recorded(root, os_layer, durable, result(root / "run"))


def gone_on(path: Path) -> None:
    if (path / "run.json").exists():
        resume(path, save_every=0)
    else:
        train(TINY, path, save_every=0)


def check_cut(recorded: Recorded, count: int, how: str, tmp_path: Path) -> RecordingOs:
    """Cut the power after so many operations, and go on; the operations of that."""
    left = tmp_path / f"{count} {how}"
    tmp_path.mkdir(exist_ok=True)
    Disk(recorded.root, recorded.operations, count).left(how, count, left)
    promised = {step for step, after in recorded.durable if after <= count}
    if promised:
        run = rs.Run.open(left / "run")
        assert promised <= set(run.steps) - set(run.missing), "a record that was promised to stay is lost"
    again = RecordingOs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "os", again)
        gone_on(left / "run")
    assert result(left / "run") == recorded.result
    return again


def cuts(recorded: Recorded, every: int) -> Iterator[tuple[int, str]]:
    for count in range(0, len(recorded.operations.operations) + 1, every):
        yield count, HOW[count // every % len(HOW)]


@pytest.mark.filterwarnings("ignore:the state of step")
def test_a_run_that_loses_power_at_any_moment_comes_to_the_same(recorded: Recorded, tmp_path: Path) -> None:
    assert len(recorded.operations.operations) > 300
    for count, how in cuts(recorded, every=2):
        check_cut(recorded, count, how, tmp_path)


@pytest.mark.filterwarnings("ignore:the state of step")
def test_so_does_one_that_is_killed_while_it_goes_on(recorded: Recorded, tmp_path: Path) -> None:
    for count, how in cuts(recorded, every=97):
        again = check_cut(recorded, count, how, tmp_path / "first")
        for second in range(0, len(again.operations), 41):
            left = tmp_path / f"{count} {how} {second}"
            Disk(recorded.root, recorded.operations, count).left(how, count, left)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(disk, "os", RecordingOs(stopped_after(second)))
                with pytest.raises(KeyboardInterrupt):
                    gone_on(left / "run")
            gone_on(left / "run")
            assert result(left / "run") == recorded.result


def stopped_after(count: int) -> Callable[[str, str], None]:
    left = [count]

    def stop(operation: str, path: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    return stop


def broken_between(first: int, last: int, code: int) -> Callable[[str, str], None]:
    """Operations of a disk from the first to the last fail, such as when it is full until somebody makes room."""
    done = [0]

    def fail(operation: str, path: str) -> None:
        done[0] += 1
        if operation != "drop" and first <= done[0] < last:
            raise OSError(code, os.strerror(code), path)

    return fail


@pytest.mark.parametrize("lasting", [4, 10**9])
@pytest.mark.filterwarnings("ignore:.*could not be (saved|written)")
def test_a_disk_that_fills_up_makes_an_incomplete_run_that_resume_completes(
    lasting: int, recorded: Recorded, tmp_path: Path
) -> None:
    states = set()
    for first in range(15, len(recorded.operations.operations), 67):
        path = tmp_path / str(first)
        with pytest.MonkeyPatch.context() as patch:
            code = [errno.ENOSPC, errno.EROFS, errno.EDQUOT][first % 3]
            patch.setattr(disk, "os", RecordingOs(broken_between(first, first + lasting, code)))
            with suppress(OSError):
                train(TINY, path, save_every=0)
        run = rs.Run.open(path)
        states.add(run_state(run))
        assert (run_state(run) == "finished") == (run.steps == [0, 1, 2, 4, 9] and not run.missing)
        assert run_state(run) != "incomplete" or run.missing
        resume(path, save_every=0)
        assert result(path) == recorded.result
    assert ("incomplete" if lasting < 99 else "killed") in states


HARMS: dict[str, Callable[[Path], None]] = {
    "measures are gone": lambda step: (step / "measures.json").unlink(),
    "measures are cut off": lambda step: harmed(step / "measures.json"),
    "weights are gone": lambda step: (step / "weights.safetensors").unlink(),
    "weights are cut off": lambda step: harmed(step / "weights.safetensors"),
    "the plane is gone": lambda step: (step / "planes" / "train.npz").unlink(),
    "the step is gone": shutil.rmtree,
    "a file is in its place": lambda step: replaced(step),
}


def replaced(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("no folder")


def harmed(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


@pytest.mark.parametrize("harm", HARMS)
def test_steps_that_are_deleted_or_damaged_are_told_and_brought_back(
    harm: str, recorded: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(recorded.root / "run", path := tmp_path / "run")
    for step in (2, 9):
        HARMS[harm](path / "steps" / f"{step:09d}")
    assert sorted(rs.Run.open(path).missing) == [2, 9]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        app(["status", str(path)])
        app(["report", str(path), "--out", str(tmp_path / "report")])
    said = capsys.readouterr().out
    assert "incomplete" in said
    assert said.count("step 2 is missing: ") == 2 and said.count("step 9 is missing: ") == 2
    assert "step 2 is missing: " in (tmp_path / "report" / "report.md").read_text()
    resume(path, save_every=0)
    assert run_state(rs.Run.open(path)) == "finished"
    assert result(path) == recorded.result


def test_records_with_weights_are_measured_again_without_training(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(recorded.root / "run", path := tmp_path / "run")
    (path / "steps" / "000000004" / "measures.json").write_text("{")

    def no_training(*_: object) -> float:
        raise AssertionError("nothing has to be trained")

    monkeypatch.setattr(loop, "_take_step", no_training)
    resume(path)
    assert result(path) == recorded.result


def test_a_signal_while_lost_records_are_brought_back_stops_at_once_and_nothing_is_lost(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(recorded.root / "run", path := tmp_path / "run")
    shutil.rmtree(path / "steps" / "000000002")
    steps, take_step = list[int](), loop._take_step

    def stopped(*given: Any) -> float:
        steps.append(1)
        signal.raise_signal(signal.SIGTERM)
        return take_step(*given)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "_take_step", stopped)
        run = resume(path, save_every=0)
    assert run_state(run) == "stopped" and len(steps) == 1
    resume(path, save_every=0)
    assert result(path) == recorded.result


@pytest.mark.parametrize("harm", ["cut off", "a bit changed", "gone"])
def test_a_damaged_state_is_named_and_an_older_one_taken(harm: str, recorded: Recorded, tmp_path: Path) -> None:
    cut = next(k for k, o in enumerate(recorded.operations.operations) if o[-1].endswith("state/000000004")) + 1
    Disk(recorded.root, recorded.operations, cut).left("nothing lost", 0, tmp_path / "left")
    path = tmp_path / "left" / "run"
    assert rs.Run.open(path).states == [3, 4]
    file = path / "state" / "000000004" / "tensors.safetensors"
    data = file.read_bytes()
    file.write_bytes(data[:-1] if harm == "cut off" else data[:-1] + bytes([data[-1] ^ 1]))
    if harm == "gone":
        file.unlink()
    with pytest.warns(UserWarning, match="the state of step 4 is not taken: .*tensors.safetensors"):
        resume(path, save_every=0)
    assert result(path) == recorded.result


@pytest.mark.filterwarnings("ignore:the state of step")
def test_a_damaged_state_never_takes_the_place_of_a_whole_one(recorded: Recorded, tmp_path: Path) -> None:
    """Found by trying all cuts: a record and every state before it gone, the only other state damaged."""
    shutil.copytree(recorded.root / "run", path := tmp_path / "run")
    shutil.rmtree(path / "steps" / "000000002")
    harmed(path / "state" / "000000009" / "tensors.safetensors")
    resume(path, save_every=0)
    assert result(path) == recorded.result


@pytest.mark.parametrize("name", ["status.json", "run.json"])
def test_a_run_that_cannot_be_read_does_not_hide_the_others(
    name: str, recorded: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in ("good", "bad"):
        shutil.copytree(recorded.root / "run", tmp_path / run)
    (tmp_path / "bad" / name).write_text('{"state": 3}')
    app(["status", str(tmp_path)])
    said = capsys.readouterr().out
    assert "finished" in said and "damaged" in said
    assert (
        f"bad/{name} is damaged: state of a run cannot be 3" if name == "status.json" else "bad has format None"
    ) in said
    if name == "status.json":
        with pytest.warns(UserWarning, match="status.json is damaged.*it counts as empty"):
            resume(tmp_path / "bad")
        assert result(tmp_path / "bad") == recorded.result


@pytest.mark.parametrize("how", HOW)
def test_a_cut_after_the_end_brings_nothing_back(recorded: Recorded, tmp_path: Path, how: str) -> None:
    check_cut(recorded, len(recorded.operations.operations), how, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:the state of step")
def test_every_cut_leaves_a_run_that_comes_to_the_same(recorded: Recorded, tmp_path: Path) -> None:
    for count in range(len(recorded.operations.operations) + 1):
        for how in HOW:
            check_cut(recorded, count, how, tmp_path)
