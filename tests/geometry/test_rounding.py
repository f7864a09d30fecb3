"""Bounds on rounding are true and not absurd: every rule and whole networks against rational arithmetic."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from calls import Live, at, filled, live_sets, name_of, operation
from numpy.typing import NDArray
from samples import SAMPLES, SITES, Arguments
from torch import Tensor, nn
from torch.nn import functional as F

import regionscope as rs
from regionscope.geometry.laws import proved_errors, route
from regionscope.geometry.patterns import boundaries_of
from regionscope.geometry.rounding import (
    CHOICES,
    DENSE,
    LINEAR,
    MOVES,
    NORMS,
    STATE,
    ErrorBound,
    Spread,
    bounds_after,
    fresh_bound,
)
from regionscope.tracing.network import Network
from regionscope.tracing.steps import Step, Value

Rationals = NDArray[np.object_]

RULES = MOVES | CHOICES | LINEAR | DENSE.keys() | NORMS
AFFINE_SAMPLES = [
    pytest.param(key, arguments, live, id=f"{key} {number} {'+'.join(f'{name}{k or str()}' for name, k in live)}")
    for key in SAMPLES
    if name_of(key) in RULES
    for number, arguments in enumerate(SAMPLES[key])
    for live in live_sets(key, arguments)
]
BENDS = [
    pytest.param(key, arguments, id=f"{key} {number}")
    for key in SITES
    if "pool" not in key and name_of(key) not in ("max", "min", "amax", "amin", "rrelu_with_noise")
    for number, arguments in enumerate(SITES[key])
    if not key.endswith(".Tensor")
]
AVERAGES = ("mean", "avg_pool1d", "avg_pool2d", "avg_pool3d")
WITHOUT_RULE = {"copy", "scatter", "scatter_add", "gather", *NORMS}  # for some of their arguments
LOOSE = 30.0  # at most so many times the true norm
VACUOUS = 1e6  # at most so many times the largest error


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def rational(tensor: Tensor) -> Rationals:
    exact = [Fraction(number) for number in tensor.flatten().tolist()]
    return np.array([*exact, None], object)[:-1].reshape(tuple(tensor.shape))


# one operation


@dataclass(frozen=True)
class Call:
    """An operation of which some arguments, given one after another as a vector, depend on the input."""

    key: str
    arguments: Arguments
    live: Live

    @property
    def shapes(self) -> list[torch.Size]:
        return [at(self.arguments, slot).shape for slot in self.live]

    @property
    def entries(self) -> int:
        return sum(shape.numel() for shape in self.shapes)

    def parts(self, x: Tensor) -> list[Tensor]:
        return [p.reshape(s) for p, s in zip(x.split([s.numel() for s in self.shapes]), self.shapes, strict=True)]

    def __call__(self, x: Tensor) -> Tensor:
        """All results, one after another."""
        made = operation(self.key)(**filled(self.arguments, dict(zip(self.live, self.parts(x), strict=True))))
        made = list(made) if isinstance(made, list | tuple) else [made]
        return torch.cat([m.flatten() for m in (made[:1] if name_of(self.key) in NORMS else made)])

    def bounds(self) -> list[ErrorBound] | None:
        """Of its results, if its live arguments are the state; None if there is no rule."""
        constants: dict[int, Tensor] = {}

        def referred(argument: Any, slot: Any) -> Any:
            if isinstance(argument, list):
                return [referred(part, (slot[0], k)) for k, part in enumerate(argument)]
            if not isinstance(argument, Tensor):
                return argument
            if slot in self.live:
                return Value(self.live.index(slot))
            constants[len(self.live) + len(constants)] = argument
            return Value(len(self.live) + len(constants) - 1)

        options = {name: referred(a, (name, None)) for name, a in self.arguments.items()}
        made = operation(self.key)(**self.arguments)
        several = isinstance(made, list | tuple)
        results = tuple(range(100, 100 + (len(made) if several else 1)))
        shapes = dict(enumerate(self.shapes))
        step = Step(operation(self.key), (), options, results, several)
        state = {v: fresh_bound(v, torch.ones(s).double(), STATE, STATE) for v, s in shapes.items()}
        found = bounds_after(step, state, constants)
        return None if found is None else [bound for bound in found if bound is not None]

    def truth(self) -> tuple[Rationals, Rationals]:
        """Matrix and constant of the affine map, exactly."""
        zero = torch.zeros(self.entries, dtype=torch.float64)
        if name_of(self.key) in MOVES:
            matrix = rational(torch.stack([self(e) - self(zero) for e in torch.eye(self.entries).double()], dim=1))
        else:
            matrix = rational(torch.autograd.functional.jacobian(self, zero))
        constant, name, a = rational(self(zero)), name_of(self.key), self.arguments
        if "avg_pool" in name or name == "mean":
            matrix = np.vectorize(lambda share: Fraction(1, round(1 / share)) if share else share, [object])(matrix)
        if name in NORMS:  # what counts as the network's own are these floats
            factor = (1.0 if a["weight"] is None else a["weight"]) / torch.sqrt(a["running_var"] + a["eps"])
            shift = (0.0 if a["bias"] is None else a["bias"]) - a["running_mean"] * factor
            shape = (-1, *[1] * (a["input"].dim() - 2))
            factor, shift = (c.reshape(shape).expand(a["input"].shape).flatten() for c in (factor, shift))
            matrix, constant = np.diag(rational(factor)), rational(shift)
        return matrix, constant


def divided(key: str, arguments: Arguments, live: Live) -> tuple[Rationals, Rationals]:
    """Matrix and constant of what multiplies or divides twice, from its formula."""
    a: dict[str, Any] = {n: rational(v) if isinstance(v, Tensor) else Fraction(v) for n, v in arguments.items()}
    call = Call(key, arguments, live)

    def value(x: Rationals) -> Rationals:
        sizes = np.cumsum([s.numel() for s in call.shapes])[:-1]
        parts = [p.reshape(tuple(s)) for p, s in zip(np.split(x, sizes), call.shapes, strict=True)]
        b = a | {name: part for (name, _), part in zip(live, parts, strict=True)}
        match name_of(key):
            case "div" | "true_divide":
                return np.asarray(b["self"] / b["other"], object)
            case "addcmul":
                return np.asarray(b["self"] + b.get("value", 1) * (b["tensor1"] * b["tensor2"]), object)
            case _:
                return np.asarray(b["self"] + b.get("value", 1) * (b["tensor1"] / b["tensor2"]), object)

    zero = np.array([Fraction(0)] * call.entries + [None], object)[:-1]
    constant = value(zero).ravel()
    columns = []
    for k in range(call.entries):
        one = zero.copy()
        one[k] = Fraction(1)
        columns.append(value(one).ravel() - constant)
    return np.stack(columns, axis=1), constant


def error(measure: Spread, norm: float, column: int) -> float:
    return float(measure.noise[column] * norm + measure.floor[column])


@pytest.mark.parametrize(("key", "arguments", "live"), AFFINE_SAMPLES)
def test_the_bounds_of_an_affine_operation_are_true(key: str, arguments: Arguments, live: Live) -> None:
    call = Call(key, arguments, live)
    bounds = call.bounds()
    if bounds is None:
        assert name_of(key) in WITHOUT_RULE
        return
    multiplies_twice = name_of(key) in ("div", "true_divide", "addcmul", "addcdiv")
    matrix, constant = divided(key, arguments, live) if multiplies_twice else call.truth()
    J = matrix.astype(np.float64).reshape(len(constant), call.entries)
    starts = np.cumsum([0, *(b.rows.numel() for b in bounds)])
    for bound, first, end in zip(bounds, starts[:-1], starts[1:], strict=True):
        rows, mine = bound.rows.flatten().numpy(), J[first:end]
        norm = np.linalg.norm(mine, 2) if mine.size else 0.0
        assert (rows * bound.row.gain[0] * (1 + 1e-9) >= np.linalg.norm(mine, axis=1)).all()
        assert min(bound.whole.gain[0], bound.whole.size) * (1 + 1e-9) >= norm
        assert bound.whole.gain[0] <= LOOSE * norm + 1e-12
        for seed, scale in enumerate((1.0, 1e6, 1e-6)):
            x = scale * random(call.entries, seed=seed)
            exact = (matrix @ rational(x) + constant)[first:end]
            off = np.array([abs(float(e)) for e in rational(call(x)[first:end]) - exact], np.float64)
            size = float(x.norm())
            assert (off <= rows * error(bound.row, size, 0)).all()
            assert np.linalg.norm(off) <= error(bound.whole, size, 0)
            assert float(call(x)[first:end].norm()) <= (bound.whole.size * size + bound.whole.offset) * (1 + 1e-9)
            if off.any():
                assert error(bound.whole, size, 1) <= VACUOUS * np.linalg.norm(off)


SQUARE, KERNEL = random(12, 12).abs(), torch.ones(2, 1, 4).double()
REPEATED: dict[str, Callable[[Tensor], Tensor]] = {
    "x + x": lambda x: x + x,
    "x + 3 x": lambda x: torch.add(x, x, alpha=3),
    "x - 2 x": lambda x: torch.sub(x, x, alpha=2),
    "x - -0.9 x": lambda x: torch.sub(x, x, alpha=-0.9),
    "x - -0.9 x by rsub": lambda x: torch.rsub(x, x, alpha=-0.9),
    "x + x W": lambda x: torch.addmm(x, x, SQUARE[: x.shape[1], : x.shape[1]]),
    "x + c x": lambda x: torch.addcmul(x, x, SQUARE[0, : x.shape[1]]),
    "x + x W in batches": lambda x: torch.baddbmm(x[None], x[None], SQUARE[None, : x.shape[1], : x.shape[1]])[0],
    "x beside x": lambda x: torch.cat([x, x, x], dim=1),
    "windows in steps as wide as their holes": lambda x: F.conv1d(x[:, None], KERNEL, stride=2, dilation=2, padding=6),
    "the same transposed": lambda x: F.conv_transpose1d(x[:, None], KERNEL.transpose(0, 1), stride=2, dilation=2),
    "windows in steps with holes": lambda x: F.conv1d(x[:, None], KERNEL, stride=4, dilation=6, padding=9),
    "sums along overlapping windows": lambda x: F.fold(F.unfold(x[:, None, None], (1, 3)), (1, x.shape[1]), (1, 3)),
}


@pytest.mark.parametrize("width", [1, 12])
@pytest.mark.parametrize("name", REPEATED)
def test_norms_count_an_input_as_often_as_it_occurs(name: str, width: int) -> None:
    function = REPEATED[name]
    if width < 3 and name.startswith(("windows", "sums")):
        return
    net = rs.trace(lambda x: torch.relu(function(x)), torch.zeros(2, width).double()).frozen()
    (law,) = route(net, boundaries_of(net.sites)).laws
    zero = torch.zeros(1, width, dtype=torch.float64)
    J = torch.autograd.functional.jacobian(function, zero).reshape(-1, width).numpy()
    assert (law.rows * law.row.gain[0] * (1 + 1e-9) >= np.linalg.norm(J, axis=1)).all()
    assert law.whole.gain[0] * (1 + 1e-9) >= np.linalg.norm(J, 2)
    assert law.whole.gain[0] <= LOOSE * np.linalg.norm(J, 2)


@pytest.mark.parametrize("alpha", [0.99, -0.99, 1 / 3, 1.0])
def test_terms_that_cancel_are_rounded_all_the_same(alpha: float) -> None:
    net = rs.trace(lambda x: torch.relu(torch.sub(x, x, alpha=alpha)), torch.zeros(2, 40).double()).frozen()
    (law,) = route(net, boundaries_of(net.sites)).laws
    x = random(40)
    exact = (1 - Fraction(alpha)) * rational(x)
    off = np.array([abs(float(e)) for e in rational(torch.sub(x, x, alpha=alpha)) - exact], np.float64)
    assert off.any() or alpha == 1
    assert (off <= law.rows * error(law.row, float(x.norm()), 0)).all()
    assert np.linalg.norm(off) <= error(law.whole, float(x.norm()), 0)
    for each, entry in zip(off, x, strict=True):  # and so where the other entries are zero
        assert each <= law.rows.max() * error(law.row, float(entry.abs()), 0)


def test_a_number_less_itself_has_no_error() -> None:
    """In whatever order the two come, but not if one of them was rounded, or which it is depends on the point."""

    def rows(function: Callable[[Tensor], Tensor]) -> list[float]:
        net = rs.trace(lambda x: torch.relu(function(x)), torch.zeros(2, 4).double()).frozen()
        return [float(r) for r in route(net, boundaries_of(net.sites)).laws[-1].rows]

    assert rows(lambda x: x - x) == [0, 0, 0, 0]
    assert rows(lambda x: x.flip(1).flip(1) - x.reshape(-1, 2, 2).flatten(1)) == [0, 0, 0, 0]
    assert [r == 0 for r in rows(lambda x: x.flip(1) - x[:, [3, 1, 2, 0]])] == [True, False, False, True]
    assert [r == 0 for r in rows(lambda x: F.pad(x, (1, 0)) - F.pad(x, (0, 1)))] == [False] * 5
    assert min(rows(lambda x: (x + 0.1) - x)) > 0
    assert min(rows(lambda x: torch.maximum(x, x.flip(1)) - x)) > 0


# activations

EXACT_BENDS: dict[str, Callable[..., Fraction]] = {
    "relu": lambda x: max(x, Fraction(0)),
    "hardsigmoid": lambda x: min(max(x / 6 + Fraction(1, 2), Fraction(0)), Fraction(1)),
    "abs": lambda x: abs(x),
    "leaky_relu": lambda x, negative_slope=0.01: x if x > 0 else x * Fraction(negative_slope),
    "threshold": lambda x, threshold, value: x if x > Fraction(threshold) else Fraction(value),
    "hardtanh": lambda x, min_val=-1, max_val=1: min(max(x, Fraction(min_val)), Fraction(max_val)),
    "softshrink": lambda x, lambd=0.5: x - min(max(x, -Fraction(lambd)), Fraction(lambd)),
    "clamp": lambda x, min=None, max=None: clamped(x, min, max),
    "clamp_min": lambda x, min: clamped(x, min, None),
    "clamp_max": lambda x, max: clamped(x, None, max),
    "maximum": lambda x, y: max(x, y),
    "minimum": lambda x, y: min(x, y),
    "fmax": lambda x, y: max(x, y),
    "fmin": lambda x, y: min(x, y),
}


def clamped(x: Fraction, low: float | None, high: float | None) -> Fraction:
    x = x if low is None else max(x, Fraction(low))
    return x if high is None else min(x, Fraction(high))


def exactly_bent(key: str, arguments: Arguments) -> Rationals:
    """The results of an activation."""
    a = {n: rational(v) if isinstance(v, Tensor) else v for n, v in arguments.items()}
    x = a.pop("self")
    if key == "_prelu_kernel":
        return np.asarray(np.where(x > 0, x, x * a["weight"]), object)
    function = EXACT_BENDS[key]
    if "other" in a:
        return np.asarray(np.vectorize(function, [object])(x, a["other"]), object)
    return np.asarray(np.vectorize(partial(function, **a), [object])(x), object)


@pytest.mark.parametrize(("key", "arguments"), BENDS)
def test_the_bounds_of_an_activation_are_true(key: str, arguments: Arguments) -> None:
    competes = "other" in arguments
    call = Call(key, arguments, (("self", None), ("other", None)) if competes else (("self", None),))
    bounds = call.bounds()
    assert bounds is not None
    (bound,) = bounds
    rows, before = bound.rows.flatten().numpy(), None
    for seed in range(6):
        x = 10.0 ** (seed % 3 - 1) * random(call.entries, seed=seed)
        given = filled(arguments, dict(zip(call.live, call.parts(x), strict=True)))
        exact = exactly_bent(key, given).ravel()
        off = np.array([abs(float(e)) for e in rational(call(x)) - exact], np.float64)
        size = float(x.norm())
        assert (off <= rows * error(bound.row, size, 0)).all()
        assert np.linalg.norm(off) <= error(bound.whole, size, 0)
        assert float(call(x).norm()) <= (bound.whole.size * size + bound.whole.offset) * (1 + 1e-9)
        if before is not None:
            step, apart = float((x - before[0]).norm()), (exact - before[1]).astype(np.float64)
            assert (np.abs(apart) <= rows * bound.row.gain[0] * step * (1 + 1e-9)).all()
            assert np.linalg.norm(apart) <= bound.whole.gain[0] * step * (1 + 1e-9)
        before = x, exact


# networks


class Floats:
    """The parts of a network as torch computes them."""

    def affine(self, part: Callable[[Tensor], Tensor], x: Any) -> Any:
        return part(x)

    def relu(self, x: Any) -> Any:
        return torch.relu(x)

    def hardtanh(self, x: Any) -> Any:
        return F.hardtanh(x)

    def max_pool(self, x: Any) -> Any:
        return F.max_pool2d(x, 2)

    def larger(self, x: Any, y: Any) -> Any:
        return torch.maximum(x, y)


ZERO, ONE = np.array(Fraction(0), object), np.array(Fraction(1), object)


class Exactly:
    """The same in rational arithmetic for one point; `entering` is what enters each site."""

    def __init__(self) -> None:
        self.entering: list[Rationals] = []

    def affine(self, part: Callable[[Tensor], Tensor], x: Any) -> Any:
        zero = torch.zeros(x.shape, dtype=torch.float64)
        matrix = rational(torch.autograd.functional.jacobian(part, zero).reshape(-1, zero.numel()))
        made = part(zero)
        return (matrix @ x.ravel() + rational(made).ravel()).reshape(tuple(made.shape))

    def relu(self, x: Any) -> Any:
        self.entering.append(x)
        return np.maximum(x, ZERO)

    def hardtanh(self, x: Any) -> Any:
        self.entering.append(x)
        return np.minimum(np.maximum(x, -ONE), ONE)

    def max_pool(self, x: Any) -> Any:
        """Neighbours in a row play first."""
        self.entering.append(x[..., 1::2] - x[..., ::2])
        x = np.maximum(x[..., 1::2], x[..., ::2])
        self.entering.append(x[..., 1::2, :] - x[..., ::2, :])
        return np.maximum(x[..., 1::2, :], x[..., ::2, :])

    def larger(self, x: Any, y: Any) -> Any:
        self.entering.append(x - y)
        return np.maximum(x, y)


Arithmetic = Floats | Exactly
Written = Callable[[Any, Arithmetic], Any]


def layers(*sizes: int) -> list[nn.Linear]:
    torch.manual_seed(0)
    return [nn.Linear(m, n).double() for m, n in pairwise(sizes)]


def dense(width: int = 12, depth: int = 4) -> Written:
    parts = layers(5, *[width] * depth)

    def network(x: Any, on: Arithmetic) -> Any:
        for part in parts:
            x = on.relu(on.affine(part, x))
        return x

    return network


def convolutional() -> Written:
    torch.manual_seed(0)
    first, norm = nn.Conv2d(2, 3, 3, padding=1).double(), nn.BatchNorm2d(3).double().eval()
    norm.running_mean, norm.running_var = random(3), random(3, seed=1).exp()
    scale = norm.weight.detach() / torch.sqrt(norm.running_var + norm.eps)
    shift = norm.bias.detach() - norm.running_mean * scale
    second = nn.Conv2d(3, 2, 2).double()

    def network(x: Any, on: Arithmetic) -> Any:
        x = on.affine(first, x.reshape(-1, 2, 6, 6))
        factor, added = (rational(c)[:, None, None] for c in (scale, shift))
        x = norm(x) if isinstance(on, Floats) else x * factor + added
        x = on.max_pool(on.relu(x))
        x = on.hardtanh(on.affine(second, x))
        return on.relu(on.affine(lambda v: F.avg_pool2d(v, 2).flatten(1).cumsum(1), x))

    return network


def skips() -> Written:
    parts = layers(6, 6, 6, 6)

    def network(x: Any, on: Arithmetic) -> Any:
        for part in parts:
            x = x + on.relu(on.affine(part, x))
        return on.relu(on.affine(lambda v: v.flip(1).cumsum(1), x))

    return network


def maxout() -> Written:
    first, *rest = layers(4, 8, 8, 8, 8, 8)

    def network(x: Any, on: Arithmetic) -> Any:
        x = on.affine(first, x)
        for one, other in (rest[:2], rest[2:]):
            x = on.larger(on.affine(one, x), on.affine(other, x))
        return on.relu(x)

    return network


NETWORKS: dict[str, tuple[Callable[[], Written], int]] = {
    "dense": (dense, 5),
    "wide": (partial(dense, 40, 2), 5),
    "deep": (partial(dense, 6, 10), 5),
    "convolutional": (convolutional, 72),
    "skips": (skips, 6),
    "maxout": (maxout, 4),
}


def bounds_at(net: Network, x: Tensor, column: int) -> Iterator[NDArray[np.float64]]:
    """Bounds on the errors of what enters each site at exact points, (n, units)."""
    norm, off = x.flatten(1).norm(dim=1).numpy(), np.zeros(len(x))
    entering = [v.flatten(1).norm(dim=1).numpy() for v in net.preactivations(x)]
    for law, value in zip(route(net, boundaries_of(net.sites)).laws, entering, strict=True):
        assert law.unknown is None
        spread, handed_on = (
            m.gain[column] * off + m.noise[column] * norm + m.floor[column] for m in (law.row, law.state)
        )
        yield law.rows * spread[:, None]
        off, norm = handed_on, law.norm_after(norm, value)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_bounds_of_a_network_are_true(name: str) -> None:
    made, entries = NETWORKS[name]
    network = made()
    x = random(3, entries) * torch.tensor([[1.0], [100.0], [0.01]]).double()
    net = rs.trace(lambda v: network(v, Floats()), x).frozen()
    runs = [Exactly() for _ in x]
    for point, run in zip(x, runs, strict=True):
        network(rational(point[None]), run)
    values = [v.flatten(1) for v in net.preactivations(x)]
    proved, usual = (list(bounds_at(net, x, column)) for column in range(2))
    assert len(values) == len(runs[0].entering)
    for site, value in enumerate(values):
        exact = np.stack([run.entering[site].ravel() for run in runs])
        off = np.abs((rational(value) - exact).astype(np.float64))
        assert off.any()
        assert (off <= proved[site]).all()
        assert (off <= usual[site]).all()
        assert (usual[site].max(axis=1) <= VACUOUS * off.max(axis=1)).all()


# badly scaled numbers


def proved(model: Callable[[Tensor], Tensor], x: Tensor) -> tuple[list[Tensor], list[NDArray[np.float64]]]:
    """What enters the sites, the outputs last, and the bounds on their errors."""
    net = rs.trace(model, x).frozen()
    values = [v.flatten(1) for v in net.preactivations(x)]
    norm, *norms = (v.flatten(1).norm(dim=1).numpy() for v in (x, *values))
    return [*values, net(x).flatten(1)], proved_errors(net, norm, 0 * norm, norms)


@pytest.mark.parametrize("seed", range(24))
def test_no_error_of_a_badly_scaled_network_is_above_its_bound(seed: int) -> None:
    torch.manual_seed(seed)
    depth, span, slope = (1, 2, 4, 8, 30)[seed % 5], (0, 5, 30)[seed % 3], (0.0, 0.1, -0.5, 3.0)[seed % 4]
    layers = [nn.Linear(2 if i == 0 else 4, 4).double() for i in range(depth + 1)]
    for layer in layers[:-1]:
        for p in layer.parameters():
            p.data *= 2.0 ** torch.randint(-span, span + 1, p.shape)
    model = nn.Sequential(*[part for layer in layers for part in (layer, nn.LeakyReLU(slope))][:-1])
    x = torch.randn(2, 2).double() * 2.0 ** (20 * (seed % 3 - 1))
    values, bounds = proved(model, x)
    exact = rational(x)
    for layer, computed, bound in zip(layers, values, bounds, strict=True):
        exact = exact @ rational(layer.weight.detach()).T + rational(layer.bias.detach())
        within = np.minimum(bound, np.finfo(np.float64).max)
        assert (np.abs(rational(computed.detach()) - exact) <= rational(torch.from_numpy(within))).all()
        exact = np.where(exact > 0, exact, Fraction(slope) * exact)


@pytest.mark.parametrize("name", ["index_add", "scatter_add"])
def test_a_constant_that_many_numbers_are_added_to_is_rounded_as_often(name: str) -> None:
    x, start = 1e-9 * torch.rand(3, 3000, dtype=torch.float64), torch.tensor([1.1e8], dtype=torch.float64)
    index = torch.zeros(3000, dtype=torch.int64)

    def model(x: Tensor) -> Tensor:
        into = start.expand(len(x), 1).clone()
        added = into.index_add(1, index, x) if name == "index_add" else into.scatter_add(1, index.expand(len(x), -1), x)
        return F.relu(added)

    (computed, _), (bound, _) = proved(model, x)
    exact = rational(start) + rational(x).sum(axis=1, keepdims=True)
    assert (np.abs(rational(computed) - exact) <= rational(torch.from_numpy(bound))).all()
