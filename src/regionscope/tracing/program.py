"""A network as a straight line of aten operations, written down at one point and run at any number of them.

Every value that depends on the input has a shape at one point; at n points it is a tensor (n, *shape), the points
always first, whatever the model does with its batch dimension: `lifting` says how an operation acts on such tensors.
Values that do not depend on the input are the same for all points and have no such dimension.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from regionscope.machine import memory_told, threads_for
from regionscope.tracing.lifting import Shape, lifted
from regionscope.tracing.steps import Step

OnValue = Callable[[int, Tensor], Tensor | None]  # sees a value when it is made, and may give another in its place
Act = Callable[[Step, Mapping[int, Any], Mapping[int, Shape]], list[Any]]  # what a step makes of values


@dataclass(frozen=True)
class Held:
    """A tensor that a module holds, whichever that is at the time of asking; `path` is its name in the whole model."""

    module: nn.Module
    path: str

    @property
    def tensor(self) -> Tensor:
        found: Tensor = getattr(self.module, self.path.rpartition(".")[2])
        return found


@dataclass(frozen=True)
class Program:
    """`held` are the model's own tensors, read as they are at the time of a run; value 0 is the input.

    `shapes` holds the shape at one point of every value that depends on the input.
    """

    steps: tuple[Step, ...]
    held: dict[int, Tensor | Held]
    shapes: dict[int, Shape]
    outputs: tuple[int, ...]

    @cached_property
    def _pruned_before(self) -> dict[tuple[int, ...], "Program"]:
        return {}  # parts are asked for again and again, and hold no numbers but what is held here

    @cached_property
    def _cut_before(self) -> dict[tuple[int, ...], list["Program"]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:  # without what can be made again
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def constants(self) -> dict[int, Tensor]:
        """The tensors that are held, as they are now."""
        return {i: h.tensor if isinstance(h, Held) else h for i, h in self.held.items()}

    @property
    def entries(self) -> int:
        """The number of entries that the values which depend on the input have at one point."""
        return sum(map(math.prod, self.shapes.values()))

    @property
    def held_entries(self) -> int:
        """The number of entries of what is held: of the products at one point, in dense layers."""
        return sum(tensor.numel() for tensor in self.constants.values())

    def run(self, x: Tensor, on_value: OnValue | None = None, act: Act = lifted) -> list[Tensor]:
        """The outputs at points x (n, *input_shape), in one pass; differentiable if gradients are enabled."""
        return self.resume({0: x[:, None]}, on_value, act)

    @memory_told()
    def resume(self, known: Mapping[int, Any], on_value: OnValue | None = None, act: Act = lifted) -> list[Any]:
        """The outputs, given the values (n, *shape) that the steps need and do not make.

        `on_value` sees every value that depends on the input, the known ones first. `act` does the steps that do, in
        another arithmetic if one wants.
        """
        values: dict[int, Any] = {**self.constants, **known}
        if on_value is not None:
            for index in known:
                seen = on_value(index, values[index])
                values[index] = values[index] if seen is None else seen
        for step in self.steps:
            live = not step.used.isdisjoint(self.shapes)
            made = act(step, values, self.shapes) if live else step.run(values)
            for index, value in zip(step.results, made, strict=True):
                seen = on_value(index, value) if on_value is not None and index in self.shapes else None
                values[index] = value if seen is None else seen
            for index in step.done_with:
                del values[index]
        return [values[index] for index in self.outputs]

    def pruned(self, outputs: Sequence[int]) -> "Program":
        """The part of the program that these outputs need, with each value dropped after its last use."""
        known = self._pruned_before
        if (key := tuple(outputs)) not in known:
            known[key] = self._pruned(outputs)
        return known[key]

    def _pruned(self, outputs: Sequence[int]) -> "Program":
        needed, kept = set(outputs), []
        for step in reversed(self.steps):
            if needed.isdisjoint(step.results):
                continue
            dying = (step.used | set(step.results)) - needed
            needed |= step.used
            kept.append(step.with_last_uses(dying))
        held = {index: tensor for index, tensor in self.held.items() if index in needed}
        return Program(tuple(reversed(kept)), held, self.shapes, tuple(outputs))

    def segments(self, cuts: Sequence[int]) -> list["Program"]:
        """The program cut where each of these values has just been made, and a last part that gives the outputs.

        A part takes the outputs of the part before it; the value of its cut comes first among its own. What does not
        depend on the input is no output: each part works it out, or `folded` did.
        """
        known = self._cut_before
        if (key := tuple(cuts)) not in known:
            known[key] = self._segments(cuts)
        return list(known[key])

    def _segments(self, cuts: Sequence[int]) -> list["Program"]:
        made = {value: position for position, step in enumerate(self.steps) for value in step.results}
        fixed, _ = self._fixed_and_live()
        parts, state, start = [], [0], 0
        for number, cut in enumerate(cuts):
            end = max(start, made.get(cut, -1) + 1)
            needed = {value for step in self.steps[end:] for value in step.used} | {*self.outputs, *cuts[number:]}
            known = [*state, *(value for step in self.steps[start:end] for value in step.results)]
            state = [cut, *(v for v in known if v in needed and v != cut and v in self.shapes)]
            parts.append(self._part(fixed, start, end)._pruned(state))
            start = end
        return [*parts, self._part(fixed, start, len(self.steps))._pruned(self.outputs)]

    def _part(self, fixed: tuple[Step, ...], start: int, end: int) -> "Program":
        live = [step for step in self.steps[start:end] if not step.used.isdisjoint(self.shapes)]
        return Program((*fixed, *live), self.held, self.shapes, self.outputs)

    def still(self) -> "Program":
        """The same; no weight takes part in its gradients."""
        return replace(self, held={i: c.detach() for i, c in self.constants.items()})

    def frozen(self, dtype: torch.dtype) -> "Program":
        """A copy in another precision, apart from the model, with all that does not depend on the input worked out."""
        with threads_for(self.held_entries):
            held: dict[int, Tensor | Held] = {
                i: c.to(_recast(c.dtype, dtype), copy=True) for i, c in self.constants.items()
            }
            return replace(self, steps=tuple(_recast_step(step, dtype) for step in self.steps), held=held).folded()

    def folded(self) -> "Program":
        """The same with all that does not depend on the input worked out."""
        fixed, live = self._fixed_and_live()
        held = self.constants
        for step in fixed:
            held.update(zip(step.results, step.run(held), strict=True))
        return Program(live, dict[int, Tensor | Held](held), self.shapes, self.outputs).pruned(self.outputs)

    def _fixed_and_live(self) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        """The steps that do not depend on the input, and those that do."""
        fixed = tuple(step for step in self.steps if step.used.isdisjoint(self.shapes))
        return fixed, tuple(step for step in self.steps if not step.used.isdisjoint(self.shapes))


def _recast_step(step: Step, dtype: torch.dtype) -> Step:
    """A step in another precision; most name none, and what is known of those stays known."""
    if not any(isinstance(argument, torch.dtype) for argument in (*step.arguments, *step.options.values())):
        return step
    return replace(step, **{part: _recast(getattr(step, part), dtype) for part in ("arguments", "options")})


def _recast(argument: Any, dtype: torch.dtype) -> Any:
    """Arguments in which every floating dtype is replaced."""
    if isinstance(argument, dict):
        return {name: _recast(a, dtype) for name, a in argument.items()}
    if isinstance(argument, list | tuple):
        return type(argument)(_recast(a, dtype) for a in argument)
    if isinstance(argument, torch.dtype) and argument.is_floating_point:
        return dtype
    return argument
