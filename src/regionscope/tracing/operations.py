"""Which aten operations are affine, and in which of their arguments; and what to say of the others."""

from collections.abc import Set
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from regionscope.tracing.program import Program, indices, leaves

aten = torch.ops.aten

SELF = frozenset({"self"})


def _each(names: str, *groups: frozenset[str]) -> dict[str, tuple[frozenset[str], ...]]:
    return dict.fromkeys(names.split(), groups)


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


# operation -> sets of arguments; the operation is affine in the arguments of any one set together, the others fixed
AFFINE: dict[str, tuple[frozenset[str], ...]] = {
    **_each(
        # the same values in another order or shape
        "view _unsafe_view reshape _reshape_alias expand permute transpose t squeeze unsqueeze slice select split"
        " split_with_sizes unsafe_split unsafe_split_with_sizes unbind unfold as_strided diagonal index index_select"
        " gather flip roll rot90 repeat tile clone alias detach lift_fresh lift view_as_real view_as_complex"
        " pixel_shuffle pixel_unshuffle channel_shuffle im2col col2im tril triu diag_embed take narrow_copy"
        # padding and resampling
        " constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d"
        " replication_pad3d upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d"
        " _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d"
        " upsample_trilinear3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa"
        # sums
        " neg sum mean cumsum trace nansum avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d"
        " _adaptive_avg_pool2d _adaptive_avg_pool3d masked_fill _to_copy positive",
        SELF,
    ),
    **_each("cat stack", _set("tensors")),
    **_each("add sub rsub", _set("self other")),
    **_each("mul", SELF, _set("other")),
    **_each("div true_divide", SELF),
    **_each("mm", SELF, _set("mat2")),
    **_each("bmm", SELF, _set("mat2")),
    **_each("mv", SELF, _set("vec")),
    **_each("dot vdot", SELF, _set("tensor")),
    **_each("addmm", _set("self mat1"), _set("self mat2")),
    **_each("addmv", _set("self mat"), _set("self vec")),
    **_each("baddbmm addbmm", _set("self batch1"), _set("self batch2")),
    **_each("addr ger", _set("self vec1"), _set("self vec2")),
    **_each("addcmul", _set("self tensor1"), _set("self tensor2")),
    **_each("addcdiv", _set("self tensor1")),
    **_each("lerp", _set("self end")),
    **_each("convolution", _set("input bias"), _set("weight bias")),
    **_each("_trilinear", _set("i1"), _set("i2"), _set("i3")),
    **_each("native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training", _set("input")),
    **_each("where", _set("self other")),
    **_each("copy slice_scatter select_scatter diagonal_scatter as_strided_scatter scatter", _set("self src")),
    **_each("scatter_add", _set("self src")),
    **_each("fill", _set("value")),
    **_each("index_put _unsafe_index_put", _set("self values")),
    **_each("index_add index_copy", _set("self source")),
    **_each("embedding", _set("weight")),
}

# these look at the shape of a tensor, never at its values
SHAPE_ONLY = _set(
    "empty_like zeros_like ones_like full_like new_empty new_zeros new_ones new_full new_empty_strided zero"
    " is_same_size"
)

READS = _set(
    "_local_scalar_dense is_nonzero equal nonzero masked_select unique_dim _unique2 unique_consecutive bincount"
)
COMPARES = _set("eq ne lt le gt ge isnan isinf isfinite logical_not logical_and logical_or sign argmax argmin signbit")
JUMPS = _set("hardshrink round floor ceil trunc frac floor_divide fmod remainder sgn heaviside div")
PRODUCTS = _set("mul mm bmm mv dot addmm baddbmm addcmul convolution matmul prod square pow glu _trilinear")

SMOOTH_ADVICE = "allow_smooth=True studies the boundaries of its units instead of linear regions"


@dataclass(frozen=True)
class Call:
    """One aten operation with its arguments as given, and by name."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    arguments: dict[str, Any]
    live: set[str]  # the arguments that depend on the input

    @property
    def name(self) -> str:
        """`relu` for aten.relu.default and aten.relu_.default alike; other namespaces keep theirs: `mine::relu`."""
        namespace, _, name = self.func._schema.name.rpartition("::")
        name = name if self.twin is None else name.removesuffix("_")
        return name if namespace == "aten" else f"{namespace}::{name}"

    @property
    def key(self) -> str:
        """The name, with the overload if it is not the plain one."""
        overload = self.func._schema.overload_name
        return f"{self.name}.{overload}" if overload else self.name

    @property
    def writes(self) -> bool:
        return bool(self.func._schema.is_mutable)

    @property
    def written(self) -> list[Tensor]:
        mutable = [p.name for p in self.func._schema.arguments if p.is_write]
        return [t for name in mutable for t in tensors(self.arguments.get(name))]

    @property
    def shape_only(self) -> bool:
        return self.name in SHAPE_ONLY

    @property
    def several(self) -> bool:
        return returns_several(self.func)

    @property
    def twin(self) -> Any:
        """The operation that returns what this one writes into its first argument, if it is such a one."""
        name = self.func._schema.name.partition("::")[2]
        if not self.writes or not name.endswith("_") or self.func.namespace != "aten":
            return None
        return getattr(getattr(aten, name[:-1], None), self.func._overloadname, None)


def side_effect_free(call: Call, result: Any) -> tuple[Any, Any, Any]:
    """The operation so that it means the same for one point, any memory layout and dtype, without gradients cut."""
    if call.key in ("view", "_unsafe_view"):
        return aten.reshape.default, call.args, call.kwargs
    if call.key == "detach":
        return aten.alias.default, call.args, call.kwargs
    if call.name == "squeeze":  # the batch may have one point later
        x = call.arguments["self"]
        wanted = call.arguments.get("dim", range(x.dim()))
        wanted = [wanted] if isinstance(wanted, int) else wanted
        return aten.squeeze.dims, (x, [d for d in wanted if x.shape[d] == 1]), {}
    if "dtype" in call.arguments and isinstance(result, Tensor) and not tensors(list(call.args)):
        return call.func, call.args, {**call.kwargs, "dtype": result.dtype}
    return call.func, call.args, call.kwargs


def in_place(call: Call) -> tuple[Any, Any, Any]:
    """The operation that returns what an in-place one writes."""
    target, source = call.arguments["self"], call.arguments.get("src")
    if call.name == "copy" and source is not None and source.dtype == target.dtype:  # aten.copy has no derivative
        return aten.expand.default, (source, list(target.shape)), {}
    return call.twin, call.args, call.kwargs


def returns_several(func: Any) -> bool:
    returns = func._schema.returns
    return len(returns) > 1 or (len(returns) == 1 and isinstance(returns[0].type, torch.ListType))


def tensors(argument: Any) -> list[Tensor]:
    return [a for a in leaves(argument) if isinstance(a, Tensor)]


def is_affine(call: Call) -> bool:
    """Whether the operation is affine in its input-dependent arguments taken together."""
    a = call.arguments
    if a.get("rounding_mode") is not None or a.get("reduce") is not None or a.get("training"):
        return False
    return _stays_float(a.get("dtype")) and any(call.live <= group for group in AFFINE.get(call.name, ()))


def linear_arguments(operation: Any, live: Set[str]) -> frozenset[str]:
    """The arguments in which an affine operation is affine together with the live ones; empty if it is not affine.

    In the derivative, those among them that are not live are constants that drop out.
    """
    name = operation._schema.name.removeprefix("aten::")
    return next((group for group in AFFINE.get(name, ()) if live <= group), frozenset())


def bend(program: Program, exits: Set[int]) -> int:
    """The value where a program stops being affine in its input: the last that enters the first step that is not.

    An activation leaves `exits`. Of a program that is affine throughout, the value it makes last.
    """
    made = {0: 0}  # value that depends on the input -> how many were made before it
    for step in program.steps:
        live = {name: i for name, a in step.named.items() if (i := [v for v in indices(a) if v in made])}
        if live and (step.results[0] in exits or not linear_arguments(step.operation, live.keys())):
            return max(chain.from_iterable(live.values()), key=made.__getitem__)
        made.update({value: len(made) for value in step.results} if live else {})
    return max(made, key=made.__getitem__)


def _stays_float(dtype: torch.dtype | None) -> bool:
    return dtype is None or dtype.is_floating_point or dtype.is_complex


def why_not(operation: str) -> str:
    """One clause that says why an operation on input-dependent values is not affine."""
    if operation in READS:
        return "reads input-dependent values back into Python or into a shape: data-dependent control flow"
    if operation in COMPARES:
        return "compares input-dependent values, which may jump; write it with relu, clamp, maximum or abs"
    if operation in PRODUCTS:
        return "multiplies input-dependent values with each other"
    if operation in JUMPS:
        return "is not continuous or divides by input-dependent values"
    return "is neither affine nor a known piecewise-linear function"
