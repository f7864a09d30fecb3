"""Gradient norms of dense ReLU layers under many draws of noise, each of which switches few units.

T_l are the gradients of a layer at a point where nothing is noisy, its columns those of the units. Under noise some
units of each layer switch, and T_l + U V_l are the gradients: U has a column of T for every unit that has switched so
far, V_l its weights, with a minus if the unit was open, taken on through the layers and open units behind it:

    T_l D W = T_l D_0 W + T_l (D - D_0) W,   so   U -> [U, T_l of what switched],   V -> [V D W; +-W of what switched].

Norms need scalar products of columns of T only: |t + U v|^2 = |t|^2 + v (2 U t + U U v). These are the same in all
draws, and a draw needs s k^2 products for s switched units where the gradients themselves would need k^3. Where that
cancels, the column is written out.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regionscope.compiling import njit
from regionscope.machine import in_threads, points_at_once
from regionscope.measures.crosspolytopes import Layer
from regionscope.measures.directions import Directions
from regionscope.measures.neighbourhoods import Passage, passage
from regionscope.measures.routes import Route
from regionscope.tracing.network import Network

FEW = 64  # directions; with fewer, the gradients themselves are as fast,
SEVERAL = 4  # and with fewer draws,
MANY = 0.25  # and if more than this share of the units are within one standard deviation of the noise
CANCELS = 8.0  # how much smaller a square may be than what it is the sum of
FLOATS_AT_ONCE = 1 << 22  # of gradients


@dataclass(frozen=True)
class DenseChain:
    """A network whose sites are ReLUs with a dense layer between each and the next, and the way along directions."""

    way: Passage
    route: Route

    def at_once(self, batch_size: int | None = None) -> int:
        """How many points to take together, by their gradients."""
        floats = self.route.net.units * len(self.route.along.vectors)
        return points_at_once(floats, batch_size, floats=FLOATS_AT_ONCE)

    def values(self, x: Tensor, noise: Sequence[Tensor]) -> list[Tensor]:
        """What enters the sites at points x (n, ...), under noise (draws, n, units) a site: (draws, n, units)."""
        (first,) = self.way.centres(x)
        found = [first.expand(len(noise[0]), -1, -1)]
        for layer, shift in zip(self.way.layers, noise, strict=False):
            found.append(torch.relu(found[-1] - shift) @ _layer_weights(layer) + torch.from_numpy(layer.biases))
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
        squares = _squares_of(self.way.layers, tangents, stood, stands.contiguous(), widths)
        return list(squares.sqrt().transpose(0, 1).split(widths, dim=2))


def _layer_weights(layer: Layer) -> Tensor:
    return torch.from_numpy(layer.weights)


@torch.no_grad()
def dense_chain(net: Network, along: Directions, scales: Sequence[float], x: Tensor, draws: int) -> DenseChain | None:
    """The network as a chain, if it is one and it is likely to pay for so many draws, judged by some points x."""
    if (
        not along.exact
        or len(along.vectors) < FEW
        or draws < SEVERAL
        or net.dtype is not torch.float32
        or net.layers < 2
    ):
        return None
    way = passage(net, range(1, net.layers + 1))
    if len(way.layers) != len(net.sites) - 1 or [site.entry for site in way.sites] != list(net.entries):
        return None
    found = DenseChain(way, Route(net, along, roots=False))
    values = found.values(x, [x.new_zeros(1, len(x), site.units) for site in net.sites])
    near = [(z.abs() < scale).float().mean() for z, scale in zip(values, scales, strict=True)]
    return found if sum(near) <= MANY * len(near) else None


def _squares_of(
    layers: Sequence[Layer], tangents: Tensor, stood: Tensor, stands: Tensor, widths: Sequence[int]
) -> Tensor:
    """The squared gradient norms (n, draws, units) of all units, one layer after another.

    `tangents` (n, r, units) are those without noise, where the open units are `stood` (n, units); `stands` (n, draws,
    units) are the open ones in every draw.
    """
    flat = np.concatenate([layer.weights.ravel() for layer in layers])
    squares = torch.empty(stands.shape, dtype=tangents.dtype)
    at_once = -(-len(stands) // (4 * torch.get_num_threads()))
    parts = zip(*(a.contiguous().split(at_once) for a in (tangents, stood, stands, squares)), strict=True)

    def fill(part: Sequence[Tensor]) -> None:
        gradients, before, now, found = (a.numpy() for a in part)
        _fill_squares(gradients, before, now, found, np.array(widths), flat)

    list(in_threads(fill, parts))
    return squares


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _fill_squares(tangents, stood, stands, squares, widths, weights):
    """Fill in `squares`. The weights (inputs, outputs) of all layers lie one after another."""
    n, draws, units = stands.shape
    r, before, widest, dtype = tangents.shape[1], units - widths[-1], widths.max(), tangents.dtype
    place, own, every = np.empty(before, np.int64), np.empty(units, dtype), np.arange(r)
    ends = np.zeros(len(widths), np.int64)  # how many units before a layer switch in some draw
    shares, further = np.empty((before, widest), dtype), np.empty((before, widest), dtype)  # V
    open_now, used = np.empty(widest, np.int64), np.empty(before, np.int64)
    mixed, size = np.empty(widest, dtype), np.empty(widest, dtype)
    for q in range(n):
        rows = tangents[q]
        own[:] = 0
        for row in rows:
            for u in range(units):
                own[u] += row[u] * row[u]
        chosen = _switching_units(stood[q], stands[q], place, ends, widths)
        chosen_rows = _columns(rows, chosen)
        columns = chosen_rows.T.copy()
        among, across = np.empty((len(chosen), len(chosen)), dtype), np.empty((len(chosen), units), dtype)
        _combine(columns, every, chosen_rows, among, 0, len(chosen))
        start = 0
        for layer in range(len(widths)):
            stop = start + widths[layer]
            _combine(columns[: ends[layer]], every, rows, across, start, stop)
            start = stop
        for draw in range(draws):
            opened, found = stands[q, draw], squares[q, draw]
            found[: widths[0]] = own[: widths[0]]
            count, start, weight = 0, 0, 0
            for layer in range(len(widths) - 1):
                inputs, outputs, stop = widths[layer], widths[layer + 1], start + widths[layer]
                matrix = weights[weight : weight + inputs * outputs].reshape(inputs, outputs)
                if count > 0:
                    terms = 0
                    for i in range(inputs):
                        open_now[terms] = i
                        terms += opened[start + i]
                    _combine(shares[:count], open_now[:terms], matrix, further, 0, outputs)
                for u in range(start, stop):
                    if opened[u] != stood[q, u]:
                        used[count] = place[u]
                        sign = 1 if opened[u] else -1
                        for i in range(outputs):
                            further[count, i] = sign * matrix[u - start, i]
                        count += 1
                shares, further = further, shares
                start, weight = stop, weight + inputs * outputs
                square = found[start : start + outputs]
                _add_up(square, own[start:], shares[:count], used, among, across, start, mixed, size)
                for i in range(outputs):
                    if size[i] > CANCELS * square[i]:
                        square[i] = _written_out(rows[:, start + i], columns, used[:count], shares[:count, i])


@njit(cache=True, nogil=True)
def _switching_units(stood, stands, place, ends, widths):
    """The units of all layers but the last that switch in some draw; their places among these, and how many before."""
    chosen, count, start = np.empty(len(place), np.int64), 0, 0
    for layer in range(len(widths) - 1):
        ends[layer] = count
        for u in range(start, start + widths[layer]):
            switches = False
            for draw in range(len(stands)):
                switches |= stands[draw, u] != stood[u]
            if switches:
                place[u], chosen[count] = count, u
                count += 1
        start += widths[layer]
    ends[-1] = count
    return chosen[:count]


@njit(cache=True, nogil=True)
def _columns(matrix, chosen):
    """Some of the columns of a matrix."""
    found = np.empty((len(matrix), len(chosen)), matrix.dtype)
    for i in range(len(matrix)):
        for a in range(len(chosen)):
            found[i, a] = matrix[i, chosen[a]]
    return found


@njit(cache=True, nogil=True, fastmath=True)
def _combine(factors, chosen, rows, found, start, stop):
    """Sums of the chosen rows, each times its entry of `factors` (sums, rows), from one column to another.

    Four rows in two sums at a time.
    """
    whole = len(chosen) - len(chosen) % 4
    for a in range(0, len(factors) - 1, 2):
        x, y, s, t = factors[a], factors[a + 1], found[a][start:stop], found[a + 1][start:stop]
        s[:] = 0
        t[:] = 0
        for j in range(0, whole, 4):
            j0, j1, j2, j3 = chosen[j], chosen[j + 1], chosen[j + 2], chosen[j + 3]
            x0, x1, x2, x3, y0, y1, y2, y3 = x[j0], x[j1], x[j2], x[j3], y[j0], y[j1], y[j2], y[j3]
            w0, w1, w2, w3 = rows[j0][start:stop], rows[j1][start:stop], rows[j2][start:stop], rows[j3][start:stop]
            for i in range(len(s)):
                s[i] += x0 * w0[i] + x1 * w1[i] + x2 * w2[i] + x3 * w3[i]
                t[i] += y0 * w0[i] + y1 * w1[i] + y2 * w2[i] + y3 * w3[i]
        for j in chosen[whole:]:
            xj, yj, w = x[j], y[j], rows[j][start:stop]
            for i in range(len(s)):
                s[i] += xj * w[i]
                t[i] += yj * w[i]
    if len(factors) % 2:
        x, s = factors[len(factors) - 1], found[len(factors) - 1][start:stop]
        s[:] = 0
        for j in chosen:
            xj, w = x[j], rows[j][start:stop]
            for i in range(len(s)):
                s[i] += xj * w[i]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _add_up(square, own, shares, used, among, across, start, mixed, size):
    """|t|^2 + v (2 U t + U U v) of every unit, and how large the sum would be if nothing cancelled."""
    count, outputs = len(shares), len(square)
    for i in range(outputs):
        square[i] = size[i] = own[i]
    for a in range(count):
        s, v = used[a], shares[a]
        product = across[s][start:]
        for i in range(outputs):
            mixed[i] = 2 * product[i]
        for b in range(a):
            other, scalar = shares[b], 2 * among[s, used[b]]
            for i in range(outputs):
                mixed[i] += scalar * other[i]
        for i in range(outputs):
            term = v[i] * (mixed[i] + among[s, s] * v[i])
            square[i] += term
            size[i] += abs(term)


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _written_out(row, columns, used, shares):
    """|t + U v|^2, by t + U v."""
    whole = row.copy()
    for a in range(len(used)):
        whole += shares[a] * columns[used[a]]
    return (whole * whole).sum()
