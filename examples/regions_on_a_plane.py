"""
Regions on a plane through three images
=======================================

Three images span a plane in the 784-dimensional space of inputs. On it the network is linear on each of finitely many
polygons, and :func:`regionscope.plane_cells` finds all of them exactly: first as the network was initialised, then
after 500 steps of training. Each colour is a class; lines are the boundaries of the first and of the second layer.
"""

import tempfile

import matplotlib.pyplot as plt

import regionscope as rs

settings = rs.Training(depth=2, width=64, steps=500, records=2, measures=())
run = rs.train(settings, tempfile.mkdtemp() + "/run")

# %%
# A plane through the images of a 0, a 1 and a 2. Points of it that are no images are looked at as well: that is what
# tells how a network goes on between data.

images, labels = rs.dataset("mnist-sample", flat=True).train
plane = rs.Plane.through(*(images[labels == digit][0] for digit in (0, 1, 2)), margin=1.1)

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for ax, step in zip(axes, (0, settings.steps), strict=True):
    cells = rs.plane_cells(rs.run_model(run, step), plane)
    cells.plot(ax, legend=False)
    ax.set_title(f"step {step}: {len(cells):,} regions")
    print(cells.verify())
plt.show()

# %%
# The certificates are not a formality: they check that the polygons tile the plane, Euler's formula, and the pattern
# of every cell, some of them in rational arithmetic.
