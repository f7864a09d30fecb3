"""A model that others use, called and left as it was."""

import random
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from regionscope.machine import ProcessLock
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
    """Evaluation mode, no autocast, and no change of random states or modes, inside."""
    inner = unwrapped(model)
    parameter = next(inner.parameters(), None) if isinstance(inner, nn.Module) else None
    device = torch.device("cpu") if parameter is None else parameter.device
    with random_states_kept(device), _evaluation_mode(inner), torch.autocast(device.type, enabled=False):
        yield


_EVALUATED: dict[int, tuple[int, list[tuple[nn.Module, bool]]]] = {}  # by model: how many look at it, and its modes
_LOOKING = ProcessLock(_EVALUATED.clear)


@contextmanager
def _evaluation_mode(model: Model) -> Iterator[None]:
    """The modes come back when the last of those that look at a model, perhaps in other threads, is done."""
    with _LOOKING():
        own = [(m, m.training) for m in model.modules()] if isinstance(model, nn.Module) else []
        others, modes = _EVALUATED.get(id(model), (0, own))
        _EVALUATED[id(model)] = others + 1, modes
        for module, _ in modes:
            module.training = False
    try:
        yield
    finally:
        with _LOOKING():
            looking, modes = _EVALUATED.pop(id(model))
            if looking > 1:
                _EVALUATED[id(model)] = looking - 1, modes
            else:
                for module, mode in modes:
                    module.training = mode


@contextmanager
def random_states_kept(device: torch.device) -> Iterator[None]:
    """Put back the states of the random generators that have moved; others may be in use by other threads."""
    gpu = device.type == "cuda"
    before = torch.get_rng_state(), torch.cuda.get_rng_state(device) if gpu else None
    own, numpy = random.getstate(), np.random.get_state(legacy=False)
    try:
        yield
    finally:
        if not torch.equal(torch.get_rng_state(), before[0]):
            torch.set_rng_state(before[0])
        if before[1] is not None:
            torch.cuda.set_rng_state(before[1], device)
        if random.getstate() != own:
            random.setstate(own)
        if not _same_state(np.random.get_state(legacy=False), numpy):
            np.random.set_state(numpy)


def _same_state(a: Any, b: Any) -> bool:
    """Whether two states of numpy's generator are equal: arrays and numbers in dicts."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same_state(a[name], b[name]) for name in a)
    return bool((a == b).all()) if isinstance(a, np.ndarray) else a == b


@contextmanager
def attributes_kept(model: Model) -> Iterator[None]:
    """Put back what forward gives to modules and changes in them: attributes, buffers, hooks, containers, arrays.

    Objects of other classes that a module refers to are not looked into: they may be in use by others.
    """
    root = model if isinstance(model, nn.Module) else getattr(model, "__self__", None)
    modules = list(root.modules()) if isinstance(root, nn.Module) else []
    found: dict[int, tuple[Any, Any]] = {}
    _note_contents([m.__dict__ for m in modules], found)
    tensors = [(t, t.data, t.requires_grad, t.grad) for m in modules for t in filter(_plain, m._parameters.values())]
    buffers = [(b, b.data, b.detach().clone()) for m in modules for b in filter(_plain, m._buffers.values())]
    try:
        yield
    finally:
        for thing, before in found.values():
            if isinstance(thing, np.ndarray) or thing or before:  # most containers of a module are empty
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


@contextmanager
def contents_kept(model: Model) -> Iterator[None]:
    """As `attributes_kept`, and also what parameters and their gradients hold, and random states: for foreign code."""
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    held = [p.grad for p in parameters if p.grad is not None] + parameters
    before = [(t, t.detach().clone()) for t in held if _plain(t)]
    device = parameters[0].device if parameters else torch.device("cpu")
    try:
        with random_states_kept(device), attributes_kept(model):
            yield
    finally:
        with torch.no_grad():
            for tensor, content in before:
                if not torch.equal(tensor, content):
                    tensor.copy_(content)


def _note_contents(things: Iterable[Any], found: dict[int, tuple[Any, Any]]) -> None:
    """Add to `found` what containers and arrays hold, and those in them, each once."""
    for thing in things:
        if not isinstance(thing, _CHANGEABLE) or id(thing) in found:
            continue
        if isinstance(thing, dict):
            found[id(thing)] = thing, dict(thing)
            if thing:
                _note_contents(thing.values(), found)
        elif isinstance(thing, list | deque):
            found[id(thing)] = thing, list(thing)
            _note_contents(thing, found)
        elif isinstance(thing, set):
            found[id(thing)] = thing, set(thing)
        elif isinstance(thing, tuple):
            _note_contents(thing, found)
        elif thing.size <= LARGE:
            found[id(thing)] = thing, thing.copy()


_CHANGEABLE = (dict, list, deque, set, tuple, np.ndarray)  # tuples by what they hold


def _put_back(thing: Any, before: Any) -> None:
    """Make a container or an array what it was, touching only what has changed."""
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


def _plain(tensor: Tensor | None) -> TypeGuard[Tensor]:
    """Whether there is a tensor, dense memory and nothing else."""
    if tensor is None or type(tensor) not in (Tensor, nn.Parameter):
        return False
    return tensor.layout is torch.strided and not tensor.is_meta


def _point_to(tensor: Tensor, data: Tensor) -> None:
    """Let a tensor hold its own memory again, if it was given another."""
    if tensor.data_ptr() != data.data_ptr() or tensor.shape != data.shape:
        tensor.data = data
