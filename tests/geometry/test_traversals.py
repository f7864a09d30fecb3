"""Compiled loops over cells, where no other test looks at them alone."""

import numpy as np

from regionscope.geometry import traversals


def test_of_two_constants_that_are_on_no_side_nobody_is_known_to_have_won() -> None:
    # a plane of a CNN on a blank background had the smaller one win: both matches were won by constant 5, it seemed
    told = np.array([[5, 7, 5, 9, 0, 0]] * 4 + [[5, 5, -1, 9, 0, 0]], np.int32)
    over = np.array([[0, 0], [1, 1], [0, 0], [1, 0], [0, 0]], bool)
    under = np.array([[0, 0], [0, 0], [1, 1], [0, 1], [0, 0]], bool)
    traversals.play_constants(told, 4, over, under, np.array([0, 2]), np.array([1, 3]))
    assert told[:, 4:].tolist() == [[-1, -1], [5, 5], [7, 9], [5, 9], [5, 9]]
