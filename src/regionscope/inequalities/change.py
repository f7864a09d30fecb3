"""LC Prop. 17: how far local complexity can move between two checkpoints of a shallow network."""

import math

import numpy as np
import torch

from regionscope.inequalities.bound import Bound, Means, Reference, Samples, Statistic, inequality
from regionscope.inequalities.chains import AffineChain, chain_of
from regionscope.measures.complexity import local_complexity
from regionscope.tracing.given import network_and_points
from regionscope.tracing.network import Network
from regionscope.types import Data, Floats, Model


def complexity_change(before: Model | Network, after: Model | Network, data: Data, *, sigma: float) -> list[Bound]:
    """|LC(after) - LC(before)| of a network with one hidden ReLU layer against LC Prop. 17: printed, then valid.

    LC = sum_k |w_k| E g(w_k . x - beta_k) with g the N(0, sigma^2) density, |g| <= 1/(sigma sqrt(2 pi)) and
    |g'| <= 1/(sigma^2 sqrt(2 pi e)). Subtract and add |w_k| g at the new place: |change| <= sum_k of
    |dw_k|/(sigma sqrt(2 pi)) + |w_k| (|dw_k| E|x| + |dbeta_k|)/(sigma^2 sqrt(2 pi e)), |w_k| before or after,
    whichever is smaller.

    Printed: n_1 |dtheta|/(sigma sqrt(2 pi)), the first part only. One unit w = 100, beta moved from 0 by sigma, x = 0:
    the change is 39 C_bias, the printed bound sigma C_bias. Printed for "v != 0", but a unit whose outgoing weights
    leave 0 makes LC jump; here LC is without "good", the same while no outgoing weight vanishes. Exact at each point.

    >>> make = lambda: torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1))
    >>> before, after = make(), make()
    >>> for model, bias in ((before, 0.0), (after, 1.0)):
    ...     for p, value in zip(model.parameters(), (100.0, bias, 1.0, 0.0)): _ = p.data.fill_(value)
    >>> [bound.holds for bound in complexity_change(before, after, torch.zeros(2, 1), sigma=1.0)]
    [False, True]
    """
    first, points = network_and_points(before, data)
    second, _ = network_and_points(after, points)
    nets, points = [first.frozen(), second.frozen()], points.double()
    chains = [_shallow_chain(net) for net in nets]
    a, b = (chain.maps[0] for chain in chains)
    if a.offset.shape != b.offset.shape:
        raise ValueError("the two networks have different widths; compare checkpoints of one network")
    lc = [local_complexity(net, points, sigma=sigma, good=False).per_point for net in nets]
    samples = Samples({"before": lc[0], "after": lc[1], "x": points.flatten(1).norm(dim=1).cpu().numpy()}, {})
    assert a.matrix is not None and b.matrix is not None
    dw, db = (b.matrix - a.matrix).norm(dim=1), (b.offset - a.offset).abs()
    w = torch.minimum(a.rows, b.rows)
    distance = _parameter_distance(chains)
    flat, steep = 1 / (sigma * math.sqrt(2 * math.pi)), 1 / (sigma**2 * math.sqrt(2 * math.pi * math.e))
    turned, moved = float((w * dw).sum()), float((w * db).sum())

    def change(m: Means) -> Floats:
        return np.abs(m["after"] - m["before"])

    terms: dict[str, Statistic | float] = {
        "LC before": lambda m: m["before"], "LC after": lambda m: m["after"], "E|x|": lambda m: m["x"],
        "|dtheta|": distance, "sum |dw_k|": float(dw.sum()), "sum |w_k||dw_k|": turned, "sum |w_k||dbeta_k|": moved,
        "n_1": len(w), "C_bias": flat,
    }  # fmt: skip
    name, reference = "change of complexity", Reference("LC Prop. 17")
    return [
        inequality(
            samples, name, reference, printed=True, left=change, right=lambda m: len(w) * distance * flat, terms=terms
        ),
        inequality(
            samples, name, reference, printed=False, left=change, terms=terms,
            right=lambda m: float(dw.sum()) * flat + (turned * m["x"] + moved) * steep,
        ),
    ]  # fmt: skip


def _shallow_chain(net: Network) -> AffineChain:
    chain = chain_of(net)
    kinds = [site.kind for site in net.sites]
    if chain is None or kinds not in (["relu"], ["leaky_relu"]) or chain.maps[0].matrix is None:
        raise ValueError(f"Prop. 17 is about one hidden layer of ReLU units; this network has {kinds or 'none'}")
    return chain


def _parameter_distance(chains: list[AffineChain]) -> float:
    """|theta_t - theta_0| over all weights and biases, read off the affine maps of two chains."""
    squares = 0.0
    for a, b in zip(*(chain.maps for chain in chains), strict=True):
        assert a.matrix is not None and b.matrix is not None
        squares += float((a.matrix - b.matrix).square().sum() + (a.offset - b.offset).square().sum())
    return math.sqrt(squares)
