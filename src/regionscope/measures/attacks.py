"""Adversarial attacks: searches of a ball for a point that a network classifies wrong.

An attack climbs a loss that grows as the network comes nearer to a mistake: the lead of another output over the
label's, or the cross-entropy. The lead keeps its slope where the softmax is saturated; the cross-entropy is flat there.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from regionscope.measures.classification import label_leads
from regionscope.measures.distance import norm_named
from regionscope.measures.draws import Draws

Outputs = Callable[[Tensor], Tensor]  # points -> outputs (n, k), with gradients
NORMS = ("Linf", "L2")
LOSSES = ("margin", "cross-entropy")
UNBOUNDED = (-math.inf, math.inf)
MOST_TARGETS = 16  # of many classes only those with the largest outputs are aimed at: each costs a gradient


def box_of(data: Sequence[Tensor]) -> tuple[float, float]:
    """The least and the largest number in all data, also rounded to float32; no bounds if they are all one number.

    >>> box_of([torch.tensor([[0.0, 0.5]]), torch.ones(1, 2)])
    (0.0, 1.0)
    """
    ends = [float(end) for x in data for end in (x.min(), x.max(), x.min().float(), x.max().float())]
    return (min(ends), max(ends)) if min(ends) < max(ends) else UNBOUNDED


@dataclass(frozen=True)
class Settings:
    """What an attack does: its name, the ball, and how hard it tries.

    Steps without a size have the usual one of the attack, a share of the radius; "fgsm" takes a single one.
    """

    attack: str
    radius: float
    steps: int
    step_size: float | None
    norm: str
    bounds: tuple[float, float]
    restarts: int
    loss: str

    def __post_init__(self) -> None:
        if self.attack not in ATTACKS:
            raise ValueError(f"attack must be none, {', '.join(ATTACKS)} or a function, got {self.attack!r}")
        object.__setattr__(self, "norm", norm_named(self.norm, NORMS))
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be {' or '.join(LOSSES)}, got {self.loss!r}")
        if not 0 < self.radius < math.inf or self.steps < 1:
            raise ValueError(f"radius must be positive and steps at least 1, got {self.radius} and {self.steps}")
        if self.step_size is not None and not self.step_size > 0:
            raise ValueError(f"step_size must be positive, got {self.step_size}")
        if self.restarts < 1:
            raise ValueError(f"restarts must be at least 1, got {self.restarts}")
        if not self.bounds[0] < self.bounds[1]:
            raise ValueError(f"bounds must be (low, high) with low < high, got {self.bounds}")
        single = {"steps": 1, "step_size": self.radius, "restarts": 1} if self.attack == "fgsm" else {}
        for name, value in {"step_size": self.step_size or STEP_SIZES[self.attack] * self.radius, **single}.items():
            object.__setattr__(self, name, value)

    @property
    def options(self) -> dict[str, Any]:
        """All of it by name, but for bounds where there are none."""
        return {name: value for name, value in asdict(self).items() if value != UNBOUNDED}

    def rounded(self, dtype: torch.dtype) -> "Settings":
        """The same with the bounds as that dtype has them: points that are rounded to it keep to those."""
        low, high = torch.tensor(self.bounds, dtype=torch.float64).to(dtype).tolist()
        return replace(self, bounds=(low, high))

    def around(self, x: Tensor) -> "_Ball":
        return _Ball(x, self.radius, self.norm, self.bounds)


@dataclass(frozen=True)
class _Ball:
    """All points within a radius of each of the centres (n, ...), in a norm, that keep to the bounds."""

    centres: Tensor
    radius: float
    norm: str
    bounds: tuple[float, float]

    def nearest(self, p: Tensor) -> Tensor:
        """The point of the ball nearest to each of the points (n, ...)."""
        away = p - self.centres
        if self.norm == "Linf":
            return (self.centres + away.clamp(-self.radius, self.radius)).clamp(*self.bounds)
        share = (self.radius / _lengths(away)).clamp(max=1.0)
        # It is centre + share * away, clipped. What is clipped leaves the other entries room for a larger share.
        for _ in range(8 if self.bounds != UNBOUNDED else 0):
            there = self.centres + share * away
            clipped = there != there.clamp(*self.bounds)
            used = _lengths(torch.where(clipped, there.clamp(*self.bounds) - self.centres, 0.0))
            room = (self.radius**2 - used**2).clamp_min(0).sqrt()
            free = _lengths(torch.where(clipped, 0.0, away)).clamp_min(torch.finfo(p.dtype).tiny)
            share = (room / free).clamp(max=1.0).maximum(share)
        return (self.centres + share * away).clamp(*self.bounds)

    def uphill(self, gradient: Tensor) -> Tensor:
        """The step of length 1 that gains most along a gradient (n, ...); no step where that is zero."""
        if self.norm == "Linf":
            return gradient.sign()
        largest = gradient.flatten(1).abs().amax(dim=1).view(_column(gradient))
        scaled = gradient / torch.where(largest > 0, largest, 1.0)  # the squares of tiny gradients would be zero
        return scaled / _lengths(scaled).clamp_min(1.0)  # shorter than 1 only where it is zero

    def slopes(self, gradient: Tensor) -> Tensor:
        """What a step of length 1 gains at the most along a gradient (n, ...): its dual norm, (n,)."""
        sizes: Tensor = torch.linalg.vector_norm(gradient.flatten(1), ord=1 if self.norm == "Linf" else 2, dim=1)
        return sizes

    def anywhere(self, numbers: Draws, number: int) -> Tensor:
        """A random point around each centre: uniform in the ball, then moved into the bounds."""
        x = self.centres
        if self.norm == "Linf":
            step = 2 * numbers.uniform((number,), x, *x.shape[1:]) - 1
        else:
            step = numbers.normal((number,), x, *x.shape[1:])
            part = numbers.uniform((number, 0), x).view(_column(x))
            step *= part ** (1 / x[0].numel()) / _lengths(step)
        return self.nearest(x + self.radius * step)


@dataclass(frozen=True)
class _Found:
    """The best place (n, ...) of all that were looked at, and by how much the label's output leads there, (n,)."""

    places: Tensor
    leads: Tensor

    @property
    def all_wrong(self) -> bool:
        """Whether a mistake has been found for every point."""
        return bool((self.leads <= 0).all())

    def or_better(self, p: Tensor, leads: Tensor) -> "_Found":
        """The same with other places (n, ...), where the label's output leads by less there."""
        better = leads < self.leads
        return _Found(_rows_where(better, p, self.places), torch.where(better, leads, self.leads))


@dataclass(frozen=True)
class _Search:
    """What is climbed around some points."""

    outputs: Outputs
    ball: _Ball
    labels: Tensor
    targets: Tensor | None  # the output to aim at for each point; otherwise the largest but the label's
    loss: str

    def look(self, p: Tensor, found: _Found) -> tuple[Tensor, Tensor, _Found]:
        """The loss (n,) and its gradient (n, ...) at one place for each point, and the best place with that one."""
        with torch.enable_grad():
            p = p.detach().requires_grad_()
            outputs = self.outputs(p)
            losses = self.losses(outputs)
        gradient, p = _gradient_of(losses, p), p.detach()
        return losses.detach(), gradient, found.or_better(p, label_leads(outputs.detach(), self.labels))

    def losses(self, outputs: Tensor) -> Tensor:
        """What is climbed, (n,)."""
        if self.loss == "cross-entropy":
            return cross_entropy(outputs, self.labels, reduction="none")
        if self.targets is None:
            return -label_leads(outputs, self.labels)
        return -_target_leads(outputs, self.labels, self.targets)


def _pgd(search: _Search, found: _Found, start: Tensor, steps: int, size: float) -> _Found:
    """Projected gradient ascent with steps of one size (Madry et al. 2018); FGSM is one of them (Goodfellow et al.)."""
    p = start
    for _ in range(steps):
        _, gradient, found = search.look(p, found)
        if found.all_wrong:
            return found
        p = search.ball.nearest(p + size * search.ball.uphill(gradient))
    return search.look(p, found)[-1]


def _apgd(search: _Search, found: _Found, start: Tensor, steps: int, first_size: float) -> _Found:
    """Ascent with momentum and steps that are halved where they gain too little (Croce & Hein 2020, Algorithm 1).

    At each checkpoint a point's step is halved, and it goes back to its best place, if the loss rose at fewer than 3/4
    of the steps since the last checkpoint, or if neither the step nor the best loss have changed since then.
    """
    ball, p, before = search.ball, start, start
    size = torch.full(_column(p), first_size, dtype=p.dtype, device=p.device)
    loss, gradient, found = search.look(p, found)
    top, top_place, top_gradient = loss, p, gradient
    last_top, last_check = top, 0
    halved, rises = torch.zeros_like(loss, dtype=torch.bool), torch.zeros_like(loss)
    for step in range(1, steps + 1):
        if found.all_wrong:
            break
        climb = ball.nearest(p + size * ball.uphill(gradient)) - p
        p, before = ball.nearest(p + (0.75 * climb + 0.25 * (p - before) if step > 1 else climb)), p
        previous, (loss, gradient, found) = loss, search.look(p, found)
        rises, higher = rises + (loss > previous), loss > top
        top = torch.where(higher, loss, top)
        top_place, top_gradient = _rows_where(higher, p, top_place), _rows_where(higher, gradient, top_gradient)
        if step in halving_steps(steps):
            halved = (rises < 0.75 * (step - last_check)) | (~halved & (top == last_top))
            size, loss = _rows_where(halved, size / 2, size), torch.where(halved, top, loss)
            p, before = _rows_where(halved, top_place, p), _rows_where(halved, top_place, before)
            gradient = _rows_where(halved, top_gradient, gradient)
            last_top, last_check, rises = top, step, torch.zeros_like(rises)
    return found


def halving_steps(steps: int) -> set[int]:
    """The steps at which APGD may halve its own: after 22% of them, then after ever shorter stretches down to 6%."""
    percent, stretch, found = 22, 22, set()
    while percent <= 100:
        found.add(-(-percent * steps // 100))
        stretch = max(stretch - 3, 6)
        percent += stretch
    return found


ATTACKS: dict[str, Callable[[_Search, _Found, Tensor, int, float], _Found]] = {
    "pgd": _pgd, "apgd": _apgd, "fgsm": _pgd
}  # fmt: skip
STEP_SIZES = {"pgd": 1 / 4, "apgd": 2.0, "fgsm": 1.0}  # shares of the radius, if not given


def search_starts(x: Tensor, settings: Settings, numbers: Draws) -> list[Tensor]:
    """Where the searches around points (n, ...) start: the first at the points themselves, the others at random.

    They are drawn for all points, needed or not: what a point gets does not depend on how it goes for others.
    """
    return [x, *(settings.around(x).anywhere(numbers, number) for number in range(1, settings.restarts))]


def worst_points(
    outputs: Outputs, x: Tensor, labels: Tensor, settings: Settings, starts: Sequence[Tensor]
) -> Tensor:  # fmt: skip
    """For each point the place in its ball where the label's output leads by least, or is beaten, of all looked at.

    There is a search from each of the starts (n, ...). With the margin loss they aim, in turn, at the class whose
    border is nearest to first order, at whichever is largest, at the second nearest, and so on.
    """
    best, leads = x.clone(), torch.full(labels.shape, math.inf, dtype=x.dtype, device=x.device)
    left = torch.arange(len(x), device=x.device)
    aims: list[Tensor | None] = [None]
    if settings.loss == "margin" and settings.attack != "fgsm":
        nearest, *others = _targets_by_distance(outputs, settings.around(x), labels)
        aims = [nearest, None, *others]
    for number, start in enumerate(starts):
        aim = aims[number % len(aims)]
        search = _Search(
            outputs, settings.around(x[left]), labels[left], None if aim is None else aim[left], settings.loss
        )
        before = _Found(best[left], leads[left])
        assert settings.step_size is not None
        found = ATTACKS[settings.attack](search, before, start[left], settings.steps, settings.step_size)
        best[left], leads[left] = found.places, found.leads
        left = left[found.leads > 0]
        if not len(left):
            break
    return best


def _targets_by_distance(outputs: Outputs, ball: _Ball, labels: Tensor) -> list[Tensor]:
    """Other outputs (n,), first the one that overtakes the label's nearest to each centre if the slopes stay."""
    with torch.enable_grad():
        x = ball.centres.detach().requires_grad_()
        values = outputs(x)
        others = values.detach().scatter(1, labels[:, None], -torch.inf)
        able = others.topk(min(others.shape[1] - 1, MOST_TARGETS), dim=1).indices
        gaps = [_target_leads(values, labels, target) for target in able.T]
    distances = [gap.detach() / ball.slopes(_gradient_of(gap, x)) for gap in gaps]
    return list(able.gather(1, torch.stack(distances, dim=1).argsort(dim=1)).T)


def _target_leads(outputs: Tensor, labels: Tensor, targets: Tensor) -> Tensor:
    """How far the output of the label is above that of the target, (n,)."""
    return outputs.gather(1, labels[:, None])[:, 0] - outputs.gather(1, targets[:, None])[:, 0]


def _gradient_of(values: Tensor, x: Tensor) -> Tensor:
    """The gradient (n, ...) of one value a point; zero if it does not depend on the point."""
    if not values.requires_grad:
        return torch.zeros_like(x)
    return torch.autograd.grad(values.sum(), x, retain_graph=True, allow_unused=True, materialize_grads=True)[0]


def _rows_where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The rows of a where the condition (n,) holds, of b elsewhere."""
    return torch.where(condition.view(_column(a)), a, b)


def _lengths(v: Tensor) -> Tensor:
    """The l2 norm of each of the vectors (n, ...), in a shape that multiplies them."""
    lengths: Tensor = torch.linalg.vector_norm(v.flatten(1), dim=1)
    return lengths.view(_column(v))


def _column(x: Tensor) -> tuple[int, ...]:
    """The shape of one number a point that multiplies points (n, ...)."""
    return (len(x), *[1] * (x.dim() - 1))
