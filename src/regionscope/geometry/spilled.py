"""Arrays that would not fit into memory, in a temporary file that goes with the last who uses it."""

import mmap
import tempfile
import weakref
from collections.abc import Iterator
from functools import cached_property
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from regionscope.types import Floats, Indices


class Spilled:
    """Groups of arrays, in the order in which they were put there; each time one goes through them they are read."""

    def __init__(self) -> None:
        self._groups = list[int]()

    def __len__(self) -> int:
        return len(self._groups)

    @cached_property
    def _file(self) -> IO[bytes]:
        file = tempfile.TemporaryFile(prefix="regionscope-")  # noqa: SIM115
        weakref.finalize(self, file.close)  # it is open as long as this is there
        return file

    def append(self, *arrays: NDArray[Any]) -> None:
        """Put a group behind those there are."""
        for array in arrays:
            np.save(self._file, array, allow_pickle=False)
        self._groups.append(len(arrays))

    def __iter__(self) -> Iterator[list[NDArray[Any]]]:
        if self._groups:
            self._file.seek(0)
        for arrays in self._groups:
            yield [np.load(self._file, allow_pickle=False) for _ in range(arrays)]


def rows_in_file(tables: Spilled, chosen: Indices) -> Floats | None:
    """Rows of tables (n, width), one behind another, with these numbers, which rise; None if there are no tables.

    An array that lies in a file of its own, and is read where one looks at it.
    """
    if not len(tables):
        return None
    with tempfile.TemporaryFile(prefix="regionscope-") as file:
        end = width = 0
        for (table,) in tables:
            begin, end, width = end, end + len(table), table.shape[1]
            table[chosen[slice(*np.searchsorted(chosen, [begin, end]))] - begin].tofile(file)
        file.flush()
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return np.frombuffer(whole, np.float64).reshape(-1, width)
