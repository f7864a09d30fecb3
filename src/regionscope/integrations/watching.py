"""What the callbacks share: a monitor that lives as long as the training does."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from torch import Tensor, nn

from regionscope.runs.monitor import Monitor
from regionscope.runs.watched import Probe
from regionscope.types import Model

Choice = str | Callable[[Any], Model]  # a part of the trained module by its name, or a function of the module


class Watcher:
    """Makes the monitor when training starts, records each step once, closes at the end or when training fails."""

    def __init__(self, probes: Mapping[str, Probe], network: Choice | None, options: Mapping[str, Any]) -> None:
        inspect.signature(Monitor).bind(None, probes, **options)  # a wrong option is told now, not when training starts
        self.probes, self.network, self.options = probes, network, options
        self.monitor: Monitor | None = None
        self.last: int | None = None

    def start(self, module: nn.Module) -> None:
        """Watch this module."""
        self.close()
        self.monitor, self.last = Monitor(_measured_part(module, self.network), self.probes, **self.options), None

    def record(self, step: int, scalars: Callable[[], Mapping[str, Any]]) -> dict[str, float]:
        """Record this step if it is due and new; the numbers that were measured, by name."""
        if self.monitor is None or step == self.last:
            return {}
        self.last = step
        found = self.monitor(step, **(_single_numbers(scalars()) if self.monitor.due(step) else {}))
        flat = replace(found, scalars={}).flat() if found else {}
        return {name: value for name, value in flat.items() if value is not None}

    def close(self) -> None:
        """Record no more; a second time does nothing."""
        if self.monitor is not None:
            self.monitor.close()
        self.monitor = None


class _View(nn.Module):
    """A model that is called in another way; its weights are the model's own, under their own names."""

    def __init__(self, model: nn.Module, call: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.model, self.call = model, call

    def forward(self, x: Tensor) -> Any:
        return self.call(x)

    def state_dict(self, *args: Any, **options: Any) -> Any:
        """That of the model."""
        return self.model.state_dict(*args, **options)


def _measured_part(module: nn.Module, network: Choice | None) -> Model:
    """The part of a module to measure, or the module called as `network` says."""
    if network is None:
        return module
    try:
        found = attrgetter(network)(module) if isinstance(network, str) else network(module)
    except AttributeError as error:
        raise ValueError(f"network={network!r} does not fit {type(module).__name__}: {error}") from error
    if not callable(found):
        raise TypeError(f"network must give a module or a function of tensors, got {type(found).__name__}")
    return found if isinstance(found, nn.Module) else _View(module, found)


def _single_numbers(scalars: Mapping[str, Any]) -> dict[str, float]:
    """What of it is a single number; the monitor has a "step" and a "self" of its own."""
    single = {n: v for n, v in scalars.items() if not isinstance(v, Tensor) or v.numel() == 1}
    return {n: float(v) for n, v in single.items() if isinstance(v, int | float | Tensor) and n not in ("step", "self")}
