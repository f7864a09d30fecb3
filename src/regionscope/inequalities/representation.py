"""The smallest norm of the parameters that rescaling units can give without changing the function."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regionscope.inequalities.chains import AffineChain, chain_of
from regionscope.tables import Facts
from regionscope.tracing.network import Network
from regionscope.tracing.trace import as_network
from regionscope.types import Floats, Model

HOMOGENEOUS = ("relu", "leaky_relu", "prelu")
SWEEPS, SETTLED = 10_000, 1e-13


@dataclass(frozen=True, eq=False, repr=False)
class RepresentationCost(Facts):
    """`cost`, the least norm over positive rescalings of the units; `norm`, the norm of the parameters as they are.

    `imbalance` is, over all units, the sum of |in - out| over the sum of in + out, where in = |w_i|^2 + b_i^2 and out
    is the squared norm of the weights that leave the unit: 0 at the optimum, 1 at the most.
    """

    cost: float
    norm: float
    imbalance: float
    per_unit: tuple[Floats, ...]  # a layer (units,): in - out, which gradient flow keeps and weight decay shrinks

    @property
    def ratio(self) -> float:
        """norm / cost: 1 if the network is balanced."""
        return self.norm / self.cost if self.cost else (np.inf if self.norm else 1.0)

    def _facts(self) -> dict[str, object]:
        return {name: f"{value:.4g}" for name, value in self.to_dict().items()}

    def to_dict(self) -> dict[str, Any]:
        """The summary, ready for JSON."""
        return {"cost": self.cost, "norm": self.norm, "imbalance": self.imbalance}


def representation_cost(model: Model | Network, example: torch.Tensor | None = None) -> RepresentationCost:
    """The least |theta|_F over positive rescalings of units that keep the function: an upper bound on LC's R(N).

    relu(a z)/a = relu(z), so unit i may have (w_i, b_i) times a_i and its outgoing weights divided by a_i. In t = log a
    the squared norm is a sum of exponentials of linear functions, hence convex: the balanced point, in_i = out_i for
    every unit, is its global minimum. Found by setting each layer in turn to its best, a_i^4 = out_i/in_i, until the
    norm stands still; exact to rounding. A unit without input or output weights costs nothing. Needs dense layers with
    ReLU, leaky ReLU or PReLU; `example` (n, ...) is needed only if the first layer is no linear one. Not all of R:
    other parameters may give the same function with a smaller norm.

    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1))
    >>> for p, value in zip(model.parameters(), (8.0, 0.0, 0.5, 0.0)): _ = p.data.fill_(value)
    >>> found = representation_cost(model)
    >>> round(found.norm, 3), round(found.cost, 3)  # sqrt(8^2 + 0.5^2), and sqrt(2^2 + 2^2)
    (8.016, 2.828)
    """
    if example is None and not isinstance(model, Network):
        first = next(model.parameters(), None) if isinstance(model, torch.nn.Module) else None
        if first is None or first.dim() != 2:
            raise ValueError("the shape of inputs is not known; give an example (n, ...)")
        example = torch.zeros(1, first.shape[1], dtype=first.dtype, device=first.device)
    net = as_network(model, example)
    found = balanced_cost(net, chain_of(net))
    if found is None:
        raise ValueError("a representation cost needs dense layers one after another with ReLU or leaky ReLU between")
    return found


def balanced_cost(net: Network, chain: AffineChain | None) -> RepresentationCost | None:
    """The representation cost of a chain; None if rescaling its units is not rescaling parameters."""
    kinds = {site.kind for site in net.sites}
    if chain is None or not kinds <= set(HOMOGENEOUS) or not all(m.dense for m in chain.maps):
        return None
    weights = [m.matrix.square().cpu().numpy() for m in chain.maps if m.matrix is not None]
    biases = [m.offset.square().cpu().numpy() for m in chain.maps]
    norm = np.sqrt(sum(w.sum() for w in weights) + sum(b.sum() for b in biases))
    differences = tuple(
        w.sum(axis=1) + b - out.sum(axis=0) for w, b, out in zip(weights, biases, weights[1:], strict=False)
    )
    sums = sum(float(w.sum() + b.sum() + out.sum()) for w, b, out in zip(weights, biases, weights[1:], strict=False))
    imbalance = sum(float(np.abs(d).sum()) for d in differences) / sums if sums else 0.0
    last = np.inf
    for _ in range(SWEEPS):
        for layer in range(len(weights) - 1):
            inside, outside = weights[layer].sum(axis=1) + biases[layer], weights[layer + 1].sum(axis=0)
            alive = (inside > 0) & (outside > 0)
            scale = np.sqrt(np.where(alive, outside, 1.0) / np.where(alive, inside, 1.0))  # a^2
            weights[layer] = weights[layer] * np.where(alive, scale, 0.0)[:, None]
            biases[layer] = biases[layer] * np.where(alive, scale, 0.0)
            weights[layer + 1] = weights[layer + 1] * np.where(alive, 1 / scale, 0.0)
        square = sum(w.sum() for w in weights) + sum(b.sum() for b in biases)
        if last - square <= SETTLED * square:
            break
        last = square
    return RepresentationCost(float(np.sqrt(square)), float(norm), imbalance, differences)
