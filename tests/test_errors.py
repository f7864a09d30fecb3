"""What a newcomer gets wrong, and whether the error says what to do."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import regionscope as rs
from regionscope import machine

IMAGES = torch.rand(5, 1, 8, 8, generator=torch.Generator().manual_seed(0))
FLAT = IMAGES.flatten(1)
LABELS = torch.tensor([0, 1, 2, 0, 1])


def dense(activation: type[nn.Module] = nn.ReLU) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 16), activation(), nn.Linear(16, 16), activation(), nn.Linear(16, 3))


def convolutional() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))


def measured(model: Any, points: Any) -> Any:
    return rs.total_variation(model, points)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "images for a dense model": (
        lambda: measured(dense(), IMAGES),
        r"takes no points of shape \(1, 8, 8\): mat1 and mat2.*; flatten images first: x.flatten\(1\)",
    ),
    "images for its network": (
        lambda: measured(rs.trace(dense(), FLAT), IMAGES),
        r"points must be \(n, 64\), got \(5, 1, 8, 8\); flatten images first: x.flatten\(1\)",
    ),
    "a plane through images": (
        lambda: rs.plane_cells(dense(), rs.Plane.through(*IMAGES[:3])),
        r"takes no points of shape \(1, 8, 8\): .*flatten images first",
    ),
    "images in a monitor": (
        lambda: rs.Monitor(dense(), {"x": IMAGES}, measures=["total_variation"], strict=True)(0),
        "flatten images first",
    ),
    "one vector": (
        lambda: measured(dense(), FLAT[0]),
        r"points must be a batch \(n, ...\), got shape \(64,\); a single point needs an axis for the batch: x\[None\]",
    ),
    "one vector as an example": (lambda: rs.trace(dense(), FLAT[0]), r"got shape \(64,\); .*x\[None\]"),
    "one vector as a probe": (lambda: rs.Monitor(dense(), {"x": FLAT[0]}), r"probe 'x' must be a batch .*x\[None\]"),
    "one image": (
        lambda: measured(convolutional(), IMAGES[0]),
        r"takes no points of shape \(8, 8\): mat1 .*; a single point needs an axis for the batch: x\[None\]",
    ),
    "one image for a network": (
        lambda: measured(rs.trace(convolutional(), IMAGES), IMAGES[0]),
        r"must be \(n, 1, 8, 8\), got \(1, 8, 8\); a single point needs an axis",
    ),
    "too few entries": (
        lambda: rs.trace(dense(), FLAT[:, :10]),
        r"takes no points of shape \(10,\): mat1 .*; its first layer takes \(n, 64\): give such points",
    ),
    "vectors for a convolution": (
        lambda: measured(convolutional(), FLAT),
        r"takes no points of shape \(64,\): .*conv2d.*; its first layer takes \(n, 1, height, width\)",
    ),
    "images of too many channels": (
        lambda: measured(convolutional(), IMAGES.repeat(1, 3, 1, 1)),
        r"takes no points of shape \(3, 8, 8\): .*; its first layer takes \(n, 1, height, width\): give such",
    ),
    "embeddings for a model of tokens": (
        lambda: rs.trace(nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)), torch.rand(3, 2), allow_smooth=True),
        r"takes no points of shape \(2,\): .*'indices'.*; of a model of tokens, .*get_input_embeddings\(\)\(tokens\)",
    ),
    "tokens": (
        lambda: rs.trace(nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)), torch.zeros(3, 2, dtype=torch.long)),
        r"example is torch.int64: .*network=lambda m: lambda x: m\(inputs_embeds=x\)\.logits",
    ),
    "labels that name no output": (
        lambda: rs.certified_radius(dense(), FLAT, LABELS + 1),
        r"labels must be from 0 to 2, one an output, got 3; do they begin at 1",
    ),
    "labels below zero": (lambda: rs.robust_accuracy(dense(), FLAT, LABELS - 1), "from 0 to 2, one an output, got -1"),
    "labels of one column": (
        lambda: rs.robust_accuracy(dense(), FLAT, LABELS[:, None]),
        r"labels must be \(5,\), one a point, got \(5, 1\); take labels.flatten\(\)",
    ),
    "labels one-hot": (
        lambda: rs.robust_accuracy(dense(), FLAT, torch.eye(3)[LABELS]),
        r"got \(5, 3\); take labels.argmax\(1\)",
    ),
    "names for labels": (lambda: rs.robust_accuracy(dense(), FLAT, ["a"] * 5), "labels must be integers"),  # type: ignore[arg-type]
    "a tensor for probes": (lambda: rs.Monitor(dense(), FLAT), 'by name, such as {"train": x}, got Tensor'),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_say_what_to_do(name: str) -> None:
    do, message = WRONG[name]
    with pytest.raises((ValueError, TypeError), match=message):
        do()


def test_errors_of_the_model_itself_stay_and_say_the_shape() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2") as failure:
        measured(convolutional(), IMAGES[..., 1:])  # which its first layer takes
    assert "one point of shape (1, 8, 7)" in failure.value.__notes__[0]


def test_the_advice_for_smooth_models_works() -> None:
    with pytest.raises(rs.UnsupportedModel, match=r"allow_smooth=True, of rs\.trace and of every measure") as refusal:
        rs.local_complexity(dense(nn.GELU), FLAT)
    assert "rs.trace(model, x, until='1')" in str(refusal.value) and "--allow-smooth" in str(refusal.value)
    model, x = dense(nn.GELU), FLAT
    assert rs.local_complexity(rs.trace(model, x, allow_smooth=True), x, draws=2).n == 5
    assert rs.local_complexity(model, x, draws=2, allow_smooth=True).n == 5
    assert rs.plane_cells(rs.trace(model, x, until="1"), rs.Plane.through(*x[:3])).verify().holds


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int32", "uint32", "int64", "uint64"])
def test_labels_may_be_integers_of_numpy_of_any_kind(kind: str) -> None:
    expected = rs.robust_accuracy(dense(), FLAT, LABELS, "none").per_point
    assert (
        rs.robust_accuracy(dense(), FLAT, LABELS.numpy().astype(kind), "none").per_point.tolist() == expected.tolist()
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", rs.MEASURES)
def test_half_precision_is_measured_in_float32(name: str, dtype: torch.dtype) -> None:
    half = dense().to(dtype)
    options: dict[str, Any] = {"directions": 4} if name == "boundary_crossings" else {}
    found, expected = (
        rs.MEASURES[name].estimate(model, FLAT.to(dtype).to(kind), LABELS, **options).per_point
        for model, kind in ((half, dtype), (dense().to(dtype).float(), torch.float32))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_gradients_reach_the_weights_of_a_model_in_half_precision() -> None:
    half = dense().half()
    rs.local_complexity(half, FLAT.half(), draws=2, differentiable=True).tensor.backward()  # type: ignore[union-attr]
    assert all(p.grad is not None and p.grad.dtype is torch.float16 for p in half.get_submodule("0").parameters())


# memory


def test_what_memory_cannot_hold_is_refused_before_it_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryError, match=r"one point alone needs 4,000 GB or more here"):  # on any machine
        machine.points_at_once(10**12)
    monkeypatch.setattr(machine, "free_memory", lambda: 1e3)
    monkeypatch.setattr(machine, "ALWAYS", 1e3)
    for measure in ("local_rank", "boundary_distance", "certified_radius"):
        with pytest.raises(MemoryError, match=r"1 kB are free: take fewer directions, method='random'"):
            rs.MEASURES[measure].estimate(dense(), FLAT, LABELS)


def test_where_memory_ends_the_error_says_what_to_do() -> None:
    net = rs.trace(dense(), FLAT)
    with pytest.raises(MemoryError, match=r"take a smaller batch_size, or fewer points .*can't allocate memory"):
        net.outputs(FLAT[:1].expand(10**13, 64))
    with pytest.raises(RuntimeError, match=r"must match|cannot be multiplied"):  # other errors stay
        net.outputs(FLAT[:, :3])


def test_the_memory_that_is_free_is_some_and_no_more_than_there_is() -> None:
    assert 1e8 < machine.free_memory() <= 1.01 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
