"""Ranks that are counted without singular values."""

from typing import Any

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


# from few products


def matrices(rows: int, columns: int, spectrum: np.ndarray, seed: int = 0) -> np.ndarray:
    """A matrix with these singular values."""
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.standard_normal((rows, rows)))
    right, _ = np.linalg.qr(rng.standard_normal((columns, columns)))
    return np.asarray(left[:, : len(spectrum)] * spectrum @ right[: len(spectrum)])


def rank_of(matrix: np.ndarray, eps: float, n: int = 32, **options: Any) -> rs.Estimate:
    """The local rank of a network whose Jacobian is this matrix, at n points."""
    weight = torch.tensor(matrix)
    return rs.local_rank(
        lambda x: torch.relu(x @ weight.T), torch.zeros(n, matrix.shape[1], dtype=torch.float64), eps=eps,
        method="random", generator=torch.Generator().manual_seed(1), **options,
    )  # fmt: skip


@pytest.mark.parametrize(("rows", "columns"), [(300, 120), (120, 300), (150, 150)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_share_of_the_singular_values_is_estimated_with_its_error(rows: int, columns: int, share: float) -> None:
    spectrum = np.linspace(3.0, 0.05, min(rows, columns))
    eps = float(np.quantile(spectrum, 1 - share))
    found, true = rank_of(matrices(rows, columns, spectrum), eps), (spectrum >= eps).sum()
    assert not found.exact and found.point_stderr is not None
    assert abs(found.mean - true) < 3 * found.stderr + 0.01 * true
    assert 0.5 < found.per_point.std() / found.point_stderr.mean() < 1.5


def test_an_eps_far_below_most_of_the_spectrum_needs_more_directions_and_the_error_says_so() -> None:
    spectrum = np.geomspace(10.0, 0.01, 150)
    errors = []
    for directions in (16, 48):
        found = rank_of(matrices(150, 150, spectrum), 0.02, directions=directions)
        true = (spectrum >= 0.02).sum()
        assert found.point_stderr is not None
        assert (np.abs(found.per_point - true) < 3 * found.point_stderr).mean() > 0.9
        assert abs(found.mean - true) < 3 * found.stderr  # it is on one side at all points
        errors.append(abs(found.mean - true))
    assert errors[1] < errors[0] / 3


def test_few_large_singular_values_are_counted_one_by_one() -> None:
    spectrum = np.concatenate([[9.0, 7.0, 4.0, 3.0], np.full(100, 1e-3)])
    found = rank_of(matrices(400, 200, spectrum), 0.5)
    assert found.per_point.tolist() == [4.0] * 32 and found.point_stderr is not None
    assert found.point_stderr.tolist() == [0.0] * 32
    assert rank_of(matrices(400, 200, spectrum), 0.4, relative=True).per_point.tolist() == [3.0] * 32


@pytest.mark.parametrize("spectrum", [[2.0] * 12, [3.0, 3.0, 2.0, 1.0, 0.0, 0.0], [0.0] * 5])
def test_a_small_jacobian_is_seen_wholly(spectrum: list[float]) -> None:
    size = len(spectrum)
    exact = (np.array(spectrum) >= 0.5).sum()
    for rows, columns in ((40, size), (size, 40)):
        assert rank_of(matrices(rows, columns, np.array(spectrum)), 0.5, n=3).per_point.tolist() == [exact] * 3


def test_convolutions_have_about_their_exact_rank() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100, 9)
    )
    x = torch.rand(12, 1, 14, 14)
    for eps in (0.1, 0.3):
        exact = rs.local_rank(model, x, eps=eps)
        found = rs.local_rank(model, x, eps=eps, method="random", generator=torch.Generator().manual_seed(0))
        assert exact.exact and not found.exact
        assert found.mean == pytest.approx(exact.mean, rel=0.05)


def test_ranks_of_large_inputs_need_no_jacobian() -> None:
    """All directions of so many inputs at once would be an error."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Conv2d(4, 4, 3, stride=2), nn.ReLU())
    x = torch.rand(2, 3, 80, 80)
    found = rs.local_rank(model, x, eps=0.01, generator=torch.Generator().manual_seed(0))
    assert not found.exact and found.point_stderr is not None
    assert found.per_layer is not None and found.per_layer[:, 0] == pytest.approx(4 * 39 * 39, rel=0.05)
    with pytest.raises(ValueError, match="random directions count singular values"):
        rs.local_rank(model, x, eps=0, method="random")
    with pytest.raises(ValueError, match="no activation sites"):
        rs.local_rank(nn.Linear(2, 2), torch.zeros(1, 2), eps=0.1, method="random")
