"""Random models in every layout: what is traced and measured is what plain evaluations of the model say."""

import math
from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
import torch
from program_mixing import MIXING
from program_oracles import FLAT, PROVED, SAME, TIED, Trial, changes, flat_preactivations, symbols
from random_programs import Program, random_program
from torch import Tensor

import regionscope as rs

PROGRAMS = 200
EXHAUSTIVE = 5000
MIXED = 3  # random programs for each way to mix points
GRID = 250  # steps on a line


def near(a: Tensor, b: Tensor, share: float) -> bool:
    return a.shape == b.shape and bool(((a - b).abs() <= share * (1 + b.abs().max())).all())


# what is traced


def outputs_are_the_models_at_any_batch(t: Trial) -> None:
    whole = t.program(t.x)
    for n in (1, 2, 3, t.n):
        assert near(t.net(t.x[:n]), t.program(t.x[:n]), SAME)
    order = torch.randperm(t.n, generator=torch.Generator().manual_seed(t.program.seed))
    assert near(t.net(t.x[order]), whole[order], SAME)
    assert near(t.net(t.x, batch_size=2), whole, SAME)
    assert t.net.piecewise_linear
    assert t.net.input_shape == t.program.input_shape
    assert t.net.output_shape == tuple(whole.shape[1:])


def preactivations_are_those_of_the_point_alone(t: Trial) -> None:
    whole = t.net.preactivations(t.x)
    assert [tuple(v.shape) for v in whole] == [(t.n, *site.shape) for site in t.net.sites]
    for i in (0, 3, t.n - 1):
        for together, alone in zip(whole, t.net.preactivations(t.x[i : i + 1]), strict=True):
            assert near(together[i : i + 1], alone, SAME)
    shifted = t.net.preactivations(t.x[2:6].flip(0))
    assert all(near(v[2:6].flip(0), s, SAME) for v, s in zip(whole, shifted, strict=True))


def patterns_count_the_breakpoints_below(t: Trial) -> None:
    values = zip(t.net.preactivations(t.x), t.net.sites, strict=True)
    pieces = [torch.stack([v > b for b in s.breakpoints]).sum(dim=0).reshape(t.n, s.units) for v, s in values]
    assert torch.equal(t.net.patterns(t.x), torch.cat(pieces, dim=1).to(torch.uint8))


def sites_see_what_enters_the_activations(t: Trial) -> None:
    """Every activation is a site, in order, with the same numbers; only tournaments have sites of their own making."""
    _, watch = t.program.watched(t.x)
    sites = iter(zip(t.net.preactivations(t.x), t.net.sites, strict=True))
    others = 0
    for expected, breakpoints, layer in watch.preactivations:
        for values, site in sites:
            alike = (site.breakpoints, site.layer) == (breakpoints, layer)
            if alike and same_units(values.reshape(t.n, -1), expected, signed=breakpoints != (0.0,)):
                break
            others += 1
        else:
            raise AssertionError(f"no site of layer {layer} sees what enters an activation at {breakpoints}")
    others += sum(1 for _ in sites)
    assert others == 0 or watch.competitors


def same_units(values: Tensor, expected: Tensor, *, signed: bool) -> bool:
    """Whether two (n, units) have the same columns in some order; the difference of a pair may have either sign."""
    if values.shape != expected.shape:
        return False
    choices = (values,) if signed else (values, -values)
    return any(near(v.sort(dim=1).values, expected.sort(dim=1).values, SAME) for v in choices)


# what is measured at points


def total_variation_is_the_norm_of_the_jacobian(t: Trial) -> None:
    found = torch.from_numpy(rs.total_variation(t.net, t.x).per_point)
    assert near(found[t.inside], t.outputs.slopes.flatten(1).norm(dim=1)[t.inside], 1e-6)
    if t.program.differentiable:
        jacobians = [torch.autograd.functional.jacobian(lambda p: t.program(p[None])[0], p) for p in t.x]
        assert near(found, torch.stack([j.norm() for j in jacobians]), SAME)


def boundary_distance_is_the_smallest_over_all_boundaries(t: Trial) -> None:
    found = torch.from_numpy(rs.boundary_distance(t.net, t.x).per_point)[t.inside]
    expected = t.distances.min(dim=1).values[t.inside]
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-7), (found, expected)


def local_rank_is_the_rank_of_the_jacobian(t: Trial) -> None:
    found = torch.from_numpy(rs.local_rank(t.net, t.x, eps=0).per_layer)
    for layer, units in enumerate(t.layers):
        for i in t.inside.tolist():
            spectrum = torch.linalg.svdvals(t.sites.slopes[i, units])
            clear, noise = spectrum > max(1e-5 * spectrum[0], FLAT), spectrum <= 1e-10 * (1 + spectrum[0])
            if (clear | noise).all():  # otherwise differences cannot tell
                assert found[i, layer] == clear.sum()


def crossings_are_the_boundaries_between_vertices(t: Trial) -> None:
    d, radius = math.prod(t.program.input_shape), 0.3
    found = torch.from_numpy(rs.boundary_crossings(t.net, t.x, radius=radius, frame=np.eye(d)).per_point)
    arms = radius * torch.eye(d, dtype=t.x.dtype).view(d, *t.program.input_shape)
    z = flat_preactivations(t.net, (t.x[:, None] + torch.cat([arms, -arms])).flatten(0, 1))
    gaps = z[:, [unit for unit, _ in t.breakpoints]] - z.new_tensor([b for _, b in t.breakpoints])
    gaps = gaps.view(t.n, 2 * d, -1)
    close = (gaps.abs() <= SAME * (1 + z.abs().max())).any(dim=1)  # rounding may choose the side
    crossed = (gaps > 0).any(dim=1) & (gaps <= 0).any(dim=1)
    assert ((crossed & ~close).sum(dim=1) <= found).all()
    assert (found <= (crossed | close).sum(dim=1)).all()


def certified_radius_is_at_least_the_nearer_of_border_and_decision_and_holds(t: Trial) -> None:
    outputs = t.program(t.x).detach()
    labels = outputs.argmax(dim=1)
    found = torch.from_numpy(rs.certified_radius(t.net, t.x, labels).per_point)
    best, second = outputs.topk(2, dim=1).values.T
    for i in t.inside.tolist():
        if best[i] - second[i] < SAME:
            continue  # tied classes
        y, slopes = labels[i], t.outputs.slopes[i]
        others = [j for j in range(outputs.shape[1]) if j != y]
        steepness = (slopes[y] - slopes[others]).norm(dim=1)
        gaps = outputs[i, y] - outputs[i, others]
        reach = torch.where(steepness > 1e-7, gaps / steepness, torch.inf)
        exact = reach.min() if reach.min() <= t.distances[i].min() else torch.inf
        near = (gaps - PROVED * (1 + outputs[i].abs().max())).clamp_min(0)  # a proof takes off what rounding may be
        proved = torch.minimum(
            t.proved_distances[i].min(), torch.where(steepness > 1e-7, near / steepness, torch.inf).min()
        )
        assert proved * (1 - 1e-5) - 1e-7 <= found[i] <= exact * (1 + 1e-5) + 1e-7, (found[i], exact)
        if 0 < found[i] < 1e6:
            rise = slopes[others] - slopes[y]
            ways = torch.cat([rise, -rise, torch.eye(rise.shape[1]).to(rise), -torch.eye(rise.shape[1]).to(rise)])
            ways = ways[ways.norm(dim=1) > 1e-7]
            ends = t.x[i] + (found[i] * ways / ways.norm(dim=1, keepdim=True)).reshape(-1, *t.x.shape[1:])
            there = t.program(ends).detach()
            assert (there[:, y, None] - there[:, others] >= -PROVED * (1 + there.abs().max())).all()


def good_units_reach_the_output(t: Trial) -> None:
    _, watch = t.program.watched(t.x)
    if watch.competitors:
        return  # the units of a tournament are of the library's making
    found, units = rs.good_units(t.net, t.x).per_point, watch.pushed
    for i in t.inside.tolist():
        if any((z[i] - b).abs().min() < TIED for z, breakpoints, _ in watch.preactivations for b in breakpoints):
            continue  # on a boundary, as where all before is closed: neither open nor closed
        copies = t.x[i].expand(units + 1, *t.program.input_shape).contiguous()
        moved, _ = t.program.watched(copies, 1e-7 * torch.eye(units + 1, units, dtype=t.x.dtype))
        effects = 1e7 * (moved[:-1] - moved[-1]).abs().amax(dim=1)
        assert (effects > 1e-5).sum() <= found[i] <= (effects > 0).sum()


def complexity_of_the_first_layer_is_slope_times_density(t: Trial) -> None:
    first = [site for site in t.net.sites if site.layer == 1]
    if any("/" in site.name for site in first):
        return  # the noise of one round moves the next
    sigma = 0.4
    found = np.asarray(rs.local_complexity(t.net, t.x, sigma=sigma, good=False, draws=1).per_layer)
    units = [unit for unit, _ in t.breakpoints if unit in set(t.layers[0])]
    places = t.x.new_tensor([b for unit, b in t.breakpoints if unit in set(t.layers[0])])
    slopes, gaps = t.sites.slopes[:, units].norm(dim=2), t.sites.values[:, units] - places
    density = torch.exp(-0.5 * (gaps / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
    assert near(torch.from_numpy(found[:, 0])[t.inside], (slopes * density).sum(dim=1)[t.inside], 1e-6)


# exact cells


def line_cells_end_where_the_pattern_changes(t: Trial) -> None:
    start, end = t.x[0], 2 * t.x[1]
    found = torch.from_numpy(rs.line_cells(t.net, start, end).breakpoints)
    expected = changes(t.program, start, end, GRID)
    ends = torch.tensor([0.0, 1.0], dtype=found.dtype)
    for place in expected:
        assert (torch.cat([found, ends]) - place).abs().min() < 1e-6, f"no cell ends at {place}"
    for i, place in enumerate(found):
        others = torch.cat([found[:i], found[i + 1 :], ends])
        if (others - place).abs().min() > 2 / GRID:  # the grid can tell it from others
            assert (torch.cat([expected, ends]) - place).abs().min() < 1e-6, f"nothing changes at {place}"


def the_model_is_affine_in_every_cell_of_a_line(t: Trial) -> None:
    cells = rs.line_cells(t.net, t.x[2], -t.x[3])
    ends = np.concatenate([[0.0], cells.breakpoints, [1.0]])
    low, middle, high = (t.program(cells.at(ends[:-1] + share * np.diff(ends))).detach() for share in (0.1, 0.5, 0.9))
    assert near((low + high) / 2, middle, SAME)


def plane_cells_tile_the_plane_and_the_model_is_affine_in_each(t: Trial) -> None:
    if t.program.seed % 3:
        return  # enough of them
    plane = rs.Plane.around(t.x[4], 0.8, generator=torch.Generator().manual_seed(t.program.seed))
    cells = rs.plane_cells(t.net, plane)
    assert cells.areas.sum() == pytest.approx(plane.area)
    cell = np.repeat(np.arange(len(cells)), [len(corners) for corners in cells.polygons])
    inside = 0.5 * cells.centres[cell] + 0.5 * np.concatenate(cells.polygons)
    slopes, offsets = cells.affine_maps()
    expected = np.einsum("nkd,nd->nk", slopes[cell], inside) + offsets[cell]
    assert near(torch.from_numpy(expected), t.program(plane.points(inside)).detach(), SAME)
    axis = np.linspace(-0.79, 0.79, 12)
    grid = plane.points(np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2))
    assert len(cells) >= len(torch.unique(symbols(t.program, grid), dim=0))
    count = rs.local_region_count(t.net, t.x[4:6], radius=0.8, axes=plane.axes).per_point
    assert count[0] == len(cells)


PROPERTIES: tuple[Callable[[Trial], None], ...] = (
    outputs_are_the_models_at_any_batch,
    preactivations_are_those_of_the_point_alone,
    patterns_count_the_breakpoints_below,
    sites_see_what_enters_the_activations,
    total_variation_is_the_norm_of_the_jacobian,
    boundary_distance_is_the_smallest_over_all_boundaries,
    local_rank_is_the_rank_of_the_jacobian,
    crossings_are_the_boundaries_between_vertices,
    certified_radius_is_at_least_the_nearer_of_border_and_decision_and_holds,
    good_units_reach_the_output,
    complexity_of_the_first_layer_is_slope_times_density,
    line_cells_end_where_the_pattern_changes,
    the_model_is_affine_in_every_cell_of_a_line,
    plane_cells_tile_the_plane_and_the_model_is_affine_in_each,
)


def failure(seed: int) -> str | None:
    """What does not hold of a random program, with its source; None if all is well."""
    trial = Trial(random_program(seed))
    for holds in PROPERTIES:
        try:
            holds(trial)
        except Exception as error:
            return f"{holds.__name__}: {type(error).__name__}: {error}\n{trial.program}"
    return None


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_program_is_traced_and_measured_as_it_computes(seed: int) -> None:
    assert (found := failure(seed)) is None, found


@pytest.mark.exhaustive
def test_many_random_programs_are_traced_and_measured_as_they_compute() -> None:
    failures = [found for seed in range(PROGRAMS, EXHAUSTIVE) if (found := failure(seed))]
    assert not failures, "\n\n".join([f"{len(failures)} programs", *failures])


# what must be refused


def mixes(program: Program) -> bool:
    """Whether some points of a batch have other outputs than alone, or have none alone."""
    x = program.points(5)
    together = program(x)
    try:
        alone = torch.cat([program(p[None]) for p in x])
    except ValueError:  # torch: more than one point is needed
        return True
    return bool(((together - alone).abs().amax(dim=1) > 1e-6 * together.abs().max()).sum() > 1)


# refused as well, but for what they are
NOT_AFFINE = dict.fromkeys(("running product", "running maximum", "sorted"), "neither affine nor a known")
NOT_AFFINE["batch norm"] = "native_batch_norm.*not known to be affine"


@pytest.mark.parametrize("name", MIXING)
def test_a_model_whose_points_know_of_each_other_is_refused(name: str) -> None:
    programs = filter(mixes, (random_program(seed, mixing=MIXING[name]) for seed in range(1000)))
    for program in islice(programs, MIXED):
        with pytest.raises(rs.UnsupportedModel, match=NOT_AFFINE.get(name, "depend on the other points")):
            rs.trace(program, program.points(1 + program.seed % 3, seed=1))
