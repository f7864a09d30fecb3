"""What it costs that nothing is lost: syncing what is saved, so that it outlives a power cut."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from networks import he_mlp, images, steps_of_training
from timing import Ratio, seconds

import regionscope as rs
from regionscope import disk
from regionscope.runs.record import Record
from regionscope.training.config import Training
from regionscope.training.loop import SELDOM

USUAL = Training()
SAVE_EVERY, SAMPLE, ROUNDS = 60.0, 50, 15


def ratios() -> Iterator[Ratio]:
    yield share_of_training()


class Unsynced:
    """`os` without its syncing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, file: int) -> None:
        pass


def share_of_training() -> Ratio:
    """Records are synced each; states every minute, and before records if they take at most a hundredth of the time."""
    model, x = he_mlp(784, 200, 200, 200, 200, 10), images(1000)
    train = steps_of_training(model, x, SAMPLE, fused=True)
    train()
    training = USUAL.steps * median(seconds(train) for _ in range(5)) / SAMPLE
    tensors = {f"{name}/{k}": w for name, w in model.state_dict().items() for k in range(3)}  # with Adam's moments
    with TemporaryDirectory(dir=Path.cwd()) as folder:  # not /tmp, which may be memory
        run, steps = rs.Run.create(Path(folder) / "run", {}), count()

        def record() -> None:
            run.record(Record(next(steps)), weights=model.state_dict())

        def state() -> None:
            run.save_state(step := next(steps), tensors, {"step": step})
            run.set_status(step=step)

        each = [_syncing(record), _syncing(state)]
    # one at the start, then as seldom as the rule says, but at the latest every minute
    states = 1 + min(USUAL.records, training / (SELDOM * each[1])) + training / SAVE_EVERY
    name = f"syncing {USUAL.records} records and {states:.0f} states in the time of {USUAL.steps:,} steps of 784-200x4"
    return Ratio(name, (USUAL.records * each[0] + states * each[1]) / training, 0.05)


def _syncing(write: Any) -> float:
    """Seconds that a write takes longer when it is synced."""
    synced, unsynced = [], []
    for _ in range(ROUNDS):
        synced.append(seconds(write))
        with patch.object(disk, "os", Unsynced()):
            unsynced.append(seconds(write))
    return max(0.0, median(synced) - median(unsynced))
