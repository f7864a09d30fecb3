"""A run outlives power cuts and kills at any moment: what a cut can leave resumes to the same result, bit for bit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from crashes import HOW, Disk, RecordingOs

import regionscope as rs
from regionscope import disk
from regionscope.files import read_tensors
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
    status = {name: value for name, value in run.status.items() if name != "monitoring"}
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


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:the state of step")
def test_every_cut_leaves_a_run_that_comes_to_the_same(recorded: Recorded, tmp_path: Path) -> None:
    for count in range(len(recorded.operations.operations) + 1):
        for how in HOW:
            check_cut(recorded, count, how, tmp_path)
