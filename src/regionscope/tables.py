"""Rows as text, and as files that other programs read."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regionscope.files import plain


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of words as a table of text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def write_rows(rows: list[dict[str, Any]], path: Path) -> None:
    """Write rows as JSON, CSV or Parquet."""
    if path.suffix == ".json":
        path.write_text(json.dumps(plain(rows), indent=2) + "\n")
    elif path.suffix == ".csv":
        names = list(dict.fromkeys(name for row in rows for name in row))
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise ValueError("writing Parquet needs pyarrow: pip install 'regionscope[parquet]'") from error
        names = list(dict.fromkeys(name for row in rows for name in row))
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([dict.fromkeys(names) | row for row in rows]), path)
    else:
        raise ValueError(f"out must end in .json, .csv or .parquet, got {path}")
