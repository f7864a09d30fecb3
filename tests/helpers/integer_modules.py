"""The networks of `rational_subdivision` as float64 torch models, written in several ways."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
import torch.nn.functional as F
from rational_subdivision import Affine, Bend, Best, Concatenation, Network, Step, Sum, Versus, sources_of
from torch import Tensor, nn

Numbers: TypeAlias = Sequence[float]
Part: TypeAlias = Callable[..., Tensor]

MODULES: dict[str, Callable[[Numbers], nn.Module]] = {
    "relu": lambda n: nn.ReLU(),
    "leaky_relu": lambda n: nn.LeakyReLU(n[0]),
    "prelu": lambda n: prelu(n),
    "hardtanh": lambda n: nn.Hardtanh(n[0], n[1]),
    "softshrink": lambda n: nn.Softshrink(n[0]),
    "threshold": lambda n: nn.Threshold(n[0], n[0]),
    "hardsigmoid": lambda n: nn.Hardsigmoid(),
    "relu6": lambda n: nn.ReLU6(),
}
FUNCTIONS: dict[str, Callable[[Tensor, Numbers], Tensor]] = {
    "relu": lambda x, n: torch.relu(x),
    "leaky_relu": lambda x, n: F.leaky_relu(x, n[0]),
    "prelu": lambda x, n: F.prelu(x, row(n)),
    "hardtanh": lambda x, n: F.hardtanh(x, n[0], n[1]),
    "clamp": lambda x, n: x.clamp(*n),
    "clamp_min": lambda x, n: x.clamp(min=n[0]),
    "clamp_max": lambda x, n: torch.clamp_max(x, n[0]),
    "abs": lambda x, n: x.abs(),
    "softshrink": lambda x, n: F.softshrink(x, n[0]),
    "threshold": lambda x, n: F.threshold(x, n[0], n[0]),
    "hardsigmoid": lambda x, n: F.hardsigmoid(x),
    "relu6": lambda x, n: F.relu6(x),
}
PAIRWISE_MAXIMA: dict[str, Callable[[Tensor, Numbers], Tensor]] = {
    "relu": lambda x, n: at_least(x, 0.0),
    "leaky_relu": lambda x, n: at_least(x, 0.0) + n[0] * at_most(x, 0.0),
    "prelu": lambda x, n: at_least(x, 0.0) + row(n) * at_most(x, 0.0),
    "hardtanh": lambda x, n: at_most(at_least(x, n[0]), n[1]),
    "clamp": lambda x, n: at_least(at_most(x, n[1]), n[0]),
    "clamp_min": lambda x, n: at_least(x, n[0]),
    "clamp_max": lambda x, n: at_most(x, n[0]),
    "abs": lambda x, n: torch.maximum(x, -x),
    "softshrink": lambda x, n: x - at_most(at_least(x, -n[0]), n[0]),
    "threshold": lambda x, n: at_least(x, n[0]),
    "hardsigmoid": lambda x, n: at_most(at_least(x / 6 + 0.5, 0.0), 1.0),
    "relu6": lambda x, n: at_least(at_most(x, 6.0), 0.0),
}


def row(numbers: Numbers) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def at_least(x: Tensor, low: float) -> Tensor:
    return torch.maximum(x, torch.full(x.shape[1:], low, dtype=torch.float64))


def at_most(x: Tensor, high: float) -> Tensor:
    return torch.minimum(x, torch.full(x.shape[1:], high, dtype=torch.float64))


def prelu(slopes: Numbers) -> nn.PReLU:
    module = nn.PReLU(len(slopes), dtype=torch.float64)
    module.weight.data = row(slopes)
    return module


class Wrapped(nn.Module):
    """A function as a module."""

    def __init__(self, function: Part) -> None:
        super().__init__()
        self.function = function

    def forward(self, *values: Tensor) -> Tensor:
        return self.function(*values)


class Steps(nn.Module):
    """Modules that read earlier values by number."""

    def __init__(self, modules: Sequence[nn.Module], sources: Sequence[tuple[int, ...]]) -> None:
        super().__init__()
        self.steps, self.sources = nn.ModuleList(modules), sources

    def forward(self, x: Tensor) -> Tensor:
        return last_value(list(self.steps), self.sources, x)


def last_value(parts: Sequence[Part], sources: Sequence[tuple[int, ...]], x: Tensor) -> Tensor:
    values = [x]
    for part, read in zip(parts, sources, strict=True):
        values.append(part(*(values[number] for number in read)))
    return values[-1]


def weights_of(step: Affine) -> tuple[Tensor, Tensor]:
    return torch.stack([row([float(w) for w in weights]) for weights in step.weights]), row(
        list(map(float, step.biases))
    )


def linear(weights: Tensor, biases: Tensor) -> nn.Linear:
    module = nn.Linear(weights.shape[1], len(biases), dtype=torch.float64)
    module.weight.data, module.bias.data = weights, biases
    return module


AFFINE: dict[str, Callable[[Tensor, Tensor], Part]] = {
    "modules": linear,
    "functions": lambda weights, biases: lambda x: x @ weights.T + biases,
    "pairwise maxima": lambda weights, biases: lambda x: (x[:, None] * weights).sum(dim=2) + biases,  # another order
}


def best_by_pooling(step: Best) -> Part:
    """As max-pooling, for groups of neighbours at equal distances."""
    members, count = len(step.groups[0]), len(step.groups)
    stride = step.groups[1][0] if count > 1 else members
    pool = nn.MaxPool1d(members, stride)
    sign = 1 if step.largest else -1
    return lambda x: sign * pool(sign * x[:, None])[:, 0]


def best_by_gathering(step: Best, with_indices: bool) -> Part:
    """As maxout: the members of each group along an axis of their own."""
    groups = torch.tensor(step.groups)
    if with_indices:
        return lambda x: (x[:, groups].max(dim=2) if step.largest else x[:, groups].min(dim=2)).values
    return lambda x: x[:, groups].amax(dim=2) if step.largest else x[:, groups].amin(dim=2)


def are_windows(groups: Sequence[Sequence[int]]) -> bool:
    """Whether groups are runs of neighbours, as max-pooling has them."""
    return all(list(group) == list(range(group[0], group[0] + len(group))) for group in groups)


def versus(step: Versus, stacked: bool) -> Part:
    if stacked:
        return lambda a, b: torch.stack([a, b], 2).amax(2) if step.largest else torch.stack([a, b]).amin(0)
    return torch.maximum if step.largest else torch.minimum


def part_of(step: Step, style: str) -> Part:
    """One step in a style: modules, functions or pairwise maxima."""
    match step:
        case Affine():
            return AFFINE[style](*weights_of(step))
        case Bend():
            numbers = [float(number) for number in step.numbers]
            if style == "modules" and step.kind in MODULES:
                return MODULES[step.kind](numbers)
            function = (PAIRWISE_MAXIMA if style == "pairwise maxima" else FUNCTIONS)[step.kind]
            return lambda x: function(x, numbers)
        case Best():
            pooling = style == "modules" and are_windows(step.groups)
            return best_by_pooling(step) if pooling else best_by_gathering(step, style == "functions")
        case Versus():
            return versus(step, style == "functions")
        case Sum():
            return torch.add
        case Concatenation():
            return lambda a, b: torch.cat([a, b], dim=1)


def as_model(network: Network, style: str) -> Part:
    """The network as an `nn.Sequential` where it is a chain, as a module of modules, or as a plain function."""
    parts = [part_of(step, style) for step in network]
    sources = [sources_of(step) for step in network]
    if style != "modules":
        return lambda x: last_value(parts, sources, x)
    modules = [part if isinstance(part, nn.Module) else Wrapped(part) for part in parts]
    chain = sources == [(number,) for number in range(len(network))]
    return nn.Sequential(*modules) if chain else Steps(modules, sources)
