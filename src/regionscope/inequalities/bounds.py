"""All inequalities on one network."""

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from regionscope.inequalities import complexity_bounds, norm_bounds, region_bounds
from regionscope.inequalities.bound import Bound, Bounds, Reference, Samples, inequality
from regionscope.inequalities.chains import chain_of
from regionscope.inequalities.constants import KINDS, constants_of
from regionscope.inequalities.representation import balanced_cost
from regionscope.inequalities.sampling import measured_samples
from regionscope.inequalities.univariate import univariate_certificate
from regionscope.measures.table import BOUNDS_DEFAULTS
from regionscope.points import as_array
from regionscope.tracing.given import network_and_points
from regionscope.tracing.network import Network
from regionscope.types import Data, Model, Numbers

OF_COMPLEXITY = (
    complexity_bounds.gradient_constant,
    complexity_bounds.lipschitz_constant,
    complexity_bounds.upper_by_gradients,
    complexity_bounds.lower_by_gradients,
    complexity_bounds.upper_by_rank,
    complexity_bounds.rank_by_complexity,
    complexity_bounds.upper_by_exact_rank,
    complexity_bounds.variation_by_complexity,
)


@torch.inference_mode(False)  # it differentiates wherever it is called
def bounds(
    model: Model | Network, data: Data, *, sigma: float = BOUNDS_DEFAULTS["sigma"],
    eta: float | None = BOUNDS_DEFAULTS["eta"], eps: float = BOUNDS_DEFAULTS["eps"],
    draws: int = BOUNDS_DEFAULTS["draws"], constants_from: str = BOUNDS_DEFAULTS["constants_from"],
    generator: torch.Generator | None = None, batch_size: int | None = None, show_progress: bool = False,
) -> list[Bound]:  # fmt: skip
    """The inequalities of LC and HR on a network, each as printed and as it holds: left, right, terms, verdict.

    LC Cor. 3, 10, 13, 14, Thm 5 and 7, Prop. 6 (one input and output), 8, 9, eq. 42; HR Thm 1, Cor. 7 and 8. `sigma` is
    the noise on biases, `eta` (sigma if not given) and `eps` are those of LC Cor. 3 and Def. 4. All sides of LC's
    inequalities are means over the same points and the same `draws` of the noise. `constants_from` "product" takes
    gradient and Lipschitz constants from operator norms, which hold everywhere; "data" takes the largest met, which
    holds at these points and draws; networks that are no chain of affine maps and activations always get the latter.
    In float64. Without a `generator` calls differ. Proofs and counterexamples stand at the functions of
    `regionscope.inequalities`.

    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 200), torch.nn.ReLU(), torch.nn.Linear(200, 1))
    >>> _ = model[0].weight.data.fill_(1.0), model[0].bias.data.zero_()
    >>> [b.holds for b in bounds(model, torch.zeros(2, 1)) if b.reference == "LC Thm 5 (11)"]  # printed, valid
    [False, True]
    """
    told = {"sigma": sigma, "eta": sigma if eta is None else eta, "eps": eps}
    sigma, eta, eps = (_one_positive(name, value) for name, value in told.items())
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    if constants_from not in KINDS:
        raise ValueError(f"constants_from must be one of {', '.join(KINDS)}, got {constants_from!r}")
    net, points = network_and_points(model, data)
    points, net = points.double(), net.frozen()
    if not net.sites or not net.piecewise_linear:
        raise ValueError("the inequalities are about piecewise-linear networks with at least one activation")
    chain = chain_of(net)
    samples = measured_samples(
        net, points, chain, sigma=sigma, eta=eta, eps=eps, draws=draws, generator=generator, batch_size=batch_size,
        show_progress=show_progress,
    )  # fmt: skip
    c = constants_of(net, chain, samples, sigma=sigma, eta=eta, eps=eps, kind=constants_from)
    cost = balanced_cost(net, chain)
    found = [row for rows in OF_COMPLEXITY for row in rows(c, samples)]
    found += norm_bounds.upper_by_norm(c, samples, None if cost is None else cost.cost)
    found += norm_bounds.at_the_optimum(c, samples)
    found += region_bounds.boundary_volume(c, samples)
    found += region_bounds.distance_below(c, samples)
    found += region_bounds.regions_on_lines(net, points, c, draws=draws, generator=generator)
    if net.input_shape == net.output_shape == (1,) and float(points.min()) < float(points.max()):
        found.append(_certificate_row(net, points))
    return Bounds(found)


def _one_positive(name: str, value: Numbers) -> float:
    """A number, alone or in an array, if it is positive."""
    given = as_array(value)
    if given.size != 1:
        raise ValueError(f"{name} must be one number for all layers, got {given.size}")
    if not 0 < given.item() < math.inf:
        raise ValueError(f"{name} must be positive, got {given.item()}")
    return given.item()


def _certificate_row(net: Network, points: Tensor) -> Bound:
    """LC Prop. 6 at all points: certified radius <= distance to the nearest adversarial point. It holds as printed."""
    heights, edges = np.histogram(points.cpu().numpy(), bins="sqrt", density=True)
    found = univariate_certificate(net, points, density=(heights, edges))
    low, high = found.domain
    true = np.minimum(found.distance, high - low)  # beyond the domain nothing is claimed
    samples = Samples({"certified": found.certified, "true": true}, {})
    row = inequality(
        samples, "certified radius of a univariate network", Reference("LC Prop. 6"), printed=True,
        left=lambda m: m["certified"], right=lambda m: m["true"], judged=False,
        terms={"TV": found.total_variation, "margin": float(found.margin.mean()), "tightness": found.tightness},
    )  # fmt: skip
    return replace(row, holds=found.holds)  # exact at every point, so judged at every point
