"""Rows as text, and as files that other programs read."""

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from regionscope.disk import whole_file
from regionscope.files import plain, write_text


def text_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of words as a table of text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def how_many(n: int, what: str) -> str:
    """A number of things, in words.

    >>> how_many(1, "point"), how_many(2000, "point")
    ('1 point', '2,000 points')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def some_of(n: int, most: int) -> list[int]:
    """At most so many of the numbers below n, evenly spaced, both ends among them.

    >>> some_of(10, 4), some_of(3, 4)
    ([0, 3, 6, 9], [0, 1, 2])
    """
    return sorted({round(k * (n - 1) / max(1, most - 1)) for k in range(most)}) if n > most else list(range(n))


def as_text(rows: list[dict[str, Any]], kind: str) -> str:
    """Rows as the text of a .json or .csv file."""
    if kind == ".json":
        return json.dumps(plain(rows), indent=2) + "\n"
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def html_table(rows: Sequence[Sequence[str]], about: str = "") -> str:
    """Rows of words as a table for notebooks, the first row its head, with a line below.

    >>> html_table([["a", "b"], ["1", "<2"]])
    '<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>&lt;2</td></tr></table>'
    """

    def line(row: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"

    below = f"<small>{escape(about)}</small>" if about else ""
    return f"<table>{line(rows[0], 'th')}{''.join(line(row, 'td') for row in rows[1:])}</table>{below}"


class Facts(ABC):
    """What can say in a few words what it is, to those who print it and as a table in notebooks."""

    @abstractmethod
    def _facts(self) -> dict[str, object]:
        """What there is to say, by name."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'; '.join(f'{what}: {value}' for what, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        return html_table([[type(self).__name__, ""], *([what, str(value)] for what, value in self._facts().items())])


class Text(str):
    """Words in several lines, shown as lines also where they are the last of a notebook's cell."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


def write_rows(rows: list[dict[str, Any]], path: Path) -> None:
    """Write rows as JSON, CSV or Parquet."""
    if path.suffix in (".json", ".csv"):
        write_text(path, as_text(rows, path.suffix))
    elif path.suffix == ".parquet":
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise ValueError("writing Parquet needs pyarrow: pip install 'regionscope[parquet]'") from error
        names = list(dict.fromkeys(name for row in rows for name in row))
        with whole_file(path) as file:
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist([dict.fromkeys(names) | row for row in rows]), file)
    else:
        raise ValueError(f"out must end in .json, .csv or .parquet, got {path}")
