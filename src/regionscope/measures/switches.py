"""Gradient norms of dense ReLU layers under many draws of noise, each of which switches few units.

T_l are the gradients of a layer at a point where nothing is noisy, its columns those of the units. Under noise some
units of each layer switch, and T_l + U V_l are the gradients: U has a column of T for every unit that has switched so
far, V_l its weights, with a minus if the unit was open, taken on through the layers and open units behind it:

    T_l D W = T_l D_0 W + T_l (D - D_0) W,   so   U -> [U, T_l of what switched],   V -> [V D W; +-W of what switched].

Norms need scalar products of columns of T only: |t + U v|^2 = |t|^2 + v (2 U t + U U v). These are the same in all
draws, and those with later layers come of those with earlier ones, as gradients do. A draw needs s k^2 products for s
switched units where the gradients themselves would need k^3. Where that cancels, the column is written out.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regionscope.compiling import njit
from regionscope.machine import in_threads
from regionscope.measures.crosspolytopes import Layer
from regionscope.types import Floats, Indices

CANCELS = 8.0  # how much smaller a square may be than what it is the sum of


class _Room(NamedTuple):
    """For what is worked out for one draw at one layer."""

    among: Floats  # scalar products of the gradients of units that have switched,
    mixed: Floats  # and their sums, U U v
    size: Floats  # how large the squares would be if nothing cancelled
    every: Indices  # 0, 1, 2, ...


def squares_of(
    layers: Sequence[Layer], tangents: Tensor, stood: Tensor, stands: Tensor, widths: Sequence[int]
) -> Tensor:
    """The squared gradient norms (n, draws, units) of all units, one layer after another.

    `tangents` (n, r, units) are those without noise, where the open units are `stood` (n, units); `stands` (n, draws,
    units) are the open ones in every draw.
    """
    flat = np.concatenate([layer.weights.ravel() for layer in layers])
    squares = torch.empty(stands.shape, dtype=tangents.dtype)
    at_once = -(-len(stands) // torch.get_num_threads())
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
    every, own, open_now = np.arange(max(r, before)), np.empty(units, dtype), np.empty(widest, np.int64)
    ends = np.zeros(len(widths), np.int64)  # how many units before a layer switch in some draw
    shares, further = np.empty((before, widest), dtype), np.empty((before, widest), dtype)  # V
    place, maker = np.empty(before, np.int64), np.empty(before, np.int64)
    room = _Room(np.empty((before, before), dtype), np.empty((before, widest), dtype), np.empty(widest, dtype), every)
    for q in range(n):
        rows = tangents[q]
        own[:] = 0
        for row in rows:
            for u in range(units):
                own[u] += row[u] * row[u]
        chosen = _switching_units(stood[q], stands[q], place, ends, widths)
        columns, scalars = _columns(rows, chosen), np.empty((len(chosen), units), dtype)
        _fill_scalars(scalars, columns, rows, stood[q], ends, widths, weights, every)
        for draw in range(draws):
            opened, found = stands[q, draw], squares[q, draw]
            found[: widths[0]] = own[: widths[0]]
            count, start, weight = 0, 0, 0
            for layer in range(len(widths) - 1):
                inputs, outputs, stop = widths[layer], widths[layer + 1], start + widths[layer]
                matrix = weights[weight : weight + inputs * outputs].reshape(inputs, outputs)
                if count > 0:
                    open_ = _open_units(opened[start:stop], open_now)
                    _sum_rows(shares[:count], open_, matrix, 0, further, 0, outputs)
                for u in range(start, stop):
                    if opened[u] != stood[q, u]:
                        for i in range(outputs):
                            further[count, i] = matrix[u - start, i] if opened[u] else -matrix[u - start, i]
                        maker[count] = place[u]
                        count += 1
                shares, further = further, shares
                start, weight = stop, weight + inputs * outputs
                square = found[start : start + outputs]
                _add_up(square, own[start:], shares, maker[:count], chosen, scalars, start, room)
                for i in range(outputs):
                    if room.size[i] > CANCELS * square[i]:
                        square[i] = _written_out(rows[:, start + i], columns, maker[:count], shares[:count, i])


@njit(cache=True, nogil=True)
def _open_units(opened, room):
    """The numbers of the open units of a layer."""
    count = 0
    for i in range(len(opened)):
        room[count] = i
        count += opened[i]
    return room[:count]


@njit(cache=True, nogil=True)
def _fill_scalars(scalars, columns, rows, stood, ends, widths, weights, every):
    """The scalar products of the gradients of units that switch, `columns`, with those of all in their layer or behind.

    Behind it they are taken on through the layers, as gradients are.
    """
    r, start, weight = len(rows), 0, 0
    room = np.empty(widths.max(), np.int64)
    for layer in range(len(widths) - 1):
        inputs, outputs, stop = widths[layer], widths[layer + 1], start + widths[layer]
        matrix = weights[weight : weight + inputs * outputs].reshape(inputs, outputs)
        old, new, open_ = ends[layer], ends[layer + 1], _open_units(stood[start:stop], room)
        _sum_rows(columns[old:new], every[:r], rows, start, scalars[old:new], start, stop)
        _sum_rows(scalars[:new, start:stop], open_, matrix, 0, scalars, stop, stop + outputs)
        start, weight = stop, weight + inputs * outputs


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
    """Some of the columns of a matrix, each a row."""
    found = np.empty((len(chosen), len(matrix)), matrix.dtype)
    for a in range(len(chosen)):
        for i in range(len(matrix)):
            found[a, i] = matrix[i, chosen[a]]
    return found


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _add_up(square, own, shares, maker, chosen, scalars, start, room):
    """|t|^2 + v (2 U t + U U v) of every unit, and how large the sum would be if nothing cancelled."""
    outputs, count, among, size = len(square), len(maker), room.among, room.size
    for first in range(0, count, 4):  # each with those before it, twice, and with itself
        last = min(first + 4, count)
        for a in range(first, last):
            for b in range(a):
                scalar = scalars[maker[b], chosen[maker[a]]]
                among[a, b] = scalar + scalar
            among[a, a], among[a, a + 1 : last] = scalars[maker[a], chosen[maker[a]]], 0
        some = room.every[:last]
        _sum_rows(among[first:last], some, shares, 0, room.mixed[first:last], 0, outputs)
    for i in range(outputs):
        square[i] = size[i] = own[i]
    v, mixed, product = shares.ravel(), room.mixed.ravel(), scalars.ravel()
    for a in range(count):
        here, there = np.uint64(a * shares.shape[1]), np.uint64(maker[a] * scalars.shape[1] + start)
        for i in range(np.uint64(outputs)):
            term = v[here + i] * (mixed[here + i] + product[there + i] + product[there + i])
            square[i] += term
            size[i] += abs(term)


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _written_out(row, columns, maker, shares):
    """|t + U v|^2, by t + U v."""
    whole = row.copy()
    for a in range(len(maker)):
        whole += shares[a] * columns[maker[a]]
    return (whole * whole).sum()


# In flat arrays, at unsigned places: views of rows, and a look at each sign, would cost more than the sums.


@njit(cache=True, nogil=True, fastmath=True)
def _sum_rows(factors, chosen, rows, first, found, start, stop):
    """found[a, start + i] = sum over the chosen m of factors[a, m] rows[m, first + i], up to column `stop`.

    The rows, and what is found, lie one after another in memory.
    """
    n = len(factors)
    for a in range(0, n - 3, 4):
        _four_sums(factors[a : a + 4], chosen, rows, first, found[a : a + 4], start, stop)
    if n % 4 and n > 4:  # some of the last four again
        _four_sums(factors[n - 4 : n], chosen, rows, first, found[n - 4 : n], start, stop)
    elif n < 4:
        for a in range(n):
            _one_sum(factors[a], chosen, rows, first, found[a], start, stop)


@njit(cache=True, nogil=True, fastmath=True)
def _four_sums(factors, chosen, rows, first, found, start, stop):
    width, wide = rows.shape[1], found.shape[1]
    flat, sums, length = rows.ravel(), found.ravel(), np.uint64(stop - start)
    s, t, u, v = np.uint64(start), np.uint64(wide + start), np.uint64(2 * wide + start), np.uint64(3 * wide + start)
    found[:, start:stop] = 0
    whole = len(chosen) - len(chosen) % 4
    for m in range(0, whole, 4):
        e, f, g, h = chosen[m], chosen[m + 1], chosen[m + 2], chosen[m + 3]
        a0, a1, a2, a3 = factors[0, e], factors[0, f], factors[0, g], factors[0, h]
        b0, b1, b2, b3 = factors[1, e], factors[1, f], factors[1, g], factors[1, h]
        c0, c1, c2, c3 = factors[2, e], factors[2, f], factors[2, g], factors[2, h]
        d0, d1, d2, d3 = factors[3, e], factors[3, f], factors[3, g], factors[3, h]
        w, x = np.uint64(e * width + first), np.uint64(f * width + first)
        y, z = np.uint64(g * width + first), np.uint64(h * width + first)
        for i in range(length):
            r0, r1, r2, r3 = flat[w + i], flat[x + i], flat[y + i], flat[z + i]
            sums[s + i] += a0 * r0 + a1 * r1 + a2 * r2 + a3 * r3
            sums[t + i] += b0 * r0 + b1 * r1 + b2 * r2 + b3 * r3
            sums[u + i] += c0 * r0 + c1 * r1 + c2 * r2 + c3 * r3
            sums[v + i] += d0 * r0 + d1 * r1 + d2 * r2 + d3 * r3
    for m in chosen[whole:]:
        a, b, c, d = factors[0, m], factors[1, m], factors[2, m], factors[3, m]
        w = np.uint64(m * width + first)
        for i in range(length):
            r = flat[w + i]
            sums[s + i] += a * r
            sums[t + i] += b * r
            sums[u + i] += c * r
            sums[v + i] += d * r


@njit(cache=True, nogil=True, fastmath=True)
def _one_sum(factors, chosen, rows, first, found, start, stop):
    width, flat, s, length = rows.shape[1], rows.ravel(), np.uint64(start), np.uint64(stop - start)
    found[start:stop] = 0
    whole = len(chosen) - len(chosen) % 4
    for m in range(0, whole, 4):
        e, f, g, h = chosen[m], chosen[m + 1], chosen[m + 2], chosen[m + 3]
        a, b, c, d = factors[e], factors[f], factors[g], factors[h]
        w, x = np.uint64(e * width + first), np.uint64(f * width + first)
        y, z = np.uint64(g * width + first), np.uint64(h * width + first)
        for i in range(length):
            found[s + i] += a * flat[w + i] + b * flat[x + i] + c * flat[y + i] + d * flat[z + i]
    for m in chosen[whole:]:
        a, w = factors[m], np.uint64(m * width + first)
        for i in range(length):
            found[s + i] += a * flat[w + i]
