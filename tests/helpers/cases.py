"""Named small networks that every measure and every piece of geometry meets."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Case:
    """A model in eval mode, a batch of inputs for it, and what tracing should find."""

    model: nn.Module
    points: Tensor
    kinds: tuple[str, ...]  # of the sites, in order
    units: int


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter, self.a, self.b = nn.Linear(3, width), nn.Linear(width, width), nn.Linear(width, width)
        self.head = nn.Linear(2 * width, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.enter(x))
        h = F.relu(h + 0.5 * self.b(F.relu(self.a(h))))
        return self.head(torch.cat([h, h.flip(-1)], dim=-1))  # type: ignore[no-any-return]


class Twice(nn.Module):
    """One activation module and one linear layer, both used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.again, self.act, self.head = nn.Linear(2, 5), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.enter(x))
        return self.head(self.again(self.act(self.again(x))))  # type: ignore[no-any-return]


class Functional(nn.Module):
    """The ways to write an activation that are not modules, in place and not."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(6))

    def forward(self, x: Tensor) -> Tensor:
        a, b, c, d, e, f = self.layers
        x = torch.relu(a(x))
        x = b(x).relu_()
        x = c(x).clamp(min=0)
        x = F.leaky_relu(d(x), 0.1, inplace=True)
        x = torch.maximum(e(x), x)
        return torch.minimum(f(x).abs(), torch.ones(4))


class Maxout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter, self.head = nn.Linear(3, 12), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.enter(x).view(len(x), 4, 3).max(dim=2).values)  # type: ignore[no-any-return]


class Patches(nn.Module):
    """Folds patches into the batch and puts channels before points, as vision and sequence models do."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.token, self.head = nn.Linear(4, 3), nn.Parameter(torch.randn(1, 1, 3)), nn.Linear(15, 2)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        h = F.relu(self.patch(x.view(n * 4, 4))).view(n, 4, 3)
        h = torch.cat([self.token.expand(n, -1, -1), h], dim=1)
        h = F.hardtanh(h.transpose(0, 1)).transpose(0, 1)
        return self.head(h.flatten(1))  # type: ignore[no-any-return]


class Written(nn.Module):
    """Writes into views and into a fresh buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.head = nn.Linear(3, 6), nn.Linear(6, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.enter(x)
        h[:, :3].relu_()
        room = torch.zeros(len(x), 6)
        room[:, ::2] = h[:, :3]
        room[:, 1::2] += h[:, 3:].abs()
        flat = room.view(-1)
        flat *= 2
        return self.head(room)  # type: ignore[no-any-return]


def mlp(*widths: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, (fan_in, fan_out) in enumerate(pairwise(widths)):
        layers += ([act()] if i else []) + [nn.Linear(fan_in, fan_out)]
    return nn.Sequential(*layers)


def dense() -> Case:
    return Case(mlp(4, 8, 6, 3), torch.randn(7, 4), ("relu", "relu"), 14)


def dense_float64() -> Case:
    return Case(mlp(4, 8, 6, 3).double(), torch.randn(7, 4).double(), ("relu", "relu"), 14)


def conv() -> Case:
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(inplace=True), nn.AvgPool2d(2),
        nn.ConvTranspose2d(2, 1, 2, stride=2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Dropout(), nn.Linear(36, 2),
    )  # fmt: skip
    return Case(model, torch.randn(3, 1, 6, 6), ("relu", "leaky_relu"), 72 + 36)


def residual() -> Case:
    return Case(Residual(5), torch.randn(6, 3), ("relu", "relu", "relu"), 15)


def shared_module() -> Case:
    return Case(Twice(), torch.randn(6, 2), ("relu", "relu"), 10)


def functional() -> Case:
    kinds = ("relu", "relu", "clamp", "leaky_relu", "maximum", "abs", "minimum")
    return Case(Functional(), torch.randn(5, 4), kinds, 28)


def max_pool() -> Case:
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(8, 2)
    )
    # 6x6 maps, pooled to 3x3 (two rounds of 3x6, two of 3x3, twice), then to 2x2 (one round of 2x3, one of 2x2)
    return Case(model, torch.randn(4, 1, 8, 8), ("relu", *["max_pool"] * 6), 72 + 2 * (36 + 18) + 2 * (6 + 4))


def maxout() -> Case:
    return Case(Maxout(), torch.randn(5, 3), ("max", "max"), 8)


def hard_tanh() -> Case:
    return Case(mlp(2, 6, 5, 2, act=nn.Hardtanh), torch.randn(5, 2), ("hardtanh", "hardtanh"), 11)


def prelu() -> Case:
    return Case(mlp(2, 6, 5, 2, act=nn.PReLU), torch.randn(5, 2), ("prelu", "prelu"), 11)


def batch_norm() -> Case:
    norm = nn.BatchNorm2d(3)
    assert norm.running_mean is not None and norm.running_var is not None
    norm.running_mean.copy_(torch.randn(3))
    norm.running_var.copy_(torch.rand(3) + 0.5)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 2))
    return Case(model, torch.randn(4, 2, 5, 5), ("relu",), 27)


def dead_units() -> Case:
    model = mlp(3, 6, 6, 2)
    for layer in (model[0], model[2]):
        assert isinstance(layer, nn.Linear)
        layer.bias.data[:3] = -100.0
        layer.weight.data[4] = 0.0
    return Case(model, torch.randn(6, 3), ("relu", "relu"), 12)


def zero_bias() -> Case:
    model = mlp(3, 6, 6, 2)
    for name, p in model.named_parameters():
        if name.endswith("bias"):
            p.data.zero_()
    return Case(model, torch.randn(6, 3), ("relu", "relu"), 12)


def duplicate_units() -> Case:
    model = mlp(2, 6, 4, 2)
    first = model[0]
    assert isinstance(first, nn.Linear)
    first.weight.data[3:] = first.weight.data[:3] * torch.tensor([[1.0], [-2.0], [0.5]])
    first.bias.data[3:] = first.bias.data[:3] * torch.tensor([1.0, -2.0, 0.5])
    return Case(model, torch.randn(6, 2), ("relu", "relu"), 10)


def one_unit() -> Case:
    return Case(mlp(2, 1, 1), torch.randn(3, 2), ("relu",), 1)


def line_input() -> Case:
    return Case(mlp(1, 8, 8, 1), torch.randn(5, 1), ("relu", "relu"), 16)


def patches() -> Case:
    return Case(Patches(), torch.randn(3, 16), ("relu", "hardtanh"), 12 + 15)


def written() -> Case:
    return Case(Written(), torch.randn(4, 3), ("relu", "abs"), 6)


def weight_norm() -> Case:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 5)), nn.ReLU(), nn.Linear(5, 2))
    return Case(model, torch.randn(4, 3), ("relu",), 5)


CASES: dict[str, Callable[[], Case]] = {
    f.__name__: f
    for f in (
        dense, dense_float64, conv, residual, shared_module, functional, max_pool, maxout, hard_tanh, prelu, batch_norm,
        dead_units, zero_bias, duplicate_units, one_unit, line_input, patches, written, weight_norm,
    )
}  # fmt: skip


def case(name: str) -> Case:
    """The named case, the same every time."""
    with torch.random.fork_rng():
        torch.manual_seed(sum(map(ord, name)))
        made = CASES[name]()
    made.model.eval()
    return made
