"""Whether what a file says of cells fits together: a reader that followed numbers out of range would fail later."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regionscope.geometry.patterns import WINNER, Column
from regionscope.tracing.network import Site

Arrays = Mapping[str, NDArray[Any]]
PATTERN_ARRAYS: dict[str, tuple[str | int, ...]] = {
    "patterns.sizes": ("i", "blocks", 2), "patterns.common": ("u", "blocks", "words"),
    "patterns.varying": ("i", "bits"), "patterns.bits": ("u", "bytes"),
}  # fmt: skip


def axis_lengths(arrays: Arrays, wanted: Mapping[str, Sequence[str | int]]) -> dict[str, int]:
    """The lengths of axes by name, after the kind of numbers; an error if arrays are missing or differ in them.

    >>> axis_lengths({"a": np.zeros((3, 2)), "b": np.zeros(3, int)}, {"a": ("f", "n", 2), "b": ("i", "n")})
    {'n': 3}
    """
    lengths: dict[str, int] = {}
    for name, (kind, *axes) in wanted.items():
        if name not in arrays:
            raise ValueError(f"it has no {name}")
        array, found = arrays[name], zip(axes, arrays[name].shape, strict=False)
        known = tuple(lengths.setdefault(axis, k) if isinstance(axis, str) else axis for axis, k in found)
        if array.dtype.kind != kind or array.shape != known or array.ndim != len(axes):
            raise ValueError(f"its {name} is {array.dtype} {array.shape}, which does not fit the rest")
        if kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"its {name} holds what is no finite number")
    return lengths


def check_numbers(arrays: Arrays, name: str, first: int, end: int | NDArray[Any]) -> None:
    """An error if numbers of things are not from `first` on and before `end`."""
    if ((arrays[name] < first) | (arrays[name] >= end)).any():
        raise ValueError(f"its {name} holds numbers of things that it does not have")


def check_rising(arrays: Arrays, name: str, last: int, *, least: int) -> None:
    """An error if numbers do not rise from 0 to the last, by at least so much each."""
    steps = arrays[name]
    if len(steps) < 2 or steps[0] != 0 or steps[-1] != last or (np.diff(steps) < least).any():
        raise ValueError(f"its {name} does not rise from 0 to {last}")


def check_pattern_arrays(arrays: Arrays) -> None:
    """An error if blocks of patterns do not fit together."""
    lengths = axis_lengths(arrays, PATTERN_ARRAYS)
    cells, bits = arrays["patterns.sizes"].T.astype(object)  # Python's numbers, which do not overflow
    if not len(cells) or min(cells) < 1 or min(bits) < 0 or sum(bits) != lengths["bits"]:
        raise ValueError("its patterns.sizes does not fit the rest")
    if sum(cells * -(-bits // 8)) != lengths["bytes"]:
        raise ValueError("its patterns.bits does not fit the rest")
    check_numbers(arrays, "patterns.varying", 0, 64 * lengths["words"])


def check_columns(columns: Sequence[Column], words: int) -> None:
    """An error if they do not lie in patterns of so many words."""
    for column in columns:
        numbers = (column.first_word, column.words, column.entries, column.breakpoints)
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise ValueError(f"its column {column.name} says {numbers}")
        needed = column.entries * (column.breakpoints or WINNER)
        if column.first_word + column.words > words or needed > 64 * column.words:
            raise ValueError(f"its column {column.name} does not lie in patterns of {words} words")


def check_sites(sites: Sequence[Site]) -> None:
    for site in sites:
        told = (site.layer, *site.shape)
        if not all(isinstance(number, int) and 0 <= number < 1 << 40 for number in told) or len(site.shape) > 32:
            raise ValueError(f"its site {site.name} says {told}")
        if not all(isinstance(number, int | float) for number in site.breakpoints):
            raise ValueError(f"its site {site.name} has breakpoints that are no numbers")
