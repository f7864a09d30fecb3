"""One call of an aten operation while a model runs, and the same call without side effects."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regionscope.tracing.schemas import Schema, aten, schema
from regionscope.tracing.steps import LISTS

_READS = frozenset(
    "_local_scalar_dense is_nonzero equal allclose nonzero masked_select unique_dim _unique _unique2 unique_consecutive"
    " bincount repeat_interleave".split()
)
_KEEPS_STRIDES = frozenset("copy select_scatter slice_scatter diagonal_scatter as_strided_scatter".split())


class Call(NamedTuple):
    """One aten operation with its arguments as given, and by name, defaults among them."""

    func: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    schema: Schema
    arguments: dict[str, Any]
    values: list[tuple[str, int]]  # the names of arguments that hold tensors, and the values of those
    live: set[str]  # the arguments whose values depend on the input and matter

    @staticmethod
    def of(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> "Call":
        """A call; which values its tensors are is not known yet."""
        facts = schema(func)
        arguments = {**facts.defaults, **dict(zip(facts.parameters, args, strict=False)), **kwargs}
        return Call(func, args, kwargs, facts, arguments, [], set())

    def simplified(self) -> "Call":
        """The same call of a simpler operation: RReLU in eval mode is a leaky ReLU."""
        a = self.arguments
        if self.key != "rrelu_with_noise" or a["training"]:
            return self
        leaky = aten.leaky_relu_.default if self.schema.twin else aten.leaky_relu.default
        return Call.of(leaky, (a["self"], (a["lower"] + a["upper"]) / 2), {})

    def run(self) -> Any:
        """What torch makes of it."""
        return self.func(*self.args, **self.kwargs)

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def key(self) -> str:
        return self.schema.key

    @property
    def written(self) -> list[Tensor]:
        """The tensors that it writes into."""
        return [t for name in self.schema.written for t in tensors(self.arguments.get(name))]

    @property
    def writes_entries(self) -> bool:
        """Whether it writes into single entries of its first argument, or of a copy with the same strides."""
        return (self.schema.twin is not None and self.name not in ("fill", "zero")) or self.name in _KEEPS_STRIDES

    @property
    def random(self) -> bool:
        """Whether it draws random numbers."""
        return self.schema.random and self.arguments.get("dropout_p") != 0

    @property
    def reads(self) -> bool:
        """Whether it carries values back into Python or into a shape."""
        if self.name in _READS or "indices" not in self.live:
            return self.name in _READS
        return any(t.dtype is torch.bool for t in tensors(self.arguments["indices"]))

    def side_effect_free(self) -> tuple[Any, Any, Any]:
        """The operation so that it means the same for any memory layout and dtype, without gradients cut."""
        if self.key in ("view", "_unsafe_view"):
            return aten.reshape.default, self.args, self.kwargs
        if self.key in ("detach", "lift_fresh", "lift"):
            return aten.alias.default, self.args[:1], {}
        kept = {name: a for name, a in self.kwargs.items() if name not in ("memory_format", "sparse_grad")}
        return self.func, self.args, kept

    def out_of_place(self) -> tuple[Any, Any, Any]:
        """The operation that returns what an in-place one writes."""
        target = self.arguments["self"]
        if self.key in ("copy", "fill.Tensor"):
            source = self.arguments["src" if self.name == "copy" else "value"]
            if source.dtype == target.dtype:
                return aten.expand.default, (source, list(target.shape)), {}
            return aten._to_copy.default, (source.expand(target.shape),), {"dtype": target.dtype}
        return self.schema.twin, self.args, self.kwargs


def tensors(argument: Any) -> Sequence[Tensor]:
    """The tensors in an argument."""
    if isinstance(argument, Tensor):  # the usual case
        return (argument,)
    return [tensor for part in argument for tensor in tensors(part)] if isinstance(argument, LISTS) else ()


def overlaps_itself(tensor: Tensor) -> bool:
    """Whether entries of a tensor share memory, but for those that `expand` repeats: torch sees to these itself."""
    sides = sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1)
    if not tensor.numel() or any(stride == 0 for stride, _ in sides):
        return False
    reach, apart = 0, True
    for stride, size in sides:
        apart, reach = apart and stride > reach, reach + stride * (size - 1)
    if apart:  # the usual case: every stride goes beyond all that smaller ones reach
        return False
    places = torch.arange(reach + 1).as_strided(tensor.shape, tensor.stride())
    return len(places.unique()) < tensor.numel()
