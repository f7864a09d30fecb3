"""Planes of random convolutional networks with max-pooling, around images on a flat background, against torch itself.

Most competitors are constants there, many of them equal, and some are equal functions. Blocks are tiny, and signs are
doubted more than they need be, so that bounds leave many of them open.
"""

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

import regionscope as rs
from regionscope.geometry import sweep
from regionscope.geometry.budget import Budget
from regionscope.geometry.subdivision import Subdivision

FEW, MANY = 32, 3000  # problems; as many in the exhaustive test
ACTIVATIONS = (nn.ReLU, nn.ReLU, nn.ReLU, nn.ReLU6, lambda: nn.LeakyReLU(0.25), lambda: nn.Hardtanh(0.0, 1.0))
POOLINGS = ((2, 2, 0), (2, 2, 0), (3, 3, 0), (3, 2, 0), (2, 1, 0), (3, 2, 1))  # size, stride, padding
NEAR = 1e-9  # values that differ by less may be one function, rounded in two ways


@dataclass(frozen=True)
class Problem:
    """A network, three images that a plane passes through, the bytes of a block, and by how much values are doubted."""

    model: nn.Sequential
    images: Tensor
    room: int | None
    doubt: float


def problem(seed: int) -> Problem:
    """The problem with this number, the same every time."""
    rng, generator = random.Random(f"pooled {seed}"), torch.Generator().manual_seed(seed)
    side, channels = rng.randint(6, 9), rng.choice((1, 1, 2))
    images = torch.full((3, channels, side, side), rng.choice((0.0, 0.0, 0.5, -0.25)), dtype=torch.float64)
    (top, left), size = (rng.randint(0, side - 2) for _ in range(2)), rng.randint(2, 3)
    patch = images[:, :, top : top + size, left : left + size]
    patch.copy_(rng.choice((1, 2, 4)) * torch.rand(patch.shape, generator=generator, dtype=torch.float64))
    layers: list[nn.Module] = [nn.MaxPool2d(*rng.choice(POOLINGS))] if rng.random() < 0.2 else []
    for _ in range(rng.choice((1, 2, 2, 3))):
        width = nn.Sequential(*layers)(images).shape[-1]
        if width < 3:
            break
        convolution = nn.Conv2d(channels, rng.randint(1, 3), rng.choice((2, 3)), padding=rng.choice((0, 1)))
        channels = convolution.out_channels
        pooled: list[nn.Module] = [rng.choice(ACTIVATIONS)()]
        if width > 4:
            pooled.insert(rng.randint(0, 1), nn.MaxPool2d(*rng.choice(POOLINGS)))
        layers += [convolution.double(), *pooled]
    entries = nn.Sequential(*layers)(images)[0].numel()
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(entries, 2, dtype=torch.float64))
    for parameter in model.parameters():  # few numbers: constants that compete are often equal
        parameter.data = torch.randint(-3, 4, parameter.shape, generator=generator).double() / 4
    return Problem(model, images, rng.choice((3000, 12_000, 30_000, None)), rng.choice((0.0, 1e-6, 1e-3)))


def disagreement(model: nn.Sequential, x: Tensor, patterns: NDArray[np.int32]) -> NDArray[np.bool_]:
    """At which points x the patterns, of the same points, are not what torch says; of near equals either may win."""
    wrong, first = torch.zeros(len(x), dtype=torch.bool), 0
    told = torch.from_numpy(patterns).long()
    for module in model:
        entering, x = x, module(x)
        if isinstance(module, nn.MaxPool2d):
            window = module.kernel_size, module.stride, module.padding
            best = F.max_pool2d(entering, *window, return_indices=True)[1].flatten(2)
            claimed = told[:, first : first + best[0].numel()].reshape(best.shape)
            values = entering.flatten(2)
            gap = values.gather(2, best) - values.gather(2, claimed)
            unlike = (claimed != best) & ((gap >= NEAR) | (gap == 0) & _flat(values, claimed))
        elif isinstance(module, nn.ReLU | nn.LeakyReLU | nn.Hardtanh):
            levels = (module.min_val, module.max_val) if isinstance(module, nn.Hardtanh) else (0.0,)
            claimed = told[:, first : first + entering[0].numel()].reshape(entering.shape)
            pieces = torch.stack([entering > level for level in levels]).sum(dim=0)
            away = torch.stack([(entering - level).abs() for level in levels]).amin(dim=0)
            unlike = (claimed != pieces) & ((away >= NEAR) | (away == 0))
        else:
            continue
        first += claimed[0].numel()
        wrong |= unlike.flatten(1).any(dim=1)
    assert first == patterns.shape[1]
    return wrong.numpy()


def _flat(values: Tensor, claimed: Tensor) -> Tensor:
    """Whether those who are said to have won are the same number at all points: of such equals the first wins."""
    return (values == values[:1]).all(dim=0).expand(values.shape).gather(2, claimed)


@torch.no_grad()
def check(given: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cells have the patterns of torch at their centres and at random points, each its own, and fill the plane."""
    if given.room is not None:
        monkeypatch.setattr(Budget, "room", property(lambda self: np.inf if self.memory is None else given.room))
        monkeypatch.setattr(Budget, "check", lambda self, widest: None)
        monkeypatch.setattr(sweep, "LEAST", 1 << 20)  # one cell is never too much
    start = Subdivision.start
    monkeypatch.setattr(Subdivision, "start", lambda self: replace(s := start(self), error=s.error + given.doubt))
    plane = rs.Plane.through(*given.images, margin=0.7)
    cells = rs.plane_cells(given.model, plane)
    assert cells.exact and cells.areas.sum() == pytest.approx(plane.area, rel=1e-9)
    assert len(np.unique(cells.patterns, axis=0)) == len(cells)
    clear = np.flatnonzero(cells.areas > 1e-12 * plane.area)
    anywhere = np.random.default_rng(0).uniform(-1, 1, (300, 2)) * plane.domain.max()
    for cell, place in ((clear, cells.centres[clear]), (cells.locate(anywhere), anywhere)):
        x = plane.points(place).reshape(-1, *given.images.shape[1:])
        assert not disagreement(given.model, x, cells.patterns_of(cell)).any()


@pytest.mark.parametrize("seed", range(FEW))
def test_planes_have_the_patterns_of_torch(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check(problem(seed), monkeypatch)


@pytest.mark.exhaustive
def test_many_planes_have_the_patterns_of_torch() -> None:
    found = []
    for seed in range(FEW, MANY):
        with pytest.MonkeyPatch.context() as patch:
            try:
                check(problem(seed), patch)
            except Exception as error:
                found.append(f"problem({seed}): {type(error).__name__}: {str(error).partition(chr(10))[0]}")
    assert not found
