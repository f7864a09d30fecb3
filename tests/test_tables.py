"""Rows that are written to files."""

import sys
from pathlib import Path

import pytest

from regionscope.tables import write_rows


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"writing Parquet needs pyarrow: pip install 'regionscope\[parquet\]'"):
        write_rows([{"step": 1}], tmp_path / "rows.parquet")
    assert not list(tmp_path.iterdir())
