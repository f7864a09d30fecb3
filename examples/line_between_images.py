"""
A line between two images
=========================

On the way from one image to another the outputs of a ReLU network are piecewise linear.
:func:`regionscope.line_cells` finds every place at which they bend, exactly: nothing is sampled, so no piece is too
short to be seen.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import regionscope as rs

settings = rs.Training(depth=3, width=200, steps=500, records=2, measures=())
run = rs.train(settings, tempfile.mkdtemp() + "/run")
model = rs.run_model(run, settings.steps)

images, labels = rs.dataset("mnist-sample", flat=True).test
three, eight = (images[labels == digit][0] for digit in (3, 8))
cells = rs.line_cells(model, three, eight)
print(f"{len(cells)} regions, the shortest {cells.lengths.min():.2g} long, the longest {cells.lengths.max():.2g}")

# %%
# All ten outputs. Marks below them are the breakpoints, a row for each layer.

cells.plot().set_title("from a 3 to an 8")

# %%
# How short are the pieces? A search by samples would need steps shorter than the shortest of them to miss none.

figure, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
ax.hist(np.log10(cells.lengths), bins=24, color="0.75")
ax.set(xlabel="length of a piece, log10", ylabel="pieces", title=f"{len(cells)} pieces")
plt.show()
