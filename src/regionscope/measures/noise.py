"""What is only rounding: values and slopes that are zero in exact arithmetic."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regionscope.geometry.grids import Grid, grid_of
from regionscope.geometry.laws import proved_errors, usual_errors
from regionscope.geometry.modular import modulo, primes_below, remainders
from regionscope.geometry.predicates import EPS
from regionscope.geometry.rational import CellMaps, Exact, Forms
from regionscope.tracing.network import Network, as_rows, kept_with, piece
from regionscope.types import Indices

PRIMES = 3  # a form that varies looks constant modulo all of them with a probability below 1e-12


def value_errors(net: Network, x: Tensor, values: Sequence[Tensor]) -> list[Tensor]:
    """How far from the true numbers what enters each site of a frozen network usually is, (n, units)."""
    norm, *entering = (as_rows(v).norm(dim=1).numpy() for v in (x, *values))
    return [torch.from_numpy(e) for e in usual_errors(net, norm, 0 * norm, entering)]


def slope_errors(net: Network, norms: Sequence[Tensor]) -> list[Tensor]:
    """How far from the true ones the gradients of all units of a frozen network usually are, (n, units) a site.

    `norms` (n,) are those of the Jacobians of the sites, as the root of their sum of squares. Their dtype is the one
    that rounds.
    """
    first = norms[0]
    share = torch.finfo(first.dtype).eps / EPS
    size = torch.full((len(first),), math.sqrt(math.prod(net.input_shape))).double().numpy()
    entering = [n.detach().double().cpu().numpy() for n in norms]
    errors = usual_errors(net, size, 0 * size, entering, linear=True)
    return [share * torch.from_numpy(e).to(first) for e in errors]


def proved_value_errors(net: Network, x: Tensor, values: Sequence[Tensor]) -> list[Tensor]:
    """How far from the true numbers what enters each site of a frozen network is at most; the outputs come last."""
    norm, *entering = (as_rows(v).norm(dim=1).numpy() for v in (x, *values))
    return [torch.from_numpy(e) for e in proved_errors(net, norm, 0 * norm, entering)]


def proved_slope_errors(net: Network, norms: Sequence[Tensor], points: int) -> list[Tensor]:
    """The same for gradients in float64, along directions that are orthonormal to within some roundings of each."""
    d = math.prod(net.input_shape)
    size = np.full(points, math.sqrt(d))
    entering = [n.detach().double().cpu().numpy() for n in norms]
    errors = proved_errors(net, size, (2 * d + 64) * EPS * size, entering, linear=True)
    return [torch.from_numpy(e) for e in errors]


def constant_in_their_regions(net: Network, values: Sequence[Tensor], places: Tensor, *, otherwise: bool) -> Tensor:
    """Which numbers of a frozen network do not vary around their points, in exact arithmetic: (m,).

    `places` (m, 4) names a point each, the value, the entry of it, and the entry that is taken off it or -1; `values`
    are what enters the sites at all points. On its region a number is an affine form of the input, so it is constant
    if it is the same at two random points modulo a prime. One that has no exact form is `otherwise`.
    """
    generator = torch.Generator().manual_seed(0)

    def anywhere(some: Indices, p: int) -> Tensor:
        return torch.randint(p, (len(some), 2, *net.input_shape), generator=generator).double()

    def same(found: Indices) -> NDArray[np.bool_]:
        return np.asarray(found[:, :, 0] == found[:, :, 1])

    return exact_answers(net, values, places, anywhere, same, otherwise=otherwise)


def exact_numbers(net: Network, x: Tensor, values: Sequence[Tensor], places: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of a frozen network at points x, (m,), and their gradients (m, inputs), which may be rounding in floats.

    `places` and `values` as in `constant_in_their_regions`. In exact arithmetic, each rounded once: a point and its
    neighbours along two axes at a time tell three coefficients of the form that a number is.
    """
    inputs = math.prod(net.input_shape)
    pairs = -(-inputs // 2)
    sizes = {site.entry: 4 + 4 * float(z.abs().max()) for site, z in zip(net.sites, values, strict=True)}
    exactly = Exact(_exact_form(net).program, sizes)  # a gradient that may be rounding adds less
    asked, place = np.unique(places[:, 0].numpy(), return_inverse=True)
    pieces = {site.exit: piece(z, site.breakpoints) for site, z in zip(net.sites, values, strict=True)}
    axes = torch.eye(2 * pairs, inputs, dtype=torch.float64).reshape(pairs, 2, *net.input_shape)
    apart = torch.cat([torch.zeros_like(axes[:, :1]), axes], dim=1)  # from a point, (pairs, 3, *input_shape)

    def around(some: Indices, p: int) -> Tensor:
        return modulo(remainders(x[asked[some // pairs]], p)[:, None] + apart[some % pairs], p)

    cells = CellMaps(
        around,
        lambda: grid_of(x[asked]),
        lambda some: {value: piece[asked[some // pairs]] for value, piece in pieces.items()},
    )
    entries = [int(v) for v in places[:, 1].unique()]
    moduli = exactly.enough(entries, cells.grid())
    if moduli is None:
        found = max(float(z.abs().max()) for z in values)
        raise ValueError(
            f"slopes that rounding hides need exact arithmetic, which has no room for values as large as {found:.3g};"
            " scale the points or the weights down, or leave out such points"
        )
    here = places[:, 1:].numpy()
    forms = Forms(here.repeat(pairs, axis=0), np.zeros(len(here) * pairs))
    cell = (place[:, None] * pairs + np.arange(pairs)).ravel()
    ((constant, first, second),) = exactly.coefficients(cells, cell, [forms], np.zeros((0, 3), object), moduli)
    scale = np.array([exactly.denominator(int(v), cells.grid()) for v in here[:, 0]], object)
    slopes = np.stack([first, second], axis=1).reshape(len(here), -1)[:, :inputs] / scale[:, None]
    numbers = constant.reshape(len(here), -1)[:, 0] / scale
    return torch.from_numpy(numbers.astype(np.float64)), torch.from_numpy(slopes.astype(np.float64))


def exact_answers(
    net: Network,
    values: Sequence[Tensor],
    places: Tensor,
    points: Callable[[Indices, int], Tensor],
    judged: Callable[[Indices], NDArray[np.bool_]],
    *,
    otherwise: bool,
) -> Tensor:
    """What is told (primes, m) from the numbers at `places`, at points near those asked for, modulo every prime."""
    if not len(places):
        return torch.zeros(0, dtype=torch.bool)
    asked = np.unique(places[:, 0].numpy())
    exactly = _exact_form(net)
    known = torch.tensor([exactly.has(int(v)) for v in places[:, 1]], dtype=torch.bool)
    result = torch.full_like(known, otherwise)
    if not known.any():
        return result
    pieces = {site.exit: piece(z, site.breakpoints) for site, z in zip(net.sites, values, strict=True)}
    cells = CellMaps(
        lambda some, p: points(asked[some], p),
        Grid,
        lambda some: {value: piece[asked[some]] for value, piece in pieces.items()},
    )
    here = places[known].numpy()
    forms = Forms(here[:, 1:], np.zeros(len(here)))
    primes = list(islice(primes_below(exactly.largest_modulus), PRIMES))
    found = exactly.residues(cells, np.searchsorted(asked, here[:, 0]), forms, primes)
    result[known] = torch.from_numpy(judged(found).all(axis=0))
    return result


def _exact_form(net: Network) -> Exact:
    """The network in exact arithmetic; kept with it, as its laws are."""
    return kept_with(net, _exact_form, lambda: Exact(net.program.pruned([*net.entries, net.output]), {}))


def without_effect(net: Network, pieces: Mapping[int, Tensor], places: Tensor, otherwise: Tensor) -> Tensor:
    """Which units of a frozen network do not move its output on given pieces, in exact arithmetic: (m,).

    `places` (m, 3) names a point each, the site and the unit; `pieces` has those of all units (n, units) by the value
    that leaves their site. On them the output is affine in what leaves a unit, so it does not depend on that if it is
    the same for 0 and a random number modulo a prime. If the network has no exact form it is as `otherwise` says.
    """
    program = net.program.pruned([net.output])
    exactly = Exact(program, {})
    if not exactly.has(net.output):
        return otherwise
    result = torch.zeros(len(places), dtype=torch.bool)
    primes = list(islice(primes_below(exactly.largest_modulus), PRIMES))
    generator = torch.Generator().manual_seed(0)
    for number in places[:, 1].unique().tolist():
        site = net.sites[number]
        before, behind = program.segments([site.exit])
        for rows in (places[:, 1] == number).nonzero().flatten().split(exactly.at_once):
            point, _, unit = places[rows].T
            choices = {value: chosen[point].repeat(2, 1) for value, chosen in pieces.items()}
            start = {v: torch.zeros(2 * len(rows), *program.shapes[v], dtype=torch.float64) for v in before.outputs}
            moved = as_rows(start[site.exit])  # the same numbers
            still = torch.ones(len(rows), dtype=torch.bool)
            for p in primes:
                moved[torch.arange(len(rows)), unit] = torch.randint(1, p, unit.shape, generator=generator).double()
                with_it, without_it = as_rows(exactly.resumed(behind, start, choices, p)[0]).chunk(2)
                still &= (with_it == without_it).all(dim=1)
            result[rows] = still
    return result
