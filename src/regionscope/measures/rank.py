"""Local rank: how many dimensions of the input a layer still sees."""

import torch
from torch import Tensor
from torch.nn.functional import pad
from tqdm import tqdm

from regionscope.measures.jacobians import Route, directions, points_at_once
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
    along = directions(net, engine)
    if not along.exact:
        raise ValueError("random directions have no singular values; say engine='jacobian' and a small batch_size")
    parts: list[list[Tensor]] = []
    with torch.set_grad_enabled(differentiable):
        at_once = batch_size or points_at_once(net, along)
        route = Route(net, along)
        for x in tqdm(points.split(at_once), desc="local rank", disable=not show_progress):
            rows: dict[int, list[Tensor]] = {}

            def visit(number: int, z: Tensor, tangents: Tensor, rows: dict[int, list[Tensor]] = rows) -> None:
                rows.setdefault(net.sites[number].layer, []).append(tangents.transpose(0, 1))  # (n, r, units)

            route.follow(x, visit)
            parts.append([spectrum(torch.cat(rows[layer], dim=2), len(along.vectors)) for layer in sorted(rows)])
    return [torch.cat(layer) for layer in zip(*parts, strict=True)]


def spectrum(jacobians: Tensor, directions: int) -> Tensor:
    """The singular values of (n, r, units), of which there are as many as with so many directions."""
    found: Tensor = torch.linalg.svdvals(jacobians)
    return pad(found, (0, min(directions, jacobians.shape[2]) - found.shape[1]))
