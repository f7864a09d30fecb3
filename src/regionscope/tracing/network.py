"""A traced network: its activation sites, and their pre-activations at any points."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from regionscope.machine import portions
from regionscope.points import as_tensor
from regionscope.tables import Facts, Text, how_many, html_table, text_table
from regionscope.tracing.activations import PAIRWISE
from regionscope.tracing.program import Held, OnValue, Program
from regionscope.types import Array

Found = TypeVar("Found")
# a second difference above this share of the first says the function is not affine
AFFINE_DEFECT = 1e-7
ROUNDING = 1e-12  # what float64 may leave of the second difference, relative to the values
HALVINGS = 40
BATCH_ADVICE = "a single point needs an axis for the batch: x[None]"
FLAT_ADVICE = "flatten images first: x.flatten(1)"


@dataclass(frozen=True)
class Tournament:
    """Max-pooling or one of its like, played in rounds of two; `winners` is the value of the program that says who won.

    What says nothing of that, such as a clamp between tensors, has none.
    """

    name: str
    winners: int | None = None


@dataclass(frozen=True)
class Site:
    """A place where an activation is applied, one unit an element.

    `layer` counts the activations on the longest path from the input, from 1. Max-pooling, maxout and their like are
    played as a tournament: every round is a site of the same layer, whose units are the differences of two competitors.
    """

    name: str
    kind: str
    breakpoints: tuple[float, ...]
    shape: tuple[int, ...]
    layer: int
    smooth: bool = False
    entry: int = field(default=-1, repr=False)  # the values of the program that enter and leave it
    exit: int = field(default=-1, repr=False)
    tournament: Tournament | None = field(default=None, repr=False)  # that it is a round of

    @property
    def units(self) -> int:
        return math.prod(self.shape)

    @property
    def competes(self) -> bool:
        """Whether its units are the differences of two competitors, as in max-pooling, maxout and `maximum`."""
        return self.tournament is not None or self.kind in PAIRWISE.values()


@dataclass(frozen=True, repr=False)
class Affinity(Facts):
    """What `Network.verify` found at each point: how far it looked, and how far from affine the network was."""

    radius: Tensor  # (n,) half-length of the segment on which the pattern does not change; 0 for a point on a boundary
    defect: Tensor  # (n,) largest second difference over largest first difference, over outputs and pre-activations
    tolerance: float = AFFINE_DEFECT
    switching: tuple[str, ...] = ()  # the sites on whose boundaries points lie, by name

    @property
    def holds(self) -> bool:
        """Whether every point inside a region was affine to rounding, and there was one."""
        inside = self.radius > 0
        return bool(inside.any() and (self.defect[inside] <= self.tolerance).all())

    @property
    def reason(self) -> str:
        """Why it holds, or does not, in words."""
        inside = self.radius > 0
        n, looked, bent = len(inside), int(inside.sum()), int((inside & ~(self.defect <= self.tolerance)).sum())
        if bent:
            return f"not affine at {bent} of {n} points: the defect is up to {float(self.defect[inside].max()):.2g}"
        if looked == n:
            return f"affine to rounding at all {n} points"
        few = ", ".join(map(repr, self.switching[:3])) + (", …" if len(self.switching) > 3 else "")
        where = f"lie on boundaries of {few}, inside no region"
        if looked:
            return f"affine to rounding at {looked} of {n} points; the others {where}"
        return f"all {n} points {where}: there is nothing to check; take others nearby, x + 0.01 * torch.rand_like(x)"

    def _facts(self) -> dict[str, object]:
        looked = bool((self.radius > 0).any())
        return {"verdict": "holds" if self.holds else "does not hold" if looked else "none", "reason": self.reason}


@dataclass(frozen=True, repr=False)
class Network:
    """A model seen through its activation sites; made by `trace`.

    It reads the model's parameters as they are when it is evaluated, so it stays valid while the model trains.
    Without `piecewise_linear`, its sites mark where units switch, not where linear regions meet.
    """

    sites: tuple[Site, ...]
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    piecewise_linear: bool
    dtype: torch.dtype
    device: torch.device
    output: int
    program: Program

    @property
    def entries(self) -> tuple[int, ...]:
        """The values of the program that enter the sites."""
        return tuple(site.entry for site in self.sites)

    @property
    def exits(self) -> tuple[int, ...]:
        """The values of the program that leave the sites."""
        return tuple(site.exit for site in self.sites)

    @property
    def units(self) -> int:
        """The number of units of all sites."""
        return sum(site.units for site in self.sites)

    @property
    def layers(self) -> int:
        """The number of layers: the largest depth of a site."""
        return max((site.layer for site in self.sites), default=0)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The model's own tensors that it is made of, by their names in the model, as they are now."""
        return {held.path: held.tensor for held in self.program.held.values() if isinstance(held, Held)}

    def __call__(self, x: Array, *, batch_size: int | None = None) -> Tensor:
        """The network's output at points x (n, *input_shape)."""
        return self._batched(lambda points: [self.outputs(points)], x, batch_size)[0]

    def outputs(self, x: Tensor) -> Tensor:
        """The same with gradients, if they are enabled, and without a look at x."""
        return self._output_program.run(x)[0].reshape(len(x), *self.output_shape)

    def preactivations(self, x: Array, *, batch_size: int | None = None) -> tuple[Tensor, ...]:
        """The values that enter each site at points x (n, *input_shape): one tensor (n, *site.shape) a site.

        One forward pass, exact, at most `batch_size` points at a time; beyond the result, memory grows with that only.

        >>> from regionscope.tracing.trace import trace
        >>> net = trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()), torch.zeros(1, 2))
        >>> [tuple(v.shape) for v in net.preactivations(torch.zeros(5, 2))]
        [(5, 3)]
        """
        return tuple(self._batched(self._site_values, x, batch_size))

    def patterns(self, x: Array, *, batch_size: int | None = None) -> Tensor:
        """On which piece of its activation each unit is at points x: (n, units), the number of breakpoints below it.

        A value exactly at a breakpoint belongs to the piece on its left: a ReLU at 0 is closed.
        """

        def pieces(points: Tensor) -> list[Tensor]:
            values = self._site_values(points)
            nothing = torch.zeros(len(points), 0, dtype=torch.uint8, device=points.device)
            return [_flat([nothing, *(piece(v, s.breakpoints) for v, s in zip(values, self.sites, strict=True))])]

        return self._batched(pieces, x, batch_size)[0]

    def frozen(self, dtype: torch.dtype = torch.float64) -> "Network":
        """A copy in another precision that no longer follows the model."""
        with torch.no_grad():
            return self.recast(dtype)

    def recast(self, dtype: torch.dtype) -> "Network":
        """The same, with gradients of the model's parameters if they are enabled."""
        return replace(self, dtype=dtype, program=self.program.frozen(dtype))

    def with_noisy_weights(self, scales: Sequence[float], generator: torch.Generator | None) -> "Network":
        """A copy whose weights (constants with two dimensions or more) have noise N(0, max(scales)^2)."""
        scale = max(scales)
        noisy: dict[int, Tensor | Held] = {
            i: c + scale * torch.randn(c.shape, generator=generator, dtype=c.dtype).to(c.device)
            if c.is_floating_point() and c.dim() > 1
            else c
            for i, c in self.program.constants.items()
        }
        return replace(self, program=replace(self.program, held=noisy))

    def entry_noise(self, noise: Sequence[Tensor]) -> dict[int, Tensor]:
        """Noise, one tensor (n, units) a site, by the values it is taken off: the first's, if one enters several."""
        return dict(reversed(list(zip(self.entries, noise, strict=True))))

    def noisy_entries(self, noise: Sequence[Tensor]) -> OnValue:
        """Takes noise, one tensor (n, units) a site, off what enters the sites while the program runs."""
        off = self.entry_noise(noise)
        return lambda value, tensor: tensor - off[value].reshape(tensor.shape) if value in off else None

    def by_layer(self, units: Tensor) -> Tensor:
        """The sums over the units of each layer: (n, units) -> (n, layers)."""
        if not self.sites:
            return units
        sums = [site.sum(dim=1) for site in units.split([site.units for site in self.sites], dim=1)]
        layer = torch.tensor([site.layer - 1 for site in self.sites], device=units.device)
        zero = torch.zeros(len(units), self.layers, dtype=units.dtype, device=units.device)
        return zero.index_add(1, layer, torch.stack(sums, dim=1))

    def verify(self, x: Array, *, generator: torch.Generator | None = None) -> Affinity:
        """Check at points x (n, *input_shape), in float64, that the network is affine inside the pattern of x.

        Along a random direction u it halves t until x + tu and x - tu have the pattern of x and compares the second
        difference f(x + tu) - 2f(x) + f(x - tu) with the first, for the output and every pre-activation. An affine
        function leaves rounding only. Numerical evidence, not a proof. Nothing is told of points on a boundary, as
        images with a blank background are where competitors of max-pooling tie. Without a `generator`, u is the same in
        every call.
        """
        net, x = self.frozen(), self.checked(x).double()
        generator = generator or torch.Generator().manual_seed(0)
        u = torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
        u /= _per_point(u.flatten(1).norm(dim=1), x)
        t = x.flatten(1).norm(dim=1).clamp_min(1.0)
        here = net.patterns(x)
        for _ in range(HALVINGS):
            step = _per_point(t, x) * u
            switches = (net.patterns(x + step) != here) | (net.patterns(x - step) != here)  # (n, units)
            same = ~switches.any(dim=1)
            if same.all():
                break
            t = torch.where(same, t, t / 2)
        ahead, middle, behind = (_flat([*net._site_values(p), net(p)]) for p in (x + step, x, x - step))
        second = (ahead - 2 * middle + behind).abs().amax(dim=1)
        first = (ahead - behind).abs().amax(dim=1) + ROUNDING / AFFINE_DEFECT * (1 + middle.abs().amax(dim=1))
        by_site = zip(self.sites, switches.split([site.units for site in self.sites], dim=1), strict=True)
        switching = tuple(site.name for site, units in by_site if units.any())
        return Affinity(radius=torch.where(same, t, 0.0), defect=second / first, switching=switching)

    def checked(self, x: Array) -> Tensor:
        """x itself, if it is a non-empty batch of points that this network takes; otherwise an error that says why.

        A tensor must have the dtype and the device of the network. An array of floats is converted: numpy makes them
        double unless told otherwise, which says nothing about what was meant.
        """
        wanted = f"(n, {', '.join(map(str, self.input_shape))})"
        if isinstance(x, np.ndarray) and x.dtype.kind == "f":
            x = as_tensor(x).to(self.device, self.dtype)
        if not isinstance(x, Tensor):
            kind = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else type(x).__name__
            raise TypeError(f"points must be a tensor or an array of floats {wanted}, got {kind}")
        if tuple(x.shape[1:]) != self.input_shape:
            raise ValueError(f"points must be {wanted}, got {tuple(x.shape)}{self._shape_advice(x)}")
        if len(x) == 0:
            raise ValueError(f"points must be {wanted} with n >= 1, got none")
        if x.dtype != self.dtype or x.device != self.device:
            raise TypeError(
                f"points are {x.dtype} on {x.device}, the network is {self.dtype} on {self.device};"
                f" convert them with x.to({self.device.type!r}, {self.dtype})"
            )
        if not torch.isfinite(x.sum()) and not torch.isfinite(x).all():
            raise ValueError("points hold NaN or infinite values; remove them first")
        return x

    def _shape_advice(self, x: Tensor) -> str:
        if tuple(x.shape) == self.input_shape:
            return f"; {BATCH_ADVICE}"
        return f"; {FLAT_ADVICE}" if x[:1].numel() == math.prod(self.input_shape) else ""

    def describe(self, points: int = 1000, *, seconds: float = 60.0, seconds_per_record: float = 20.0) -> Text:
        """The sites, and how long measures take at so many points: once, and in a record while the model trains.

        What a large network is measured with, so that it keeps within a time, is said; see `regionscope.Monitor`.
        """
        from regionscope.measures.plans import UNPLANNED, usual_plans

        measuring, watching = usual_plans(self, points, seconds, seconds_per_record)
        others = "\n".join(f"{name} is taken if it is asked for: {why}" for name, why in UNPLANNED.items())
        return Text(
            f"{self}\n\nmeasured at {how_many(points, 'point')}\n{measuring}\n{others}\n\n"
            f"a record at {how_many(points, 'point')}\n{watching}"
        )

    def __str__(self) -> str:
        """A table of the sites."""
        return f"{text_table(self._rows())}\n{self!r}"

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return html_table(self._rows(), repr(self))

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("layer", "site", "kind", "breakpoints", "shape", "units")]
        for s in self.sites:
            breakpoints = ", ".join(f"{b:g}" for b in s.breakpoints)
            rows.append((str(s.layer), s.name, s.kind, breakpoints, "×".join(map(str, s.shape)), str(s.units)))
        return rows

    def __repr__(self) -> str:
        kind = "piecewise linear" if self.piecewise_linear else "not piecewise linear: unit boundaries only"
        sizes = {"site": len(self.sites), "unit": self.units, "layer": self.layers}
        return f"Network({', '.join(how_many(n, what) for what, n in sizes.items())}, {kind})"

    @cached_property
    def _site_program(self) -> Program:
        return self.program.pruned(self.entries)

    @cached_property
    def _output_program(self) -> Program:
        return self.program.pruned([self.output])

    def _site_values(self, x: Tensor) -> list[Tensor]:
        values = self._site_program.run(x)
        return [v.reshape(len(x), *site.shape) for v, site in zip(values, self.sites, strict=True)]

    @torch.no_grad()
    def _batched(self, function: Callable[[Tensor], list[Tensor]], x: Array, batch_size: int | None) -> list[Tensor]:
        x = self.checked(x)
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if batch_size is None or batch_size >= len(x):
            return function(x)
        results: list[Tensor] = []
        for rows in portions(len(x), batch_size):
            part = function(x[rows])
            results = results or [torch.empty(len(x), *p.shape[1:], dtype=p.dtype, device=p.device) for p in part]
            for whole, piece_ in zip(results, part, strict=True):
                whole[rows] = piece_
        return results


def kept_with(net: Network, key: Hashable, found: Callable[[], Found]) -> Found:
    """What was found out about a network, once; it is kept with it, and copies begin with nothing.

    The key is the function that asks, or begins with it, so that no two files mean different things by one.
    """
    known: dict[Hashable, Found] = vars(net).setdefault("_kept", {})
    if key not in known:
        known[key] = found()
    return known[key]


def piece(values: Tensor, breakpoints: tuple[float, ...]) -> Tensor:
    """The number of breakpoints below each value, as uint8."""
    count = torch.zeros(values.shape, dtype=torch.uint8, device=values.device)
    for b in breakpoints:
        count += values > b
    return count


def as_rows(value: Tensor) -> Tensor:
    """What n points have of a value, (n, units), also if that is a number alone."""
    return value if value.dim() == 2 else value[..., None].flatten(1)


def _per_point(numbers: Tensor, x: Tensor) -> Tensor:
    """Numbers (n,) in a shape that multiplies points x (n, ...)."""
    return numbers.view(-1, *[1] * (x.dim() - 1))


def _flat(values: list[Tensor]) -> Tensor:
    return torch.cat([as_rows(v) for v in values], dim=1)
