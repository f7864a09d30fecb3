"""From a module or callable to a `Network`: its activation sites and a program that evaluates them anywhere.

The model is recorded at one point alone, a batch of one: a network is a function of one point. That it is the model at
any batch is then checked: the same points together, in other numbers, orders and places, must give the same.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from regionscope.machine import keep_freed_memory
from regionscope.points import as_tensor, first_array, first_tensor
from regionscope.tracing.network import Network, Site
from regionscope.tracing.program import Held, Program
from regionscope.tracing.recording import Mark, Recorder, UnsupportedModel
from regionscope.tracing.undisturbed import attributes_kept, random_states_kept, unwrapped
from regionscope.types import Model

# the program must agree with the model to this share of the largest value
AGREEMENT = {torch.float64: 1e-9, torch.float32: 1e-4}
ROUNDING = {torch.float64: 1e-14, torch.float32: 4e-6}  # or to this share of the largest value on the way
# which of the points that are tried form a batch; the first batch is recorded too, to name what mixes its points
COMPOSITIONS = ((2, 0, 1), (1, 2), (4, 3, 2, 1, 0, 3, 5))


def trace(
    model: Model,
    example: Any,
    *,
    until: str | None = None,
    output: str | int | None = None,
    allow_smooth: bool = False,
) -> Network:
    """The network that a model computes, as an ordered list of activation sites.

    `example` (n, ...) is a batch of inputs, n >= 1, with the dtype and device of the model; an array is converted to
    them. Every operation on values
    that depend on the input is affine, a known piecewise-linear activation, or refused with `UnsupportedModel`.

    `until` names a module: it and all that follows are left out, and what enters it is the network's output.
    `output` picks one entry if the model returns a tuple or dict; sites and operations that it does not need are left
    out. With `allow_smooth` other operations pass too; if there are any, the network is marked
    `piecewise_linear=False`, and a smooth activation is a site where its input changes sign.

    >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> trace(model, torch.zeros(1, 2)).sites
    (Site(name='1:0', kind='relu', breakpoints=(0.0,), shape=(8,), layer=1, smooth=False),)
    """
    keep_freed_memory()
    model = unwrapped(model)
    example = checked_example(model, example)
    forward = Forward(model, until, output)
    with random_states_kept(example.device), attributes_kept(model), taken_apart():
        network = as_written(recorded_alone(forward, example, allow_smooth), example)
        check_constants(network)
        check_batches(network, forward, tried_points(example))
    return network


def as_network(model: Model | Network, example: Any) -> Network:
    """The network itself, or the traced model; how every function takes either."""
    if isinstance(model, Network):
        return model
    parameter = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    example = first_tensor(example)
    return trace(model, example if parameter is None else example.to(parameter.device, parameter.dtype))


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
        self.paths = {id(module): path for path, module in modules.items()}
        self.held = {
            id(tensor): Held(module, f"{path}.{name}" if path else name)
            for path, module in modules.items()
            for name, tensor in [*module._parameters.items(), *module._buffers.items()]
            if tensor is not None
        }

    def __call__(self, x: Tensor, calling: list[nn.Module] | None = None) -> Tensor:
        calling, thread = [] if calling is None else calling, threading.get_ident()

        def enter(module: nn.Module, arguments: tuple[Any, ...]) -> None:
            if threading.get_ident() != thread:  # another model, at the same time
                return
            if module is self.last:
                raise Reached(arguments)
            calling.append(module)

        def leave(module: nn.Module, arguments: tuple[Any, ...], result: Any) -> None:
            if threading.get_ident() == thread and calling and calling[-1] is module:
                calling.pop()

        with ExitStack() as stack:
            stack.callback(register_module_forward_pre_hook(enter).remove)
            stack.callback(register_module_forward_hook(leave, always_call=True).remove)
            try:
                result = self.model(x)
            except Reached as stop:
                result = stop.arguments[0] if len(stop.arguments) == 1 else stop.arguments
            else:
                if self.last is not None:
                    raise UnsupportedModel(f"until={self.paths[id(self.last)]!r} was never called in forward")
        return picked(result, self.output)

    def recorded(self, x: Tensor, allow_smooth: bool, *, keep: bool = False) -> "Recording":
        recorder = Recorder(self.paths, self.held, allow_smooth=allow_smooth, keep=keep)
        with recorder.recording(x):
            output = self(x, recorder.calling)
        self.contents = recorder.contents
        return Recording(recorder, output)

    def plain(self, x: Tensor) -> Tensor:
        """The answer of a call that is not recorded; afterwards the model's own tensors hold what they held before."""
        try:
            return self(x.clone()).clone()
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
        return self.recorder.value(self.output)

    @property
    def largest(self) -> float:
        """The largest finite number that depended on the input, of those that were kept."""
        kept = [t.abs() for t in (self.recorder.seen or {}).values() if t.is_floating_point()]
        return max((float(t[t.isfinite()].max()) for t in kept if t.isfinite().any()), default=0.0)

    @cached_property
    def needed(self) -> frozenset[int]:
        """The values that the output is made of."""
        needed = {self.value}
        for step in reversed(self.recorder.steps):
            if not needed.isdisjoint(step.results):
                needed |= step.used
        return frozenset(needed)

    @property
    def marks(self) -> list[Mark]:
        """The sites that the output depends on: on what leaves them, or on who won."""
        won = {name for name, value in self.recorder.winners.items() if value in self.needed}
        return [mark for mark in self.recorder.marks if mark.exit in self.needed or mark.tournament in won]

    @property
    def piecewise_linear(self) -> bool:
        return self.needed.isdisjoint(self.recorder.smooth)


class Reached(BaseException):
    """The forward pass has come to the module where it should stop."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments


def picked(result: Any, output: str | int | None) -> Tensor:
    if output is not None:
        result = result[output]
    if isinstance(result, Tensor):
        return result
    if isinstance(result, Mapping):
        raise UnsupportedModel(f"the model returns a dict with {', '.join(map(repr, result))}; pick one with output=")
    if isinstance(result, list | tuple):
        raise UnsupportedModel(f"the model returns {len(result)} values; pick one with output=0 and so on")
    raise UnsupportedModel(f"the model returns {type(result).__name__}, not a tensor")


# the model and its input


def checked_example(model: Model, example: Any) -> Tensor:
    given = first_array(example)
    x = as_tensor(given)
    if not x.is_floating_point():
        raise TypeError(
            f"example is {x.dtype}: regions lie in a continuous space, so inputs must be floats;"
            " trace from the embedding on if the model takes integers"
        )
    if x.dim() < 2 or x.numel() == 0:
        raise ValueError(f"example must be a non-empty batch (n, ...), got shape {tuple(x.shape)}")
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    places = {(p.dtype, p.device) for p in parameters if p.is_floating_point()}
    if len(places) == 1 and (x.dtype, x.device) not in places:
        ((dtype, device),) = places
        if isinstance(given, Tensor):
            raise TypeError(
                f"example is {x.dtype} on {x.device}, the model is {dtype} on {device};"
                f" convert it with example.to({str(device)!r}, {dtype})"
            )
        x = x.to(device, dtype)
    if not torch.isfinite(x).all():
        raise ValueError("example holds NaN or infinite values")
    return x.detach()


def tried_points(example: Tensor) -> Tensor:
    """Points to compare the network with the model at: the example's, and others at random but always the same."""
    n = 1 + max(max(batch) for batch in COMPOSITIONS)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn((n, *example.shape[1:]), generator=generator, dtype=torch.float64)
    points = example[torch.arange(n, device=example.device) % len(example)]
    return points + 0.1 * (1 + example.abs().max()) * noise.to(example)


@contextmanager
def taken_apart() -> Iterator[None]:
    """Attention and LSTM as the operations they are made of, not as one that hides them."""
    mha, mkldnn = torch.backends.mha, torch.backends.mkldnn
    fast, fused = mha.get_fastpath_enabled(), mkldnn.enabled
    mha.set_fastpath_enabled(False)
    mkldnn.enabled = False  # type: ignore[assignment]
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        mha.set_fastpath_enabled(fast)
        mkldnn.enabled = fused


# from a recording to a network


def recorded_alone(forward: Forward, example: Tensor, allow_smooth: bool) -> Recording:
    """The model at the first point; if it fails there, an error that says whether more points would do."""
    try:
        return recorded_at(example[:1], forward, allow_smooth)
    except UnsupportedModel:
        raise
    except (RuntimeError, ValueError, IndexError) as error:
        try:
            recorded_at(example[:1].repeat(2, *[1] * (example.dim() - 1)), forward, allow_smooth)
        except UnsupportedModel:
            raise
        except Exception:
            raise error from None
        raise UnsupportedModel(f"the model takes a batch of points, but not one point alone: {error}") from error


def recorded_at(points: Tensor, forward: Forward, allow_smooth: bool) -> Recording:
    """The model at these points; an operation that is not piecewise linear may pass if the output does not need it."""
    try:
        return forward.recorded(points.clone(), allow_smooth)
    except UnsupportedModel:  # raised where it happened, so that the traceback points at the line of the model
        if allow_smooth:
            raise
        with suppress(Exception):
            whole = forward.recorded(points.clone(), True)
            if whole.piecewise_linear:
                return whole
        raise


def as_written(alone: Recording, example: Tensor) -> Network:
    """The network that was recorded at one point."""
    recorder, output = alone.recorder, alone.value
    facts, marks = recorder.facts, alone.marks
    if not facts[output].live:
        raise UnsupportedModel("the model's output does not depend on its input")
    played = {mark.tournament for mark in marks}
    winners = {name: value for name, value in recorder.winners.items() if name in played}
    kept = (*(mark.entry for mark in marks), *(mark.exit for mark in marks), output, *winners.values())
    shapes = {value: fact.shape for value, fact in enumerate(facts) if fact.live}
    program = Program(tuple(recorder.steps), recorder.constants, shapes, ()).pruned(kept)
    used = {value for step in program.steps for value in step.used}
    for value in sorted(used):
        if facts[value].state:
            raise UnsupportedModel(
                f"forward changes {facts[value].state} and computes with it, so that every call is another function"
                " (spectral norm in train mode does); call model.eval()"
            )
    if facts[output].forbidden:
        raise UnsupportedModel(f"the model computes with {facts[output].forbidden}")
    sites = tuple(
        Site(
            mark.name, mark.activation.kind, mark.activation.breakpoints, without_point(facts[mark.entry].shape),
            mark.layer, mark.activation.smooth, mark.entry, mark.exit, mark.tournament,
        )
        for mark in marks
    )  # fmt: skip
    return Network(
        sites=sites,
        input_shape=tuple(example.shape[1:]),
        output_shape=without_point(facts[output].shape),
        piecewise_linear=alone.piecewise_linear,
        dtype=example.dtype,
        device=example.device,
        output=output,
        winners=winners,
        program=program,
    )


def without_point(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape at a batch of one without the batch, if that comes first."""
    return shape[1:] if shape[:1] == (1,) else shape


# proof that the program is the model


def check_constants(network: Network) -> None:
    for held in network.program.held.values():
        tensor = held.tensor if isinstance(held, Held) else held
        if not tensor.is_floating_point():
            continue
        bad = torch.isnan(tensor) if not network.piecewise_linear else ~torch.isfinite(tensor)
        if bad.any():
            where = f"{held.path!r} of the model" if isinstance(held, Held) else f"a constant {tuple(tensor.shape)}"
            raise ValueError(f"{where} holds NaN or infinite values: the network has no regions to speak of")


@torch.no_grad()
def check_batches(network: Network, forward: Forward, points: Tensor) -> None:
    """Compare the network, which takes every point alone, with the model at batches of several compositions."""
    expected = network(points)
    batch, *others = (list(batch) for batch in COMPOSITIONS)
    first = forward.recorded(points[batch].clone(), True, keep=True)
    scale = first.largest
    for i in range(2):
        if not agree(forward.plain(points[i : i + 1]).reshape(expected[i].shape), expected[i], scale):
            raise UnsupportedModel(
                "the traced program does not reproduce the model at other inputs: forward computes with"
                " input-dependent values outside torch or keeps a state"
            )
    outputs = [(batch, first.output), *((other, forward.plain(points[other])) for other in others)]
    for chosen, output in outputs:
        if output.dim() == 0 or len(output) != len(chosen):
            raise UnsupportedModel(
                f"the model's output must have one row for every point of the batch, got {tuple(output.shape)} for"
                f" {len(chosen)} points"
            )
    same = all(as_alone(output, expected[chosen], scale) for chosen, output in outputs)
    entering = [first.recorder.seen[mark.entry] for mark in first.marks]  # type: ignore[index]
    sites = list(network.preactivations(points[batch]))
    if len(entering) != len(sites):  # as with a loop over the points: the sites of all of them together
        entering, sites = ([torch.cat([v.flatten() for v in part])] if part else [] for part in (entering, sites))
    alike = len(entering) == len(sites) and all(map(same_numbers, entering, sites, [scale] * len(sites)))
    if not (same and alike):
        raise UnsupportedModel(f"a point's values depend on the other points of its batch{culprit(forward, points)}")


def as_alone(output: Tensor, rows: Tensor, scale: float) -> bool:
    return output.numel() == rows.numel() and agree(output.reshape(rows.shape), rows, scale)


def culprit(forward: Forward, points: Tensor) -> str:
    """The first operation whose numbers at a batch are not those at its points alone, as far as it can be told."""
    batch = list(COMPOSITIONS[0])
    parts = [points[batch], *points[batch].split(1)]
    recordings = [forward.recorded(part.clone(), True, keep=True) for part in parts]
    scale, (together, *alone) = recordings[0].largest, (one.recorder for one in recordings)
    if any([s.operation for s in r.steps] != [s.operation for s in together.steps] for r in alone):
        return ": it does different things for different numbers of points"
    for steps in zip(together.steps, *(r.steps for r in alone), strict=True):
        for values in zip(*(step.results for step in steps), strict=True):
            if not all(r.facts[value].live for r, value in zip((together, *alone), values, strict=True)):
                continue
            numbers = [r.seen[v].flatten() for r, v in zip((together, *alone), values, strict=True)]  # type: ignore[index]
            if not same_numbers(numbers[0], torch.cat(numbers[1:]), scale):
                return f": {together.facts[values[0]].place} mixes them or asks for their number"
    return ": they come out in another order"


def same_numbers(a: Tensor, b: Tensor, scale: float) -> bool:
    """Whether two tensors hold the same numbers, in any order."""
    return a.numel() == b.numel() and agree(a.flatten().sort().values, b.flatten().sort().values, scale)


def agree(a: Tensor, b: Tensor, scale: float) -> bool:
    """Whether two tensors are equal but for rounding; `scale` is the largest number that they were computed from."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    largest = float(b.abs().nan_to_num().max()) if b.numel() else 0.0
    tolerance = max(AGREEMENT.get(a.dtype, 2e-2) * largest, ROUNDING.get(a.dtype, 2e-2) * scale)
    return bool((((a - b).abs() <= tolerance) | (a == b) | (a.isnan() & b.isnan())).all())
