"""Random networks with small integer weights, in which degenerate positions are common, and where to look at them.

Every layer may hold duplicate, opposite, parallel, dead and constant units; later layers hold combinations that cancel
on the whole domain or a region of it (3 relu(z) - relu(3 z), relu(z) - relu(z - 1) - 1), alone or added to another
unit, so that the two are one function there; sometimes a layer holds nothing else, and all its values are what rounding
leaves. Units may be of very different sizes, by powers of two that the next layer takes back: that changes no cell and
no bit of a mantissa. Domains have corners on a grid that boundaries pass through.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from typing import TypeAlias

from rational_subdivision import Affine, Bend, Best, Concatenation, Loop, Network, Step, Sum, Vector, Versus, sources_of

Row: TypeAlias = tuple[int, ...]  # the weights of a unit, then its bias

STYLES = ("modules", "functions", "pairwise maxima")
BENDS = (
    "relu", "relu", "relu", "relu", "leaky_relu", "prelu", "hardtanh", "clamp", "clamp_min", "clamp_max", "abs",
    "softshrink", "threshold", "hardsigmoid", "relu6",
)  # fmt: skip
SLOPES = tuple(Fraction(n, 4) for n in (-4, -1, 0, 1, 2, 8))
HOMOGENEOUS = ("relu", "leaky_relu", "prelu", "abs")
SIZES = (Fraction(1), Fraction(1), Fraction(2**40), Fraction(2**20), Fraction(1, 2**20))


@dataclass(frozen=True)
class PlaneProblem:
    """A network, and a polygon on the plane through `origin` along two entries of its input, perhaps backwards."""

    network: Network
    origin: Vector
    axes: tuple[Vector, Vector]
    domain: Loop
    style: str


@dataclass(frozen=True)
class LineProblem:
    """A network and a segment."""

    network: Network
    start: Vector
    end: Vector
    style: str


def plane_problem(seed: int) -> PlaneProblem:
    """The plane with this number, the same every time."""
    rng = random.Random(f"plane {seed}")
    inputs = rng.randint(2, 4)
    first, second = (rng.choice((1, -1)) * Fraction(1) for _ in range(2))
    i, j = rng.sample(range(inputs), 2)
    axes = tuple(first * (k == i) for k in range(inputs)), tuple(second * (k == j) for k in range(inputs))
    network = random_network(rng, inputs)
    return PlaneProblem(network, dyadic_point(rng, inputs), axes, random_polygon(rng), rng.choice(STYLES))


def line_problem(seed: int) -> LineProblem:
    """The line with this number, the same every time."""
    rng = random.Random(f"line {seed}")
    inputs = rng.randint(1, 4)
    start, end = (dyadic_point(rng, inputs, radius=3) for _ in range(2))
    network = random_network(rng, inputs)
    return LineProblem(network, start, end, rng.choice(STYLES))


def dyadic_point(rng: random.Random, dimensions: int, radius: int = 1) -> Vector:
    """On a grid that boundaries pass through, or a point whose coordinates need all bits of a float."""
    if rng.random() < 0.6:
        return tuple(Fraction(rng.uniform(-radius, radius)) for _ in range(dimensions))
    return tuple(Fraction(radius * rng.choice((0, 0, 4, -4, 2, -2, 3, 1, -1)), 4) for _ in range(dimensions))


def random_polygon(rng: random.Random) -> Loop:
    """A square around the origin or the convex hull of a few points of a grid."""
    if rng.random() < 0.4:
        r = Fraction(rng.choice((1, 2, 3, 4)))
        return ((-r, -r), (r, -r), (r, r), (-r, r))
    while True:
        points = [(Fraction(rng.randint(-6, 6), 2), Fraction(rng.randint(-6, 6), 2)) for _ in range(rng.randint(4, 9))]
        hull = convex_hull(points)
        if len(hull) > 2:
            return hull


def convex_hull(points: Sequence[tuple[Fraction, Fraction]]) -> Loop:
    """Counter-clockwise, without corners that are straight."""

    def chain(ordered: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
        found: list[tuple[Fraction, Fraction]] = []
        for p in ordered:
            while len(found) > 1 and turn(found[-2], found[-1], p) <= 0:
                found.pop()
            found.append(p)
        return found[:-1]

    ordered = sorted(set(points))
    return tuple(chain(ordered) + chain(ordered[::-1]))


def turn(a: Sequence[Fraction], b: Sequence[Fraction], c: Sequence[Fraction]) -> Fraction:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


# networks


@dataclass
class Draft:
    """A network that is being made: the number of units of every value, and what cancels in the last one."""

    rng: random.Random
    steps: list[Step]
    widths: list[int]
    cancelling: list[Row]

    @property
    def last(self) -> int:
        return len(self.steps)

    def add(self, step: Step, width: int, cancelling: Sequence[Row] = ()) -> None:
        self.steps.append(step)
        self.widths.append(width)
        self.cancelling = list(cancelling)

    def rows(self, width: int) -> list[Row]:
        """Units that read the last value; sometimes all of them are one function, where the layers before cancel."""
        if self.cancelling and self.rng.random() < 0.15:
            common = special_row(self.rng, self.widths[-1], [], [])
            return [added(common, vanishing_row(self.rng, self.cancelling)) for _ in range(width)]
        rows: list[Row] = []
        for _ in range(width):
            rows.append(special_row(self.rng, self.widths[-1], rows, self.cancelling))
        return rows

    def add_affine(self, rows: Sequence[Row]) -> None:
        self.add(affine(self.last, rows), len(rows))


def affine(source: int, rows: Sequence[Row]) -> Affine:
    return Affine(source, tuple(row[:-1] for row in rows), tuple(row[-1] for row in rows))


def random_network(rng: random.Random, inputs: int) -> Network:
    """One to four blocks, layers of cancelling units between them, and as a rule an affine output."""
    draft = Draft(rng, [], [inputs], [])
    blocks = (bent_block, bent_block, bent_block, maxout_block, versus_block, skip_block, concatenation_block)
    for _ in range(rng.choice((1, 2, 2, 3, 3, 4))):
        rng.choice(blocks)(draft, rng.choice((1, 2, 3, 3, 4, 4, 5, 5)))
        if draft.cancelling and rng.random() < 0.5:
            vanishing_block(draft, rng.randint(1, 2))
    if rng.random() < 0.7:
        draft.add_affine(draft.rows(rng.randint(1, 2)))
    network = tuple(draft.steps)
    return resized(network, rng) if rng.random() < 0.2 else network


def resized(network: Network, rng: random.Random) -> Network:
    """The same function, with units of other sizes before homogeneous activations that only affine steps read."""
    steps = list(network)
    for number, bend in enumerate(network, start=1):
        readers = [i for i, step in enumerate(steps) if number in sources_of(step)]
        if not isinstance(bend, Bend) or bend.kind not in HOMOGENEOUS or bend.source == 0:
            continue
        before = steps[bend.source - 1]
        alone = sum(bend.source in sources_of(step) for step in steps) == 1
        if isinstance(before, Affine) and alone and readers and all(isinstance(steps[i], Affine) for i in readers):
            sizes = [rng.choice(SIZES) for _ in before.biases]
            steps[bend.source - 1] = with_rows_times(before, sizes)
            for i in readers:
                steps[i] = with_columns_divided(steps[i], sizes)
    return tuple(steps)


def with_rows_times(step: Affine, sizes: Sequence[Fraction]) -> Affine:
    weights = tuple(tuple(size * w for w in row) for size, row in zip(sizes, step.weights, strict=True))
    return replace(step, weights=weights, biases=tuple(size * b for size, b in zip(sizes, step.biases, strict=True)))


def with_columns_divided(step: Step, sizes: Sequence[Fraction]) -> Affine:
    assert isinstance(step, Affine)
    weights = tuple(tuple(w / size for size, w in zip(sizes, row, strict=True)) for row in step.weights)
    return replace(step, weights=weights)


def special_row(rng: random.Random, fan_in: int, earlier: Sequence[Row], cancelling: Sequence[Row]) -> Row:
    """A unit; as often as not one in a special position to others of its layer, or that cancels."""
    plain = tuple(rng.choice((-3, -2, -1, 0, 1, 2, 3)) for _ in range(fan_in + 1))
    sparse = tuple(rng.choice((-1, 0, 0, 1)) for _ in range(fan_in + 1))
    special: list[Row] = [sparse, (*[0] * fan_in, rng.choice((-1, 0, 1)))]
    if earlier:
        other = rng.choice(earlier)
        parallel = (*other[:-1], other[-1] + rng.choice((-2, -1, 1, 2)))
        special += [scaled(other, factor) for factor in (1, -1, 2, 3, 3)] + [parallel]
    if cancelling:
        zero = vanishing_row(rng, cancelling)
        special += [zero] * 4 + [added(zero, rng.choice(earlier or [plain]))] * 4
    return plain if rng.random() < 0.5 else rng.choice(special)


def vanishing_row(rng: random.Random, cancelling: Sequence[Row]) -> Row:
    return scaled(rng.choice(cancelling), rng.choice((1, 1, -1, 2, -3)))


def scaled(row: Row, factor: int) -> Row:
    return tuple(factor * entry for entry in row)


def added(a: Row, b: Row) -> Row:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def cancelling_rows(rows: Sequence[Row], homogeneous: bool) -> list[Row]:
    """Units of the next layer that vanish, everywhere or on a region: of a z and b z, and of z and z - c."""
    found: list[Row] = []
    for (i, first), (j, second) in permutations(enumerate(rows), 2):
        for k, m in ((1, 1), (3, 1), (3, 2)):
            if scaled(first, k) == scaled(second, m) and (homogeneous or k == 1):
                found.append(unit_row(len(rows), {i: k, j: -m}, 0))
        if first[:-1] == second[:-1]:
            found.append(unit_row(len(rows), {i: 1, j: -1}, second[-1] - first[-1]))
    return found


def unit_row(width: int, weights: dict[int, int], bias: int) -> Row:
    return (*(weights.get(i, 0) for i in range(width)), bias)


def random_bend(rng: random.Random, source: int, width: int) -> Bend:
    """Any activation with numbers that are no strangers to integer pre-activations."""
    kind = rng.choice(BENDS)
    low = Fraction(rng.randint(-4, 2), 2)
    numbers: dict[str, Callable[[], Vector]] = {
        "leaky_relu": lambda: (rng.choice(SLOPES),),
        "prelu": lambda: tuple(rng.choice(SLOPES) for _ in range(width)),
        "hardtanh": lambda: (low, low + rng.randint(1, 3)),
        "clamp": lambda: (low, low + Fraction(rng.randint(1, 4), 2)),
        "clamp_min": lambda: (low,),
        "clamp_max": lambda: (low,),
        "threshold": lambda: (low,),
        "softshrink": lambda: (Fraction(rng.randint(1, 4), 2),),
    }
    return Bend(source, kind, numbers[kind]() if kind in numbers else ())


def bent_block(draft: Draft, width: int) -> None:
    """A layer, often with a unit three times another."""
    rows = draft.rows(width)
    if draft.rng.random() < 0.5:
        rows.append(scaled(draft.rng.choice(rows), 3))
    draft.add_affine(rows)
    bend = random_bend(draft.rng, draft.last, len(rows))
    draft.add(bend, len(rows), cancelling_rows(rows, bend.kind in HOMOGENEOUS))


def vanishing_block(draft: Draft, width: int) -> None:
    """A layer of units that cancel, beside what they are made of: all its values are what rounding leaves."""
    source = draft.last
    draft.add_affine([vanishing_row(draft.rng, draft.cancelling) for _ in range(width)])
    draft.add(random_bend(draft.rng, draft.last, width), width)
    draft.add(Concatenation(source, draft.last), draft.widths[source] + width)


def maxout_block(draft: Draft, width: int) -> None:
    """Groups of neighbours, of units apart, or that overlap."""
    members, count = draft.rng.randint(2, 4), (width + 1) // 2
    stride = draft.rng.randint(1, members)
    draft.add_affine(draft.rows(stride * (count - 1) + members))
    groups = tuple(tuple(range(stride * g, stride * g + members)) for g in range(count))
    if stride == members and draft.rng.random() < 0.5:
        groups = tuple(tuple(range(g, members * count, count)) for g in range(count))
    draft.add(Best(draft.last, groups, draft.rng.random() < 0.7), count)


def versus_block(draft: Draft, width: int) -> None:
    """Two branches from one value compete; the second holds units of the first, and such as are equal by cancelling."""
    rng, source, cancelling = draft.rng, draft.last, draft.cancelling
    first, second = draft.rows(width), draft.rows(width)
    for unit in range(width):
        if cancelling and rng.random() < 0.5:
            second[unit] = added(first[unit], vanishing_row(rng, cancelling))
        elif rng.random() < 0.3:
            second[unit] = first[unit]
    draft.add(affine(source, first), width)
    draft.add(affine(source, second), width)
    draft.add(Versus(source + 1, source + 2, rng.random() < 0.5), width)


def skip_block(draft: Draft, width: int) -> None:
    """x + f(x), and an activation."""
    source = draft.last
    bent_block(draft, width)
    draft.add_affine(draft.rows(draft.widths[source]))
    draft.add(Sum(source, draft.last), draft.widths[source])
    draft.add(random_bend(draft.rng, draft.last, draft.widths[source]), draft.widths[source])


def concatenation_block(draft: Draft, width: int) -> None:
    """A value x and what a layer makes of it, side by side: k x, relu(k x) and relu(-k x) cancel."""
    source, before = draft.last, draft.widths[-1]
    n, k = min(before, width), draft.rng.choice((1, 3))
    rows = [unit_row(before, {i: k}, 0) for i in range(n)]
    draft.add_affine(rows + [scaled(row, -1) for row in rows])
    draft.add(Bend(draft.last, "relu"), 2 * n)
    cancelling = [unit_row(before + 2 * n, {i: k, before + i: -1, before + n + i: 1}, 0) for i in range(n)]
    draft.add(Concatenation(source, draft.last), before + 2 * n, cancelling)
