"""Steps of random models that write into memory: into parts of a tensor, through views of it, into fresh buffers."""

from program_bends import IN_PLACE
from program_writer import POINTS, Layout, Writer, at, joined, need


def owned(w: Writer) -> None:
    """`h` in memory of its own, laid out in one way or another."""
    count = len(w.layout.axes)
    a, b = w.rng.randrange(count), w.rng.randrange(count)
    sizes = joined(w.layout.sizes())
    w.differentiable = False
    w(
        w.one(
            "h = h.clone()",
            "h = 1.5 * h",
            f"h = h.transpose({a}, {b}).clone(memory_format=torch.contiguous_format).transpose({a}, {b})",
            f"h = torch.empty({sizes}, dtype=x.dtype).copy_(h)",
            "h = torch.zeros_like(h) + h",
            f"h = h.new_zeros({sizes}).add_(h)",
        )
    )


def part(w: Writer) -> tuple[str, Layout]:
    """The source of a view of some of `h`, and its layout."""
    points = w.layout.points
    axis, count = w.layout.axes[points], len(w.layout.axes)
    if len(axis) == 2 and max(axis) > 1 and w.rng.random() < 0.5:  # one token of those folded together with the points
        size = max(axis)
        i = w.rng.randrange(size)
        place = f"{i}::{size}" if axis[0] == POINTS else f"{i} * n : {i + 1} * n"
        return f"h{at(points, place, count)}", w.layout.placed(points, (POINTS,))
    a = w.axis()
    size = w.layout.size(a)
    i = w.rng.randrange(size)
    start, stop = sorted(w.rng.sample(range(size + 1), 2))
    need(stop - start < size)
    strided = len(range(start, size, 2))
    slices = w.layout.placed(a, (stop - start,))
    swapped = list(range(count))
    swapped[0], swapped[-1] = swapped[-1], swapped[0]
    return w.one(
        (f"h{at(a, i, count)}", w.layout.placed(a)),
        (f"h.select({w.dim(a)}, {i})", w.layout.placed(a)),
        (f"h{at(a, f'{start}:{stop}', count)}", slices),
        (f"h.narrow({a}, {start}, {stop - start})", slices),
        (f"h{at(a, f'{start}::2', count)}", w.layout.placed(a, (strided,))),
        (f"h{at(a, f'{start}:{stop}', count)}.transpose(0, {count - 1})", slices.permuted(swapped)),
        (f"h.unbind({a})[{i}]", w.layout.placed(a)),
        (f"h.split([{start}, {stop - start}, {size - stop}], {a})[1]", slices),
    )


def assignable(view: str) -> str:
    """A view as it is written on the left of `=`."""
    return f"{view}[...]" if view.endswith(")") or "unbind" in view or "split" in view else view


def write(w: Writer) -> None:
    """Numbers, constants or other values into a part."""
    owned(w)
    view, layout = part(w)
    c = layout.from_rows(f"{w.drawn(layout.numbers)}.expand(n, {layout.numbers})")
    target = assignable(view)
    mixed = layout.from_rows(f"({w.layout.rows('h')} @ {w.weight(w.layout.numbers, layout.numbers)})")
    w(
        w.one(
            f"{target} = 0",
            f"{target} = 0.3",
            f"{target} = {c}",
            f"{target} = {mixed}",
            f"{target} += 0.7",
            f"{target} *= -0.5",
            f"{target} -= {c}",
            f"{target} += {mixed}",
            f"{view}.zero_()",
            f"{view}.fill_(0.2)",
            f"{view}.mul_({c})",
            f"{view}.neg_()",
            f"{view}.add_({c}, alpha=0.5)",
            f"{view}.sub_({mixed}, alpha=2)",
            f"{view}.copy_({mixed})",
            f"{view}.div_(2)",
            f"{view}.lerp_({c}, 0.25)",
            f"{view}.addcmul_({c}, {mixed}, value=0.5)",
            f"{view}.copy_({w.drawn(1)})",
        )
    )


def write_data(w: Writer) -> None:
    """The same past autograd."""
    owned(w)
    view, layout = part(w)
    hidden = view.replace("h", "h.data", 1)
    target = assignable(hidden)
    c = layout.from_rows(f"{w.drawn(layout.numbers)}.expand(n, {layout.numbers})")
    w(
        w.one(
            f"{target} = 0.4", f"{target} *= 2", f"{view}.data.mul_(3)", f"h.data.add_({w.drawn(1)})", f"{target} = {c}"
        )
    )


def bend_a_part(w: Writer) -> None:
    """An activation in place on a view."""
    owned(w)
    view, layout = part(w)
    line, breakpoints = w.one(*IN_PLACE)
    name = w.name("v")
    w(f"{name} = {view}")
    if max(breakpoints) > 1:
        w(f"{name} *= 4")
    w.bends(name, layout, *breakpoints)
    w(line.format(w.one(name, view)))
    w.left(name, layout)


def bend_under_a_view(w: Writer) -> None:
    """An activation in place on the whole, read through a view that was made before."""
    owned(w)
    view, layout = part(w)
    line, breakpoints = w.one(*IN_PLACE)
    name, weight = w.name("v"), w.weight(w.layout.numbers, layout.numbers)
    if max(breakpoints) > 1:
        w("h *= 4")
    w(f"{name} = {view}")
    w.bends("h", w.layout, *breakpoints)
    w(line.format("h"))
    w.left("h", w.layout)
    seen = f"F.linear({layout.rows(name)}, {weight})"
    w(f"h = h + {w.layout.from_rows(seen)}")


def write_through_another_view(w: Writer) -> None:
    """What a view shows after its base was written, or its base after a view was."""
    owned(w)
    count = len(w.layout.axes)
    a, b, name = w.rng.randrange(count), w.rng.randrange(count), w.name("v")
    order = list(range(count))
    order[a], order[b] = b, a
    view, _ = part(w)
    target = assignable(view)
    w(
        f"{name} = h.transpose({a}, {b})",
        w.one(f"{target} *= 3", f"{target} += 0.5", f"h.mul_({w.drawn(1)})", f"{target} = 0.1"),
    )
    ending = w.one("view", "sum", "write")
    if ending == "view":
        w.becomes(f"h = {name}", w.layout.permuted(order))
    elif ending == "sum":
        w(f"h = h + {name}.transpose({a}, {b})")
    else:
        w(f"{name} *= 2")


def write_flat(w: Writer) -> None:
    """Through a flat view of contiguous memory."""
    name = w.name("v")
    w.differentiable = False
    w(
        "h = h.clone(memory_format=torch.contiguous_format)",
        f"{name} = h.view(-1)",
        w.one(f"{name} *= 2", f"{name} += 0.3", f"{name}.neg_()"),
    )


def write_masked(w: Writer) -> None:
    """Where a mask or a list of positions says so."""
    owned(w)
    a, flags, count = w.axis(3), w.flags(), len(w.layout.axes)
    chosen = w.some(w.layout.size(a))
    name, some = w.integers(chosen), w.layout.placed(a, (len(chosen),))
    places = f"{name}.view({joined([len(chosen), *[1] * (count - a - 1)])}).expand({joined(some.sizes())})"
    first = at(a, f":{len(chosen)}", count)
    listed = at(a, chosen, count)
    w(
        w.one(
            f"h{at(a, w.mask(w.layout.size(a)), count)} = 0.5",
            f"h[{flags}.expand_as(h)] = 0.5",
            f"h.masked_fill_({flags}, -0.2)",
            f"h{listed} = 0.1",
            f"h{listed} += 1",
            f"h{listed} = h{at(a, chosen[::-1], count)}",
            f"h{listed} *= {w.drawn(1)}",
            f"h.index_fill_({a}, {name}, 0.2)",
            f"h.scatter_({a}, {places}, -0.3)",
            f"h.scatter_({a}, {places}, h{first} * 2)",
            f"h.scatter_add_({a}, {places}, h{first}.clone())",
            f"h.index_add_({a}, {name}, h{first}.clone(), alpha=2)",
            f"h.index_copy_({a}, {name}, h{first}.clone())",
            f"h{at(a, name, count)} = h{first}.clone()",
        )
    )


def fill_a_buffer(w: Writer) -> None:
    """Every other entry of a fresh tensor, then the rest."""
    a, count, name = w.axis(2), len(w.layout.axes), w.name("o")
    sizes = joined(w.layout.sizes())
    even, odd = (at(a, f"{i}::2", count) for i in (0, 1))
    fresh = (
        "torch.zeros_like(h)",
        "torch.empty_like(h)",
        f"torch.zeros({sizes}, dtype=x.dtype)",
        f"h.new_empty({sizes})",
    )
    w.differentiable = False
    w(
        f"{name} = {w.one(*fresh)}",
        f"{name}{even} = h{even} * 2",
        f"{name}{odd} = {w.one(f'h{odd}', f'-h{odd}', f'h{odd} + 0.2', '0.6')}",
        f"h = {name}",
    )


def accumulate(w: Writer) -> None:
    """A sum gathered in place, part after part."""
    need(len(w.layout.axes) > 2)
    a, name = w.axis(), w.name("o")
    layout = w.layout.placed(a)
    w.differentiable = False
    w(f"{name} = torch.zeros({joined(layout.sizes())}, dtype=x.dtype)")
    w(f"for t in h.unbind({w.dim(a)}):", f"    {name} += t", f"    {name} *= 0.9")
    w.becomes(f"h = {name}", layout)


def turn_in_place(w: Writer) -> None:
    """The in-place twins of views."""
    owned(w)
    count = len(w.layout.axes)
    need(count > 1)
    a, b = w.rng.sample(range(count), 2)
    order = list(range(count))
    order[a], order[b] = b, a
    w(w.one(f"h.transpose_({a}, {b})", f"h.swapaxes_({a}, {b})", *(["h.t_()"] if count == 2 else [])))
    w.layout = w.layout.permuted(order)


WRITES = (
    *[write] * 5, write_data, write_data, *[bend_a_part] * 3, bend_under_a_view, write_through_another_view,
    write_through_another_view, write_flat, *[write_masked] * 3, fill_a_buffer, accumulate, turn_in_place,
)  # fmt: skip
