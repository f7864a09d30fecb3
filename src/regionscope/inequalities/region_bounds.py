"""HR: how many regions a line meets, how much boundary there is, and how far it is to it."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from regionscope.inequalities.bound import Bound, Reference, Samples, Statistic, inequality
from regionscope.inequalities.complexity_bounds import constant_side, total
from regionscope.inequalities.constants import Constants
from regionscope.measures.expected import expected_line_regions
from regionscope.tracing.network import Network

SEGMENTS, PLACES = 8, 32


def regions_on_lines(
    net: Network, points: Tensor, c: Constants, *, draws: int, generator: torch.Generator | None
) -> Iterator[Bound]:
    """E[regions on a segment I] <= 1 + |I| T C_bias sum_i C_i, C_i >= |grad z_i| (HR Thm 1, for noise on the biases).

    By Kac-Rice the expected number of breakpoints is the integral over I of sum_i E[|u . grad z_i| rho_i] for a unit
    vector u along I, and |u . grad z_i| <= |grad z_i| <= C_i, rho_i <= T C_bias. Regions of the function are no more
    than pieces of the line between breakpoints. Segments join pairs of the points; one point is joined with the origin.

    Printed: E[regions] ~ |I| T units, without constants and so without verdict; "regions per unit" is what HR plot.
    """
    samples = _line_samples(net, points, c, draws, generator)
    if samples is None:
        return
    name, reference = "regions on a line", Reference("HR Thm 1", "3")
    terms: dict[str, Statistic | float] = {
        "length": lambda m: m["length"], "units": c.units, "T": c.breakpoints, "C_bias": c.bias,
        "regions per unit": lambda m: m["regions"] / c.units, "C_grad": c.largest_gradient,
    }  # fmt: skip
    yield inequality(
        samples, name, reference, printed=True, left=lambda m: m["regions"], terms=terms, judged=False,
        right=lambda m: m["length"] * c.breakpoints * c.units, note="printed without constants",
    )  # fmt: skip
    gradients = float((c.widths * c.unit_gradient).sum())
    yield inequality(
        samples, name, reference, printed=False, left=lambda m: m["regions"], terms=terms,
        right=lambda m: 1 + m["length"] * c.breakpoints * c.bias * gradients,
        note="" if c.kind == "product" else "C_grad was met on the data only; lines leave the data",
        judged=c.kind == "product",
    )  # fmt: skip


def _line_samples(
    net: Network, points: Tensor, c: Constants, draws: int, generator: torch.Generator | None
) -> Samples | None:
    """Regions expected from each of the places on segments between points, and the lengths of the segments."""
    pairs = list(zip(points[::2], points[1::2], strict=False))[:SEGMENTS] or [(0 * points[0], points[0])]
    regions, lengths = [], []
    for start, end in pairs:
        length = float((end - start).norm())
        if length == 0:
            continue
        found = expected_line_regions(
            net, start, end, sigma=c.sigma, samples=PLACES, draws=max(2, draws), generator=generator
        )
        regions.append(found.per_point)
        lengths.append(np.full(PLACES, length))
    return Samples({"regions": np.concatenate(regions), "length": np.concatenate(lengths)}, {}) if regions else None


def boundary_volume(c: Constants, samples: Samples) -> Iterator[Bound]:
    """Boundary volume per volume <= 2 T units C_grad C_bias (HR Cor. 7, k = 1), and as restated <= T C_bias sum_i C_i.

    It is the mean of sum_i |grad z_i| rho_i (LC Thm 2 without "good"), with rho_i <= T C_bias. HR print, for any k,
    (units over k) (2 T C_grad C_bias)^k where C_grad bounds a mean, E|grad z_i(x)| <= C_grad for every unit and input;
    here it is the largest met at the points, of means over the noise. That holds, and would without the 2.

    As restated, for the weights at hand: C_i >= |grad z_i| whatever the noise, added up unit by unit.
    """
    name, reference = "boundary volume per volume", Reference("HR Cor. 7", "k = 1")
    C, gradients = c.mean_gradient, float((c.widths * c.unit_gradient).sum())
    for printed, most, right in (
        (True, C, 2 * c.breakpoints * c.units * C * c.bias),
        (False, c.largest_gradient, c.breakpoints * c.bias * gradients),
    ):
        yield inequality(
            samples, name, reference, printed=printed, restated=not printed,
            left=total("density"), right=constant_side(right),
            terms={
                "boundary volume": total("density"), "C_grad": most, "C_bias": c.bias, "T": c.breakpoints,
                "units": c.units, "per unit": lambda m: m["density"].sum(axis=-1) / c.units,
            },
        )  # fmt: skip


def distance_below(c: Constants, samples: Samples) -> Iterator[Bound]:
    """E[distance to the nearest boundary] >= 1/(4 T C_bias S) (HR Cor. 8 with its constant), S = E sum_i |grad z_i|.

    d <= t needs a unit and a breakpoint with |z_i - b_i| <= t |grad z_i|. Given the noise of earlier layers z_i and its
    gradient are fixed and b_i has a density below C_bias: P(d <= t) <= 2 t T C_bias S(x) = t K. So
    E d = int P(d > t) dt >= int_0^{1/K} (1 - t K) dt = 1/(2K); averaging over x, E[1/S(x)] >= 1/E S by Jensen.

    Printed: c/(T C_grad C_bias units) with an unnamed c; shown for c = 1, without verdict.
    """
    name, reference = "distance to the nearest boundary", Reference("HR Cor. 8")
    terms: dict[str, Statistic | float] = {
        "distance": lambda m: m["distance"], "S": total("slopes"), "C_bias": c.bias, "T": c.breakpoints,
        "units": c.units, "C_grad": c.largest_gradient,
    }  # fmt: skip
    whole = c.breakpoints * c.bias * c.largest_gradient * c.units
    yield inequality(
        samples, name, reference, printed=True, left=lambda m: 1 / whole if whole else 0.0, terms=terms, judged=False,
        right=lambda m: m["distance"], note="the paper does not name its constant; here 1",
    )  # fmt: skip
    yield inequality(
        samples, name, reference, printed=False, right=lambda m: m["distance"], terms=terms,
        left=lambda m: 1 / np.maximum(4 * c.breakpoints * c.bias * m["slopes"].sum(axis=-1), 1e-300),
    )  # fmt: skip
