"""Tables that grow and change their width in the memory they have: a second copy would double the peak."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regionscope.machine import points_at_once, portions
from regionscope.types import Bools, Floats, Indices

LEAST = (1 << 22) + 1  # floats: so large that they are no part of the heap, which would keep holes where arrays were
LARGE = 1 << 21  # bytes of an array that is no part of the heap
SMALL = 1 << 20  # floats of a table that is a part of the heap: it is there again for the next sweep
LARGER = 1 << 24  # floats that any other table has room for: fetched at once its pages are large, grown they are small
STEP = 1 << 20  # floats that such a table grows by
ENTRIES_AT_ONCE = 1 << 19  # floats of a table that are worked on together: they stay in the heap
ROOM = 1 << 10  # rows that a cut may add to few


def usual_room(rows: int) -> int:
    """How many rows a table has room for while a site cuts, at first; what is not used takes no memory."""
    return 3 * rows + ROOM


def larger_copy(array: NDArray[Any], capacity: int) -> NDArray[Any]:
    """The same array with room for more rows; what is not used takes no memory."""
    shape = capacity, *array.shape[1:]
    if array.nbytes <= LARGE:
        new = np.empty(shape, array.dtype)
    else:
        size = math.prod(shape)
        new = np.empty(max(size, 8 * LEAST // array.itemsize), array.dtype)[:size].reshape(shape)
    new[: len(array)] = array
    return new


def marked_copy(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The same numbers, and -1 for each of those that are new."""
    new = np.full(size, -1, array.dtype)
    new[: len(array)] = array
    return new


def row_portions(rows: int, width: int) -> Iterator[slice]:
    """Rows of this width, as many together as a copy of takes little memory."""
    return portions(rows, points_at_once(width, floats=ENTRIES_AT_ONCE))


class Rows:
    """Rows of float64, one behind another at the begin of some memory, with room for more."""

    def __init__(self, rows: int, width: int) -> None:
        self.width = width
        self._memory = _memory(rows * width + min((usual_room(rows) - rows) * width, LARGER))

    @staticmethod
    def of(table: Floats) -> "Rows":
        """A copy of a table."""
        made = Rows(*table.shape)
        made.table(len(table))[:] = table
        return made

    def chosen(self, rows: Indices) -> "Rows":
        """A copy of some rows."""
        made, last = Rows(len(rows), self.width), int(rows.max(initial=-1)) + 1
        np.take(self.table(last), rows, axis=0, out=made.table(len(rows)), mode="clip")  # "raise" makes another copy
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
        if needed > size > SMALL:
            self._memory.resize(max(needed, size + STEP), refcheck=False)
        elif needed > size:
            small, self._memory = self._memory, _memory(needed)
            self._memory[:size] = small

    def keep(self, stays: Bools) -> int:
        """Leave some rows out; returns how many stay. Tables are of no use afterwards."""
        table, kept = self.table(len(stays)), 0
        for rows in row_portions(len(stays), self.width):
            part = table[rows][stays[rows]]
            table[kept : kept + len(part)] = part
            kept += len(part)
        return kept

    def thin(self, stays: Bools) -> None:
        """Leave some rows out, and give back the memory of many. Tables are of no use afterwards."""
        if len(self._memory) > (size := max(self.keep(stays) * self.width, LARGER)):
            self._memory.resize(size, refcheck=False)  # the C library gives the rest back


def _memory(floats: int) -> Floats:
    """For so many floats at least; what is not used takes none."""
    return np.empty(max(floats, SMALL if floats <= SMALL else LARGER))
