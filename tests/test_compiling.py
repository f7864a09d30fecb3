"""Loops that were compiled before."""

import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import IndexDataCacheFile

from regionscope import compiling

LOOP = """
from typing import NamedTuple
import numpy as np
from regionscope.compiling import njit

class {name}(NamedTuple):
    numbers: np.ndarray

@njit(cache=True)
def doubled(given):
    return {factor} * given.numbers

if __name__ == "__main__":
    import loops
    print(loops.doubled(loops.{name}(np.ones(1)))[0])
"""


def printed(folder: Path, **how: object) -> str:
    (folder / "loops.py").write_text(LOOP.format(**how))
    done = subprocess.run([sys.executable, "loops.py"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_loops_of_an_older_version_whose_types_are_gone_are_compiled_anew(tmp_path: Path) -> None:
    assert printed(tmp_path, name="Old", factor=2) == "2.0"
    assert printed(tmp_path, name="Renamed", factor=3) == "3.0"


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_loops_that_are_damaged_on_disk_are_compiled_anew(tmp_path: Path, ending: str) -> None:
    assert printed(tmp_path, name="Same", factor=2) == "2.0"
    (kept,) = tmp_path.rglob(f"*.{ending}")
    for damage in (kept.read_bytes()[:-9], b"", b"no pickle"):
        kept.write_bytes(damage)
        done = subprocess.run([sys.executable, "loops.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "2.0"


def test_a_disk_without_room_is_told_once_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling._announcer, "kept", True)
    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    for factor in (2, 3):
        kernel = compiling.njit(cache=True)(lambda x, factor=factor: factor * x)
        assert kernel(1) == factor
    assert [r.message for r in caplog.records if "kept (" in r.message] == [
        "regionscope: compiled kernels cannot be kept ([Errno 28] No space left on device);"
        " NUMBA_CACHE_DIR can name a folder"
    ]
