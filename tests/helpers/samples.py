"""Sample calls of every operation in the tables, by argument, for one point.

A floating-point tensor may be made to depend on the input, everything else is fixed. Every setting has a value that is
not its default in one of the samples, and arguments have several ranks where they may.
"""

from typing import Any

import torch
from torch import Tensor

Arguments = dict[str, Any]
SAMPLES: dict[str, list[Arguments]] = {}  # of what is affine
OTHERS: dict[str, list[Arguments]] = {}  # of overloads that are in no table and take other arguments
SITES: dict[str, list[Arguments]] = {}  # of what bends
_GENERATOR = torch.Generator().manual_seed(0)


def t(*shape: int) -> Tensor:
    """Random numbers."""
    return torch.randn(shape, generator=_GENERATOR, dtype=torch.float64)


def positive(*shape: int) -> Tensor:
    return t(*shape).abs() + 0.5


def i(*numbers: Any) -> Tensor:
    """Places, perhaps in rows."""
    return torch.tensor(numbers)


def mask(*shape: int) -> Tensor:
    return torch.arange(torch.Size(shape).numel()).remainder(3).ne(1).view(shape)


def of(keys: str, /, **arguments: Any) -> None:
    for key in keys.split():
        SAMPLES.setdefault(key, []).append(arguments)


def other(keys: str, /, **arguments: Any) -> None:
    for key in keys.split():
        OTHERS.setdefault(key, []).append(arguments)


def bends(keys: str, /, **arguments: Any) -> None:
    for key in keys.split():
        SITES.setdefault(key, []).append(arguments)


# shapes

of("view _unsafe_view", self=t(2, 3, 4), size=[4, -1])
of("view _unsafe_view", self=t(6), size=[1, 3, 2])
of("view _unsafe_view", self=t(1, 1), size=[])
of("reshape", self=t(2, 3, 4), shape=[-1, 8])
of("reshape", self=t(), shape=[1, 1])
of("_reshape_alias", self=t(2, 3, 4), size=[6, 4], stride=[4, 1])
of("as_strided", self=t(2, 6), size=[3, 2], stride=[4, 1], storage_offset=1)
of("as_strided", self=t(4), size=[2, 2], stride=[1, 1])
of("expand", self=t(3, 1), size=[2, -1, 4])
of("expand", self=t(), size=[2, 3], implicit=True)
of("permute", self=t(2, 3, 4), dims=[2, -3, 1])
of("permute", self=t(1, 2, 1, 3), dims=[3, 0, -2, 1])
of("permute", self=t(), dims=[])
of("transpose.int", self=t(2, 3, 4), dim0=-1, dim1=0)
of("transpose.int", self=t(1, 3), dim0=0, dim1=1)
of("transpose.int", self=t(), dim0=0, dim1=-1)
of("t", self=t(2, 3))
of("t", self=t(4))
of("t", self=t())
of("squeeze", self=t(1, 3, 1, 2))
of("squeeze", self=t(1))
of("squeeze.dim", self=t(1, 3, 1), dim=-1)
of("squeeze.dim", self=t(2, 3), dim=1)
of("squeeze.dims", self=t(1, 3, 1), dim=[-1, 0])
of("squeeze.dims", self=t(2, 1, 1), dim=[0, 2])
of("unsqueeze", self=t(2, 3), dim=-2)
of("unsqueeze", self=t(), dim=0)
of("diagonal", self=t(3, 2, 4), offset=1, dim1=-1, dim2=0)
of("diagonal", self=t(3, 3), offset=-1)
of("diag_embed", self=t(2, 3), offset=-1, dim1=0, dim2=-1)
of("diag_embed", self=t(3), offset=2, dim1=1, dim2=0)
of("unfold", self=t(2, 7), dimension=-1, size=3, step=2)
of("unfold", self=t(5, 2, 1), dimension=0, size=2, step=1)
of("unfold", self=t(), dimension=0, size=1, step=1)

# parts

of("slice.Tensor", self=t(2, 7), dim=-1, start=-6, end=-1, step=2)
of("slice.Tensor", self=t(5, 2), end=100, start=1)
of("select.int", self=t(2, 3, 4), dim=-2, index=-1)
of("select.int", self=t(3), dim=0, index=1)
of("split.Tensor unsafe_split.Tensor", self=t(2, 5, 1), split_size=2, dim=-2)
of("split.Tensor unsafe_split.Tensor", self=t(4), split_size=3)
of("split_with_sizes unsafe_split_with_sizes", self=t(2, 5), split_sizes=[1, 4], dim=-1)
of("split_with_sizes unsafe_split_with_sizes", self=t(4, 1), split_sizes=[2, 0, 2])
of("unbind.int", self=t(2, 3, 2), dim=-2)
of("unbind.int", self=t(3))
of("narrow_copy", self=t(2, 5, 3), dim=-2, start=1, length=3)
of("narrow_copy", self=t(4), dim=0, start=0, length=2)
of("index.Tensor _unsafe_index.Tensor", self=t(3, 4, 2), indices=[i(2, 0, 0), None, i(1, 0, 1)])
of("index.Tensor _unsafe_index.Tensor", self=t(3, 4, 2), indices=[None, i([3, 0], [1, 1])])
of("index.Tensor _unsafe_index.Tensor", self=t(3, 4, 2), indices=[None, i(3, -1), i([1], [0])])
of("index.Tensor _unsafe_index.Tensor", self=t(5), indices=[i(4, -1, 0)])
of("index.Tensor _unsafe_index.Tensor", self=t(2, 3), indices=[i(1), i(2)])
of("index.Tensor", self=t(2, 3), indices=[mask(2, 3)])
of("index.Tensor", self=t(2, 3, 2), indices=[None, mask(3, 2)])
of("index.Tensor", self=t(2, 3, 2), indices=[mask(2), None, i(1)])
of("index_select", self=t(2, 4), dim=-1, index=i(3, 0, 0))
of("index_select", self=t(4, 1, 2), dim=0, index=i(2))
of("index_select", self=t(), dim=0, index=i(0))
of("gather", self=t(2, 4), dim=-1, index=i([3, 0, 0], [1, 1, 2]), sparse_grad=True)
of("gather", self=t(3, 2), dim=0, index=i([2, 1]))
of("gather", self=t(), dim=0, index=i(0))
of("take", self=t(2, 3), index=i([5, 0], [-1, 2]))
of("take", self=t(), index=i(0, 0))

# order

of("flip", self=t(2, 3, 4), dims=[-1, 0])
of("flip", self=t(3), dims=[0])
of("flip", self=t(3, 2), dims=[])
of("flip", self=t(), dims=[])
of("roll", self=t(2, 5), shifts=[2, -1], dims=[-1, 0])
of("roll", self=t(2, 3), shifts=[1])
of("rot90", self=t(2, 3, 4), k=-1, dims=[-1, 0])
of("rot90", self=t(3, 2), k=2)
of("repeat", self=t(2, 3), repeats=[2, 1, 3])
of("repeat", self=t(3, 1), repeats=[1, 4])
of("repeat", self=t(), repeats=[2])
of("tile", self=t(2, 3), dims=[2])
of("tile", self=t(3), dims=[2, 1, 2])
of("tril triu", self=t(3, 4), diagonal=-1)
of("tril triu", self=t(2, 3, 3), diagonal=1)
of("pixel_shuffle", self=t(8, 2, 3), upscale_factor=2)
of("pixel_shuffle", self=t(2, 4, 2, 1), upscale_factor=2)
of("pixel_unshuffle", self=t(2, 4, 6), downscale_factor=2)
of("pixel_unshuffle", self=t(2, 1, 2, 2), downscale_factor=2)
of("channel_shuffle", self=t(2, 6, 2), groups=3)
of("channel_shuffle", self=t(1, 4, 1, 2), groups=2)
of("im2col", self=t(2, 5, 6), kernel_size=[2, 3], dilation=[2, 1], padding=[1, 0], stride=[1, 2])
of("im2col", self=t(2, 1, 3, 3), kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[1, 1])
of("col2im", self=t(12, 10), output_size=[5, 6], kernel_size=[2, 3], dilation=[2, 1], padding=[1, 0], stride=[1, 2])
of("col2im", self=t(2, 4, 4), output_size=[3, 3], kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[1, 1])

# the same numbers

of("alias positive neg detach lift_fresh lift", self=t(2, 3))
of("alias positive neg detach lift_fresh lift", self=t())
of("clone", self=t(1, 2, 2, 3), memory_format=torch.channels_last)
of("clone", self=t())
of("_to_copy", self=t(1, 2, 2, 2), dtype=torch.float64, layout=torch.strided, device=torch.device("cpu"),
   pin_memory=False, non_blocking=True, memory_format=torch.channels_last)  # fmt: skip
of("copy", self=t(2, 3), src=t(3), non_blocking=True)
of("copy", self=torch.zeros(2), src=t(2))
of("copy", self=t(2, 1), src=t())

# padding and resizing

of("constant_pad_nd", self=t(2, 3), pad=[1, -1, 2, 0], value=2.5)
of("constant_pad_nd", self=t(3), pad=[0, 2], value=-1)
of("constant_pad_nd", self=t(1, 2, 1, 2), pad=[1, 0])
for kind in ("reflection_pad", "replication_pad"):
    of(f"{kind}1d", self=t(2, 4), padding=[1, 3])
    of(f"{kind}1d", self=t(2, 1, 4), padding=[2, 0])
    of(f"{kind}2d", self=t(2, 3, 4), padding=[1, 2, 2, 0])
    of(f"{kind}2d", self=t(2, 1, 2, 3), padding=[0, 2, 1, 1])
    of(f"{kind}3d", self=t(2, 2, 3, 2), padding=[1, 0, 2, 1, 0, 1])
    of(f"{kind}3d", self=t(1, 2, 2, 2, 2), padding=[0, 1, 1, 0, 1, 0])
_RESIZED = {
    1: ("upsample_nearest1d _upsample_nearest_exact1d upsample_linear1d", ["scales"]),
    2: (
        "upsample_nearest2d _upsample_nearest_exact2d upsample_bilinear2d upsample_bicubic2d _upsample_bilinear2d_aa"
        " _upsample_bicubic2d_aa",
        ["scales_h", "scales_w"],
    ),
    3: ("upsample_nearest3d _upsample_nearest_exact3d upsample_trilinear3d", ["scales_d", "scales_h", "scales_w"]),
}
for d, (kinds, names) in _RESIZED.items():
    for kind in kinds.split():
        first, second = ({}, {}) if "nearest" in kind else ({"align_corners": True}, {"align_corners": False})
        size, scales, made = [2, 3, 2][:d], [1.7, 2.3, 1.3][:d], [3, 6, 2][:d]  # made = size * scales, rounded down
        scaled: Arguments = dict(zip(names, scales, strict=True))
        of(kind, self=t(2, 1, *size), output_size=[5, 4, 3][:d], **first)
        of(kind, self=t(1, 2, *size), output_size=made, **second, **scaled)
        of(f"{kind}.vec", input=t(2, 1, *size), output_size=[5, 4, 3][:d], scale_factors=None, **first)
        of(f"{kind}.vec", input=t(1, 2, *size), output_size=None, scale_factors=scales, **second)
for mode, padding, corners in ((0, 1, True), (1, 2, False), (2, 0, False), (0, 2, True)):
    grid = {"interpolation_mode": mode, "padding_mode": padding, "align_corners": corners}
    of("grid_sampler_2d", input=t(2, 1, 3, 4), grid=t(2, 2, 3, 2), **grid)
    if mode < 2:
        of("grid_sampler_3d", input=t(1, 2, 2, 3, 2), grid=t(1, 2, 1, 2, 3), **grid)

# sums and means

of("sum mean", self=t(2, 3), dtype=torch.float64)
of("sum mean", self=t())
of("sum.dim_IntList mean.dim", self=t(2, 3, 4), dim=[-1, 0], keepdim=True, dtype=torch.float64)
of("sum.dim_IntList mean.dim", self=t(2, 3), dim=[1])
of("sum.dim_IntList mean.dim", self=t(2, 3), dim=[])
of("sum.dim_IntList mean.dim", self=t(2, 3), dim=None, keepdim=True)
of("sum.dim_IntList mean.dim", self=t(), dim=[0])
of("sum.dim_IntList mean.dim", self=t(), dim=[])
of("cumsum", self=t(2, 3, 2), dim=-2, dtype=torch.float64)
of("cumsum", self=t(4), dim=0)
of("cumsum", self=t(), dim=0)
of("trace", self=t(3, 4))
of("avg_pool1d", self=t(2, 7), kernel_size=[3], stride=[2], padding=[1], ceil_mode=True, count_include_pad=False)
of("avg_pool1d", self=t(2, 1, 5), kernel_size=[2])
_POOL = {"ceil_mode": True, "count_include_pad": False, "divisor_override": 5}
of("avg_pool2d", self=t(2, 5, 4), kernel_size=[3, 2], stride=[2, 1], padding=[1, 0], **_POOL)
of("avg_pool2d", self=t(2, 1, 4, 5), kernel_size=[2, 3], padding=[1, 1], count_include_pad=False)
of("avg_pool3d", self=t(2, 3, 4, 3), kernel_size=[3, 2, 2], stride=[2, 1, 2], padding=[1, 0, 1], **_POOL)
of("avg_pool3d", self=t(1, 2, 3, 2, 2), kernel_size=[2, 2, 2], padding=[1, 0, 0], count_include_pad=False)
of("adaptive_avg_pool1d", self=t(2, 5), output_size=[3])
of("adaptive_avg_pool1d", self=t(2, 1, 5), output_size=[2])
of("_adaptive_avg_pool2d", self=t(2, 5, 4), output_size=[2, 3])
of("_adaptive_avg_pool2d", self=t(2, 1, 3, 4), output_size=[1, 3])
of("_adaptive_avg_pool3d", self=t(2, 3, 4, 2), output_size=[2, 3, 1])
of("_adaptive_avg_pool3d", self=t(1, 2, 3, 2, 2), output_size=[2, 1, 2])

# several together

of("cat", tensors=[t(2, 3), t(2, 1), t(2, 2)], dim=-1)
of("cat", tensors=[t(2), t(1)])
of("cat", tensors=[t(2, 3), torch.zeros(0, dtype=torch.float64), t(1, 3)], dim=0)
of("stack", tensors=[t(2, 3), t(2, 3), t(2, 3)], dim=-1)
of("stack", tensors=[t(), t()])
of("add.Tensor sub.Tensor rsub.Tensor", self=t(2, 3), other=t(2, 1, 3), alpha=-2.5)
of("add.Tensor sub.Tensor rsub.Tensor", self=t(2, 1, 3), other=t(4, 1))
of("add.Tensor sub.Tensor rsub.Tensor", self=t(3), other=t(), alpha=2)
of("add.Scalar sub.Scalar rsub.Scalar", self=t(2, 3), other=1.5, alpha=-2)
of("mul.Tensor", self=t(2, 3), other=t(4, 1, 1))
of("mul.Tensor", self=t(3), other=t())
of("mul.Scalar div.Scalar", self=t(2, 3), other=-2.5)
of("div.Tensor true_divide.Tensor", self=t(2, 3), other=positive(4, 1, 3))
of("div.Tensor true_divide.Tensor", self=t(2, 1), other=positive())
of("lerp.Scalar", self=t(2, 3), end=t(4, 1, 3), weight=0.3)
of("lerp.Scalar", self=t(2, 1), end=t(), weight=1.7)
of("lerp.Tensor", self=t(2, 3), end=t(3), weight=t(4, 1, 1))
of("lerp.Tensor", self=t(2), end=t(2), weight=t())
of("addcmul", self=t(2, 3), tensor1=t(3), tensor2=t(4, 1, 1), value=-2.5)
of("addcmul", self=t(2, 3), tensor1=t(2, 3), tensor2=t(2, 1))
of("addcmul", self=t(), tensor1=t(2, 1), tensor2=t(1, 3))
of("addcdiv", self=t(2, 3), tensor1=t(3), tensor2=positive(4, 1, 1), value=-2.5)
of("addcdiv", self=t(2, 3), tensor1=t(3), tensor2=positive(2, 1))
of("addcdiv", self=t(1, 3), tensor1=t(), tensor2=positive(2, 1))

# products

of("mm", self=t(2, 3), mat2=t(3, 4))
of("mm", self=t(1, 3), mat2=t(3, 1))
of("bmm", self=t(2, 2, 3), mat2=t(2, 3, 4))
of("bmm", self=t(1, 3, 2), mat2=t(1, 2, 1))
of("mv", self=t(2, 3), vec=t(3))
of("dot", self=t(3), tensor=t(3))
of("vdot", self=t(3), other=t(3))
_SCALED = {"beta": 0.5, "alpha": -2.0}
for sides in ([3, 4], [4], [1, 4], [3, 1], []):
    of("addmm", self=t(*sides), mat1=t(3, 2), mat2=t(2, 4), **_SCALED)
of("addmm", self=t(2, 2), mat1=t(2, 2), mat2=t(2, 2), beta=0, alpha=2)
of("addmv", self=t(2), mat=t(2, 3), vec=t(3), **_SCALED)
of("addmv", self=t(), mat=t(2, 3), vec=t(3))
of("baddbmm", self=t(2, 3, 4), batch1=t(2, 3, 2), batch2=t(2, 2, 4), **_SCALED)
of("baddbmm", self=t(4), batch1=t(2, 3, 2), batch2=t(2, 2, 4))
of("addbmm", self=t(3, 4), batch1=t(2, 3, 2), batch2=t(2, 2, 4), **_SCALED)
of("addbmm", self=t(3, 1), batch1=t(2, 3, 2), batch2=t(2, 2, 4))
of("addr", self=t(2, 3), vec1=t(2), vec2=t(3), **_SCALED)
of("addr", self=t(3), vec1=t(2), vec2=t(3))
of("_trilinear", i1=t(2, 3), i2=t(4, 3), i3=t(2, 4), expand1=[1], expand2=[0], expand3=[2], sumdim=[2])
of("_trilinear", i1=t(2, 3), i2=t(4, 3, 2), i3=t(2, 2), expand1=[1, 3], expand2=[0], expand3=[1, 2], sumdim=[2, 3],
   unroll_dim=2)  # fmt: skip
of("convolution", input=t(1, 2, 6), weight=t(4, 1, 3), bias=t(4), stride=[2], padding=[1], dilation=[2],
   transposed=False, output_padding=[0], groups=2)  # fmt: skip
of("convolution", input=t(2, 4, 3, 2), weight=t(4, 2, 2, 3), bias=t(4), stride=[2, 3], padding=[1, 0],
   dilation=[1, 2], transposed=True, output_padding=[1, 2], groups=2)  # fmt: skip
of("convolution", input=t(1, 2, 4, 4), weight=t(3, 2, 2, 2), bias=None, stride=[1, 1], padding=[0, 1],
   dilation=[1, 1], transposed=False, output_padding=[0, 0], groups=1)  # fmt: skip
of("convolution", input=t(1, 1, 3, 2, 3), weight=t(2, 1, 2, 2, 1), bias=t(2), stride=[1, 1, 2], padding=[1, 0, 0],
   dilation=[1, 1, 1], transposed=False, output_padding=[0, 0, 0], groups=1)  # fmt: skip
_NORM = {"momentum": 0.3, "eps": 0.1}
for sides in ([1, 3], [2, 3, 2], [1, 3, 2, 2]):
    moments = {"weight": t(3), "bias": t(3), "running_mean": t(3), "running_var": positive(3)}
    of("native_batch_norm", input=t(*sides), training=False, **moments, **_NORM)
    of("_native_batch_norm_legit_no_training", input=t(*sides), **moments, **_NORM)
of("native_batch_norm", input=t(1, 3), weight=None, bias=None, running_mean=t(3), running_var=positive(3),
   training=False, **_NORM)  # fmt: skip

# choices and writes

of("where.self", condition=mask(2, 3), self=t(3), other=t(4, 1, 3))
of("where.self", condition=mask(2, 1), self=t(), other=t(3))
of("where.ScalarSelf", condition=mask(2, 3), self=1.5, other=t(4, 1, 3))
of("where.ScalarOther", condition=mask(2, 3), self=t(3), other=-2.5)
of("masked_fill.Scalar", self=t(2, 3), mask=mask(3), value=1.5)
of("masked_fill.Scalar", self=t(), mask=mask(), value=1.5)
of("masked_fill.Tensor", self=t(2, 3), mask=mask(2, 1), value=t())
of("masked_fill.Tensor", self=t(3), mask=mask(2, 3), value=t())
of("masked_scatter", self=t(2, 3), mask=mask(2, 3), source=t(7))
of("masked_scatter", self=t(2, 3), mask=mask(3), source=t(3, 2))
of("slice_scatter", self=t(2, 7), src=t(2, 3), dim=-1, start=-6, end=-1, step=2)
of("slice_scatter", self=t(4, 1), src=t(3, 1), start=1)
of("select_scatter", self=t(2, 3, 4), src=t(2, 4), dim=-2, index=-1)
of("select_scatter", self=t(3), src=t(), dim=0, index=1)
of("diagonal_scatter", self=t(3, 2, 4), src=t(2, 2), offset=1, dim1=-1, dim2=0)
of("diagonal_scatter", self=t(3, 3), src=t(2), offset=-1)
of("scatter.src", self=t(2, 4), dim=-1, index=i([3, 0], [1, 2]), src=t(3, 3))
of("scatter.src", self=t(3), dim=0, index=i(2, 0), src=t(2))
of("scatter_add", self=t(2, 4), dim=-1, index=i([3, 3], [1, 2]), src=t(3, 3))
of("scatter_add", self=t(3), dim=0, index=i(2, 2), src=t(2))
of("scatter_add", self=t(), dim=0, index=i(0), src=t(1))
of("scatter.value", self=t(2, 4), dim=-1, index=i([3, 0], [1, 2]), value=1.5)
of("scatter.value", self=t(3), dim=0, index=i(2), value=1.5)
of("fill.Scalar", self=t(2, 3), value=1.5)
of("fill.Tensor", self=t(2, 3), value=t())
of(
    "index_put _unsafe_index_put",
    self=t(3, 4, 2),
    indices=[i(2, 0, 0), None, i(1, 0, 0)],
    values=t(3, 4),
    accumulate=True,
)
of("index_put _unsafe_index_put", self=t(3, 4), indices=[None, i(3, 1)], values=t(1, 2))
of("index_put _unsafe_index_put", self=t(3, 2), indices=[i(2)], values=t())
of("index_put", self=t(2, 3), indices=[mask(2, 3)], values=t())
of("index_put", self=t(2, 3), indices=[mask(2, 3)], values=t(4), accumulate=True)
of("index_add", self=t(2, 4), dim=-1, index=i(3, 3, 0), source=t(2, 3), alpha=-2.5)
of("index_add", self=t(3), dim=0, index=i(2, 2), source=t(2))
of("index_copy", self=t(2, 4), dim=-1, index=i(3, 0), source=t(2, 2))
of("index_copy", self=t(3), dim=0, index=i(2), source=t(1))
of("index_fill.int_Scalar", self=t(2, 4), dim=-1, index=i(3, 0), value=1.5)
of("index_fill.int_Scalar", self=t(3), dim=0, index=i(2), value=1.5)
of("index_fill.int_Tensor", self=t(2, 4), dim=-1, index=i(3, 0), value=t())
of("index_fill.int_Tensor", self=t(3), dim=0, index=i(2), value=t())

# what bends: tensors that are not `self` have as many dimensions, or none

bends("relu hardsigmoid abs", self=t(2, 3))
bends("relu hardsigmoid abs", self=4 * t(3))
bends("leaky_relu", self=t(2, 3), negative_slope=-0.3)
bends("leaky_relu", self=t(3))
bends("_prelu_kernel", self=t(2, 3), weight=t(1, 3))
bends("_prelu_kernel", self=t(2, 3), weight=t())
bends("threshold", self=t(2, 3), threshold=0.4, value=0.4)
bends("hardtanh", self=t(2, 3), min_val=-0.3, max_val=0.6)
bends("hardtanh", self=t(3))
bends("softshrink", self=t(2, 3), lambd=0.2)
bends("softshrink", self=t(3))
bends("clamp", self=t(2, 3), min=-0.3, max=0.6)
bends("clamp", self=t(3), max=0.2)
bends("clamp_min", self=t(2, 3), min=0.3)
bends("clamp_max", self=t(2, 3), max=-0.3)
bends("maximum minimum fmax fmin", self=t(2, 3), other=t(1, 3))
bends("maximum minimum fmax fmin", self=t(2, 1), other=t(2, 3))
bends("maximum minimum fmax fmin", self=t(3), other=t(1))
bends("clamp.Tensor", self=t(2, 3), min=t(2, 1) - 1, max=t(1, 3) + 1)
bends("clamp.Tensor", self=t(3), max=t(3))
bends("clamp_min.Tensor", self=t(2, 3), min=t(1, 3))
bends("clamp_max.Tensor", self=t(2, 3), max=t())
bends("max.dim min.dim", self=t(2, 3, 3), dim=-2, keepdim=True)
bends("max.dim min.dim", self=t(4), dim=0)
bends("max min", self=t(2, 3))
bends("max min", self=t(3))
bends("amax amin", self=t(2, 3, 2), dim=[-1, 0], keepdim=True)
bends("amax amin", self=t(2, 3), dim=[1])
bends("rrelu_with_noise", self=t(2, 3), noise=t(2, 3), lower=0.2, upper=0.6)
_POOL2 = {"kernel_size": [3, 2], "stride": [2, 1], "padding": [1, 0], "dilation": [1, 2], "ceil_mode": True}
_POOL3 = {"kernel_size": [2, 2, 3], "stride": [2, 1, 2], "padding": [1, 0, 1], "dilation": [1, 2, 1], "ceil_mode": True}
bends("max_pool2d_with_indices", self=t(2, 4, 5), **_POOL2)
bends("max_pool2d_with_indices", self=t(1, 4, 4), kernel_size=[2, 2])
bends("max_pool3d_with_indices", self=t(1, 3, 4, 3), **_POOL3)
bends("max_pool3d_with_indices", self=t(1, 2, 2, 4), kernel_size=[2])
bends("adaptive_max_pool2d", self=t(2, 5, 4), output_size=[2, 3])
bends("adaptive_max_pool3d", self=t(1, 3, 4, 3), output_size=[2, 3, 1])

# overloads that are in no table

other("max.other max.out min.other min.out", self=t(2, 3), other=t(2, 3))
other("split.sizes", self=t(2, 5), split_size=[1, 4], dim=1)
other("split", self=t(2, 5), split_sizes=[1, 4], dim=1)
other("unsafe_split.Tensor_out", self=t(2, 2), split_size=1, dim=-1)
other("unsafe_split_with_sizes.out", self=t(2, 3), split_sizes=[1, 2], dim=-1)
other("true_divide.Scalar true_divide_.Scalar", self=t(2, 3), other=2.5)
other("where", condition=t(2, 3))
for rounding in ("floor", "trunc", None):
    other("div.Tensor_mode div_.Tensor_mode div.out_mode", self=t(2, 3), other=positive(3), rounding_mode=rounding)
    other("div.Scalar_mode div_.Scalar_mode div.Scalar_mode_out", self=t(2, 3), other=0.3, rounding_mode=rounding)
for reduce in ("add", "multiply"):
    places = {"dim": -1, "index": i([3, 3], [1, 2]), "reduce": reduce}
    other("scatter.reduce scatter_.reduce scatter.reduce_out", self=t(2, 4), src=t(2, 2), **places)
    other("scatter.value_reduce scatter_.value_reduce scatter.value_reduce_out", self=t(2, 4), value=1.5, **places)
for dtype in (torch.int64, torch.float64):
    other("view.dtype", self=t(2, 3), dtype=dtype)
other("copy_.Tensor", self=t(2, 3), other=t(3))
other("copy_.int", self=t(2, 3), other=2)
other("copy_.float", self=t(2, 3), other=2.5)
