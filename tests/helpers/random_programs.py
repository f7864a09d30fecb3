"""Random models of every layout that torch can write, as source, each with a twin that watches its activations."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from program_affine import AFFINE, LAYERS
from program_bends import BENDS, pair
from program_views import PLACES, VIEWS
from program_writer import POINTS, Layout, NotHere, Writer
from program_writes import WRITES
from torch import Tensor

Step = Callable[[Writer], None]

INPUTS = ((2,), (3,), (4,), (5,), (6,), (2, 2), (2, 3), (3, 2), (2, 2, 2), (1, 4), (4, 1), (2, 4))
TRIES = 30  # for a step that fits

HEAD = """import torch
import torch.nn.functional as F

def drawn(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
"""


class Watch:
    """What the activations of a model did, and pushes to what leaves them."""

    def __init__(self, pushes: Tensor | None = None) -> None:
        self.preactivations: list[tuple[Tensor, tuple[float, ...], int]] = []  # (n, units), breakpoints, layer
        self.competitors: list[Tensor] = []  # (n, races, competitors)
        self.pushes, self.pushed = pushes, 0

    def bends(self, rows: Tensor, breakpoints: tuple[float, ...], layer: int) -> None:
        self.preactivations.append((rows.detach().clone(), breakpoints, layer))

    def races(self, rows: Tensor, competitors: int) -> None:
        self.competitors.append(rows.detach().clone().reshape(len(rows), -1, competitors))

    def push(self, points: int, units: int) -> Tensor:
        self.pushed += units
        if self.pushes is None:
            return torch.zeros(points, units, dtype=torch.float64)
        return self.pushes[:, self.pushed - units : self.pushed]


@dataclass
class Program:
    """A model in source: `constants`, then the lines of its forward pass and of its watched twin."""

    seed: int
    input_shape: tuple[int, ...]
    constants: list[str]
    lines: list[str]
    watched_lines: list[str]
    differentiable: bool

    def __post_init__(self) -> None:
        self._names: dict[str, Any] = {}
        exec(self.source + self._function("watched", "x, watch", self.watched_lines), self._names)

    def __call__(self, x: Tensor) -> Tensor:
        """The model at points x (n, *input_shape): (n, k)."""
        return self._names["model"](x)  # type: ignore[no-any-return]

    def watched(self, x: Tensor, pushes: Tensor | None = None) -> tuple[Tensor, Watch]:
        """The same, with what its activations did; `pushes` (n, units) are added to what leaves them."""
        watch = Watch(pushes)
        with torch.no_grad():
            return self._names["watched"](x, watch), watch

    def points(self, n: int, seed: int = 0) -> Tensor:
        """Points to try it at, the same every time."""
        generator = torch.Generator().manual_seed(1000 * self.seed + seed)
        return torch.randn(n, *self.input_shape, generator=generator, dtype=torch.float64)

    @property
    def source(self) -> str:
        """The model alone, ready to run."""
        return "\n".join([HEAD, *self.constants, "", self._function("model", "x", self.lines)])

    def __str__(self) -> str:
        return f"# seed {self.seed}, points {('n', *self.input_shape)}\n{self.source}"

    def _function(self, name: str, arguments: str, lines: list[str]) -> str:
        return "\n    ".join([f"def {name}({arguments}):", "n, h = len(x), x", *lines, "return h"]) + "\n"


def random_program(seed: int, *, without: frozenset[int] = frozenset(), mixing: Step | None = None) -> Program:
    """A model of some ten random steps; the same for the same seed.

    `without` leaves steps out by their number, to find which of them matter. `mixing` is a step that lets the points of
    a batch know of each other, put in at a random place.
    """
    rng = random.Random(seed)
    shape = rng.choice(INPUTS)
    w = Writer(seed, Layout(((POINTS,), *((size,) for size in shape))))
    steps: list[Step] = [widen, *[any_step] * rng.randint(2, 5), layer, bend, *[any_step] * rng.randint(2, 5), bend]
    seeds = [rng.randrange(10**9) for _ in steps]
    if mixing is not None:
        steps.insert(rng.randint(1, len(steps)), mixing)
        seeds.append(0)
    for number, (step, own) in enumerate(zip(steps, seeds, strict=True)):
        if number not in without:
            w.rng = random.Random(own)
            tried(w, step)
    w.rng = random.Random(seed + 1)
    finish(w)
    lines = [line for line, plain, _ in w.lines if plain]
    watched = [line for line, _, watched in w.lines if watched]
    used = {word for line in (*lines, *watched) for word in re.findall(r"\w+", line)}
    constants = [line for line in w.constants if line.split()[0] in used]
    return Program(seed, shape, constants, lines, watched, w.differentiable)


def tried(w: Writer, step: Step) -> bool:
    """Write a step if it fits; otherwise leave everything as it was."""
    before = w.layout, w.names, w.differentiable, w.depth
    lines, constants = len(w.lines), len(w.constants)
    try:
        step(w)
    except NotHere:
        w.layout, w.names, w.differentiable, w.depth = before
        del w.lines[lines:], w.constants[constants:]
        return False
    return True


def one_of(w: Writer, steps: tuple[Step, ...]) -> None:
    """The first of some random ones that fits."""
    for _ in range(TRIES):
        if tried(w, w.one(*steps)):
            return


def any_step(w: Writer) -> None:
    groups: tuple[tuple[Step, ...], ...] = (PLACES, VIEWS, LAYERS, AFFINE, BENDS, WRITES, (branch,))
    (group,) = w.rng.choices(groups, weights=(5, 4, 2, 2, 2, 4, 2))
    one_of(w, group)


def layer(w: Writer) -> None:
    one_of(w, LAYERS)


def bend(w: Writer) -> None:
    one_of(w, BENDS)


def widen(w: Writer) -> None:
    """A dense layer on the whole input, to have some numbers to play with."""
    sizes = w.one((6,), (8,), (2, 3), (3, 4), (2, 2, 2), (4, 3), (12,), (2, 6), (2, 3, 2))
    layout = Layout(((POINTS,), *((size,) for size in sizes)))
    weight, bias = w.weight(layout.numbers, w.layout.numbers), w.drawn(layout.numbers)
    w.becomes(f"h = {layout.from_rows(f'F.linear(h.flatten(1), {weight}, {bias})')}", layout)


def branch(w: Writer) -> None:
    """One or two steps, then their result together with what was there before."""
    name, layout = w.name("s"), w.layout
    w(f"{name} = h")
    for _ in range(w.rng.randint(1, 2)):
        one_of(w, w.one(VIEWS, LAYERS, AFFINE, BENDS, WRITES, PLACES))
    if w.layout != layout:
        weight = w.weight(layout.numbers, w.layout.numbers)
        mixed = f"F.linear({w.layout.rows('h')}, {weight})"
        w(f"h = {layout.from_rows(mixed)}")
        w.layout = layout
    ending = w.rng.randrange(4)
    if ending == 0:
        pair(w, name)
    elif ending == 1:
        a = w.axis(1)
        w.becomes(f"h = torch.cat([{name}, h], {w.dim(a)})", layout.placed(a, (2 * layout.size(a),)))
    elif ending == 2:
        a = w.rng.randrange(len(layout.axes) + 1)
        w.becomes(f"h = torch.stack([h, {name}], {a})", layout.inserted(a, (2,)))
    else:
        spelled = w.one(
            f"h + {name}",
            f"torch.sub({name}, h, alpha=0.5)",
            f"torch.lerp(h, {name}, 0.4)",
            f"h.add({name}, alpha=-1.5)",
            f"torch.addcmul(h, {name}, {w.drawn(1)}, value=2)",
            f"torch.where({w.flags()}, h, {name})",
        )
        w(f"h = {spelled}")


def finish(w: Writer) -> None:
    """One row a point."""
    outputs = w.rng.randint(2, 3)
    weight, bias = w.weight(outputs, w.layout.numbers), w.drawn(outputs)
    w(f"h = {w.layout.rows('h')}")
    if w.rng.random() < 0.8:
        w(f"h = F.linear(h, {weight}, {bias})")
