"""Local rank: how many dimensions of the input a layer still sees."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from regionscope.machine import points_at_once
from regionscope.measures.directions import (
    Directions,
    chosen_directions,
    exact_directions,
    tangent_floats,
    unit_directions,
)
from regionscope.measures.draws import Draws
from regionscope.measures.krylov import Jacobian, counted_singular_values
from regionscope.measures.noise import slope_errors
from regionscope.measures.routes import Routes
from regionscope.progress import tqdm
from regionscope.results import Estimate
from regionscope.tracing.given import check_bends, network_and_points, points_kept_at_once
from regionscope.tracing.network import Network
from regionscope.types import Data, Model


@torch.inference_mode(False)  # it differentiates wherever it is called
def local_rank(
    model: Model | Network,
    data: Data,
    *,
    eps: float,
    relative: bool = False,
    method: str = "auto",
    directions: int = 16,
    generator: torch.Generator | None = None,
    batch_size: int | None = None,
    differentiable: bool = False,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> Estimate:
    """Local rank LR_l = E[number of singular values >= eps of the Jacobian of layer l] (LC Def. 4, eq. 10).

    `per_layer` (n, layers) holds it for each layer, `per_point` the sum over layers. With `relative`, eps is a share of
    each Jacobian's largest singular value. eps = 0 gives the rank: Jacobians are computed in float64, and singular
    values that rounding there may have made count as 0. `differentiable` gives the sum of singular values, which
    carries gradients, in `tensor`: a surrogate of the rank.

    `method` is "gram" or "jacobian", both exact, or "random": in a space of so many `directions`, the first one drawn
    from `generator`, singular values are counted one by one if they are few, and otherwise by their share of all; the
    error is in `point_stderr`, and what so many directions cannot tell, which no mean makes less, in `resolution` and
    `stderr` too; see `krylov`. Without a `generator` such
    calls differ. "auto" is exact if a thousand directions are enough for that, for eps = 0 and for gradients.

    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU())
    >>> local_rank(model, torch.zeros(2, 3), eps=0).per_point
    array([3., 3.])
    """
    if not eps >= 0:
        raise ValueError(f"eps must not be negative, got {eps}")
    net, points = network_and_points(model, data, allow_smooth=allow_smooth)
    options: dict[str, Any] = {"batch_size": batch_size, "show_progress": show_progress}
    threshold = {"eps": float(eps), "relative": relative}
    total = None
    if method == "auto" and eps > 0 and not differentiable and not chosen_directions(net).exact:
        method = "random"
    if method == "random" and eps > 0 and not differentiable:
        return _estimated_rank(net, points, threshold, directions, Draws(generator), **options)
    counting = net.frozen() if eps == 0 else net
    along = _exact_along(counting, method)
    if differentiable:
        moving = _exact_along(net, method) if eps == 0 else along
        found = _spectra(net, points, moving, differentiable=True, **options)
        total = torch.stack([s.sum(dim=1).mean() for s in found.layers]).sum()
    if eps == 0:
        found = _spectra(counting, points.to(torch.float64), along, **options)
        counts = [(s > r[:, None]).sum(dim=1) for s, r in zip(found.layers, found.rounding(counting), strict=True)]
    elif differentiable:
        counts = [ranks(s.detach(), eps, relative) for s in found.layers]
    else:
        counts = _counted_ranks(net, points, along, eps, relative, **options)
    layers = torch.stack(counts, dim=1).cpu().double().numpy()
    return Estimate(
        "local rank", layers.sum(axis=1), layers, exact=True, quantity="singular values", tensor=total,
        options={**threshold, **along.options}, piecewise_linear=net.piecewise_linear,
    )  # fmt: skip


def _estimated_rank(
    net: Network, points: Tensor, threshold: Mapping[str, Any], directions: int, numbers: Draws, *,
    batch_size: int | None, show_progress: bool,
) -> Estimate:  # fmt: skip
    """The local rank from few products with each Jacobian."""
    check_bends(net)
    widest = int(net.by_layer(torch.ones(1, net.units)).max())
    directions = min(directions, widest, math.prod(net.input_shape))  # as many products give all singular values
    program = net.program.folded().pruned(net.entries).still()
    found = []
    at_once = max(1, points_kept_at_once(net, batch_size) // (1 if batch_size else 4))  # two graphs, and a basis
    for part in tqdm(points.split(at_once), desc="local rank", disable=not show_progress):
        with torch.enable_grad():
            x = part.detach().requires_grad_()
            layers = [Jacobian(x, values) for values in by_layer(net, program.run(x))]
        starts = [numbers.normal((k,), part, min(layer.shape)) for k, layer in enumerate(layers)]
        pairs = zip(layers, starts, strict=True)
        found.append([counted_singular_values(*pair, **threshold, directions=directions) for pair in pairs])
    number, spread, resolution = (
        torch.cat([torch.stack([getattr(layer, name) for layer in part], dim=1) for part in found]).cpu().numpy()
        for name in ("number", "spread", "resolution")
    )  # (n, layers) each
    return Estimate(
        "local rank", number.sum(axis=1), number, quantity="singular values",
        point_stderr=np.sqrt((spread**2 + resolution**2).sum(axis=1)),
        resolution=np.sqrt((resolution**2).sum(axis=1)),
        layer_resolution=resolution,
        options={**threshold, "method": "random", "directions": directions},
        piecewise_linear=net.piecewise_linear,
    )  # fmt: skip


def ranks(spectrum: Tensor, eps: float, relative: bool) -> Tensor:
    """How many of the singular values (n, k), largest first, are at least eps, or that share of the largest: (n,)."""
    largest = spectrum[:, :1]
    rounding = largest * max(spectrum.shape[1], 1) * torch.finfo(spectrum.dtype).eps
    threshold = eps * largest if relative else torch.full_like(largest, eps)
    return ((spectrum >= threshold) & (spectrum > rounding)).sum(dim=1)


@torch.no_grad()
def _counted_ranks(
    net: Network, points: Tensor, along: Directions, eps: float, relative: bool, **options: Any
) -> list[Tensor]:
    """The number of singular values from eps on, of each layer (n,)."""
    inputs, parts = math.prod(net.input_shape), []
    for found in _jacobian_batches(net, points, along, **options):
        layers = [_side_by_side(sites, 2) for sites in by_layer(net, found)]
        parts.append([ranks_by_inertia(j, eps, relative, inputs) for j in layers])
    return [torch.cat(layer) for layer in zip(*parts, strict=True)]


def ranks_by_inertia(jacobians: Tensor, eps: float, relative: bool, inputs: int) -> Tensor:
    """How many singular values of (n, r, units) are at least eps, without them: a third of the time.

    As many as J Jᵀ - eps² has eigenvalues that are not negative, and so pivots of its factorisation L D Lᵀ (Sylvester's
    law of inertia; a pivot of two rows has one of each sign). Products of float32 numbers are exact in float64, and its
    rounding is far below that of J, unless eps is; then, and for float64, singular values are computed.
    """
    if len(jacobians) > 1 and jacobians.stride(0) == 0:  # the same at all points, as those of the first layer are
        return ranks_by_inertia(jacobians[:1], eps, relative, inputs).expand(len(jacobians))
    r, units = jacobians.shape[1:]
    size = min(inputs, units) * torch.finfo(jacobians.dtype).eps * jacobians.flatten(1).norm(dim=1)
    if relative or jacobians.dtype != torch.float32 or not (size < eps).all() or jacobians.device.type != "cpu":
        return ranks(_spectrum(jacobians, inputs), eps, relative)
    j = (jacobians if r <= units else jacobians.transpose(1, 2)).double()
    threshold = torch.full((j.shape[1],), eps, dtype=torch.float32).double() ** 2  # eps as J would have it
    factors, pivots, _ = torch.linalg.ldl_factor_ex(torch.baddbmm(-torch.diag(threshold), j, j.mT))
    single = pivots > 0
    found: Tensor = (single & (factors.diagonal(dim1=1, dim2=2) >= 0)).sum(dim=1) + (~single).sum(dim=1) // 2
    return found


def singular_values(
    model: Model | Network,
    data: Data,
    *,
    method: str = "auto",
    batch_size: int | None = None,
    differentiable: bool = False,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> list[Tensor]:
    """The singular values of the Jacobian of each layer's pre-activations: a layer (n, k), largest first.

    The sites of a layer are taken together. Exact.
    """
    net, points = network_and_points(model, data, allow_smooth=allow_smooth)
    options: dict[str, Any] = {"batch_size": batch_size, "show_progress": show_progress}
    return _spectra(net, points, _exact_along(net, method), differentiable=differentiable, **options).layers


@dataclass(frozen=True)
class _Spectra:
    """The singular values of each layer (n, k), largest first, and the norm of the Jacobian of every site (n,)."""

    layers: list[Tensor]
    sites: list[Tensor]

    def rounding(self, net: Network) -> list[Tensor]:
        """What singular values of each layer (n,) may be off by rounding alone."""
        return [torch.cat(errors, dim=1).norm(dim=1) for errors in by_layer(net, slope_errors(net, self.sites))]


def _spectra(
    net: Network,
    points: Tensor,
    along: Directions,
    *,
    batch_size: int | None,
    show_progress: bool,
    differentiable: bool = False,
) -> _Spectra:
    """The singular values at checked points."""
    parts: list[tuple[list[Tensor], list[Tensor]]] = []
    with torch.set_grad_enabled(differentiable):
        for found in _jacobian_batches(net, points, along, batch_size=batch_size, show_progress=show_progress):
            whole = [_spectrum(torch.cat(j, dim=2), math.prod(net.input_shape)) for j in by_layer(net, found)]
            parts.append((whole, [j.detach().flatten(1).norm(dim=1) for j in found]))
    layers, sites = (zip(*part, strict=True) for part in zip(*parts, strict=True))
    return _Spectra([torch.cat(layer) for layer in layers], [torch.cat(site) for site in sites])


def _exact_along(net: Network, method: str) -> Directions:
    """Directions that give all singular values."""
    check_bends(net)
    if method == "auto":
        along = exact_directions(net)
    else:
        along = unit_directions(net) if method == "jacobian" else chosen_directions(net, method)
    if not along.exact:
        raise ValueError(
            "random directions count singular values from some eps on, but do not give them; leave method out"
        )
    return along


def _jacobian_batches(
    net: Network, points: Tensor, along: Directions, *, batch_size: int | None, show_progress: bool
) -> Iterator[list[Tensor]]:
    """What has the singular values of the Jacobian of each site, (n, directions, units), batch by batch."""
    routes = Routes(net, along)
    at_once = points_at_once(tangent_floats(net, along), batch_size)
    for x in tqdm(points.split(at_once), desc="local rank", disable=not show_progress):
        yield jacobians(routes, x)


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
    return [_side_by_side(parts, 1) for parts in chunks]


def _side_by_side(parts: list[Tensor], dim: int) -> Tensor:
    """Parts along a dimension; one alone stays as it lies in memory."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=dim)


def _spectrum(jacobians: Tensor, inputs: int) -> Tensor:
    """The singular values of (n, r, units), of which there are as many as with so many inputs."""
    found: Tensor = torch.linalg.svdvals(jacobians)
    return pad(found, (0, min(inputs, jacobians.shape[2]) - found.shape[1]))
