"""Watches a forward pass at one point, operation by operation, and writes it down as a program without side effects."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.nn.modules import activation as activation_modules
from torch.nn.modules import pooling as pooling_modules
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from regionscope.tracing import activations, operations
from regionscope.tracing.activations import Activation
from regionscope.tracing.decompositions import INDICES, PLAYED, RandomSlopes
from regionscope.tracing.operations import Call, aten, returns_several, side_effect_free, tensors
from regionscope.tracing.program import Held
from regionscope.tracing.steps import Step, Value, indices


class UnsupportedModel(ValueError):
    """The model cannot be followed, or is not piecewise linear; the message names the module and says what to do."""


@dataclass(frozen=True)
class Mark:
    """A site as it was met; `entry` and `exit` are the numbers of the values that enter and leave it."""

    name: str
    activation: Activation
    layer: int
    entry: int
    exit: int
    tournament: str | None


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


@dataclass
class Fact:
    """What is known of a value: does it depend on the input, how many activations are behind it, may it be used."""

    shape: tuple[int, ...]
    live: bool
    layer: int = 0
    place: str = ""  # the operation that made it, and where
    forbidden: str = ""  # what it is made of that must not be used, if so
    state: str = ""  # the tensor of the model whose content it is after forward wrote into it


class Recorder(TorchDispatchMode):
    """Records every aten operation while it is entered.

    A tensor is known by the memory it lies in, so that views, in-place writes and `.data` keep their meaning: a write
    gives the memory a new value, and a tensor that shares the memory is read from there. A value is `live` if it
    depends on the input. An operation on live values must be affine or piecewise linear, or it is refused while it
    happens, so that the traceback points at the line of the model.
    """

    def __init__(self, paths: dict[int, str], held: dict[int, Held], *, allow_smooth: bool, keep: bool = False) -> None:
        super().__init__()
        self.paths = paths  # id of a module -> its path
        self.named = held  # id of a tensor of the model -> where it is held
        self.allow_smooth = allow_smooth
        self.steps: list[Step] = []
        self.facts: list[Fact] = []  # of every value
        self.seen: dict[int, Tensor] | None = {} if keep else None  # what live values were
        self.constants: dict[int, Tensor | Held] = {}
        self.marks: list[Mark] = []
        self.winners: dict[str, int] = {}  # name of a tournament -> value that says who won
        self.calls: Counter[str] = Counter()
        self.smooth: set[int] = set()  # values made by operations that are not piecewise linear
        self.calling: list[torch.nn.Module] = []
        self.tournament: Tournament | None = None
        self.unseen = False  # while something is computed that is not part of the model
        self.storages: dict[int, Storage] = {}
        # id of a tensor -> its value, and the writes to its memory by then
        self.values: dict[int, tuple[int, int]] = {}
        self.kept: list[Tensor] = []  # alive, so that no id or address comes twice
        # tensors of the model that were written to, and a copy from before
        self.contents: list[tuple[Tensor, Tensor]] = []

    @contextmanager
    def recording(self, x: Tensor) -> Iterator[None]:
        """Record what happens to x; afterwards the model's own tensors hold what they held before."""
        self.know(x, self.new_value(x, live=True))
        try:
            with torch.no_grad(), Readers(self), self:
                yield
        finally:
            with torch.no_grad():
                for tensor, content in reversed(self.contents):
                    tensor.copy_(content)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Whether torch hides this class from its compiler; for that it would import it, for seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if is_composite(func):  # made of other operations, and not yet taken apart
            with self:
                return func.decompose(*args, **(kwargs or {}))
        call = self.understood(func, args, kwargs or {})
        if torch.Tag.inplace_view in func.tags:  # the tensor looks at its memory in another way from now on
            del self.values[id(args[0])]
            return func(*args, **call.kwargs)
        if call.key in PLAYED and call.live == {"self"}:
            return self.play(call)
        self.check_pure(call)
        if call.key in activations.PAIRWISE and call.live:
            return self.compete(call)
        activation, outputs, smooth = self.activation(call) if call.live and not self.unseen else (None, None, False)
        entering = self.value(call.arguments["self"]) if activation else 0
        result = self.perform(call, outputs, self.layer_behind(entering) if activation else 0)
        if activation is not None:
            self.mark(activation, entering, result)
        if smooth:
            self.smooth.update(map(self.value, tensors(result)))
        return result

    def understood(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Call:
        parameters = func._schema.arguments
        arguments = {p.name: p.default_value for p in parameters if p.has_default_value()}
        arguments |= dict(zip((p.name for p in parameters), args, strict=False)) | kwargs
        call = Call(func, args, kwargs, arguments, set())
        ignored = operations.IGNORED.get(call.name, frozenset())
        for name, argument in arguments.items():
            for tensor in tensors(argument):
                if tensor.layout is not torch.strided or tensor.is_quantized:
                    self.refuse(
                        call, f"takes a tensor that is not dense ({tensor.layout}); convert it with .to_dense()"
                    )
                fact = self.facts[self.value(tensor)]
                if fact.live and name not in ignored:
                    call.live.add(name)
        return call

    def check_pure(self, call: Call) -> None:
        if call.live and call.random:
            self.refuse(call, f"draws random numbers; {operations.RANDOM_ADVICE}")
        if call.reads and (why := self.forbidden(call)):
            self.refuse(call, f"reads {why}")
        if call.arguments.get("training") and call.arguments.get("running_mean") is not None:
            self.refuse(call, "is batch norm in train mode, which mixes the points of a batch; call model.eval()")
        if call.live and call.writes and call.twin is None:
            self.refuse(call, "writes into a tensor given as out=; assign the result instead")

    def activation(self, call: Call) -> tuple[Activation | None, int | None, bool]:
        """The activation that an operation on live values applies, None if it is no site, refused if it is unknown.

        Also how many of the outputs may be used, None for all, and whether they are not piecewise linear.
        """
        affine = operations.entry(call)
        if affine is not None:
            return None, affine.outputs, False
        found = None
        if call.live == {"self"} and not call.arguments["self"].is_complex():
            try:
                found = activations.activation(call.key, call.arguments)
            except ValueError as error:
                self.refuse(call, str(error), leave_out=True)
        if found is not None and not found.smooth:
            return (found if found.breakpoints else None), 1, False
        if call.reads:
            self.refuse(call, operations.why_not(call))
        if not self.allow_smooth:
            self.refuse(call, "is not piecewise linear" if found else operations.why_not(call), leave_out=True)
        return found, None, True

    # sites

    def layer_behind(self, entering: int) -> int:
        """The layer of a site that this value enters."""
        return self.tournament.layer if self.tournament else self.facts[entering].layer + 1

    def mark(self, activation: Activation, entering: int, result: Tensor | Sequence[Tensor]) -> None:
        layer, playing = self.layer_behind(entering), self.tournament
        if 0 in self.facts[entering].shape:  # no units
            return
        if playing is None:
            name, tournament = self.site_name(activation.kind), None
        else:
            playing.rounds += 1
            name, tournament = f"{playing.name}/{playing.rounds}", playing.name
        leaving = self.value(tensors(result)[0])
        self.marks.append(Mark(name, activation, layer, entering, leaving, tournament))

    def site_name(self, kind: str) -> str:
        """The module's path, the kind unless the module is just that, and the number of earlier sites so called."""
        module = type(self.calling[-1]).__module__ if self.calling else ""
        own = module in (activation_modules.__name__, pooling_modules.__name__)
        name = self.place() if own else ".".join(filter(None, [self.place(), kind]))
        self.calls[name] += 1
        return f"{name}:{self.calls[name] - 1}"

    def compete(self, call: Call) -> Tensor:
        """max(a, b) or min(a, b): a site whose unit is a - b."""
        a, b = call.arguments["self"], call.arguments["other"]
        (entering,) = self.add(aten.sub.Tensor, (a, b), {}, [a - b], live=True)
        result: Tensor = self.perform(call, None, self.layer_behind(entering))
        kind = self.tournament.kind if self.tournament else activations.PAIRWISE[call.key]
        self.mark(activations.pairwise(kind), entering, result)
        return result

    def play(self, call: Call) -> Any:
        """An operation in terms of simpler ones; its rounds are sites of the same layer."""
        kind, simpler = PLAYED[call.key]
        x = call.arguments["self"]
        expected = x if call.writes else tensors(call.func(*call.args, **call.kwargs))[0]
        name = self.site_name(kind)
        self.tournament = Tournament(kind, name, self.facts[self.value(x)].layer + 1)
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
            positions = self.perform(call)[1]
            self.winners[name] = self.value(positions)
            self.restrict(self.winners[name], f"the positions that {call.func} returns, which jump")
            return winner, positions
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
        value = storage.value if geometry(tensor) == geometry(storage.owner) else self.read(tensor, storage)
        self.know(tensor, value)
        return value

    def new_value(self, tensor: Any, *, live: bool, layer: int = 0, place: str = "") -> int:
        self.facts.append(Fact(tuple(tensor.shape) if isinstance(tensor, Tensor) else (), live, layer, place))
        number = len(self.facts) - 1
        if live and self.seen is not None and isinstance(tensor, Tensor):
            self.seen[number] = tensor.clone()
        return number

    def know(self, tensor: Tensor, value: int, *, external: bool = False) -> None:
        self.kept.append(tensor)
        storage = self.storages.setdefault(address(tensor), Storage(tensor.detach(), value, external))
        self.values[id(tensor)] = (value, storage.writes)

    def constant(self, tensor: Tensor) -> int:
        """A tensor that was there before: the model's own, or one that forward made outside of torch."""
        value = self.new_value(tensor, live=False)
        self.constants[value] = self.named.get(id(tensor), tensor)
        self.know(tensor, value, external=True)
        return value

    def fixed(self, tensor: Tensor) -> int:
        """A value with the content that a tensor has now."""
        value = self.new_value(tensor, live=False)
        self.constants[value] = tensor.clone()
        return value

    # memory

    def read(self, tensor: Tensor, storage: Storage) -> int:
        """What a tensor sees of memory that it shares with another: through .data, as_strided, or after a write."""
        live = self.facts[storage.value].live
        flat, places = self.flattened(storage.value, storage.owner), self.positions(tensor, storage.owner)
        index = self.fixed(places.flatten())
        (taken,) = self.add(aten.index_select.default, (flat, 0, Value(index)), {}, [tensor.flatten()], live=live)
        (value,) = self.add(aten.reshape.default, (Value(taken), list(tensor.shape)), {}, [tensor], live=live)
        return value

    def write(self, tensor: Tensor, value: int) -> None:
        """From now on this part of the memory holds this value."""
        storage = self.storages[address(tensor)]
        if storage.external and self.facts[value].live:
            self.refuse(None, "forward writes input-dependent values into a tensor that outlives the call")
        if geometry(tensor) == geometry(storage.owner):
            storage.value = value
        else:
            storage.value = self.overwritten(storage, tensor, value)
        storage.writes += 1
        self.know(tensor, value)

    def overwritten(self, storage: Storage, tensor: Tensor, value: int) -> int:
        """The owner's value with the places of a tensor taken from another value: both in a row, then chosen from."""
        owner, places = storage.owner, self.positions(tensor, storage.owner)
        live = self.facts[value].live or self.facts[storage.value].live
        old, new = self.flattened(storage.value, owner), self.flattened(value, tensor)
        chosen = torch.arange(owner.numel(), device=owner.device)
        chosen[places.flatten()] = owner.numel() + torch.arange(tensor.numel(), device=owner.device)
        both = [torch.cat([owner.flatten(), tensor.flatten()])]
        (row,) = self.add(aten.cat.default, ([old, new],), {}, both, live=live)
        index = Value(self.fixed(chosen))
        (row,) = self.add(aten.index_select.default, (Value(row), 0, index), {}, [owner.flatten()], live=live)
        (made,) = self.add(aten.reshape.default, (Value(row), list(owner.shape)), {}, [owner], live=live)
        return made

    def flattened(self, value: int, tensor: Tensor) -> Value:
        """A value as one row of numbers."""
        live = self.facts[value].live
        return Value(self.add(aten.reshape.default, (Value(value), [-1]), {}, [tensor.flatten()], live=live)[0])

    def positions(self, tensor: Tensor, owner: Tensor) -> Tensor:
        """Where among the entries of the owner, in their order, each entry of a tensor lies."""
        if tensor.dtype != owner.dtype:
            self.refuse(None, "forward reads the bits of a tensor as another dtype")
        memory = torch.full((owner.untyped_storage().nbytes() // owner.element_size(),), -1, device=owner.device)
        memory.as_strided(*geometry(owner)).copy_(torch.arange(owner.numel(), device=owner.device).view(owner.shape))
        places = memory.as_strided(*geometry(tensor))
        if (places < 0).any():
            self.refuse(None, "forward reads memory that was never written; start from a tensor of its own")
        return places

    # steps

    def perform(self, call: Call, outputs: int | None = None, layer: int = 0) -> Any:
        """Do the operation, and write it down without its side effects.

        Only so many outputs may be used later; they are at least as deep as a site of this layer.
        """
        live, written = bool(call.live), call.written
        for tensor in written:
            self.value(tensor)
        self.contents += [(t, t.clone()) for t in written if self.storages[address(t)].external]
        if not call.writes:
            return self.pure(call, live, outputs, layer)
        forbidden = self.forbidden(call)
        if call.twin is not None:
            target = call.arguments["self"]
            if live or self.independent(call):
                (number,) = self.add(*operations.in_place(call), [target], live=live, layer=layer)
                result = call.func(*call.args, **call.kwargs)
                if live and self.seen is not None:
                    self.seen[number] = target.clone()
            else:
                result = call.func(*call.args, **call.kwargs)
                number = self.fixed(target)
            self.facts[number].state, self.facts[number].forbidden = self.state_of(target), forbidden
            self.write(target, number)
            return result
        result = call.func(*call.args, **call.kwargs)
        for tensor in written:  # a state that the model keeps for itself
            number = self.fixed(tensor)
            self.facts[number].state, self.facts[number].forbidden = self.state_of(tensor), forbidden
            self.write(tensor, number)
        return result

    def pure(self, call: Call, live: bool, outputs: int | None, layer: int) -> Any:
        forbidden = self.forbidden(call)
        result = call.func(*call.args, **call.kwargs)
        results = list(result) if call.several else [result]
        if live and any(t.is_complex() for t in tensors(results)):
            self.refuse(call, "makes complex numbers; write it with their real and imaginary parts")
        if not live and not (tensors(list(call.arguments.values())) and self.independent(call)):
            # made anew, or only the shape of a live tensor mattered
            blank = call.name in ("empty_like", "new_empty", "new_empty_strided")
            numbers = [self.fixed(torch.zeros_like(t) if blank else t) for t in results]
        elif call.name == "as_strided" and live:
            numbers = [self.read(result, self.storages[address(result)])]
        else:
            numbers = list(self.add(*side_effect_free(call), results, live=live, layer=layer, place=f"{call.func}"))
        for i, (tensor, number) in enumerate(zip(results, numbers, strict=True)):
            if isinstance(tensor, Tensor):
                self.know(tensor, number)
            self.facts[number].forbidden = forbidden
            if live and outputs is not None and i >= outputs:
                self.restrict(number, f"output {i} of {call.func}, which is not affine")
        return result

    def independent(self, call: Call) -> bool:
        """Whether no argument depends on the input, even by its shape."""
        return not any(self.facts[self.value(t)].live for a in call.arguments.values() for t in tensors(a))

    def forbidden(self, call: Call) -> str:
        """What the results of an operation are made of that must not be used, if so."""
        if call.random:
            return f"random numbers that {call.func} draws{self.where()}; {operations.RANDOM_ADVICE}"
        ignored = operations.IGNORED.get(call.name, frozenset())
        mattering = tensors([a for name, a in call.arguments.items() if name not in ignored])
        return next((why for t in mattering if (why := self.facts[self.value(t)].forbidden)), "")

    def restrict(self, value: int, why: str) -> None:
        """A value that is not piecewise linear must not be used, unless such are allowed."""
        if self.allow_smooth:
            self.smooth.add(value)
        else:
            self.facts[value].forbidden = f"{why}; {operations.SMOOTH_ADVICE}"

    def state_of(self, tensor: Tensor) -> str:
        """The name of the model's tensor that this is a part of, empty if it is none of the model's."""
        if not self.storages[address(tensor)].external:
            return ""
        held = self.named.get(id(tensor))
        return repr(held.path) if held else f"a tensor of shape {tuple(tensor.shape)}"

    def add(
        self, func: Any, args: Any, kwargs: Any, results: Sequence[Any], *, live: bool, layer: int = 0, place: str = ""
    ) -> tuple[int, ...]:
        """Add a step; its results are as deep as the deepest live value they are made of, or as the given layer."""
        arguments, options = tuple(map(self.referring, args)), {k: self.referring(a) for k, a in kwargs.items()}
        used = indices([arguments, list(options.values())])
        layer = max([layer, *(self.facts[i].layer for i in used if self.facts[i].live)])
        place = f"{place or func}{self.where()}"
        numbers = tuple(self.new_value(t, live=live, layer=layer, place=place) for t in results)
        for number in numbers:
            self.facts[number].forbidden = next((why for i in used if (why := self.facts[i].forbidden)), "")
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

    def where(self) -> str:
        return f" in module {place!r}" if (place := self.place()) else ""

    def refuse(self, call: Call | None, why: str, *, leave_out: bool = False) -> NoReturn:
        place = self.place()
        where = f"module {place!r} ({type(self.calling[-1]).__name__})" if place else "the model's own forward"
        path = self.paths.get(id(self.calling[-1])) if self.calling else None
        until = f"until={path!r} leaves this module and all that follows out; " if path else ""
        advice = f"; {until}{operations.SMOOTH_ADVICE}" if leave_out else ""
        raise UnsupportedModel(f"in {where}: {f'{call.func} ' if call else ''}{why}{advice}")


READERS = (Tensor.numpy, Tensor.tolist, Tensor.__array__, Tensor.data_ptr, Tensor.__dlpack__)


class Readers(TorchFunctionMode):
    """Sees what torch's operations do not: values that leave for NumPy and Python."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in READERS:
            name, fact = getattr(func, "__name__", str(func)), self.recorder.facts[self.recorder.value(args[0])]
            if fact.live:
                self.recorder.refuse(None, f".{name}() reads input-dependent values: they are computed outside torch")
            if fact.forbidden:
                self.recorder.refuse(None, f".{name}() reads {fact.forbidden}")
        return func(*args, **(kwargs or {}))


@cache
def is_composite(func: Any) -> bool:
    """Whether torch itself computes an operation by others; a decomposition in Python may round in another way."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


def address(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def geometry(tensor: Tensor) -> tuple[list[int], list[int], int]:
    return list(tensor.shape), list(tensor.stride()), int(tensor.storage_offset())
