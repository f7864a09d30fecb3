"""LC: local complexity and the norm of the parameters."""

import math
from collections.abc import Iterator

import numpy as np

from regionscope.inequalities.bound import Bound, Reference, Samples, Statistic, inequality, unavailable_inequality
from regionscope.inequalities.complexity_bounds import NO_CHAIN, constant_side, total
from regionscope.inequalities.constants import Constants
from regionscope.types import Floats


def upper_by_norm(c: Constants, samples: Samples, cost: float | None) -> Iterator[Bound]:
    """LC <= T C_bias sum_l sqrt(n_l) (|theta_{<=l}|^2/l)^{l/2}, theta_{<=l} the weights up to layer l (LC Prop. 8).

    |J_l|_F <= prod_{k<=l} |W_k|_F (slopes beyond 1 are put to the weights), and the geometric mean of the |W_k|_F^2 is
    at most their mean |theta_{<=l}|^2/l. sum_i |grad z_i| <= sqrt(n_l) |J_l|_F turns this into a bound on S, and
    LC <= T C_bias S. Of a convolution, |W_k|_F is that of its whole matrix.

    Printed: (n_0/C_bias) LC <= n^{(1-L)/2} L^{1-L/2} R^L, n the largest width, R the representation cost. Schatten and
    Frobenius norms are compared the wrong way round and n_0 changes sides; moreover LC is no function of N:
    x -> relu(ax)/a is the same function for all a > 0, with R <= sqrt(2), but its LC at 0 is a C_bias. So no bound by R
    can hold. The right side here takes an upper bound on R, so that a violation is one for R too.
    """
    name, reference = "complexity by the norm of the parameters", Reference("LC Prop. 8", "14")
    if c.frobenius is None or c.steepest is None:
        yield unavailable_inequality(name, reference, True, NO_CHAIN)
        yield unavailable_inequality(name, reference, False, NO_CHAIN)
        return
    if cost is None:
        why = "the representation cost needs dense layers and ReLU or leaky ReLU"
        yield unavailable_inequality(name, reference, True, why)
    else:
        yield inequality(
            samples, name, reference, printed=True, left=lambda m: c.inputs / c.bias * m["LC"].sum(axis=-1),
            right=lambda m: _printed_factor(c) * cost**c.depth,
            terms={"LC": total("LC"), "C_bias": c.bias, "n_0": c.inputs, "R (upper bound)": cost, "L": c.depth},
        )  # fmt: skip
    squares = np.cumsum((c.frobenius[:-1] * np.maximum(c.steepest, 1.0)) ** 2)
    layers = np.arange(1, len(squares) + 1)
    right = c.breakpoints * c.bias * float((np.sqrt(c.widths) * (squares / layers) ** (layers / 2)).sum())
    parts: dict[str, Statistic | float] = {f"|theta_<={k}|": math.sqrt(s) for k, s in zip(layers, squares, strict=True)}
    yield inequality(
        samples, name, reference, printed=False, left=total("LC"), right=constant_side(right),
        terms={"LC": total("LC"), "C_bias": c.bias, **parts},
    )  # fmt: skip


def _printed_factor(c: Constants) -> float:
    """n^{(1-L)/2} L^{1-L/2}."""
    return float(c.widths.max() ** ((1 - c.depth) / 2) * c.depth ** (1 - c.depth / 2))


def at_the_optimum(c: Constants, samples: Samples) -> Iterator[Bound]:
    """The terms of LC Prop. 9 (eq. 16) and Cor. 10 (eq. 17); no verdict: both inherit Prop. 8.

    (16) speaks of the global optimum of the margin problem (15) only, compared with a shallower network that separates
    the data with |W_i|_F <= B; here this network stands for it, k = L and B = max_i |W_i|_F. (17) has no constants:
    |theta|^L stands for log 1/lambda.
    """
    rows = (
        (
            "complexity at the margin optimum",
            Reference("LC Prop. 9", "16"),
            "speaks of the optimum of (15) only, and inherits Prop. 8",
        ),
        ("complexity and weight decay", Reference("LC Cor. 10", "17"), "has no constants, and inherits Prop. 8"),
    )
    if c.frobenius is None or c.norms is None:
        for name, reference, _ in rows:
            yield unavailable_inequality(name, reference, True, NO_CHAIN)
        return
    L, ratios = c.depth, c.frobenius / np.maximum(c.norms, 1e-300)
    scale = c.inputs / (c.bias * _printed_factor(c))
    gamma = float((math.sqrt(ratios.max()) - math.sqrt(ratios.min())) ** 2)
    B, norm = float(c.frobenius.max()), float(np.sqrt((c.frobenius**2).sum()))
    largest, harmonic = float(c.norms.max()), float(L / (1 / np.maximum(ratios, 1e-300)).sum())
    yield inequality(
        samples, *rows[0][:2], printed=True, judged=False, note=rows[0][2],
        left=lambda m: _root(scale * m["LC"].sum(axis=-1), L) / (L * largest) - gamma if largest else math.nan,
        right=lambda m: math.sqrt(2) * (B / math.sqrt(2)) * math.sqrt((L + 1) / L),
        terms={
            "LC": total("LC"), "gamma": gamma, "B": B, "max |W_l|_op": largest, "L": L,
            "harmonic mean of |W_l|_F/|W_l|_op": harmonic,
        },
    )  # fmt: skip
    yield inequality(
        samples, *rows[1][:2], printed=True, judged=False, note=rows[1][2],
        left=lambda m: scale * m["LC"].sum(axis=-1), right=lambda m: norm**L,
        terms={"LC": total("LC"), "|theta|": norm, "L": L},
    )  # fmt: skip


def _root(number: Floats, degree: int) -> Floats:
    """0 for an estimate below 0."""
    return np.maximum(number, 0.0) ** (1 / degree)
