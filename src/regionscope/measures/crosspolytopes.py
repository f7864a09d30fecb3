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
    live = product.holding(part.shapes)
    if len(part.outputs) != 1 or not dense(product, live, part) or product.used.isdisjoint(relu.results):
        return None
    weights = constants[product.named[DENSE[product.operation][1]].index]
    biases = weights.new_zeros(weights.shape[1]) if bias is None else constants[bias.index]
    if biases.shape != weights.shape[1:] or product.named.get("beta", 1) != 1:
        return None
    if weights.device.type != "cpu" or weights.dtype not in ROUNDINGS:
        return None
    return Layer(*(a.contiguous().numpy() for a in (weights, biases, weights.norm(dim=0) * LONGER)))


class Work(NamedTuple):
    """What is known at one point: of the layer at hand, and of what left the layer before it."""

    value: Array  # (k,): c of every unit,
    bound: Array  # (k,): how far from it a vertex may be,
    slack: Array  # (k,): and how much of that is rounding
    rows: Array  # (k,): the units that are looked at,
    went: Array  # (k, 2P): their o and their shares u of e, or e itself
    unit: Array  # (k,): the units of the layer before that are open at some vertex,
    shared: Array  # (k,): their parts of c,
    came: Array  # (2P, k): their o and u, or e
    even: Array  # (P, P): E
    picked: Array  # (4, k): weights that are used together


class Extremes(NamedTuple):
    """The smallest and largest value of every unit at the vertices, layer after layer, and where to look again."""

    low: Array  # (n, units); c for units that keep their sign for certain,
    high: Array  # (n, units)
    doubtful: Array  # (n,): a sign may be only rounding


def extremes_of(layers: Sequence[Layer], centres: Tensor, arms: Tensor, size: Tensor) -> Extremes:
    """The extremes of neighbourhoods whose `centres` (n, k) and `arms` (1 or n, P, k) enter the first ReLUs.

    These have been made of numbers of this `size` (n,).
    """
    n, dtype = len(centres), centres.numpy().dtype
    widths = np.array([centres.shape[1], *(len(layer.biases) for layer in layers)])
    low, high = (np.empty((n, widths.sum()), dtype) for _ in range(2))
    found = Extremes(low, high, np.zeros(n, np.bool_))
    flat = Layer(*(np.concatenate([a.ravel() for a in parts]) for parts in zip(*layers, strict=True)))
    spokes = arms.mT.contiguous().numpy()  # (1 or n, k, P)
    at_once = -(-n // torch.get_num_threads())

    def fill(start: int) -> None:
        part = slice(start, start + at_once)
        own = spokes if len(spokes) == 1 else spokes[part]
        about = centres[part].numpy(), own, size[part].numpy(), widths, flat, ROUNDINGS[centres.dtype]
        _fill_extremes(*about, Extremes(*(a[part] for a in found)))

    list(in_threads(fill, range(0, n, at_once)))
    return found


@njit(cache=True, nogil=True)
def _fill_extremes(centres, spokes, size, widths, layers, roundings, found):
    P, k, dtype = spokes.shape[2], 16 * (widths.max() // 16 + 1), centres.dtype
    work = Work(
        np.zeros(k, dtype), np.zeros(k, dtype), np.zeros(k, dtype), np.zeros(k, np.int64), np.zeros((k, 2 * P), dtype),
        np.zeros(k, np.int64), np.zeros(k, dtype), np.zeros((2 * P, k), dtype), np.zeros((P, P), dtype),
        np.zeros((4, k), dtype),
    )  # fmt: skip
    for q in range(len(centres)):
        error = roundings * np.finfo(dtype).eps * size[q]
        count = _enter(work, centres[q], spokes[q if len(spokes) > 1 else 0], error)
        switched, unit, weight = 0, 0, 0
        for layer in range(len(widths)):
            inputs, after = widths[layer], unit + widths[layer]
            low, high = found.low[q, unit:after], found.high[q, unit:after]
            low[:] = work.value[:inputs]
            high[:] = work.value[:inputs]
            opened, switched, radius, doubtful = _leave(work, count, switched, low, high)
            found.doubtful[q] |= doubtful
            if layer + 1 < len(widths):
                outputs = widths[layer + 1]
                start, stop = after - widths[0], after - widths[0] + outputs
                weights = layers.weights[weight : weight + inputs * outputs].reshape(inputs, outputs)
                biases, lengths = layers.biases[start:stop], layers.lengths[start:stop]
                last = layer + 2 == len(widths)
                count, error = _choose(work, opened, radius, error, weights, biases, lengths, roundings, last)
                _multiply(work, weights, opened, count, P + min(P, switched))
                unit, weight = after, weight + inputs * outputs


@njit(cache=True, nogil=True)
def _enter(work, centre, spokes, error):
    """How many units of the first layer are looked at: those that are open at a vertex."""
    count = 0
    for i in range(len(centre)):
        reach = np.abs(spokes[i]).max()
        slack = error if reach > 0 else 0.0
        work.value[i], work.slack[i], work.bound[i] = centre[i], slack, reach + slack
        if centre[i] >= -work.bound[i]:
            work.rows[count] = i
            work.went[count, : len(spokes[i])] = spokes[i]
            count += 1
    return count


@njit(cache=True, nogil=True, fastmath={"contract"})
def _leave(work, count, switched, low, high):
    """What leaves the units that are looked at; the extremes of those that may switch.

    How many are open somewhere, how many have switched by now, the radius R, and whether a sign is doubtful.
    """
    P, opened, before, doubtful = len(work.even), 0, min(switched, len(work.even)), False
    written_out = switched > P
    ahead, behind = np.zeros(P, low.dtype), np.zeros(P, low.dtype)
    apart = np.empty((count, P), low.dtype)
    for a in range(count):
        i = work.rows[a]
        v, o, shares, e = work.value[i], work.went[a, :P], work.went[a, P:], apart[opened]
        if written_out:
            e[:] = shares
        else:
            e[:] = 0
            for s in range(before):
                for p in range(P):
                    e[p] += shares[s] * work.even[s, p]
        switches = False
        if abs(v) <= work.bound[i]:
            least, most = v + e[0], v + e[0]
            for p in range(P):
                least, most = min(least, v + e[p] - abs(o[p])), max(most, v + e[p] + abs(o[p]))
            low[i], high[i] = least, most
            doubtful |= 0 < work.slack[i] >= min(abs(least), abs(most))
            if most <= 0:
                continue
            switches = least <= 0
        if switches:
            for p in range(P):
                up, down = max(v + e[p] + o[p], 0), max(v + e[p] - o[p], 0)
                o[p], e[p] = (up - down) / 2, (up + down) / 2
            shares[:before] = 0
            v = 0
            if switched < P:
                work.even[switched] = e
                work.came[P + switched] = 0
                work.came[P + switched, opened] = 1
            switched += 1
        for p in range(P):
            work.came[p, opened] = o[p]
            ahead[p] += (e[p] + o[p]) ** 2
            behind[p] += (e[p] - o[p]) ** 2
        for s in range(before):
            work.came[P + s, opened] = shares[s]
        work.unit[opened], work.shared[opened] = i, v
        opened += 1
    if switched > P:
        work.came[P:, :opened] = apart[:opened].T
    return opened, switched, LONGER * np.sqrt(max(ahead.max(), behind.max())), doubtful


@njit(cache=True, nogil=True, fastmath={"contract"})
def _choose(work, opened, radius, error, weights, biases, lengths, roundings, last):
    """The c of the next layer, how many of its units are looked at, and how much its values are rounded.

    In the last layer only those that may switch are looked at.
    """
    inputs, outputs = weights.shape
    eps, square = roundings * np.finfo(weights.dtype).eps, radius**2
    work.value[:outputs] = biases
    for j in range(opened):
        h, row = work.shared[j], weights[work.unit[j]]
        square += h * h
        for i in range(outputs):
            work.value[i] += h * row[i]
    error = eps * np.sqrt(square) + error * np.sqrt(opened / inputs)
    count = 0
    for i in range(outputs):
        slack = lengths[i] * error + (eps * abs(biases[i]) if lengths[i] > 0 else 0.0)
        work.slack[i], work.bound[i] = slack, lengths[i] * radius + slack
        if work.value[i] >= -work.bound[i] and not (last and work.value[i] > work.bound[i]):
            work.rows[count] = i
            count += 1
    return count, np.sqrt((lengths**2).mean()) * error + eps * np.abs(biases).max()


@njit(cache=True, nogil=True, fastmath=True)
def _multiply(work, weights, opened, count, columns):
    """The parts of the units that are looked at, four units and two columns at a time."""
    padded = 16 * (-(-opened // 16))
    p0, p1, p2, p3 = work.picked[0], work.picked[1], work.picked[2], work.picked[3]
    work.picked[:, opened:padded] = 0
    zero = np.zeros(1, weights.dtype)[0]
    for a in range(0, count, 4):
        i0, i1, i2, i3 = (
            work.rows[min(a + 0, count - 1)],
            work.rows[min(a + 1, count - 1)],
            work.rows[min(a + 2, count - 1)],
            work.rows[min(a + 3, count - 1)],
        )
        for j in range(opened):
            row = weights[work.unit[j]]
            p0[j], p1[j], p2[j], p3[j] = row[i0], row[i1], row[i2], row[i3]
        for p in range(0, columns, 2):
            x, y = work.came[p], work.came[min(p + 1, columns - 1)]
            s0, s1, s2, s3, t0, t1, t2, t3 = zero, zero, zero, zero, zero, zero, zero, zero
            for j in range(padded):
                s0 += p0[j] * x[j]
                s1 += p1[j] * x[j]
                s2 += p2[j] * x[j]
                s3 += p3[j] * x[j]
                t0 += p0[j] * y[j]
                t1 += p1[j] * y[j]
                t2 += p2[j] * y[j]
                t3 += p3[j] * y[j]
            work.went[a, p], work.went[a + 1, p], work.went[a + 2, p], work.went[a + 3, p] = s0, s1, s2, s3
            if p + 1 < columns:
                work.went[a, p + 1], work.went[a + 1, p + 1], work.went[a + 2, p + 1], work.went[a + 3, p + 1] = (
                    t0,
                    t1,
                    t2,
                    t3,
                )
