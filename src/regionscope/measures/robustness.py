"""How often a classifier stays right under attack."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regionscope.measures.attacks import UNBOUNDED, Outputs, Settings, search_starts, worst_points
from regionscope.measures.classification import checked_labels, label_leads
from regionscope.measures.draws import Draws
from regionscope.measures.neighbourhoods import is_lost
from regionscope.progress import tqdm
from regionscope.results import Share
from regionscope.tracing.given import network_and_points, points_kept_at_once
from regionscope.tracing.network import Network, as_rows
from regionscope.types import Array, Data, Model

Attack = Callable[[Outputs, Tensor, Tensor], Tensor]  # network, points, labels -> attacked points
_Attacked = Callable[[Tensor, Tensor, Tensor], Tensor]  # points, labels, which of them still stand -> those attacked


@torch.inference_mode(False)  # attacks need gradients wherever they are called
def robust_accuracy(
    model: Model | Network,
    data: Data,
    labels: Array,
    attack: str | Attack | None = None,
    *,
    radius: float = 8 / 255,
    steps: int = 20,
    step_size: float | None = None,
    norm: str = "Linf",
    bounds: tuple[float, float] = UNBOUNDED,
    restarts: int = 5,
    loss: str = "margin",
    generator: torch.Generator | None = None,
    batch_size: int | None = None,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> Share:
    """The share of points that are classified right after an attack: an upper bound on the true robust accuracy.

    A point is right if the output of its label is the largest; a tie is wrong. Only points that are right are attacked,
    within `radius` in `norm` ("Linf" or "L2") and `bounds`, and one mistake at any step of any restart counts. There
    are no bounds unless they are given: of images give their range, (0, 1), or black becomes blacker than black.
    `attack` is "pgd" (the default: steps of `step_size`, a quarter of the radius if not given), "apgd" (momentum, and
    steps that adapt from twice the radius on), "fgsm" (one step of the radius), "none" for the plain accuracy, or any
    function of a network, points and labels that returns attacked points. `loss` is what they climb: "margin", the lead
    of another output over the label's, or "cross-entropy", which is flat where the softmax is saturated. The first of
    the `restarts` begins at the point, the others at random places (without a `generator`, the same in every call);
    with the margin they aim at several classes in turn, the nearest first.

    >>> model = torch.nn.Linear(2, 2)
    >>> _ = model.weight.data.copy_(torch.eye(2)), model.bias.data.zero_()
    >>> points, labels = torch.tensor([[1.0, 0.0], [0.1, 0.0]]), torch.tensor([0, 0])
    >>> robust_accuracy(model, points, labels, radius=0.2).per_point
    array([1., 0.])
    """
    net, points = network_and_points(model, data, allow_smooth=allow_smooth)
    dtype = points.dtype
    if attack != "none" and radius > 0 and is_lost(radius, points):
        net, points = net.frozen(), points.double()
    labels = checked_labels(labels, net, points)
    outputs, right = _outputs(net), []
    attacked: _Attacked | None = None
    options: dict[str, Any] = {"attack": attack}
    if callable(attack):
        attacked, options = _given_attack(attack, outputs), {"attack": getattr(attack, "__name__", "function")}
    elif attack != "none":
        settings = Settings(attack or "pgd", radius, steps, step_size, norm, bounds, restarts, loss).rounded(dtype)
        attacked, options = _built_in_attack(settings, outputs, points, generator), settings.options
    at_once = points_kept_at_once(net, batch_size)
    parts = list(zip(points.split(at_once), labels.split(at_once), strict=True))
    for x, y in tqdm(parts, desc="attacking", disable=not show_progress):
        stands = _right(outputs, x, y)
        there = attacked(x, y, stands) if attacked is not None else x[:0]
        if len(there):
            stands[stands.clone()] = _right(outputs, there, y[stands])
        right.append(stands)
    found = torch.cat(right).cpu().double().numpy()
    about: dict[str, Any] = {"options": options, "piecewise_linear": net.piecewise_linear}
    if attacked is None:
        return Share("accuracy", found, exact=True, quantity="share of points", **about)
    return Share("robust accuracy", found, quantity="share of points (upper bound)", **about)


def _given_attack(attack: Attack, outputs: Outputs) -> _Attacked:
    """An attack of the user's, which sees only what still stands."""

    def attacked(x: Tensor, labels: Tensor, stands: Tensor) -> Tensor:
        x = x[stands]
        return _checked_points(attack(outputs, x.clone(), labels[stands]), x) if len(x) else x

    return attacked


def _built_in_attack(
    settings: Settings, outputs: Outputs, points: Tensor, generator: torch.Generator | None
) -> _Attacked:
    """One of the attacks of this library, if all points keep to the bounds."""
    low, high = settings.bounds
    if points.min() < low or points.max() > high:
        raise ValueError(
            f"points must keep to the bounds {settings.bounds}, they are from {points.min():g} to {points.max():g};"
            " give the bounds of the data as the network takes it"
        )
    numbers = Draws(generator or torch.Generator().manual_seed(0))

    def attacked(x: Tensor, labels: Tensor, stands: Tensor) -> Tensor:
        starts = [start[stands] for start in search_starts(x, settings, numbers)]
        x = x[stands]
        return worst_points(outputs, x, labels[stands], settings, starts) if len(x) else x

    return attacked


def _outputs(net: Network) -> Outputs:
    """The outputs of a network as rows (n, k), with gradients."""
    return lambda x: as_rows(net.outputs(x))


@torch.no_grad()
def _right(outputs: Outputs, x: Tensor, labels: Tensor) -> Tensor:
    return label_leads(outputs(x), labels) > 0


def _checked_points(found: Tensor, x: Tensor) -> Tensor:
    """What an attack returned, if it has the shape of the points."""
    if found.shape != x.shape:
        raise ValueError(f"the attack must return points {tuple(x.shape)}, as it got them, not {tuple(found.shape)}")
    return found.detach()
