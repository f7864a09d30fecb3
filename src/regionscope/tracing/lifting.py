"""How an operation that was written down at one point acts on tensors (n, *shape) of n points.

Every rule gives at each point what the operation gives there alone: the points are a dimension of their own, in front,
and no rule looks at how the model laid them out. What has no rule here is left to `torch.vmap`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from regionscope.tracing.schemas import aten, schema
from regionscope.tracing.steps import Step, Value, indices, resolved

Shape = tuple[int, ...]
Values = Mapping[int, Any]
Shapes = Mapping[int, Shape]
Rule = Callable[[Step, Values, Shapes], list[Any] | None]
COLUMNS = 1 << 19  # floats, a thread: 4 MB stay in its cache


def lifted(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    """The results of a step at n points, given its arguments there; `shapes` says which of them depend on the point."""
    rule = RULES.get(step.name)
    made = rule(step, values, shapes) if rule is not None else None
    return _mapped(step, values, shapes) if made is None else made


def _mapped(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    """The same by `torch.vmap`."""
    live = sorted(step.used & shapes.keys())

    def at_one_point(*tensors: Tensor) -> tuple[Any, ...]:
        return tuple(step.run({**values, **dict(zip(live, tensors, strict=True))}))

    return list(torch.vmap(at_one_point)(*(values[i] for i in live)))


def _depends(argument: Any, shapes: Shapes) -> bool:
    return isinstance(argument, Value) and argument.index in shapes


def _called(step: Step, given: Mapping[str, Any]) -> list[Any]:
    result = step.operation(**given)
    return list(result) if step.several else [result]


def _given(step: Step, values: Values) -> dict[str, Any]:
    return {name: resolved(a, values) for name, a in step.named.items()}


# element by element


def with_dimensions(value: Tensor, dimensions: int) -> Tensor:
    """A value (n, *shape) whose shape at a point has so many dimensions, ones in front."""
    missing = dimensions + 1 - value.dim()
    return value if missing <= 0 else value.reshape(len(value), *[1] * missing, *value.shape[1:])


def _pointwise(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
    """Operations that broadcast: the shapes at a point are aligned at their ends, the points stay in front."""
    if len(step.used) == 1:  # as in an activation
        return step.run(values)
    numbers = [i for i in step.used & shapes.keys() if not shapes[i]]
    if numbers and len({values[i].dtype for i in step.used}) > 1:  # a number alone takes on the dtype of the others
        return None
    most = max((values[i].dim() - (i in shapes) for i in step.used if isinstance(values[i], Tensor)), default=0)
    aligned_values = {i: with_dimensions(values[i], most) if i in shapes else values[i] for i in step.used}
    return step.run(aligned_values)


def sides_of(step: Step, values: Values, shapes: Shapes) -> tuple[Tensor, Tensor]:
    """The two that a step such as `maximum` compares, aligned so that they broadcast."""
    most = max(values[i].dim() - (i in shapes) for i in step.used)
    a, b = (
        with_dimensions(values[v.index], most) if v.index in shapes else values[v.index]
        for v in (step.named["self"], step.named["other"])
    )
    return a, b


def _extreme(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    """The larger or the smaller of two; of equals the second, whose derivative it has."""
    a, b = sides_of(step, values, shapes)
    differentiated = torch.is_grad_enabled() or forward_ad._current_level >= 0
    if not differentiated:  # torch's own takes half the time, but of equals it has half of both derivatives
        return [step.operation(a, b)]
    compare = torch.gt if step.name in ("maximum", "fmax") else torch.lt
    return [torch.where(compare(a, b), a, b)]


def _hard_sigmoid(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    """In pieces whose derivatives are as exact as the numbers; torch's own takes 1/6 in single precision."""
    return [(values[_only(step, shapes)].clamp(-3.0, 3.0) + 3.0) / 6.0]


# the same numbers in another shape or order


def _reshaped(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    x = values[_only(step, shapes)]
    return [x.reshape(len(x), *shapes[step.results[0]])]


def _expanded(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    x, shape = values[_only(step, shapes)], shapes[step.results[0]]
    return [with_dimensions(x, len(shape)).expand(len(x), *shape)]


def _repeated(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    x, repeats = values[_only(step, shapes)], step.named["repeats"]
    return [with_dimensions(x, len(repeats)).repeat(1, *repeats)]


def _transposed(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    x = values[_only(step, shapes)]
    return [x.transpose(1, 2) if x.dim() == 3 else x]


def _permuted(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    x, dims = values[_only(step, shapes)], step.named["dims"]
    return [x.permute(0, *_shifted(dims, x.dim() - 1))]


def _only(step: Step, shapes: Shapes) -> int:
    (index,) = step.used & shapes.keys()
    return index


def _shifted(dims: Sequence[int], dimensions: int) -> list[int]:
    """Dimensions of a value at one point as dimensions of the value at all points."""
    return [d % max(dimensions, 1) + 1 for d in dims]


def _along(*names: str, reduces: bool = False) -> Rule:
    """Operations on one value along the dimensions that these arguments name; one that reduces takes none for all."""

    def rule(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
        given, index = _given(step, values), _only(step, shapes)
        dimensions = len(shapes[index])
        if dimensions == 0:
            return None
        for name in names:
            dim: Any = given.get(name, schema(step.operation).defaults.get(name))
            if reduces and (dim is None or dim == []):
                given[name] = list(range(1, dimensions + 1))
            else:
                moved = _shifted([dim] if isinstance(dim, int) else dim, dimensions)
                given[name] = moved[0] if isinstance(dim, int) else moved
        return _called(step, given)

    return rule


def _over_all(reduction: Any) -> Rule:
    """Sums and means over everything, or along dimensions."""
    along_some = _along("dim", reduces=True)

    def rule(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
        index = _only(step, shapes)
        if step.operation._schema.overload_name or not shapes[index]:
            return along_some(step, values, shapes)
        return [reduction(values[index], list(range(1, len(shapes[index]) + 1)), dtype=step.named.get("dtype"))]

    return rule


def _for_all(step: Step, arguments: Sequence[Value], values: Values, shapes: Shapes) -> list[Tensor]:
    """Arguments at all points; those that do not depend on the point are repeated."""
    n = len(values[min(step.used & shapes.keys())])
    tensors = [(values[a.index], a.index in shapes) for a in arguments]
    return [tensor if live else tensor.expand(n, *tensor.shape) for tensor, live in tensors]


def _concatenation(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
    """Concatenation and stacking; parts that do not depend on the point are repeated for all."""
    parts = _for_all(step, step.named["tensors"], values, shapes)
    longest = max(p.dim() for p in parts) - 1
    if step.name == "cat" and any(p.dim() - 1 < longest for p in parts):  # torch allows an empty one of any shape
        return None
    dimensions = longest + (step.name == "stack")
    return [step.operation(parts, _shifted([step.named.get("dim", 0)], dimensions)[0])]


def _indexed(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
    """Fixed places of one value; places along dimensions apart from each other are left to vmap."""
    chosen = step.named["indices"]
    places = [i for i, index in enumerate(chosen) if index is not None]
    if not _depends(step.named["self"], shapes) or any(i in shapes for i in indices(chosen)):
        return None
    if places != list(range(places[0], places[-1] + 1)):
        return None
    return [step.operation(values[step.named["self"].index], [None, *resolved(chosen, values)])]


def _taken(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    x, index = values[_only(step, shapes)], values[step.named["index"].index]
    return [x.reshape(len(x), -1)[:, index]]


# one value into places of another, of the same dtype


def _given_for_all(step: Step, values: Values, shapes: Shapes, *names: str) -> dict[str, Any]:
    """The arguments by name; of these the tensors at all points."""
    names = tuple(name for name in names if isinstance(step.named.get(name), Value))
    tensors = _for_all(step, [step.named[name] for name in names], values, shapes)
    return _given(step, values) | dict(zip(names, tensors, strict=True))


def _scattered(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
    """torch.vmap of select_scatter has wrong derivatives, that of slice_scatter refuses to count from the end."""
    given = _given_for_all(step, values, shapes, "self", "src", "index")
    dimensions = given["self"].dim() - 1
    if dimensions == 0:
        return None
    if "src" in given and isinstance(given.get("index"), Tensor):  # which may be smaller, but not in a derivative
        given["src"] = given["src"][tuple(slice(side) for side in given["index"].shape)]
    return _called(step, given | {"dim": _shifted([given.get("dim", 0)], dimensions)[0]})


def _copied(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    """copy and fill: a value in the shape and dtype of another."""
    x, target = values[step.named["src" if step.name == "copy" else "value"].index], values[step.named["self"].index]
    shape = shapes[step.results[0]]
    return [with_dimensions(x, len(shape)).expand(len(x), *shape).to(target.dtype)]


def _masked(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    """masked_fill and index_fill: a number in fixed places."""
    given, shape = _given(step, values), shapes[step.results[0]]
    x, number = (
        with_dimensions(given[name], len(shape)) if _depends(step.named[name], shapes) else given[name]
        for name in ("self", "value")
    )
    if step.name == "masked_fill":
        places = given["mask"]
    else:
        nowhere = torch.zeros(shape, dtype=torch.bool, device=x.device)
        places = nowhere.index_fill(given["dim"], given["index"], True)
    return [torch.where(places, number, x).to(x.dtype)]


def _masked_scattered(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    """The first numbers of one value in the places of a mask, one after the other."""
    given, shape = _given_for_all(step, values, shapes, "self", "source"), shapes[step.results[0]]
    n = len(given["self"])
    places = given["mask"].expand(shape).flatten().nonzero()[:, 0]
    x = with_dimensions(given["self"], len(shape)).expand(n, *shape).reshape(n, -1)
    return [x.index_copy(1, places, given["source"].reshape(n, -1)[:, : len(places)]).view(n, *shape)]


# with a batch dimension of their own, which takes the points too


def _as_batch(x: Tensor) -> Tensor:
    """Points and batch in one dimension. Where a dimension of 1 leaves it open how numbers lie in memory, in a row.

    Torch takes some of these for channels last: gradients of batch norm then go to other entries.
    """
    batch = x.flatten(0, 1)
    return batch.contiguous() if 1 in batch.shape else batch


def _folded(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
    """Operations that treat every entry of the first dimension of their first argument alike."""
    first: Any = step.arguments[0] if step.arguments else None
    if not _depends(first, shapes) or len(step.used & shapes.keys()) > 1 or not shapes[first.index]:
        return None
    x = values[first.index]
    n = len(x)
    made = step.run({**{i: values[i] for i in step.used}, first.index: _as_batch(x)})
    return [m.reshape(n, *shapes[r]) if r in shapes else m for m, r in zip(made, step.results, strict=True)]


def _convolved(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
    """Convolutions, in float64 of few points at once.

    For that dtype torch first writes down what every place sees of every point. Of many points these are hundreds of
    MB, which the C library fetches anew each time, page by page; the products are those of each point alone.
    """
    first: Any = step.named["input"]
    if not _depends(first, shapes) or (x := values[first.index]).dtype != torch.float64 or x.device.type != "cpu":
        return _folded(step, values, shapes)
    weight = resolved(step.named["weight"], values)
    batch, _, *places = shapes[first.index if step.named["transposed"] else step.results[0]]
    columns = batch * math.prod(places) * math.prod(weight.shape[1:])
    at_once = max(1, COLUMNS // max(1, columns)) * torch.get_num_threads()
    if len(x) <= at_once or len(step.used & shapes.keys()) > 1:
        return _folded(step, values, shapes)
    parts = [_folded(step, {**values, first.index: part}, shapes) or [] for part in x.split(at_once)]
    return [torch.cat(made) for made in zip(*parts, strict=True)]


class _Sampled(torch.autograd.Function):
    """grid_sampler on a fixed grid. It is linear, so its own derivative; torch has none in forward mode."""

    @staticmethod
    def forward(x: Tensor, operation: Any, settings: tuple[Any, ...]) -> Any:
        return operation(x, *settings)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, ctx.operation, ctx.settings = inputs
        ctx.x = x.new_zeros(()).expand(x.shape)  # only its shape matters

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Any:
        return _Sampled.apply(tangent, ctx.operation, ctx.settings)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        flat = ctx.x.dim() == 4
        backward = aten.grid_sampler_2d_backward if flat else aten.grid_sampler_3d_backward
        return backward(gradient.contiguous(), ctx.x.contiguous(), *ctx.settings, [True, False])[0], None, None


def _sampled(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
    if step.used & shapes.keys() != {step.named["input"].index} or step.named["input"] == step.named["grid"]:
        return None
    given = _given(step, values)
    x, grid = given["input"], given["grid"]
    grids = grid.expand(len(x), *grid.shape).flatten(0, 1)
    settings = grids, *(given[name] for name in ("interpolation_mode", "padding_mode", "align_corners"))
    made = _Sampled.apply(_as_batch(x), step.operation, settings)
    return [made.unflatten(0, x.shape[:2])]


def _normalised(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
    """Batch norm with fixed statistics, channel by channel; with those of its input it is left to vmap."""
    if step.named.get("training"):
        return None
    if (by_points := _folded(step, values, shapes)) is not None:
        return by_points
    given, shape = _given(step, values), shapes[step.results[0]]

    def broadcast(name: str) -> Any:
        """A number a channel against (n, batch, channels, ...)."""
        return None if given[name] is None else given[name].reshape(-1, 1, shape[1], *[1] * (len(shape) - 2))

    scale = torch.rsqrt(broadcast("running_var") + given["eps"])
    weight, bias = broadcast("weight"), broadcast("bias")
    x = (given["input"] - broadcast("running_mean")) * (scale if weight is None else scale * weight)
    x = x if bias is None else x + bias
    return [x, *(x.new_zeros(len(x), *shapes[result]) for result in step.results[1:])]


# products


def _multiplied(step: Step, values: Values, shapes: Shapes) -> list[Any] | None:
    """mm and bmm: one factor or both depend on the point."""
    a, b = step.named["self"], step.named["mat2"]
    x, y = values[a.index], values[b.index]
    if step.name == "mm" and not _depends(b, shapes):
        return [aten.mm.default(x.flatten(0, -2), y).view(*x.shape[:-1], y.shape[-1])]
    return [torch.matmul(x, y)]


def _added_product(step: Step, values: Values, shapes: Shapes, out: Tensor | None = None) -> list[Any] | None:
    """addmm with rows that depend on the point and one row added to all, as in a dense layer; in given memory if so."""
    bias, rows, matrix = (step.named[name] for name in ("self", "mat1", "mat2"))
    if step.used & shapes.keys() != {rows.index} or rows == matrix or values[bias.index].dim() != 1:
        return None
    x, options = values[rows.index], {k: step.named[k] for k in ("beta", "alpha") if k in step.named}
    flat, columns = x.flatten(0, -2), values[matrix.index]
    into = None if out is None else out.view(len(flat), columns.shape[1])
    made = torch.addmm(values[bias.index], flat, columns, **options, out=into)
    return [made.view(*x.shape[:-1], made.shape[-1])]


def lifted_into(step: Step, values: Values, shapes: Shapes, out: Tensor) -> list[Any] | None:
    """The result of a step at n points in given memory (n, entries), if there is a way to have it there."""
    return _added_product(step, values, shapes, out) if step.name == "addmm" else None


def _multiplied_thrice(step: Step, values: Values, shapes: Shapes) -> list[Any]:
    """_trilinear: three factors, each with some dimensions of length one put in, summed over others."""
    given = _given_for_all(step, values, shapes, "i1", "i2", "i3")
    dimensions = len(step.named["expand1"]) + given["i1"].dim() - 1
    dims = {name: _shifted(given[name], dimensions) for name in ("expand1", "expand2", "expand3", "sumdim")}
    return _called(step, given | dims | {"unroll_dim": _shifted([given.get("unroll_dim", 1)], dimensions)[0]})


def _each(rule: Rule, names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


RULES: dict[str, Rule] = {
    **_each(
        _pointwise,
        "relu leaky_relu _prelu_kernel threshold hardtanh softshrink abs clamp clamp_min clamp_max add"
        " sub rsub mul div true_divide neg positive addcmul addcdiv lerp where _to_copy clone"
        " alias gelu silu elu celu softplus tanh sigmoid mish hardswish exp log sqrt rsqrt square erf sin cos"
        " reciprocal gt lt",
    ),
    **_each(_hard_sigmoid, "hardsigmoid"),
    **_each(_extreme, "maximum minimum fmax fmin"),
    **_each(_reshaped, "view _unsafe_view reshape squeeze unsqueeze"),
    **_each(_expanded, "expand"),
    **_each(_repeated, "repeat"),
    **_each(_transposed, "t"),
    **_each(_permuted, "permute"),
    **_each(_along("dim0", "dim1"), "transpose"),
    **_each(
        _along("dim"),
        "select slice split split_with_sizes unsafe_split unsafe_split_with_sizes unbind cumsum index_select"
        " narrow_copy _softmax _log_softmax _safe_softmax",
    ),
    **_each(_along("dim", reduces=True), "amax amin"),
    **_each(_along("dims"), "flip"),
    **_each(_along("dimension"), "unfold"),
    "sum": _over_all(torch.sum),
    "mean": _over_all(torch.mean),
    **_each(_concatenation, "cat stack"),
    **_each(_indexed, "index"),
    **_each(_taken, "take"),
    **_each(_scattered, "slice_scatter select_scatter scatter scatter_add"),
    **_each(_copied, "copy fill"),
    **_each(_masked, "masked_fill index_fill"),
    **_each(_masked_scattered, "masked_scatter"),
    **_each(
        _folded,
        "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool3d"
        " reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d"
        " upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d"
        " _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d"
        " _upsample_bilinear2d_aa _upsample_bicubic2d_aa im2col col2im max_pool2d_with_indices"
        " max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d pixel_shuffle pixel_unshuffle",
    ),
    **_each(_convolved, "convolution"),
    **_each(_sampled, "grid_sampler_2d grid_sampler_3d"),
    **_each(_normalised, "native_batch_norm _native_batch_norm_legit_no_training"),
    **_each(_multiplied, "mm bmm"),
    **_each(_added_product, "addmm"),
    **_each(_multiplied_thrice, "_trilinear"),
}
