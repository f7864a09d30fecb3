"""What a training step costs with a penalty on local complexity, against one without, on the same batch."""

from collections.abc import Callable, Iterator

import torch
from networks import he_mlp, small_cnn
from timing import Ratio, cost
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import regionscope as rs
from regionscope.datasets.sets import mnist_sample

STEPS = 8  # at a time, as not all penalties cost the same


def training(model: nn.Module, x: Tensor, labels: Tensor, *, penalty: float) -> Callable[[], None]:
    """Some steps of Adam; the network is traced once, as everybody can."""
    net, optimiser = rs.trace(model, x), torch.optim.Adam(model.parameters(), lr=1e-4)

    def run() -> None:
        for _ in range(STEPS):
            loss = cross_entropy(model(x), labels)
            if penalty:
                loss = loss + penalty * rs.local_complexity(net, x, differentiable=True).tensor  # type: ignore[operator]
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return run


def ratios() -> Iterator[Ratio]:
    pictures, labels = (part[:64] for part in mnist_sample("train"))
    mlp, cnn = he_mlp(784, 200, 200, 200, 200, 10), small_cnn()
    for name, model, x in (("784-200x4-10", mlp, pictures.flatten(1)), ("a small CNN", cnn, pictures)):
        with_penalty, plain = (training(model, x, labels, penalty=p) for p in (1e-6, 0.0))
        value = cost(with_penalty, plain, rounds=9)
        yield Ratio(f"a training step of {name}, 64 images, with a penalty on LC, against one without", value, 6)
