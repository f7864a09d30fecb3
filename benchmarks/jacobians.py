"""What gradients of all units cost, against the obvious way and against the matrix products that are needed."""

from collections.abc import Callable, Iterator

import torch
from networks import he_mlp, images, resnet18
from timing import Ratio, cost, peak_memory
from torch import Tensor, nn
from torch.func import jacrev, vmap

import regionscope as rs
from regionscope.machine import points_at_once
from regionscope.measures.directions import chosen_directions, tangent_floats
from regionscope.measures.routes import Route


def all_norms(net: rs.Network, x: Tensor) -> Callable[[], None]:
    along = chosen_directions(net)

    def run() -> None:
        with torch.no_grad():
            route = Route(net, along)
            for part in x[route.order(x)].split(points_at_once(tangent_floats(net, along))):
                route.follow(part, lambda i, z, t: along.norms(t))  # type: ignore[arg-type]

    return run


def obvious(model: nn.Sequential, x: Tensor, at_once: int) -> Callable[[], None]:
    """Jacobians of all pre-activations by reverse mode, mapped over so many points, and the norms of their rows."""

    def preactivations(point: Tensor) -> Tensor:
        found = []
        for layer in model:
            if isinstance(layer, nn.ReLU):
                found.append(point)
            point = layer(point)
        return torch.cat(found)

    def run() -> None:
        with torch.no_grad():
            for part in x.split(at_once):
                vmap(jacrev(preactivations))(part).norm(dim=2)

    return run


def products(n: int, r: int, width: int, layers: int, at_once: int) -> Callable[[], None]:
    """The matrix products that take r tangents of n points through the layers after the first."""
    rows, weight = torch.randn(at_once * r, width), torch.randn(width, width)

    def run() -> None:
        for _ in range(layers * -(-n // at_once)):
            torch.mm(rows, weight)

    return run


def usual_complexity(model: nn.Module, net: rs.Network, x: Tensor) -> Ratio:
    """Before all draws shared what they have in common it took twice the limit."""

    def complexity() -> rs.Estimate:
        return rs.local_complexity(net, x, generator=torch.Generator().manual_seed(0))

    def forward() -> None:
        with torch.no_grad():
            for _ in range(32):
                model(x)

    name = "LC of 784-200x4-10, 1000 points, with its defaults, in forward passes at 32 x 1000 points"
    return Ratio(name, cost(complexity, forward, rounds=3), 40)


def ratios() -> Iterator[Ratio]:
    model, x = he_mlp(784, 200, 200, 200, 200, 10), images(1000)
    net = rs.trace(model, x)
    ours = all_norms(net, x)
    for at_once in (1000, 50, 10):  # all together the obvious way takes 6 GB; ten by ten it is at its fastest
        value = cost(ours, obvious(model, x, at_once), rounds=5)
        name = f"gradient norms of all units of 784-200x4-10, 1000 points, against vmap(jacrev) on {at_once} at once"
        yield Ratio(name, value, 1 / 15)
    needed = products(1000, 200, 200, 3, points_at_once(tangent_floats(net, chosen_directions(net))))
    yield Ratio("the same, against the matrix products it needs with all units open", cost(ours, needed, rounds=7), 2.5)

    def noisy(good: bool) -> Callable[[], rs.Estimate]:
        return lambda: rs.local_complexity(net, x, draws=4, good=good, generator=torch.Generator().manual_seed(0))

    value = cost(noisy(True), noisy(False), rounds=3)
    yield Ratio("LC of 784-200x4-10, 1000 points, 4 draws, against the same without a look at who is good", value, 1.35)

    yield usual_complexity(model, net, x)

    resnet, pictures = resnet18(), torch.randn(100, 3, 32, 32)
    deep = rs.trace(resnet, pictures)

    def complexity() -> rs.Estimate:
        generator = torch.Generator().manual_seed(0)
        return rs.local_complexity(
            deep, pictures, draws=1, good=False, method="random", directions=32, generator=generator
        )

    def forward() -> None:
        with torch.no_grad():
            for _ in range(33):
                for part in pictures.split(25):
                    resnet(part)

    yield Ratio(
        "LC of ResNet18, 100 points, 32 directions, in 33 x 100 forward passes",
        cost(complexity, forward, rounds=1),
        2.5,
    )
    found = complexity()
    yield Ratio("the same: relative standard error of LC", found.stderr / found.mean, 0.05)
    memory = peak_memory(
        "rs.local_complexity(networks.resnet18(), torch.randn(100, 3, 32, 32), draws=1, good=False, method='random')"
    )
    yield Ratio("the same: peak memory in GB, in a process of its own", memory, 2)
