"""Derivatives of every pre-activation along directions of the input, in one pass: the engine of the measures.

A program is followed step by step together with the tangents of its values along r directions at once. An affine
operation acts on tangents as on values, without its constants; an activation multiplies by its slope. In the part of
the network before the first activation the tangents are the same for all points and are found once.

Which directions: an orthonormal basis of all that the first layer looks at gives every gradient norm and all singular
values exactly (J J^T = (J Q)(J Q)^T), with as few directions as the first layer has units: the Gram matrix is never
formed, its square root is. The unit vectors give the Jacobians themselves. Random directions u ~ N(0, I) give unbiased
estimates for networks whose Jacobians do not fit: the derivative along u is N(0, |grad|^2).
"""

import math
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regionscope.network import Network
from regionscope.operations import aten, linear_arguments
from regionscope.program import (
    PerPoint,
    Program,
    Step,
    Value,
    counting,
    from_rows,
    leaves,
    point_shape,
    references,
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

    def at(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """For points x: (r, 1, *shape) if they are shared, otherwise (r, n, *shape)."""
        if self.exact:
            return self.vectors.reshape(-1, 1, *x.shape[1:])
        drawn = torch.randn(len(self.vectors), *x.shape, generator=generator, dtype=x.dtype)
        return drawn.to(x.device)  # (r, n, ...)

    def norms(self, tangents: Tensor) -> Tensor:
        """Gradient norms (n, units) from tangents (r, n, units); unbiased if the directions are random.

        The root mean square of r normal numbers is on average short by a known factor.
        """
        if tangents.requires_grad:  # whose derivative at zero is zero
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
    """What happens before the first activation; its outputs are all that the rest depends on."""
    program = net.program.pruned([*net.entries, net.output])
    return program.segments(net.entries[:1])[0] if net.entries else program.pruned([net.output])


def looked_at(net: Network) -> int:
    """How many affine functions of the input all the rest depends on."""
    part = first_part(net)
    return sum(math.prod(point_shape(part.shapes[value])) for value in part.outputs)


@torch.no_grad()
def row_space(net: Network, identity: Tensor) -> Tensor:
    """Orthonormal rows that span the gradients of all that the rest of the network depends on."""
    part = first_part(net)
    zero = torch.zeros(1, *net.input_shape, dtype=net.dtype, device=net.device)
    follow = Following(part, zero, identity.reshape(-1, 1, *net.input_shape), frozenset())
    follow.run()
    rows = [follow.rows(value)[:, 0] for value in part.outputs]  # (d, units)
    basis: Tensor = torch.linalg.qr(torch.cat(rows, dim=1)).Q
    return basis.T.contiguous()


class Following:
    """One pass through a program with the tangents of its values along r directions.

    Tangents are kept as values of r or r * n points, direction by direction: r if they are the same for all points.
    """

    def __init__(self, program: Program, x: Tensor, along: Tensor, exits: Set[int]) -> None:
        self.program, self.n, self.r = program, len(x), len(along)
        self.values: dict[int, Any] = {**program.constants, 0: x}
        self.tangents: dict[int, Tensor] = {0: along.reshape(-1, *x.shape[1:])}
        self.for_points: dict[tuple[int, int], Any] = {}
        self.exits = exits  # the values that leave the sites

    def run(self, on_value: Callable[[int], None] = lambda value: None) -> None:
        """Take all steps; `on_value` is told of each value that is made."""
        on_value(0)
        for step in self.program.steps:
            self.values.update(zip(step.results, step.run(self.values, self.n), strict=True))
            if any(value.index in self.tangents for value in references(step)):
                self.differentiate(step)
            for index in step.results:
                on_value(index)
            for index in step.done_with:
                self.values.pop(index, None)
                self.tangents.pop(index, None)

    def rows(self, value: int) -> Tensor:
        """The tangents of a value: (r, n, units), or (r, 1, units) if they are the same for all points."""
        tangent = self.tangents[value]
        shape = self.program.shapes[value]
        axis, rate = counting(shape)
        points = tangent.shape[axis] // rate
        return to_rows(tangent, shape, points).view(self.r, points // self.r, -1)

    def differentiate(self, step: Step) -> None:
        names = [p.name for p in step.operation._schema.arguments]  # type: ignore[attr-defined]
        given = dict(zip(names, step.arguments, strict=False)) | step.options
        live = {name for name, a in given.items() if any(i in self.tangents for i in indices(a))}
        if step.results[0] in self.exits:
            self.tangents[step.results[0]] = self.through_activation(step)
            return
        group = linear_arguments(step.operation, live)
        if not group:
            self.through_anything(step, given)
            return
        points = self.points_of(given)
        if step.operation is aten.addmm.default and live == {"mat1"}:  # the usual case, without adding zeros
            x, weight = (self.linear(name, given[name], group, points) for name in ("mat1", "mat2"))
            self.tangents[step.results[0]] = x @ weight
            return
        linear = {name: self.linear(name, a, group, points) for name, a in given.items()}
        result = step.operation(**without_shift(step, linear))
        self.tangents.update(zip(step.results, result if step.several else [result], strict=True))

    def points_of(self, given: dict[str, Any]) -> int:
        """r if all tangents are the same for all points, otherwise r * n."""
        shared = all(self.rows(i).shape[1] == 1 for a in given.values() for i in indices(a) if i in self.tangents)
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
            known = {value.index: self.fixed(value.index, points) for value in references(step)}
            made = zip(step.results, step.run(known, points), strict=True)
            self.for_points.update({(i, points): m for i, m in made})
        return self.for_points[index, points]

    def spread(self, index: int, points: int) -> Tensor:
        """The tangents of a value for so many points."""
        rows = self.rows(index)
        if rows.shape[1] * self.r == points:
            return self.tangents[index]
        return from_rows(rows.expand(self.r, self.n, -1).reshape(points, -1), self.program.shapes[index])

    def through_activation(self, step: Step) -> Tensor:
        """The tangents behind a site: each unit's slope times the tangents before it."""
        arguments = [resolved(a, self.values, self.n) for a in step.arguments]
        options = {name: resolved(a, self.values, self.n) for name, a in step.options.items()}
        shape = self.program.shapes[step.results[0]]
        if len(arguments) == 2 and isinstance(arguments[1], Tensor) and step.operation in COMPETING:
            a, b = (self.side(x, v) for x, v in zip(step.arguments, arguments, strict=True))
            first = (arguments[0] > arguments[1]) if COMPETING[step.operation] else (arguments[0] < arguments[1])
            mask = to_rows(first, shape, self.n)
            rows = torch.where(mask, a, b)
        else:
            slope = slopes(step.operation, arguments, options)
            (entering,) = indices(step.arguments[0])
            rows = self.rows(entering) * to_rows(slope, shape, self.n).to(self.tangents[entering].dtype)
        return from_rows(rows.reshape(self.r * self.n, -1), shape)

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

        result = torch.func.jvp(operation, tuple(values), tuple(tangents))[1]
        self.tangents.update(zip(step.results, result if step.several else [result], strict=True))

    def repeated(self, index: int) -> Tensor:
        shape = self.program.shapes[index]
        return from_rows(to_rows(self.values[index], shape, self.n).repeat(self.r, 1), shape)


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


def indices(argument: Any) -> list[int]:
    return [a.index for a in leaves(argument) if isinstance(a, Value)]


def follow(
    net: Network,
    x: Tensor,
    along: Directions,
    visit: Visit,
    *,
    noise: list[Tensor] | None = None,
    output: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor | None:
    """Visit every site with its values and tangents at points x; returns the tangents of the output, if asked for.

    `noise`, one tensor (n, units) a site, is taken off what enters the site, after it has been visited.
    """
    wanted = [*net.entries, net.output] if output else net.entries
    program = net.program.pruned(wanted)
    places: dict[int, list[int]] = {}
    for number, entry in enumerate(net.entries):
        places.setdefault(entry, []).append(number)
    pass_ = Following(program, x, along.at(x, generator), set(net.exits))
    n = len(x)

    def on_value(value: int) -> None:
        for number in places.get(value, ()):
            shape = program.shapes[value]
            rows = to_rows(pass_.values[value], shape, n)
            visit(number, rows, pass_.rows(value).expand(-1, n, -1))
            if noise is not None and number == places[value][-1]:
                pass_.values[value] = from_rows(rows - noise[places[value][0]], shape)

    pass_.run(on_value)
    return pass_.rows(net.output).expand(-1, n, -1) if output else None


def points_at_once(net: Network, along: Directions) -> int:
    """How many points to follow together, so that a tangent keeps to a limited size."""
    widest = max((site.units for site in net.sites), default=1)
    return max(1, ENTRIES_AT_ONCE // (len(along.vectors) * max(widest, 1)))
