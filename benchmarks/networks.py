"""The networks that the benchmarks measure."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import nn

from regionscope.datasets.sets import mnist_sample
from regionscope.training import models


def he_mlp(*widths: int) -> nn.Sequential:
    """He normal weights, biases N(0, 10^-6), ReLU between the layers."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        linear = nn.Linear(fan_in, fan_out)
        nn.init.kaiming_normal_(linear.weight)
        nn.init.normal_(linear.bias, std=1e-3)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def images(n: int) -> torch.Tensor:
    """The first MNIST training images, (n, 784)."""
    return mnist_sample("train")[0][:n].flatten(1)


def three_digits() -> torch.Tensor:
    """A 0, a 1 and a 2, (3, 784)."""
    pixels, labels = mnist_sample("train")
    return torch.stack([pixels[labels == digit][0] for digit in range(3)]).flatten(1)


def on_plane(model: nn.Sequential) -> nn.Sequential:
    """A network of the same size that takes plane coordinates: the unit of cost of a plane."""
    first = model[0]
    assert isinstance(first, nn.Linear)
    rest = [nn.Linear(m.in_features, m.out_features) if isinstance(m, nn.Linear) else m for m in list(model)[1:]]
    return nn.Sequential(nn.Linear(2, first.out_features), *rest).double()


def small_cnn() -> nn.Sequential:
    """Two convolutions, max-pooling and a linear layer for MNIST: 11,956 units."""
    torch.manual_seed(0)
    first, second = nn.Conv2d(1, 3, 3, padding=1), nn.Conv2d(3, 40, 3, padding=1)
    return nn.Sequential(first, nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU(), nn.Flatten(), nn.Linear(40 * 196, 10))


def small_resnet18() -> nn.Sequential:
    """ResNet18 with a first width of 16, in eval mode: 139,264 units."""
    torch.manual_seed(0)
    return models.resnet18(width=16).eval()


def colours() -> torch.Tensor:
    """An image (3, 32, 32)."""
    return torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(0))


def resnet18() -> nn.Sequential:
    """ResNet18 for 32x32 images (He et al. 2016), in eval mode."""
    torch.manual_seed(0)
    return models.resnet18().eval()


def steps_of_training(model: nn.Module, x: torch.Tensor, steps: int, *, fused: bool) -> Callable[[], None]:
    """So many steps of AdamW on batches of 200 of a thousand points, with labels that say nothing."""
    y = torch.randint(10, (len(x),), generator=torch.Generator().manual_seed(0))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)

    def train() -> None:
        for step in range(steps):
            rows = torch.arange(200) + 200 * (step % 5)
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return train


class FromEmbeddings(nn.Module):
    """A language model from the embeddings of its tokens to the last hidden states."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.model(inputs_embeds=embeddings).last_hidden_state
        return states


def gpt2(activation: str) -> nn.Module:
    """GPT-2 as it is, but for the activation, with two layers and few tokens to know."""
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    small = GPT2Config(n_layer=2, vocab_size=64, bos_token_id=0, eos_token_id=0, activation_function=activation)
    return FromEmbeddings(GPT2Model(small)).eval()
