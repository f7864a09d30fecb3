"""Tables in a temporary file are the tables that were put there."""

import gc
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regionscope.geometry.spilled import Spilled, rows_in_file


def test_groups_of_arrays_are_read_as_often_as_one_likes() -> None:
    spilled = Spilled()
    groups: list[list[NDArray[Any]]] = [
        [np.arange(3), np.ones((2, 0))],
        [np.zeros((0, 2), np.int32)],
        [np.array([True]), np.eye(2), np.eye(1)],
    ]
    for group in groups:
        spilled.append(*group)
    for _ in range(2):
        for read, group in zip(spilled, groups, strict=True):
            assert [a.dtype for a in read] == [a.dtype for a in group]
            for a, b in zip(read, group, strict=True):
                np.testing.assert_array_equal(a, b)


def test_some_rows_of_tables_one_behind_another() -> None:
    random, spilled = np.random.default_rng(0), Spilled()
    tables = [random.normal(size=(n, 3)) for n in (5, 0, 1, 40)]
    for table in tables:
        spilled.append(np.asfortranarray(table))
    chosen = np.array([0, 1, 4, 5, 6, 44, 45])
    rows = rows_in_file(spilled, chosen)
    assert rows is not None and (rows == np.concatenate(tables)[chosen]).all()
    rows[0] = 7.0  # a copy, as any result
    again = rows_in_file(spilled, chosen)
    assert again is not None and (again == np.concatenate(tables)[chosen]).all()


def test_no_tables_are_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))  # no file is made
    assert rows_in_file(Spilled(), np.arange(0)) is None and not list(Spilled())


@pytest.mark.filterwarnings("error")
def test_no_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else set()
    spilled = Spilled()
    spilled.append(np.ones((9, 2)))
    rows = rows_in_file(spilled, np.arange(9))
    assert not list(tmp_path.iterdir())
    del spilled
    gc.collect()
    assert rows is not None and rows.sum() == 18
    del rows
    gc.collect()
    if before:
        assert set(os.listdir("/proc/self/fd")) == before
