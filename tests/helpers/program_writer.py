"""Writes a model line by line as Python source, and knows at every line how its tensor `h` holds the points."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

POINTS = 0  # stands for the number of points among the sizes of an axis
LEAST, MOST = 3, 24  # numbers a point
DIMENSIONS = 5

T = TypeVar("T")


class NotHere(Exception):
    """A step that does not fit the tensor as it is."""


def need(condition: object) -> None:
    """Give the step up unless the condition holds."""
    if not condition:
        raise NotHere


Axis = tuple[int, ...]  # the sizes of the axes that were flattened into this one, slowest first


@dataclass(frozen=True)
class Layout:
    """How a tensor holds its points: one of its axes holds `POINTS`, alone or flattened together with features.

    Points first are ((0,), (3,), (4,)), points last ((3,), (4,), (0,)), tokens folded into the batch ((0, 3), (4,))
    or, with the token slowest, ((3, 0), (4,)).
    """

    axes: tuple[Axis, ...]

    @staticmethod
    def of(axes: Sequence[Axis]) -> "Layout":
        """With features that are flattened together as one."""
        return Layout(tuple(axis if POINTS in axis else (math.prod(axis),) for axis in axes))

    @property
    def points(self) -> int:
        """The axis that holds the points."""
        return next(i for i, axis in enumerate(self.axes) if POINTS in axis)

    @property
    def free(self) -> list[int]:
        """The axes that hold one feature each."""
        return [i for i in range(len(self.axes)) if i != self.points]

    @property
    def numbers(self) -> int:
        """How many numbers there are for a point."""
        return math.prod(size for axis in self.axes for size in axis if size != POINTS)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one point."""
        return tuple(size for axis in self.axes for size in axis if size != POINTS)

    def size(self, axis: int) -> int:
        """Of a free axis."""
        (size,) = self.axes[axis]
        return size

    def sizes(self) -> list[str]:
        """Of all axes, as source."""
        return [" * ".join(source(size) for size in axis) for axis in self.axes]

    def placed(self, axis: int, *new: Axis) -> "Layout":
        """With other axes in the place of one."""
        return Layout.of([*self.axes[:axis], *new, *self.axes[axis + 1 :]])

    def inserted(self, axis: int, new: Axis) -> "Layout":
        """With another axis before this one."""
        return Layout.of([*self.axes[:axis], new, *self.axes[axis:]])

    def permuted(self, order: Sequence[int]) -> "Layout":
        """With the axes in this order."""
        return Layout.of([self.axes[i] for i in order])

    def rows(self, tensor: str) -> str:
        """The source of a tensor of this layout as one row a point."""
        sizes = [size for axis in self.axes for size in axis]
        place = sizes.index(POINTS)
        unfolded = f"{tensor}.reshape({joined(map(source, sizes))})" if len(sizes) > len(self.axes) else tensor
        first = f"{unfolded}.movedim({place}, 0)" if place else unfolded
        return f"{first}.reshape(n, {self.numbers})"

    def from_rows(self, rows: str) -> str:
        """The source of a tensor of this layout made of rows."""
        sizes = [size for axis in self.axes for size in axis]
        place = sizes.index(POINTS)
        shaped = f"{rows}.reshape({joined(['n', *map(str, self.shape)])})"
        moved = f"{shaped}.movedim(0, {place})" if place else shaped
        return f"{moved}.reshape({joined(self.sizes())})" if len(sizes) > len(self.axes) else moved


def source(size: int) -> str:
    return "n" if size == POINTS else str(size)


def joined(parts: object) -> str:
    return ", ".join(map(str, parts))  # type: ignore[call-overload]


class Writer:
    """A model being written: its constants, the lines of its forward pass, and those that watch its activations."""

    def __init__(self, seed: int, layout: Layout) -> None:
        self.rng = random.Random(seed)
        self.layout = layout
        self.constants: list[str] = []
        self.lines: list[tuple[str, bool, bool]] = []  # source, whether the model has it, whether the watched one has
        self.differentiable = True  # whether autograd sees all that happens
        self.names = 0
        self.depth = 0  # activations so far, one after another

    def __call__(self, *lines: str) -> None:
        """Lines of the model."""
        self.lines += [(line, True, True) for line in lines]

    def plain(self, *lines: str) -> None:
        """Lines that the watched model has in another form."""
        self.lines += [(line, True, False) for line in lines]

    def watched(self, *lines: str) -> None:
        """Lines of the watched model only."""
        self.lines += [(line, False, True) for line in lines]

    def becomes(self, line: str, layout: Layout) -> None:
        """A line after which `h` has another layout."""
        need(LEAST <= layout.numbers <= MOST and len(layout.axes) <= DIMENSIONS)
        self(line)
        self.layout = layout

    # choices

    def one(self, *options: T) -> T:
        """One of several."""
        return self.rng.choice(options)

    def axis(self, least: int = 2, where: Callable[[int], bool] = lambda axis: True) -> int:
        """A free axis with at least so many entries."""
        fitting = [i for i in self.layout.free if self.layout.size(i) >= least and where(i)]
        need(fitting)
        return self.rng.choice(fitting)

    def dim(self, axis: int) -> int:
        """The number of an axis, from the front or from the back."""
        return self.one(axis, axis - len(self.layout.axes))

    def some(self, size: int) -> list[int]:
        """Some positions of an axis, not all, in order."""
        return sorted(self.rng.sample(range(size), self.rng.randint(1, size - 1)))

    # constants

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def drawn(self, *shape: int, scale: float = 1.0) -> str:
        """A constant of normal numbers."""
        name = self.name("c")
        self.constants.append(f"{name} = drawn({joined([self.rng.randrange(10**6), *shape])}) * {scale:.3g}")
        return name

    def weight(self, out: int, into: int) -> str:
        """A matrix that keeps the size of what it is applied to."""
        return self.drawn(out, into, scale=1.2 / into**0.5)

    def integers(self, numbers: object) -> str:
        """A constant of integers."""
        name = self.name("i")
        self.constants.append(f"{name} = torch.tensor({numbers})")
        return name

    def mask(self, size: int) -> str:
        """A constant that is true at some entries, not all."""
        chosen = self.some(size)
        return self.integers([i in chosen for i in range(size)])

    def aligned(self) -> list[int]:
        """The sizes of a constant that can be broadcast to `h`: those of the free axes or 1."""
        free = self.layout.free
        sizes = [
            self.layout.size(i) if i in free and self.rng.random() < 0.7 else 1 for i in range(len(self.layout.axes))
        ]
        while sizes and sizes[0] == 1 and self.rng.random() < 0.5:
            sizes = sizes[1:]
        return sizes or [1]

    def broadcast(self) -> str:
        """A constant that can be broadcast to `h`, or one spread out to its sizes."""
        if self.rng.random() < 0.6:
            return self.drawn(*self.aligned())
        return self.layout.from_rows(f"{self.drawn(self.layout.numbers)}.expand(n, {self.layout.numbers})")

    def flags(self) -> str:
        """A mask that can be broadcast to `h`."""
        axis = self.axis()
        sizes = [self.layout.size(axis), *[1] * (len(self.layout.axes) - axis - 1)]
        return f"{self.mask(sizes[0])}.view({joined(sizes)})"

    # activations

    def bends(self, tensor: str, layout: Layout, *breakpoints: float, deeper: bool = True) -> None:
        """Watch what enters an activation, one layer deeper than the last or another site of that."""
        self.depth += deeper
        self.watched(f"watch.bends({layout.rows(tensor)}, {breakpoints}, {self.depth})")

    def left(self, tensor: str, layout: Layout) -> None:
        """Watch what leaves the last activation: the watched model can push each unit."""
        self.watched(f"{tensor} += {layout.from_rows(f'watch.push(n, {layout.numbers})')}")

    def races(self, tensor: str, layout: Layout, axes: Sequence[int], sign: str = "") -> None:
        """Watch who wins over some free axes."""
        self.depth += 1
        kept = [i for i in range(len(layout.axes)) if i not in axes]
        competitors = math.prod(layout.size(i) for i in axes)
        inside = layout.permuted([*kept, *axes])
        self.watched(
            f"watch.races({inside.rows(f'({sign}{tensor}).permute({joined([*kept, *axes])})')}, {competitors})"
        )


def at(axis: int, index: object, axes: int) -> str:
    """The source of an index along one axis."""
    if axis == axes - 1 and axis > 1:
        return f"[..., {index}]"
    return f"[{joined([*[':'] * axis, index])}]"
