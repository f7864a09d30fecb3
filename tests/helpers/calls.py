"""Calls of torch's operations by name, with some of their arguments made of the input."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from samples import SAMPLES, SITES, Arguments
from torch import Tensor

from regionscope.tracing.operations import AFFINE

aten = torch.ops.aten
Slot = tuple[str, int | None]  # the name of an argument, and the place in it if it is a list
Live = tuple[Slot, ...]


def name_of(key: str) -> str:
    return key.partition(".")[0]


def operation(key: str) -> Any:
    name, _, overload = key.partition(".")
    return getattr(getattr(aten, name), overload or "default")


def schema(key: str) -> Any:
    return operation(key)._schema


def samples_of(key: str) -> list[Arguments]:
    return SAMPLES[key] if key in SAMPLES else SITES[key]


def floating(argument: Any) -> bool:
    return isinstance(argument, Tensor) and argument.is_floating_point()


def slots(arguments: Arguments) -> list[Slot]:
    """Where a call has tensors that may depend on the input."""
    alone: list[Slot] = [(name, None) for name, a in arguments.items() if floating(a)]
    lists = {name: a for name, a in arguments.items() if isinstance(a, list)}
    return [*alone, *((name, k) for name, a in lists.items() for k, part in enumerate(a) if floating(part))]


def at(arguments: Arguments, slot: Slot) -> Any:
    name, k = slot
    return arguments[name] if k is None else arguments[name][k]


def filled(arguments: Arguments, tensors: Mapping[Slot, Tensor]) -> Arguments:
    arguments = {name: list(a) if isinstance(a, list) else a for name, a in arguments.items()}
    for (name, k), tensor in tensors.items():
        if k is None:
            arguments[name] = tensor
        else:
            arguments[name][k] = tensor
    return arguments


def live_sets(key: str, arguments: Arguments) -> Iterator[Live]:
    """Each argument of each group alone, and all of a group together."""
    groups = [[slot for slot in slots(arguments) if slot[0] in group] for group in AFFINE[key].groups]
    alone = [(slot,) for group in groups for slot in group]
    yield from dict.fromkeys([*alone, *(tuple(group) for group in groups if group)])
