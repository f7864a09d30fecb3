"""Watches a forward pass operation by operation and writes it down as a program without side effects."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.nn.modules import activation as activation_modules
from torch.nn.modules import pooling as pooling_modules
from torch.utils._python_dispatch import TorchDispatchMode

from regionscope.tracing import activations, operations
from regionscope.tracing.activations import Activation
from regionscope.tracing.decompositions import INDICES, PLAYED, RandomSlopes
from regionscope.tracing.operations import Call, aten, returns_several, side_effect_free, tensors
from regionscope.tracing.program import Step, Value, leaves


class UnsupportedModel(ValueError):
    """The model cannot be followed, or is not piecewise linear; the message names the module and says what to do."""


@dataclass(frozen=True)
class Mark:
    """A site as it was met; `preactivation` and `result` are the numbers of the values that enter and leave it."""

    name: str
    activation: Activation
    layer: int
    preactivation: int
    result: int


@dataclass
class Storage:
    """A piece of memory: the tensor that spans it, its value now, and how often it was written."""

    owner: Tensor
    value: int
    external: bool  # it was there before the forward pass
    writes: int = 0


@dataclass
class Tournament:
    """The operation being played in rounds."""

    kind: str
    name: str
    layer: int
    rounds: int = 0


class Recorder(TorchDispatchMode):
    """Records every aten operation while it is entered.

    A tensor is known by the memory it lies in, so that views, in-place writes and `.data` keep their meaning: a write
    gives the memory a new value, and a tensor that shares the memory is read from there. A value is `live` if it
    depends on the input. An operation on live values must be affine or piecewise linear, or it is refused while it
    happens, so that the traceback points at the line of the model.
    """

    def __init__(self, paths: dict[int, str], *, allow_smooth: bool) -> None:
        super().__init__()
        self.paths = paths  # id of a module -> its path
        self.allow_smooth = allow_smooth
        self.steps: list[Step] = []
        self.shapes: list[tuple[int, ...]] = []  # of every value, as are the next two
        self.live: list[bool] = []
        self.layers: list[int] = []
        self.constants: dict[int, Tensor] = {}
        self.marks: list[Mark] = []
        self.winners: dict[str, int] = {}  # name of a tournament -> value that says who won
        self.piecewise_linear = True
        self.calling: list[torch.nn.Module] = []
        self.tournament: Tournament | None = None
        self.unseen = False  # while something is computed that is not part of the model
        self.storages: dict[int, Storage] = {}
        self.values: dict[
            int, tuple[int, int]
        ] = {}  # id of a tensor -> its value, and the writes to its memory by then
        self.kept: list[Tensor] = []  # alive, so that no id or address comes twice
        self.contents: list[
            tuple[Tensor, Tensor]
        ] = []  # tensors of the model that were written to, and a copy from before

    @contextmanager
    def recording(self, x: Tensor) -> Iterator[None]:
        """Record what happens to x; afterwards the model's own tensors hold what they held before."""
        self.know(x, self.new_value(x, live=True))
        try:
            with torch.no_grad(), self:
                yield
        finally:
            with torch.no_grad():
                for tensor, content in reversed(self.contents):
                    tensor.copy_(content)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._can_decompose():  # made of other operations, and not yet taken apart
            with self:
                return func.decompose(*args, **(kwargs or {}))
        call = self.understood(func, args, kwargs or {})
        if call.key in PLAYED and call.live == {"self"}:
            return self.play(call)
        self.check_pure(call)
        if call.key in activations.PAIRWISE and call.live:
            return self.compete(call)
        activation = self.activation(call) if call.live and not self.unseen else None
        entering = self.value(call.arguments["self"]) if activation else 0
        result = self.perform(call)
        if activation is not None:
            self.mark(activation, entering, result)
        return result

    def understood(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Call:
        parameters = func._schema.arguments
        arguments = {p.name: p.default_value for p in parameters if p.has_default_value()}
        arguments |= dict(zip((p.name for p in parameters), args, strict=False)) | kwargs
        live = {name for name, a in arguments.items() if any(self.live[self.value(t)] for t in tensors(a))}
        return Call(func, args, kwargs, arguments, live)

    def check_pure(self, call: Call) -> None:
        if torch.Tag.nondeterministic_seeded in call.func.tags and call.arguments.get("dropout_p") != 0:
            self.refuse(call, "draws random numbers; call model.eval(), or keep the noise out of forward")
        if call.arguments.get("training") and call.arguments.get("running_mean") is not None:
            self.refuse(call, "is batch norm in train mode, which mixes the points of a batch; call model.eval()")
        if call.live and call.writes and call.twin is None:
            self.refuse(call, "writes into a tensor given as out=; assign the result instead")

    def activation(self, call: Call) -> Activation | None:
        """The activation that an operation on live values applies, None if it is no site, refused if it is unknown."""
        if call.shape_only or operations.is_affine(call):
            return None
        try:
            found = activations.activation(call.name, call.arguments) if call.live == {"self"} else None
        except ValueError as error:
            self.refuse(call, str(error), leave_out=True)
        if found is not None and not found.smooth:
            return found if found.breakpoints else None
        if call.name in operations.READS:
            self.refuse(call, operations.why_not(call.name))
        if not self.allow_smooth:
            self.refuse(call, "is smooth" if found else operations.why_not(call.name), leave_out=True)
        self.piecewise_linear = False
        return found

    # sites

    def mark(self, activation: Activation, entering: int, result: Tensor | Sequence[Tensor]) -> None:
        layer, name = self.layers[entering] + 1, self.site_name(activation.kind)
        if self.tournament is not None:
            self.tournament.rounds += 1
            layer, name = self.tournament.layer, f"{self.tournament.name}/{self.tournament.rounds}"
        leaving = [self.value(tensor) for tensor in tensors(result)]
        self.marks.append(Mark(name, activation, layer, entering, leaving[0]))
        for value in leaving:
            self.layers[value] = layer

    def site_name(self, kind: str) -> str:
        """The module's path, the kind unless the module is just that, and the number of its earlier calls."""
        module = type(self.calling[-1]).__module__ if self.calling else ""
        own = module in (activation_modules.__name__, pooling_modules.__name__)
        name = self.place() if own else ".".join(filter(None, [self.place(), kind]))
        calls = {mark.name.split("/")[0] for mark in self.marks}
        return f"{name}:{sum(call.rpartition(':')[0] == name for call in calls)}"

    def compete(self, call: Call) -> Tensor:
        """max(a, b) or min(a, b): a site whose unit is a - b."""
        a, b = call.arguments["self"], call.arguments["other"]
        (entering,) = self.add(aten.sub.Tensor, (a, b), {}, [a - b], live=True)
        result: Tensor = self.perform(call)
        kind = self.tournament.kind if self.tournament else activations.PAIRWISE[call.key]
        self.mark(activations.pairwise(kind), entering, result)
        return result

    def play(self, call: Call) -> Any:
        """An operation in terms of simpler ones; its rounds are sites of the same layer."""
        kind, simpler = PLAYED[call.key]
        x = call.arguments["self"]
        expected = x if call.writes else tensors(call.func(*call.args, **call.kwargs))[0]
        name = self.site_name(kind)
        self.tournament = Tournament(kind, name, self.layers[self.value(x)] + 1)
        try:
            with self:
                winner = simpler(call.arguments, tuple(expected.shape))
        except RandomSlopes as error:
            self.refuse(call, str(error))
        finally:
            self.tournament = None
        if not call.writes and not torch.equal(winner, expected):
            self.refuse(call, "could not be played in rounds of two")
        if call.twin is not None:  # in place
            self.write(x, self.value(winner))
            return x.copy_(winner)
        if call.several:
            indices = self.perform(call)[1]
            self.winners[name] = self.value(indices)
            return winner, indices
        if call.key in INDICES:
            self.unseen = True
            with self:
                self.winners[name] = self.value(INDICES[call.key](call.arguments))
            self.unseen = False
        return winner

    # values

    def value(self, tensor: Tensor) -> int:
        """The number of the value that a tensor has now."""
        storage = self.storages.get(address(tensor))
        if storage is None:
            return self.constant(tensor)
        value, writes = self.values.get(id(tensor), (-1, -1))
        if writes == storage.writes:
            return value
        if storage.external and not storage.writes:  # another view of the model's memory
            return self.constant(tensor)
        if geometry(tensor) == geometry(storage.owner):
            value = storage.value
        else:  # seen through .data, or written through another view
            flat, index = self.flattened(storage.value, storage.owner), self.positions(tensor, storage.owner)
            live = self.live[storage.value]
            (value,) = self.add(aten.index.Tensor, (flat, [index]), {}, [tensor], live=live)
        self.know(tensor, value)
        return value

    def new_value(self, tensor: Any, *, live: bool, layer: int = 0) -> int:
        self.shapes.append(tuple(tensor.shape) if isinstance(tensor, Tensor) else ())
        self.live.append(live)
        self.layers.append(layer)
        return len(self.shapes) - 1

    def know(self, tensor: Tensor, value: int, *, external: bool = False) -> None:
        self.kept.append(tensor)
        storage = self.storages.setdefault(address(tensor), Storage(tensor, value, external))
        self.values[id(tensor)] = (value, storage.writes)

    def constant(self, tensor: Tensor) -> int:
        value = self.new_value(tensor, live=False)
        self.constants[value] = tensor
        self.know(tensor, value, external=True)
        return value

    def write(self, tensor: Tensor, value: int) -> None:
        """From now on this part of the memory holds this value."""
        storage = self.storages[address(tensor)]
        if storage.external and self.live[value]:
            self.refuse(None, "forward writes input-dependent values into a tensor that outlives the call")
        if geometry(tensor) != geometry(storage.owner):
            live = self.live[value] or self.live[storage.value]
            flat, index = self.flattened(storage.value, storage.owner), self.positions(tensor, storage.owner)
            put = (flat, [index], Value(value))
            (written,) = self.add(aten.index_put.default, put, {}, [storage.owner.flatten()], live=live)
            shaped = (Value(written), list(storage.owner.shape))
            (storage.value,) = self.add(aten.reshape.default, shaped, {}, [storage.owner], live=live)
        else:
            storage.value = value
        storage.writes += 1
        self.know(tensor, value)

    def flattened(self, value: int, owner: Tensor) -> Value:
        """The memory of a tensor as one row of numbers."""
        arguments = (Value(value), [-1])
        return Value(self.add(aten.reshape.default, arguments, {}, [owner.flatten()], live=self.live[value])[0])

    def positions(self, tensor: Tensor, owner: Tensor) -> Value:
        """Where in the memory of its owner each entry of a tensor lies."""
        if not owner.is_contiguous() or owner.storage_offset():
            self.refuse(None, "forward writes into a view of a tensor that is not contiguous; write into a copy")
        places = torch.arange(owner.numel(), device=owner.device)
        (row,) = self.add(aten.arange.default, (owner.numel(),), {"device": owner.device}, [places], live=False)
        laid_out = places.as_strided(*geometry(tensor))
        return Value(self.add(aten.as_strided.default, (Value(row), *geometry(tensor)), {}, [laid_out], live=False)[0])

    # steps

    def perform(self, call: Call) -> Any:
        """Do the operation, and write it down without its side effects."""
        live = bool(call.live) and not call.shape_only
        written = call.written
        for tensor in written:
            self.value(tensor)
        self.contents += [(t, t.clone()) for t in written if self.storages[address(t)].external]
        if not call.writes:
            result = call.func(*call.args, **call.kwargs)
            results = list(result) if call.several else [result]
            numbers = self.add(*side_effect_free(call, result), results, live=live)
            for tensor, number in zip(results, numbers, strict=True):
                if isinstance(tensor, Tensor):
                    self.know(tensor, number)
            return result
        if call.twin is not None:
            (number,) = self.add(*operations.in_place(call), written, live=live)
            self.write(written[0], number)
            return call.func(*call.args, **call.kwargs)
        result = call.func(*call.args, **call.kwargs)
        for tensor in written:  # a state that the model keeps for itself: a constant of this pass
            number = self.new_value(tensor, live=False)
            self.constants[number] = tensor.clone()
            self.write(tensor, number)
        return result

    def add(self, func: Any, args: Any, kwargs: Any, results: Sequence[Any], *, live: bool) -> tuple[int, ...]:
        """Add a step; its results are as deep as the deepest live value they are made of."""
        arguments, options = tuple(map(self.referring, args)), {k: self.referring(a) for k, a in kwargs.items()}
        used = [a.index for a in leaves([arguments, list(options.values())]) if isinstance(a, Value)]
        layer = max((self.layers[i] for i in used if self.live[i]), default=0)
        numbers = tuple(self.new_value(t, live=live, layer=layer) for t in results)
        self.steps.append(Step(func, arguments, options, numbers, several=returns_several(func)))
        return numbers

    def referring(self, argument: Any) -> Any:
        if isinstance(argument, Tensor):
            return Value(self.value(argument))
        if isinstance(argument, list | tuple):
            return [self.referring(a) for a in argument]
        return argument

    # messages

    def place(self) -> str:
        """The path of the module being called."""
        return self.paths.get(id(self.calling[-1]), type(self.calling[-1]).__name__) if self.calling else ""

    def refuse(self, call: Call | None, why: str, *, leave_out: bool = False) -> NoReturn:
        place = self.place()
        where = f"module {place!r} ({type(self.calling[-1]).__name__})" if place else "the model's own forward"
        until = f"until={place!r} leaves this module and all that follows out; " if place else ""
        advice = f"; {until}{operations.SMOOTH_ADVICE}" if leave_out else ""
        raise UnsupportedModel(f"in {where}: {f'{call.func} ' if call else ''}{why}{advice}")


def address(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def geometry(tensor: Tensor) -> tuple[list[int], list[int], int]:
    return list(tensor.shape), list(tensor.stride()), int(tensor.storage_offset())
