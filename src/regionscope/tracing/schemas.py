"""What torch says of an operation, asked once."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

aten = torch.ops.aten


@dataclass(frozen=True)
class Schema:
    """`twin` returns what the operation writes into its first argument, if it is such a one."""

    label: str  # as torch prints it: aten.relu.default
    name: str  # `relu` for aten.relu.default and aten.relu_.default alike; other namespaces keep theirs: `mine::relu`
    key: str  # the name, with the overload if it is not the plain one
    parameters: tuple[str, ...]
    defaults: Mapping[str, Any]
    written: tuple[str, ...]  # the parameters that it writes into
    several: bool  # it returns a tuple or list
    twin: Any
    random: bool  # it may draw random numbers
    moves_view: bool  # afterwards a tensor looks at its memory in another way
    composite: bool  # torch itself computes it by others; a decomposition in Python may round in another way


@cache
def schema(operation: Any) -> Schema:
    """What torch says of an operation such as aten.relu.default."""
    said = operation._schema
    namespace, _, name = said.name.rpartition("::")
    twin = None
    if said.is_mutable and name.endswith("_") and namespace == "aten":
        twin = getattr(getattr(aten, name[:-1], None), said.overload_name or "default", None)
    name = name if twin is None else name.removesuffix("_")
    name = name if namespace == "aten" else f"{namespace}::{name}"
    return Schema(
        label=str(operation),
        name=name,
        key=f"{name}.{said.overload_name}" if said.overload_name else name,
        parameters=tuple(p.name for p in said.arguments),
        defaults={p.name: p.default_value for p in said.arguments if p.has_default_value()},
        written=tuple(p.name for p in said.arguments if p.is_write),
        several=len(said.returns) > 1 or any(isinstance(r.type, torch.ListType) for r in said.returns),
        twin=twin,
        random=torch.Tag.nondeterministic_seeded in operation.tags,
        moves_view=torch.Tag.inplace_view in operation.tags,
        composite=torch._C._dispatch_has_kernel_for_dispatch_key(operation.name(), "CompositeImplicitAutograd"),
    )
