"""What a measure costs at one point, in forward passes of the network and tangents of all its values.

Both are counted here, from its sites, inputs and outputs, and timed in `plans`. The factors were measured on
perceptrons, convolutional and residual networks: they hold to a factor of two, but for perceptrons and crossings.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from regionscope.measures.dense_chains import chain_passage
from regionscope.measures.directions import MOST_DIRECTIONS, affine_width
from regionscope.measures.good import good_as_it_stands
from regionscope.tracing.network import Network

GRADIENT = 1.5  # forward passes that a gradient of an output costs
ATTACK = 8.0  # that a step of an attack costs: a pass, a gradient, a step within bounds
PRODUCT = 4.0  # that a product with the Jacobian of the last layer and its transpose costs
NOISE = 12.0  # that noise on all units and a first look at which are good cost
LOOK = 1.0  # that a closer look at one unit of a site costs, on average
LOOKS = 32  # at units of each site that the inequalities take at the most
DOUBLE = 2.0  # times as long it takes in float64
SPECTRUM = 8.0  # times the operations of a product that all singular values take as long as


class Effort(NamedTuple):
    """What one point takes: forward passes, tangents of all values, and operations of linear algebra beside them.

    Tangents are along random directions, along all that exact gradients need, or along those in float64.
    """

    passes: float = 0.0
    random: float = 0.0
    exact: float = 0.0
    double: float = 0.0
    operations: float = 0.0


CostFunction = Callable[[Network, Mapping[str, Any]], Effort]  # of all options that are in effect


def complexity_effort(net: Network, options: Mapping[str, Any]) -> Effort:
    """Of `local_complexity`: tangents in every draw, and one unit a site looked at closely.

    Once for all draws in a chain, but where noise switches many of its units, which only points tell.
    """
    draws = options["draws"]
    looks = LOOK * sum(not good_as_it_stands(net, site) for site in net.sites) if options["good"] else 0
    passes = draws * (NOISE + looks)
    if _draws_directions(net, options):
        return Effort(passes, random=draws * options["directions"])
    r = _tangents(net)
    together = not options["weight_noise"] and chain_passage(net, r, draws) is not None
    return Effort(passes, exact=r if together else draws * r)


def crossings_effort(net: Network, options: Mapping[str, Any]) -> Effort:
    """Of `boundary_crossings`: the vertices of a neighbourhood."""
    directions = min(options["directions"], math.prod(net.input_shape))
    return Effort(2.0 * directions + 1)


def rank_effort(net: Network, options: Mapping[str, Any]) -> Effort:
    """Of `local_rank`: all tangents and a factorisation for each layer, or products with its Jacobian."""
    if _draws_directions(net, options):
        return Effort(PRODUCT * options["directions"] * (net.layers + 1) / 2)
    r = _tangents(net)
    units = [sum(site.units for site in net.sites if site.layer == layer + 1) for layer in range(net.layers)]
    return Effort(exact=r, operations=sum(2.0 * min(r, m) ** 2 * max(r, m) for m in units))


def variation_effort(net: Network, options: Mapping[str, Any]) -> Effort:
    """Of `total_variation`: a gradient an output, or a combination of outputs, or the tangents."""
    outputs = 1 if options["target"] is not None else math.prod(net.output_shape)
    method = options["method"]
    if method == "random":
        return Effort(random=options["directions"])
    if method == "combinations":
        return Effort(2 + GRADIENT * options["directions"])
    if method == "reverse" or (method == "auto" and outputs <= affine_width(net)):
        return Effort(2 + GRADIENT * outputs)
    return Effort(exact=_tangents(net))


def distance_effort(net: Network, options: Mapping[str, Any]) -> Effort:
    """Of `boundary_distance`: all tangents in float64, and what may be rounding looked at again."""
    return Effort(double=1.5 * _tangents(net))


def radius_effort(net: Network, options: Mapping[str, Any]) -> Effort:
    """Of `certified_radius`: the same, with bounds on rounding."""
    return Effort(double=2.0 * _tangents(net))


def good_effort(net: Network, options: Mapping[str, Any]) -> Effort:
    """Of `good_units`: a pass and a gradient, and most often another one, for ways that cancel."""
    return Effort(2 + 2 * GRADIENT)


def attack_effort(net: Network, options: Mapping[str, Any]) -> Effort:
    """Of `robust_accuracy`, at a point at which nothing succeeds."""
    return Effort(2 + ATTACK * options["steps"] * options["restarts"])


def regions_effort(net: Network, options: Mapping[str, Any]) -> Effort:
    """Of `local_region_count`: the vertices of some hundred regions in float64; how many there are nobody knows."""
    return Effort(1000.0)


def bounds_effort(net: Network, options: Mapping[str, Any]) -> Effort:
    """Of all inequalities, in float64: in every draw all tangents, the singular values of each layer, and looks."""
    r = _tangents(net)
    looks = LOOK * LOOKS * sum(not good_as_it_stands(net, site) for site in net.sites)
    draws, products = options["draws"], rank_effort(net, {"method": "jacobian"}).operations
    return Effort(draws * DOUBLE * (NOISE + looks), double=draws * r, operations=draws * SPECTRUM * products)


def _draws_directions(net: Network, options: Mapping[str, Any]) -> bool:
    """Whether directions are drawn; see `directions.chosen_directions`."""
    return options["method"] == "random" or (options["method"] == "auto" and _tangents(net) > MOST_DIRECTIONS)


def _tangents(net: Network) -> int:
    """How many directions are needed for exact gradients."""
    return min(affine_width(net), math.prod(net.input_shape))
