"""Local rank: how many dimensions of the input a layer still sees."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad
from tqdm import tqdm

from regionscope.measures.jacobians import Routes, directions, exact_directions, points_at_once, unit_directions
from regionscope.points import Data, all_points
from regionscope.results import Estimate
from regionscope.tracing.network import Network
from regionscope.tracing.trace import Model, as_network


def local_rank(
    model: Model | Network,
    data: Data,
    *,
    eps: float,
    relative: bool = False,
    engine: str = "auto",
    batch_size: int | None = None,
    differentiable: bool = False,
    show_progress: bool = False,
) -> Estimate:
    """Local rank LR_l = E[number of singular values >= eps of the Jacobian of layer l] (LC Def. 4, eq. 10).

    `per_layer` (n, layers) holds it for each layer, `per_point` the sum over layers. With `relative`, eps is a share of
    each Jacobian's largest singular value; eps = 0 counts those above the rounding of the dtype: the exact rank. Exact.
    `differentiable` gives the sum of singular values, which carries gradients, in `tensor`: a surrogate of the rank.

    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU())
    >>> local_rank(model, torch.zeros(2, 3), eps=0).per_point
    array([3., 3.])
    """
    if not eps >= 0:
        raise ValueError(f"eps must not be negative, got {eps}")
    spectra = singular_values(
        model, data, engine=engine, batch_size=batch_size, differentiable=differentiable, show_progress=show_progress
    )
    counts = [ranks(s.detach(), eps, relative) for s in spectra]
    layers = torch.stack(counts, dim=1).cpu().double().numpy()
    total = torch.stack([s.sum(dim=1).mean() for s in spectra]).sum() if differentiable else None
    return Estimate("local rank", layers.sum(axis=1), layers, exact=True, unit="singular values", tensor=total)


def ranks(spectrum: Tensor, eps: float, relative: bool) -> Tensor:
    largest = spectrum[:, :1]
    rounding = largest * max(spectrum.shape[1], 1) * torch.finfo(spectrum.dtype).eps
    threshold = eps * largest if relative else torch.full_like(largest, eps)
    return ((spectrum >= threshold) & (spectrum > rounding)).sum(dim=1)


def singular_values(
    model: Model | Network,
    data: Data,
    *,
    engine: str = "auto",
    batch_size: int | None = None,
    differentiable: bool = False,
    show_progress: bool = False,
) -> list[Tensor]:
    """The singular values of the Jacobian of each layer's pre-activations: a layer (n, k), largest first.

    The sites of a layer are taken together. Exact.
    """
    points = all_points(data)
    net = as_network(model, points[:1])
    points = net.checked(points)
    if not net.sites:
        raise ValueError("the network has no activation sites: nothing bends")
    if engine == "auto":
        along = exact_directions(net)
    else:
        along = unit_directions(net) if engine == "jacobian" else directions(net, engine)
    if not along.exact:
        raise ValueError("random directions have no singular values; leave engine out")
    parts: list[list[Tensor]] = []
    with torch.set_grad_enabled(differentiable):
        routes = Routes(net, along)
        for x in tqdm(
            points.split(batch_size or points_at_once(net, along)), desc="local rank", disable=not show_progress
        ):
            layers = [spectrum(j, math.prod(net.input_shape)) for j in jacobians(routes, x)]
            parts.append(layers)
    return [torch.cat(layer) for layer in zip(*parts, strict=True)]


def jacobians(routes: Routes, x: Tensor) -> list[Tensor]:
    """What has the singular values of the Jacobian of each layer at points x, (n, directions, units)."""
    rows: dict[int, list[list[Tensor]]] = {}  # layer -> chunk -> site

    def visit(number: int, z: Tensor, tangents: Tensor) -> None:
        chunks = rows.setdefault(routes.net.sites[number].layer, [])
        chunks += [[] for _ in range(done + 1 - len(chunks))]
        chunks[done].append(tangents.transpose(0, 1))  # (n, r, units)

    for done, route in enumerate(routes.each()):  # noqa: B007
        route.follow(x, visit)
    return [torch.cat([torch.cat(sites, dim=2) for sites in rows[layer]], dim=1) for layer in sorted(rows)]


def spectrum(jacobians: Tensor, inputs: int) -> Tensor:
    """The singular values of (n, r, units), of which there are as many as with so many inputs."""
    found: Tensor = torch.linalg.svdvals(jacobians)
    return pad(found, (0, min(inputs, jacobians.shape[2]) - found.shape[1]))
