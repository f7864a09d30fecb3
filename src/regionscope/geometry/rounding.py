"""How far float64 may be from the true numbers: what a part of a network does to norms and errors.

A part takes the *state*, all numbers that the network holds between two sites, to the next one. At a vertex where the
state has the norm N and an error of norm δ, an error of a value is at most `gain δ + noise N + floor`, and its norm at
most `size N + offset`. These five numbers, a `Spread`, follow from the operations alone, by the rules below: a sum of
k products in any order is off by at most k eps times the sum of their absolute values (Higham, Accuracy and Stability
of Numerical Algorithms, 3.1), so for y = A x + b the error grows from e to |A| e + k eps (|A|_F |x| + |b|), |A| the
spectral norm. Entry i of y is off by at most |row i of A| times a number that all entries share: its `rows`.

Every bound comes twice: as a *proof*, and as what is *usual*, with errors that point in random directions and `SAFETY`
times one rounding an operation. The proof decides what is certain; the usual error, what counts as zero if nothing
is. Norms of deep networks make proofs useless long before rounding does any harm.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry.pieces import Pieces, pieces
from regionscope.geometry.predicates import EPS, FAINT, SAFETY
from regionscope.tracing import activations
from regionscope.tracing.steps import LISTS, Step, Value, indices
from regionscope.types import Floats

SQUARINGS = 3  # of the matrix whose power bounds a spectral norm: with 200 rows, by 18 % at most
FREQUENCIES = 6  # at which the symbol of a convolution is looked at, times its degree
SYMBOL_WORK = 1 << 30  # products at most
SURE = 1 + 1e-6  # covers the rounding of norms themselves
NUMBERS = ("alpha", "beta", "other", "value")  # arguments that multiply or are added, and may be plain numbers

Pair = Floats  # (2,): proof and usual


@dataclass(frozen=True)
class Spread:
    """Of a value where the state has the norm N and the error δ: gain δ + noise N + floor, and size N + offset."""

    gain: Pair
    noise: Pair
    floor: Pair
    size: float
    offset: float

    def times(self, factor: Pair | float) -> "Spread":
        """Of the value after a map of this norm that rounds nothing."""
        largest = float(factor[0] if isinstance(factor, np.ndarray) else factor)
        gain, noise, floor = factor * self.gain, factor * self.noise, factor * self.floor
        return Spread(gain, noise, floor, largest * self.size, largest * self.offset)

    def rounded(self, unit: Pair, scale: float = 1.0) -> "Spread":
        """After rounding errors of `unit` times `scale` times what the norm is at most."""
        noise, floor = self.noise + scale * unit * self.size, self.floor + scale * unit * self.offset
        return Spread(self.gain, noise, floor, self.size, self.offset)

    def with_constant(self, norm: float, unit: Pair) -> "Spread":
        """After a constant of this norm was added, with rounding errors of `unit` times that."""
        return Spread(self.gain, self.noise, self.floor + unit * norm, self.size, self.offset + norm)

    def linear(self) -> "Spread":
        """Without constants."""
        return replace(self, floor=np.zeros(2), offset=0.0)


def joint_spread(spreads: Sequence[Spread], how: Callable[..., Any]) -> Spread:
    """The numbers of several put together one by one."""
    rows = [np.array([*s.gain, *s.noise, *s.floor, s.size, s.offset]) for s in spreads]
    together = reduce(how, rows)
    return Spread(together[:2], together[2:4], together[4:6], float(together[6]), float(together[7]))


ZERO = Spread(np.zeros(2), np.zeros(2), np.zeros(2), 0.0, 0.0)
STATE = Spread(np.ones(2), np.zeros(2), np.zeros(2), 1.0, 0.0)
UNKNOWN = Spread(np.array([np.inf, 1.0]), np.array([np.inf, 0.0]), np.array([np.inf, 0.0]), np.inf, np.inf)


@dataclass(frozen=True)
class ErrorBound:
    """What is known of one value: `whole` of its norm, `rows` (its shape) times `row` of each entry.

    An entry may be a copy of another, or of one of several: `copied` adds up all that it may be a copy of, given the
    values in `roots`, whose joint norm has the spread `source`.
    """

    rows: Tensor
    row: Spread
    whole: Spread
    roots: Mapping[int, tuple[int, ...]]  # with their shapes
    source: Spread
    copied: Callable[[Mapping[int, Tensor]], Tensor]
    chosen: bool = False  # whether an entry may be a copy of more than one
    parts: frozenset[int] = frozenset()  # the values of the state that it depends on

    @property
    def places(self) -> Tensor:
        """Which entry each is a copy of, numbered from 1; 0 for none."""
        last, numbers = 0, {}
        for root, shape in self.roots.items():
            numbers[root] = torch.arange(last + 1, last + math.prod(shape) + 1, dtype=torch.float64).reshape(shape)
            last += math.prod(shape)
        return self.copied(numbers)

    @property
    def copies(self) -> float:
        """At most how many entries are copies of one."""
        if not self.chosen:  # torch's derivatives are not always those of what it computes
            return float(torch.bincount(self.places.flatten().long())[1:].max()) if self.places.any() else 0.0
        roots = {
            root: torch.zeros(shape, dtype=torch.float64, requires_grad=True) for root, shape in self.roots.items()
        }
        with torch.enable_grad():
            made = self.copied(roots)
        counts = torch.autograd.grad(made, list(roots.values()), torch.ones_like(made), materialize_grads=True)
        return max(float(c.max()) for c in counts if c.numel()) if made.numel() else 0.0

    def made_of(self, parts: frozenset[int]) -> "ErrorBound":
        """The same of a value that depends on these parts of the state."""
        same = object.__new__(ErrorBound)  # `replace` takes as long as a norm
        same.__dict__.update(self.__dict__, parts=parts)
        return same


def fresh_bound(value: int, rows: Tensor, row: Spread, whole: Spread) -> ErrorBound:
    """Of entries that are no copies."""
    return ErrorBound(rows, row, whole, {value: tuple(rows.shape)}, whole, lambda roots: roots[value])


def bounds_after(
    step: Step, bounds: Mapping[int, ErrorBound], constants: Mapping[int, Any]
) -> list[ErrorBound | None] | None:
    """What is known of the results of a step; None if there is no rule for it."""
    live = [v for v in step.used if v in bounds]
    if len(live) > 1:  # in the order of the arguments
        live = [v for v in dict.fromkeys(indices([step.arguments, list(step.options.values())])) if v in bounds]
    try:
        if step.name in MOVES:
            return list(_moved(step, bounds[live[0]], live[0], constants))
        if step.name in DENSE and (made := _dense(step, live, bounds, constants)) is not None:
            return [made]
        if step.name in CHOICES or step.name in LINEAR or step.name in DENSE:
            return [_linear(step, bounds, constants)]
    except RuntimeError:  # torch cannot differentiate it, or not with these arguments
        return None
    if step.name in NORMS:
        return _normed(step, live[0], bounds, constants) if live == [step.named["input"].index] else None
    if step.name in activations.PAIRWISE:
        return [_best_of_two(step, live, bounds, constants)]
    found = pieces(step, constants) if len(live) == 1 else None
    return [_bent(step, bounds[live[0]], found)] if found else None


def _moved(step: Step, bound: ErrorBound, live: int, constants: Mapping[int, Any]) -> list[ErrorBound]:
    """Entries in another order or shape, left out or repeated: no rounding."""
    padding = abs(float(step.named.get("value") or 0.0)) if step.name == "constant_pad_nd" else 0.0
    fixed = {i: constants[i] for i in step.used if i != live}
    plain = _with_constants(step, torch.zeros_like) if padding else step
    results = []
    for number, rows in enumerate(plain.run({**fixed, live: bound.rows})):

        def copied(roots: Mapping[int, Tensor], number: int = number) -> Tensor:
            result: Tensor = plain.run({**fixed, live: bound.copied(roots)})[number]
            return result

        made = replace(bound, rows=rows, copied=copied)
        if step.name not in SAME:
            made = replace(made, whole=bound.source.times(math.sqrt(made.copies)))
        if padding:
            row, whole = made.row.with_constant(padding, np.zeros(2)), made.whole
            whole = whole.with_constant(padding * math.sqrt(rows.numel()), np.zeros(2))
            made = fresh_bound(step.results[number], rows + 1, row, whole)
        results.append(made)
    return results


def _linear(step: Step, bounds: Mapping[int, ErrorBound], constants: Mapping[int, Any]) -> ErrorBound:
    """Any operation y = A x + … + b whose coefficients are its constants or fixed numbers of one sign."""
    step, bounds = _told_apart(step, bounds)
    live = [v for v in indices([step.arguments, list(step.options.values())]) if v in bounds]
    chooses = step.name in CHOICES and not step.named.get("accumulate")
    matrices = [_matrix_norms(step, v, live, bounds, constants) for v in live]
    rounds = np.zeros(2) if chooses else rounding(sum(norms.terms for norms in matrices))  # in any order, b first even
    rows, row, wholes = None, ZERO, []
    for v, norms in zip(live, matrices, strict=True):
        bound = bounds[v]
        wholes.append(bound.whole.times(norms.pair).rounded(rounds, norms.absolute / max(norms.pair[0], 1e-300)))
        if norms.terms <= 1:
            mine, shared = norms.scaled_rows, bound.row
        else:
            mine, shared = norms.rows, bound.whole
        rows = mine if rows is None else rows + mine
        row = joint_spread([row, shared.rounded(rounds)], np.maximum)
    assert rows is not None
    result = _with_added(
        step,
        rows,
        row,
        _spread_of_sum(wholes, [bounds[v].parts for v in live], chooses),
        _constant_part(step, live, bounds, constants),
        rounds,
    )
    if step.name == "sub" and len(live) == 2 and step.named.get("alpha", 1) == 1:
        a, b = (bounds[v] for v in live)
        if a is b:  # x - x
            return fresh_bound(step.results[0], torch.zeros_like(result.rows), ZERO, ZERO)
        if a.roots == b.roots and a.rows.shape == b.rows.shape and not (a.chosen or b.chosen):
            result.rows[(a.places == b.places) & (a.places > 0)] = 0
    return result


def _told_apart(step: Step, bounds: Mapping[int, ErrorBound]) -> tuple[Step, Mapping[int, ErrorBound]]:
    """The step with another value, from -1 downwards, for each but the first of those that are the same live one.

    In x - c x terms may cancel, but each of them is rounded, and of -c the absolute value would cancel what does not.
    """
    seen, told = set[int](), dict[int, ErrorBound]()

    def apart(argument: Any) -> Any:
        if isinstance(argument, Value) and argument.index in seen:
            told[-1 - len(told)] = bounds[argument.index]
            return Value(-len(told))
        if isinstance(argument, Value) and argument.index in bounds:
            seen.add(argument.index)
        return [apart(part) for part in argument] if isinstance(argument, LISTS) else argument

    arguments, options = tuple(map(apart, step.arguments)), {name: apart(a) for name, a in step.options.items()}
    return (replace(step, arguments=arguments, options=options), {**bounds, **told}) if told else (step, bounds)


def _spread_of_sum(wholes: Sequence[Spread], parts: Sequence[frozenset[int]], chooses: bool) -> Spread:
    """Of a sum. Of different parts of the state, a and b times their norms are at most |(a, b)| times that of both."""
    if chooses:
        return joint_spread(wholes, np.hypot)
    whole = joint_spread(wholes, np.add)
    if any(not p for p in parts) or sum(map(len, parts)) > len(frozenset().union(*parts)):
        return whole
    apart = joint_spread(wholes, np.hypot)
    return replace(apart, floor=whole.floor, offset=whole.offset)


def _with_added(step: Step, rows: Tensor, row: Spread, whole: Spread, constant: Tensor, unit: Pair) -> ErrorBound:
    """The bound of A x + b from that of A x: b counts as another column of A."""
    norm, size = float(_norms_of(constant)), float(_norms_of(rows))
    if norm == 0:
        return fresh_bound(step.results[0], rows, row, whole)
    scale = norm / size if size else norm
    rows = torch.hypot(rows, constant.abs() / scale)
    return fresh_bound(step.results[0], rows, row.with_constant(scale, unit), whole.with_constant(norm, unit))


@dataclass(frozen=True)
class _Norms:
    """Of a matrix A: of its rows, of all of it (proof and usual), and how many terms a sum has."""

    rows: Tensor  # (shape of the result) the 2-norms
    scaled_rows: Tensor  # |A| times the rows of what it takes
    pair: Pair
    absolute: float  # of |A|
    terms: int


def _matrix_norms(
    step: Step, v: int, live: list[int], bounds: Mapping[int, ErrorBound], constants: Mapping[int, Any]
) -> _Norms:
    """The norms of the matrix by which value v goes into the result of a step, from products with its |A| and A²."""
    x = bounds[v].rows
    ones = torch.ones_like(x)

    def function(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        if step.name == "lerp":  # (1 - w) a + w b
            share = change(_mixing_share(step, v, constants)) + 0 * _constant_part(step, live, bounds, constants)
            return lambda entries: share * entries
        changed, zeros = _with_constants(step, change), {o: torch.zeros_like(bounds[o].rows) for o in live}
        values = {i: change(c) if isinstance(c, Tensor) and c.is_floating_point() else c for i, c in constants.items()}
        return lambda entries: changed.run({**values, **zeros, v: entries})[0]

    def along(change: Callable[[Tensor], Tensor], direction: Tensor) -> Tensor:
        return _forward_and_back(function(change), direction)[0].abs()

    sums, columns = (product.abs() for product in _forward_and_back(function(torch.abs), ones))
    squares = along(torch.square, ones)
    count = TERMS.get(step.name, lambda *_: int(along(_present, ones).max()) if sums.numel() else 1)
    terms = count(step, x, sums)
    rows = torch.where(squares < FAINT, sums, squares.sqrt())  # of tiny squares the root is no number; sums are more
    frobenius = float(_norms_of(rows))
    absolute = min(float((sums.max() * columns.max()).sqrt()), frobenius) if sums.numel() * x.numel() else 0.0
    spectral = absolute
    if step.name == "convolution" and step.named["input"].index == v:
        spectral = min(spectral, _convolution_norm(step, constants))
    usual = min(spectral, frobenius / math.sqrt(max(x.numel(), 1)))
    return _Norms(
        rows,
        along(torch.abs, x) if terms <= 1 else sums,
        SURE * np.array([spectral, usual]),
        SURE * absolute,
        terms,
    )


def _forward_and_back(function: Callable[[Tensor], Tensor], direction: Tensor) -> tuple[Tensor, Tensor]:
    """A direction and A' 1 for the matrix A of an affine function."""
    with torch.enable_grad():  # twice backwards: forward derivatives are not safe among threads
        x = torch.zeros_like(direction, requires_grad=True)
        made = function(x)
        if not x.numel():
            return torch.zeros_like(made), x
        ones = torch.ones_like(made, requires_grad=True)
        (back,) = torch.autograd.grad(made, x, ones, create_graph=True, materialize_grads=True)
        (forward,) = torch.autograd.grad(back, ones, direction, materialize_grads=True)
    return forward, back.detach()


def _mixing_share(step: Step, v: int, constants: Mapping[int, Any]) -> Tensor:
    """The factor of a value in a mean (1 - w) a + w b."""
    w = step.named["weight"]
    weight = constants[w.index] if isinstance(w, Value) else torch.tensor(w).double()
    share: Tensor = 1 - weight if step.named["self"].index == v else weight
    return share


def _present(tensor: Tensor) -> Tensor:
    return (tensor != 0).to(tensor.dtype)


def _with_constants(step: Step, change: Callable[[Tensor], Tensor]) -> Step:
    """The step with its plain numbers changed."""

    def changed(name: str, argument: Any) -> Any:
        number = name in NUMBERS and isinstance(argument, int | float) and not isinstance(argument, bool)
        return float(change(torch.tensor(float(argument), dtype=torch.float64))) if number else argument

    names = [p.name for p in step.operation._schema.arguments]
    arguments = tuple(changed(n, a) for n, a in zip(names, step.arguments, strict=False))
    return replace(step, arguments=arguments, options={n: changed(n, a) for n, a in step.options.items()})


def _constant_part(
    step: Step, live: list[int], bounds: Mapping[int, ErrorBound], constants: Mapping[int, Any]
) -> Tensor:
    """What the step gives where its live arguments are zero."""
    zeros = {v: torch.zeros_like(bounds[v].rows) for v in live}
    result: Tensor = step.run({**constants, **zeros})[0]
    return result


def _dense(
    step: Step, live: list[int], bounds: Mapping[int, ErrorBound], constants: Mapping[int, Any]
) -> ErrorBound | None:
    """x W + b with a constant matrix W, as in a dense layer."""
    rows, matrix = (step.named[name] for name in DENSE[step.name])
    added = step.named["self"].index if step.name == "addmm" else None
    if live != [rows.index] or added in live or step.named.get("alpha", 1) != 1 or step.named.get("beta", 1) != 1:
        return None
    W, x = constants[matrix.index], bounds[rows.index]
    columns = _norms_of(W, dim=0)
    frobenius = float(_norms_of(columns))
    unit = rounding(W.shape[0])
    # what enters the network is off by a rounding, which counts for little beside those of the sums: any norm will do
    spectral = frobenius if rows.index == 0 else spectral_norm(W, frobenius)
    norms = SURE * np.array([spectral, min(spectral, frobenius / math.sqrt(W.shape[0]))])
    whole = x.whole.times(norms).rounded(unit, frobenius / max(norms[0], 1e-300))
    each = columns.expand(*x.rows.shape[:-1], W.shape[1])
    constant = torch.zeros(1).double() if added is None else constants[added]
    return _with_added(step, each, x.whole.rounded(unit), whole, constant.expand(each.shape), unit)


def rounding(terms: int) -> Pair:
    """The rounding error of a sum of so many products over the sum of their absolute values."""
    return np.array([(terms + 4) * EPS, SAFETY * EPS])


def _norms_of(tensor: Tensor, dim: int | None = None) -> Tensor:
    """The 2-norm, also of numbers whose squares are too small or too large for a float64."""
    norms: Tensor = torch.linalg.vector_norm(tensor, dim=dim)
    if not tensor.numel():
        return norms
    low, high = norms.aminmax() if dim is not None else (norms, norms)
    if float(low) > FAINT and float(high) < 1 / FAINT:
        return norms
    largest = float(tensor.abs().max())
    return largest * torch.linalg.vector_norm(tensor / largest, dim=dim) if 0 < largest < math.inf else norms


def spectral_norm(matrix: Tensor, size: float | None = None) -> float:
    """An upper bound of the largest singular value s: s^2 of G = W W' is at most |G^k|_F^(1/k).

    `size` is the Frobenius norm, if that is known.
    """
    size = float(_norms_of(matrix)) if size is None else size
    if size == 0 or min(matrix.shape) == 1:
        return size
    scaled = matrix / size
    gram = scaled @ scaled.T if matrix.shape[0] <= matrix.shape[1] else scaled.T @ scaled
    for _ in range(SQUARINGS):
        gram = gram @ gram  # its norm is between that power of 1 / rank and 1: no number here is too small
    return size * min(1.0, math.pow(float(torch.linalg.vector_norm(gram)), 0.5 ** (SQUARINGS + 1)))


def _convolution_norm(step: Step, constants: Mapping[int, Any]) -> float:
    """A patch meets the kernel as a vector meets a matrix, and an entry lies in few patches."""
    kernel, named = constants[indices(step.named["weight"])[0]], step.named
    spatial = kernel.dim() - 2
    strides, dilations = ([*named[n]] * (spatial if len(named[n]) == 1 else 1) for n in ("stride", "dilation"))
    sides = zip(kernel.shape[2:], strides, dilations, strict=True)
    overlap = math.prod(-(-k // (s // math.gcd(s, d))) for k, s, d in sides)
    groups = kernel.chunk(named["groups"]) if named["groups"] > 1 else [kernel]
    return max(min(math.sqrt(overlap) * spectral_norm(part.flatten(1)), _symbol_norm(part)) for part in groups)


def _symbol_norm(kernel: Tensor) -> float:
    """At most the norm of a convolution without end, of which others are parts: the largest that its symbol has.

    For a vector x, |symbol(t) x|^2 is a trigonometric polynomial of degree n = k - 1 in each angle, so near its largest
    value it is at least that times cos(n d), d away (Riesz): looking at points 2 d apart misses no more.
    """
    sides, channels = kernel.shape[2:], kernel.shape[:2]
    looks = [FREQUENCIES * (k - 1) + 1 for k in sides]
    if math.prod(looks) * max(channels) * min(channels) ** 2 > SYMBOL_WORK:
        return math.inf
    largest = float(kernel.abs().max()) if kernel.numel() else 0.0
    if not 0 < largest < math.inf:
        return 0.0 if largest == 0 else math.inf
    scaled = kernel / largest  # no square is too small or too large for a float64
    symbol = torch.fft.rfftn(scaled, s=looks, dim=tuple(range(2, kernel.dim()))).flatten(2).permute(2, 0, 1)
    gram = symbol @ symbol.mH if channels[0] <= channels[1] else symbol.mH @ symbol
    missed = math.prod(math.cos(math.pi * (k - 1) / n) for k, n in zip(sides, looks, strict=True))
    return largest * SURE * math.sqrt(max(float(torch.linalg.eigvalsh(gram)[:, -1].max()), 0.0) / missed)


def _normed(
    step: Step, live: int, bounds: Mapping[int, ErrorBound], constants: Mapping[int, Any]
) -> list[ErrorBound | None]:
    """Batch norm in eval mode: a factor and a shift for every channel, as float64 has them."""
    factor, shift = norm_constants(step, constants)
    bound, shape = bounds[live], (-1, *[1] * (bounds[live].rows.dim() - 2))
    unit, largest = rounding(4), float(factor.abs().max())
    rows = bound.rows * factor.abs().reshape(shape)
    mean = constants[step.named["running_mean"].index]
    added = (shift.abs() + 2 * (mean * factor).abs()).reshape(shape).expand(rows.shape)
    made = _with_added(
        step, rows, bound.row.rounded(unit), bound.whole.times(largest * SURE).rounded(unit), added, unit
    )
    return [made, *[None] * (len(step.results) - 1)]


def norm_constants(step: Step, constants: Mapping[int, Any]) -> tuple[Tensor, Tensor]:
    """Factor and shift of each channel: float64 numbers, which are taken to be the network's own."""
    given = {
        name: constants[a.index] if isinstance(a, Value) else a for name, a in step.named.items() if name != "input"
    }
    mean, variance = given["running_mean"], given["running_var"]
    weight = torch.ones_like(mean) if given.get("weight") is None else given["weight"]
    bias = torch.zeros_like(mean) if given.get("bias") is None else given["bias"]
    factor = weight / torch.sqrt(variance + given["eps"])
    return factor, bias - mean * factor


def _best_of_two(
    step: Step, live: list[int], bounds: Mapping[int, ErrorBound], constants: Mapping[int, Any]
) -> ErrorBound:
    """The larger or smaller of two: an entry of the one or of the other, without rounding."""
    fixed = [constants[i] for i in step.used if i not in live]
    both = [bounds[v] for v in live]
    shape = torch.broadcast_shapes(*(b.rows.shape for b in both), *(c.shape for c in fixed))
    row = joint_spread([b.row for b in both], np.maximum)
    rows = torch.stack([b.rows.expand(shape) for b in both]).amax(dim=0)
    if not fixed and (both[0].roots == both[-1].roots or all(b.source is STATE for b in both)):
        roots = {root: size for b in both for root, size in b.roots.items()}
        made = replace(both[0], rows=rows, row=row, roots=roots, chosen=True, copied=_copies_of_any(both, shape))
        return replace(made, whole=made.source.times(math.sqrt(made.copies)))
    whole = joint_spread([b.whole for b in both], np.hypot)
    whole = whole.times(math.sqrt(max(math.prod(shape) / max(b.rows.numel(), 1) for b in both)))
    for constant in fixed:
        largest = float(constant.abs().max()) if constant.numel() else 0.0
        row, rows = row.with_constant(largest, np.zeros(2)), rows.clamp(min=1.0)
        whole = whole.with_constant(float(constant.expand(shape).norm()), np.zeros(2))
    return fresh_bound(step.results[0], rows, row, whole)


def _copies_of_any(bounds: Sequence[ErrorBound], shape: Sequence[int]) -> Callable[[Mapping[int, Tensor]], Tensor]:
    """All that entries may be copies of if they may be copies of any of these."""
    return lambda roots: sum((b.copied(roots).expand(shape) for b in bounds), torch.zeros(shape).double())


def _bent(step: Step, bound: ErrorBound, found: Pieces) -> ErrorBound:
    """An activation: its steepest piece, and the largest constant that one of them adds."""
    slopes = [float(s.abs().max()) if isinstance(s, Tensor) else abs(float(s)) for s, _ in found]
    offset = max(abs(float(o)) for _, o in found) * math.sqrt(bound.rows.numel())
    rounds = rounding(1) if any(abs(s) not in (0.0, 1.0) for s in slopes) or step.name == "softshrink" else np.zeros(2)
    whole = bound.whole.times(max(slopes) * SURE if rounds.any() else max(slopes)).with_constant(offset, np.zeros(2))
    whole = whole.rounded(4 * rounds)
    return fresh_bound(step.results[0], torch.ones_like(bound.rows), whole, whole)


# the same entries in another order or shape
SAME = frozenset(
    "view _unsafe_view reshape _reshape_alias permute transpose t alias positive clone detach lift_fresh lift squeeze"
    " unsqueeze flip roll rot90 pixel_shuffle pixel_unshuffle channel_shuffle _to_copy".split()
)
# some of them left out, some repeated, zeros between them
MOVES = SAME | frozenset(
    "expand slice select split split_with_sizes unsafe_split unsafe_split_with_sizes unbind unfold diagonal diag_embed"
    " index _unsafe_index index_select gather take repeat tile narrow_copy tril triu im2col constant_pad_nd"
    " reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d"
    " upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d"
    " _upsample_nearest_exact3d".split()
)
# entries of several values, each taken once
CHOICES = frozenset(
    "cat stack where masked_fill masked_scatter slice_scatter select_scatter diagonal_scatter scatter index_copy"
    " index_fill copy fill index_put _unsafe_index_put".split()
)
# sums and products with constants
LINEAR = frozenset(
    "neg sum mean cumsum trace avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d _adaptive_avg_pool2d"
    " _adaptive_avg_pool3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d col2im add sub rsub mul div"
    " true_divide lerp bmm mv dot vdot addmv baddbmm addbmm addr addcmul addcdiv convolution scatter_add"
    " index_add".split()
)
DENSE = {"mm": ("self", "mat2"), "addmm": ("mat1", "mat2")}
NORMS = frozenset("native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training".split())


def _averaged_entries(step: Step, x: Tensor, sums: Tensor) -> int:
    """At most how many entries an average is taken of: windows of different sizes differ by one at most."""
    window: list[int] | None = step.named.get("kernel_size")
    if window:
        return math.prod(window) ** (3 if len(window) == 1 else 1)
    return 8 * -(-x.numel() // max(sums.numel(), 1))


TERMS: dict[str, Callable[[Step, Tensor, Tensor], int]] = dict.fromkeys(
    "mean avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool3d"
    " upsample_linear1d upsample_bilinear2d upsample_trilinear3d".split(),
    _averaged_entries,
)
