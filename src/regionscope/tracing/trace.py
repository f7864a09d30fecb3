"""From a module or callable to a `Network`: its activation sites and a program that evaluates them anywhere."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from regionscope.memory import keep_freed_memory
from regionscope.tracing.network import Network, Site
from regionscope.tracing.program import PerPoint, Program, Shape, Step, point_shape
from regionscope.tracing.recording import Recorder, UnsupportedModel

# one forward pass each: integers that differ between the first two grow with the batch; the last checks how, and that
# the program is the model, at other points
BATCH_SIZES = (2, 3, 5)
# the traced program must agree with the model to this share of the largest value
AGREEMENT = {torch.float64: 1e-9, torch.float32: 1e-4}

Model = nn.Module | Callable[[Tensor], Any]


def trace(
    model: Model,
    example: Any,
    *,
    until: str | None = None,
    output: str | int | None = None,
    allow_smooth: bool = False,
) -> Network:
    """The network that a model computes, as an ordered list of activation sites.

    `example` (n, ...) is a batch of inputs, n >= 1, with the dtype and device of the model. Every operation on values
    that depend on the input is affine, a known piecewise-linear activation, or refused with `UnsupportedModel`.

    `until` names a module: it and all that follows are left out, and what enters it is the network's output.
    `output` picks one entry if the model returns a tuple or dict. With `allow_smooth` other operations pass too; the
    network is then marked `piecewise_linear=False` and a smooth activation is a site where its input changes sign.

    >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> trace(model, torch.zeros(1, 2)).sites
    (Site(name='1:0', kind='relu', breakpoints=(0.0,), shape=(8,), layer=1, smooth=False),)
    """
    keep_freed_memory()
    model = unwrapped(model)
    example = checked_example(model, example)
    function = Forward(model, until, output)
    with undisturbed(example.device):
        batches = [rows(example, n) for n in BATCH_SIZES[:-1]] + [elsewhere(example, BATCH_SIZES[-1])]
        recordings = [function.recorded(x.clone(), allow_smooth) for x in batches]
        network = generalised(recordings, example)
        check_constants(model, network)
        check_faithful(network, batches[-1], recordings[-1].output)
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
        self.paths = {id(module): path for path, module in modules.items()}

    def __call__(self, x: Tensor, calling: list[nn.Module] | None = None) -> Tensor:
        calling = [] if calling is None else calling

        def enter(module: nn.Module, arguments: tuple[Any, ...]) -> None:
            if module is self.last:
                raise Reached(arguments)
            calling.append(module)

        def leave(module: nn.Module, arguments: tuple[Any, ...], result: Any) -> None:
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

    def recorded(self, x: Tensor, allow_smooth: bool) -> "Recording":
        recorder = Recorder(self.paths, allow_smooth=allow_smooth)
        with recorder.recording(x):
            output = self(x, recorder.calling)
        return Recording(recorder, output)


@dataclass(frozen=True)
class Recording:
    """A call that was recorded, and what it returned."""

    recorder: Recorder
    output: Tensor

    @property
    def value(self) -> int:
        return self.recorder.value(self.output)


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


def unwrapped(model: Model) -> Model:
    """The module inside torch.compile, DataParallel and DistributedDataParallel."""
    if not callable(model):
        raise TypeError(f"model must be a module or a callable, got {type(model).__name__}")
    if isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
        return unwrapped(inner)
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        return unwrapped(model.module)
    return model


def checked_example(model: Model, example: Any) -> Tensor:
    x = first_tensor(example)
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
        raise TypeError(
            f"example is {x.dtype} on {x.device}, the model is {dtype} on {device};"
            f" convert it with example.to({str(device)!r}, {dtype})"
        )
    if not torch.isfinite(x).all():
        raise ValueError("example holds NaN or infinite values")
    return x.detach()


def first_tensor(batch: Any) -> Tensor:
    """The inputs in a batch as loaders give it: a tensor, or the first tensor of a tuple or dict."""
    entries = batch.values() if isinstance(batch, Mapping) else batch
    if isinstance(batch, Tensor):
        return batch
    if isinstance(batch, Mapping | list | tuple):
        for entry in entries:
            if isinstance(entry, Tensor):
                return entry
    raise TypeError(f"a batch must be a tensor, or a tuple or dict that holds one, got {type(batch).__name__}")


def rows(example: Tensor, n: int) -> Tensor:
    return example[torch.arange(n, device=example.device) % len(example)]


def elsewhere(example: Tensor, n: int) -> Tensor:
    """Other points than the example's, at random but always the same."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn((n, *example.shape[1:]), generator=generator, dtype=torch.float64)
    return rows(example, n) + 0.1 * (1 + example.abs().max()) * noise.to(example)


@contextmanager
def undisturbed(device: torch.device) -> Iterator[None]:
    """Leave the random state as it was, and run attention and compiled parts as operations that can be seen."""
    fast = torch.backends.mha.get_fastpath_enabled()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)


# from recordings at several batch sizes to a program for any


def generalised(calls: list[Recording], example: Tensor) -> Network:
    recordings, outputs = [call.recorder for call in calls], [call.value for call in calls]
    first = recordings[0]
    if any([s.operation for s in r.steps] != [s.operation for s in first.steps] for r in recordings):
        raise UnsupportedModel("the model does different things for different numbers of points")
    if not first.live[outputs[0]]:
        raise UnsupportedModel("the model's output does not depend on its input")
    constants = dict(first.constants)
    for r in recordings[1:]:
        if r.constants.keys() != constants.keys() or not all(same(constants[i], c) for i, c in r.constants.items()):
            raise UnsupportedModel(
                "a constant of the model differs with the input or the number of points; is it computed outside torch?"
            )
    together = zip(*(r.steps for r in recordings), strict=True)
    steps = tuple(fitted_step(steps) for steps in together)
    shapes = point_shapes(zip(*(r.shapes for r in recordings), strict=True))
    entries, output = tuple(mark.preactivation for mark in first.marks), outputs[0]
    if any(value not in shapes for value in (*entries, output)):
        raise UnsupportedModel("the points of a batch are mixed: a value has no dimension that counts the points")
    if shapes[output][0] != PerPoint(0, 1):
        raise UnsupportedModel("the model's output must have one row for every point of the batch")
    sites = tuple(
        Site(m.name, m.activation.kind, m.activation.breakpoints, point_shape(shapes[v]), m.layer, m.activation.smooth)
        for m, v in zip(first.marks, entries, strict=True)
    )
    kept = (*entries, output, *first.winners.values())
    return Network(
        sites=sites,
        input_shape=tuple(example.shape[1:]),
        output_shape=point_shape(shapes[output]),
        piecewise_linear=first.piecewise_linear,
        dtype=example.dtype,
        device=example.device,
        entries=entries,
        exits=tuple(mark.result for mark in first.marks),
        output=output,
        winners=first.winners,
        program=Program(steps, constants, shapes, ()).pruned(kept),
    )


def point_shapes(values: Iterable[tuple[tuple[int, ...], ...]]) -> dict[int, Shape]:
    """The shape of every value that has just one dimension that grows in proportion to the number of points."""
    shapes = {}
    for value, forms in enumerate(values):
        if len({len(form) for form in forms}) > 1:
            continue
        shape = tuple(fitted([list(form) for form in forms]))
        growing = [size for size in shape if isinstance(size, PerPoint)]
        if len(growing) == 1 and growing[0].base == 0:
            shapes[value] = shape
    return shapes


def same(a: Tensor, b: Tensor) -> bool:
    return a is b or (a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | (a != a)).all()))


def fitted_step(steps: tuple[Step, ...]) -> Step:
    names = steps[0].options.keys()
    return Step(
        operation=steps[0].operation,
        arguments=tuple(fitted([list(s.arguments) for s in steps])),
        options={name: fitted([s.options[name] for s in steps]) for name in names},
        results=steps[0].results,
        several=steps[0].several,
    )


def fitted(arguments: list[Any]) -> Any:
    """One argument from its forms at the several batch sizes: integers that differ become `PerPoint`."""
    first = arguments[0]
    if isinstance(first, list) and all(isinstance(a, list) and len(a) == len(first) for a in arguments):
        return [fitted(list(parts)) for parts in zip(*arguments, strict=True)]
    if all(type(a) is type(first) and a == first for a in arguments):
        return first
    if all(type(a) is int for a in arguments):
        (n, m, *_), (p, q, *_) = BATCH_SIZES, arguments
        line = PerPoint(p - n * (q - p) // (m - n), (q - p) // (m - n))
        if all(line.base + line.rate * n == a for n, a in zip(BATCH_SIZES, arguments, strict=True)):
            return line
    raise UnsupportedModel(f"an operation takes {arguments} for {BATCH_SIZES} points: it depends on the batch size")


# proof that the program is the model


def check_constants(model: Model, network: Network) -> None:
    named = [*model.named_parameters(), *model.named_buffers()] if isinstance(model, nn.Module) else []
    names = {id(tensor): f"{name!r} of the model" for name, tensor in named}
    for tensor in network.program.constants.values():
        if not tensor.is_floating_point():
            continue
        bad = torch.isnan(tensor) if not network.piecewise_linear else ~torch.isfinite(tensor)
        if bad.any():
            where = names.get(id(tensor), f"a constant of shape {tuple(tensor.shape)}")
            raise ValueError(f"{where} holds NaN or infinite values: the network has no regions to speak of")


@torch.no_grad()
def check_faithful(network: Network, x: Tensor, expected: Tensor) -> None:
    """Compare with the model at points it was not traced at, and with one point alone, so that nothing went unseen."""
    together, alone = ((*network.preactivations(points), network(points)) for points in (x, x[:1]))
    if not agree(together[-1], expected):
        raise UnsupportedModel(
            "the traced program does not reproduce the model at other inputs: forward computes with input-dependent"
            " values outside torch (NumPy, .tolist()) or keeps a state"
        )
    if not all(agree(t[:1], a) for t, a in zip(together, alone, strict=True)):
        raise UnsupportedModel("a point's values depend on the other points of its batch")


def agree(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    tolerance = AGREEMENT.get(a.dtype, 2e-2) * (1e-30 + float(b.abs().max()))
    return bool(((a - b).abs() <= tolerance).all())
