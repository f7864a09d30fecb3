"""What the formula for local complexity expects of lines and planes, so that it can be held against exact cells."""

import numpy as np
import torch

from regionscope.geometry.planes import Plane
from regionscope.measures.complexity import noisy_densities, per_layer_scales
from regionscope.measures.directions import Directions
from regionscope.points import as_array, as_tensor
from regionscope.results import Estimate
from regionscope.tracing.network import Network
from regionscope.tracing.trace import as_network
from regionscope.types import Array, Model, Numbers


@torch.inference_mode(False)  # it differentiates wherever it is called
def expected_line_regions(
    model: Model | Network, start: Array, end: Array, *, sigma: Numbers, samples: int = 1024,
    draws: int = 32, generator: torch.Generator | None = None,
) -> Estimate:  # fmt: skip
    """The expected number of regions on a segment when the biases are noisy: 1 + integral of sum E[|u.grad z_i| rho_i].

    HR Thm 3 in one dimension; u is the unit vector along the segment, the integral runs over its length. Estimated at
    `samples` places, one at random in each of as many equal parts, with `draws` of the noise at each. Without a
    `generator` calls differ.
    """
    net = as_network(model, start[None])
    start, end = (as_tensor(p).to(net.device, net.dtype) for p in (start, end))
    t = (torch.arange(samples) + torch.rand(samples, generator=generator)) / samples
    x = start + t.to(start).view(-1, *[1] * start.dim()) * (end - start)
    along = Directions((end - start).reshape(1, -1), exact=True, method="line")  # not of length 1: the length is in it
    scales = per_layer_scales(sigma, net)
    found = noisy_densities(net, net.checked(x), scales, along, draws=draws, good=False, generator=generator)
    counts = 1 + found.layers.mean(dim=0).sum(dim=1).cpu().double().numpy()
    options = {"sigma": as_array(sigma).tolist(), "samples": samples, **found.options}
    return Estimate(
        "expected regions on the line", counts, quantity="regions", options=options,
        piecewise_linear=net.piecewise_linear,
    )  # fmt: skip


@torch.inference_mode(False)  # it differentiates wherever it is called
def expected_boundary_length(
    model: Model | Network, plane: Plane, *, sigma: Numbers, samples: int = 1024, draws: int = 32,
    generator: torch.Generator | None = None,
) -> Estimate:  # fmt: skip
    """The expected length of boundaries in the domain of a plane when the biases are noisy.

    area * E[sum over units of |P grad z_i| rho_i]: LC Theorem 2 restricted to the plane, P the projection onto it; in a
    2-D input space it is LC itself. Estimated at `samples` points drawn uniformly from the domain; per layer too.
    Without a `generator` calls differ.
    """
    net = as_network(model, plane.origin[None])
    u = _uniform_coordinates(plane.domain, samples, generator)
    x = plane.points(u).reshape(-1, *net.input_shape).to(net.device, net.dtype)
    along = Directions(torch.from_numpy(plane.axes).to(x), exact=True, method="plane")
    scales = per_layer_scales(sigma, net)
    found = noisy_densities(net, net.checked(x), scales, along, draws=draws, good=False, generator=generator)
    layers = found.layers.mean(dim=0).cpu().double().numpy() * plane.area
    options = {"sigma": as_array(sigma).tolist(), "samples": samples, **found.options}
    return Estimate(
        "expected boundary length", layers.sum(axis=1), layers, quantity="length", options=options,
        piecewise_linear=net.piecewise_linear,
    )  # fmt: skip


def _uniform_coordinates(domain: np.ndarray, n: int, generator: torch.Generator | None) -> np.ndarray:
    """Points drawn uniformly from a convex polygon: a triangle of its fan by area, then a point in that."""
    a, b, c = domain[:1], domain[1:-1], domain[2:]
    areas = np.abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0])
    r = torch.rand(n, 3, generator=generator, dtype=torch.float64).numpy()
    k = np.minimum(np.searchsorted(np.cumsum(areas) / areas.sum(), r[:, 0]), len(areas) - 1)
    s, t = np.sqrt(r[:, 1:2]), r[:, 2:3]
    return np.asarray((1 - s) * a + s * (1 - t) * b[k] + s * t * c[k])
