"""The constants of the inequalities: as the papers print them, as they hold, and as met on the data."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from regionscope.inequalities.bound import Samples
from regionscope.inequalities.chains import AffineChain, products
from regionscope.tracing.network import Network
from regionscope.types import Floats

KINDS = ("product", "data")
SMALLEST = 1e-290  # products of smaller numbers lose digits


@dataclass(frozen=True, eq=False)
class Constants:
    """What enters the right sides and is not a mean over points.

    `gradient`, `unit_gradient`, `lipschitz` are those in use, by `kind`: "product", bounds that hold everywhere, by
    operator norms; or "data", the largest values met at the points and draws, which hold for those only.
    """

    sigma: float
    eta: float
    eps: float
    inputs: int  # n_0
    widths: Floats  # n_l
    breakpoints: int  # T
    kind: str
    gradient: Floats  # (layers,), |J_l|_op <= this
    unit_gradient: Floats  # (layers,), |grad z_i| <= this for units i of the layer
    lipschitz: Floats | None  # (layers,), of the outputs as functions of z_l
    met_gradient: float
    mean_gradient: float  # the largest mean of |grad z_i(x)| over the noise, of all units i and points x
    met_lipschitz: float | None
    printed_gradient: float | None = None  # max over l of |W_l ... W_1|_op
    printed_lipschitz: float | None = None  # max over l of |W_L ... W_l|_op
    frobenius: Floats | None = None  # |W_l|_F, l = 1..H+1
    steepest: Floats | None = None  # the largest slope of each activation
    norms: Floats | None = None  # |W_l|_op
    norms_exact: bool = False
    offsets: float = math.nan  # sum over units of beta^2

    @property
    def bias(self) -> float:
        """C_bias, the largest density of a bias."""
        return 1 / (self.sigma * math.sqrt(2 * math.pi))

    @property
    def bias_eta(self) -> float:
        """c_eta, the density at distance eta from the mean; 0, a smaller and so valid one, if it is near underflow."""
        density = self.bias * math.exp(-((self.eta / self.sigma) ** 2) / 2)
        return density if density > SMALLEST else 0.0

    @property
    def units(self) -> int:
        return int(self.widths.sum())

    @property
    def depth(self) -> int:
        """The number of affine maps, LC's L."""
        return len(self.widths) + 1

    @property
    def largest_gradient(self) -> float:
        """C_grad, a bound on every |grad z_i|."""
        return float(self.unit_gradient.max())


def constants_of(
    net: Network, chain: AffineChain | None, samples: Samples, *, sigma: float, eta: float, eps: float, kind: str
) -> Constants:
    """All constants for a network; "product" needs a chain, others get "data".

    C_grad: J_l = W_l D_{l-1} W_{l-1} ... D_1 W_1 with slopes |D| <= s, so |J_l|_op <= prod_{k<=l} |W_k|_op s_k, and for
    the i-th row |grad z_i| <= |row i of W_l| prod_{k<l} |W_k|_op s_k. LC Cor. 13 prints |W_l ... W_1|_op, without the
    masks D: W_1 = (1, -1)^T, W_2 = (1, 1) has product 0 and gradient 1. C_l likewise from the other end (LC eq. 42).
    """
    widths = np.zeros(net.layers)
    np.add.at(widths, [site.layer - 1 for site in net.sites], [site.units for site in net.sites])
    met = samples.largest
    on_data = Constants(
        sigma, eta, eps,
        inputs=math.prod(net.input_shape),
        widths=widths,
        breakpoints=max(len(site.breakpoints) for site in net.sites),
        kind="data",
        gradient=met["largest norm"],
        unit_gradient=np.full(net.layers, float(met["largest slope"])),
        lipschitz=met.get("largest Lipschitz"),
        met_gradient=float(met["largest slope"]),
        mean_gradient=float(met["largest mean slope"]),
        met_lipschitz=float(met["largest Lipschitz"].max()) if "largest Lipschitz" in met else None,
    )  # fmt: skip
    if chain is None:
        return on_data
    norms, steepest = np.array([m.norm for m in chain.maps]), np.array(chain.steepest)
    matrices = chain.matrices
    found = replace(
        on_data,
        printed_gradient=None if matrices is None else _largest_norm(products(matrices[:-1])),
        printed_lipschitz=None if matrices is None else _largest_norm(products([m.T for m in matrices[::-1]])),
        frobenius=np.array([m.frobenius for m in chain.maps]),
        steepest=steepest,
        norms=norms,
        norms_exact=all(m.exact for m in chain.maps),
        offsets=sum(float(m.offset.square().sum()) for m in chain.maps[:-1]),
    )
    if kind == "data":
        return found
    rows = np.array([float(m.rows.max()) for m in chain.maps[:-1]])
    before = np.cumprod(np.concatenate([[1.0], norms[:-2] * steepest[:-1]]))  # what stands before W_l
    behind = np.cumprod((norms[1:] * steepest)[::-1])[::-1]  # W_{H+1} D_H ... W_{l+1} D_l
    return replace(
        found, kind="product", gradient=before * norms[:-1], unit_gradient=before * rows, lipschitz=behind
    )  # fmt: skip


def _largest_norm(matrices: list[Tensor]) -> float:
    return max(float(torch.linalg.matrix_norm(matrix, ord=2)) for matrix in matrices)
