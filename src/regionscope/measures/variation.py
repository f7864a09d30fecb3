"""Total variation: how steep the network is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regionscope.machine import points_at_once
from regionscope.measures.directions import (
    MOST_DIRECTIONS,
    affine_part_and_rest,
    affine_width,
    chosen_directions,
    exact_directions,
    row_space,
    tangent_floats,
)
from regionscope.measures.draws import Draws
from regionscope.measures.routes import Routes, behind_first_part
from regionscope.progress import tqdm
from regionscope.results import Estimate
from regionscope.tracing.given import network_and_points, points_kept_at_once
from regionscope.tracing.network import Network, as_rows
from regionscope.tracing.program import Program
from regionscope.types import Data, Model


@torch.inference_mode(False)  # it differentiates wherever it is called
def total_variation(
    model: Model | Network,
    data: Data,
    *,
    target: int | str | None = None,
    method: str = "auto",
    directions: int = 32,
    generator: torch.Generator | None = None,
    batch_size: int | None = None,
    differentiable: bool = False,
    allow_smooth: bool = False,
    show_progress: bool = False,
) -> Estimate:
    """Total variation TV = E |grad N(x)| (LC section 5): Frobenius norm of the Jacobian of all outputs.

    `target` takes one output by its number, or "margin": the largest output less the second largest. `method` is
    "reverse", exact, by reverse mode, one pass an output; the methods of `local_complexity` do the same by forward
    mode, of which "random" estimates the norm for a single output, without bias; "auto" is the cheaper one of those
    that are exact. For thousands of outputs "combinations" takes the gradients g of as many random combinations of them
    as there are `directions`, by reverse mode: E |g|^2 is the square of the norm, and the jackknife takes the bias off
    its root but for terms of 1 / directions^2. Without a `generator` such calls differ, of "random" and "combinations".
    With `differentiable` the mean carries gradients, in `tensor`.

    >>> model = torch.nn.Linear(2, 1)
    >>> _ = model.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> total_variation(model, torch.zeros(1, 2)).mean
    5.0
    """
    net, points = network_and_points(model, data, allow_smooth=allow_smooth)
    bar: dict[str, Any] = {"desc": "total variation", "disable": not show_progress}
    errors: list[Tensor] = []
    if method == "auto" and (target is not None or math.prod(net.output_shape) <= affine_width(net)):
        method = "reverse"
    how: dict[str, Any] = {"method": method}
    with torch.set_grad_enabled(differentiable):
        if method == "combinations":
            if directions < 2:
                raise ValueError(f"directions must be at least 2 for combinations of outputs, got {directions}")
            numbers, exact, parts = Draws(generator), False, []
            how["directions"] = directions
            for x in tqdm(points.split(points_kept_at_once(net, batch_size)), **bar):
                squares = _squares_of_combinations(net, x, target, directions, numbers, differentiable)
                norms, spread = _root_without_bias(squares)
                parts.append(norms)
                errors.append(spread)
        elif method == "reverse":
            at_once = points_kept_at_once(net, batch_size)
            way = _Way.through(net)
            batches = tqdm(points.split(at_once), **bar)
            parts = [_reverse_norms(way, x, target, differentiable) for x in batches]
            exact = True
        else:
            along = exact_directions(net) if method == "auto" else chosen_directions(net, method, directions)
            routes, numbers, exact, how = Routes(net, along, output=True), Draws(generator), along.exact, along.options
            at_once = points_at_once(tangent_floats(net, along), batch_size)
            parts = [_forward_norms(routes, x, target, numbers) for x in tqdm(points.split(at_once), **bar)]
    found = torch.cat(parts)
    return Estimate(
        "total variation",
        found.detach().cpu().double().numpy(),
        exact=exact,
        quantity="slope",
        point_stderr=torch.cat(errors).detach().cpu().double().numpy() if errors else None,
        tensor=found.mean() if differentiable else None,
        options={"target": target, **how},
        piecewise_linear=net.piecewise_linear,
    )


@dataclass(frozen=True)
class _Way:
    """The parts of a network before and behind its first bend, and what moves in between along a basis of directions.

    A gradient by what comes in between times these `tangents` (k, units) is as long as that by the input. If too much
    comes in between, nothing is before.
    """

    first: Program | None
    rest: Program
    tangents: list[Tensor]

    @staticmethod
    def through(net: Network) -> "_Way":
        if affine_width(net) >= min(math.prod(net.input_shape), MOST_DIRECTIONS):
            return _Way(None, net.program.pruned([net.output]), [])
        first, rest = affine_part_and_rest(net)
        moved = behind_first_part(net, row_space(net))
        return _Way(first, rest.pruned([net.output]), [moved[value].rows[:, 0] for value in first.outputs])

    def between(self, x: Tensor) -> dict[int, Tensor]:
        """What enters the rest at points x."""
        return {0: x[:, None]} if self.first is None else dict(zip(self.first.outputs, self.first.run(x), strict=True))

    def squared_norms(self, gradients: Sequence[Tensor]) -> Tensor:
        """The squared lengths (n,) of gradients by the input, given those by what enters the rest."""
        rows = [gradient.flatten(1) for gradient in gradients]
        if self.first is not None:
            rows = [torch.cat(rows, dim=1) @ torch.cat(self.tangents, dim=1).T]
        return rows[0].square().sum(dim=1)


def _reverse_norms(way: _Way, x: Tensor, target: int | str | None, differentiable: bool) -> Tensor:
    """The Frobenius norm of the Jacobian of the outputs that were asked for at points x, by reverse mode."""
    with torch.enable_grad():
        entering = way.between(x.detach())
        moves = {value: torch.zeros_like(tensor).requires_grad_() for value, tensor in entering.items()}  # one alone
        outputs = as_rows(way.rest.resume({value: entering[value] + moves[value] for value in entering})[0])
        squares = torch.zeros(len(x), dtype=x.dtype, device=x.device)
        for output in _target_rows(outputs.T, outputs, target):
            gradients = torch.autograd.grad(
                output.sum(), list(moves.values()), retain_graph=True, create_graph=differentiable,
                allow_unused=True, materialize_grads=True,
            )  # fmt: skip
            squares = squares + way.squared_norms(gradients)
    positive = squares > 0  # the derivative of the root at zero is taken as zero
    return torch.where(positive, torch.where(positive, squares, 1.0).sqrt(), 0.0)


def _forward_norms(routes: Routes, x: Tensor, target: int | str | None, numbers: Draws) -> Tensor:
    """The same along directions, by forward mode; random ones are drawn for each point."""
    along, outputs, norms = routes.along, as_rows(routes.net.outputs(x)), []
    vectors = None if along.exact else along.drawn(x, (0,), numbers).transpose(0, 1)
    for route in routes.each():
        chosen = _target_rows(route.follow(x, vectors=vectors).movedim(2, 0), outputs, target)
        if not along.exact and len(chosen) > 1:
            raise ValueError(
                "random directions give no unbiased norm of several outputs together; leave method out, which"
                " is exact, name a target, or say method='combinations'"
            )
        norms.append(torch.linalg.vector_norm(along.norms(chosen.movedim(0, 2)), dim=1))
    found: Tensor = torch.linalg.vector_norm(torch.stack(norms), dim=0)
    return found


def _squares_of_combinations(
    net: Network, x: Tensor, target: int | str | None, directions: int, numbers: Draws, differentiable: bool
) -> Tensor:
    """The squares of the gradients of random combinations of the outputs at points x, (n, directions)."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        rows = as_rows(net.outputs(x))
        chosen = _target_rows(rows.T, rows, target).T  # (n, k)
        squares = []
        for which in range(directions):
            factors = numbers.normal((which,), x, chosen.shape[1])
            (gradient,) = torch.autograd.grad(chosen, x, factors, retain_graph=True, create_graph=differentiable)
            squares.append(gradient.flatten(1).square().sum(dim=1))
    return torch.stack(squares, dim=1)


def _root_without_bias(squares: Tensor) -> tuple[Tensor, Tensor]:
    """The root of the mean of (n, r) numbers by the jackknife, and its standard error, (n,) each."""
    r, tiny = squares.shape[1], torch.finfo(squares.dtype).tiny  # whose root has a derivative
    whole = squares.mean(dim=1).clamp_min(tiny).sqrt()
    without = ((squares.sum(dim=1, keepdim=True) - squares) / (r - 1)).clamp_min(tiny).sqrt()  # one of them each
    spread = (r - 1) / math.sqrt(r) * without.std(dim=1)
    return r * whole - (r - 1) * without.mean(dim=1), spread


def _target_rows(rows: Tensor, outputs: Tensor, target: int | str | None) -> Tensor:
    """Of rows (k, n), or tangents (k, r, n), those that belong to the outputs (n, k) that were asked for."""
    if target is None:
        return rows
    if target == "margin":
        if outputs.shape[1] < 2:
            raise ValueError("a margin needs at least two outputs")
        first, second = outputs.topk(2, dim=1).indices.T
        at = torch.arange(len(outputs), device=outputs.device)
        return (rows[first, ..., at] - rows[second, ..., at]).movedim(0, -1)[None]
    if not isinstance(target, int) or not -outputs.shape[1] <= target < outputs.shape[1]:
        raise ValueError(f"target must be one of {outputs.shape[1]} outputs or 'margin', got {target!r}")
    return rows[target][None]
