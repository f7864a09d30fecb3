"""Local rank: how many dimensions of the input a layer still sees."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from tqdm.auto import tqdm

from regionscope.machine import points_at_once
from regionscope.measures.jacobians import Routes, chosen_directions, exact_directions, tangent_floats, unit_directions
from regionscope.measures.noise import slope_errors
from regionscope.results import Estimate
from regionscope.tracing.given import network_and_points
from regionscope.tracing.network import Network
from regionscope.types import Data, Model


def local_rank(
    model: Model | Network,
    data: Data,
    *,
    eps: float,
    relative: bool = False,
    method: str = "auto",
    batch_size: int | None = None,
    differentiable: bool = False,
    show_progress: bool = False,
) -> Estimate:
    """Local rank LR_l = E[number of singular values >= eps of the Jacobian of layer l] (LC Def. 4, eq. 10).

    `per_layer` (n, layers) holds it for each layer, `per_point` the sum over layers. With `relative`, eps is a share of
    each Jacobian's largest singular value. eps = 0 gives the rank: Jacobians are computed in float64, and singular
    values that rounding there may have made count as 0. Exact. `differentiable` gives the sum of singular values, which
    carries gradients, in `tensor`: a surrogate of the rank.

    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU())
    >>> local_rank(model, torch.zeros(2, 3), eps=0).per_point
    array([3., 3.])
    """
    if not eps >= 0:
        raise ValueError(f"eps must not be negative, got {eps}")
    net, points = network_and_points(model, data)
    options: dict[str, Any] = {"method": method, "batch_size": batch_size, "show_progress": show_progress}
    total = None
    if differentiable:
        found = spectra(net, points, differentiable=True, **options)
        total = torch.stack([s.sum(dim=1).mean() for s in found.layers]).sum()
    if eps == 0:
        net = net.frozen()
        found = spectra(net, points.to(torch.float64), **options)
        counts = [(s > r[:, None]).sum(dim=1) for s, r in zip(found.layers, found.rounding(net), strict=True)]
    else:
        found = found if differentiable else spectra(net, points, **options)
        counts = [ranks(s.detach(), eps, relative) for s in found.layers]
    layers = torch.stack(counts, dim=1).cpu().double().numpy()
    return Estimate("local rank", layers.sum(axis=1), layers, exact=True, quantity="singular values", tensor=total)


def ranks(spectrum: Tensor, eps: float, relative: bool) -> Tensor:
    largest = spectrum[:, :1]
    rounding = largest * max(spectrum.shape[1], 1) * torch.finfo(spectrum.dtype).eps
    threshold = eps * largest if relative else torch.full_like(largest, eps)
    return ((spectrum >= threshold) & (spectrum > rounding)).sum(dim=1)


def singular_values(
    model: Model | Network,
    data: Data,
    *,
    method: str = "auto",
    batch_size: int | None = None,
    differentiable: bool = False,
    show_progress: bool = False,
) -> list[Tensor]:
    """The singular values of the Jacobian of each layer's pre-activations: a layer (n, k), largest first.

    The sites of a layer are taken together. Exact.
    """
    net, points = network_and_points(model, data)
    options: dict[str, Any] = {"method": method, "batch_size": batch_size, "show_progress": show_progress}
    return spectra(net, points, differentiable=differentiable, **options).layers


@dataclass(frozen=True)
class Spectra:
    """The singular values of each layer (n, k), largest first, and the norm of the Jacobian of every site (n,)."""

    layers: list[Tensor]
    sites: list[Tensor]

    def rounding(self, net: Network) -> list[Tensor]:
        """What singular values of each layer (n,) may be off by rounding alone."""
        return [torch.cat(errors, dim=1).norm(dim=1) for errors in by_layer(net, slope_errors(net, self.sites))]


def spectra(
    net: Network,
    points: Tensor,
    *,
    method: str,
    batch_size: int | None,
    show_progress: bool,
    differentiable: bool = False,
) -> Spectra:
    """The singular values at checked points."""
    if not net.sites:
        raise ValueError("the network has no activation sites: nothing bends")
    if method == "auto":
        along = exact_directions(net)
    else:
        along = unit_directions(net) if method == "jacobian" else chosen_directions(net, method)
    if not along.exact:
        raise ValueError("random directions have no singular values; leave method out")
    parts: list[tuple[list[Tensor], list[Tensor]]] = []
    with torch.set_grad_enabled(differentiable):
        routes = Routes(net, along)
        at_once = points_at_once(tangent_floats(net, along), batch_size)
        for x in tqdm(points.split(at_once), desc="local rank", disable=not show_progress):
            found = jacobians(routes, x)
            whole = [spectrum(torch.cat(j, dim=2), math.prod(net.input_shape)) for j in by_layer(net, found)]
            parts.append((whole, [j.detach().flatten(1).norm(dim=1) for j in found]))
    layers, sites = (zip(*part, strict=True) for part in zip(*parts, strict=True))
    return Spectra([torch.cat(layer) for layer in layers], [torch.cat(site) for site in sites])


def by_layer(net: Network, sites: list[Tensor]) -> list[list[Tensor]]:
    """What belongs to the sites of each layer."""
    numbers = sorted({site.layer for site in net.sites})
    return [[s for s, site in zip(sites, net.sites, strict=True) if site.layer == layer] for layer in numbers]


def jacobians(routes: Routes, x: Tensor) -> list[Tensor]:
    """What has the singular values of the Jacobian of each site at points x, (n, directions, units)."""
    chunks: list[list[Tensor]] = [[] for _ in routes.net.sites]  # of the directions

    def visit(number: int, z: Tensor, tangents: Tensor) -> None:
        chunks[number].append(tangents.transpose(0, 1))  # (n, r, units)

    for route in routes.each():
        route.follow(x, visit)
    return [torch.cat(parts, dim=1) for parts in chunks]


def spectrum(jacobians: Tensor, inputs: int) -> Tensor:
    """The singular values of (n, r, units), of which there are as many as with so many inputs."""
    found: Tensor = torch.linalg.svdvals(jacobians)
    return pad(found, (0, min(inputs, jacobians.shape[2]) - found.shape[1]))
