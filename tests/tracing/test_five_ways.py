"""One function written in five ways has the same numbers in every measure."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from oracles import decision_distances
from torch import Tensor

import regionscope as rs

TOKENS, ENTRIES, WIDTH, GROUPS, MEMBERS, CLASSES = 3, 2, 4, 4, 3, 3
DRAWS = 256


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


A, a = drawn(1, WIDTH, ENTRIES), 0.5 * drawn(2, WIDTH)
B, b = drawn(3, WIDTH, WIDTH) / 2, 0.5 * drawn(4, WIDTH)
MIX, mix = drawn(5, GROUPS * MEMBERS, TOKENS * WIDTH) / 3, 0.5 * drawn(6, GROUPS * MEMBERS)
HEAD, head = drawn(7, CLASSES, GROUPS), drawn(8, CLASSES)
x = drawn(9, 6, TOKENS * ENTRIES)


def points_first(x: Tensor) -> Tensor:
    """Two dense layers on every token, one that mixes the tokens, the largest of three, a head."""
    h = F.relu(F.linear(x.view(-1, TOKENS, ENTRIES), A, a))
    h = F.relu(F.linear(h, B, b))
    h = F.linear(h.flatten(1), MIX, mix).view(-1, GROUPS, MEMBERS)
    return F.linear(h.amax(dim=2), HEAD, head)


def tokens_first(x: Tensor) -> Tensor:
    """Tokens before points, features before points in the end."""
    h = x.view(-1, TOKENS, ENTRIES).transpose(0, 1)  # (tokens, n, entries)
    h = torch.relu(h @ A.T + a)
    h = torch.relu(h @ B.T + b)
    h = h.transpose(1, 2).reshape(TOKENS * WIDTH, -1)  # (features, n)
    h = (MIX @ h + mix[:, None]).view(GROUPS, MEMBERS, -1)
    return (HEAD @ h.max(dim=1).values + head[:, None]).T


def folded(x: Tensor) -> Tensor:
    """Tokens folded into the batch, slowest; the groups of the maxout folded into it as well, fastest."""
    n = len(x)
    h = x.view(n, TOKENS, ENTRIES).transpose(0, 1).reshape(TOKENS * n, ENTRIES)
    h = F.relu(torch.addmm(a, h, A.T))
    h = F.relu(torch.addmm(b, h, B.T))
    h = torch.cat(h.split(n), dim=1)  # (n, features)
    h = torch.addmm(2 * mix, h, 4 * MIX.T, beta=0.5, alpha=0.25).reshape(n * GROUPS, MEMBERS)
    return torch.addmm(head, h.amax(dim=1).unflatten(0, (n, GROUPS)), HEAD.T)


def convolution(x: Tensor) -> Tensor:
    """Tokens as positions: kernels of one position, then one as wide as all; pooling for the maxout."""
    h = x.unflatten(1, (TOKENS, ENTRIES)).mT  # (n, entries, tokens)
    h = F.relu(F.conv1d(h, A[:, :, None], a))
    h = F.relu(F.conv1d(h, B[:, :, None], b))
    h = F.conv1d(h, MIX.view(-1, TOKENS, WIDTH).mT, mix)  # (n, groups * members, 1)
    h = F.max_pool1d(h.mT, MEMBERS)  # (n, 1, groups)
    return F.conv1d(h.mT, HEAD[:, :, None], head).squeeze(2)


def in_place(x: Tensor) -> Tensor:
    """Sums by index, activations written over what entered them, into parts of buffers."""
    n = len(x)
    h = torch.empty(WIDTH, n, TOKENS, dtype=x.dtype)
    h[:] = a[:, None, None]
    h += torch.einsum("nte,we->wnt", x.view(n, TOKENS, ENTRIES), A)
    h.transpose(0, 2).relu_()
    h = torch.einsum("wnt,vw->tnv", h, B)
    h.add_(b).clamp_(min=0)
    room = torch.zeros(n, GROUPS * MEMBERS, dtype=x.dtype)
    room.copy_(mix)
    for t in range(TOKENS):
        room.add_(torch.einsum("nv,mv->nm", h[t], MIX[:, t * WIDTH : (t + 1) * WIDTH]))
    best, _ = torch.stack([room[:, i::MEMBERS] for i in range(MEMBERS)]).max(dim=0)
    return torch.einsum("ng,cg->nc", best, HEAD) + head


WAYS: tuple[Callable[[Tensor], Tensor], ...] = (points_first, tokens_first, folded, convolution, in_place)
# whose units are in the same order, so that the same noise falls on the same units
ALIKE = (points_first, tokens_first, folded)

way = pytest.mark.parametrize("model", WAYS[1:], ids=lambda model: model.__name__)


@cache
def network(model: Callable[[Tensor], Tensor]) -> rs.Network:
    return rs.trace(model, x[:1])


def by_layer(model: Callable[[Tensor], Tensor], values: tuple[Tensor, ...]) -> list[Tensor]:
    """The values (n, units) of all sites of each dense layer, every row in order of size."""
    net = network(model)
    found = [
        torch.cat([v.flatten(1) for v, s in zip(values, net.sites, strict=True) if s.layer == layer], dim=1)
        for layer in (1, 2)
    ]
    return [v.sort(dim=1).values for v in found]


def same(one: object, other: object) -> bool:
    return np.allclose(np.asarray(one), np.asarray(other), rtol=1e-9, atol=1e-9)


def test_the_five_ways_are_one_function() -> None:
    for model in WAYS[1:]:
        assert torch.allclose(model(x), points_first(x), rtol=1e-12, atol=1e-12)


@way
def test_outputs_and_preactivations_are_the_same(model: Callable[[Tensor], Tensor]) -> None:
    net, first = network(model), network(points_first)
    assert net.piecewise_linear
    assert (net.units, net.input_shape, net.output_shape) == (first.units, first.input_shape, first.output_shape)
    assert same(net(x), points_first(x))
    for ours, theirs in zip(
        by_layer(model, net.preactivations(x)), by_layer(points_first, first.preactivations(x)), strict=True
    ):
        assert same(ours, theirs)
    dense = 2 * TOKENS * WIDTH
    assert same(net.patterns(x)[:, :dense].sum(dim=1), first.patterns(x)[:, :dense].sum(dim=1))


EXACT: dict[str, Callable[[Callable[[Tensor], Tensor]], rs.Estimate]] = {
    "boundary distance": lambda model: rs.boundary_distance(model, x),
    "boundary distance, linf": lambda model: rs.boundary_distance(model, x, norm="linf"),
    "boundary distance, good": lambda model: rs.boundary_distance(model, x, good=True),
    "boundary crossings": lambda model: rs.boundary_crossings(model, x, radius=0.4, frame=np.eye(6)),
    "total variation": lambda model: rs.total_variation(model, x),
    "total variation of the margin": lambda model: rs.total_variation(model, x, target="margin"),
    "local rank": lambda model: rs.local_rank(model, x, eps=0),
    "local rank above 0.1": lambda model: rs.local_rank(model, x, eps=0.1),
    "good units": lambda model: rs.good_units(model, x),
    "region count": lambda model: rs.local_region_count(model, x, radius=0.7, axes=np.eye(6)[:2]),
    "region count in a disc": lambda model: rs.local_region_count(
        model, x, radius=0.7, axes=np.eye(6)[2:4], shape="disc"
    ),
}


@way
@pytest.mark.parametrize("measure", EXACT)
def test_exact_measures_are_the_same(model: Callable[[Tensor], Tensor], measure: str) -> None:
    ours, theirs = EXACT[measure](model), EXACT[measure](points_first)
    assert same(ours.per_point, theirs.per_point)
    if theirs.per_layer is not None:
        assert same(ours.per_layer, theirs.per_layer)


@way
def test_certified_radii_are_at_least_those_of_the_regions_and_hold(model: Callable[[Tensor], Tensor]) -> None:
    """A bound that looks beyond the region may depend on how the network is written."""
    labels = points_first(x).argmax(dim=1)
    found = rs.certified_radius(model, x, labels).per_point
    inside = np.minimum(decision_distances(points_first, x), rs.boundary_distance(points_first, x).per_point)
    assert (found >= (1 - 1e-6) * inside).all()
    u = drawn(10, 500, TOKENS * ENTRIES)
    u /= u.norm(dim=1, keepdim=True)
    for i in range(len(x)):
        assert (points_first(x[i] + 0.999 * found[i] * u).argmax(dim=1) == labels[i]).all()


@way
def test_cells_on_a_line_are_the_same(model: Callable[[Tensor], Tensor]) -> None:
    ours, theirs = (rs.line_cells(f, 2 * x[0], 2 * x[1]) for f in (model, points_first))
    assert len(theirs) > 8
    assert same(ours.breakpoints, theirs.breakpoints)
    assert same(ours.outputs, theirs.outputs)
    assert ours.functional_count() == theirs.functional_count()
    for mine, yours in zip(ours.affine_maps(), theirs.affine_maps(), strict=True):
        assert same(mine, yours)


@way
def test_cells_on_a_plane_are_the_same(model: Callable[[Tensor], Tensor]) -> None:
    plane = rs.Plane.through(*x[:3])
    ours, theirs = (rs.plane_cells(f, plane) for f in (model, points_first))
    assert len(ours) == len(theirs) > 30
    assert same(np.sort(ours.areas), np.sort(theirs.areas))
    assert same(np.sort(ours.gradient_norms), np.sort(theirs.gradient_norms))
    assert same(ours.boundary_length(), theirs.boundary_length())
    assert same(ours.decision_boundary().length, theirs.decision_boundary().length)
    assert ours.verify().holds


def complexity(model: Callable[[Tensor], Tensor], *, good: bool) -> rs.Estimate:
    """At the points, with the same noise if the units are in the same order."""
    generator = torch.Generator().manual_seed(0)
    return rs.complexity_density(model, x, sigma=0.3, draws=DRAWS, good=good, generator=generator)


@way
@pytest.mark.parametrize("good", [False, True])
def test_complexity_is_the_same_up_to_its_noise(model: Callable[[Tensor], Tensor], good: bool) -> None:
    ours, theirs = complexity(model, good=good), complexity(points_first, good=good)
    if model in ALIKE:
        assert same(ours.per_layer, theirs.per_layer)
        return
    assert ours.point_stderr is not None and theirs.point_stderr is not None
    error = np.sqrt(ours.point_stderr**2 + theirs.point_stderr**2)
    assert (error < 0.1 * theirs.per_point).all()
    assert (np.abs(ours.per_point - theirs.per_point) < 5 * error).all()


@way
def test_complexity_without_drawn_noise_is_the_same(model: Callable[[Tensor], Tensor]) -> None:
    """The first layer has no noise before it, and a small sigma moves nothing across a boundary."""
    ours, theirs = (rs.local_complexity(f, x, sigma=0.3, good=False, draws=2) for f in (model, points_first))
    assert ours.per_layer is not None and theirs.per_layer is not None
    assert same(ours.per_layer[:, 0], theirs.per_layer[:, 0])
    assert math.isfinite(ours.mean)
    slopes = [rs.local_complexity(f, x, sigma=1e-9, good=True, density=False, draws=2) for f in (model, points_first)]
    assert np.allclose(slopes[0].per_point, slopes[1].per_point, rtol=1e-6)
