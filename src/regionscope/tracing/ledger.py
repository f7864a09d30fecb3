"""What is written down of a forward pass: its steps, what is known of every value, and which memory holds which.

A tensor is known by the memory it lies in, so that views, in-place writes and `.data` keep their meaning: a write gives
the memory a new value, and a tensor that shares the memory is read from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor, nn

from regionscope.tracing.program import Held
from regionscope.tracing.schemas import aten, schema
from regionscope.tracing.steps import LISTS, Step, Value


class UnsupportedModel(ValueError):
    """The model cannot be followed, or is not piecewise linear; the message names the module and says what to do."""


class Calling:
    """The modules that are being called, the innermost last."""

    def __init__(self, paths: dict[int, str]) -> None:
        self.paths = paths  # id of a module -> its path
        self.modules: list[nn.Module] = []

    @property
    def place(self) -> str:
        """The path of the innermost."""
        return self.paths.get(id(self.modules[-1]), type(self.modules[-1]).__name__) if self.modules else ""

    @property
    def where(self) -> str:
        return f" in module {place!r}" if (place := self.place) else ""

    def refuse(self, why: str, advice: str = "") -> NoReturn:
        """`advice` comes with the offer to leave the innermost module out."""
        place = self.place
        where = f"module {place!r} ({type(self.modules[-1]).__name__})" if place else "the model's own forward"
        path = self.paths.get(id(self.modules[-1])) if self.modules else None
        until = f"rs.trace(model, x, until={path!r}) leaves this module and all that follows out, " if path else ""
        raise UnsupportedModel(f"in {where}: {why}{f'; {until}{advice}' if advice else ''}")


@dataclass
class _Fact:
    """What is known of a value: does it depend on the input, how many activations are behind it, may it be used."""

    shape: tuple[int, ...]
    live: bool
    layer: int = 0
    place: str = ""  # the operation that made it, and where
    forbidden: str = ""  # what it is made of that must not be used, if so
    state: str = ""  # the tensor of the model whose content it is after forward wrote into it


@dataclass
class _Storage:
    """A piece of memory: the tensor that spans it, its value now, and how often it was written."""

    owner: Tensor
    value: int
    external: bool  # it was there before the forward pass
    writes: int = 0


class _Known(NamedTuple):
    """The value that a tensor had when its memory had been written so often."""

    value: int
    writes: int
    storage: _Storage


class Ledger:
    """Steps, values and memory of one forward pass, as they come to be."""

    def __init__(self, calling: Calling, held: dict[int, Held], *, keep: bool) -> None:
        self.calling = calling
        self.held = held  # id of a tensor of the model -> where it is held
        self.steps: list[Step] = []
        self.facts: list[_Fact] = []  # of every value
        self.seen: dict[int, Tensor] | None = {} if keep else None  # what live values were
        self.constants: dict[int, Tensor | Held] = {}
        self._storages: dict[int, _Storage] = {}
        self._known: dict[int, _Known] = {}  # by the id of a tensor
        self._alive: list[Tensor] = []  # so that no id or address comes twice

    # values

    def value(self, tensor: Tensor) -> int:
        """The number of the value that a tensor has now."""
        storage = self._storages.get(_address(tensor))
        if storage is None:
            return self._constant(tensor)
        known = self._known.get(id(tensor))
        if known is not None and known.storage is storage and known.writes == storage.writes:
            return known.value
        if storage.external and not storage.writes:  # another view of the model's memory
            return self._constant(tensor)
        value = storage.value if _spans(tensor, storage.owner) else self.read(tensor)
        self.know(tensor, value)
        return value

    def fact(self, tensor: Tensor) -> _Fact:
        return self.facts[self.value(tensor)]

    def new(self, tensor: Any, *, live: bool, layer: int = 0, place: str = "") -> int:
        """The number of a new value, that of a tensor."""
        self.facts.append(_Fact(tuple(tensor.shape) if isinstance(tensor, Tensor) else (), live, layer, place))
        number = len(self.facts) - 1
        if live:
            self.look_again(number, tensor)
        return number

    def look_again(self, value: int, tensor: Any) -> None:
        """A value is what this tensor holds now."""
        if self.seen is not None and isinstance(tensor, Tensor):
            self.seen[value] = tensor.clone()

    def know(self, tensor: Tensor, value: int, *, external: bool = False) -> None:
        """From now on a tensor has this value."""
        self._alive.append(tensor)
        storage = self._storages.get(address := _address(tensor))
        if storage is None:
            storage = self._storages[address] = _Storage(tensor.detach(), value, external)
        self._known[id(tensor)] = _Known(value, storage.writes, storage)

    def forget(self, tensor: Tensor) -> None:
        """A tensor looks at its memory in another way from now on."""
        del self._known[id(tensor)]

    def _constant(self, tensor: Tensor) -> int:
        """A tensor that was there before: the model's own, or one that forward made outside of torch."""
        value = self.new(tensor, live=False)
        self.constants[value] = self.held.get(id(tensor), tensor)
        self.know(tensor, value, external=True)
        return value

    def fixed_value(self, tensor: Tensor) -> int:
        """A value with the content that a tensor has now."""
        value = self.new(tensor, live=False)
        self.constants[value] = tensor.clone()
        return value

    # memory

    def external(self, tensor: Tensor) -> bool:
        """Whether a tensor, which has a value, lies in memory that outlives the forward pass."""
        return self._storages[_address(tensor)].external

    def state_name(self, tensor: Tensor) -> str:
        """The name of the model's tensor that this is a part of, empty if it is none of the model's."""
        if not self.external(tensor):
            return ""
        held = self.held.get(id(tensor))
        return repr(held.path) if held else f"a tensor of shape {tuple(tensor.shape)}"

    def read(self, tensor: Tensor) -> int:
        """What a tensor sees of memory that it shares with another: through .data, as_strided, or after a write."""
        storage = self._storages[_address(tensor)]
        live = self.facts[storage.value].live
        flat, places = self._flattened(storage.value, storage.owner), self._positions(tensor, storage.owner)
        index = self.fixed_value(places.flatten())
        (taken,) = self.add(aten.index_select.default, (flat, 0, Value(index)), {}, [tensor.flatten()], live=live)
        (value,) = self.add(aten.reshape.default, (Value(taken), list(tensor.shape)), {}, [tensor], live=live)
        return value

    def write(self, tensor: Tensor, value: int) -> None:
        """From now on this part of the memory holds this value."""
        storage = self._storages[_address(tensor)]
        if storage.external and self.facts[value].live:
            self.calling.refuse("forward writes input-dependent values into a tensor that outlives the call")
        if _spans(tensor, storage.owner):
            storage.value = value
        else:
            storage.value = self._overwritten(storage, tensor, value)
        storage.writes += 1
        self.know(tensor, value)

    def _overwritten(self, storage: _Storage, tensor: Tensor, value: int) -> int:
        """The owner's value with the places of a tensor taken from another value: both in a row, then chosen from."""
        owner, places = storage.owner, self._positions(tensor, storage.owner)
        live = self.facts[value].live or self.facts[storage.value].live
        old, new = self._flattened(storage.value, owner), self._flattened(value, tensor)
        chosen = torch.arange(owner.numel(), device=owner.device)
        chosen[places.flatten()] = owner.numel() + torch.arange(tensor.numel(), device=owner.device)
        both = [torch.cat([owner.flatten(), tensor.flatten()])]
        (row,) = self.add(aten.cat.default, ([old, new],), {}, both, live=live)
        index = Value(self.fixed_value(chosen))
        (row,) = self.add(aten.index_select.default, (Value(row), 0, index), {}, [owner.flatten()], live=live)
        (made,) = self.add(aten.reshape.default, (Value(row), list(owner.shape)), {}, [owner], live=live)
        return made

    def _flattened(self, value: int, tensor: Tensor) -> Value:
        """A value as one row of numbers."""
        live = self.facts[value].live
        return Value(self.add(aten.reshape.default, (Value(value), [-1]), {}, [tensor.flatten()], live=live)[0])

    def _positions(self, tensor: Tensor, owner: Tensor) -> Tensor:
        """Where among the entries of the owner, in their order, each entry of a tensor lies."""
        if tensor.dtype != owner.dtype:
            self.calling.refuse("forward reads the bits of a tensor as another dtype")
        memory = torch.full((owner.untyped_storage().nbytes() // owner.element_size(),), -1, device=owner.device)
        memory.as_strided(*_layout(owner)).copy_(torch.arange(owner.numel(), device=owner.device).view(owner.shape))
        places = memory.as_strided(*_layout(tensor))
        if (places < 0).any():
            self.calling.refuse("forward reads memory that was never written; start from a tensor of its own")
        return places

    # steps

    def add(
        self, func: Any, args: Any, kwargs: Any, results: Sequence[Any], *, live: bool, layer: int = 0, place: str = ""
    ) -> tuple[int, ...]:
        """Add a step; its results are as deep as the deepest live value they are made of, or as the given layer."""
        arguments, options = tuple(map(self._reference, args)), {k: self._reference(a) for k, a in kwargs.items()}
        first = len(self.facts)
        numbers = tuple(range(first, first + len(results)))
        step = Step(func, arguments, options, numbers, several=schema(func).several)
        forbidden = ""
        for fact in [self.facts[i] for i in sorted(step.used)]:
            layer = max(layer, fact.layer) if fact.live else layer
            forbidden = forbidden or fact.forbidden
        place = f"{place or func}{self.calling.where}"
        for tensor in results:
            self.facts[self.new(tensor, live=live, layer=layer, place=place)].forbidden = forbidden
        self.steps.append(step)
        return numbers

    def _reference(self, argument: Any) -> Any:
        if isinstance(argument, Tensor):
            return Value(self.value(argument))
        if isinstance(argument, LISTS):
            return [self._reference(a) for a in argument]
        return argument


def _address(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _spans(tensor: Tensor, owner: Tensor) -> bool:
    """Whether a tensor sees the memory of another as that does: not so if it reads its bits as another dtype."""
    return tensor.dtype == owner.dtype and _layout(tensor) == _layout(owner)


def _layout(tensor: Tensor) -> tuple[list[int], list[int], int]:
    return list(tensor.shape), list(tensor.stride()), int(tensor.storage_offset())
