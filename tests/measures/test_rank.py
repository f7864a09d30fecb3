"""Ranks that are counted without singular values."""

import numpy as np
import pytest
import torch
from torch import nn

import regionscope as rs
from regionscope.measures.rank import ranks_by_inertia


@pytest.mark.parametrize(("rows", "columns"), [(6, 6), (3, 9), (9, 3), (1, 5), (40, 40)])
@pytest.mark.parametrize("eps", [1e-3, 0.1, 1.0, 7.0])
def test_counts_are_those_of_singular_values(rows: int, columns: int, eps: float) -> None:
    rng = np.random.default_rng(rows)
    matrices = rng.standard_normal((50, rows, columns)) * np.geomspace(1e-4, 1, columns)
    matrices[:10, :, : columns // 2] = 0  # of lower rank
    matrices[10:12] = 0
    found = ranks_by_inertia(torch.tensor(matrices, dtype=torch.float32), eps, False, columns)
    values = np.linalg.svd(matrices.astype(np.float32).astype(np.float64), compute_uv=False)
    assert found.tolist() == (values >= eps).sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("matrix", "eps", "expected"),
    [
        (np.eye(3), 1.0, 3),  # as large as eps, to the last bit
        (0.7 * np.eye(3), 0.7, 3),  # which float32 cannot hold
        ([[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, -0.5]], 1.0, 1),  # a pivot of two rows
        (np.zeros((2, 2)), 0.1, 0),
    ],
)
def test_ties_and_pivots_of_two_rows_are_counted(matrix: object, eps: float, expected: int) -> None:
    assert ranks_by_inertia(torch.tensor(np.array([matrix]), dtype=torch.float32), eps, False, 4).tolist() == [expected]


def test_an_eps_that_rounding_reaches_is_left_to_singular_values() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 6), nn.ReLU())  # of rank two
    x = torch.randn(3, 4)
    assert rs.local_rank(model, x, eps=1e-9).per_point.tolist() == [2.0] * 3
    assert rs.local_rank(model, x, eps=1e-9).per_point.tolist() == rs.local_rank(model, x, eps=0).per_point.tolist()
