"""How often a classifier stays right under attack."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from captum.robust import FGSM, PGD
from torch import Tensor
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from regionscope.points import Data, all_points
from regionscope.results import Estimate
from regionscope.tracing.network import Network
from regionscope.tracing.trace import Model, as_network

Attack = Callable[[Callable[[Tensor], Tensor], Tensor, Tensor], Tensor]  # network, points, labels -> attacked points


def robust_accuracy(
    model: Model | Network,
    data: Data,
    labels: Tensor,
    attack: str | Attack | None = None,
    *,
    radius: float = 8 / 255,
    steps: int = 10,
    step_size: float | None = None,
    norm: str = "Linf",
    bounds: tuple[float, float] = (float("-inf"), float("inf")),
    batch_size: int = 256,
    show_progress: bool = False,
) -> Estimate:
    """The share of points that are classified right after an attack: an upper bound on the true robust accuracy.

    `attack` is "pgd" (the default: `steps` steps of `step_size`, a quarter of the radius if not given), "fgsm", "none"
    for the plain accuracy, or any function of a network, points and labels that returns attacked points. The attacks
    are captum's, on the cross-entropy of the outputs, within `radius` in `norm` ("Linf" or "L2") and `bounds`.

    >>> model = torch.nn.Linear(2, 2)
    >>> _ = model.weight.data.copy_(torch.eye(2)), model.bias.data.zero_()
    >>> points, labels = torch.tensor([[1.0, 0.0], [0.1, 0.0]]), torch.tensor([0, 0])
    >>> robust_accuracy(model, points, labels, radius=0.2).per_point
    array([1., 0.])
    """
    points = all_points(data)
    net = as_network(model, points[:1])
    points = net.checked(points)
    if labels.shape != (len(points),):
        raise ValueError(f"labels must be ({len(points)},), got {tuple(labels.shape)}")
    if not radius > 0 or steps < 1:
        raise ValueError(f"radius must be positive and steps at least 1, got {radius} and {steps}")
    run = (
        attack if callable(attack) else built_in(attack or "pgd", radius, steps, step_size or radius / 4, norm, bounds)
    )
    program = net.program.pruned([net.output])

    def outputs(x: Tensor) -> Tensor:
        return program.run(x)[0].reshape(len(x), -1)

    right = []
    batches = list(zip(points.split(batch_size), labels.split(batch_size), strict=True))
    for x, y in tqdm(batches, desc="attacking", disable=not show_progress):
        with warnings.catch_warnings():  # captum says at every step that it sets requires_grad
            warnings.filterwarnings("ignore", message="Input Tensor 0 did not already require gradients")
            attacked = run(outputs, x.clone(), y).detach()
        with torch.no_grad():
            right.append(outputs(attacked).argmax(dim=1) == y)
    name = "accuracy" if attack == "none" else "robust accuracy"
    return Estimate(name, torch.cat(right).cpu().double().numpy(), exact=attack == "none", unit="share of points")


def built_in(name: str, radius: float, steps: int, step_size: float, norm: str, bounds: tuple[float, float]) -> Attack:
    """One of captum's attacks, or none."""
    if norm not in ("Linf", "L2"):
        raise ValueError(f"norm must be Linf or L2, got {norm!r}")

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(outputs, labels, reduction="none")

    def pgd(network: Any, x: Tensor, y: Tensor) -> Tensor:
        attacker = PGD(network, loss, lower_bound=bounds[0], upper_bound=bounds[1])
        attacked: Tensor = attacker.perturb(x.requires_grad_(), radius, step_size, steps, y, norm=norm)
        return attacked

    def fgsm(network: Any, x: Tensor, y: Tensor) -> Tensor:
        attacked: Tensor = FGSM(network, loss, *bounds).perturb(x.requires_grad_(), radius, y)
        return attacked

    attacks: dict[str, Attack] = {"pgd": pgd, "fgsm": fgsm, "none": lambda network, x, y: x}
    if name not in attacks:
        raise ValueError(f"attack must be pgd, fgsm, none or a function, got {name!r}")
    return attacks[name]
