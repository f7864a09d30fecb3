"""The affine map of a network inside a cell, from its value and derivatives at one point with the cell's pattern."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.geometry.patterns import Column
from regionscope.geometry.pieces import Pieces, better, pieces
from regionscope.geometry.predicates import SAME_MAP
from regionscope.geometry.tournaments import bracket
from regionscope.machine import forward_derivative, portions
from regionscope.tracing.activations import PAIRWISE
from regionscope.tracing.given import points_kept_at_once
from regionscope.tracing.lifting import lifted
from regionscope.tracing.network import Network
from regionscope.tracing.steps import Step
from regionscope.types import Floats, Ints


def derivatives(
    net: Network, x: Tensor, directions: Tensor, columns: Sequence[Column], patterns: Ints
) -> tuple[Floats, Floats]:
    """Outputs (n, k) and their derivatives along each direction (m, *input_shape) or (m, n, *input_shape): (n, k, m).

    By forward differentiation with the patterns (n, entries) of cells, so exact to rounding however small a cell is:
    a point that is rounded may lie in another one.
    """
    each = directions if directions.dim() == x.dim() + 1 else directions[:, None].expand(-1, *x.shape)
    values, slopes = [], []
    for part in portions(len(x), points_kept_at_once(net)):
        on_pieces, along = _OnPieces(net, columns, patterns[part]), []
        for u in each:
            f, df = forward_derivative(on_pieces.outputs, (x[part],), (u[part].contiguous(),))[:2]
            along.append(df.detach().reshape(len(df), -1))
        values.append(f.detach().reshape(len(f), -1))
        slopes.append(torch.stack(along, dim=-1))
    return torch.cat(values).numpy(), torch.cat(slopes).numpy()


class _OnPieces:
    """A network whose units are on the pieces that patterns (n, entries) name, and whose tournaments those win."""

    def __init__(self, net: Network, columns: Sequence[Column], patterns: Ints) -> None:
        ends = np.cumsum([column.entries for column in columns])
        parts = np.split(patterns.astype(np.int64), ends[:-1], axis=1) if columns else []
        chosen = {column.name: torch.from_numpy(part) for column, part in zip(columns, parts, strict=True)}
        self._net = net
        self._pieces = {site.exit: chosen[site.name] for site in net.sites if site.name in chosen}
        played = [t for t in dict.fromkeys(site.tournament for site in net.sites) if t is not None]
        found = [(bracket(net, t), chosen[t.name]) for t in played if t.winners is not None and t.name in chosen]
        self._won = {playing.rounds[-1].exit: (playing, winners) for playing, winners in found}

    def outputs(self, x: Tensor) -> Tensor:
        """Of the network, at points x, one with each pattern."""
        net, sources, entering = self._net, {playing.source for playing, _ in self._won.values()}, dict[int, Tensor]()

        def keep(value: int, tensor: Tensor) -> None:
            if value in sources:
                entering[value] = tensor

        def act(step: Step, values: Mapping[int, Any], shapes: Mapping[int, tuple[int, ...]]) -> list[Any]:
            value = step.results[0]
            if value in self._won:
                playing, winners = self._won[value]
                return [playing.values(entering[playing.source], winners).reshape(-1, *shapes[value])]
            if value not in self._pieces:
                return lifted(step, values, shapes)
            if step.name in PAIRWISE:
                return [better(step, self._pieces[value], values, shapes)]
            found = pieces(step, net.program.constants)
            return lifted(step, values, shapes) if found is None else [self._bent(step, values, found)]

        return net.program.pruned([net.output]).run(x, keep, act)[0].reshape(len(x), *net.output_shape)

    def _bent(self, step: Step, values: Mapping[int, Any], found: Pieces) -> Tensor:
        """Each unit on the piece that it is said to be on."""
        z: Tensor = values[step.named["self"].index]
        number, result = self._pieces[step.results[0]].reshape(z.shape), torch.zeros_like(z)
        for piece, (slope, offset) in enumerate(found):
            factor = slope if isinstance(slope, Tensor) else float(slope)
            result = torch.where(number == piece, z * factor + float(offset), result)
        return result


def same_maps(a: Floats, b: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows of two lists of slopes (n, ...) are equal but for rounding.

    Neighbouring cells have the same values on their common border, so equal slopes mean equal maps.
    """
    entries = tuple(range(1, a.ndim))
    size = np.maximum(np.abs(a).max(axis=entries, initial=0), np.abs(b).max(axis=entries, initial=0))
    return np.asarray(np.abs(a - b).max(axis=entries, initial=0) <= SAME_MAP * size)
