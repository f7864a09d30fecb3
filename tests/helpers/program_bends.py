"""Steps of random models that bend: activations by entries, in pairs, and where several values compete."""

from program_writer import Layout, Writer, joined, need

# how it is written, with h for what enters, and its breakpoints
BY_ENTRIES: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("F.relu(h)", (0.0,)),
    ("torch.relu(h)", (0.0,)),
    ("h.relu()", (0.0,)),
    ("F.leaky_relu(h, 0.1)", (0.0,)),
    ("F.leaky_relu(h, -0.5)", (0.0,)),
    ("F.prelu(h, torch.tensor([0.3], dtype=h.dtype))", (0.0,)),
    ("F.hardtanh(h, -0.4, 0.5)", (-0.4, 0.5)),
    ("h.clamp(-0.3, 0.6)", (-0.3, 0.6)),
    ("h.clamp(min=0.1)", (0.1,)),
    ("torch.clip(h, max=0.2)", (0.2,)),
    ("h.clamp_min(-0.2)", (-0.2,)),
    ("h.abs()", (0.0,)),
    ("torch.abs(h)", (0.0,)),
    ("F.softshrink(h, 0.3)", (-0.3, 0.3)),
    ("F.threshold(h, 0.2, 0.2)", (0.2,)),
    ("F.relu6(h)", (0.0, 6.0)),
    ("F.hardsigmoid(h)", (-3.0, 3.0)),
    ("F.rrelu(h, 0.1, 0.3, training=False)", (0.0,)),
)
IN_PLACE: tuple[tuple[str, tuple[float, ...]], ...] = (
    ("{}.relu_()", (0.0,)),
    ("F.relu({}, inplace=True)", (0.0,)),
    ("F.leaky_relu_({}, 0.2)", (0.0,)),
    ("{}.clamp_(-0.4, 0.6)", (-0.4, 0.6)),
    ("{}.clamp_(min=-0.1)", (-0.1,)),
    ("{}.abs_()", (0.0,)),
    ("F.hardtanh_({}, -0.5, 0.5)", (-0.5, 0.5)),
    ("F.threshold_({}, 0.1, 0.1)", (0.1,)),
    ("F.hardsigmoid({}, inplace=True)", (-3.0, 3.0)),
)


def by_entries(w: Writer) -> None:
    line, breakpoints = w.one(*BY_ENTRIES)
    if max(breakpoints) > 1:
        w("h = 4 * h")
    if "hardsigmoid" in line:
        w.differentiable = False  # torch has its slope 1/6 in single precision
    w.bends("h", w.layout, *breakpoints)
    w(f"h = {line}")
    w.left("h", w.layout)


def in_place(w: Writer) -> None:
    line, breakpoints = w.one(*IN_PLACE)
    w("h = h.clone()" if max(breakpoints) < 1 else "h = 4 * h")
    w.bends("h", w.layout, *breakpoints)
    w(line.format("h"))
    w.left("h", w.layout)
    w.differentiable = False


def prelu_by_channels(w: Writer) -> None:
    need(len(w.layout.axes) > 1 and 1 in w.layout.free)
    w.bends("h", w.layout, 0.0)
    w(f"h = F.prelu(h, {w.drawn(w.layout.size(1))})")
    w.left("h", w.layout)


def pair(w: Writer, other: str, *, plain: str | None = None) -> None:
    """The larger or smaller of h and another."""
    how = w.one("torch.maximum", "torch.minimum", "torch.max", "torch.min", "torch.fmax", "torch.fmin")
    first, second = w.rng.sample(["h", other], 2)
    w.bends(f"(h - {other})", w.layout, 0.0)
    w(plain or f"h = {how}({first}, {second})")
    w.left("h", w.layout)


def against_a_constant(w: Writer) -> None:
    pair(w, w.broadcast())


def against_itself(w: Writer) -> None:
    """Against its own values: in another order, scaled, mixed."""
    a = w.axis()
    mixed = w.layout.from_rows(f"({w.layout.rows('h')} @ {w.weight(w.layout.numbers, w.layout.numbers)})")
    pair(w, w.one(f"h.flip({a})", f"h.roll(1, {a})", "(0.3 - h)", f"h.mean({a}, keepdim=True)", mixed, mixed))


def all_pairs(w: Writer) -> None:
    """Every entry of an axis against every other, by broadcasting."""
    a = w.axis()
    layout = w.layout.inserted(a, w.layout.axes[a])
    how = w.one("torch.maximum", "torch.minimum")
    w.bends(f"(h.unsqueeze({a}) - h.unsqueeze({a + 1}))", layout, 0.0)
    w.becomes(f"h = {how}(h.unsqueeze({a}), h.unsqueeze({a + 1}))", layout)
    w.left("h", w.layout)


def between_tensors(w: Writer) -> None:
    """clamp with tensors: two sites."""
    low = w.drawn(*w.aligned(), scale=0.5)
    high = f"({low} + 0.6)"
    w.plain(f"h = {w.one(f'h.clamp({low}, {high})', f'torch.clip(h, {low}, {high})')}")
    for how, limit in (("maximum", low), ("minimum", high)):
        w.bends(f"(h - {limit})", w.layout, 0.0, deeper=how == "maximum")
        w.watched(f"h = torch.{how}(h, {limit})")
        w.left("h", w.layout)


def largest(w: Writer) -> None:
    """The largest or smallest along a feature axis."""
    need(len(w.layout.axes) > 2)
    a = w.axis()
    low = w.rng.random() < 0.4
    word = "min" if low else "max"
    kept = w.rng.random() < 0.3
    keep = ", keepdim=True" if kept else ""
    w.races("h", w.layout, [a], sign="-" if low else "")
    spelled = w.one(
        f"h.a{word}({w.dim(a)}{keep})", f"h.{word}({w.dim(a)}{keep}).values", f"h.{word}({a}{keep})[0]",
        f"torch.{word}(h, dim={a}{keep}).values",
    )  # fmt: skip
    w.becomes(f"h = {spelled}", w.layout.placed(a, (1,)) if kept else w.layout.placed(a))


def largest_over_two(w: Writer) -> None:
    need(len(w.layout.axes) > 3)
    a, b = sorted((w.axis(), w.axis()))
    need(a < b)
    word, sign = w.one(("amax", ""), ("amin", "-"))
    w.races("h", w.layout, [a, b], sign)
    w.becomes(f"h = h.{word}(({a}, {b}))", w.layout.placed(b).placed(a))


def pool(w: Writer) -> None:
    """max_pool1d over the last axis; the points may be the batch or the channels, or folded into either."""
    count = len(w.layout.axes)
    need(count in (2, 3) and count - 1 in w.layout.free)
    length, size, stride = w.layout.size(count - 1), w.rng.randint(2, 3), w.rng.randint(1, 2)
    padding = w.rng.randint(0, 1)
    need(length + 2 * padding >= size)
    windows = (length + 2 * padding - size) // stride + 1
    members = f"F.pad(h, ({padding}, {padding}), value=-torch.inf).unfold(-1, {size}, {stride})"
    w.races(members, Layout.of([*w.layout.axes[:-1], (windows,), (size,)]), [count])
    layout = w.layout.placed(count - 1, (windows,))
    w.becomes(f"h = F.max_pool1d(h, {size}, {stride}, {padding})", layout)


def pool_pictures(w: Writer) -> None:
    count = len(w.layout.axes)
    need(count in (3, 4) and w.layout.points < count - 2)
    height, width = w.layout.size(count - 2), w.layout.size(count - 1)
    rows, columns = w.rng.randint(1, 2), w.rng.randint(1, 2)
    need(rows * columns > 1 and height >= rows and width >= columns)
    windows = [(height - rows + 1,), (width - columns + 1,)]
    members = f"h.unfold(-2, {rows}, 1).unfold(-2, {columns}, 1)"
    inside = Layout.of([*w.layout.axes[:-2], *windows, (rows,), (columns,)])
    w.races(members, inside, [count, count + 1])
    w.becomes(f"h = F.max_pool2d(h, ({rows}, {columns}), 1)", Layout.of([*w.layout.axes[:-2], *windows]))


def pool_all(w: Writer) -> None:
    count = len(w.layout.axes)
    need(count in (2, 3) and count - 1 in w.layout.free and w.layout.size(count - 1) > 1)
    w.races("h", w.layout, [count - 1])
    w.becomes("h = F.adaptive_max_pool1d(h, 1)", w.layout.placed(count - 1, (1,)))


def recur(w: Writer) -> None:
    """A recurrent layer over an axis, unrolled."""
    count = len(w.layout.axes)
    need(count > 2 and count - 1 in w.layout.free)
    a = w.axis(2, lambda i: i != count - 1)
    inner = w.layout.placed(a)
    size = w.layout.size(count - 1)
    weight, parts = w.weight(size, size), w.name("p")
    w(f"{parts} = h.unbind({w.dim(a)})", f"h = torch.zeros({joined(inner.sizes())}, dtype=x.dtype)")
    for i in range(w.layout.size(a)):
        w(f"h = h @ {weight} + {parts}[{i}]")
        w.bends("h", inner, 0.0)
        w("h = F.relu(h)")
        w.left("h", inner)
    w.becomes("h = h + 0.1", inner)


BENDS = (
    *[by_entries] * 6, in_place, in_place, prelu_by_channels, against_a_constant, against_itself, against_itself,
    all_pairs, between_tensors, largest, largest, largest_over_two, pool, pool, pool_pictures, pool_all, recur,
)  # fmt: skip
