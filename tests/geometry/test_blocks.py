"""Cells that are found in blocks, as memory is short, are those that are found at once."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regionscope as rs
from regionscope.geometry import patterns, sweep
from regionscope.geometry.budget import Budget, TooMuchMemory
from regionscope.geometry.patterns import (
    PatternBlock,
    PatternTable,
    differing_bits,
    pattern_codes,
    pattern_groups,
    words_at,
)
from regionscope.progress import tqdm

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "dense": (
        lambda: nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 3)), (5,)),
    "two breakpoints": (
        lambda: nn.Sequential(nn.Linear(4, 20), nn.Hardtanh(), nn.Linear(20, 20), nn.LeakyReLU(), nn.Linear(20, 2)),
        (4,)),
    "convolutions with max-pooling": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3, 2)),
        (1, 6, 6)),
    "max-pooling first": (
        lambda: nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4, 3)),
        (1, 6, 6)),
    "a skip": (lambda: Skip(), (6,)),
}  # fmt: skip


class Skip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 20), nn.Linear(20, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(x + self.second(torch.relu(self.first(x)))))  # type: ignore[no-any-return]


def model_of(name: str) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(3)
    make, shape = MODELS[name]
    return make(), torch.randn(shape, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def limit(size: int) -> None:
        monkeypatch.setattr(Budget, "room", property(lambda self: np.inf if self.memory is None else size))
        monkeypatch.setattr(Budget, "check", lambda self, widest: None)

    return limit


def sides(cells: rs.PlaneCells) -> set[tuple[int, int, float]]:
    return set(zip(cells.edges.site.tolist(), cells.edges.unit.tolist(), cells.edges.length.round(6), strict=True))


def test_the_bar_counts_whole_sites_though_blocks_bring_in_parts_of_them(
    small_blocks: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, x = model_of("dense")
    small_blocks(20_000)
    monkeypatch.setattr("regionscope.geometry.sweep.tqdm", partial(tqdm, mininterval=0))
    rs.plane_cells(model, rs.Plane.around(x, 3.0, generator=torch.Generator().manual_seed(0)), show_progress=True)
    shown = re.findall(r"cutting: +(\d+)%.* (\S+)/2 ", capsys.readouterr().err.replace("\r", "\n"))
    assert any(int(percent) % 50 for percent, _ in shown)  # there were blocks
    assert {count for _, count in shown} == {"0", "1", "2"} and shown[-1] == ("100", "2")


@pytest.mark.parametrize("name", MODELS)
def test_planes_in_blocks_have_the_same_cells(name: str, small_blocks: Callable[[int], None]) -> None:
    model, x = model_of(name)
    plane = rs.Plane.around(x, 2.0, generator=torch.Generator().manual_seed(2))
    whole = rs.plane_cells(model, plane)
    small_blocks(8_000 if name == "max-pooling first" else 30_000)
    cells = rs.plane_cells(model, plane)
    assert isinstance(cells.packed_patterns, PatternTable) and len(cells.packed_patterns.blocks) > 1
    assert [len(a) for a in (cells, cells.vertices, cells.edges)] == [
        len(a) for a in (whole, whole.vertices, whole.edges)
    ]
    number = whole.locate(cells.centres)
    assert sorted(number) == list(range(len(whole)))
    assert (cells.patterns == whole.patterns[number]).all()
    assert cells.areas == pytest.approx(whole.areas[number], abs=1e-9)
    assert (np.diff(cells.offsets) == np.diff(whole.offsets)[number]).all()
    order, other = (np.lexsort(c.vertices.round(8).T) for c in (cells, whole))
    assert cells.vertices[order] == pytest.approx(whole.vertices[other], abs=1e-7)
    assert cells.outputs is not None and whole.outputs is not None
    assert cells.outputs[order] == pytest.approx(whole.outputs[other], abs=1e-6)
    assert len(sides(cells) ^ sides(whole)) <= 0.01 * len(whole.edges)  # lengths that are rounded to another digit
    certificate = cells.verify()
    assert certificate.holds, certificate
    assert cells.affine_maps()[0] == pytest.approx(whole.affine_maps()[0][number], abs=1e-9)


def test_the_first_layers_in_blocks_have_the_same_cells(small_blocks: Callable[[int], None]) -> None:
    model, x = model_of("dense")
    plane = rs.Plane.around(x, 2.0, generator=torch.Generator().manual_seed(2))
    whole = rs.plane_cells(model, plane, up_to_layer=1)
    small_blocks(10_000)
    cells = rs.plane_cells(model, plane, up_to_layer=1)
    assert isinstance(cells.packed_patterns, PatternTable) and len(cells.packed_patterns.blocks) > 1
    number = whole.locate(cells.centres)
    assert sorted(number) == list(range(len(whole))) and cells.outputs is None
    assert (cells.patterns == whole.patterns[number]).all()


def test_memory_is_given_back_while_blocks_are_cut(
    small_blocks: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = model_of("dense")
    plane, given_back = rs.Plane.around(x, 2.0, generator=torch.Generator().manual_seed(2)), list[bool]()
    small_blocks(30_000)
    monkeypatch.setattr(sweep, "MUCH", 2000)
    monkeypatch.setattr(sweep, "return_freed_memory", lambda: given_back.append(True))
    cells = rs.plane_cells(model, plane)
    assert isinstance(cells.packed_patterns, PatternTable) and len(given_back) > 1


def test_cells_are_grouped_by_whole_patterns_even_if_codes_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    table, before = random.integers(0, 2, (300, 3), np.uint64), random.integers(0, 3, 300).astype(np.int32)
    seen = dict[tuple[int, ...], list[int]]()
    for k, row in enumerate(table.tolist()):
        seen.setdefault((int(before[k]), *row), []).append(k)
    for codes in (pattern_codes, lambda rows: np.zeros(len(rows), np.uint64)):
        monkeypatch.setattr(patterns, "pattern_codes", codes)
        members, group = pattern_groups(table, before)
        assert sorted(members.tolist()) == sorted(k[0] for k in seen.values())
        assert all(len(set(group[k].tolist())) == 1 for k in seen.values()) and len(set(group.tolist())) == len(seen)
        assert (group[members] == np.arange(len(members))).all()


@pytest.mark.parametrize("name", MODELS)
def test_lines_in_blocks_have_the_same_cells(name: str, small_blocks: Callable[[int], None]) -> None:
    model, x = model_of(name)
    ends = 5 * torch.randn(3, *x.shape, generator=torch.Generator().manual_seed(4))
    whole = rs.line_cells(model, x.expand(3, *x.shape), ends)
    small_blocks(12_000)
    for before, after in zip(whole, rs.line_cells(model, x.expand(3, *x.shape), ends), strict=True):
        assert after.breakpoints == pytest.approx(before.breakpoints, abs=1e-12)
        assert (after.patterns == before.patterns).all()
        assert (after.site == before.site).all() and (after.unit == before.unit).all()
        assert after.verify().holds


def test_blocks_can_be_certified_saved_and_read(tmp_path: Path, small_blocks: Callable[[int], None]) -> None:
    model, x = model_of("convolutions with max-pooling")
    plane = rs.Plane.around(x, 1.0, generator=torch.Generator().manual_seed(2))
    small_blocks(20_000)
    cells = rs.plane_cells(model, plane, certified=True)
    cells.save(tmp_path / "cells.npz")
    read = rs.PlaneCells.load(tmp_path / "cells.npz", model)
    assert isinstance(read.packed_patterns, PatternTable)
    assert (read.patterns == cells.patterns).all() and (read.vertices == cells.vertices).all()
    assert read.verify().holds


def test_too_little_memory_is_refused_before_the_work() -> None:
    model, x = model_of("dense")
    with pytest.raises(
        TooMuchMemory, match=r"^1 kB of memory are too little.* alone take \d+ kB; give \d+ kB or more$"
    ):
        rs.plane_cells(model, rs.Plane.around(x, 2.0), memory=1000)
    with pytest.raises(TooMuchMemory, match="too little for this network"):
        rs.line_cells(model, x, 2 * x, memory=1000)


def test_more_cells_than_fit_are_refused_with_an_estimate() -> None:
    budget = Budget(1_000_000)
    budget.keep(10_000, 0.01, 40)
    with pytest.raises(
        TooMuchMemory, match=r"about 4,\d\d\d cells would take 10 MB of memory, more than the 1 MB .*: give 13 MB, or"
    ):
        budget.keep(1_000_000, 0.19, 800)


def test_cells_that_have_to_stay_together_say_how_much_memory_they_need(
    monkeypatch: pytest.MonkeyPatch, small_blocks: Callable[[int], None]
) -> None:
    model, x = model_of("max-pooling first")
    plane = rs.Plane.around(x, 3.0, generator=torch.Generator().manual_seed(2))
    monkeypatch.setattr(sweep, "LEAST", 0)
    small_blocks(200)
    with pytest.raises(
        TooMuchMemory, match=r"makes of 1 cell has to stay .* room for 1: give more memory \([\d.]+ [kM]B do"
    ):
        rs.plane_cells(model, plane)


def test_max_cells_counts_the_cells_of_all_blocks(small_blocks: Callable[[int], None]) -> None:
    model, x = model_of("dense")
    plane = rs.Plane.around(x, 2.0, generator=torch.Generator().manual_seed(2))
    cells = len(rs.plane_cells(model, plane))
    small_blocks(30_000)
    assert len(rs.plane_cells(model, plane, max_cells=cells)) == cells
    with pytest.raises(rs.TooManyCells, match="more than max_cells="):
        rs.plane_cells(model, plane, max_cells=cells - 1)


def test_a_table_of_patterns_is_read_as_an_array() -> None:
    rows = np.random.default_rng(0).integers(0, 1 << 40, (50, 3)).astype(np.uint64)
    rows[:30, 1] = 7
    table = PatternTable((PatternBlock.of(rows[:30]), PatternBlock.of(rows[30:])))
    assert (table[:] == rows).all() and (table[[40, 2, 29]] == rows[[40, 2, 29]]).all()
    assert (table[5:35, [2, 0]] == rows[5:35, [2, 0]]).all() and (table[31] == rows[31]).all()
    assert len(table) == 50 and table.shape == (50, 3)


def test_packed_patterns_say_in_which_bits_cells_differ() -> None:
    random = np.random.default_rng(0)
    patterns = random.integers(0, 1 << 63, (40, 3), np.uint64) & random.integers(0, 1 << 20, (1, 3), np.uint64)
    patterns[:25, 1] = patterns[0, 1]
    table = PatternTable((PatternBlock.of(patterns[:25]), PatternBlock.of(patterns[25:])))
    pairs = random.integers(0, 40, (300, 2))
    bits = (patterns[..., None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).reshape(40, -1)
    expected = set(zip(*(a.tolist() for a in np.nonzero(bits[pairs[:, 0]] != bits[pairs[:, 1]])), strict=True))
    cells, words = random.integers(0, 40, 200), random.integers(0, 3, 200)
    assert len(expected) > 1000
    for some in (patterns, table):
        pair, bit = differing_bits(some, pairs)
        assert len(pair) == len(expected) and set(zip(pair.tolist(), bit.tolist(), strict=True)) == expected
        assert (words_at(some, cells, words) == patterns[cells, words]).all()


def test_blank_pixels_leave_no_sign_open() -> None:
    """Constants that are equal compete in max-pooling at every vertex, whatever their bias."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2))
    with torch.no_grad():
        model[0].bias.copy_(torch.tensor([0.1, -0.1, 0.3, 0.0]))  # type: ignore[operator]
    corners = torch.zeros(3, 1, 8, 8)
    corners[:, :, 2:5, 3:6] = torch.rand(3, 1, 3, 3, generator=torch.Generator().manual_seed(1))
    cells = rs.plane_cells(model, rs.Plane.through(*corners), certified=True)
    assert cells.undecided == 0 and cells.close_decisions < 4 * len(cells)
    assert cells.verify().holds


def test_where_values_are_compared_nothing_is_taken_for_constant() -> None:
    """One pixel moves, its neighbours do not: maximum of the two is no constant, whichever comes first."""

    class Larger(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.maximum(x[:, :2], x[:, 2:]) - torch.minimum(x[:, 2:], x[:, :2])

    x = torch.tensor([0.3, 0.1, 0.2, 0.6])
    axes = np.eye(4)[:2]
    square = rs.Plane(x, axes, np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]))
    assert len(rs.plane_cells(Larger(), square)) == 4
