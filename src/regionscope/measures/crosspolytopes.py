"""Neighbourhoods on their way through a chain of dense ReLU layers, with no more products than their vertices need.

The images of x + r v_p and x - r v_p are c + e_p + o_p and c + e_p - o_p. Where no unit of a layer switches there is no
e, and the odd parts o_p pass like tangents; closed units vanish. A unit that switches has an even part of its own at
every p, (relu(c + e + o) + relu(c + e - o)) / 2, and its weights are one more column u_s that all further e are made
of: e_p = sum over s of u_s E_sp, s the units that have switched so far. If these are more than P, e is written out.

In the next layer a unit i keeps its sign if |c_i| > |w_i| R, R the largest distance of a vertex from c in the layer
before. Then its products are for the layers behind it only, and not needed at all if it is closed. With P directions
and k units a layer, half of them open and few that switch, P (k / 2)^2 products are left of 2 P k^2, and hardly any in
the last layer.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regionscope.compiling import njit
from regionscope.machine import in_threads
from regionscope.measures.routes import DENSE, dense
from regionscope.tracing.program import Program
from regionscope.tracing.schemas import aten

LONGER = 1 + 1e-4  # for what rounding takes off a length
TOGETHER = 32  # units whose products are computed together
ROUNDINGS = {torch.float32: 2.0, torch.float64: 64.0}  # a value below so many of them may have the wrong sign

Array = NDArray[Any]


class Layer(NamedTuple):
    """A dense layer: weights (inputs, units), biases and the lengths of the weight vectors (units,)."""

    weights: Array
    biases: Array
    lengths: Array


def dense_layers(parts: Sequence[Program]) -> tuple[Layer, ...]:
    """The layers between sites, if the first part of a network is nothing and each other a ReLU and a dense layer."""
    layers = tuple(layer for part in parts[1:] if (layer := _dense_layer(part)))
    return layers if parts and not parts[0].steps and len(layers) == len(parts) - 1 else ()


def _dense_layer(part: Program) -> Layer | None:
    """The layer behind the ReLU, if the part is nothing else."""
    operations = [step.operation for step in part.steps]
    if len(operations) != 2 or operations[0] is not aten.relu.default or operations[1] not in DENSE:
        return None
    relu, product = part.steps
    constants, bias = part.constants, product.named["self"] if product.operation is aten.addmm.default else None
    live = product.arguments_with(part.shapes)
    if len(part.outputs) != 1 or not dense(product, live, part) or product.used.isdisjoint(relu.results):
        return None
    weights = constants[product.named[DENSE[product.operation][1]].index]
    biases = weights.new_zeros(weights.shape[1]) if bias is None else constants[bias.index]
    if biases.shape != weights.shape[1:] or product.named.get("beta", 1) != 1:
        return None
    if weights.device.type != "cpu" or weights.dtype not in ROUNDINGS:
        return None
    return Layer(*(a.contiguous().numpy() for a in (weights, biases, weights.norm(dim=0) * LONGER)))


class _Work(NamedTuple):
    """What is known at one point: of the layer at hand, and of what left the layer before it."""

    value: Array  # (k,): c of every unit,
    bound: Array  # (k,): how far from it a vertex may be,
    slack: Array  # (k,): and how much of that is rounding
    rows: Array  # (k,): the units that are looked at,
    went: Array  # (2P, k): their o and their shares u of e, or e itself
    apart: Array  # (P, k): their e
    unit: Array  # (k,): the units of the layer before that were looked at,
    shared: Array  # (k,): their parts of c,
    came: Array  # (2P, k): their o and u, or e
    even: Array  # (P, P): E
    maker: Array  # (P,): the unit that each u belongs to alone, where it has just switched
    picked: Array  # (k, k): weights from the one to the other, and nothing beside them


class _Extremes(NamedTuple):
    """The smallest and largest value of every unit at the vertices, layer after layer, and where to look again."""

    low: Array  # (n, units); c for units that keep their sign for certain,
    high: Array  # (n, units)
    doubtful: Array  # (n,): a sign may be only rounding


def extremes_of(layers: Sequence[Layer], centres: Tensor, arms: Tensor, size: Tensor) -> _Extremes:
    """The extremes of neighbourhoods whose `centres` (n, k) and `arms` (1 or n, P, k) enter the first ReLUs.

    These have been made of numbers of this `size` (n,).
    """
    n, dtype = len(centres), centres.numpy().dtype
    widths = np.array([centres.shape[1], *(len(layer.biases) for layer in layers)])
    low, high = (np.empty((n, widths.sum()), dtype) for _ in range(2))
    found = _Extremes(low, high, np.zeros(n, np.bool_))
    flat = Layer(*(np.concatenate([a.ravel() for a in parts]) for parts in zip(*layers, strict=True)))
    spokes = arms.contiguous().numpy()
    at_once = -(-n // torch.get_num_threads())

    def fill(start: int) -> None:
        part = slice(start, start + at_once)
        own = spokes if len(spokes) == 1 else spokes[part]
        about = centres[part].numpy(), own, size[part].numpy(), widths, flat, ROUNDINGS[centres.dtype]
        _fill_extremes(*about, _Extremes(*(a[part] for a in found)))

    list(in_threads(fill, range(0, n, at_once)))
    return found


@njit(cache=True, nogil=True)
def _fill_extremes(centres, spokes, size, widths, layers, roundings, found):
    P, k, dtype = spokes.shape[1], TOGETHER * (widths.max() // TOGETHER + 1), centres.dtype
    work = _Work(
        np.zeros(k, dtype), np.zeros(k, dtype), np.zeros(k, dtype), np.zeros(k, np.int64), np.zeros((2 * P, k), dtype),
        np.zeros((P, k), dtype), np.zeros(k, np.int64), np.zeros(k, dtype),
        np.zeros((2 * P, k), dtype), np.zeros((P, P), dtype), np.zeros(P, np.int64), np.zeros((k, k), dtype),
    )  # fmt: skip
    reach = np.empty(spokes.shape[2], dtype)
    for q in range(len(centres)):
        own = spokes[q if len(spokes) > 1 else 0]
        if q == 0 or len(spokes) > 1:
            _fill_reach(own, reach)
        error = roundings * np.finfo(dtype).eps * size[q]
        count = _enter(work, centres[q], own, reach, error)
        switched, unit, weight = 0, 0, 0
        for layer in range(len(widths)):
            inputs, after = widths[layer], unit + widths[layer]
            low, high = found.low[q, unit:after], found.high[q, unit:after]
            low[:] = work.value[:inputs]
            high[:] = work.value[:inputs]
            switched, radius, doubtful = _leave(work, count, switched, low, high)
            found.doubtful[q] |= doubtful
            if layer + 1 < len(widths):
                outputs = widths[layer + 1]
                start, stop = after - widths[0], after - widths[0] + outputs
                weights = layers.weights[weight : weight + inputs * outputs].reshape(inputs, outputs)
                biases, lengths = layers.biases[start:stop], layers.lengths[start:stop]
                last = layer + 2 == len(widths)
                terms = count
                count, error = _choose(work, terms, radius, error, weights, biases, lengths, roundings, last)
                _multiply(work, weights, terms, count, P + min(P, switched))
                unit, weight = after, weight + inputs * outputs


@njit(cache=True, nogil=True)
def _fill_reach(spokes, reach):
    """How far each unit goes along the spokes (P, k)."""
    reach[:] = 0
    for spoke in spokes:
        for i in range(len(reach)):
            reach[i] = max(reach[i], abs(spoke[i]))


@njit(cache=True, nogil=True)
def _enter(work, centre, spokes, reach, error):
    """How many units of the first layer are looked at: those that are open at a vertex."""
    count = 0
    for i in range(len(centre)):
        slack = error if reach[i] > 0 else 0.0
        work.value[i], work.slack[i], work.bound[i] = centre[i], slack, reach[i] + slack
        if centre[i] >= -work.bound[i]:
            work.rows[count] = i
            count += 1
    for p in range(len(spokes)):
        for a in range(count):
            work.went[p, a] = spokes[p, work.rows[a]]
    return count


@njit(cache=True, nogil=True, fastmath={"contract"})
def _leave(work, count, switched, low, high):
    """What leaves the units that are looked at; the extremes of those that may switch.

    How many have switched by now, the radius R, and whether a sign is doubtful.
    """
    P, before, doubtful = len(work.even), min(switched, len(work.even)), False
    went, apart = work.went, work.apart
    _fill_apart(work, count, switched)
    for a in range(count):
        i = work.rows[a]
        v = work.value[i]
        if abs(v) <= work.bound[i]:
            least, most = v + apart[0, a], v + apart[0, a]
            for p in range(P):
                c, o = v + apart[p, a], abs(went[p, a])
                least, most = min(least, c - o), max(most, c + o)
            low[i], high[i] = least, most
            doubtful |= 0 < work.slack[i] >= min(abs(least), abs(most))
            if most <= 0:  # closed: nothing leaves it
                went[: P + before, a], apart[:, a], v = 0, 0, 0
            elif least <= 0:
                for p in range(P):
                    c, o = v + apart[p, a], went[p, a]
                    up, down = max(c + o, 0), max(c - o, 0)
                    went[p, a], apart[p, a] = (up - down) / 2, (up + down) / 2
                    if switched < P:
                        work.even[switched, p] = apart[p, a]
                went[P : P + before, a] = 0
                v = 0
                if switched < P:
                    work.maker[switched] = a
                switched += 1
        work.unit[a], work.shared[a] = i, v
    farthest = _hand_on(work, count, before, switched)
    return switched, LONGER * np.sqrt(farthest), doubtful


@njit(cache=True, nogil=True, fastmath={"contract"})
def _fill_apart(work, count, switched):
    """The e of the units that are looked at."""
    P = len(work.even)
    for p in range(P):
        e = work.apart[p]
        if switched > P:
            e[:count] = work.went[P + p, :count]
        else:
            e[:count] = 0
            for s in range(switched):
                even, shares = work.even[s, p], work.went[P + s]
                for a in range(count):
                    e[a] += shares[a] * even


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _hand_on(work, count, before, switched):
    """Write down what leaves the units that were looked at; the largest squared distance of a vertex from c."""
    P, farthest = len(work.even), np.zeros(1, work.came.dtype)[0]
    for p in range(P):
        went, apart, came = work.went[p], work.apart[p], work.came[p]
        ahead, behind = farthest * 0, farthest * 0
        for m in range(count):
            o, e = went[m], apart[m]
            came[m] = o
            ahead += (e + o) ** 2
            behind += (e - o) ** 2
        farthest = max(farthest, ahead, behind)
    for s in range(P if switched > P else switched):
        shares, came = work.apart[s] if switched > P else work.went[P + s], work.came[P + s]
        if switched > P or s < before:
            for m in range(count):
                came[m] = shares[m]
        else:
            came[:count] = 0
            came[work.maker[s]] = 1
    return farthest


@njit(cache=True, nogil=True, fastmath={"contract"})
def _choose(work, terms, radius, error, weights, biases, lengths, roundings, last):
    """The c of the next layer, how many of its units are looked at, and how much its values are rounded.

    In the last layer only those that may switch are looked at.
    """
    inputs, outputs = weights.shape
    eps, square = roundings * np.finfo(weights.dtype).eps, radius**2
    work.value[:outputs] = biases
    value, unit, shared = work.value, work.unit, work.shared
    for j in range(terms):
        square += shared[j] * shared[j]
    for j in range(0, terms - 3, 4):
        h0, h1, h2, h3 = shared[j], shared[j + 1], shared[j + 2], shared[j + 3]
        w0, w1, w2, w3 = weights[unit[j]], weights[unit[j + 1]], weights[unit[j + 2]], weights[unit[j + 3]]
        for i in range(outputs):
            value[i] += h0 * w0[i] + h1 * w1[i] + h2 * w2[i] + h3 * w3[i]
    for j in range(terms - terms % 4, terms):
        h, row = shared[j], weights[unit[j]]
        for i in range(outputs):
            value[i] += h * row[i]
    error = eps * np.sqrt(square) + error * np.sqrt(terms / inputs)
    count = 0
    for i in range(outputs):
        slack = lengths[i] * error + (eps * abs(biases[i]) if lengths[i] > 0 else 0.0)
        work.slack[i], work.bound[i] = slack, lengths[i] * radius + slack
        if work.value[i] >= -work.bound[i] and not (last and work.value[i] > work.bound[i]):
            work.rows[count] = i
            count += 1
    return count, np.sqrt((lengths**2).mean()) * error + eps * np.abs(biases).max()


@njit(cache=True, nogil=True, fastmath=True)
def _multiply(work, weights, terms, count, columns):
    """The parts of the units that are looked at, four terms of two columns at a time."""
    whole, wide, rows = 4 * (-(-terms // 4)), TOGETHER * (-(-count // TOGETHER)), work.rows
    for j in range(terms):
        row, picked = weights[work.unit[j]], work.picked[j]
        for a in range(count):
            picked[a] = row[rows[a]]
    work.picked[terms:whole, :wide] = 0
    work.came[:columns, terms:whole] = 0
    for p in range(0, columns - 1, 2):
        x, y, s, t = work.came[p], work.came[p + 1], work.went[p, :wide], work.went[p + 1, :wide]
        s[:] = 0
        t[:] = 0
        for j in range(0, whole, 4):
            x0, x1, x2, x3, y0, y1, y2, y3 = x[j], x[j + 1], x[j + 2], x[j + 3], y[j], y[j + 1], y[j + 2], y[j + 3]
            w0, w1, w2, w3 = work.picked[j], work.picked[j + 1], work.picked[j + 2], work.picked[j + 3]
            for a in range(wide):
                s[a] += x0 * w0[a] + x1 * w1[a] + x2 * w2[a] + x3 * w3[a]
                t[a] += y0 * w0[a] + y1 * w1[a] + y2 * w2[a] + y3 * w3[a]
    if columns % 2:
        x, s = work.came[columns - 1], work.went[columns - 1, :wide]
        s[:] = 0
        for j in range(whole):
            xj, wj = x[j], work.picked[j]
            for a in range(wide):
                s[a] += xj * wj[a]
