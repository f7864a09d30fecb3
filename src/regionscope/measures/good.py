"""Good units: those whose switching changes the network's output."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from regionscope.points import Data, all_points
from regionscope.results import Estimate
from regionscope.tracing.network import Network
from regionscope.tracing.program import Watch
from regionscope.tracing.trace import Model, as_network


def good_units(model: Model | Network, data: Data, *, batch_size: int = 1024, per_unit: bool = False) -> Estimate:
    """The number of units that are good at each point: open units lead from them to the output (LC A.1, HR).

    A unit is good if the derivative of a generic combination of the outputs by what leaves the unit is not zero; for
    dense ReLU layers, if every later layer has an open unit. `per_unit` asks for the mask (n, units). The number that
    are not good, LC's B, is `net.units - mean`. Exact.

    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    >>> good_units(model, torch.zeros(3, 1)).per_point
    array([2., 2., 2.])
    """
    points = all_points(data)
    net = as_network(model, points[:1])
    points = net.checked(points)
    masks = [torch.cat(good_masks(net, x), dim=1) for x in points.split(batch_size)] if net.sites else []
    mask = torch.cat(masks) if masks else torch.zeros(len(points), 0, dtype=torch.bool)
    layers = net.by_layer(mask.double()).cpu()
    return Estimate(
        "good units",
        layers.sum(dim=1).numpy(),
        layers.numpy(),
        exact=True,
        unit="units",
        per_unit=mask.cpu().numpy() if per_unit else None,
    )


def good_masks(net: Network, x: Tensor, *, noise: list[Tensor] | None = None) -> list[Tensor]:
    """Which units of each site are good at points x: (n, units) a site. `noise` is taken off what enters the sites."""
    left: dict[int, Tensor] = {}
    shifted = None if noise is None else noisy_entries(net, noise)

    def watch(value: int, tensor: Tensor) -> Tensor | None:
        if value in exits:
            left[value] = tensor
        return shifted(value, tensor) if shifted else None

    exits = set(net.exits)
    program = net.program.pruned([*net.entries, *exits, net.output])
    still = replace(program, held={i: c.detach() for i, c in program.constants.items()})
    with torch.enable_grad():
        out = still.run(x.detach().requires_grad_(), watch)[-1].flatten(1)
        weights = torch.linspace(1.0, 2.0, out.shape[1], dtype=out.dtype, device=out.device) ** 0.5
        found = torch.autograd.grad((out * weights).sum(), [left[e] for e in net.exits], allow_unused=True)
    return [
        torch.zeros(len(x), math.prod(program.shapes[e]), dtype=torch.bool, device=x.device)
        if g is None
        else g.flatten(1) != 0
        for g, e in zip(found, net.exits, strict=True)
    ]


def noisy_entries(net: Network, noise: list[Tensor]) -> Watch:
    """Takes noise, one tensor (n, units) a site, off what enters the sites: the first's, if a value enters several."""
    number = {site.entry: i for i, site in reversed(list(enumerate(net.sites)))}

    def watch(value: int, tensor: Tensor) -> Tensor | None:
        return tensor - noise[number[value]].reshape(tensor.shape) if value in number else None

    return watch
