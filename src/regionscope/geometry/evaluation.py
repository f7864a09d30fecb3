"""Parts of a network evaluated at all vertices, into tables that are there, a limited number of vertices at a time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry.rows import ENTRIES_AT_ONCE
from regionscope.machine import points_at_once, threads_for
from regionscope.tracing.lifting import lifted, lifted_into
from regionscope.tracing.network import as_rows
from regionscope.tracing.program import Program
from regionscope.tracing.steps import Step
from regionscope.types import Floats


def fill_tables(
    targets: Sequence[Floats], part: Program, known: tuple[int, ...], state: Sequence[Floats], backwards: bool = False
) -> None:
    """Write the outputs of a part of the network into tables, a limited number of vertices at a time.

    What they are made of is written over.
    """
    vertices, widths = len(targets[0]), [rows.shape[1] for rows in (*state, *targets)]
    at_once = points_at_once(max(1, *(rows.shape[1] for rows in state)), floats=ENTRIES_AT_ONCE)
    starts = range(0, vertices, at_once)
    apart = not any(np.may_share_memory(targets[0], rows) for rows in state)
    with threads_for(vertices * (sum(widths) + part.held_entries)):
        for start in reversed(starts) if backwards else starts:
            some = slice(start, min(start + at_once, vertices))
            into = [torch.from_numpy(target[some]) for target in targets]
            made = part_outputs(part, known, [s[some] for s in state], into[0] if apart else None)
            for target, result in zip(into, made, strict=True):
                if target.data_ptr() != result.data_ptr():
                    target.copy_(result)  # on all cores


def part_outputs(
    part: Program, known: tuple[int, ...], state: Sequence[Floats], into: Tensor | None = None
) -> list[Tensor]:
    """The outputs of a part of the network, as rows, given rows of the values that it knows; none of them shared.

    The first may be put `into` memory that is there. What nothing but a ReLU reads is written over by it: memory that
    is fetched anew takes longer than its work.
    """
    given = [torch.from_numpy(rows) for rows in state]
    values = {v: rows.view(rows.shape[0], *part.shapes[v]) for v, rows in zip(known, given, strict=True)}
    used = {rows.untyped_storage().data_ptr() for rows in given}
    readers = Counter(v for step in part.steps for v in step.used)

    def act(step: Step, values: Mapping[int, Any], shapes: Mapping[int, tuple[int, ...]]) -> list[Any]:
        entering = step.named["self"].index if step.name == "relu" else None
        if entering in known and readers[entering] == 1 and entering in step.done_with:
            return [values[entering].relu_()]
        if into is not None and step.results[0] == part.outputs[0]:
            return lifted_into(step, values, shapes, into) or lifted(step, values, shapes)
        return lifted(step, values, shapes)

    made = [as_rows(value) for value in part.resume(values, act=act)]
    return [rows.clone() if rows.untyped_storage().data_ptr() in used else rows for rows in made]
