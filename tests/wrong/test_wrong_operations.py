"""What operations really compute: arguments, further outputs, and values that leave torch."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import regionscope as rs


def assert_same_measures(one: Callable[[Tensor], Tensor], other: Callable[[Tensor], Tensor], x: Tensor) -> None:
    for measure in (rs.total_variation, rs.boundary_distance, lambda f, x: rs.local_rank(f, x, eps=0)):
        assert measure(one, x).per_point == pytest.approx(measure(other, x).per_point, rel=1e-5)


def test_addmm_alpha() -> None:
    A, b = torch.randn(5, 3), torch.randn(3)
    assert_same_measures(
        lambda x: F.relu(torch.addmm(b, x, A, alpha=0.1)), lambda x: F.relu(b + 0.1 * (x @ A)), torch.randn(3, 5)
    )
    assert_same_measures(
        lambda x: F.relu(torch.addmm(b, x, A, beta=3, alpha=-2)),
        lambda x: F.relu(3 * b - 2 * (x @ A)),
        torch.randn(3, 5),
    )


def test_scatter_value_tangent() -> None:
    A = nn.Linear(4, 4)
    first = torch.zeros(1, 1, dtype=torch.long)
    assert_same_measures(
        lambda x: F.relu(A(x).scatter(1, first.expand(len(x), 1), 5.0)),
        lambda x: torch.cat([torch.full((len(x), 1), 5.0), F.relu(A(x)[:, 1:])], 1),
        torch.randn(3, 4),
    )


def test_a_constant_in_two_arguments_drops_out_of_one() -> None:
    c = torch.tensor([2.0, 3.0, 4.0])
    assert_same_measures(lambda x: F.relu(torch.addcmul(c, x, c)), lambda x: F.relu(c + x * c), torch.randn(3, 3))
    assert_same_measures(lambda x: F.relu(torch.lerp(x, c, c)), lambda x: F.relu(x + c * (c - x)), torch.randn(3, 3))


def test_max_indices() -> None:
    L = nn.Linear(2, 3)

    def jumps(x: Tensor) -> Tensor:
        values, positions = L(x).max(dim=1, keepdim=True)
        return values + positions  # type: ignore[no-any-return]

    with pytest.raises(rs.UnsupportedModel, match="computes with the positions"):
        rs.trace(jumps, torch.zeros(1, 2))
    pool = nn.MaxPool2d(2, return_indices=True)
    with pytest.raises(rs.UnsupportedModel, match=r"positions|not known to be affine|neither"):
        rs.trace(lambda x: nn.MaxUnpool2d(2)(*pool(x)), torch.randn(1, 1, 4, 4))


def test_not_affine_views() -> None:
    L, x = nn.Linear(6, 6), torch.randn(4, 6)
    with pytest.raises(rs.UnsupportedModel, match="view_as_complex"):
        rs.trace(lambda x: torch.view_as_complex(L(x).view(-1, 3, 2)).abs(), x)
    with pytest.raises(rs.UnsupportedModel, match="complex"):
        rs.trace(lambda x: torch.complex(L(x), x).abs(), x)
    M = nn.Linear(6, 6).double()
    with pytest.raises(rs.UnsupportedModel, match=r"view\.dtype"):
        rs.trace(lambda x: M(x).view(torch.float32)[:, 1::2], x.double())


OUTSIDE: dict[str, Callable[[Tensor], Any]] = {
    "numpy": lambda x: x.detach().numpy().max() < 3,
    "array": lambda x: np.asarray(x.detach()).max() < 3,
    "tolist": lambda x: x.tolist()[0][0] < 3,
    "item": lambda x: x.max().item() < 3,
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_numpy_control_flow(name: str) -> None:
    L = nn.Linear(2, 4)
    with pytest.raises(rs.UnsupportedModel, match=r"outside torch|data-dependent"):
        rs.trace(lambda x: F.relu(L(x)) if OUTSIDE[name](x) else -L(x), torch.zeros(1, 2))


def test_values_that_leave_torch_unseen_are_noticed_far_away() -> None:
    def in_another_thread(x: Tensor) -> Tensor:
        with ThreadPoolExecutor(1) as pool:
            return x.relu() + pool.submit(F.relu, x - 20).result()

    def through_bytes(x: Tensor) -> Tensor:
        copied: Tensor = pickle.loads(pickle.dumps(x))
        return x.relu() + (copied + 20).clamp(max=0)

    for function in (in_another_thread, through_bytes):
        with pytest.raises(rs.UnsupportedModel, match="does not reproduce the model at other inputs"):
            rs.trace(function, torch.zeros(1, 2))


def test_sparse_constant() -> None:
    S = torch.randn(5, 6).relu().to_sparse()
    with pytest.raises(rs.UnsupportedModel, match=r"sparse_coo.*to_dense"):
        rs.trace(lambda x: F.relu((S @ x.T).T), torch.randn(3, 6))


def test_maximum_broadcast() -> None:
    L, x = nn.Linear(6, 4), torch.randn(3, 6)

    def pairs(x: Tensor) -> Tensor:
        return torch.maximum(L(x)[:, :, None], L(x)[:, None, :]).flatten(1)

    def one_by_one(x: Tensor) -> Tensor:
        z = L(x)
        return torch.stack([torch.maximum(z[:, i], z[:, j]) for i in range(4) for j in range(4)], dim=1)

    assert rs.total_variation(pairs, x).per_point == pytest.approx(rs.total_variation(one_by_one, x).per_point)
    assert rs.local_complexity(pairs, x, draws=2).per_point.shape == (3,)


def zeroed(x: Tensor) -> Tensor:
    h = 2 * x
    h[:, 0] = 0
    return F.relu(h)


def into_columns(x: Tensor) -> Tensor:
    h = (2 * x).t()
    h[1:3] += 1.0
    h[:2].relu_()
    return h.t()


def turned(x: Tensor) -> Tensor:
    h = x * 2
    h.transpose_(0, 1)
    return h.t().relu()


RNN = nn.RNN(2, 4, nonlinearity="relu", batch_first=True)
GRID = F.affine_grid(torch.tensor([[[0.9, 0.1, 0.0], [-0.1, 0.8, 0.1]]]), [1, 2, 8, 8], align_corners=False)
FALSELY_REFUSED: dict[str, tuple[Callable[[Tensor], Any], tuple[int, ...]]] = {
    "upsampling": (nn.Sequential(nn.Conv2d(2, 2, 1), nn.ReLU(), nn.Upsample(scale_factor=2)), (2, 8, 8)),
    "upsampling by a broken factor": (lambda x: F.interpolate(x, scale_factor=(1.7, 2.3)).relu(), (1, 2, 3)),
    "a column set to zero": (zeroed, (6,)),
    "writes into columns": (into_columns, (6,)),
    "a view turned in place": (turned, (6,)),
    "recurrent": (lambda x: RNN(x.view(-1, 3, 2))[0], (6,)),
    "tokens first": (
        lambda x: F.relu(x.view(-1, 3, 2).transpose(0, 1).reshape(-1, 2)).view(3, -1, 2).transpose(0, 1),
        (6,),
    ),
    "a fixed grid": (
        lambda x: F.grid_sample(x.relu(), GRID.expand(len(x), -1, -1, -1), align_corners=False),
        (2, 8, 8),
    ),
}


@pytest.mark.parametrize("name", FALSELY_REFUSED)
def test_false_refusals(name: str) -> None:
    function, shape = FALSELY_REFUSED[name]
    x = torch.randn(5, *shape)
    net = rs.trace(function, x)
    assert net.piecewise_linear and net.sites
    assert torch.allclose(net(x), function(x), atol=1e-5)
    assert net.verify(x).holds


def test_cells_of_a_network_with_a_fixed_grid_have_affine_maps() -> None:
    x = torch.randn(2, 2, 8, 8, dtype=torch.float64)

    def sampled(x: Tensor) -> Tensor:
        grid = GRID.double().expand(len(x), -1, -1, -1)
        return F.grid_sample(x.relu(), grid, align_corners=False).relu()

    cells = rs.line_cells(sampled, x[0], x[1])
    slopes, _ = cells.affine_maps()
    start, end = sampled(x).flatten(1).numpy()
    assert cells.functional_count() > 1
    assert cells.lengths @ slopes[..., 0] == pytest.approx(end - start)


def test_advice_names_only_modules_that_can_be_left_out() -> None:
    with pytest.raises(rs.UnsupportedModel, match="native_layer_norm") as refusal:
        rs.trace(lambda x: F.relu(nn.LayerNorm(6)(x)), torch.randn(2, 6))
    assert "until" not in str(refusal.value)


def doubled_in_place(h: Tensor) -> Tensor:
    h.unfold(1, 3, 1)[:, 1:3].mul_(2.0)
    return h


OVERLAPPING: dict[str, Callable[[Tensor], Tensor]] = {
    "select_scatter": lambda x: torch.select_scatter(x.unfold(1, 3, 1), x[:, :3], 1, 1),
    "slice_scatter": lambda x: torch.slice_scatter(x.unfold(1, 3, 1), x.reshape(-1, 2, 3), 1, 1, 3),
    "diagonal_scatter": lambda x: torch.diagonal_scatter(x.unfold(1, 3, 1), x[:, :3], 0, 1, 2),
    "strided": lambda x: torch.select_scatter(x.as_strided((len(x), 4, 3), (6, 1, 1)), x[:, :3], 1, 1),
    "in place": lambda x: doubled_in_place(F.relu(x)),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_writing_where_entries_share_memory_is_refused(name: str) -> None:
    with pytest.raises(rs.UnsupportedModel, match="entries share memory"):
        rs.trace(OVERLAPPING[name], torch.randn(1, 6))


def test_writing_where_entries_are_repeated_or_apart_is_done_right() -> None:
    x = torch.randn(3, 6)
    assert_same_measures(
        lambda x: torch.select_scatter(x[:, :, None].expand(-1, 6, 2), F.relu(x), 2, 1),
        lambda x: torch.stack([x, F.relu(x)], dim=2),
        x,
    )
    assert_same_measures(
        lambda x: torch.select_scatter(x.unfold(1, 3, 1).clone(), F.relu(x[:, :3]), 1, 1),
        lambda x: torch.stack([x[:, :3], F.relu(x[:, :3]), x[:, 2:5], x[:, 3:]], dim=1),
        x,
    )
    assert_same_measures(
        lambda x: torch.slice_scatter(x.unfold(1, 3, 3), F.relu(x[:, None, :3]), 1, 1, 2),
        lambda x: torch.cat([x[:, :3], F.relu(x[:, :3])], dim=1),
        x,
    )


def test_infinite_numbers_among_the_values_are_refused() -> None:
    L, hidden = nn.Linear(2, 2), torch.tensor([True, False])
    with pytest.raises(ValueError, match="masked_fill writes -inf among the values: take a finite number"):
        rs.trace(lambda x: L(x).masked_fill(hidden, -torch.inf).amax(dim=1, keepdim=True), torch.zeros(1, 2))
    assert rs.trace(lambda x: L(x).clamp(min=-torch.inf, max=1.0), torch.zeros(1, 2)).sites[0].breakpoints == (1.0,)


def test_numbers_written_twice_into_one_place() -> None:
    """Which of them stays is not said, and torch's derivative takes all of them for the one."""

    def twice(x: Tensor) -> Tensor:
        h = 2 * x
        h[:, [1, 1]] = x[:, 2:4]
        return h.relu()

    places = torch.tensor([[0, 0]])
    for function in (
        twice,
        lambda x: x.scatter(1, places.expand(len(x), 2), x[:, 2:4]).relu(),
        lambda x: x.index_copy(1, places[0], x[:, 2:4]).relu(),
    ):
        for smooth in (False, True):
            with pytest.raises(rs.UnsupportedModel, match="into one place; add them up"):
                rs.trace(function, torch.randn(3, 6), allow_smooth=smooth)

    def zeros(x: Tensor) -> Tensor:
        h = 2 * x
        h[:, [1, 1]] = 0
        return h.relu()

    assert_same_measures(zeros, lambda x: F.relu(2 * x * torch.tensor([1.0, 0, 1, 1, 1, 1])), torch.randn(3, 6))
