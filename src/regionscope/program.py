"""A network as a straight-line program of aten operations that runs at any number of points."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Program:
    """`constants` are the model's own tensors, read as they are at the time of a run; value 0 is the input."""

    steps: tuple[Step, ...]
    constants: dict[int, Tensor]
    outputs: tuple[int, ...]

    def run(self, x: Tensor) -> list[Tensor]:
        """The outputs at points x (n, ...), in one pass; differentiable if gradients are enabled."""
        n = len(x)
        values: dict[int, Any] = {**self.constants, 0: x}
        for step in self.steps:
            arguments = [resolved(a, values, n) for a in step.arguments]
            options = {name: resolved(a, values, n) for name, a in step.options.items()}
            result = step.operation(*arguments, **options)
            if step.several:
                values.update(zip(step.results, result, strict=True))
            else:
                values[step.results[0]] = result
            for index in step.done_with:
                del values[index]
        return [values[index] for index in self.outputs]

    def pruned(self, outputs: Sequence[int]) -> "Program":
        """The part of the program that these outputs need, with each value dropped after its last use."""
        needed, kept = set(outputs), []
        kept_to_the_end = set(outputs) | {0}
        for step in reversed(self.steps):
            if needed.isdisjoint(step.results):
                continue
            used = {value.index for value in references(step)}
            dying = (used | set(step.results)) - needed - kept_to_the_end
            needed |= used
            kept.append(replace(step, done_with=tuple(dying)))
        constants = {index: tensor for index, tensor in self.constants.items() if index in needed}
        return Program(tuple(reversed(kept)), constants, tuple(outputs))

    def frozen(self, dtype: torch.dtype) -> "Program":
        """A copy in another precision, apart from the model, with all that does not depend on the input worked out."""
        values: dict[int, Any] = {i: cast(c, dtype).clone() for i, c in self.constants.items()}
        steps = []
        for step in self.steps:
            step = replace(step, **{part: recast(getattr(step, part), dtype) for part in ("arguments", "options")})
            if any(value.index not in values for value in references(step)) or any(per_point(step)):
                steps.append(step)
                continue
            result = step.operation(
                *(resolved(a, values, 0) for a in step.arguments),
                **{name: resolved(a, values, 0) for name, a in step.options.items()},
            )
            values.update(zip(step.results, result if step.several else [result], strict=True))
        return Program(tuple(steps), values, self.outputs).pruned(self.outputs)


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


def references(step: Step) -> Iterable[Value]:
    return (a for a in leaves([step.arguments, list(step.options.values())]) if isinstance(a, Value))


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
