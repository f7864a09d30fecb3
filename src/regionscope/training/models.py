"""Networks to train: perceptrons, convolutional networks, two kinds of ResNet18, transformers, with what is varied."""

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor, nn

Activation = Literal["relu", "leaky_relu", "hardtanh", "relu6", "maxout", "gelu", "silu", "tanh"]


class Maxout(nn.Module):
    """The larger of each two neighbours (Goodfellow et al. 2013, with two pieces): half as many units leave."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, 2 m) -> (n, m)."""
        found: Tensor = x.unflatten(1, (-1, 2)).amax(dim=2)
        return found


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "hardtanh": nn.Hardtanh,
    "relu6": nn.ReLU6,
    "maxout": Maxout,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}
INITS = ("torch", "he", "lc-script")
MODELS = ("mlp", "cnn", "resnet18", "preact-resnet18", "transformer")
HEAD = 32  # entries of a token that one head of attention sees


def mlp(widths: list[int], activation: str = "relu", *, batch_norm: bool = False) -> nn.Sequential:
    """Linear layers with an activation between them, for inputs of any shape with `widths[0]` entries.

    A unit of maxout takes the larger of two linear functions, so its layers have twice as many of these.

    >>> mlp([784, 200, 10])[1]
    Linear(in_features=784, out_features=200, bias=True)
    """
    act, pieces = _activation(activation, halving=True), 2 if activation == "maxout" else 1
    layers: list[nn.Module] = [nn.Flatten()]
    for fan_in, units in pairwise(widths[:-1]):
        fan_out = pieces * units
        layers += [nn.Linear(fan_in, fan_out), *([nn.BatchNorm1d(fan_out)] if batch_norm else []), act()]
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))


def cnn(
    shape: tuple[int, ...], outputs: int, *, depth: int = 5, width: int = 32, activation: str = "relu",
    batch_norm: bool = False,
) -> nn.Sequential:  # fmt: skip
    """`depth` convolutions, the first of `width` channels, then one linear layer (PD figures 4 and 7).

    3 × 3 kernels; every second convolution halves the image, while it has at least 8 pixels a side (our choice), and
    doubles the channels.

    >>> cnn((3, 32, 32), 10)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    if len(shape) != 3:
        raise ValueError(f"a convolutional network needs images (channels, height, width), got {shape}")
    act, (channels, *sides) = _activation(activation), shape
    layers: list[nn.Module] = []
    for k in range(depth):
        stride = 2 if k % 2 and min(sides) >= 8 else 1
        width *= stride
        layers += [*_convolution(channels, width, 3, stride, batch_norm, bias=True), act()]
        channels, sides = width, [-(-side // stride) for side in sides]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * prod(sides), outputs))


def resnet18(
    outputs: int = 10, *, channels: int = 3, width: int = 64, activation: str = "relu", batch_norm: bool = True
) -> nn.Sequential:
    """ResNet18 for 32 × 32 images: a 3 × 3 stem and no pooling before the blocks (He et al. 2016, PD figure 5)."""
    act, w = _activation(activation), width
    blocks = _stages(Block, w, act, batch_norm)
    stem = _convolution(channels, w, 3, 1, batch_norm)
    return nn.Sequential(*stem, act(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * w, outputs))


class Block(nn.Module):
    """Two convolutions and a skip."""

    def __init__(
        self, width_in: int, width: int, stride: int, activation: Callable[[], nn.Module], batch_norm: bool
    ) -> None:
        super().__init__()
        first = _convolution(width_in, width, 3, stride, batch_norm)
        self.body = nn.Sequential(*first, activation(), *_convolution(width, width, 3, 1, batch_norm))
        same = stride == 1 and width_in == width
        self.skip = nn.Identity() if same else nn.Sequential(*_convolution(width_in, width, 1, stride, batch_norm))
        self.act = activation()

    def forward(self, x: Tensor) -> Tensor:
        """(n, c, h, w) -> (n, width, h / stride, w / stride)."""
        return self.act(self.body(x) + self.skip(x))  # type: ignore[no-any-return]


def preact_resnet18(
    outputs: int = 10, *, channels: int = 3, width: int = 16, activation: str = "relu", batch_norm: bool = False
) -> nn.Sequential:
    """The ResNet18 of PD's code (figures 5, 12, 16, 19): blocks begin with their activations.

    A 3 × 3 stem without norm, four stages of two blocks, nothing between the last of them and the global pooling: 16
    activations. Batch norm, if asked for, comes before each of them.
    """
    act, w = _activation(activation), width
    blocks = _stages(PreactBlock, w, act, batch_norm)
    stem = nn.Conv2d(channels, w, 3, 1, 1, bias=False)
    return nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * w, outputs))


class PreactBlock(nn.Module):
    """Activation, convolution, activation, convolution, and a skip that starts after the first activation if it is one.

    Where the shape changes, the skip is a 1 × 1 convolution of what was activated; elsewhere it is the input itself.
    """

    def __init__(
        self, width_in: int, width: int, stride: int, activation: Callable[[], nn.Module], batch_norm: bool
    ) -> None:
        super().__init__()
        norms = [nn.BatchNorm2d(w) if batch_norm else nn.Identity() for w in (width_in, width)]
        self.first = nn.Sequential(norms[0], activation())
        enter = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        leave = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.body = nn.Sequential(enter, norms[1], activation(), leave)
        same = stride == 1 and width_in == width
        self.skip = None if same else nn.Conv2d(width_in, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(n, c, h, w) -> (n, width, h / stride, w / stride)."""
        active = self.first(x)
        passed = x if self.skip is None else self.skip(active)
        return self.body(active) + passed  # type: ignore[no-any-return]


def _stages(
    block: type[Block] | type[PreactBlock], width: int, activation: Callable[[], nn.Module], batch_norm: bool
) -> list[nn.Module]:
    """Four stages of two blocks; each but the first halves the image and doubles the channels."""
    widths = [width, *(factor * width for factor in (1, 2, 4, 8) for _ in range(2))]
    return [block(a, b, 1 if a == b else 2, activation, batch_norm) for a, b in pairwise(widths)]


RESNETS = {"resnet18": resnet18, "preact-resnet18": preact_resnet18}


def transformer(
    shape: tuple[int, ...], outputs: int, *, depth: int = 1, width: int = 128, activation: str = "relu"
) -> nn.Sequential:
    """`depth` layers of attention and a perceptron on tokens (tokens, symbols), most often one-hot.

    As those that grokking is studied on (Nanda et al. 2023): no norms, heads of 32 entries, 4 `width` units a layer.
    All tokens see each other; the output is read off their mean. The first module embeds: the others
    together are a network on embedded points.

    >>> transformer((2, 59), 59, width=32)(torch.zeros(5, 2, 59)).shape
    torch.Size([5, 59])
    """
    if len(shape) != 2:
        raise ValueError(f"a transformer needs sequences (tokens, symbols), got {shape}")
    if width % HEAD:
        raise ValueError(f"the width of a transformer must be a multiple of {HEAD}, got {width}")
    act, (tokens, symbols) = _activation(activation), shape
    layers = [layer for _ in range(depth) for layer in (Attention(width), TokenMLP(width, act))]
    return nn.Sequential(Embedding(tokens, symbols, width), *layers, MeanToken(), nn.Linear(width, outputs))


class Embedding(nn.Module):
    """A linear map of each token, and what depends on its place."""

    def __init__(self, tokens: int, symbols: int, width: int) -> None:
        super().__init__()
        self.symbols = nn.Linear(symbols, width, bias=False)
        self.places = nn.Parameter(torch.randn(tokens, width) / width**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """(n, tokens, symbols) -> (n, tokens, width)."""
        return self.symbols(x) + self.places  # type: ignore[no-any-return]


class Attention(nn.Module):
    """What each token takes from all others, added to it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(n, tokens, width) twice."""
        heads = self.enter(x).unflatten(2, (3, -1, HEAD)).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind()  # (n, heads, tokens, HEAD) each
        shares = (query @ key.transpose(2, 3) / HEAD**0.5).softmax(dim=3)
        return x + self.leave((shares @ value).transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class TokenMLP(nn.Module):
    """A perceptron with one hidden layer on each token, added to it."""

    def __init__(self, width: int, activation: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, 4 * width), activation(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """(n, tokens, width) twice."""
        return x + self.body(x)  # type: ignore[no-any-return]


class MeanToken(nn.Module):
    """The mean over the tokens."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, tokens, width) -> (n, width)."""
        return x.mean(dim=1)


def _convolution(
    width_in: int, width: int, kernel: int, stride: int, batch_norm: bool, bias: bool = False
) -> list[nn.Module]:
    """A convolution that keeps the image's size, or halves it with stride 2, and batch norm after it if asked for."""
    layer = nn.Conv2d(width_in, width, kernel, stride, kernel // 2, bias=bias and not batch_norm)
    return [layer, nn.BatchNorm2d(width)] if batch_norm else [layer]


def new_network(
    model: str, shape: tuple[int, ...], outputs: int, *, depth: int = 4, width: int = 200, activation: str = "relu",
    batch_norm: bool = False, init: str = "torch", init_scale: float = 1.0, bias_std: float = 0.0, seed: int = 0,
) -> nn.Module:  # fmt: skip
    """A network for inputs of a shape: one of `MODELS`, with weights drawn by the seed.

    `depth` is the number of hidden layers, which ResNets fix, and `width` their units or, of the first, channels.
    `init` is `torch` for PyTorch's own weights and biases (PD), `he` for He normal weights and normal biases of
    standard deviation `bias_std` (LC: 0, HR: 10^-3), or `lc-script` for those of LC's published script, normal weights
    of variance 1 / fan-in and biases as with `he`, but that its second layer takes the fan-in of the first.
    `init_scale` then multiplies the weights and biases of linear and convolutional layers.

    >>> new_network("mlp", (1, 28, 28), 10, depth=2, width=5, init="he", init_scale=2.0)
    Sequential(...)
    """
    if depth < 1 or width < 1:
        raise ValueError(f"depth and width must be at least 1, got {depth} and {width}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if model == "mlp":
            network = mlp([prod(shape), *[width] * depth, outputs], activation, batch_norm=batch_norm)
        elif model == "cnn":
            network = cnn(shape, outputs, depth=depth, width=width, activation=activation, batch_norm=batch_norm)
        elif model in RESNETS:
            options: dict[str, Any] = {"width": width, "activation": activation, "batch_norm": batch_norm}
            network = RESNETS[model](outputs, channels=shape[0], **options)
        elif model == "transformer":
            if batch_norm:
                raise ValueError("a transformer has no batch norm")
            network = transformer(shape, outputs, depth=depth, width=width, activation=activation)
        else:
            raise ValueError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
        _draw_weights(network, init, init_scale, bias_std)
    return network


@torch.no_grad()
def _draw_weights(network: nn.Module, init: str, scale: float, bias_std: float) -> None:
    """Draw and scale the weights that a network starts from."""
    if init not in INITS:
        raise ValueError(f"init must be one of {', '.join(INITS)}, got {init!r}")
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    for k, layer in enumerate(layers):
        if init == "he":
            nn.init.kaiming_normal_(layer.weight)
        elif init == "lc-script":
            like = layers[0] if k == 1 else layer
            nn.init.normal_(layer.weight, std=like.weight[0].numel() ** -0.5)
        layer.weight *= scale
        if layer.bias is not None:
            if init != "torch":
                nn.init.normal_(layer.bias, std=bias_std)
            layer.bias *= scale


def _activation(activation: str, *, halving: bool = False) -> Callable[[], nn.Module]:
    """An activation by name; one that halves the units only where that is seen to."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
    if activation == "maxout" and not halving:
        raise ValueError("maxout is for the model mlp only: it halves the units")
    return ACTIVATIONS[activation]
