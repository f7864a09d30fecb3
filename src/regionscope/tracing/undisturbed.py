"""A model that others use, called and left as it was."""

import random
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regionscope.types import Model

LARGE = 2**20  # arrays with more entries than this are taken for data that no forward pass changes


def unwrapped(model: Model) -> Model:
    """The module inside torch.compile, DataParallel and DistributedDataParallel."""
    if not callable(model):
        raise TypeError(f"model must be a module or a callable, got {type(model).__name__}")
    if isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
        return unwrapped(inner)
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        return unwrapped(model.module)
    return model


@contextmanager
def evaluated(model: Model) -> Iterator[None]:
    """Evaluation mode, and no change of random states or modes, inside."""
    inner = unwrapped(model)
    modules = list(inner.modules()) if isinstance(inner, nn.Module) else []
    parameter = next(inner.parameters(), None) if isinstance(inner, nn.Module) else None
    modes = [module.training for module in modules]
    with random_states_kept(torch.device("cpu") if parameter is None else parameter.device):
        try:
            for module in modules:
                module.training = False
            yield
        finally:
            for module, mode in zip(modules, modes, strict=True):
                module.training = mode


@contextmanager
def random_states_kept(device: torch.device) -> Iterator[None]:
    """Put back the states of the random generators that have moved; others may be in use by other threads."""
    gpu = device.type == "cuda"
    before = torch.get_rng_state(), torch.cuda.get_rng_state(device) if gpu else None
    own, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        if not torch.equal(torch.get_rng_state(), before[0]):
            torch.set_rng_state(before[0])
        if before[1] is not None:
            torch.cuda.set_rng_state(before[1], device)
        if random.getstate() != own:
            random.setstate(own)
        if not all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), numpy, strict=True)):
            np.random.set_state(numpy)


@contextmanager
def attributes_kept(model: Model) -> Iterator[None]:
    """Put back what forward gives to modules and changes in them: attributes, buffers, hooks, containers, arrays.

    Objects of other classes that a module refers to are not looked into: they may be in use by others.
    """
    root = model if isinstance(model, nn.Module) else getattr(model, "__self__", None)
    modules = list(root.modules()) if isinstance(root, nn.Module) else []
    found: dict[int, tuple[Any, Any]] = {}
    _note_contents([m.__dict__ for m in modules], found)
    tensors = [(t, t.data, t.requires_grad, t.grad) for m in modules for t in filter(_plain, m.parameters(False))]
    buffers = [(b, b.data, b.detach().clone()) for m in modules for b in filter(_plain, m.buffers(False))]
    try:
        yield
    finally:
        for thing, before in found.values():
            _put_back(thing, before)
        for tensor, data, wants_gradient, gradient in tensors:
            _point_to(tensor, data)
            if tensor.requires_grad != wants_gradient:
                tensor.requires_grad_(wants_gradient)
            if tensor.grad is not gradient:
                tensor.grad = gradient
        with torch.no_grad():
            for buffer, data, content in buffers:
                _point_to(buffer, data)
                if not torch.equal(buffer, content):
                    buffer.copy_(content)


def _note_contents(things: Iterable[Any], found: dict[int, tuple[Any, Any]]) -> None:
    """Add to `found` what containers and arrays hold, and those in them, each once."""
    for thing in things:
        if id(thing) in found:
            continue
        if isinstance(thing, dict):
            found[id(thing)] = thing, dict(thing)
            _note_contents(thing.values(), found)
        elif isinstance(thing, list | deque):
            found[id(thing)] = thing, list(thing)
            _note_contents(thing, found)
        elif isinstance(thing, set):
            found[id(thing)] = thing, set(thing)
        elif isinstance(thing, tuple):
            _note_contents(thing, found)
        elif isinstance(thing, np.ndarray) and thing.size <= LARGE:
            found[id(thing)] = thing, thing.copy()


def _put_back(thing: Any, before: Any) -> None:
    """Make a container or an array what it was, touching only what has changed."""
    if isinstance(thing, dict) and not (thing or before):  # the usual case
        return
    if isinstance(thing, dict):
        for name in thing.keys() - before.keys():
            del thing[name]
        for name, held in before.items():
            if name not in thing or thing[name] is not held:
                thing[name] = held
    elif isinstance(thing, np.ndarray):
        if thing.tobytes() != before.tobytes():
            thing[...] = before
    elif isinstance(thing, set):
        if thing != before:
            thing.clear()
            thing.update(before)
    elif list(map(id, thing)) != list(map(id, before)):
        thing.clear()
        thing.extend(before)


def _plain(tensor: Tensor) -> bool:
    """Whether a tensor is dense memory and nothing else."""
    return type(tensor) in (Tensor, nn.Parameter) and tensor.layout is torch.strided and not tensor.is_meta


def _point_to(tensor: Tensor, data: Tensor) -> None:
    """Let a tensor hold its own memory again, if it was given another."""
    if tensor.data_ptr() != data.data_ptr() or tensor.shape != data.shape:
        tensor.data = data
