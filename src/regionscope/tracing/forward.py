"""Calls of a model: recorded or plain, stopped where asked, one output picked, and left as it was."""

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules import module as module_hooks
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from regionscope.machine import ProcessLock
from regionscope.tracing.ledger import UnsupportedModel
from regionscope.tracing.program import Held
from regionscope.tracing.recording import Follower, Mark, Recorder
from regionscope.types import Model

# modules of torch that do the same to every point of a batch, wherever it is and however many there are
FAMILIAR = frozenset({
    nn.Sequential, nn.Identity, nn.Flatten, nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d,
    nn.BatchNorm3d, nn.Dropout, nn.MaxPool2d, nn.AvgPool2d, nn.ReLU, nn.LeakyReLU, nn.ReLU6, nn.Hardtanh, nn.GELU,
    nn.SiLU, nn.Tanh,
})  # fmt: skip


class Forward:
    """One call of the model: with module paths known, stopped at `until`, one output picked."""

    def __init__(self, model: Model, until: str | None, output: str | int | None) -> None:
        root = model if isinstance(model, nn.Module) else getattr(model, "__self__", None)
        modules = dict(root.named_modules()) if isinstance(root, nn.Module) else {}
        if until is not None and until not in modules:
            raise ValueError(f"until={until!r} is no module of the model; it has {', '.join(filter(None, modules))}")
        self.model, self.output = model, output
        self.last = modules[until] if until is not None else None
        self.contents: list[tuple[Tensor, Tensor]] = []  # tensors that forward writes to, and what they held before
        self.modules = list(modules.values())
        self.paths = {id(module): path for path, module in modules.items()}
        self.held = {
            id(tensor): Held(module, f"{path}.{name}" if path else name)
            for path, module in modules.items()
            for name, tensor in [*module._parameters.items(), *module._buffers.items()]
            if tensor is not None
        }

    @cached_property
    def familiar(self) -> bool:
        """Whether a module of torch that does the same to every point, made of such, with nothing hooked on to them."""
        hooks = (module_hooks._global_forward_hooks, module_hooks._global_forward_pre_hooks)
        return isinstance(self.model, nn.Module) and not any(hooks) and all(map(_is_familiar, self.modules))

    def _called(self, x: Tensor, calling: list[nn.Module] | None = None) -> Tensor:
        """What the model makes of x; meanwhile `calling` holds the modules being called."""
        if calling is None and self.last is None:  # nothing to look out for
            return _picked(self.model(x), self.output)
        calling, thread = [] if calling is None else calling, threading.get_ident()

        def enter(module: nn.Module, arguments: tuple[Any, ...]) -> None:
            if threading.get_ident() != thread:  # another model, at the same time
                return
            if module is self.last:
                raise _Reached(arguments)
            calling.append(module)

        def leave(module: nn.Module, arguments: tuple[Any, ...], result: Any) -> None:
            if threading.get_ident() == thread and calling and calling[-1] is module:
                calling.pop()

        with ExitStack() as stack:
            stack.callback(register_module_forward_pre_hook(enter).remove)
            stack.callback(register_module_forward_hook(leave, always_call=True).remove)
            try:
                result = self.model(x)
            except _Reached as stop:
                result = stop.arguments[0] if len(stop.arguments) == 1 else stop.arguments
            else:
                if self.last is not None:
                    raise UnsupportedModel(f"until={self.paths[id(self.last)]!r} was never called in forward")
        return _picked(result, self.output)

    def recorded(self, x: Tensor, allow_smooth: bool, *, keep: bool = False) -> "Recording":
        recorder = Recorder(self.paths, self.held, allow_smooth=allow_smooth, keep=keep, foreign=not self.familiar)
        with recorder.recording(x):
            output = self._called(x, recorder.calling.modules)
        self.contents = recorder.contents
        return Recording(recorder, output)

    def seen(self, x: Tensor, alone: "Recording") -> "Seen":
        """What enters the sites of a recording at other points, a batch perhaps, and what the model returns there."""
        follower = Follower(alone.recorder.performed, foreign=not self.familiar)
        own = x.clone()
        with self._contents_kept():
            with follower.following(own):
                output = self._called(own)
            output = output.clone()
        values, entries = follower.seen, [mark.entry for mark in alone.marks]
        if follower.strayed or not values.keys() >= set(entries):
            again = self.recorded(x.clone(), True, keep=True)
            values, entries = again.recorder.ledger.seen or {}, [mark.entry for mark in again.marks]
            output = again.output
        return Seen(output, [values[entry] for entry in entries], list(values.values()))

    def plain(self, x: Tensor) -> Tensor:
        """The answer of a call that is not recorded."""
        with self._contents_kept():
            return self._called(x.clone()).clone()

    @contextmanager
    def _contents_kept(self) -> Iterator[None]:
        """Afterwards the model's own tensors hold what they held before."""
        try:
            yield
        finally:
            for tensor, content in reversed(self.contents):
                tensor.copy_(content)


@dataclass(frozen=True)
class Recording:
    """A call that was recorded, and what it returned."""

    recorder: Recorder
    output: Tensor

    @property
    def value(self) -> int:
        return self.recorder.ledger.value(self.output)

    @cached_property
    def needed(self) -> frozenset[int]:
        """The values that the output is made of."""
        needed = {self.value}
        for step in reversed(self.recorder.ledger.steps):
            if not needed.isdisjoint(step.results):
                needed |= step.used
        return frozenset(needed)

    @property
    def marks(self) -> list[Mark]:
        """The sites that the output depends on: on what leaves them, or on who won."""

        def matters(mark: Mark) -> bool:
            return mark.exit in self.needed or (mark.playing is not None and mark.playing.winners in self.needed)

        return [mark for mark in self.recorder.marks if matters(mark)]

    @property
    def piecewise_linear(self) -> bool:
        return self.needed.isdisjoint(self.recorder.smooth)


@dataclass(frozen=True)
class Seen:
    """What a call returned, what entered the sites, and all that depended on the input."""

    output: Tensor
    entering: list[Tensor]
    values: list[Tensor]

    @cached_property
    def largest(self) -> float:
        """The largest finite number that depended on the input."""
        return max((largest(t) for t in self.values if t.is_floating_point()), default=0.0)


def _is_familiar(module: nn.Module) -> bool:
    own, kind = vars(module), type(module)
    as_made = kind in FAMILIAR and kind.forward.__module__.startswith("torch.nn.") and "forward" not in own
    plain = all(p is None or type(p) is nn.Parameter for p in own["_parameters"].values())
    draws = kind is nn.Dropout and module.training
    return as_made and plain and not draws and not own["_forward_hooks"] and not own["_forward_pre_hooks"]


class _Reached(BaseException):
    """The forward pass has come to the module where it should stop."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments


def _picked(result: Any, output: str | int | None) -> Tensor:
    if output is not None:
        result = result[output]
    if isinstance(result, Tensor):
        return result
    if isinstance(result, Mapping):
        raise UnsupportedModel(f"the model returns a dict with {', '.join(map(repr, result))}; pick one with output=")
    if isinstance(result, list | tuple):
        raise UnsupportedModel(f"the model returns {len(result)} values; pick one with output=0 and so on")
    raise UnsupportedModel(f"the model returns {type(result).__name__}, not a tensor")


_SWITCHES = ProcessLock()  # two traces at a time would take each other's for the user's


@contextmanager
def taken_apart() -> Iterator[None]:
    """Attention and LSTM as the operations they are made of, not as one that hides them, in the dtype of the weights.

    One trace at a time.
    """
    mha, mkldnn = torch.backends.mha, torch.backends.mkldnn
    with _SWITCHES():
        fast, fused = mha.get_fastpath_enabled(), mkldnn.enabled
        mha.set_fastpath_enabled(False)
        mkldnn.enabled = False  # type: ignore[assignment]
        try:
            with sdpa_kernel(SDPBackend.MATH), _autocast_off():
                yield
        finally:
            mha.set_fastpath_enabled(fast)
            mkldnn.enabled = fused


@contextmanager
def _autocast_off() -> Iterator[None]:
    """In this thread a model computes in the dtype of its weights, whatever autocast its forward asks for."""
    enter, thread = torch.autocast.__enter__, threading.get_ident()

    def entered(autocast: torch.autocast) -> Any:
        asked = autocast._enabled
        autocast._enabled = asked and threading.get_ident() != thread
        try:
            return enter(autocast)
        finally:
            autocast._enabled = asked

    with torch.autocast("cuda" if torch.cuda.is_available() else "cpu", enabled=False):
        torch.autocast.__enter__ = entered  # type: ignore[method-assign]
        try:
            yield
        finally:
            torch.autocast.__enter__ = enter  # type: ignore[method-assign]


def largest(tensor: Tensor) -> float:
    """The largest finite magnitude in a tensor."""
    if not tensor.numel():
        return 0.0
    whole = float(tensor.abs().max())
    return whole if math.isfinite(whole) else float(torch.where(tensor.isfinite(), tensor, 0).abs().max())
