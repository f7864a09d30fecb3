"""From a module or callable to a `Network`: its activation sites and a program that evaluates them anywhere.

The model is recorded at one point alone, a batch of one: a network is a function of one point. That it is the model at
any batch is then checked: the same points together, in other numbers, orders and places, must give the same.
"""

import logging
import math
from contextlib import ExitStack, suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from regionscope.machine import keep_freed_memory, threads_for
from regionscope.points import as_tensor, first_array, first_tensor
from regionscope.tracing.agreement import CROWD, check_batches, check_constants, tried_points
from regionscope.tracing.forward import Forward, Recording, taken_apart
from regionscope.tracing.ledger import UnsupportedModel
from regionscope.tracing.network import BATCH_ADVICE, FLAT_ADVICE, Network, Site
from regionscope.tracing.program import Program
from regionscope.tracing.undisturbed import attributes_kept, random_states_kept, unwrapped
from regionscope.types import Model

_log = logging.getLogger(__name__)


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
    them. Every operation on values that depend on the input is affine, a known piecewise-linear activation, or refused
    with `UnsupportedModel`.

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
    example = _checked_example(model, example)
    forward = Forward(model, until, output)
    with taken_apart(), ExitStack() as kept:
        if not forward.familiar:
            kept.enter_context(random_states_kept(example.device))
            kept.enter_context(attributes_kept(model))
        with threads_for(example[:1].numel()):
            alone = recorded_alone(forward, example, allow_smooth)
            network = as_written(alone, example)
        with threads_for(CROWD * network.program.entries):
            check_constants(network)
            check_batches(network, forward, alone, tried_points(example))
    _log.info("traced %r", network)
    return network


def as_network(model: Model | Network, example: Any, *, allow_smooth: bool = False) -> Network:
    """The network itself, or the traced model; how every function takes either."""
    if isinstance(model, Network):
        return model
    parameter = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    example = first_tensor(example)
    example = example if parameter is None else example.to(parameter.device, parameter.dtype)
    return trace(model, example, allow_smooth=allow_smooth)


# the model and its input


def _checked_example(model: Model, example: Any) -> Tensor:
    given = first_array(example)
    x = as_tensor(given)
    if not x.is_floating_point():
        raise TypeError(
            f"example is {x.dtype}: regions lie in a continuous space, so inputs must be floats;"
            f" trace from the embedding on if the model takes integers; {TOKENS_ADVICE}"
        )
    if x.dim() < 2 or x.numel() == 0:
        alone = f"; {BATCH_ADVICE}" if x.numel() else ""
        raise ValueError(f"example must be a non-empty batch (n, ...), got shape {tuple(x.shape)}{alone}")
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    if any(map(is_lazy, parameters)):
        raise ValueError("the model has parameters without a shape as yet (LazyLinear does); call it once first")
    places = {(p.dtype, p.device) for p in parameters if p.is_floating_point()}
    if len(places) == 1 and (x.dtype, x.device) not in places:
        ((dtype, device),) = places
        if isinstance(given, Tensor):
            raise TypeError(
                f"example is {x.dtype} on {x.device}, the model is {dtype} on {device};"
                f" convert it with example.to({str(device)!r}, {dtype})"
            )
        x = x.to(device, dtype)
    if not math.isfinite(x.sum()) and not torch.isfinite(x).all():
        raise ValueError("the example, or the first of the points, holds NaN or infinite values")
    return x.detach()


# from a recording to a network


def recorded_alone(forward: Forward, example: Tensor, allow_smooth: bool) -> Recording:
    """The model at the first point; if it fails there, an error that says whether more points would do."""
    try:
        return _recorded_at(example[:1], forward, allow_smooth)
    except UnsupportedModel:
        raise
    except (RuntimeError, ValueError, IndexError) as error:
        try:
            _recorded_at(example[:1].repeat(2, *[1] * (example.dim() - 1)), forward, allow_smooth)
        except UnsupportedModel:
            raise
        except Exception:
            if advice := TOKENS_ADVICE if OF_EMBEDDINGS in str(error) else _shape_advice(forward, example):
                raise ValueError(f"the model takes no points of shape {_point(example)}: {error}; {advice}") from error
            error.add_note(f"(the model was called with one point of shape {_point(example)}, as a batch of one)")
            raise error from None
        raise UnsupportedModel(f"the model takes a batch of points, but not one point alone: {error}") from error


def _point(example: Tensor) -> tuple[int, ...]:
    return tuple(example.shape[1:])


def _shape_advice(forward: Forward, example: Tensor) -> str:
    """What to do about points that the model fails at, if it takes them in another shape."""
    for advice, points in {FLAT_ADVICE: example[:1].flatten(1), BATCH_ADVICE: example[None]}.items():
        with suppress(Exception), torch.no_grad():
            forward.plain(points)
            return advice
    return _first_layer_advice(forward, example)


OF_EMBEDDINGS = "argument #1 'indices'"  # in what torch says if they are called with numbers that are no integers
TOKENS_ADVICE = (
    "of a model of tokens, give what is behind its embedding: in transformers, points"
    " model.get_input_embeddings()(tokens), and for the model lambda x: model(inputs_embeds=x).logits (to callbacks,"
    " network=lambda m: lambda x: m(inputs_embeds=x).logits)"
)
SIDES = ("depth", "height", "width")


def _first_layer_advice(forward: Forward, example: Tensor) -> str:
    """What shape the first layer says that points have, if these have another."""
    for module in forward.modules:
        if isinstance(module, nn.Linear):
            fits = example.shape[-1] == module.in_features
            wanted = f"{'' if example.dim() == 2 else '..., '}{module.in_features}"
        elif isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            fits = example.dim() == len(module.kernel_size) + 2 and example.shape[1] == module.in_channels
            wanted = ", ".join(map(str, (module.in_channels, *SIDES[-len(module.kernel_size) :])))
        else:
            continue
        return "" if fits else f"its first layer takes (n, {wanted}): give such points"
    return ""


def _recorded_at(points: Tensor, forward: Forward, allow_smooth: bool) -> Recording:
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
    ledger, output = alone.recorder.ledger, alone.value
    facts, marks = ledger.facts, alone.marks
    if not facts[output].live:
        raise UnsupportedModel("the model's output does not depend on its input")
    winners = {mark.playing.winners for mark in marks if mark.playing and mark.playing.winners is not None}
    kept = (*(mark.entry for mark in marks), *(mark.exit for mark in marks), output, *sorted(winners))
    shapes = {value: fact.shape for value, fact in enumerate(facts) if fact.live}
    program = Program(tuple(ledger.steps), ledger.constants, shapes, ()).pruned(kept)
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
            mark.name, mark.activation.kind, mark.activation.breakpoints, _without_point(facts[mark.entry].shape),
            mark.layer, mark.activation.smooth, mark.entry, mark.exit, mark.tournament,
        )
        for mark in marks
    )  # fmt: skip
    return Network(
        sites=sites,
        input_shape=tuple(example.shape[1:]),
        output_shape=_without_point(facts[output].shape),
        piecewise_linear=alone.piecewise_linear,
        dtype=example.dtype,
        device=example.device,
        output=output,
        program=program,
    )


def _without_point(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape at a batch of one without the batch, if that comes first."""
    return shape[1:] if shape[:1] == (1,) else shape
