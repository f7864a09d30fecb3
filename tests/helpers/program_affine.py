"""Steps of random models that are affine: layers, products with constants, sums, and constants mixed in."""

import math

from program_writer import POINTS, Layout, Writer, at, joined, need

LETTERS = "abcdefg"


def linear(w: Writer) -> None:
    """A dense layer along the last axis."""
    a = len(w.layout.axes) - 1
    need(a in w.layout.free)
    size, out = w.layout.size(a), w.rng.randint(2, 6)
    layout = w.layout.placed(a, (out,))
    weight, bias = w.weight(out, size), w.drawn(out)
    spelled = [
        f"F.linear(h, {weight}, {bias})", f"F.linear(h, {weight})", f"h @ {weight}.T + {bias}",
        f"torch.matmul(h, {weight}.t())", f"torch.tensordot(h, {weight}, ([{a}], [1]))", f"torch.inner(h, {weight})",
    ]  # fmt: skip
    w.becomes(f"h = {w.one(*spelled)}", layout)


def matrix_from_the_left(w: Writer) -> None:
    """W @ h along the last axis but one."""
    a = len(w.layout.axes) - 2
    need(a >= 0 and a in w.layout.free)
    weight = w.weight(out := w.rng.randint(2, 6), w.layout.size(a))
    w.becomes(f"h = {w.one('{} @ h', 'torch.matmul({}, h)').format(weight)}", w.layout.placed(a, (out,)))


def tensordot_from_the_left(w: Writer) -> None:
    """The new axis comes first."""
    a = w.axis(1)
    weight = w.weight(out := w.rng.randint(2, 6), w.layout.size(a))
    w.becomes(f"h = torch.tensordot({weight}, h, ([1], [{a}]))", w.layout.placed(a).inserted(0, (out,)))


def einsum(w: Writer) -> None:
    """Along any axis, with the axes of the result in any order."""
    a = w.axis(1)
    weight = w.weight(out := w.rng.randint(2, 6), w.layout.size(a))
    letters = LETTERS[: len(w.layout.axes)]
    order = w.rng.sample(range(len(letters)), len(letters))
    result = "".join(letters[i] for i in order).replace(letters[a], "z")
    layout = w.layout.placed(a, (out,)).permuted(order)
    spelled = w.one(
        f"'{letters},z{letters[a]}->{result}', h, {weight}", f"'z{letters[a]},{letters}->{result}', {weight}, h"
    )
    w.becomes(f"h = torch.einsum({spelled})", layout)


def einsum_by_entries(w: Writer) -> None:
    """Weighed sums and products by entries."""
    a = w.axis()
    letters = LETTERS[: len(w.layout.axes)]
    vector = w.drawn(w.layout.size(a))
    if w.rng.random() < 0.5 or len(letters) == 2:
        w.becomes(f"h = torch.einsum('{letters},{letters[a]}->{letters}', h, {vector})", w.layout)
    else:
        kept = letters.replace(letters[a], "")
        w.becomes(f"h = torch.einsum('{letters},{letters[a]}->{kept}', h, {vector})", w.layout.placed(a))


def addmm(w: Writer) -> None:
    """beta b + alpha h W, or alpha W h."""
    need(len(w.layout.axes) == 2)
    a = w.axis(1)
    weight = w.weight(out := w.rng.randint(2, 6), w.layout.size(a))
    factors = w.one("", ", alpha=0.5", ", beta=2.0", ", beta=-0.5, alpha=1.5", ", beta=0")
    if a == 1:
        bias, product = w.drawn(out), f"h, {weight}.t()"
    else:
        bias, product = w.drawn(out, 1), f"{weight}, h"
    w.becomes(f"h = torch.addmm({bias}, {product}{factors})", w.layout.placed(a, (out,)))


def addmm_to_itself(w: Writer) -> None:
    need(len(w.layout.axes) == 2)
    a = w.axis(1)
    weight = w.weight(w.layout.size(a), w.layout.size(a))
    product = f"h, {weight}" if a == 1 else f"{weight}, h"
    w.becomes(f"h = torch.addmm(h, {product}, beta={w.one('0.5', '1.0')}, alpha={w.one('0.5', '2.0')})", w.layout)


def baddbmm(w: Writer) -> None:
    """Products of stacks of matrices, the constant one spread out over the first axis."""
    need(len(w.layout.axes) == 3)
    a = w.axis(1, lambda i: i > 0)
    weight = w.weight(out := w.rng.randint(2, 5), w.layout.size(a))
    spread = f"{weight}.expand({w.layout.sizes()[0]}, -1, -1)"
    layout = w.layout.placed(a, (out,))
    product = f"h, {spread}.transpose(1, 2)" if a == 2 else f"{spread}, h"
    bias = w.drawn(1, 1, out) if a == 2 else w.drawn(1, out, 1)
    spelled = w.one(
        f"torch.bmm({product})",
        f"torch.baddbmm({bias}, {product}, alpha=0.5)",
        f"torch.baddbmm({bias}, {product}, beta=0.3)",
    )
    w.becomes(f"h = {spelled}", layout)


def a_matrix_for_each(w: Writer) -> None:
    """Stacks of matrices, another one for every entry of the first axis; summed over it or not."""
    need(len(w.layout.axes) == 3 and w.layout.points == 1)
    first, size, out = w.layout.size(0), w.layout.size(2), w.rng.randint(2, 5)
    weights = w.drawn(first, size, out, scale=1.2 / size**0.5)
    if w.rng.random() < 0.5:
        w.becomes(f"h = {w.one('torch.bmm(h, {})', 'h @ {}').format(weights)}", w.layout.placed(2, (out,)))
    else:
        bias = w.drawn(out)
        w.becomes(f"h = torch.addbmm({bias}, h, {weights}, alpha=0.5)", w.layout.placed(2, (out,)).placed(0))


def matrix_and_vector(w: Writer) -> None:
    a = w.axis(1)
    need(len(w.layout.axes) == 2 and len(w.layout.axes[1 - a]) > 1)
    matrix, vector = "h" if a == 1 else "h.t()", w.drawn(w.layout.size(a))
    spelled = w.one(
        f"{matrix}.mv({vector})", f"torch.addmv({w.drawn(1)}, {matrix}, {vector}, alpha=0.7)", f"{matrix} @ {vector}"
    )
    w.becomes(f"h = {spelled}", w.layout.placed(a))


def outer_product(w: Writer) -> None:
    """With a vector of constants, along a new last axis."""
    size, axes = w.rng.randint(2, 3), len(w.layout.axes)
    vector = w.drawn(size)
    spelled = [f"h[..., None] * {vector}", f"{vector} * h.unsqueeze(-1)"]
    if axes == 1:
        spelled += [f"torch.outer(h, {vector})", f"torch.ger(h, {vector})"]
    w.becomes(f"h = {w.one(*spelled)}", w.layout.inserted(axes, (size,)))


def convolve(w: Writer) -> None:
    """A convolution over the last axis."""
    axes = w.layout.axes
    need(len(axes) == 3 and w.layout.points == 0)
    channels, length = w.layout.size(1), w.layout.size(2)
    kernel, stride, padding = w.rng.randint(1, 3), w.rng.randint(1, 2), w.rng.randint(0, 1)
    need(length + 2 * padding >= kernel)
    out, count = w.rng.randint(1, 4), (length + 2 * padding - kernel) // stride + 1
    weight, bias = w.drawn(out, channels, kernel, scale=1 / (channels * kernel) ** 0.5), w.drawn(out)
    layout = Layout.of([axes[0], (out,), (count,)])
    w.becomes(f"h = F.conv1d(h, {weight}, {bias}, stride={stride}, padding={padding})", layout)


def convolve_points(w: Writer) -> None:
    """A convolution of kernel size 1 over an axis that holds points is a dense layer."""
    axes = w.layout.axes
    need(len(axes) in (2, 3) and w.layout.points == len(axes) - 1)
    channels, out = w.layout.size(len(axes) - 2), w.rng.randint(2, 5)
    weight, bias = w.drawn(out, channels, 1, scale=1.2 / channels**0.5), w.drawn(out)
    w.becomes(f"h = F.conv1d(h, {weight}, {bias})", w.layout.placed(len(axes) - 2, (out,)))


def convolve_pictures(w: Writer) -> None:
    axes = w.layout.axes
    need(len(axes) == 4 and w.layout.points == 0)
    channels, height, width = (w.layout.size(i) for i in (1, 2, 3))
    out, rows, columns = w.rng.randint(1, 3), w.rng.randint(1, min(2, height)), w.rng.randint(1, min(2, width))
    weight = w.drawn(out, channels, rows, columns, scale=1 / (channels * rows * columns) ** 0.5)
    layout = Layout.of([axes[0], (out,), (height - rows + 1,), (width - columns + 1,)])
    w.becomes(f"h = F.conv2d(h, {weight}, {w.drawn(out)})", layout)


def convolve_in_groups(w: Writer) -> None:
    """Points folded into the channels, every one a group of its own."""
    axes = w.layout.axes
    need(len(axes) == 2 and len(axes[0]) == 2 and axes[0][0] == POINTS and 1 in w.layout.free)
    channels, length = axes[0][1], w.layout.size(1)
    out, kernel = w.rng.randint(1, 3), w.rng.randint(1, min(2, length))
    weight = w.drawn(out, channels, kernel, scale=1 / (channels * kernel) ** 0.5)
    layout = Layout.of([(POINTS, out), (length - kernel + 1,)])
    w.becomes(f"h = F.conv1d(h[None], {weight}.repeat(n, 1, 1), groups=n)[0]", layout)


def transposed_convolution(w: Writer) -> None:
    axes = w.layout.axes
    need(len(axes) == 3 and w.layout.points == 0)
    channels, length = w.layout.size(1), w.layout.size(2)
    out, kernel = w.rng.randint(1, 3), w.rng.randint(1, 2)
    weight = w.drawn(channels, out, kernel, scale=1 / channels**0.5)
    w.becomes(f"h = F.conv_transpose1d(h, {weight})", Layout.of([axes[0], (out,), (length + kernel - 1,)]))


def resize_pictures(w: Writer) -> None:
    """Upsampling, shuffling of pixels and patches of pictures."""
    axes = w.layout.axes
    need(len(axes) == 4 and w.layout.points == 0)
    channels, height, width = (w.layout.size(i) for i in (1, 2, 3))
    patches = (channels * 2, (height - 1) * width)
    spelled, sizes = w.one(
        ("F.interpolate(h, scale_factor=(1.0, 2.0))", (channels, height, 2 * width)),
        ("F.interpolate(h, size=(3, 2), mode='bilinear')", (channels, 3, 2)),
        ("F.pixel_shuffle(h, 2)", (channels // 4, 2 * height, 2 * width)),
        ("F.pixel_unshuffle(h, 2)", (4 * channels, height // 2, width // 2)),
        ("F.unfold(h, (2, 1))", patches),
        ("F.avg_pool2d(h, (2, 1), 1)", (channels, height - 1, width)),
        ("F.adaptive_avg_pool2d(h, (1, 2))", (channels, 1, 2)),
    )
    need("shuffle" not in spelled or math.prod(sizes) == w.layout.numbers)
    need(height > 1)
    w.becomes(f"h = {spelled}", Layout.of([axes[0], *((size,) for size in sizes)]))


def resample(w: Writer) -> None:
    """Average pooling and upsampling of the last axis."""
    axes = w.layout.axes
    a = len(axes) - 1
    need(len(axes) == 3 and a in w.layout.free and w.layout.size(a) > 1)
    length = w.layout.size(a)
    spelled, count = w.one(
        ("F.avg_pool1d(h, 2)", length // 2),
        ("F.avg_pool1d(h, 2, 1)", length - 1),
        ("F.adaptive_avg_pool1d(h, 2)", 2),
        ("F.interpolate(h, scale_factor=2.0)", 2 * length),
        ("F.interpolate(h, size=5, mode='linear')", 5),
    )
    w.becomes(f"h = {spelled}", w.layout.placed(a, (count,)))


def normalise(w: Writer) -> None:
    """Batch norm with its own statistics."""
    need(len(w.layout.axes) > 1 and 1 in w.layout.free)
    size = w.layout.size(1)
    mean, weight, bias = w.drawn(size), w.drawn(size), w.drawn(size)
    w.becomes(f"h = F.batch_norm(h, {mean}, {w.drawn(size)}.abs() + 0.5, {weight}, {bias})", w.layout)


# sums


def total(w: Writer) -> None:
    need(len(w.layout.axes) > 2)
    a = w.axis()
    how = w.one("sum", "mean")
    if w.rng.random() < 0.3:
        w.becomes(f"h = h.{how}({w.dim(a)}, keepdim=True)", w.layout.placed(a, (1,)))
    else:
        w.becomes(f"h = h.{how}({w.one(str(w.dim(a)), f'({a},)')})", w.layout.placed(a))


def total_over_two(w: Writer) -> None:
    need(len(w.layout.axes) > 3)
    a, b = sorted((w.axis(), w.axis()))
    need(a < b)
    w.becomes(f"h = h.{w.one('sum', 'mean')}(({a}, {b}))", w.layout.placed(b).placed(a))


def running_total(w: Writer) -> None:
    w.becomes(f"h = h.cumsum({w.dim(w.axis())})", w.layout)


def centred(w: Writer) -> None:
    w.becomes(f"h = h - h.mean({w.dim(w.axis())}, keepdim=True)", w.layout)


def differences(w: Writer) -> None:
    a = w.axis(3)
    w.becomes(f"h = torch.diff(h, dim={w.dim(a)})", w.layout.placed(a, (w.layout.size(a) - 1,)))


# constants mixed in


def scaled(w: Writer) -> None:
    c = w.broadcast()
    spelled = w.one(
        f"h + {c}",
        f"{c} - h",
        f"h * {c}",
        f"h / ({c}.abs() + 0.5)",
        "-h",
        "2 * h - 0.5",
        "1 - h",
        f"torch.add({c}, h, alpha=0.7)",
        f"torch.sub(h, {c}, alpha=-2)",
        f"torch.rsub(h, {c}, alpha=2)",
        f"torch.lerp(h, {c}, 0.3)",
        f"torch.lerp({c}, h, 0.3)",
        f"torch.addcmul(h, {c}, {w.drawn(1)}, value=0.5)",
        f"torch.addcmul({w.drawn(1)}, {c}, h, value=-1.5)",
        f"torch.addcdiv({c}, h, {w.drawn(1)}.abs() + 1, value=0.5)",
        "h / 2",
        "torch.true_divide(h, 3)",
    )
    w.becomes(f"h = {spelled}", w.layout)


def masked(w: Writer) -> None:
    """Constants at some entries, or what other entries hold."""
    a, flags = w.axis(), w.flags()
    spelled = w.one(
        f"h.masked_fill({flags}, 0.4)",
        f"torch.where({flags}, h, {w.drawn(1)})",
        f"torch.where({flags}, 0.2, h)",
        f"torch.where({flags}, h, -2 * h.flip({a}))",
        f"h * {flags}",
        f"torch.where({flags}, h, torch.zeros_like(h))",
    )
    w.becomes(f"h = {spelled}", w.layout)


def scatter(w: Writer) -> None:
    """Values put at chosen entries of an axis."""
    a = w.axis(3)
    chosen = w.some(w.layout.size(a))
    name, axes = w.integers(chosen), len(w.layout.axes)
    part = w.layout.placed(a, (len(chosen),))
    places = f"{name}.view({joined([len(chosen), *[1] * (axes - a - 1)])}).expand({joined(part.sizes())})"
    taken = f"h{at(a, f':{len(chosen)}', axes)}"
    whole = "h.contiguous()"  # torch writes several entries at once where they share memory, as after unfold
    spelled = w.one(
        f"h.scatter({a}, {places}, 0.7)",
        f"h.scatter({a}, {places}, {taken} * 2)",
        f"h.scatter_add({a}, {places}, {taken})",
        f"h.index_add({a}, {name}, {taken}, alpha=0.5)",
        f"h.index_copy({a}, {name}, {taken})",
        f"h.index_fill({a}, {name}, 0.3)",
        f"torch.select_scatter({whole}, h.select({a}, 0) * 2, {a}, {chosen[0]})",
        f"torch.slice_scatter({whole}, {taken} + 1, {a}, 0, {len(chosen)})",
        f"torch.zeros_like(h).scatter({a}, {places}, {taken})",
        f"h.new_zeros({joined(w.layout.sizes())}).scatter_add({a}, {places}, {taken})",
    )
    w.becomes(f"h = {spelled}", w.layout)


def joined_with_constants(w: Writer) -> None:
    a, size = w.axis(1), w.rng.randint(1, 2)
    layout = w.layout.placed(a, (size,))
    part = w.one(
        f"torch.zeros({joined(layout.sizes())}, dtype=h.dtype)",
        f"h.new_ones({joined(layout.sizes())})",
        layout.from_rows(f"{w.drawn(layout.numbers)}.expand(n, {layout.numbers})"),
    )
    whole = w.layout.placed(a, (w.layout.size(a) + size,))
    w.becomes(f"h = torch.cat([{w.one(f'h, {part}', f'{part}, h')}], {w.dim(a)})", whole)


LAYERS = (
    linear, linear, matrix_from_the_left, tensordot_from_the_left, einsum, einsum, addmm, addmm_to_itself, baddbmm,
    a_matrix_for_each, matrix_and_vector, convolve, convolve_points, convolve_points, convolve_pictures,
    convolve_in_groups, convolve_in_groups, transposed_convolution, normalise,
)  # fmt: skip
AFFINE = (
    einsum_by_entries, outer_product, resample, resize_pictures, total, total_over_two, running_total, centred,
    differences, scaled, scaled, scaled, masked, masked, scatter, scatter, joined_with_constants,
)  # fmt: skip
