"""Slow, obvious references that the library has to match."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import networkx
import numpy as np
import torch
from torch import Tensor, nn

import regionscope as rs
from regionscope.geometry.patterns import Column
from regionscope.types import Floats, Words


def hooked_inputs(model: nn.Module, x: Tensor, kinds: tuple[type[nn.Module], ...]) -> list[Tensor]:
    """What enters each module of the given kinds, in the order of the calls, by forward hooks."""
    seen: list[Tensor] = []

    def keep(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        seen.append(arguments[0].clone())

    hooks = [m.register_forward_pre_hook(keep) for m in model.modules() if isinstance(m, kinds)]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return seen


@torch.no_grad()
def patterns_at(net: rs.Network, columns: tuple[Column, ...], x: Tensor) -> Words:
    """The packed patterns of points, by a forward pass: a bit a boundary, 32 a winner."""
    entering = dict(zip((site.name for site in net.sites), net.preactivations(x), strict=True))
    packed = []
    for c in columns:
        if c.breakpoints:
            (site,) = (site for site in net.sites if site.name == c.name)
            bits = torch.cat([entering[c.name].reshape(len(x), -1) > b for b in site.breakpoints], dim=1).numpy()
            bytes_ = np.packbits(bits, axis=1, bitorder="little")
        else:
            (value,) = {
                t.winners for t in (site.tournament for site in net.sites) if t is not None and t.name == c.name
            }
            assert value is not None
            (won,) = net.program.pruned([value]).run(x)
            bytes_ = won.reshape(len(x), -1).numpy().astype(np.int32).view(np.uint8)
        packed.append(np.pad(bytes_, ((0, 0), (0, 8 * c.words - bytes_.shape[1]))).view(np.uint64))
    return np.concatenate([np.zeros((len(x), 0), np.uint64), *packed], axis=1)


def grid_patterns(net: rs.Network, cells: rs.PlaneCells, side: int) -> tuple[Floats, Words]:
    """A grid of points inside the domain of cells, away from its rim, and their packed patterns by a forward pass."""
    low, high = cells.plane.domain.min(axis=0), cells.plane.domain.max(axis=0)
    axes = [np.linspace(a, b, side + 2)[1:-1] + 1e-4 * (b - a) for a, b in zip(low, high, strict=True)]
    u = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    return u, patterns_at(net, cells.columns, cells.plane.points(u).reshape(-1, *net.input_shape))


def bisected_breakpoints(net: rs.Network, columns: tuple[Column, ...], start: Tensor, end: Tensor) -> list[float]:
    """Where the pattern changes between two points, by bisection from a fine grid; may miss cells thinner than that."""

    def pattern(t: float) -> bytes:
        return patterns_at(net, columns, (start + t * (end - start))[None]).tobytes()

    grid = np.linspace(0, 1, 4001)
    points = start + torch.from_numpy(grid).view(-1, *[1] * start.dim()) * (end - start)
    patterns = patterns_at(net, columns, points)
    found: list[float] = []
    for i in np.flatnonzero((patterns[1:] != patterns[:-1]).any(axis=1)):
        pending = [(grid[i], grid[i + 1], patterns[i].tobytes(), patterns[i + 1].tobytes())]
        while pending:
            low, high, first, last = pending.pop()
            if first == last:
                continue
            if high - low < 1e-13:
                found.append((low + high) / 2)
                continue
            middle = (low + high) / 2
            between = pattern(middle)
            pending += [(low, middle, first, between), (middle, high, between, last)]
    return sorted(found)


def jacobians(net: rs.Network, x: Tensor) -> tuple[list[Tensor], Tensor]:
    """The Jacobians (n, units, d) of every site's pre-activations and of the output, row by row by reverse mode."""
    x = x.detach().clone().requires_grad_()
    values = [v.reshape(len(x), -1) for v in [*net._site_values(x), net._output_program.run(x)[0]]]

    def rows(value: Tensor) -> Tensor:
        grads = [torch.autograd.grad(column.sum(), x, retain_graph=True)[0].flatten(1) for column in value.T]
        return torch.stack(grads, dim=1).detach()

    found = [rows(value) for value in values]
    return found[:-1], found[-1]


def sampled_boundary_length(model: nn.Module, plane: rs.Plane, sigma: float, draws: int) -> tuple[float, float]:
    """Mean and standard error of the exact boundary length over draws of noise on all biases before the last layer."""
    biases = [m.bias for m in model.modules() if isinstance(m, nn.Linear | nn.Conv2d) and m.bias is not None][:-1]
    before = [b.detach().clone() for b in biases]
    lengths = []
    for _ in range(draws):
        for b, original in zip(biases, before, strict=True):
            b.data = original + sigma * torch.randn_like(original)
        lengths.append(rs.plane_cells(model, plane).boundary_length().sum())
    for b, original in zip(biases, before, strict=True):
        b.data = original
    return float(np.mean(lengths)), float(np.std(lengths, ddof=1) / draws**0.5)


def vertex_values(net: rs.Network, x: Tensor, vectors: Tensor) -> list[Tensor]:
    """The pre-activations of each site at one point moved by each of the vectors (m, d), by a plain forward pass."""
    return [v.flatten(1) for v in net.preactivations(x + vectors.reshape(-1, *x.shape))]


def naive_crossings(net: rs.Network, x: Tensor, frame: Tensor, radius: float, *, centre: bool = False) -> list[int]:
    """The breakpoints with vertices of the neighbourhood of one point on both sides, layer by layer, one at a time."""
    vectors = torch.cat([radius * frame, -radius * frame, *([0 * frame[:1]] if centre else [])])
    counts = [0] * net.layers
    for site, values in zip(net.sites, vertex_values(net, x, vectors), strict=True):
        pairs = site.tournament is not None or site.kind in ("maximum", "minimum")  # equals have no sides
        for unit in values.T.tolist():
            for b in site.breakpoints:
                sides = {value > b for value in unit if value != b or not pairs}
                counts[site.layer - 1] += len(sides) == 2
    return counts


def naive_graph_sizes(net: rs.Network, x: Tensor, frame: Tensor, radius: float) -> list[tuple[float, float]]:
    """Mean eccentricity and diameter of the graph on the embedded vertices, layer by layer, by Dijkstra's search."""
    values, P = vertex_values(net, x, torch.cat([radius * frame, -radius * frame])), len(frame)
    sizes = []
    for layer in range(1, net.layers + 1):
        vertices = torch.cat([v for v, site in zip(values, net.sites, strict=True) if site.layer == layer], dim=1)
        graph: networkx.Graph[int] = networkx.Graph()
        for i, j in combinations(range(2 * P), 2):
            if j != i + P:
                graph.add_edge(i, j, weight=float((vertices[i] - vertices[j]).norm()))
        paths = dict(networkx.all_pairs_dijkstra_path_length(graph))
        eccentricities = [max(lengths.values()) for lengths in paths.values()]
        sizes.append((float(np.mean(eccentricities)), max(eccentricities)))
    return sizes


def decision_distances(function: Callable[[Tensor], Tensor], x: Tensor) -> Floats:
    """How far the affine map at each point x (n, d) is from another class, (n,)."""
    found = []
    for point in x:
        outputs = function(point[None])[0].detach()
        slopes = torch.autograd.functional.jacobian(lambda p: function(p[None])[0], point)
        label = int(outputs.argmax())
        others = [k for k in range(len(outputs)) if k != label]
        reach = (outputs[label] - outputs[others]) / (slopes[label] - slopes[others]).norm(dim=1)
        found.append(float(reach.min()))
    return np.array(found)
