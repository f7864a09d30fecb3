"""The `regionscope` command."""

import cyclopts
import torch
from torch import nn

import regionscope as rs

app = cyclopts.App(
    name="regionscope", help="Shows where a neural network bends.", version=rs.__version__, result_action="return_value"
)


@app.command
def demo(*, steps: int = 300, seed: int = 0) -> None:
    """Train a small network on two moons, trace it and print its activation sites.

    Parameters
    ----------
    steps
        Training steps.
    seed
        Seed of the data and of the initial weights.
    """
    generator = torch.Generator().manual_seed(seed)
    points, labels = two_moons(512, generator)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(
            nn.Linear(2, 32),
            nn.ReLU(),
            nn.Linear(32, 32),
            nn.ReLU(),
            nn.Unflatten(1, (16, 2)),
            Maxout(),
            nn.Linear(16, 2),
        )
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(points), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    accuracy = (model(points).argmax(dim=1) == labels).float().mean()
    print(f"two moons, {len(points)} points, {steps} steps: accuracy {accuracy:.1%}\n")

    net = rs.trace(model, points)
    print(f"{net}\n")
    check = net.verify(points, generator=generator)
    patterns = len(torch.unique(net.patterns(points), dim=0))
    print(f"affine inside the pattern of each point: {check.holds} (largest defect {check.defect.max():.1e})")
    print(f"the {len(points)} points lie in {patterns} different linear regions")


class Maxout(nn.Module):
    """The larger of two values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, units, 2) -> (n, units)."""
        return x.amax(dim=-1)


def two_moons(n: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Two interleaved half circles with noise: points (n, 2) and labels (n,)."""
    angle = torch.pi * torch.rand(n, generator=generator)
    labels = torch.arange(n) % 2
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], dim=1)
    points = torch.where(labels[:, None] == 0, upper, lower)
    return points + 0.1 * torch.randn(n, 2, generator=generator), labels


def main() -> None:
    """Run the command line."""
    app()
