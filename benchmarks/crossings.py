"""What boundary crossings cost, in plain forward passes at the vertices and against the obvious way."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from networks import he_mlp, images, resnet18
from timing import Ratio, cost, forward
from torch import Tensor, nn

import regionscope as rs
from regionscope.measures.crossings import Tally
from regionscope.measures.neighbourhoods import bundles, passage, random_frame

RADIUS = 0.05
LARGE = 0.5  # where a tenth of the units switch


def vertices_of(points: Tensor, frame: Tensor) -> Tensor:
    """x + r v_p and x - r v_p for all points (n, ...), point after point."""
    arms = RADIUS * torch.cat([frame, -frame]).reshape(-1, *points.shape[1:])
    return (points[:, None] + arms).flatten(0, 1)


def naive(model: nn.Module, points: Tensor, frame: Tensor) -> Callable[[], list[Tensor]]:
    """All vertices, a forward pass with hooks, signs compared."""

    def counts() -> list[Tensor]:
        seen: list[Tensor] = []

        def keep(module: nn.Module, arguments: tuple[Any, ...]) -> None:
            seen.append(arguments[0].sign())

        hooks = [m.register_forward_pre_hook(keep) for m in model.modules() if isinstance(m, nn.ReLU)]
        with torch.no_grad():
            model(vertices_of(points, frame))
        for hook in hooks:
            hook.remove()
        signs = [s.reshape(len(points), 2 * len(frame), -1) for s in seen]
        return [(s != s[:, :1]).any(dim=1).sum(dim=1) for s in signs]

    return counts


def plain(net: rs.Network, points: Tensor, frame: Tensor, radius: float) -> Callable[[], rs.Crossings]:
    """The crossings in the way that is right for any network: all of it behind the head, at all vertices."""

    def counted() -> rs.Crossings:
        layers = tuple(range(1, net.layers + 1))
        way, tally = passage(net, layers).at_vertices(), Tally(radius, len(frame), layers, False)
        with torch.no_grad():
            for bundle in bundles(way, [points], frame, len(frame), reach=radius):
                tally.add(bundle)
        return tally.result(way, {"frame": frame.numpy()})

    return counted


def ratios() -> Iterator[Ratio]:
    model, points = he_mlp(784, 200, 200, 200, 200, 10), images(1000)
    frame = random_frame(25, 784, torch.Generator().manual_seed(0)).float()
    net, vertices = rs.trace(model, points[:1]), vertices_of(points, frame)

    def ours(radius: float = RADIUS) -> rs.Crossings:
        return rs.boundary_crossings(net, points, radius=radius, frame=frame)

    setting = "crossings of 784-200x4-10, 1000 points, P = 25"
    yield Ratio(f"{setting}, against hooks and signs", cost(ours, naive(model, points, frame)), 0.4)
    yield Ratio(f"{setting}, in forward passes", cost(ours, forward(model, vertices, len(vertices))), 0.35)
    value = cost(lambda: ours(LARGE), plain(net, points, frame, LARGE))
    yield Ratio(f"{setting}, radius {LARGE:g}, against all vertices behind the first layer", value, 1.05)

    model, points = resnet18(), torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    small = random_frame(20, 3 * 32 * 32, torch.Generator().manual_seed(0)).float()
    deep, vertices = rs.trace(model, points[:1]), vertices_of(points, small)
    value = cost(
        lambda: rs.boundary_crossings(deep, points, radius=RADIUS, frame=small),
        forward(model, vertices, 2 * len(small)),
        rounds=5,
    )
    yield Ratio("crossings of ResNet18, 32x32, 8 points, P = 20, in forward passes", value, 1.2)
