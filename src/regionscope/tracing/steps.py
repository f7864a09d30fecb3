"""One operation of a network, as it was at one point, and the values it refers to."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from regionscope.tracing.schemas import schema

LISTS = (list, tuple)


@dataclass(frozen=True)
class Value:
    """A reference to one value of the program: the input (0), a constant or the result of a step."""

    index: int


_REFERRING = (Value, *LISTS)  # what may hold a value


@dataclass(frozen=True)
class Step:
    """One operation without side effects; its arguments may hold `Value`, in lists too."""

    operation: Any
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    results: tuple[int, ...]  # the values it makes
    several: bool = False  # the operation returns a tuple or list
    done_with: tuple[int, ...] = ()  # values that no later step reads

    @cached_property
    def used(self) -> frozenset[int]:
        """The values that its arguments hold."""
        return frozenset(indices([*self.arguments, *self.options.values()]))

    @cached_property
    def named(self) -> dict[str, Any]:
        """Its arguments and options by name."""
        return dict(zip(schema(self.operation).parameters, self.arguments, strict=False)) | self.options

    @cached_property
    def name(self) -> str:
        """The operation's, without its overload: `add` for aten.add.Tensor."""
        return schema(self.operation).name

    def arguments_with(self, values: Container[int]) -> set[str]:
        """The names of those of its arguments that hold any of these values."""
        return {name for name, argument in self.named.items() if any(i in values for i in indices(argument))}

    def run(self, values: Mapping[int, Any]) -> list[Any]:
        """Its results at one point, or for constants, given the values it needs."""
        arguments = [resolved(a, values) for a in self.arguments]
        options = {name: resolved(a, values) for name, a in self.options.items()}
        result = self.operation(*arguments, **options)
        return list(result) if self.several else [result]

    def with_last_uses(self, done_with: Iterable[int]) -> "Step":
        """The same step with these as the values that no later step reads; what is known of it stays known."""
        same = object.__new__(Step)
        same.__dict__.update(self.__dict__, done_with=tuple(done_with))
        return same

    def __reduce__(self) -> Any:  # operations of torch cannot be pickled, their names can
        said = self.operation._schema
        name = (*said.name.split("::"), said.overload_name or "default")
        return _step, (name, self.arguments, self.options, self.results, self.several, self.done_with)


def _step(name: tuple[str, str, str], *rest: Any) -> Step:
    namespace, operation, overload = name
    return Step(getattr(getattr(getattr(torch.ops, namespace), operation), overload), *rest)


def resolved(argument: Any, values: Mapping[int, Any]) -> Any:
    """An argument with the values it refers to."""
    if isinstance(argument, Value):
        return values[argument.index]
    if isinstance(argument, LISTS):
        return [resolved(a, values) for a in argument]
    return argument


def leaves(argument: Any) -> Iterable[Any]:
    """All that is no list in an argument."""
    if isinstance(argument, LISTS):
        for part in argument:
            yield from leaves(part)
    else:
        yield argument


def indices(argument: Any) -> list[int]:
    """The values that an argument holds."""
    if isinstance(argument, Value):
        return [argument.index]
    if isinstance(argument, LISTS):
        return [index for part in argument if isinstance(part, _REFERRING) for index in indices(part)]
    return []
