"""
Which of the papers' bounds hold, and how tightly
=================================================

The papers bound local complexity by gradients, ranks, total variation and norms of the weights.
:func:`regionscope.bounds` holds each of these inequalities against a network, with the constants as printed and with
constants that are proved. The picture shows left side over right side: at 1 a bound is attained, beyond it is
violated, far below it says little.
"""

import tempfile

import matplotlib.pyplot as plt
import torch

import regionscope as rs
from regionscope import plots

settings = rs.Training(depth=3, width=64, steps=300, records=2, measures=())
run = rs.train(settings, tempfile.mkdtemp() + "/run")
images, _ = rs.dataset("mnist-sample", flat=True).test

found = {
    f"step {step}": rs.bounds(
        rs.run_model(run, step), images[:50], sigma=0.05, generator=torch.Generator().manual_seed(0)
    )
    for step in (0, settings.steps)
}
for bound in found["step 300"]:
    print(bound)

# %%
# Hollow marks are as printed, filled ones hold for every network.

plots.bounds(found)
plt.show()
