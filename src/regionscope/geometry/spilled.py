"""A table that would not fit into memory, in a temporary file that goes with the last array of it."""

import mmap
import tempfile
import weakref
from functools import cached_property
from itertools import pairwise
from typing import IO

import numpy as np

from regionscope.types import Floats, Indices


class Spilled:
    """Tables (n, width), one behind another."""

    def __init__(self) -> None:
        self._ends, self._width = [0], 0

    @cached_property
    def _file(self) -> IO[bytes]:
        file = tempfile.TemporaryFile(prefix="regionscope-")  # noqa: SIM115
        weakref.finalize(self, file.close)
        return file

    def append(self, table: Floats) -> None:
        """Put a table behind those there are."""
        table.tofile(self._file)
        self._ends.append(self._ends[-1] + len(table))
        self._width = table.shape[1]

    def rows(self, chosen: Indices) -> Floats | None:
        """Those with these numbers, which rise: an array that lies in a file, too, and is read where it is looked at.

        None if there are no tables.
        """
        if len(self._ends) == 1:
            return None
        made = Spilled()
        self._file.seek(0)
        for begin, end in pairwise(self._ends):
            table = np.fromfile(self._file, count=(end - begin) * self._width).reshape(-1, self._width)
            made.append(table[chosen[slice(*np.searchsorted(chosen, [begin, end]))] - begin])
        made._file.flush()
        whole = mmap.mmap(made._file.fileno(), 0, access=mmap.ACCESS_COPY)
        return np.frombuffer(whole, np.float64).reshape(-1, self._width)
