"""Tables that grow in the memory they have."""

import numpy as np
import pytest

from regionscope.geometry.rows import LARGER, SMALL, Rows


@pytest.mark.parametrize("floats", [100, SMALL, SMALL + 1, LARGER])
@pytest.mark.parametrize("grown", [SMALL + 2, LARGER + 2])
def test_a_table_keeps_its_rows_when_it_grows(floats: int, grown: int) -> None:
    rows = Rows(floats // 2, 2)
    last = floats // 2 - 1
    rows.table(last + 1)[[0, last]] = [[1, 2], [3, 4]]
    rows.make_room(grown // 2)
    assert rows.room >= grown // 2
    assert rows.table(last + 1)[[0, last]].tolist() == [[1, 2], [3, 4]]


def test_a_copy_of_a_table_is_not_the_table() -> None:
    table = np.arange(6.0).reshape(3, 2)
    rows = Rows.of(table)
    table[:] = 0
    assert rows.table(3).tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("width", [1, 200, 784, 150_528, 3_211_264])
def test_few_rows_are_not_given_much_more_memory_than_they_take(width: int) -> None:
    for rows in (4, 100):
        assert rows <= Rows(rows, width).room and Rows(rows, width).room * width <= rows * width + LARGER + SMALL


@pytest.mark.parametrize("width", [2, 1 << 20])
def test_rows_that_are_left_out_give_their_memory_back(width: int) -> None:
    rows = Rows(0, width)
    rows.make_room(20)
    rows.table(20)[:, 0] = range(20)
    rows.table(20)[:, -1] = range(20, 40)
    before = rows.room
    stays = np.arange(20) % 5 == 3
    rows.thin(stays)
    assert rows.table(4)[:, [0, -1]].tolist() == [[3, 23], [8, 28], [13, 33], [18, 38]]
    assert rows.room * width == (LARGER if width > 2 else before * width)
