"""A model that others use, called and left as it was."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from regionscope.types import Model


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
    """Put back the attributes that forward gives to modules, and what it puts into them: buffers, hooks, lists."""
    root = model if isinstance(model, nn.Module) else getattr(model, "__self__", None)
    modules = list(root.modules()) if isinstance(root, nn.Module) else []
    attributes = [(m.__dict__, dict(m.__dict__)) for m in modules]
    containers = [a for _, before in attributes for a in before.values()]
    dicts = [(a, dict(a)) for a in containers if isinstance(a, dict)]
    lists = [(a, list(a)) for a in containers if isinstance(a, list)]
    try:
        yield
    finally:
        for now, before in (*attributes, *dicts):
            _put_back(now, before)
        for items, content in lists:
            if list(map(id, items)) != list(map(id, content)):
                items[:] = content


def _put_back(now: dict[Any, Any], before: dict[Any, Any]) -> None:
    """Make a dictionary what it was, touching only what has changed."""
    if not (now or before):  # the usual case
        return
    for name in now.keys() - before.keys():
        del now[name]
    for name, thing in before.items():
        if name not in now or now[name] is not thing:
            now[name] = thing
