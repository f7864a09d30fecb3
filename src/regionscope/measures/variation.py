"""Total variation: how steep the network is."""

import torch
from torch import Tensor
from tqdm import tqdm

from regionscope.measures.jacobians import Route, directions, points_at_once
from regionscope.points import Data, all_points
from regionscope.results import Estimate
from regionscope.tracing.network import Network
from regionscope.tracing.trace import Model, as_network


def total_variation(
    model: Model | Network,
    data: Data,
    *,
    target: int | str | None = None,
    engine: str = "auto",
    probes: int = 32,
    generator: torch.Generator | None = None,
    batch_size: int | None = None,
    differentiable: bool = False,
    show_progress: bool = False,
) -> Estimate:
    """Total variation TV = E |grad N(x)| (LC section 5): Frobenius norm of the Jacobian of all outputs.

    `target` takes one output by its number, or "margin": the largest output less the second largest. Exact, unless the
    engine is "probes". With `differentiable` the mean carries gradients, in `tensor`.

    >>> model = torch.nn.Linear(2, 1)
    >>> _ = model.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> total_variation(model, torch.zeros(1, 2)).mean
    5.0
    """
    points = all_points(data)
    net = as_network(model, points[:1])
    points = net.checked(points)
    along = directions(net, engine, probes)
    parts = []
    with torch.set_grad_enabled(differentiable):
        at_once = batch_size or points_at_once(net, along)
        route = Route(net, along, output=True)
        for x in tqdm(points.split(at_once), desc="total variation", disable=not show_progress):
            chosen = pick(route.follow(x, generator=generator), net(x).reshape(len(x), -1), target)
            parts.append(torch.linalg.vector_norm(along.norms(chosen), dim=1))
    found = torch.cat(parts)
    return Estimate(
        "total variation",
        found.detach().cpu().double().numpy(),
        exact=along.exact,
        unit="slope",
        tensor=found.mean() if differentiable else None,
    )


def pick(tangents: Tensor, outputs: Tensor, target: int | str | None) -> Tensor:
    """The tangents (r, n, k) of the outputs that were asked for."""
    if target is None:
        return tangents
    if target == "margin":
        if outputs.shape[1] < 2:
            raise ValueError("a margin needs at least two outputs")
        first, second = outputs.topk(2, dim=1).indices.T
        rows = torch.arange(len(outputs), device=outputs.device)
        return (tangents[:, rows, first] - tangents[:, rows, second])[:, :, None]
    if not isinstance(target, int) or not -outputs.shape[1] <= target < outputs.shape[1]:
        raise ValueError(f"target must be one of {outputs.shape[1]} outputs or 'margin', got {target!r}")
    return tangents[:, :, target, None]
