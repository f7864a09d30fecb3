"""Watches a forward pass at one point, operation by operation, and writes it down as a program without side effects."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.nn.modules import activation as activation_modules
from torch.nn.modules import pooling as pooling_modules
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from regionscope.tracing import activations, operations
from regionscope.tracing.activations import Activation
from regionscope.tracing.calls import Call, overlaps_itself, tensors
from regionscope.tracing.decompositions import INDICES, PLAYED
from regionscope.tracing.ledger import Calling, Ledger
from regionscope.tracing.network import Tournament
from regionscope.tracing.program import Held
from regionscope.tracing.schemas import aten, schema


@dataclass(frozen=True)
class Mark:
    """A site as it was met; `entry` and `exit` are the numbers of the values that enter and leave it."""

    name: str
    activation: Activation
    layer: int
    entry: int
    exit: int
    playing: "_Playing | None"

    @property
    def tournament(self) -> Tournament | None:
        """The one that it is a round of, as far as it is known by now."""
        return Tournament(self.playing.name, self.playing.winners) if self.playing else None


@dataclass
class _Playing:
    """The operation being played in rounds."""

    kind: str
    name: str
    layer: int
    rounds: int = 0
    winners: int | None = None


class Recorder(TorchDispatchMode):
    """Records every aten operation while it is entered.

    A value is `live` if it depends on the input. An operation on live values must be affine or piecewise linear, or it
    is refused while it happens, so that the traceback points at the line of the model.
    """

    def __init__(
        self,
        paths: dict[int, str],
        held: dict[int, Held],
        *,
        allow_smooth: bool,
        keep: bool = False,
        foreign: bool = True,
    ) -> None:
        super().__init__()
        self.allow_smooth = allow_smooth
        self.foreign = foreign  # the code may do things that torch's own modules do not
        self.calling = Calling(paths)
        self.ledger = Ledger(self.calling, held, keep=keep)
        self.marks: list[Mark] = []
        self.smooth: set[int] = set()  # values made by operations that are not piecewise linear
        # tensors of the model that were written to, and a copy from before
        self.contents: list[tuple[Tensor, Tensor]] = []
        # the operations in order, as the model calls them, each with the live values that it gives, -1 for others
        self.performed: list[tuple[Any, list[int]]] = []
        self._calls: Counter[str] = Counter()
        self._playing: _Playing | None = None
        self._unseen = False  # while something is computed that is not part of the model

    @contextmanager
    def recording(self, x: Tensor) -> Iterator[None]:
        """Record what happens to x; afterwards the model's own tensors hold what they held before."""
        self.ledger.know(x, self.ledger.new(x, live=True))
        try:
            with torch.no_grad(), _Readers(self._check_read) if self.foreign else nullcontext(), self:
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
        if schema(func).composite:  # made of other operations, and not yet taken apart
            with self:
                return func.decompose(*args, **(kwargs or {}))
        call = Call.of(func, args, kwargs or {}).simplified()
        self._look_up(call)
        result = self._done(call)
        if self._playing is None and not self._unseen:
            values, facts = map(self.ledger.value, tensors(result)), self.ledger.facts
            self.performed.append((func, [v if facts[v].live else -1 for v in values]))
        return result

    def _done(self, call: Call) -> Any:
        """What an operation gives, after it was written down."""
        if call.schema.moves_view:
            self.ledger.forget(call.args[0])
            return call.run()
        if call.writes_entries and any(map(overlaps_itself, tensors(call.arguments.get("self")))):
            self._refuse(call, "writes into a tensor whose entries share memory, as unfold makes them; clone it first")
        if call.key in PLAYED and call.live and call.live <= {"self", "min", "max"}:
            return self._play(call)
        self._check_pure(call)
        if call.key in activations.PAIRWISE and call.live:
            return self._compete(call)
        activation, outputs, smooth = self._activation(call) if call.live and not self._unseen else (None, None, False)
        entering = self.ledger.value(call.arguments["self"]) if activation else 0
        result = self._perform(call, outputs, self._layer_behind(entering) if activation else 0)
        if activation is not None:
            self._mark(activation, entering, result)
        if smooth:
            self.smooth.update(map(self.ledger.value, tensors(result)))
        return result

    def _look_up(self, call: Call) -> None:
        """Find out which values the call's tensors are, and which of them depend on the input."""
        ignored, facts = operations.IGNORED.get(call.name, frozenset()), self.ledger.facts
        for name, argument in call.arguments.items():
            for tensor in tensors(argument):
                self._check_dense(call, "takes", tensor)
                value = self.ledger.value(tensor)
                call.values.append((name, value))
                if facts[value].live and name not in ignored:
                    call.live.add(name)

    def _check_dense(self, call: Call, verb: str, tensor: Tensor) -> None:
        if tensor.layout is not torch.strided or tensor.is_quantized:
            self._refuse(call, f"{verb} a tensor that is not dense ({tensor.layout}); convert it with .to_dense()")

    def _check_read(self, name: str, tensor: Tensor) -> None:
        fact = self.ledger.fact(tensor)
        if fact.live:
            self.calling.refuse(f".{name}() reads input-dependent values: they are computed outside torch")
        if fact.forbidden:
            self.calling.refuse(f".{name}() reads {fact.forbidden}")

    def _check_pure(self, call: Call) -> None:
        if call.live and call.random:
            self._refuse(call, f"draws random numbers; {operations.RANDOM_ADVICE}")
        if call.reads and (why := self._forbidden(call)):
            self._refuse(call, f"reads {why}")
        if call.arguments.get("training") and call.arguments.get("running_mean") is not None:
            self._refuse(call, "is batch norm in train mode, which mixes the points of a batch; call model.eval()")
        if operations.writes_twice(call):
            self._refuse(call, "writes several input-dependent numbers into one place; add them up or write one")
        if call.live and call.schema.written and call.schema.twin is None:
            self._refuse(call, "writes into a tensor given as out=; assign the result instead")
        if call.live and call.schema.written and not isinstance(call.arguments["self"], Tensor):
            self._refuse(call, "writes into several tensors at once; write into one after another")

    def _activation(self, call: Call) -> tuple[Activation | None, int | None, bool]:
        """The activation that an operation on live values applies, None if it is no site, refused if it is unknown.

        Also how many of the outputs may be used, None for all, and whether they are not piecewise linear.
        """
        affine = operations.entry(call)
        if affine is not None:
            return None, affine.outputs, False
        found, x = None, call.arguments.get("self")
        if call.live == {"self"} and isinstance(x, Tensor) and not x.is_complex():
            try:
                found = activations.activation(call.key, call.arguments)
            except ValueError as error:
                self._refuse(call, str(error), leave_out=True)
        if found is not None and not found.smooth:
            return (found if found.breakpoints else None), 1, False
        if call.reads:
            self._refuse(call, operations.why_not(call))
        if not self.allow_smooth:
            self._refuse(call, "is not piecewise linear" if found else operations.why_not(call), leave_out=True)
        return found, None, True

    # sites

    def _layer_behind(self, entering: int) -> int:
        """The layer of a site that this value enters."""
        return self._playing.layer if self._playing else self.ledger.facts[entering].layer + 1

    def _mark(self, activation: Activation, entering: int, result: Tensor | Sequence[Tensor]) -> None:
        layer, playing = self._layer_behind(entering), self._playing
        if 0 in self.ledger.facts[entering].shape:  # no units
            return
        if playing is None:
            name = self._site_name(activation.kind)
        else:
            playing.rounds += 1
            name = f"{playing.name}/{playing.rounds}"
        leaving = self.ledger.value(tensors(result)[0])
        self.marks.append(Mark(name, activation, layer, entering, leaving, playing))

    def _site_name(self, kind: str) -> str:
        """The module's path, the kind unless the module is just that, and the number of earlier sites so called."""
        module = type(self.calling.modules[-1]).__module__ if self.calling.modules else ""
        own = module in (activation_modules.__name__, pooling_modules.__name__)
        name = self.calling.place if own else ".".join(filter(None, [self.calling.place, kind]))
        self._calls[name] += 1
        return f"{name}:{self._calls[name] - 1}"

    def _compete(self, call: Call) -> Tensor:
        """max(a, b) or min(a, b): a site whose unit is a - b."""
        a, b = call.arguments["self"], call.arguments["other"]
        (entering,) = self.ledger.add(aten.sub.Tensor, (a, b), {}, [a - b], live=True)
        result: Tensor = self._perform(call, None, self._layer_behind(entering))
        kind = self._playing.kind if self._playing else activations.PAIRWISE[call.key]
        self._mark(activations.pairwise(kind), entering, result)
        return result

    def _play(self, call: Call) -> Any:
        """An operation in terms of simpler ones; its rounds are sites of the same layer."""
        kind, simpler = PLAYED[call.key]
        x = call.arguments["self"]
        expected = x if call.schema.written else tensors(call.run())[0]
        behind = max(self.ledger.fact(t).layer for a in call.arguments.values() for t in tensors(a))
        playing = self._playing = _Playing(kind, self._site_name(kind), behind + 1)
        try:
            with self:
                winner = simpler(call.arguments, tuple(expected.shape))
        finally:
            self._playing = None
        if not call.schema.written and not torch.equal(winner, expected):
            self._refuse(call, "could not be played in rounds of two")
        if call.schema.twin is not None:  # in place
            self.ledger.write(x, self.ledger.value(winner))
            return x.copy_(winner)
        if call.schema.several:
            positions = self._perform(call)[1]
            playing.winners = self.ledger.value(positions)
            self._restrict(playing.winners, f"the positions that {call.func} returns, which jump")
            return winner, positions
        if call.key in INDICES:
            self._unseen = True
            with self:
                playing.winners = self.ledger.value(INDICES[call.key](call.arguments))
            self._unseen = False
        return winner

    # steps

    def _perform(self, call: Call, outputs: int | None = None, layer: int = 0) -> Any:
        """Do the operation, and write it down without its side effects.

        Only so many outputs may be used later; they are at least as deep as a site of this layer.
        """
        live, written = bool(call.live), call.written
        if not call.schema.written:
            return self._pure(call, live, outputs, layer)
        for tensor in written:
            self.ledger.value(tensor)
        self.contents += [(t, t.clone()) for t in written if self.ledger.external(t)]
        forbidden = self._forbidden(call)
        if call.schema.twin is not None:
            target = call.arguments["self"]
            if live or self._independent(call):
                (number,) = self.ledger.add(*call.out_of_place(), [target], live=live, layer=layer)
                result = call.run()
                if live:
                    self.ledger.look_again(number, target)
            else:
                result = call.run()
                number = self.ledger.fixed_value(target)
            self._write(target, number, forbidden)
            return result
        result = call.run()
        for tensor in written:  # a state that the model keeps for itself
            self._write(tensor, self.ledger.fixed_value(tensor), forbidden)
        return result

    def _write(self, tensor: Tensor, value: int, forbidden: str) -> None:
        fact = self.ledger.facts[value]
        fact.state, fact.forbidden = self.ledger.state_name(tensor), forbidden
        self.ledger.write(tensor, value)

    def _pure(self, call: Call, live: bool, outputs: int | None, layer: int) -> Any:
        forbidden = self._forbidden(call)
        result = call.run()
        results = list(result) if call.schema.several else [result]
        for tensor in tensors(results):
            self._check_dense(call, "makes", tensor)
            if live and tensor.is_complex():
                self._refuse(call, "makes complex numbers; write it with their real and imaginary parts")
        if not live and not (call.values and self._independent(call)):
            # made anew, or only the shape of a live tensor mattered
            blank = call.name in ("empty_like", "new_empty", "new_empty_strided")
            numbers = [self.ledger.fixed_value(torch.zeros_like(t) if blank else t) for t in results]
        elif call.name == "as_strided" and live:
            numbers = [self.ledger.read(result)]
        else:
            step = call.side_effect_free()
            numbers = list(self.ledger.add(*step, results, live=live, layer=layer, place=call.schema.label))
        for i, (tensor, number) in enumerate(zip(results, numbers, strict=True)):
            if isinstance(tensor, Tensor):
                self.ledger.know(tensor, number)
            self.ledger.facts[number].forbidden = forbidden
            if live and outputs is not None and i >= outputs:
                self._restrict(number, f"output {i} of {call.func}, which is not affine")
        return result

    def _independent(self, call: Call) -> bool:
        """Whether no argument depends on the input, even by its shape."""
        return not any(self.ledger.facts[value].live for _, value in call.values)

    def _forbidden(self, call: Call) -> str:
        """What the results of an operation are made of that must not be used, if so."""
        if call.random:
            return f"random numbers that {call.func} draws{self.calling.where}; {operations.RANDOM_ADVICE}"
        ignored, facts = operations.IGNORED.get(call.name, frozenset()), self.ledger.facts
        why = [facts[value].forbidden for name, value in call.values if name not in ignored]
        return next(filter(None, why), "")

    def _restrict(self, value: int, why: str) -> None:
        """A value that is not piecewise linear must not be used, unless such are allowed."""
        if self.allow_smooth:
            self.smooth.add(value)
        else:
            self.ledger.facts[value].forbidden = f"{why}; {operations.SMOOTH_ADVICE}"

    def _refuse(self, call: Call, why: str, *, leave_out: bool = False) -> NoReturn:
        self.calling.refuse(f"{call.func} {why}", operations.SMOOTH_ADVICE if leave_out else "")


_READERS = (Tensor.numpy, Tensor.tolist, Tensor.__array__, Tensor.data_ptr, Tensor.__dlpack__)


class _Readers(TorchFunctionMode):
    """Sees what torch's operations do not: values that leave for NumPy and Python."""

    def __init__(self, on_read: Callable[[str, Tensor], None]) -> None:
        super().__init__()
        self.on_read = on_read

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _READERS:
            self.on_read(getattr(func, "__name__", str(func)), args[0])
        return func(*args, **(kwargs or {}))


class Follower(TorchDispatchMode):
    """Keeps what the values of a recording are at other points, as long as the model does the same operations there."""

    def __init__(self, performed: Sequence[tuple[Any, list[int]]], *, foreign: bool = True) -> None:
        super().__init__()
        self.foreign = foreign
        self.seen: dict[int, Tensor] = {}
        self.strayed = False  # it does something else, or reads a value, or stops early
        self._expected = iter([*performed, (None, [])])

    @contextmanager
    def following(self, x: Tensor) -> Iterator[None]:
        """Follow what happens to x."""
        self.seen[0] = x.clone()
        with _Readers(self._stray) if self.foreign else nullcontext(), self:
            yield
        self.strayed = self.strayed or next(self._expected)[0] is not None

    def _stray(self, *_: Any) -> None:
        self.strayed = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if schema(func).composite:
            with self:
                return func.decompose(*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        if self.strayed:
            return result
        expected, values = next(self._expected)
        self.strayed = func is not expected
        self.seen.update((v, t.clone()) for v, t in zip(values, tensors(result), strict=False) if v >= 0)
        return result
