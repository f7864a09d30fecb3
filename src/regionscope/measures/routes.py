"""Derivatives of every pre-activation along directions of the input, in one pass, for all measures that need them.

A program is followed step by step together with the tangents of its values along r directions at once. An affine
operation acts on tangents as on values, without its constants; an activation multiplies by its slope. While the
network is affine the tangents are the same for all points and are found once.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regionscope.machine import forward_derivative
from regionscope.measures.directions import Directions, affine_part_and_rest
from regionscope.measures.tangents import FEW, Tangent, gram_of
from regionscope.tracing.lifting import Shape, lifted, with_dimensions
from regionscope.tracing.network import Network, as_rows
from regionscope.tracing.operations import linear_arguments
from regionscope.tracing.program import OnValue, Program
from regionscope.tracing.schemas import aten
from regionscope.tracing.steps import Step, Value

Visit = Callable[[int, Tensor, Tensor], None]  # number of the site, values (n, units), tangents (r, n, units)


class Following:
    """One pass through a program with the tangents of its values along r directions.

    An operation takes tangents as it takes values of r * n points, direction by direction, or of r points if they are
    the same for all.
    """

    def __init__(
        self, program: Program, tangents: dict[int, Tangent], exits: Set[int], grams: dict[int, Tensor]
    ) -> None:
        self.program = program
        self.r = max((len(tangent.every) for tangent in tangents.values()), default=0)
        self.tangents = dict(tangents)  # of the input, or of all that follows from it before the network bends
        self.exits = exits  # the values that leave the sites
        self.grams = grams  # of a value that leaves a site and that is all that the rest depends on

    def run(self, x: Tensor, on_value: OnValue | None = None) -> list[Tensor]:
        """Take all steps from points x."""
        self.x, self.n = x, len(x)
        return self.program.run(x, on_value, self.act)

    def act(self, step: Step, values: Mapping[int, Any], shapes: Mapping[int, Shape]) -> list[Any]:
        """Do a step, and differentiate it."""
        made = lifted(step, values, shapes)
        if step.results[0] not in self.tangents and not step.used.isdisjoint(self.tangents):
            self.differentiate(step, values)
        for index in step.used.intersection(step.done_with):
            self.tangents.pop(index, None)
        return made

    def rows(self, value: int) -> Tensor:
        """The tangents of a value: (r, n, units), or (r, 1, units) if they are the same for all points.

        Of one that moves in steps only, as what follows from a comparison does, they are zero.
        """
        if value not in self.tangents:
            return self.x.new_zeros(self.r, 1, math.prod(self.program.shapes[value]))
        return self.tangents[value].rows

    def shaped(self, value: int, dimensions: int = 0) -> Tensor:
        """The tangents of a value in its shape, filled up with ones in front to so many dimensions."""
        rows = self.rows(value)
        one = with_dimensions(torch.empty(1, *self.program.shapes[value], device="meta"), dimensions)
        return rows.reshape(*rows.shape[:2], *one.shape[1:])

    def differentiate(self, step: Step, values: Mapping[int, Any]) -> None:
        live = step.arguments_with(self.tangents)
        if step.results[0] in self.exits:
            self.tangents[step.results[0]] = self.through_activation(step, values)
            return
        group = linear_arguments(step, live)
        in_steps = not step.used.isdisjoint(self.program.shapes.keys() - self.tangents.keys())
        if not group or in_steps:
            self.through_anything(step, values)
            return
        if dense(step, live, self.program):  # the usual case
            rows, matrix = DENSE[step.operation]
            product = self.tangents[step.named[rows].index].times(values[step.named[matrix].index])
            self.r, self.tangents[step.results[0]] = len(product), Tangent(product)
            return
        points = self.points_of(step)
        linear = without_shift(step, group, self.tangents.keys())
        known = {i: self.spread(i, points) if i in self.tangents else values[i] for i in step.used}
        known |= {i: torch.zeros_like(values[-1 - i]) for i in linear.used if i < 0}
        self.keep(step, lifted(linear, known, self.program.shapes), points)

    def keep(self, step: Step, results: list[Any], points: int) -> None:
        """The results of an operation on the tangents of so many points are those of the step."""
        for value, result in zip(step.results, results, strict=True):
            self.tangents[value] = Tangent(result.reshape(self.r, points // self.r, -1))

    def points_of(self, step: Step) -> int:
        """r if all tangents are the same for all points, otherwise r * n."""
        live = [self.tangents[i] for i in step.used if i in self.tangents]
        shared = all(tangent.open is None and tangent.every.shape[1] == 1 for tangent in live)
        return self.r if shared else self.r * self.n

    def spread(self, index: int, points: int) -> Tensor:
        """The tangents of a value for so many points."""
        rows = self.rows(index).expand(self.r, points // self.r, -1)
        return rows.reshape(points, *self.program.shapes[index])

    def through_activation(self, step: Step, values: Mapping[int, Any]) -> Tangent:
        """The tangents behind a site: each unit's slope times the tangents before it."""
        if step.operation in COMPETING:
            return self.through_competition(step, values)
        entry = step.named["self"].index
        slope, rows = slopes(step, values, self.program.shapes), self.rows(entry)
        if slope.dtype == torch.bool:
            return Tangent(rows, slope, self.grams.get(step.results[0]))
        return Tangent(rows * slope.to(rows.dtype))

    def through_competition(self, step: Step, values: Mapping[int, Any]) -> Tangent:
        """The tangents of the one that wins; a constant has none."""
        larger = COMPETING[step.operation]
        compared = replace(step, operation=aten.gt.Tensor if larger else aten.lt.Tensor)
        (first,) = lifted(replace(compared, results=(-1,)), values, self.program.shapes)  # (n, *shape)
        sides = [
            self.shaped(a.index, first.dim() - 1) if a.index in self.tangents else first.new_zeros((), dtype=torch.int)
            for a in (step.named["self"], step.named["other"])
        ]
        return Tangent(torch.where(first, sides[0], sides[1])[..., None].flatten(2))

    def through_anything(self, step: Step, values: Mapping[int, Any]) -> None:
        """Any other operation, differentiated by torch."""
        live = sorted(step.used & self.tangents.keys())
        shapes = self.program.shapes

        def operation(*primals: Tensor) -> tuple[Tensor, ...]:
            made = lifted(step, {**values, **dict(zip(live, primals, strict=True))}, shapes)
            return tuple(m for m in made if m.is_floating_point())

        def derivative(*along: Tensor) -> Any:
            return forward_derivative(operation, tuple(values[i] for i in live), along)[1]

        tangents = [self.spread(i, self.r * self.n).unflatten(0, (self.r, self.n)) for i in live]
        floating = [r for r, m in zip(step.results, lifted(step, values, shapes), strict=True) if m.is_floating_point()]
        if not floating:  # a comparison moves in steps
            return
        for value, result in zip(floating, torch.vmap(derivative)(*tangents), strict=True):
            self.tangents[value] = Tangent(result[..., None].flatten(2))


DENSE = {aten.addmm.default: ("mat1", "mat2"), aten.mm.default: ("self", "mat2")}  # the factors of their products


def dense(step: Step, live: Set[str], program: Program) -> bool:
    """Whether a step, some of whose arguments are live, multiplies one row a point by a fixed matrix."""
    factors = DENSE.get(step.operation)
    if not factors or live != {factors[0]} or step.named.get("alpha", 1) != 1:
        return False
    return program.shapes[step.named[factors[0]].index][:-1] == (1,)


COMPETING = {  # does the larger one win?
    aten.maximum.default: True, aten.fmax.default: True, aten.minimum.default: False, aten.fmin.default: False,
}  # fmt: skip


def slopes(step: Step, values: Mapping[int, Any], shapes: Mapping[int, Shape]) -> Tensor:
    """The derivative of an activation at its values, (n, units), as torch defines it at breakpoints.

    With gradients enabled it carries those to the parameters that set it.
    """
    entry = step.named["self"].index
    z: Tensor = values[entry]
    if step.operation is aten.relu.default:
        return as_rows(z > 0)
    differentiable = torch.is_grad_enabled()
    with torch.enable_grad():
        z = z if differentiable and z.requires_grad else z.detach().requires_grad_()
        out = lifted(step, {**values, entry: z}, shapes)[0]
        slope: Tensor = torch.autograd.grad(out.sum(), z, create_graph=differentiable)[0]
        return as_rows(slope)


def without_shift(step: Step, group: Set[str], live: Set[int]) -> Step:
    """An affine operation without what it adds: numbers and constants in the arguments of the group are zero.

    A constant that becomes zero has a number below zero, -1 - i in place of i: another argument may hold it too.
    """

    def zero(argument: Any) -> Any:
        if isinstance(argument, list | tuple):
            return [zero(a) for a in argument]
        if isinstance(argument, Value) and argument.index not in live:
            return Value(-1 - argument.index)
        return 0 if isinstance(argument, int | float) else argument

    names = [p.name for p in step.operation._schema.arguments]
    arguments = tuple(zero(a) if name in group else a for name, a in zip(names, step.arguments, strict=False))
    return replace(
        step, arguments=arguments, options={k: zero(a) if k in group else a for k, a in step.options.items()}
    )


def behind_first_part(net: Network, vectors: Tensor) -> dict[int, Tangent]:
    """The tangents along directions (r, d) of all that the rest depends on: the same at every point."""
    part, _ = affine_part_and_rest(net)
    zero = torch.zeros(1, *net.input_shape, dtype=net.dtype, device=net.device)
    follow = Following(part, {0: Tangent(vectors[:, None])}, frozenset(), {})
    follow.run(zero)
    return {value: follow.tangents[value] for value in part.outputs if value in follow.tangents}


class Route:
    """The way of points through a network along the same directions; what no point changes is worked out once."""

    def __init__(self, net: Network, along: Directions, *, output: bool = False, roots: bool = True) -> None:
        """Without `roots` all points keep the directions as they are."""
        assert len(along.vectors), "directions that come in chunks have Routes"
        self.net, self.along, self.output = net, along, output
        self.program = net.program.folded().pruned([*net.entries, net.output] if output else net.entries)
        self.places: dict[int, list[int]] = {}
        for number, entry in enumerate(net.entries):
            self.places.setdefault(entry, []).append(number)
        same = along.vectors if along.exact else along.basis
        self.shared = None if same is None else behind_first_part(net, same)
        self.first, _ = affine_part_and_rest(net)
        self.bottleneck = self.find_bottleneck()
        self.grams = self.find_grams() if roots else {}

    def find_bottleneck(self) -> int | None:
        """The value that leaves the first ReLU, if dense layers take it and nothing else makes all the rest."""
        before = set(self.first.outputs)
        after = [step for step in self.program.steps if not step.used.isdisjoint(before)]
        if len(before) != 1 or len(after) != 1 or after[0].operation is not aten.relu.default:
            return None
        value = after[0].results[0]
        for step in self.program.steps:
            if value in step.used and not dense(step, step.arguments_with(self.program.shapes), self.program):
                return None
        return value

    def find_grams(self) -> dict[int, Tensor]:
        """The scalar products of the tangents at the bottleneck, if nothing else about them matters."""
        if self.bottleneck is None or self.along.method != "gram" or not self.shared:
            return {}
        (tangent,) = self.shared.values()
        r, _, units = tangent.every.shape
        gram = gram_of(tangent.every[:, 0]) if r >= units else None
        return {} if gram is None else {self.bottleneck: gram}

    def order(self, points: Tensor) -> Tensor:
        """In which to take the points, so that those followed together have about as many open units at first.

        It matters only where the open ones are picked, as `Tangent.times` does.
        """
        if self.bottleneck is None or len(self.along.vectors) < FEW:
            return torch.arange(len(points), device=points.device)
        opened = [as_rows(self.first.run(x)[0] > 0).sum(dim=1) for x in points.split(1024)]
        return torch.cat(opened).argsort(stable=True)

    def start_along(self, vectors: Tensor) -> dict[int, Tangent]:
        """The tangents along random directions (r, n, d) of the input; or (r, n, k) of all behind the first part."""
        if self.shared is None:
            return {0: Tangent(vectors)}
        return {value: Tangent(vectors @ tangent.rows[:, 0]) for value, tangent in self.shared.items()}

    def follow(
        self,
        x: Tensor,
        visit: Visit = lambda *_: None,
        *,
        noise: list[Tensor] | None = None,
        vectors: Tensor | None = None,
    ) -> Tensor:
        """Visit every site with its values and tangents at points x; the tangents of the output, if asked for.

        `noise`, one tensor (n, units) a site, is taken off what enters the site, after it has been visited. Random
        directions are given as `vectors` (r, n, d), or (r, n, k) in their basis.
        """
        start = self.shared if vectors is None else self.start_along(vectors)
        assert start is not None, "random directions have to be given"
        pass_ = Following(self.program, start, set(self.net.exits), self.grams)
        shifted = None if noise is None else self.net.noisy_entries(noise)
        n = len(x)

        def on_value(value: int, tensor: Tensor) -> Tensor | None:
            for number in self.places.get(value, ()):
                visit(number, as_rows(tensor), pass_.rows(value).expand(-1, n, -1))
            return shifted(value, tensor) if shifted else None

        pass_.run(x, on_value)
        return pass_.rows(self.net.output).expand(-1, n, -1) if self.output else torch.empty(0)


class Routes:
    """The ways through a network along directions, so many at a time as fit into memory."""

    def __init__(self, net: Network, along: Directions, *, output: bool = False) -> None:
        self.net, self.along, self.output = net, along, output
        self.whole = [Route(net, along, output=output)] if len(along.vectors) else []

    def each(self) -> Iterator[Route]:
        """One after another; those along unit vectors that do not all fit are made when it is their turn."""
        yield from self.whole or (Route(self.net, some, output=self.output) for some in self.along.chunks())
