"""Steps of random models that give the same numbers another order or shape, in the many ways torch has for it."""

from program_writer import POINTS, Layout, Writer, at, joined, need

# where the points are


def permute(w: Writer) -> None:
    count = len(w.layout.axes)
    need(count > 1)
    order = w.rng.sample(range(count), count)
    w.becomes(f"h = {w.one('h.permute({})', 'torch.permute(h, ({}))').format(joined(order))}", w.layout.permuted(order))


def transpose(w: Writer) -> None:
    count = len(w.layout.axes)
    need(count > 1)
    a, b = w.rng.sample(range(count), 2)
    order = list(range(count))
    order[a], order[b] = b, a
    spelled = [f"h.transpose({w.dim(a)}, {w.dim(b)})", f"h.swapaxes({a}, {b})"]
    if count == 2:
        spelled += ["h.t()", "h.T"]
    if {a, b} == {count - 1, count - 2}:
        spelled += ["h.mT"]
    w.becomes(f"h = {w.one(*spelled)}", w.layout.permuted(order))


def movedim(w: Writer) -> None:
    count = len(w.layout.axes)
    need(count > 1)
    a, b = w.rng.sample(range(count), 2)
    order = [i for i in range(count) if i != a]
    order.insert(b, a)
    w.becomes(f"h = h.movedim({w.dim(a)}, {w.dim(b)})", w.layout.permuted(order))


def fold(w: Writer) -> None:
    """Flatten two neighbouring axes; often that of the points is one of them."""
    axes = w.layout.axes
    need(len(axes) > 1)
    points = w.layout.points
    near = [i for i in (points - 1, points) if 0 <= i < len(axes) - 1]
    a = w.one(*near) if w.rng.random() < 0.8 else w.rng.randrange(len(axes) - 1)
    layout = Layout.of([*axes[:a], axes[a] + axes[a + 1], *axes[a + 2 :]])
    sizes = layout.sizes()
    guessed = [*sizes[:a], "-1", *sizes[a + 1 :]]
    spelled = w.one(
        f"flatten({a}, {a + 1})",
        f"reshape({joined(sizes)})",
        f"reshape({joined(guessed)})",
        f"contiguous().view({joined(sizes)})",
        f"contiguous().view({joined(guessed)})",
    )
    w.becomes(f"h = h.{spelled}", layout)


def unfold_points(w: Writer) -> None:
    """Part the points from features that they were flattened with."""
    a = w.layout.points
    axis = w.layout.axes[a]
    need(len(axis) > 1)
    cut = w.rng.randrange(1, len(axis))
    layout = w.layout.placed(a, axis[:cut], axis[cut:])
    sizes = layout.sizes()
    own = sizes[a : a + 2]
    guessed = [*sizes[:a], *["-1" if "n" in size else size for size in own], *sizes[a + 2 :]]
    spelled = w.one(
        f"unflatten({w.dim(a)}, ({joined(own)}))",
        f"unflatten({a}, ({joined(guessed[a : a + 2])}))",
        f"view({joined(sizes)})" if len(layout.axes) == 2 else f"reshape({joined(sizes)})",
        f"reshape({joined(guessed)})",
    )
    w.becomes(f"h = h.{spelled}", layout)


def unfold_by_pieces(w: Writer) -> None:
    """The same, piece by piece: token-major chunks lie behind one another, point-major ones take turns."""
    a = w.layout.points
    axis = w.layout.axes[a]
    need(len(axis) == 2)
    count, new = max(axis), w.rng.randrange(len(w.layout.axes) + 1)
    if axis[0] == POINTS:
        index = at(a, f"i::{count}", len(w.layout.axes))
        pieces = f"[h{index} for i in range({count})]"
    else:
        index = at(a, "i * n : (i + 1) * n", len(w.layout.axes))
        pieces = w.one(f"h.chunk({count}, {a})", f"h.split(n, {a})", f"[h{index} for i in range({count})]")
    w.becomes(f"h = torch.stack({pieces}, {new})", w.layout.placed(a, (POINTS,)).inserted(new, (count,)))


def fold_by_index(w: Writer) -> None:
    """Token-major to point-major and back, by a permutation."""
    a = w.layout.points
    axis = w.layout.axes[a]
    need(len(axis) == 2)
    rows, columns = w.layout.placed(a, axis[:1], axis[1:]).sizes()[a : a + 2]
    order = f"torch.arange({rows} * {columns}).view({rows}, {columns}).t().reshape(-1)"
    spelled = w.one(f"h.index_select({a}, {order})", f"h{at(a, order, len(w.layout.axes))}")
    w.becomes(f"h = {spelled}", w.layout.placed(a, axis[::-1]))


def repeat_points(w: Writer) -> None:
    """Every point several times: behind one another or in turn."""
    a, times = w.layout.points, w.rng.randint(2, 3)
    axis = w.layout.axes[a]
    tiles = joined(times if i == a else 1 for i in range(len(w.layout.axes)))
    if w.rng.random() < 0.5:
        w.becomes(f"h = h.repeat_interleave({times}, {w.dim(a)})", w.layout.placed(a, (*axis, times)))
    else:
        w.becomes(f"h = {w.one('h.repeat({})', 'h.tile({})').format(tiles)}", w.layout.placed(a, (times, *axis)))


# features


def split_axis(w: Writer) -> None:
    a = w.axis(4)
    size = w.layout.size(a)
    parts = [k for k in range(2, size) if size % k == 0]
    need(parts)
    k = w.one(*parts)
    layout = w.layout.placed(a, (k,), (size // k,))
    sizes = joined(layout.sizes())
    spelled = w.one(
        f"unflatten({w.dim(a)}, ({k}, {size // k}))", f"unflatten({a}, (-1, {size // k}))", f"view({sizes})"
    )
    w.becomes(f"h = h.{spelled}", layout)


def unsqueeze(w: Writer) -> None:
    count = len(w.layout.axes)
    need(all(w.layout.size(i) > 1 for i in w.layout.free))
    a = w.rng.randrange(count + 1)
    spelled = w.one(f"h.unsqueeze({w.one(a, a - count - 1)})", f"h{at(a, 'None', count + 2)}")
    w.becomes(f"h = {spelled}", w.layout.inserted(a, (1,)))


def squeeze(w: Writer) -> None:
    a = w.axis(1, lambda i: w.layout.size(i) == 1)
    spelled = w.one(f"squeeze({w.dim(a)})", f"squeeze(({a},))", f"select({a}, 0)")
    w.becomes(f"h = h.{spelled}", w.layout.placed(a))


def expand(w: Writer) -> None:
    a, times = w.rng.randrange(len(w.layout.axes) + 1), w.rng.randint(2, 3)
    layout = w.layout.inserted(a, (times,))
    sizes = [*["-1"] * a, str(times), *["-1"] * (len(w.layout.axes) - a)]
    spelled = w.one(joined(sizes), joined(layout.sizes()))
    w.becomes(f"h = h.unsqueeze({a}).expand({spelled})", layout)


def repeat(w: Writer) -> None:
    a, times = w.axis(1), w.rng.randint(2, 3)
    tiles = joined(times if i == a else 1 for i in range(len(w.layout.axes)))
    spelled = w.one(f"repeat({tiles})", f"tile({tiles})", f"repeat_interleave({times}, {w.dim(a)})")
    w.becomes(f"h = h.{spelled}", w.layout.placed(a, (times * w.layout.size(a),)))


def narrow(w: Writer) -> None:
    a = w.axis()
    size = w.layout.size(a)
    start = w.rng.randrange(size)
    length = w.rng.randint(1, size - start)
    spelled = w.one(
        f".narrow({w.dim(a)}, {start}, {length})",
        at(a, f"{start}:{start + length}", len(w.layout.axes)),
        at(a, f"{start - size}:{start + length - size or ''}", len(w.layout.axes)),
    )
    w.becomes(f"h = h{spelled}", w.layout.placed(a, (length,)))


def strided_slice(w: Writer) -> None:
    a = w.axis(3)
    start = w.rng.randint(0, 1)
    length = len(range(start, w.layout.size(a), 2))
    w.becomes(f"h = h{at(a, f'{start}::2', len(w.layout.axes))}", w.layout.placed(a, (length,)))


def select(w: Writer) -> None:
    need(len(w.layout.axes) > 2)
    a = w.axis()
    i = w.rng.randrange(-w.layout.size(a), w.layout.size(a))
    w.becomes(f"h = h{w.one(f'.select({w.dim(a)}, {i})', at(a, i, len(w.layout.axes)))}", w.layout.placed(a))


def pieces_in_another_order(w: Writer) -> None:
    a = w.axis()
    size = w.layout.size(a)
    k = w.rng.randint(1, size - 1)
    parts = w.one(
        f"h.split({k}, {w.dim(a)})",
        f"h.chunk({k + 1}, {a})",
        f"h.tensor_split([{k}], {a})",
        f"h.split([{k}, {size - k}], {a})",
    )
    w.becomes(f"h = torch.cat(list({parts})[::-1], {w.dim(a)})", w.layout)


def unbind_and_stack(w: Writer) -> None:
    need(len(w.layout.axes) > 1)
    a, new = w.axis(), w.rng.randrange(len(w.layout.axes))
    order = w.rng.sample(range(w.layout.size(a)), w.layout.size(a))
    parts = w.name("p")
    w(f"{parts} = h.unbind({w.dim(a)})")
    layout = w.layout.placed(a).inserted(new, (len(order),))
    w.becomes(f"h = torch.stack([{joined(f'{parts}[{i}]' for i in order)}], {new})", layout)


def reverse(w: Writer) -> None:
    a = w.axis()
    if w.rng.random() < 0.5:
        w.becomes(f"h = h.flip({w.dim(a)})", w.layout)
    else:
        w.becomes(f"h = h.roll({w.rng.randint(-2, 2)}, {w.dim(a)})", w.layout)


def flip_several(w: Writer) -> None:
    a, b = w.axis(), w.axis()
    need(a != b)
    spelled = w.one(f"h.flip({a}, {b})", f"h.roll((1, 1), ({a}, {b}))", f"torch.rot90(h, 2, ({a}, {b}))")
    w.becomes(f"h = {spelled}", w.layout)


def index(w: Writer) -> None:
    """Some entries of an axis, in any order and repeated."""
    a = w.axis()
    chosen = [w.rng.randrange(w.layout.size(a)) for _ in range(w.rng.randint(1, 5))]
    name, axes = w.integers(chosen), len(w.layout.axes)
    spelled = w.one(f"h.index_select({w.dim(a)}, {name})", f"h{at(a, name, axes)}", f"h{at(a, chosen, axes)}")
    w.becomes(f"h = {spelled}", w.layout.placed(a, (len(chosen),)))


def masked_index(w: Writer) -> None:
    a = w.axis()
    chosen = w.some(w.layout.size(a))
    name = w.integers([i in chosen for i in range(w.layout.size(a))])
    w.becomes(f"h = h{at(a, name, len(w.layout.axes))}", w.layout.placed(a, (len(chosen),)))


def gather(w: Writer) -> None:
    a, axes = w.axis(), len(w.layout.axes)
    length = w.rng.randint(1, 4)
    name = w.integers([w.rng.randrange(w.layout.size(a)) for _ in range(length)])
    layout = w.layout.placed(a, (length,))
    places = f"{name}.view({joined([length, *[1] * (axes - a - 1)])}).expand({joined(layout.sizes())})"
    w.becomes(
        f"h = {w.one('h.gather({}, {})', 'torch.take_along_dim(h, dim={}, indices={})').format(a, places)}", layout
    )


def index_two_axes(w: Writer) -> None:
    """A list of entries of two axes: the new axis comes first if the two are not neighbours."""
    a, b = sorted((w.axis(), w.axis()))
    need(a < b)
    length = w.rng.randint(2, 5)
    names = [w.integers([w.rng.randrange(w.layout.size(i)) for _ in range(length)]) for i in (a, b)]
    rest = w.layout.placed(b).placed(a)
    places = [":"] * (b + 1)
    places[a], places[b] = names
    w.becomes(f"h = h[{joined(places)}]", rest.inserted(a if b == a + 1 else 0, (length,)))


def index_with_points(w: Writer) -> None:
    """One entry of an axis, looked up for every point."""
    a = w.axis()
    need(w.layout.axes[0] == (POINTS,) and a == 1 and len(w.layout.axes) > 2)
    i = w.rng.randrange(w.layout.size(a))
    w.becomes(f"h = h[torch.arange(n), torch.full((n,), {i})]", w.layout.placed(1))


def diagonal(w: Writer) -> None:
    a, b = w.axis(), w.axis()
    need(a != b)
    length = min(w.layout.size(a), w.layout.size(b))
    rest = [axis for i, axis in enumerate(w.layout.axes) if i not in (a, b)]
    w.becomes(f"h = h.diagonal(0, {w.dim(a)}, {w.dim(b)})", Layout.of([*rest, (length,)]))


def unfold(w: Writer) -> None:
    a = w.axis(3)
    size, step = w.rng.randint(2, 3), w.rng.randint(1, 2)
    count = (w.layout.size(a) - size) // step + 1
    layout = w.layout.placed(a, (count,))
    w.becomes(f"h = h.unfold({w.dim(a)}, {size}, {step})", layout.inserted(len(layout.axes), (size,)))


def as_strided(w: Writer) -> None:
    """All but the first of an axis, or windows of two along it, by the strides of contiguous memory."""
    a = w.axis(3)
    sizes = w.layout.sizes()
    strides = [joined(sizes[i + 1 :]).replace(", ", " * ") or "1" for i in range(len(sizes))]
    layout = w.layout.placed(a, (w.layout.size(a) - 1,))
    if w.rng.random() < 0.5:
        w.becomes(
            f"h = h.contiguous().as_strided(({joined(layout.sizes())},), ({joined(strides)},), {strides[a]})", layout
        )
    else:
        layout = layout.inserted(len(layout.axes), (2,))
        strides.append(strides[a])
        w.becomes(f"h = h.contiguous().as_strided(({joined(layout.sizes())},), ({joined(strides)},))", layout)


def pad(w: Writer) -> None:
    a = w.axis(1)
    before, after = w.rng.randint(-1, 2), w.rng.randint(0, 2)
    length = w.layout.size(a) + before + after
    need(length > 0)
    widths = joined([*[0, 0] * (len(w.layout.axes) - a - 1), before, after])
    value = w.one("", ", value=0.3")
    w.becomes(f"h = F.pad(h, ({widths}){value})", w.layout.placed(a, (length,)))


def pad_with_itself(w: Writer) -> None:
    """Reflection and its like, along the last axis of a batch or of a single channel picture."""
    a = len(w.layout.axes) - 1
    need(len(w.layout.axes) in (2, 3) and a in w.layout.free and w.layout.size(a) > 1)
    mode = w.one("reflect", "replicate", "circular")
    w.becomes(f"h = F.pad(h, (1, 1), mode={mode!r})", w.layout.placed(a, (w.layout.size(a) + 2,)))


def triangle(w: Writer) -> None:
    count = len(w.layout.axes)
    need(w.layout.points < count - 2)
    w.becomes(f"h = h.{w.one('tril', 'triu')}({w.one('', '1', '-1')})", w.layout)


def on_the_diagonal(w: Writer) -> None:
    a = len(w.layout.axes) - 1
    need(a in w.layout.free and w.layout.size(a) > 1)
    w.becomes("h = torch.diag_embed(h)", w.layout.inserted(a, w.layout.axes[a]))


def same_again(w: Writer) -> None:
    """Nothing, in other memory or cut off from autograd."""
    spelled = w.one("contiguous()", "clone()", "double()", "to(torch.float64)", "view_as(h)", "detach()", "data")
    if spelled in ("detach()", "data"):
        w.differentiable = False
    w.becomes(f"h = h.{spelled}", w.layout)


PLACES = (permute, transpose, movedim, fold, fold, fold, unfold_points, unfold_by_pieces, fold_by_index, repeat_points)
VIEWS = (
    split_axis, split_axis, unsqueeze, squeeze, expand, repeat, narrow, strided_slice, select, pieces_in_another_order,
    unbind_and_stack, reverse, flip_several, index, masked_index, gather, index_two_axes, index_with_points, diagonal,
    unfold, as_strided, pad, pad_with_itself, triangle, on_the_diagonal, same_again,
)  # fmt: skip
