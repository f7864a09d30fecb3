"""Tables that grow and change their width in the memory they have: a second copy would double the peak."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regionscope.types import Bools, Floats

LEAST = (1 << 22) + 1  # floats: so large that they are no part of the heap, which would keep holes where tables were
STEP = 1 << 20  # floats that memory grows by
LARGE = 1 << 21  # bytes of an array that is no part of the heap either
ROWS_AT_ONCE = 1 << 14  # that are moved together


def enlarged(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    """The same array with room for more rows; what is not used takes no memory."""
    size = capacity * math.prod(array.shape[1:])
    least = 8 * LEAST // array.itemsize if array.nbytes > LARGE else 0
    new = np.empty(max(size, least), array.dtype)[:size].reshape(capacity, *array.shape[1:])
    new[: len(array)] = array
    return new


class Rows:
    """Rows of float64, one behind another at the begin of some memory, with room for more."""

    def __init__(self, rows: int, width: int) -> None:
        self.width = width
        self._memory = np.empty(max(rows * width, LEAST))

    @staticmethod
    def of(table: Floats) -> "Rows":
        """A copy of a table."""
        made = Rows(*table.shape)
        made.table(len(table))[:] = table
        return made

    @property
    def room(self) -> int:
        """How many rows there is memory for."""
        return len(self._memory) // max(self.width, 1)

    def table(self, rows: int, width: int | None = None) -> Floats:
        """The first rows; as if they had another width, if one is given. It is of no use after the memory has grown."""
        width = self.width if width is None else width
        return self._memory[: rows * width].reshape(rows, width)

    def make_room(self, rows: int, width: int | None = None) -> None:
        """Have memory for so many rows at least; the C library moves large blocks without touching them."""
        needed, size = rows * (self.width if width is None else width), len(self._memory)
        if needed > size:
            self._memory.resize(max(needed, size + STEP), refcheck=False)

    def thin(self, stays: Bools) -> None:
        """Leave some rows out."""
        table, kept = self.table(len(stays)), 0
        for start in range(0, len(stays), ROWS_AT_ONCE):
            part = table[start : start + ROWS_AT_ONCE][stays[start : start + ROWS_AT_ONCE]]
            table[kept : kept + len(part)] = part
            kept += len(part)
