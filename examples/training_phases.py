"""
The phases of a training
========================

Local complexity and crossings do not just grow or shrink while a network trains: they fall, rise and can fall again.
A :class:`regionscope.Monitor` records them in any loop of your own, and :func:`regionscope.phases` says where a curve
turns, and how sure that is.
"""

import tempfile

import matplotlib.pyplot as plt
import torch
from torch import nn

import regionscope as rs
from regionscope import plots

data = rs.dataset("mnist-sample", flat=True)
(images, labels), (test_images, test_labels) = data.train, data.test
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)


def accuracy(points: torch.Tensor, right: torch.Tensor) -> float:
    with torch.no_grad():
        return float((model(points).argmax(dim=1) == right).float().mean())


# %%
# The loop is the usual one. ``monitor(step)`` measures if the step is due and leaves training as it is, bit for bit.

TOTAL = 3000
probes = {"train": images[:100], "test": test_images[:100]}
steps = rs.log_steps(TOTAL, 40)
with rs.Monitor(model, probes, measures=["local_complexity"], steps=steps, run=tempfile.mkdtemp() + "/run") as monitor:
    for step in range(TOTAL + 1):
        if step in steps:
            monitor(step, train_accuracy=accuracy(images, labels), test_accuracy=accuracy(test_images, test_labels))
        rows = torch.randint(len(images), (64,))
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
run = monitor.run
print(monitor.cost)

# %%
# Shaded stretches are ascents and descents of the curve of the training images. A line is where the network had
# memorised its training set.

phases = run.phases("train/local_complexity")
print(phases)
plots.training(
    run.steps,
    {name: run.curve(f"{name}/local_complexity")[1] for name in probes},
    {name: run.curve(f"{name}_accuracy")[1] for name in probes},
    phases=phases,
)
plt.show()
