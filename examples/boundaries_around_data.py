"""
How near are the boundaries?
============================

Two questions to a point: how far is the nearest boundary, and how many boundaries pass through a ball around it? The
first is :func:`regionscope.boundary_distance`, exact; the second :func:`regionscope.boundary_crossings`, which counts
the units that do not keep their sign over the vertices of a neighbourhood. Asked at training images and at points far
from data, before training and after it.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np
import torch

import regionscope as rs

settings = rs.Training(depth=3, width=64, steps=500, records=2, measures=())
run = rs.train(settings, tempfile.mkdtemp() + "/run")
images, _ = rs.dataset("mnist-sample", flat=True).train
probes = rs.probe_points(images, n=200, generator=torch.Generator().manual_seed(0))
radii = np.geomspace(0.01, 3, 10)

# %%
# One frame of directions for all points, drawn from a generator: whoever runs this sees the same numbers.

figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained", sharex="col", sharey="col")
for (near, around), step in zip(axes, (0, settings.steps), strict=True):
    model = rs.run_model(run, step)
    for name in ("train", "uniform"):
        distance = rs.boundary_distance(model, probes[name])
        print(f"step {step}, {name}: {distance}")
        near.hist(np.log10(distance.per_point), bins=np.linspace(-5, 0, 26), alpha=0.6, label=f"{name} points")
        found = rs.boundary_crossings(
            model, probes[name], radius=radii.tolist(), generator=torch.Generator().manual_seed(0)
        )
        means, errors = zip(*((crossings.mean, crossings.stderr) for crossings in found), strict=True)
        around.errorbar(radii, means, errors, marker="o", ms=3, label=f"{name} points")
    near.set(title=f"step {step}: distance to the nearest boundary", ylabel="points")
    around.set(title=f"step {step}: boundaries within a radius", xscale="log", ylabel="units that switch")
axes[1, 0].set_xlabel("distance, log10")
axes[1, 1].set_xlabel("radius")
axes[0, 0].legend(frameon=False)
plt.show()
