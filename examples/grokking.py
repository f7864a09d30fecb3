"""
A small network groks
=====================

Adding modulo 23 can be learnt by heart: after a few dozen steps this network knows every sum it was shown and none of
the others. With weight decay it goes on to find the rule, long after its training accuracy is 1. What do its regions
do meanwhile?
"""

import tempfile

import matplotlib.pyplot as plt
import torch
from torch import nn

import regionscope as rs
from regionscope import plots

MODULUS, STEPS = 23, 2500
pairs = torch.cartesian_prod(torch.arange(MODULUS), torch.arange(MODULUS))
pairs = pairs[torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))]
inputs, sums = nn.functional.one_hot(pairs, MODULUS).float().flatten(1), pairs.sum(dim=1) % MODULUS
shown = int(0.7 * len(pairs))
probes = {"train": (inputs[:shown], sums[:shown]), "test": (inputs[shown:], sums[shown:])}

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2 * MODULUS, 128), nn.ReLU(), nn.Linear(128, MODULUS))
optimiser = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=2.0)


def accuracies() -> dict[str, float]:
    with torch.no_grad():
        return {f"{name}_accuracy": float((model(x).argmax(1) == y).float().mean()) for name, (x, y) in probes.items()}


# %%
# Crossings within a radius of 0.1 around the sums that were shown, and around the others, at steps spaced
# logarithmically.

steps = rs.log_steps(STEPS, 40)
measures = {"boundary_crossings": {"radius": 0.1}}
with rs.Monitor(model, probes, measures=measures, steps=steps, run=tempfile.mkdtemp() + "/run") as monitor:
    for step in range(STEPS + 1):
        if step in steps:
            monitor(step, **accuracies())
        loss = nn.functional.cross_entropy(model(inputs[:shown]), sums[:shown])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

# %%
# Accuracies below; above, the crossings with the phases that :func:`regionscope.phases` finds in those around the
# training sums, and lines where the network had memorised and where it had generalised.

run = monitor.run
phases = run.phases("train/boundary_crossings")
print(phases)
plots.training(
    run.steps,
    {name: run.curve(f"{name}/boundary_crossings")[1] for name in probes},
    {name: run.curve(f"{name}_accuracy")[1] for name in probes},
    phases=phases,
    label="units that switch within 0.1",
)
plt.show()

# %%
# Here crossings grow threefold while the network memorises, and change little while it generalises: in this run there
# is no second descent to see. The papers see one with images; :doc:`/reproduction` tells for which of their networks it
# was found again.
