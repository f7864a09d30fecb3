"""Blocks of wide networks that are carried as sums of rows have the cells that evaluating every vertex gives."""

import numpy as np
import pytest
import torch
from torch import nn
from wide_models import MODELS

import regionscope as rs
from regionscope.geometry import bases
from regionscope.geometry.bases import Basis, Bend
from regionscope.geometry.budget import Budget
from regionscope.geometry.patterns import PatternTable
from regionscope.geometry.rounding import _symbol_norm
from regionscope.tracing.network import Site


@pytest.mark.parametrize("room", [None, 20_000, 60_000])
@pytest.mark.parametrize("name", MODELS)
def test_rows_give_the_cells_that_vertices_give(name: str, room: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    make, shape = MODELS[name]
    model, x = make().eval(), torch.randn(shape)
    plane = rs.Plane.around(x, 1.5, generator=torch.Generator().manual_seed(2))
    whole = rs.plane_cells(model, plane)
    monkeypatch.setattr(bases, "WIDE", 0)
    if room is not None:
        monkeypatch.setattr(Budget, "room", property(lambda self: np.inf if self.memory is None else room))
        monkeypatch.setattr(Budget, "check", lambda self, widest: None)
    cells = rs.plane_cells(model, plane)
    assert isinstance(cells.packed_patterns, PatternTable)
    assert (len(cells.packed_patterns.blocks) > 1) == (room is not None)
    assert [len(a) for a in (cells, cells.vertices, cells.edges)] == [
        len(a) for a in (whole, whole.vertices, whole.edges)
    ]
    number = whole.locate(cells.centres)
    assert sorted(number) == list(range(len(whole)))
    assert (cells.patterns == whole.patterns[number]).all()
    assert cells.areas == pytest.approx(whole.areas[number], abs=1e-9)
    outputs = model.double()(plane.points(cells.vertices)).detach().numpy()
    assert cells.outputs == pytest.approx(outputs, abs=1e-9)
    assert cells.exact and cells.verify().holds


def test_other_activations_and_narrow_networks_are_evaluated_at_vertices() -> None:
    for model in (nn.Sequential(nn.Linear(5, 9000), nn.LeakyReLU()), nn.Sequential(nn.Linear(5, 9), nn.ReLU())):
        cells = rs.plane_cells(
            model, rs.Plane.around(torch.zeros(5), 0.001, generator=torch.Generator().manual_seed(0))
        )
        assert not isinstance(cells.packed_patterns, PatternTable)


def test_a_bend_adds_what_the_linear_map_lacks() -> None:
    values = np.array([[-1.0, 3.0, 0.5, -2.0, 0.0], [2.0, -0.2, 0.1, -1.0, 0.0]])
    site, units, above = Site("relu", "relu", (0.0,), (6,), 1), np.array([0, 2, 3, 4, 5]), np.arange(6) == 1
    bend = Bend.of(site, units, values, above, np.full(5, 0.05), np.zeros(2), np.ones(5), 0.0)
    assert bend.units.tolist() == [0, 2] and bend.slopes.tolist() == [0.5, 1.0] and bend.resting.tolist() == [5]
    assert bend.linear.tolist() == [0.5, 1.0, 1.0, 1.0, 0.0, 0.0]
    weights = np.array([[1.0, 2.0], [1.0, 3.0]])
    wider = bend.wider(weights, values)
    assert (wider[:, :2] == weights).all()
    assert wider[:, 2:] + bend.slopes * values[:, :2] == pytest.approx(np.maximum(values[:, :2], 0))
    unsure = Bend.of(site, units, values, above, np.full(5, 0.05), np.full(2, 0.1), np.ones(5), 0.0)
    assert unsure.units.tolist() == [0, 2, 3] and unsure.slopes[2] == 1.0
    assert not unsure.wider(weights, values)[:, 4].any()


def test_rows_that_do_not_switch_are_left_out_within_the_errors_told() -> None:
    random = np.random.default_rng(0)
    frame = torch.from_numpy(random.normal(size=(3, 40)))
    weights = np.concatenate([np.ones((50, 1)), 0.3 * random.normal(size=(50, 2))], axis=1)
    basis = Basis.of(frame)
    for _ in range(2):
        values = basis.values(weights)
        site = Site("relu", "relu", (0.0,), (40,), 1)
        bend = Bend.of(site, np.arange(40), values, np.zeros(40, bool), np.zeros(40), np.zeros(50), np.ones(40), 0.0)
        made = torch.cat([basis.rows[0] * bend.linear, torch.eye(40).double()[bend.units]])
        n, m = len(basis), len(made)
        formulas = np.zeros((m, m))
        formulas[:n, :n], formulas[n:, :n] = basis.formulas, basis.rows[0][:, bend.units].T.numpy()
        slopes = np.concatenate([basis.slopes, bend.slopes])
        turn = torch.from_numpy(random.normal(size=(40, 40))) / 6
        none = np.zeros(m)
        places = np.concatenate([basis.places, np.stack([np.full(m - n, len(basis.trail.made)), bend.units], axis=1)])
        trail = basis.trail.through(bend)
        basis = Basis((made @ turn,), formulas, slopes, none, 3, none, none, 0.0, np.zeros(40), places, trail)
        weights = bend.wider(weights, values)
    some = weights[np.argsort(weights[:, 1])[:10]]
    fewer, kept, errors = basis.folded(some, np.zeros(len(some)))
    assert 3 < len(fewer) == len(kept) < len(basis)
    off = np.linalg.norm(fewer.values(some[:, kept]) - basis.values(some), axis=1)
    assert (off <= errors[:, 0]).all() and errors.max() < 1e-12
    left_out = np.setdiff1d(np.arange(len(basis)), kept)
    site, unit = basis.places[left_out].T
    assert all(fewer.trail.factors[k][u] in (0.0, 1.0) for k, u in zip(site, unit, strict=True))


@pytest.mark.parametrize(
    ("outputs", "inputs", "side", "stride"), [(4, 3, 3, 1), (2, 5, 5, 1), (6, 4, 3, 2), (3, 3, 1, 1)]
)
def test_symbols_bound_the_norms_of_convolutions(outputs: int, inputs: int, side: int, stride: int) -> None:
    kernel = torch.randn(outputs, inputs, side, side, generator=torch.Generator().manual_seed(side)).double()
    entries = torch.eye(inputs * 144).double().reshape(-1, inputs, 12, 12)
    matrix = nn.functional.conv2d(entries, kernel, stride=stride, padding=side // 2).flatten(1)
    norm, bound = float(torch.linalg.matrix_norm(matrix, 2)), _symbol_norm(kernel)
    assert norm <= bound <= (1.3 if stride == 1 else 3) * norm


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_symbols_of_kernels_of_any_size_have_norms(size: float) -> None:
    kernel = torch.randn(3, 2, 3, 3, generator=torch.Generator().manual_seed(0)).double()
    assert _symbol_norm(size * kernel) == pytest.approx(size * _symbol_norm(kernel), rel=1e-12)
    assert _symbol_norm(0 * kernel) == 0


def test_symbols_of_kernels_that_are_too_large_to_look_at_have_no_bound() -> None:
    assert _symbol_norm(torch.ones(1, 1, 1, 1).double().expand(2048, 2048, 1, 1)) == np.inf


def test_rows_that_are_made_a_few_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(3)
    make, shape = MODELS["dense"]
    model, plane = make(), rs.Plane.around(torch.randn(shape), 1.5, generator=torch.Generator().manual_seed(2))
    monkeypatch.setattr(bases, "WIDE", 0)
    whole = rs.plane_cells(model, plane)
    monkeypatch.setattr(bases, "ENTRIES_AT_ONCE", 100)  # 4 rows of 24 units
    cells = rs.plane_cells(model, plane)
    assert (cells.patterns == whole.patterns).all() and cells.vertices == pytest.approx(whole.vertices, abs=1e-12)
    assert cells.outputs == pytest.approx(whole.outputs, abs=1e-12)


def test_a_wide_network_that_copies_entries_has_the_cells_that_vertices_give(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of copies derivatives say nothing, so norms bound the errors, which leave more signs open."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(4, 12), nn.ReLU(), nn.Unflatten(1, (1, 12)), nn.Upsample(scale_factor=2), nn.Flatten(),
        nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 2),
    )  # fmt: skip
    plane = rs.Plane.around(torch.zeros(4), 2.0, generator=torch.Generator().manual_seed(1))
    whole = rs.plane_cells(model, plane)
    monkeypatch.setattr(bases, "WIDE", 0)
    cells = rs.plane_cells(model, plane)
    number = whole.locate(cells.centres)
    assert isinstance(cells.packed_patterns, PatternTable) and sorted(number) == list(range(len(whole)))
    assert cells.exact and (cells.patterns == whole.patterns[number]).all()


def test_no_unit_is_steeper_than_its_rows_say() -> None:
    """Also with constants that are so large that rows lose digits."""
    torch.manual_seed(0)
    layers = [nn.Linear(*sizes).double() for sizes in ((4, 30), (30, 30), (30, 30))]
    for layer in layers[:2]:
        layer.bias.data *= 1e12
        layer.weight.data[:, 0] *= 1e-3
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2], nn.ReLU())
    plane = rs.Plane.around(torch.zeros(4), 1e13, generator=torch.Generator().manual_seed(0))
    found = list[tuple[Basis, int]]()

    def noted(self: Basis, *given: object) -> Basis:
        made = after(self, *given)  # type: ignore[arg-type]
        found.append((made, len(found)))
        return made

    after = Basis.after
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bases, "WIDE", 0)
        patch.setattr(Basis, "after", noted)
        rs.plane_cells(model, plane)
    at = plane.points(np.random.default_rng(0).uniform(-5e12, 5e12, (100, 2)))
    axes = torch.tensor(np.array(plane.axes)).reshape(2, 4).double()
    for basis, number in found[:3]:
        part = nn.Sequential(*list(model)[: 2 * number + 1])
        slopes = torch.stack([torch.autograd.functional.jacobian(part, x.reshape(4)) @ axes.T for x in at])
        assert (slopes.norm(dim=2).max(dim=0).values.numpy() <= basis.steepness * (1 + 1e-12)).all()
