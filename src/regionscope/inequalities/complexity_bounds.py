"""LC: what local complexity is bounded by, and what it bounds.

f(x) = sum over units i of |grad z_i| rho_i(z_i) 1{i good}, LC its mean over points and noise. rho_i is at most C_bias
at each of T breakpoints, and at least c_eta within eta of one. S is the mean of sum_i |grad z_i|, tail that of
sum_i |grad z_i| 1{z_i further than eta from its breakpoints}, both under the noise. Sums over layers run over the
hidden layers l = 1..H. Each function gives the inequality as printed, then as it holds, which its docstring proves.
"""

import math
from collections.abc import Iterator

import numpy as np

from regionscope.inequalities.bound import (
    Bound,
    Means,
    Reference,
    Samples,
    Statistic,
    inequality,
    unavailable_inequality,
)
from regionscope.inequalities.constants import Constants
from regionscope.types import Floats

NO_CHAIN = "the network is no chain of affine maps and activations, or one of its maps is too large"


def total(name: str) -> Statistic:
    """The mean of a quantity, added up over layers."""
    return lambda m: m[name].sum(axis=-1)


def _mean(name: str) -> Statistic:
    return lambda m: m[name]


def _means_by_layer(name: str, label: str, layers: int) -> dict[str, Statistic | float]:
    return {f"{label}_{k + 1}": _mean_of_layer(name, k) for k in range(layers)}


def _mean_of_layer(name: str, number: int) -> Statistic:
    return lambda m: m[name][..., number]


def _times(factor: float, name: str) -> Statistic:
    return lambda m: factor * m[name].sum(axis=-1)


def constant_side(number: float) -> Statistic:
    """A side that does not depend on the points."""
    return lambda m: number


def _tail(c: Constants) -> Statistic:
    """xi_eta, measured."""
    return lambda m: c.bias_eta * m["tail"].sum(axis=-1)


def upper_by_gradients(c: Constants, samples: Samples) -> Iterator[Bound]:
    """LC <= T C_bias S (LC Cor. 3, eq. 7): rho_i <= T C_bias and 1{good} <= 1. As printed T = 1, right for ReLU."""
    for printed, T in ((True, 1), (False, c.breakpoints)):
        yield inequality(
            samples, "complexity by gradients", Reference("LC Cor. 3", "7"), printed=printed, left=total("LC"),
            right=_times(T * c.bias, "slopes"),
            terms={"LC": total("LC"), "C_bias": c.bias, "T": T, "S": total("slopes")},
        )  # fmt: skip


def lower_by_gradients(c: Constants, samples: Samples) -> Iterator[Bound]:
    """LC >= c_eta (S - tail) - B T C_grad C_bias (LC Cor. 3, eq. 8), every term measured.

    E[|grad z_i| rho_i] >= c_eta E[|grad z_i| 1{near}] = c_eta (E|grad z_i| - E[|grad z_i| 1{not near}]), and what is
    not good takes away E[|grad z_i| rho_i 1{not good}] <= C_grad T C_bias P(i not good), where good is by the noise of
    the other units, for rho_i has the unit's own; of several breakpoints, P counts the share at which it is not.

    Printed: xi = Theta(exp(-eta^2/2 sigma^2)/eta^2) instead of c_eta tail, with no constant. The proof takes
    P(|z - b| > eta) <= E[z^2 + b^2]/eta^2, where |z - b| should be |z - beta| (rho is centred there) and the square
    (z - b)^2 is not bounded by z^2 + b^2. With xi = c_eta C_grad sum_i E[z_i^2 + b_i^2]/eta^2, one unit z = -a with
    beta = a = 10 sigma and eta = 1.98 a has a left side more than 20 times its LC.
    """
    name, reference = "complexity from below by gradients", Reference("LC Cor. 3", "8")
    common: dict[str, Statistic | float] = {
        "LC": total("LC"), "S": total("slopes"), "c_eta": c.bias_eta, "C_bias": c.bias, "B": _mean("not good"),
    }  # fmt: skip
    if c.printed_gradient is None:
        yield unavailable_inequality(name, reference, True, NO_CHAIN)
    else:
        C = c.printed_gradient
        squares = c.offsets + c.units * c.sigma**2  # sum of E b^2

        def xi(m: Means) -> Floats:
            return c.bias_eta * C * (m["squares"] + squares) / c.eta**2

        yield inequality(
            samples, name, reference, printed=True, right=total("LC"),
            left=lambda m: c.bias_eta * m["slopes"].sum(axis=-1) - xi(m) - m["not good"] * C * c.bias,
            terms={**common, "C_grad": C, "xi": xi},
        )  # fmt: skip
    yield inequality(
        samples, name, reference, printed=False, right=total("LC"),
        left=lambda m: c.bias_eta * m["slopes"].sum(axis=-1) - _tail(c)(m) - _most_lost(c, m),
        terms={**common, "C_grad": c.largest_gradient, "xi": _tail(c)}, size=_times(c.bias_eta, "slopes"),
    )  # fmt: skip


def _most_lost(c: Constants, m: Means) -> Floats:
    """B T C_grad C_bias: the most that units which are not good can take away."""
    return m["not good"] * c.breakpoints * c.largest_gradient * c.bias


def upper_by_rank(c: Constants, samples: Samples) -> Iterator[Bound]:
    """LC/(T C_bias) <= sum_l sqrt(n_l) sqrt(C_l^2 LR_l + eps^2 min(n_l, n_0)), C_l >= |J_l|_op (LC Thm 5, eq. 11).

    Cauchy-Schwarz over the n_l rows: sum_i |grad z_i| <= sqrt(n_l) |J_l|_F. Of the min(n_l, n_0) singular values,
    rank_eps are at most C_l and the rest below eps, so |J_l|_F^2 <= C_l^2 rank_eps + eps^2 min(n_l, n_0); Jensen.

    Printed: n_0 in place of sqrt(n_l), since Claim 2 bounds a sum over n_l rows by n_0 times its root mean square. One
    input, one layer of 200 units of weight 1 at x = 0: LC/(n_0 C_bias) = 200, right side sqrt(200) = 14.1.
    """
    name, reference = "complexity by local rank", Reference("LC Thm 5", "11")
    ranks = _means_by_layer("rank", "LR", len(c.widths))
    yield from _rank_rows(c, samples, name, reference, "rank", c.eps, ranks)


def upper_by_exact_rank(c: Constants, samples: Samples) -> Iterator[Bound]:
    """LC/(T C_bias) <= sum_l sqrt(n_l) C_l sqrt(LR_l) with the exact rank (LC Cor. 14, eq. 31): eps -> 0 in eq. 11.

    Printed: n_0 C_grad sum_l sqrt(LR_l); fails where eq. 11 does.
    """
    name, reference = "complexity by exact local rank", Reference("LC Cor. 14", "31")
    ranks = _means_by_layer("exact rank", "LR", len(c.widths))
    yield from _rank_rows(c, samples, name, reference, "exact rank", 0.0, ranks)


def _rank_rows(
    c: Constants, samples: Samples, name: str, reference: Reference, rank: str, eps: float,
    ranks: dict[str, Statistic | float],
) -> Iterator[Bound]:  # fmt: skip
    C = c.printed_gradient
    if C is None:
        yield unavailable_inequality(name, reference, True, NO_CHAIN)
    else:
        yield inequality(
            samples, name, reference, printed=True, left=lambda m: m["LC"].sum(axis=-1) / (c.inputs * c.bias),
            right=lambda m: np.sqrt(C**2 * m[rank] + eps**2 * c.widths).sum(axis=-1),
            terms={"LC": total("LC"), "C_bias": c.bias, "n_0": c.inputs, "C_grad": C, "eps": eps, **ranks},
        )  # fmt: skip
    smaller = np.minimum(c.widths, c.inputs)
    per_layer: dict[str, Statistic | float] = {f"C_grad_{k + 1}": float(g) for k, g in enumerate(c.gradient)}
    yield inequality(
        samples, name, reference, printed=False, left=lambda m: m["LC"].sum(axis=-1) / (c.breakpoints * c.bias),
        right=lambda m: np.sqrt(c.widths * (c.gradient**2 * m[rank] + eps**2 * smaller)).sum(axis=-1),
        terms={"LC": total("LC"), "C_bias": c.bias, "eps": eps, **per_layer, **ranks},
    )  # fmt: skip


def rank_by_complexity(c: Constants, samples: Samples) -> Iterator[Bound]:
    """sum_l LR_l <= (LC + c_eta tail + B T C_grad C_bias)/(c_eta eps) (LC Thm 5, eq. 12).

    eps rank_eps(J) <= the sum of singular values |J|_*, and J = sum_i e_i grad z_i^T has |J|_* <= sum_i |grad z_i| by
    the triangle inequality. So sum_l LR_l <= S/eps, and eq. 8 bounds S.

    Printed: 1/eps^2, from eps^2 rank <= |J|_F^2 with a square lost. J = 10 I in n dimensions, eps = 10, at the units'
    boundaries: left side n, right side n/10. For eps < 1 the printed form is true but weaker.
    """
    for printed, power in ((True, 2), (False, 1)):
        C = c.printed_gradient if printed else c.largest_gradient
        name, reference = "local rank by complexity", Reference("LC Thm 5", "12")
        if C is None:
            yield unavailable_inequality(name, reference, True, NO_CHAIN)
            continue
        most = (1 if printed else c.breakpoints) * C * c.bias
        yield inequality(
            samples, name, reference, printed=printed, left=total("rank"),
            right=_slopes_bound(c, most, c.eps**power),
            terms={
                "LC": total("LC"), "xi": _tail(c), "B": _mean("not good"), "C_grad": C, "C_bias": c.bias,
                "c_eta": c.bias_eta, "eps": c.eps, **_means_by_layer("rank", "LR", len(c.widths)),
            },
        )  # fmt: skip


def _slopes_bound(c: Constants, most: float, small: float) -> Statistic:
    """((LC + B most)/c_eta + tail)/small; infinite, so that it says nothing, if c_eta vanishes."""

    def right(m: Means) -> Floats:
        above = m["LC"].sum(axis=-1) + m["not good"] * most
        if c.bias_eta == 0:
            return np.full_like(above, np.inf)
        with np.errstate(over="ignore"):
            return np.asarray((above / c.bias_eta + m["tail"].sum(axis=-1)) / small)

    return right


def variation_by_complexity(c: Constants, samples: Samples) -> Iterator[Bound]:
    """TV c_eta sum_l 1/C_l - c_eta tail - B T C_grad C_bias <= LC, C_l Lipschitz for N as a function of z_l (LC Thm 7).

    For every l, |grad N|_F = |G_l J_l|_F <= C_l |J_l|_F <= C_l sum_{i in l} |grad z_i|. Divide by C_l, add over the H
    hidden layers: TV sum_l 1/C_l <= S, and eq. 8 bounds S. H/max_l C_l <= sum_l 1/C_l is the paper's weaker form.

    Printed: C_l <= |W_L ... W_l|_op (eq. 42) forgets the masks. W_1 = W_2 = 1, W_3 = (100, -100)^T, W_4 = (1, 1),
    biases 0, 1, (1, -1), x = 1, sigma = 0.01: max C_l would be sqrt(2), is 100; TV H/sqrt(2) = 212 > S = 202 while LC
    is 0 and every unit good. Read with L = H + 1 as in LC eq. 1, (13) fails for one unit already: a sum over H layers
    cannot give the factor L.
    """
    name, reference, H = "variation by complexity", Reference("LC Thm 7", "13"), len(c.widths)
    common: dict[str, Statistic | float] = {
        "TV": _mean("TV"), "LC": total("LC"), "c_eta": c.bias_eta, "C_bias": c.bias, "B": _mean("not good"),
        "xi": _tail(c), "H": H,
    }  # fmt: skip
    C, G = c.printed_lipschitz, c.printed_gradient
    if C is None or G is None:
        yield unavailable_inequality(name, reference, True, NO_CHAIN)
    else:
        yield inequality(
            samples, name, reference, printed=True, right=total("LC"),
            left=lambda m: m["TV"] * _ratio(H * c.bias_eta, C) - _tail(c)(m) - m["not good"] * G * c.bias,
            terms={**common, "max C_l": C, "C_grad": G}, size=_times(c.bias_eta, "slopes"),
        )  # fmt: skip
    if c.lipschitz is None:
        yield unavailable_inequality(name, reference, False, NO_CHAIN)
        return
    inverse = sum(_ratio(1.0, float(C)) for C in c.lipschitz)  # 1/0: then TV is 0 and so is the product
    yield inequality(
        samples, name, reference, printed=False, right=total("LC"), size=_times(c.bias_eta, "slopes"),
        left=lambda m: c.bias_eta * m["TV"] * inverse - _tail(c)(m) - _most_lost(c, m),
        terms={
            **common, "C_grad": c.largest_gradient,
            **{f"C_{k + 1}": float(C) for k, C in enumerate(c.lipschitz)},
        },
    )  # fmt: skip


def _ratio(a: float, b: float) -> float:
    return a / b if b else 0.0


def gradient_constant(c: Constants, samples: Samples) -> Iterator[Bound]:
    """Largest |grad z_i| met on the data <= C_grad (LC Cor. 13), printed max_l |W_l ... W_1|_op; see `constants_of`."""
    yield from _constant_rows(
        samples,
        "largest gradient",
        Reference("LC Cor. 13", "C_grad"),
        c.met_gradient,
        c.printed_gradient,
        c.largest_gradient,
        c,
    )


def lipschitz_constant(c: Constants, samples: Samples) -> Iterator[Bound]:
    """The largest |dN/dz_l| met on the data <= max_l C_l (LC eq. 42): printed max_l |W_L ... W_l|_op."""
    bound = None if c.lipschitz is None else float(c.lipschitz.max())
    met = c.met_lipschitz
    yield from _constant_rows(
        samples, "largest Lipschitz constant", Reference("LC eq. 42", "C_l"), math.nan if met is None else met,
        c.printed_lipschitz if met is not None else None, bound if met is not None else None, c,
    )  # fmt: skip


def _constant_rows(
    samples: Samples,
    name: str,
    reference: Reference,
    met: float,
    printed: float | None,
    valid: float | None,
    c: Constants,
) -> Iterator[Bound]:
    for is_printed, bound in ((True, printed), (False, valid)):
        if bound is None:
            yield unavailable_inequality(name, reference, is_printed, NO_CHAIN)
            continue
        terms: dict[str, Statistic | float] = {"met on the data": met, "bound": bound}
        if c.norms is not None and not is_printed:
            terms |= {f"|W_{k + 1}|_op": float(norm) for k, norm in enumerate(c.norms)}
        note = (
            ""
            if c.norms_exact or is_printed or c.kind == "data"
            else "some operator norms are bounds, by |A|_1 |A|_inf"
        )
        yield inequality(
            samples, name, reference, printed=is_printed, left=constant_side(met), right=constant_side(bound),
            terms=terms, note=note,
        )  # fmt: skip
