"""Which aten operations are affine, in which of their arguments and outputs; and what to say of the others."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from regionscope.tracing.calls import Call
from regionscope.tracing.program import Program
from regionscope.tracing.schemas import schema
from regionscope.tracing.steps import Step, indices


@dataclass(frozen=True)
class Affine:
    """An operation is affine in the arguments of any one group together; `settings` may have any fixed value.

    An argument that is in neither must have its default value. Only the first `outputs` are covered, None for all.
    """

    groups: tuple[frozenset[str], ...]
    settings: frozenset[str]
    outputs: int | None = None


# operations, with their overload if it is not the plain one : groups of arguments, apart by / | settings
TABLE = """
view _unsafe_view : self | size
reshape : self | shape
_reshape_alias : self | size stride
as_strided : self | size stride storage_offset
expand : self | size implicit
permute : self | dims
transpose.int : self | dim0 dim1
t alias positive neg trace squeeze : self
squeeze.dim squeeze.dims unsqueeze : self | dim
slice.Tensor : self | dim start end step
select.int : self | dim index
split.Tensor unsafe_split.Tensor : self | split_size dim
split_with_sizes unsafe_split_with_sizes : self | split_sizes dim
unbind.int : self | dim
unfold : self | dimension size step
diagonal : self | offset dim1 dim2
diag_embed : self | offset dim1 dim2
index.Tensor _unsafe_index.Tensor : self | indices
index_select : self | dim index
gather : self | dim index sparse_grad
take : self | index
flip : self | dims
roll : self | shifts dims
rot90 : self | k dims
repeat : self | repeats
tile : self | dims
clone : self | memory_format
detach lift_fresh lift : self
narrow_copy : self | dim start length
tril triu : self | diagonal
pixel_shuffle : self | upscale_factor
pixel_unshuffle : self | downscale_factor
channel_shuffle : self | groups
im2col : self | kernel_size dilation padding stride
col2im : self | output_size kernel_size dilation padding stride
_to_copy : self | dtype layout device pin_memory non_blocking memory_format
constant_pad_nd : self value | pad
reflection_pad1d reflection_pad2d reflection_pad3d : self | padding
replication_pad1d replication_pad2d replication_pad3d : self | padding
upsample_nearest1d _upsample_nearest_exact1d : self | output_size scales
upsample_nearest2d _upsample_nearest_exact2d : self | output_size scales_h scales_w
upsample_nearest3d _upsample_nearest_exact3d : self | output_size scales_d scales_h scales_w
upsample_nearest1d.vec upsample_nearest2d.vec upsample_nearest3d.vec : input | output_size scale_factors
_upsample_nearest_exact1d.vec _upsample_nearest_exact2d.vec : input | output_size scale_factors
_upsample_nearest_exact3d.vec : input | output_size scale_factors
upsample_linear1d : self | output_size align_corners scales
upsample_bilinear2d upsample_bicubic2d : self | output_size align_corners scales_h scales_w
_upsample_bilinear2d_aa _upsample_bicubic2d_aa : self | output_size align_corners scales_h scales_w
upsample_trilinear3d : self | output_size align_corners scales_d scales_h scales_w
upsample_linear1d.vec upsample_bilinear2d.vec : input | output_size align_corners scale_factors
upsample_bicubic2d.vec upsample_trilinear3d.vec : input | output_size align_corners scale_factors
_upsample_bilinear2d_aa.vec _upsample_bicubic2d_aa.vec : input | output_size align_corners scale_factors
grid_sampler_2d grid_sampler_3d : input | grid interpolation_mode padding_mode align_corners
sum : self | dtype
sum.dim_IntList mean.dim : self | dim keepdim dtype
mean : self | dtype
cumsum : self | dim dtype
avg_pool1d : self | kernel_size stride padding ceil_mode count_include_pad
avg_pool2d avg_pool3d : self | kernel_size stride padding ceil_mode count_include_pad divisor_override
adaptive_avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool3d : self | output_size
cat stack : tensors | dim
add.Tensor add.Scalar sub.Tensor sub.Scalar rsub.Tensor rsub.Scalar : self other | alpha
mul.Tensor mul.Scalar : self / other
div.Tensor div.Scalar true_divide.Tensor : self | other
mm bmm : self / mat2
mv : self / vec
dot : self / tensor
vdot : self / other
addmm : self mat1 / self mat2 | beta alpha
addmv : self mat / self vec | beta alpha
baddbmm addbmm : self batch1 / self batch2 | beta alpha
addr : self vec1 / self vec2 | beta alpha
addcmul : self tensor1 / self tensor2 | value
addcdiv : self tensor1 | tensor2 value
lerp.Scalar lerp.Tensor : self end | weight
convolution : input bias / weight bias | stride padding dilation transposed output_padding groups
_trilinear : i1 / i2 / i3 | expand1 expand2 expand3 sumdim unroll_dim
native_batch_norm : input bias running_mean | weight running_var training momentum eps -> 1
_native_batch_norm_legit_no_training : input bias running_mean | weight running_var momentum eps -> 1
where.self where.ScalarSelf where.ScalarOther : self other | condition
masked_fill.Scalar masked_fill.Tensor : self value | mask
masked_scatter : self source | mask
copy : src | non_blocking
slice_scatter : self src | dim start end step
select_scatter : self src | dim index
diagonal_scatter : self src | offset dim1 dim2
scatter.src scatter_add : self src | dim index
scatter.value : self value | dim index
fill.Scalar fill.Tensor : value
index_put _unsafe_index_put : self values | indices accumulate
index_add : self source | dim index alpha
index_copy : self source | dim index
index_fill.int_Scalar index_fill.int_Tensor : self value | dim index
"""


def _read(table: str) -> Iterator[tuple[str, Affine]]:
    for line in table.strip().splitlines():
        keys, _, rest = line.partition(":")
        rest, _, outputs = rest.partition("->")
        groups, _, settings = rest.partition("|")
        entry = Affine(
            tuple(frozenset(group.split()) for group in groups.split("/")),
            frozenset(settings.split()),
            int(outputs) if outputs else None,
        )
        yield from ((key, entry) for key in keys.split())


AFFINE: dict[str, Affine] = dict(_read(TABLE))

_WRITTEN = frozenset({"src", "source", "value", "values"})  # takes on the dtype of `self`
# the arguments whose shape matters, and nothing else about them
IGNORED: dict[str, frozenset[str]] = dict.fromkeys(
    "empty_like zeros_like ones_like full_like new_empty new_zeros new_ones new_full new_empty_strided zero"
    " rand_like randn_like randint_like is_same_size fill copy".split(),
    frozenset({"self"}),
)
_COMPARES = frozenset(
    "eq ne lt le gt ge isnan isinf isfinite logical_not logical_and logical_or sign argmax argmin signbit".split()
)
_JUMPS = frozenset("hardshrink round floor ceil trunc frac floor_divide fmod remainder sgn heaviside div".split())
_PRODUCTS = frozenset(
    "mul mm bmm mv dot addmm baddbmm addcmul convolution matmul prod square pow glu _trilinear".split()
)

RANDOM_ADVICE = "call model.eval(), or keep them out of forward"
SMOOTH_ADVICE = (
    "allow_smooth=True, of rs.trace and of every measure (--allow-smooth of regionscope measure), takes it as it is:"
    " measures of that network count the boundaries of its units, and linear regions it has none"
)


def entry(call: Call) -> Affine | None:
    """What the table says of an operation, if it covers the arguments it has and is affine in the live ones."""
    found = AFFINE.get(call.key)
    if found is None or not any(call.live <= group for group in found.groups) or not _keeps(call.arguments):
        return None
    if not call.live.isdisjoint(_WRITTEN) and not call.arguments["self"].is_floating_point():  # cuts off the fraction
        return None
    covered = found.settings.union(*found.groups) | IGNORED.get(call.name, frozenset())
    for name in call.schema.parameters:
        if name not in covered and call.arguments.get(name) != call.schema.defaults.get(name):
            return None
    return found


def _keeps(arguments: Mapping[str, Any]) -> bool:
    """Whether an operation neither takes statistics of its input nor cuts off fractions."""
    dtype = arguments.get("dtype")
    return not arguments.get("training") and (dtype is None or dtype.is_floating_point)


def writes_twice(call: Call) -> bool:
    """Whether input-dependent numbers are written into one place more than once: torch says not which one stays."""
    given, fixed = call.arguments, call.live.isdisjoint({"index", "indices"})
    if not fixed or call.live.isdisjoint(_WRITTEN) or given.get("accumulate"):
        return False
    if call.name == "index_copy":
        return bool(len(given["index"].unique()) < given["index"].numel())
    if call.name not in ("index_put", "_unsafe_index_put") and call.key != "scatter.src":
        return False
    times = torch.zeros(given["self"].shape, dtype=torch.long, device=given["self"].device)
    if call.key == "scatter.src":
        times.scatter_add_(given["dim"], given["index"], torch.ones_like(given["index"]))
    else:
        times = torch.ops.aten.index_put.default(times, given["indices"], times.new_ones(()), accumulate=True)
    return bool((times > 1).any())


def linear_arguments(step: Step, live: Set[str]) -> frozenset[str]:
    """The arguments in which an affine operation is affine together with the live ones; empty if it is not affine.

    In the derivative, those among them that are not live are constants that drop out.
    """
    found = AFFINE.get(schema(step.operation).key)
    if found is None or not _keeps(step.named):
        return frozenset()
    return next((group for group in found.groups if live <= group), frozenset())


def bend(program: Program, exits: Set[int]) -> int:
    """The value where a program stops being affine in its input: the last that enters the first step that is not.

    An activation leaves `exits`. Of a program that is affine throughout, the value it makes last.
    """
    made = {0: 0}  # value that depends on the input -> how many were made before it
    for step in program.steps:
        live = {name: i for name, a in step.named.items() if (i := [v for v in indices(a) if v in made])}
        if live and (step.results[0] in exits or not linear_arguments(step, live.keys())):
            return max(chain.from_iterable(live.values()), key=made.__getitem__)
        made.update({value: len(made) for value in step.results} if live else {})
    return max(made, key=made.__getitem__)


def why_not(call: Call) -> str:
    """One clause that says why an operation on input-dependent values is not affine."""
    operation = call.name
    if call.reads:
        return "reads input-dependent values back into Python or into a shape: data-dependent control flow"
    if operation in _COMPARES:
        return "compares input-dependent values, which may jump; write it with relu, clamp, maximum or abs"
    if operation in _PRODUCTS:
        return "multiplies input-dependent values with each other"
    if operation in _JUMPS:
        return "is not continuous or divides by input-dependent values"
    if operation in {key.partition(".")[0] for key in AFFINE}:
        return "has arguments with which it is not known to be affine"
    return "is neither affine nor a known piecewise-linear function"
