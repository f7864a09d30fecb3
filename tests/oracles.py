"""Slow, obvious references that the library has to match."""

from itertools import combinations
from typing import Any

import networkx
import numpy as np
import torch
from torch import Tensor, nn

import regionscope as rs


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


def vertex_values(net: rs.Network, x: Tensor, vectors: Tensor) -> list[Tensor]:
    """The pre-activations of each site at one point moved by each of the vectors (m, d), by a plain forward pass."""
    return [v.flatten(1) for v in net.preactivations(x + vectors.reshape(-1, *x.shape))]


def naive_crossings(net: rs.Network, x: Tensor, frame: Tensor, radius: float, *, centre: bool = False) -> list[int]:
    """The breakpoints with vertices of the neighbourhood of one point on both sides, layer by layer, one at a time."""
    vectors = torch.cat([radius * frame, -radius * frame, *([0 * frame[:1]] if centre else [])])
    counts = [0] * net.layers
    for site, values in zip(net.sites, vertex_values(net, x, vectors), strict=True):
        for unit in values.T.tolist():
            for b in site.breakpoints:
                sides = {value > b for value in unit}
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
