"""Chains of dense ReLU layers under many draws of noise: values, gradient norms and who is good, with few products.

Whose gradients change, and how, is in `switches`. Who is good follows from the values that are known: the derivative of
the output by what leaves layer l is g_l = W_l D g_l+1, D the open units of layer l + 1. A unit that is moved to its
breakpoint takes its row of W_l off what enters the next layer, and only the layers behind that are gone through again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regionscope.machine import points_at_once
from regionscope.measures.crosspolytopes import Layer
from regionscope.measures.directions import Directions
from regionscope.measures.good import Standing, good_masks, last_slopes, near_nothing, standing_of
from regionscope.measures.neighbourhoods import Passage, passage
from regionscope.measures.routes import Route
from regionscope.measures.switches import squares_of
from regionscope.tracing.network import Network, Site

FEW = 64  # directions; with fewer, the gradients themselves are as fast,
SEVERAL = 4  # and with fewer draws,
MANY = 0.25  # and if more than this share of the units are within one standard deviation of the noise
FLOATS_AT_ONCE = 1 << 22  # of gradients


@dataclass(frozen=True)
class DenseChain:
    """A network whose sites are ReLUs with a dense layer between each and the next, and the way along directions."""

    way: Passage
    route: Route
    last: Tensor | None  # the derivative of the output by what leaves the last site, if it depends on that alone

    def at_once(self, batch_size: int | None = None) -> int:
        """How many points to take together, by their gradients."""
        floats = self.route.net.units * len(self.route.along.vectors)
        return points_at_once(floats, batch_size, floats=FLOATS_AT_ONCE)

    def values(self, x: Tensor, noise: Sequence[Tensor]) -> list[Tensor]:
        """What enters the sites at points x (n, ...), under noise (draws, n, units) a site: (draws, n, units)."""
        (first,) = self.way.centres(x)
        found = [first.expand(len(noise[0]), -1, -1)]
        for layer, shift in zip(self.way.layers, noise, strict=False):
            found.append(_behind(layer, found[-1] - shift))
        return found

    def norms(self, x: Tensor, values: Sequence[Tensor], noise: Sequence[Tensor]) -> list[Tensor]:
        """The gradient norms of all units at these points, (draws, n, units) a site."""
        found: dict[int, Tensor] = {}

        def visit(number: int, z: Tensor, tangents: Tensor) -> None:
            found[number] = tangents

        self.route.follow(x, visit)
        tangents = torch.cat([found[number] for number in range(len(found))], dim=2).transpose(0, 1)  # (n, r, units)
        zeros = [torch.zeros_like(shift[:1]) for shift in noise]
        stood = torch.cat([z > 0 for z in self.values(x, zeros)], dim=2)[0]
        stands = torch.cat([z > shift for z, shift in zip(values, noise, strict=True)], dim=2).transpose(0, 1)
        widths = [z.shape[2] for z in values]
        squares = squares_of(self.way.layers, tangents, stood, stands.contiguous(), widths)
        return list(squares.sqrt().transpose(0, 1).split(widths, dim=2))

    def standing(self, x: Tensor, noise: list[Tensor], usual: list[Tensor], entering: list[Tensor]) -> Standing:
        """Who is good at points x under noise (n, units) a site; `entering` is what enters them, (n, units) too."""
        if self.last is None:
            return standing_of(self.route.net, x, noise, usual)
        return _ChainStanding(self.route.net, self.way.layers, self.last, x, noise, usual, entering)


@dataclass(frozen=True)
class _ChainStanding:
    """A chain at points under noise, as `good.standing_of` has any network.

    What is told here is that derivatives are clearly not 0, or that a layer is closed. Where one may be rounding only,
    which is seldom, the general way is asked.
    """

    net: Network
    layers: Sequence[Layer]
    last: Tensor
    x: Tensor
    noise: list[Tensor]  # (n, units) a site
    usual: list[Tensor]  # the `usual_slopes` of the network
    entering: list[Tensor]  # (n, units) a site, before the noise is taken off

    @cached_property
    def values(self) -> dict[int, Tensor]:
        """What leaves the sites, by the number of the value."""
        found = zip(self.net.sites, self.entering, self.noise, strict=True)
        return {site.exit: torch.relu(z - shift) for site, z, shift in found}

    @cached_property
    def masks(self) -> list[Tensor]:
        """Which units are good as they stand, (n, units) a site."""
        open_ = [z > shift for z, shift in zip(self.entering[1:], self.noise[1:], strict=True)]
        slopes = list(self._slopes_before(open_))[::-1]
        masks = [(g != 0).expand(len(self.x), -1).contiguous() for g in slopes]
        small = [_may_be_rounding(g, u).any(dim=1) for g, u in zip(slopes, self.usual, strict=True)]
        doubtful = [_rows_leading_on(rows.nonzero().flatten(), open_[number:]) for number, rows in enumerate(small)]
        rows = torch.cat(doubtful).unique()
        if len(rows):
            precise = good_masks(self.net.frozen(), *self._precisely(rows))
            for mask, found in zip(masks, precise, strict=True):
                mask[rows] = found
        return masks

    def good_at_breakpoint(self, site: Site, unit: Tensor, level: Tensor) -> Tensor:
        """Whether one unit of a site that is not the last is good at each point, when it is at its breakpoint."""
        number, at = self.net.sites.index(site), unit[:, None]
        row = _weights(self.layers[number])[unit]  # (n, units of the next site)
        z = self.entering[number + 1] - row * (self.values[site.exit].gather(1, at) - level[:, None])
        open_ = [z > self.noise[number + 1]]
        for place in range(number + 1, len(self.layers)):
            z = _behind(self.layers[place], z - self.noise[place])
            open_.append(z > self.noise[place + 1])
        *_, slopes = self._slopes_before(open_[1:])
        found = (slopes * open_[0] * row).sum(dim=1)
        good = found != 0
        rows = _rows_leading_on(_may_be_rounding(found, self.usual[number][unit]).nonzero().flatten(), open_)
        if len(rows):
            x, usual, noise = self._precisely(rows)
            stand = standing_of(self.net.frozen(), x, noise, usual)
            good[rows] = stand.good_at_breakpoint(site, unit[rows], level[rows].double())
        return good

    def _slopes_before(self, open_: Sequence[Tensor]) -> Iterator[Tensor]:
        """The derivatives of the output by what leaves the sites, (n, units) each, from the last one on.

        One site more than there are masks of open units, (n, units) each.
        """
        slopes = self.last.expand(len(self.x), -1)
        yield slopes
        for mask, layer in zip(reversed(open_), reversed(self.layers), strict=False):
            slopes = (slopes * mask) @ _weights(layer).T
            yield slopes

    def _precisely(self, rows: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Some points in float64, what derivatives usually are, and the noise there."""
        return self.x[rows].double(), [u.double() for u in self.usual], [d[rows].double() for d in self.noise]


def _rows_leading_on(rows: Tensor, open_: Sequence[Tensor]) -> Tensor:
    """Those of the rows where each of the masks (n, units) has an open unit: elsewhere derivatives are certainly 0."""
    for mask in open_:
        rows = rows[mask[rows].any(dim=1)]
    return rows


def _may_be_rounding(slopes: Tensor, usual: Tensor) -> Tensor:
    """Which derivatives are so small, though ways lead on from there."""
    return near_nothing(slopes, torch.where(usual > 0, usual, -1.0))


def _weights(layer: Layer) -> Tensor:
    return torch.from_numpy(layer.weights)


def _behind(layer: Layer, entering: Tensor) -> Tensor:
    """What leaves a dense layer behind ReLUs."""
    return torch.relu(entering) @ _weights(layer) + torch.from_numpy(layer.biases)


def chain_passage(net: Network, directions: int, draws: int) -> Passage | None:
    """The way through the network, if it is a chain and so many exact directions and draws are enough for it to pay."""
    if directions < FEW or draws < SEVERAL or net.dtype is not torch.float32 or net.layers < 2:
        return None
    way = passage(net, range(1, net.layers + 1))
    whole = len(way.layers) == len(net.sites) - 1 and [site.entry for site in way.sites] == list(net.entries)
    return way if whole else None


@torch.no_grad()
def dense_chain(net: Network, along: Directions, scales: Sequence[float], x: Tensor, draws: int) -> DenseChain | None:
    """The network as a chain, if it is one and it is likely to pay for so many draws, judged by some points x."""
    way = chain_passage(net, len(along.vectors), draws) if along.exact else None
    if way is None:
        return None
    found = DenseChain(way, Route(net, along, roots=False), last_slopes(net))
    values = found.values(x, [x.new_zeros(1, len(x), site.units) for site in net.sites])
    near = [(z.abs() < scale).float().mean() for z, scale in zip(values, scales, strict=True)]
    return found if sum(near) <= MANY * len(near) else None
