"""
A penalty on local complexity
=============================

What does it do to complexity and robustness? Two networks a seed on the same MNIST images, one of them with
``penalty`` times the local complexity of its batch added to the loss. Prints mean and standard error over the seeds,
and draws a dot a seed. One value of the penalty, not a tuned one: the table says what came of it, for plain accuracy
too.
"""

import argparse
from statistics import mean, stdev

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import regionscope as rs
from regionscope.datasets.sets import mnist_sample


def trained(images: Tensor, labels: Tensor, *, penalty: float, steps: int, seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(seed)
    net = rs.trace(model, images[:1])  # once: it follows the parameters
    for _ in range(steps):
        rows = torch.randint(len(images), (64,), generator=generator)
        loss = cross_entropy(model(images[rows]), labels[rows])
        if penalty:
            found = rs.local_complexity(net, images[rows], sigma=0.1, generator=generator, differentiable=True)
            assert found.tensor is not None
            loss = loss + penalty * found.tensor
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


def measured(model: nn.Module, images: Tensor, labels: Tensor) -> list[float]:
    """Local complexity, accuracy and accuracy under PGD at test images."""
    complexity = rs.local_complexity(model, images, sigma=0.1, draws=8, generator=torch.Generator().manual_seed(0))
    attacked = rs.robust_accuracy(model, images, labels, radius=0.1, bounds=(0, 1))
    return [complexity.mean, rs.robust_accuracy(model, images, labels, "none").mean, attacked.mean]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--penalty", type=float, default=0.01)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    (train, train_labels), (test, test_labels) = (mnist_sample(split) for split in ("train", "test"))
    train, test = train.flatten(1), test.flatten(1)[:300]
    print(f"{'penalty':>8} {'local complexity':>20} {'accuracy':>18} {'PGD accuracy':>18}   ({options.seeds} seeds)")
    _, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
    for place, penalty in enumerate((0.0, options.penalty)):
        runs = [
            measured(
                trained(train, train_labels, penalty=penalty, steps=options.steps, seed=s), test, test_labels[:300]
            )
            for s in range(options.seeds)
        ]
        cells = []
        for ax, column in zip(axes, zip(*runs, strict=True), strict=True):
            ax.plot([place] * len(column), column, "o", alpha=0.6)
            error = stdev(column) / len(column) ** 0.5 if len(column) > 1 else float("nan")
            cells.append(f"{mean(column):.3f} ± {error:.3f}")
        print(f"{penalty:>8g} {cells[0]:>20} {cells[1]:>18} {cells[2]:>18}")
    for ax, title in zip(axes, ("local complexity", "accuracy", "PGD accuracy"), strict=True):
        ax.set(title=title, xlim=(-0.5, 1.5), xticks=(0, 1), xticklabels=("plain", "penalised"))
    plt.show()


if __name__ == "__main__":
    main()
