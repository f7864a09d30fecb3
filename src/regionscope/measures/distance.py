"""How far it is to where the network bends, and to where its decision changes."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regionscope.geometry.laws import proved_errors
from regionscope.geometry.predicates import EPS, ROUNDING
from regionscope.machine import points_at_once
from regionscope.measures.classification import checked_labels, label_leads
from regionscope.measures.cones import Cones, cones
from regionscope.measures.directions import Directions, exact_directions, tangent_floats, unit_directions
from regionscope.measures.good import good_masks, usual_slopes
from regionscope.measures.noise import (
    constant_in_their_regions,
    exact_numbers,
    proved_slope_errors,
    proved_value_errors,
    slope_errors,
)
from regionscope.measures.routes import Routes
from regionscope.progress import tqdm
from regionscope.results import Estimate
from regionscope.tracing.given import network_and_points
from regionscope.tracing.network import Network, Site, as_rows
from regionscope.types import Array, Data, Model

NORMS = {"l2": 2.0, "l1": float("inf"), "linf": 1.0}  # distance -> the norm of gradients that belongs to it


@dataclass(frozen=True, eq=False, repr=False)
class Distance(Estimate):
    """Distances (n,), and the nearest boundary: place of its site in `net.sites`, its unit and layer; -1 if none.

    `ties` (n,) is how many pairs of competitors are equal at the point itself though they differ around it.
    """

    site: NDArray[np.int64] | None = None
    nearest_unit: NDArray[np.int64] | None = None
    layer: NDArray[np.int64] | None = None
    ties: NDArray[np.int64] | None = None

    POINTWISE: ClassVar[tuple[str, ...]] = (*Estimate.POINTWISE, "site", "nearest_unit", "layer", "ties")

    def columns(self) -> dict[str, NDArray[Any]]:
        """With where the nearest boundary belongs."""
        places = {"site": self.site, "unit": self.nearest_unit, "layer": self.layer, "ties": self.ties}
        return super().columns() | {name: place for name, place in places.items() if place is not None}


@torch.inference_mode(False)  # it differentiates wherever it is called
def boundary_distance(
    model: Model | Network,
    data: Data,
    *,
    norm: str = "l2",
    good: bool = False,
    batch_size: int | None = None,
    differentiable: bool = False,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> Distance:
    """Distance to the nearest boundary, d(x) = min over units and breakpoints of |z_i - b| / |grad z_i| (HR 3.2).

    Exact inside a linear region: it is an intersection of half-spaces, and one that is redundant is never nearer. The
    gradient is measured in the dual norm. `good` counts only units that matter to the output. A point that no boundary
    can be reached from is at infinite distance, one on the boundary of a unit at distance 0.

    In max-pooling and its like the units are differences of competitors. If two are the same function around x, there
    is no boundary between them. If they are equal at x alone, as all are on the blank background of an image, x lies
    where their maximum bends, but along every ray from x it is that of the one that grows fastest: the distance is how
    far the network is affine along all rays, to where another takes over. Such pairs are counted in `ties`. Where there
    are any, or rounds between losers, it is a lower bound: of the gradients behind ties, one in every cone of rays,
    only bounds are known (see `cones`). `quantity` says so. Computed in float64 for the function that the weights
    define: close to a boundary, what float32 rounds off a value is much of the distance.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU())
    >>> _ = model[0].weight.data.copy_(torch.tensor([[3.0, 4.0]])), model[0].bias.data.fill_(-5.0)
    >>> boundary_distance(model, torch.zeros(1, 2)).mean
    1.0
    """
    norm = norm_named(norm, NORMS)
    net, points = network_and_points(model, data, allow_smooth=allow_smooth)
    dtype, parts, sites, units, ties = points.dtype, [], [], [], []
    with torch.set_grad_enabled(differentiable):
        precise = net.frozen() if net.piecewise_linear and net.sites else None
        if precise is not None:
            net, points = net.recast(torch.float64), points.double()
        along = _directions_for(net, norm)
        at_once = points_at_once(tangent_floats(net, along), batch_size)
        routes = Routes(net, along)
        for x in tqdm(points.split(at_once), desc="boundary distance", disable=not show_progress):
            distance, site, unit, tied = _nearest(routes, x, norm, good, precise)
            parts.append(distance)
            sites.append(site)
            units.append(unit)
            ties.append(tied)
    found, places, tied = torch.cat(parts), torch.cat(sites).cpu().numpy(), torch.cat(ties)
    layers = np.array([s.layer for s in net.sites] + [-1])
    losers = any(s.tournament is not None and s.tournament.winners is not None for s in net.sites)
    bound = losers or bool(tied.any())
    return Distance(
        "distance to the nearest boundary",
        found.detach().cpu().double().numpy(),
        exact=not bound and net.piecewise_linear,
        quantity="distance to the nearest boundary" + (" (lower bound)" if bound and net.piecewise_linear else ""),
        tensor=found.mean().to(dtype) if differentiable else None,
        options={"norm": norm, "good": good},
        piecewise_linear=net.piecewise_linear,
        site=places,
        nearest_unit=torch.cat(units).cpu().numpy(),
        layer=layers[places],
        ties=tied.cpu().numpy(),
    )


def norm_named(norm: str, norms: Collection[str]) -> str:
    """The one of these norms that is meant, with small or capital letters.

    >>> norm_named("L2", NORMS), norm_named("linf", ["Linf", "L2"])
    ('l2', 'Linf')
    """
    for known in norms:
        if str(norm).lower() == known.lower():
            return known
    raise ValueError(f"norm must be {' or '.join(norms)}, got {norm!r}")


def _directions_for(net: Network, norm: str) -> Directions:
    return exact_directions(net) if norm == "l2" else unit_directions(net)


def _values_and_slopes(
    routes: Routes, x: Tensor, norm: str, on_output: Callable[[Tensor], None] = lambda tangents: None
) -> list[tuple[Tensor, Tensor]]:
    """The values (n, units) of every site at points x and the norms of their gradients that belong to a distance.

    `on_output` is given the tangents of the output, chunk by chunk of the directions.
    """
    values: dict[int, Tensor] = {}
    norms: dict[int, Tensor] = {}

    def visit(number: int, z: Tensor, tangents: Tensor) -> None:
        some = _dual_norms(tangents, routes.along, norm)
        before = norms.get(number)
        values[number], norms[number] = z, some if before is None else _joint_norms(before, some, norm)

    for route in routes.each():
        on_output(route.follow(x, visit))
    return [(values[number], norms[number]) for number in range(len(routes.net.sites))]


def _dual_norms(tangents: Tensor, along: Directions, norm: str) -> Tensor:
    """The norm of the gradients that belongs to a distance, (n, units)."""
    return along.norms(tangents) if norm == "l2" else torch.linalg.vector_norm(tangents, ord=NORMS[norm], dim=0)


def _joint_norms(a: Tensor, b: Tensor, norm: str) -> Tensor:
    """The norms of vectors from those of two parts of them."""
    if norm == "l2":
        both: Tensor = torch.linalg.vector_norm(torch.stack([a, b]), dim=0)  # differentiable at zero, as hypot is not
        return both
    return torch.maximum(a, b) if norm == "l1" else a + b


def _nearest(
    routes: Routes, x: Tensor, norm: str, good: bool, precise: Network | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Distance, site and unit of the nearest boundary of each point, and ties; `precise` is the network without
    gradients, if it is piecewise linear: then points are in float64."""
    net = routes.net
    best = torch.full((len(x),), torch.inf, dtype=x.dtype, device=x.device)
    site = torch.full((len(x),), -1, device=x.device)
    unit = site.clone()
    masks = good_masks(net, x, usual_slopes(net)) if good and net.sites else None
    found = _values_and_slopes(routes, x, norm)
    found, flats = _values_and_constants(precise, x, found, norm)
    around = _cones(precise, x, found, flats, norm)
    ties = torch.zeros_like(site)
    for number, ((z, slopes), flat) in enumerate(zip(found, flats, strict=True)):
        reachable = ~flat
        if around is not None:
            tied, jump = around.tied[number].to(x.device), around.jumps[number].to(slopes)
            reachable, slopes = (reachable | (jump > 0)) & ~tied, slopes + jump
            ties += (tied & (~flat | (jump > 0))).sum(dim=1)
        if masks is not None:
            reachable = reachable & masks[number]
        safe = torch.where(reachable, slopes, 1.0)
        for b in net.sites[number].breakpoints:
            distance, place = torch.where(reachable, (z - b).abs() / safe, torch.inf).min(dim=1)
            nearer = distance < best
            best = torch.where(nearer, distance, best)
            site, unit = torch.where(nearer, number, site), torch.where(nearer, place, unit)
    return best, site, unit, ties


def _cones(
    net: Network | None, x: Tensor, found: list[tuple[Tensor, Tensor]], flats: list[Tensor], norm: str
) -> Cones | None:
    """The cones around points x where competitors tie, with jumps in the norm that belongs to a distance."""
    if net is None:
        return None
    x, root = x.detach().cpu(), math.sqrt(math.prod(net.input_shape))  # between the norms of gradients
    before, behind = {"l2": (1.0, 1.0), "l1": (root, 1.0), "linf": (1.0, root)}[norm]
    slopes = [before * torch.where(flat, 0.0, s.detach()).cpu() for (_, s), flat in zip(found, flats, strict=True)]
    around = cones(net, x, [as_rows(z) for z in net.preactivations(x)], slopes)
    return None if around is None else Cones(around.tied, [behind * jump for jump in around.jumps])


def _values_and_constants(
    net: Network | None, x: Tensor, found: list[tuple[Tensor, Tensor]], norm: str
) -> tuple[list[tuple[Tensor, Tensor]], list[Tensor]]:
    """Values and slopes, and which units (n, units) are constant around the points x: they reach no boundary.

    Their slope is 0, or so small that it may be rounding and exact arithmetic, where there is any, says that it is. If
    it says that it is not, slope and value are taken from there: the quotient of two roundings is no distance.
    """
    if net is None:
        return found, [slopes <= 0 for _, slopes in found]
    share = 1.0 if norm == "l2" else math.sqrt(math.prod(net.input_shape))  # other norms differ by this at most
    errors = slope_errors(net, [share * slopes.detach().norm(dim=1) for _, slopes in found])
    small = torch.cat([slopes <= e for (_, slopes), e in zip(found, errors, strict=True)], dim=1)
    point, place = small.nonzero().cpu().T
    flat = torch.cat([slopes <= 0 for _, slopes in found], dim=1)
    if len(point):
        values = [as_rows(z) for z in net.preactivations(x.detach().cpu())]
        asked = torch.stack([point, *_value_and_entries(net, point, place)], dim=1)
        same = constant_in_their_regions(net, values, asked, otherwise=True)
        flat[point, place] = same.to(flat.device)
        if not same.all():
            found = _with_exact_ones(net, x, found, values, point[~same], place[~same], norm)
    return found, list(flat.split([site.units for site in net.sites], dim=1))


def _with_exact_ones(
    net: Network, x: Tensor, found: list[tuple[Tensor, Tensor]], values: list[Tensor], point: Tensor, place: Tensor,
    norm: str,
) -> list[tuple[Tensor, Tensor]]:  # fmt: skip
    """Values and slopes, exact where they are those of these points at these places among all units."""
    asked = torch.stack([point, *_value_and_entries(net, point, place)], dim=1)
    z, gradients = exact_numbers(net, x.detach().cpu(), values, asked)
    slopes = torch.linalg.vector_norm(gradients, ord=NORMS[norm], dim=1)
    at = point.to(x.device), place.to(x.device)
    units = [z.shape[1] for z, _ in found]
    whole = (torch.cat(part, dim=1) for part in zip(*found, strict=True))
    written = (old.index_put(at, new.to(old)).split(units, dim=1) for old, new in zip(whole, (z, slopes), strict=True))
    return list(zip(*written, strict=True))


def certified_radius(
    model: Model | Network,
    data: Data,
    labels: Array,
    *,
    batch_size: int | None = None,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> Estimate:
    """A radius (l2) within which no point is classified otherwise: 0 where x itself is wrong.

    The larger of two lower bounds on the distance to any adversarial example. The first is the smaller of the distance
    to the region's border and, for the region's affine map, to the decision boundary (Croce et al. 2019): the distance
    itself where the second is the smaller. Where competitors of max-pooling tie at x, as on a blank background, the
    region is all that is affine along rays from x (see `boundary_distance`), and the steepest map that one of its cones
    may have stands for all: that says next to nothing. The second asks for no region. An affine step moves its result
    by at most its spectral norm times how far the values before it moved, an activation by its steepest slope, and a
    maximum by no more than the competitors did, |max(a, b) - max(a', b')| <= max(|a - a'|, |b - b'|). Followed from the
    input, output i moves by at most L_i |dx|, so label y leads k within (f_y(x) - f_k(x)) / (L_y + L_k).
    A tie for the largest output is wrong, as in `robust_accuracy`. Computed in float64 for the function that the
    weights define, less what rounding may have done by bounds that are proved: in networks so deep that those say
    nothing, or with an operation without a bound, it is 0. A network that is not piecewise linear has no such radius:
    an error.

    >>> model = torch.nn.Linear(2, 2)
    >>> _ = model.weight.data.copy_(torch.eye(2)), model.bias.data.zero_()
    >>> certified_radius(model, torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
    Estimate(certified radius (l2) = 1.41421 ± ?, n = 1, a lower bound)
    """
    net, points = network_and_points(model, data, allow_smooth=allow_smooth)
    labels = checked_labels(labels, net, points)
    if not net.piecewise_linear:
        raise ValueError(
            "the network is not piecewise linear: it has no linear regions, and its gradient at a point says nothing"
            " about the outputs around it, so there is no certified radius; robust_accuracy attacks any network"
        )
    precise = net.frozen()
    along = _directions_for(precise, "l2")
    parts = []
    with torch.no_grad():
        at_once = points_at_once(tangent_floats(precise, along), batch_size)
        routes = Routes(precise, along, output=True)
        together = list(zip(points.split(at_once), labels.split(at_once), strict=True))
        for x, y in tqdm(together, desc="certified radius", disable=not show_progress):
            right = label_leads(net(x).reshape(len(x), -1), y) > 0  # as the network itself sees it
            parts.append(torch.where(right, _safe_radii(routes, x.double(), y), 0.0))
    found = torch.cat(parts).cpu().numpy()
    quantity = "length (lower bound on the adversarial distance)"
    return Estimate("certified radius (l2)", found, quantity=quantity, piecewise_linear=True)


# Radii are short by this share, far more than rounding can leave in a norm, a sum of two numbers or a quotient.
SHORT = 1e-9


def _safe_radii(routes: Routes, x: Tensor, labels: Tensor) -> Tensor:
    """The certified radius of each point (n,), rounded towards zero; 0 where the label's output does not win.

    What rounding may have added to a gap is taken off it, and what it may have taken off a slope is added, by bounds
    that are proved (see `geometry.rounding`). So a radius above 0 proves all signs at x too. A gap that may be the same
    everywhere, such as that of two competitors that are one function, counts unless exact arithmetic says it is. That
    of two that tie at x, which exact arithmetic says too, does not count, but what it does to slopes behind does.
    """
    net, rows = routes.net, torch.arange(len(x))
    apart: list[Tensor] = []  # of each chunk, how fast the label's output leaves the others, (n, k)

    def on_output(tangents: Tensor) -> None:
        apart.append(routes.along.norms(tangents[:, rows, labels, None] - tangents))

    found = _values_and_slopes(routes, x, "l2", on_output)
    values, outputs = [z for z, _ in found], net(x).reshape(len(x), -1)
    *errors, error = proved_value_errors(net, x, values)
    *doubts, doubt = proved_slope_errors(net, [slopes.norm(dim=1) for _, slopes in found], len(x))
    gaps = [_nearest_breakpoint(site, z) - e for site, z, e in zip(net.sites, values, errors, strict=True)]
    gaps += [outputs[rows, labels, None] - outputs - error[rows, labels, None] - error]
    slopes = torch.cat([*(slope for _, slope in found), reduce(torch.hypot, apart)], dim=1)
    unsure = torch.cat([*doubts, doubt[rows, labels, None] + doubt], dim=1)
    around = cones(net, x, values, [slope for _, slope in found], doubts)
    jumps, tied = torch.zeros_like(slopes), torch.zeros_like(slopes, dtype=torch.bool)
    if around is not None:
        *each, last = around.jumps
        jumps = torch.cat([*each, last[rows, labels, None] + last], dim=1)
        tied = torch.cat([*around.tied, torch.zeros_like(outputs, dtype=torch.bool)], dim=1)
    slopes = slopes + jumps
    distances = torch.cat(gaps, dim=1).clamp_min(0) / (slopes + unsure).clamp_min(torch.finfo(x.dtype).tiny)
    distances[rows, slopes.shape[1] - outputs.shape[1] + labels] = torch.inf
    distances.masked_fill_((slopes == 0) & (unsure == 0), torch.inf)
    distances.masked_fill_(tied, torch.inf)
    level = distances.masked_fill(slopes <= unsure, torch.inf).amin(dim=1, keepdim=True)
    point, place = ((slopes <= unsure) & (jumps == 0) & (distances < level)).nonzero().T
    asked = torch.stack([point, *_value_and_entries(net, labels[point], place)], dim=1)
    constant = constant_in_their_regions(net, values, asked, otherwise=False)
    distances[point[constant], place[constant]] = torch.inf
    nearest = torch.maximum(distances.amin(dim=1), _steady_radii(net, gaps[-1], labels))
    radius = (1 - SHORT) * nearest - ROUNDING * x.flatten(1).norm(dim=1)
    return torch.where(label_leads(outputs, labels) > 0, radius.clamp_min(0), 0.0)


def _steady_radii(net: Network, leads: Tensor, labels: Tensor) -> Tensor:
    """How far the label keeps its lead (n, outputs) over the others as outputs cannot change faster: (n,)."""
    zero, one = np.zeros(1), np.ones(1)
    fastest = torch.from_numpy(proved_errors(net, zero, one, [zero] * len(net.sites), linear=True)[-1][0])
    reach = leads.clamp_min(0) / (fastest[labels, None] + fastest).clamp_min(torch.finfo(leads.dtype).tiny)
    return reach.scatter(1, labels[:, None], torch.inf).amin(dim=1)


def _nearest_breakpoint(site: Site, z: Tensor) -> Tensor:
    """How far each unit is from the nearest of its breakpoints, at least."""
    return torch.stack([(z - b).abs() - 2 * EPS * abs(b) for b in site.breakpoints]).amin(dim=0)


def _value_and_entries(net: Network, labels: Tensor, place: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The value, the entry and what is taken off it, of units and, after these, of the lead of labels over outputs."""
    ends = torch.tensor([0, *(site.units for site in net.sites)]).cumsum(dim=0)
    site = torch.searchsorted(ends, place, right=True) - 1
    entry, last = place - ends[site], site == len(net.sites)
    value = torch.tensor([*net.entries, net.output])[site]
    return value, entry, torch.where(last, labels, -1)
