"""Derivatives of every pre-activation along directions of the input, in one pass: the engine of the measures.

A program is followed step by step together with the tangents of its values along r directions at once. An affine
operation acts on tangents as on values, without its constants; an activation multiplies by its slope. While the
network is affine the tangents are the same for all points and are found once.

Which directions: an orthonormal basis of all that the first layer looks at gives every gradient norm and all singular
values exactly (J J^T = (J Q)(J Q)^T), with as few directions as the first layer has units, or as are open: Gram
matrices of later layers are never formed, their square roots are. The unit vectors give the Jacobians themselves.
Random directions u ~ N(0, I) give unbiased estimates for networks whose Jacobians do not fit: the derivative along u is
N(0, |grad|^2).
"""

import math
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regionscope.measures.tangents import Tangent, gram_of
from regionscope.tracing.network import Network
from regionscope.tracing.operations import aten, bend, linear_arguments
from regionscope.tracing.program import (
    PerPoint,
    Program,
    Step,
    Value,
    counting,
    from_rows,
    indices,
    point_shape,
    resolved,
    to_rows,
)  # fmt: skip

ENGINES = ("auto", "gram", "jacobian", "probes")
MOST_DIRECTIONS = 1024  # beyond, "auto" takes random ones
ENTRIES_AT_ONCE = 1 << 21  # floats of a tangent at one time

Visit = Callable[[int, Tensor, Tensor], None]  # number of the site, values (n, units), tangents (r, n, units)


@dataclass(frozen=True)
class Directions:
    """Directions (r, d) shared by all points. If they are not `exact`, r are drawn anew for every point."""

    vectors: Tensor
    exact: bool
    engine: str

    def drawn(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """Random ones for each of the points x: (r, n, d)."""
        return torch.randn(len(self.vectors), *x.flatten(1).shape, generator=generator, dtype=x.dtype).to(x.device)

    def norms(self, tangents: Tensor) -> Tensor:
        """Gradient norms (n, units) from tangents (r, n, units); unbiased if the directions are random.

        The root mean square of r normal numbers is on average short by a known factor.
        """
        if tangents.shape[1] > 1 and tangents.stride(1) == 0:  # the same for all points
            return self.norms(tangents[:, :1]).expand(tangents.shape[1], -1)
        if tangents.requires_grad or tangents.stride(0) == 1:  # whose derivative at zero is zero
            norms: Tensor = torch.linalg.vector_norm(tangents, dim=0)
        else:  # the same several times faster
            norms = (tangents * tangents).sum(dim=0).sqrt()
        if self.exact:
            return norms
        r = len(self.vectors)
        short = math.sqrt(2 / r) * math.exp(math.lgamma((r + 1) / 2) - math.lgamma(r / 2))
        return norms / (math.sqrt(r) * short)


def directions(net: Network, engine: str = "auto", probes: int = 32) -> Directions:
    """The directions to differentiate along; "auto" takes the fewest that are exact, or random ones if too many."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if probes < 1:
        raise ValueError(f"probes must be at least 1, got {probes}")
    d = math.prod(net.input_shape)
    identity = torch.eye(d, dtype=net.dtype, device=net.device) if d <= 1 << 14 else None
    seen = looked_at(net)
    if (engine == "auto" and min(seen, d) > MOST_DIRECTIONS) or engine == "probes":
        return Directions(torch.empty(probes, d, dtype=net.dtype, device=net.device), False, "probes")
    assert identity is not None, "auto never comes here"
    if engine == "gram" or (engine == "auto" and seen < d):
        return Directions(identity if seen >= d else row_space(net, identity), True, "gram")
    return Directions(identity, True, "jacobian")


def first_part(net: Network) -> Program:
    """What happens while the network is affine; its outputs are all that the rest depends on."""
    program = net.program.pruned([*net.entries, net.output])
    return program.segments([bend(program, set(net.exits))])[0]


def looked_at(net: Network) -> int:
    """How many affine functions of the input all the rest depends on."""
    part = first_part(net)
    return sum(math.prod(point_shape(part.shapes[value])) for value in part.outputs)


@torch.no_grad()
def row_space(net: Network, identity: Tensor) -> Tensor:
    """Orthonormal rows that span the gradients of all that the rest of the network depends on."""
    rows = [tangent.rows[:, 0] for tangent in behind_first_part(net, identity).values()]  # (d, units)
    basis: Tensor = torch.linalg.qr(torch.cat(rows, dim=1)).Q
    return basis.T.contiguous()


def behind_first_part(net: Network, vectors: Tensor) -> "dict[int, Tangent]":
    """The tangents along directions (r, d) of all that the rest depends on: the same at every point."""
    part = first_part(net)
    zero = torch.zeros(1, *net.input_shape, dtype=net.dtype, device=net.device)
    follow = Following(part, zero, {0: Tangent(vectors[:, None])}, frozenset(), {})
    follow.run()
    return {value: follow.tangents[value] for value in part.outputs if value in follow.tangents}


class Following:
    """One pass through a program with the tangents of its values along r directions.

    An operation takes tangents as it takes values of r * n points, direction by direction, or of r points if they are
    the same for all.
    """

    def __init__(
        self, program: Program, x: Tensor, tangents: dict[int, Tangent], exits: Set[int], grams: dict[int, Tensor]
    ) -> None:
        self.program, self.n = program, len(x)
        self.r = max((len(tangent.every) for tangent in tangents.values()), default=0)
        self.values: dict[int, Any] = {**program.constants, 0: x}
        self.tangents = dict(tangents)  # of the input, or of all that follows from it before the network bends
        self.for_points: dict[tuple[int, int], Any] = {}
        self.exits = exits  # the values that leave the sites
        self.grams = grams  # of a value that leaves a site and that is all that the rest depends on

    def run(self, on_value: Callable[[int], None] = lambda value: None) -> None:
        """Take all steps; `on_value` is told of each value that is made."""
        on_value(0)
        for step in self.program.steps:
            self.values.update(zip(step.results, step.run(self.values, self.n), strict=True))
            if step.results[0] not in self.tangents and not step.used.isdisjoint(self.tangents):
                self.differentiate(step)
            for index in step.results:
                on_value(index)
            for index in step.done_with:
                self.values.pop(index, None)
                self.tangents.pop(index, None)

    def rows(self, value: int) -> Tensor:
        """The tangents of a value: (r, n, units), or (r, 1, units) if they are the same for all points."""
        return self.tangents[value].rows

    def keep(self, step: Step, results: Any, points: int) -> None:
        """The results of an operation on the tangents of so many points are those of the step."""
        for value, result in zip(step.results, results if step.several else [results], strict=True):
            if value in self.program.shapes:  # others have nothing to do with points
                rows = to_rows(result, self.program.shapes[value], points)
                self.tangents[value] = Tangent(rows.view(self.r, points // self.r, -1))

    def differentiate(self, step: Step) -> None:
        given = step.named
        live = {name for name, a in given.items() if any(i in self.tangents for i in indices(a))}
        if step.results[0] in self.exits:
            self.tangents[step.results[0]] = self.through_activation(step)
            return
        group = linear_arguments(step.operation, live)
        if not group:
            self.through_anything(step, given)
            return
        points = self.points_of(given)
        if dense(step, live, self.program):  # the usual case
            rows, matrix = DENSE[step.operation]  # type: ignore[index]
            product = self.tangents[given[rows].index].times(self.linear(matrix, given[matrix], group, points))
            self.r, self.tangents[step.results[0]] = len(product), Tangent(product)
            return
        linear = {name: self.linear(name, a, group, points) for name, a in given.items()}
        self.keep(step, step.operation(**without_shift(step, linear)), points)

    def points_of(self, given: dict[str, Any]) -> int:
        """r if all tangents are the same for all points, otherwise r * n."""
        live = [self.tangents[i] for a in given.values() for i in indices(a) if i in self.tangents]
        shared = all(tangent.open is None and tangent.every.shape[1] == 1 for tangent in live)
        return self.r if shared else self.r * self.n

    def linear(self, name: str, argument: Any, group: frozenset[str], points: int) -> Any:
        """An argument of an affine operation in its derivative: tangents, or constants that drop out."""
        if isinstance(argument, list | tuple):
            return [self.linear(name, a, group, points) for a in argument]
        if isinstance(argument, PerPoint):
            return argument.base + argument.rate * points
        if not isinstance(argument, Value):
            return 0 if name in group and isinstance(argument, int | float) else argument
        index = argument.index
        if index in self.tangents:
            return self.spread(index, points)
        value = self.fixed(index, points)
        return torch.zeros_like(value) if name in group and isinstance(value, Tensor) else value

    def fixed(self, index: int, points: int) -> Any:
        """A value that does not depend on the input, for so many points."""
        if index in self.program.constants:
            return self.program.constants[index]
        if (index, points) not in self.for_points:
            step = next(s for s in self.program.steps if index in s.results)
            known = {value: self.fixed(value, points) for value in step.used}
            made = zip(step.results, step.run(known, points), strict=True)
            self.for_points.update({(i, points): m for i, m in made})
        return self.for_points[index, points]

    def spread(self, index: int, points: int) -> Tensor:
        """The tangents of a value for so many points."""
        rows = self.rows(index).expand(self.r, points // self.r, -1)
        return from_rows(rows.reshape(points, -1), self.program.shapes[index])

    def through_activation(self, step: Step) -> Tangent:
        """The tangents behind a site: each unit's slope times the tangents before it."""
        arguments = [resolved(a, self.values, self.n) for a in step.arguments]
        options = {name: resolved(a, self.values, self.n) for name, a in step.options.items()}
        shape = self.program.shapes[step.results[0]]
        if len(arguments) == 2 and isinstance(arguments[1], Tensor) and step.operation in COMPETING:
            a, b = (self.side(x, v) for x, v in zip(step.arguments, arguments, strict=True))
            first = (arguments[0] > arguments[1]) if COMPETING[step.operation] else (arguments[0] < arguments[1])
            return Tangent(torch.where(to_rows(first, shape, self.n), a, b))
        slope = to_rows(slopes(step.operation, arguments, options), shape, self.n)
        rows = self.rows(*indices(step.arguments[0]))
        if slope.dtype == torch.bool:
            return Tangent(rows, slope, self.grams.get(step.results[0]))
        return Tangent(rows * slope.to(rows.dtype))

    def side(self, argument: Any, value: Tensor) -> Tensor:
        """The tangents of one of two competitors, zero for a constant."""
        if isinstance(argument, Value) and argument.index in self.tangents:
            return self.rows(argument.index)
        return torch.zeros((), dtype=value.dtype, device=value.device)

    def through_anything(self, step: Step, given: dict[str, Any]) -> None:
        """Any other operation, differentiated by torch."""
        points = self.r * self.n
        live = [name for name, a in given.items() if isinstance(a, Value) and a.index in self.tangents]
        known = {name: self.linear(name, a, frozenset(), points) for name, a in given.items() if name not in live}
        values = [self.repeated(given[name].index) for name in live]
        tangents = [self.spread(given[name].index, points) for name in live]

        def operation(*primals: Tensor) -> Any:
            return step.operation(**known, **dict(zip(live, primals, strict=True)))

        self.keep(step, torch.func.jvp(operation, tuple(values), tuple(tangents))[1], points)

    def repeated(self, index: int) -> Tensor:
        shape = self.program.shapes[index]
        return from_rows(to_rows(self.values[index], shape, self.n).repeat(self.r, 1), shape)


DENSE = {aten.addmm.default: ("mat1", "mat2"), aten.mm.default: ("self", "mat2")}  # the factors of their products


def dense(step: Step, live: Set[str], program: Program) -> bool:
    """Whether a step, some of whose arguments are live, multiplies rows, one a point, by a fixed matrix."""
    factors = DENSE.get(step.operation)  # type: ignore[call-overload]
    if not factors or live != {factors[0]}:
        return False
    shape = program.shapes[step.named[factors[0]].index]
    return len(shape) == 2 and counting(shape) == (0, 1)


COMPETING = {  # does the larger one win?
    aten.maximum.default: True, aten.fmax.default: True, aten.minimum.default: False, aten.fmin.default: False,
}  # fmt: skip


def slopes(operation: Callable[..., Any], arguments: list[Any], options: dict[str, Any]) -> Tensor:
    """The derivative of an activation at its values, as torch defines it at breakpoints."""
    z: Tensor = arguments[0].detach()
    if operation is aten.relu.default:
        return z > 0
    with torch.enable_grad():
        z = z.requires_grad_()
        others = [a.detach() if isinstance(a, Tensor) else a for a in arguments[1:]]
        result = operation(z, *others, **options)
        out = result if isinstance(result, Tensor) else result[0]
        slope: Tensor = torch.autograd.grad(out.sum(), z)[0]
        return slope


# affine operations with a shift that is no argument of theirs that is added
SHIFTS: dict[str, dict[str, Any]] = {
    "native_batch_norm": {"bias": None, "running_mean": 0},
    "_native_batch_norm_legit_no_training": {"bias": None, "running_mean": 0},
    "constant_pad_nd": {"value": 0},
    "masked_fill": {"value": 0},
}


def without_shift(step: Step, given: dict[str, Any]) -> dict[str, Any]:
    name = step.operation._schema.name.removeprefix("aten::")  # type: ignore[attr-defined]
    for argument, nothing in SHIFTS.get(name, {}).items():
        if isinstance(given.get(argument), Tensor):
            given[argument] = torch.zeros_like(given[argument])
        elif argument in given:
            given[argument] = nothing
    return given


class Route:
    """The way of points through a network along the same directions; what no point changes is worked out once."""

    def __init__(self, net: Network, along: Directions, *, output: bool = False) -> None:
        self.net, self.along, self.output = net, along, output
        self.program = net.program.folded().pruned([*net.entries, net.output] if output else net.entries)
        self.places: dict[int, list[int]] = {}
        for number, entry in enumerate(net.entries):
            self.places.setdefault(entry, []).append(number)
        self.shared = behind_first_part(net, along.vectors) if along.exact else None
        self.first = first_part(net)
        self.bottleneck = self.find_bottleneck()
        self.grams = self.find_grams()

    def find_bottleneck(self) -> int | None:
        """The value that leaves the first ReLU, if dense layers take it and nothing else makes all the rest."""
        before = set(self.first.outputs)
        after = [step for step in self.program.steps if not step.used.isdisjoint(before)]
        if len(before) != 1 or len(after) != 1 or after[0].operation is not aten.relu.default:
            return None
        value = after[0].results[0]
        for step in self.program.steps:
            live = {name for name, a in step.named.items() if set(indices(a)) - self.program.constants.keys()}
            if value in step.used and not dense(step, live, self.program):
                return None
        return value

    def find_grams(self) -> dict[int, Tensor]:
        """The scalar products of the tangents at the bottleneck, if nothing else about them matters."""
        if self.bottleneck is None or self.along.engine != "gram" or not self.shared:
            return {}
        (tangent,) = self.shared.values()
        r, _, units = tangent.every.shape
        gram = gram_of(tangent.every[:, 0]) if r >= units else None
        return {} if gram is None else {self.bottleneck: gram}

    def order(self, points: Tensor) -> Tensor:
        """In which to take the points, so that those followed together have about as many open units at first.

        The same for all engines, so that they draw the same noise.
        """
        if self.bottleneck is None:
            return torch.arange(len(points), device=points.device)
        opened = [(self.first.run(x)[0] > 0).sum(dim=1) for x in points.split(1024)]
        return torch.cat(opened).argsort(stable=True)

    def follow(
        self,
        x: Tensor,
        visit: Visit = lambda *_: None,
        *,
        noise: list[Tensor] | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Visit every site with its values and tangents at points x; the tangents of the output, if asked for.

        `noise`, one tensor (n, units) a site, is taken off what enters the site, after it has been visited.
        """
        start = self.shared if self.shared is not None else {0: Tangent(self.along.drawn(x, generator))}
        pass_ = Following(self.program, x, start, set(self.net.exits), self.grams)
        n = len(x)

        def on_value(value: int) -> None:
            for number in self.places.get(value, ()):
                shape = self.program.shapes[value]
                rows = to_rows(pass_.values[value], shape, n)
                visit(number, rows, pass_.rows(value).expand(-1, n, -1))
                if noise is not None and number == self.places[value][-1]:
                    pass_.values[value] = from_rows(rows - noise[self.places[value][0]], shape)

        pass_.run(on_value)
        return pass_.rows(self.net.output).expand(-1, n, -1) if self.output else torch.empty(0)


def points_at_once(net: Network, along: Directions) -> int:
    """How many points to follow together, so that a tangent keeps to a limited size."""
    widest = max((site.units for site in net.sites), default=1)
    return max(1, ENTRIES_AT_ONCE // (len(along.vectors) * max(widest, 1)))
