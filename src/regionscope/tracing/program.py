"""A network as a straight-line program of aten operations that runs at any number of points."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Value:
    """A reference to one value of the program: the input (0), a constant or the result of a step."""

    index: int


@dataclass(frozen=True)
class PerPoint:
    """An integer that grows with the number of points n: `base + rate * n`."""

    base: int
    rate: int


@dataclass(frozen=True)
class Step:
    """One operation without side effects; its arguments may hold `Value` and `PerPoint`, in lists too."""

    operation: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    results: tuple[int, ...]  # the values it makes
    several: bool = False  # the operation returns a tuple or list
    done_with: tuple[int, ...] = ()  # values that no later step reads

    @cached_property
    def used(self) -> frozenset[int]:
        """The values that its arguments hold."""
        return frozenset(indices([self.arguments, list(self.options.values())]))

    @cached_property
    def named(self) -> dict[str, Any]:
        """Its arguments and options by name."""
        names = [p.name for p in self.operation._schema.arguments]  # type: ignore[attr-defined]
        return dict(zip(names, self.arguments, strict=False)) | self.options

    def run(self, values: dict[int, Any], n: int) -> list[Any]:
        """Its results, given the values it needs, for n points."""
        arguments = [resolved(a, values, n) for a in self.arguments]
        options = {name: resolved(a, values, n) for name, a in self.options.items()}
        result = self.operation(*arguments, **options)
        return list(result) if self.several else [result]


Shape = tuple[int | PerPoint, ...]


@dataclass(frozen=True)
class Program:
    """`constants` are the model's own tensors, read as they are at the time of a run; value 0 is the input."""

    steps: tuple[Step, ...]
    constants: dict[int, Tensor]
    shapes: dict[int, Shape]  # of the values that have one dimension that counts the points
    outputs: tuple[int, ...]

    def run(self, x: Tensor) -> list[Tensor]:
        """The outputs at points x (n, ...), in one pass; differentiable if gradients are enabled."""
        return self.resume({0: x}, len(x))

    def resume(self, known: dict[int, Tensor], n: int) -> list[Tensor]:
        """The outputs at n points, given the values that the steps need and do not make."""
        values: dict[int, Any] = {**self.constants, **known}
        for step in self.steps:
            values.update(zip(step.results, step.run(values, n), strict=True))
            for index in step.done_with:
                del values[index]
        return [values[index] for index in self.outputs]

    def pruned(self, outputs: Sequence[int]) -> "Program":
        """The part of the program that these outputs need, with each value dropped after its last use."""
        needed, kept = set(outputs), []
        for step in reversed(self.steps):
            if needed.isdisjoint(step.results):
                continue
            dying = (step.used | set(step.results)) - needed
            needed |= step.used
            kept.append(replace(step, done_with=tuple(dying)))
        constants = {index: tensor for index, tensor in self.constants.items() if index in needed}
        return replace(self, steps=tuple(reversed(kept)), constants=constants, outputs=tuple(outputs))

    def segments(self, cuts: Sequence[int]) -> list["Program"]:
        """The program cut where each of these values has just been made, and a last part that gives the outputs.

        A part takes the outputs of the part before it; the value of its cut comes first among its own.
        """
        made = {value: position for position, step in enumerate(self.steps) for value in step.results}
        parts, state, start = [], [0], 0
        for cut in cuts:
            end = max(start, made.get(cut, -1) + 1)
            needed = {value for step in self.steps[end:] for value in step.used} | set(self.outputs)
            known = [*state, *(value for step in self.steps[start:end] for value in step.results)]
            state = [cut, *(value for value in known if value in needed and value != cut)]
            parts.append(replace(self, steps=self.steps[start:end]).pruned(state))
            start = end
        return [*parts, replace(self, steps=self.steps[start:]).pruned(self.outputs)]

    def frozen(self, dtype: torch.dtype) -> "Program":
        """A copy in another precision, apart from the model, with all that does not depend on the input worked out."""
        constants = {i: cast(c, dtype).clone() for i, c in self.constants.items()}
        steps = [
            replace(step, **{part: recast(getattr(step, part), dtype) for part in ("arguments", "options")})
            for step in self.steps
        ]
        return replace(self, steps=tuple(steps), constants=constants).folded()

    def folded(self) -> "Program":
        """The same with all that does not depend on the input worked out."""
        values: dict[int, Any] = dict(self.constants)
        steps = []
        for step in self.steps:
            if not step.used <= values.keys() or any(per_point(step)):
                steps.append(step)
                continue
            values.update(zip(step.results, step.run(values, 0), strict=True))
        return replace(self, steps=tuple(steps), constants=values).pruned(self.outputs)


def to_rows(value: Tensor, shape: Shape, n: int) -> Tensor:
    """A value at n points as one row a point, (n, k)."""
    axis, _ = counting(shape)
    if axis:
        inner = value.shape[axis] // n
        value = value.unflatten(axis, (n, inner)).movedim(axis, 0)
    return value.reshape(n, -1)


def from_rows(rows: Tensor, shape: Shape) -> Tensor:
    """The value whose rows these are."""
    axis, rate = counting(shape)
    sizes = resolved(list(shape), {}, len(rows))
    if axis == 0:
        return rows.reshape(sizes)
    return rows.reshape(len(rows), *sizes[:axis], rate, *sizes[axis + 1 :]).movedim(0, axis).reshape(sizes)


def counting(shape: Shape) -> tuple[int, int]:
    """The dimension that counts the points, and how many entries it has for each."""
    return next((axis, size.rate) for axis, size in enumerate(shape) if isinstance(size, PerPoint))


def point_shape(shape: Shape) -> tuple[int, ...]:
    """The shape of a value at one point."""
    axis, rate = counting(shape)
    return tuple(s for s in (*shape[:axis], *([rate] if rate > 1 else []), *shape[axis + 1 :]) if isinstance(s, int))


def resolved(argument: Any, values: dict[int, Any], n: int) -> Any:
    if isinstance(argument, Value):
        return values[argument.index]
    if isinstance(argument, PerPoint):
        return argument.base + argument.rate * n
    if isinstance(argument, list | tuple):
        return [resolved(a, values, n) for a in argument]
    return argument


def leaves(argument: Any) -> Iterable[Any]:
    if isinstance(argument, list | tuple):
        for part in argument:
            yield from leaves(part)
    else:
        yield argument


def indices(argument: Any) -> list[int]:
    """The values that an argument holds."""
    return [a.index for a in leaves(argument) if isinstance(a, Value)]


def per_point(step: Step) -> Iterable[PerPoint]:
    return (a for a in leaves([step.arguments, list(step.options.values())]) if isinstance(a, PerPoint))


def cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.detach().to(dtype) if tensor.is_floating_point() else tensor.detach()


def recast(argument: Any, dtype: torch.dtype) -> Any:
    """Arguments in which every floating dtype is replaced."""
    if isinstance(argument, dict):
        return {name: recast(a, dtype) for name, a in argument.items()}
    if isinstance(argument, list | tuple):
        return type(argument)(recast(a, dtype) for a in argument)
    if isinstance(argument, torch.dtype) and argument.is_floating_point:
        return dtype
    return argument
