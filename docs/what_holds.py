"""Makes the table and the pictures of `what-holds.md`: python docs/what_holds.py"""

import re
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, nn

import regionscope as rs
from regionscope import plots
from regionscope.datasets.sets import mnist_sample
from regionscope.plots.style import BOUNDARY, HUES, figure_of

HERE = Path(__file__).parent
VALID = HUES["random"]


def network(*widths: int, weights: list[Tensor] | None = None) -> nn.Sequential:
    """ReLU layers; with these weights and no biases, if given."""
    layers: list[nn.Module] = []
    for k, (fan_in, fan_out) in enumerate(pairwise(widths)):
        linear = nn.Linear(fan_in, fan_out).double()
        if weights is not None:
            linear.weight.data, linear.bias.data = weights[k].double(), torch.zeros(fan_out).double()
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def trained_on_digits(steps: int) -> tuple[dict[str, list[rs.Bound]], rs.RepresentationCost]:
    """The inequalities on a network for MNIST, as it is drawn and after training, at 100 test images."""
    images, labels = (t[:1000] for t in mnist_sample("train"))
    probe = mnist_sample("test")[0][:100].flatten(1).double()
    model = network(784, 64, 64, 64, 10)
    found = {"at initialisation": bounds_of(model, probe)}
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(images.flatten(1).double()), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    found[f"after {steps} steps"] = bounds_of(model, probe)
    return found, rs.representation_cost(model)


def bounds_of(model: nn.Module, points: Tensor) -> list[rs.Bound]:
    return rs.bounds(model, points, sigma=0.05, eps=0.1, generator=torch.Generator().manual_seed(0))


def table(found: dict[str, list[rs.Bound]]) -> str:
    """A Markdown table: the ratio and the verdict of every row, on each network."""
    head = ["inequality", "form", *(cell for name in found for cell in (f"{name}: left", "right", "ratio", "verdict"))]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for rows in zip(*found.values(), strict=True):
        cells = [rows[0].reference, rows[0].kind]
        for b in rows:
            cells += [f"{b.left:.3g}", f"{b.right:.3g}", f"{b.ratio:.2g}", b.verdict]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def ratios(reference: str, rows: list[list[rs.Bound]]) -> tuple[list[float], list[float]]:
    """Left over right of the printed and of the valid form, one a network."""
    pairs = [[b.ratio for b in found if b.reference == reference] for found in rows]
    return [p for p, _ in pairs], [v for _, v in pairs]


def draw_ratios(
    ax: plt.Axes, title: str, label: str, x: np.ndarray, reference: str, rows: list[list[rs.Bound]]
) -> None:
    printed, valid = ratios(reference, rows)
    ax.plot(x, printed, "o--", color=BOUNDARY, mfc="none", ms=7, label="as printed")
    ax.plot(x, valid, "s-", color=VALID, ms=4, label="valid")
    ax.axhline(1.0, color="black", lw=0.8, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel=label, ylabel="left / right")
    ax.set_title(title, fontsize=9)
    ax.tick_params(labelsize=7)


def counterexamples(path: Path) -> None:
    """Left over right of the printed and valid forms along families that break the printed ones."""
    figure, axes = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained")
    zero, one = torch.zeros(2, 1).double(), torch.ones(2, 1).double()
    n = np.array([1, 4, 16, 64, 256])
    rows = [rs.bounds(network(1, k, 1, weights=[torch.ones(k, 1), torch.ones(1, k)]), zero, eps=0.01) for k in n]
    draw_ratios(axes[0, 0], "Thm 5 (11): n units of weight 1, one input", "n", n, "LC Thm 5 (11)", rows)
    s = np.geomspace(0.1, 100, 7)
    rows = [
        rs.bounds(
            network(3, 3, 1, weights=[1.000001 * float(t) * torch.eye(3), torch.ones(1, 3)]),
            torch.zeros(2, 3).double(), sigma=1.0, eta=0.1, eps=float(t),
        )
        for t in s
    ]  # fmt: skip
    draw_ratios(axes[0, 1], "Thm 5 (12): J = eps times identity", "eps", s, "LC Thm 5 (12)", rows)
    a = np.geomspace(0.01, 1000, 6)
    rows = [
        rs.bounds(network(1, 1, 1, weights=[torch.tensor([[t]]), torch.tensor([[1 / t]])]), zero, sigma=1.0) for t in a
    ]
    draw_ratios(axes[0, 2], "Prop. 8: relu(ax)/a, one function", "a", a, "LC Prop. 8 (14)", rows)
    m = np.geomspace(0.1, 1000, 9)
    rows = [
        rs.bounds(
            network(1, 2, 1, 1, weights=[torch.tensor([[1.0], [-1.0]]), torch.full((1, 2), t), torch.ones(1, 1)]),
            one, sigma=0.01,
        )
        for t in m
    ]  # fmt: skip
    draw_ratios(axes[1, 0], "Cor. 13, C_grad: m |x|", "m", m, "LC Cor. 13 (C_grad)", rows)
    w = np.geomspace(0.1, 1000, 9)
    changes = []
    for t in w:
        before, after = (network(1, 1, 1, weights=[torch.tensor([[t]]), torch.ones(1, 1)]) for _ in range(2))
        first = after[0]
        assert isinstance(first, nn.Linear)
        first.bias.data.fill_(1.0)
        changes.append(rs.complexity_change(before, after, zero, sigma=1.0))
    draw_ratios(axes[1, 1], "Prop. 17: weight w, threshold moved by sigma", "w", w, "LC Prop. 17", changes)
    certificate(axes[1, 2])
    axes[0, 0].legend(fontsize=7)
    figure.savefig(path, dpi=130)


def certificate(ax: plt.Axes) -> None:
    """Certified and true radius of a univariate network (Prop. 6)."""
    model = network(1, 2, 1, weights=[torch.tensor([[1.0], [-1.0]]), torch.tensor([[-2.0, -2.0]])])
    first, last = model[0], model[2]
    assert isinstance(first, nn.Linear) and isinstance(last, nn.Linear)
    first.bias.data, last.bias.data = torch.full((2,), -1.5).double(), torch.ones(1).double()
    data = torch.randn(4000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = torch.linspace(-3, 3, 241).double()[:, None]
    found = rs.univariate_certificate(model, x, density=np.histogram(data.numpy(), bins=40, density=True))
    print(f"univariate certificate: tightness {found.tightness:.3f}, TV {found.total_variation:.3f}")
    ax.plot(found.points, model(x).detach().numpy(), color="0.6", lw=1, label="N(x)")
    ax.plot(found.points, found.distance, color="black", lw=1.2, label="distance to the other sign")
    ax.plot(found.points, found.certified, color=VALID, lw=1.8, ls="--", label="certified by Prop. 6")
    ax.axhline(0, color="black", lw=0.6)
    ax.set(xlabel="x", ylabel="radius")
    ax.set_title("Prop. 6: normal data, N = 1 - 2 relu(|x| - 1.5)", fontsize=9)
    ax.tick_params(labelsize=7)
    ax.legend(fontsize=7)


def main() -> None:
    torch.manual_seed(0)
    found, cost = trained_on_digits(300)
    figure_of(plots.bounds(found)).savefig(HERE / "what-holds-mnist.png", dpi=130)
    counterexamples(HERE / "what-holds-counterexamples.png")
    print(f"representation cost {cost.cost:.2f}, norm {cost.norm:.2f}, imbalance {cost.imbalance:.2f}")
    page = HERE / "what-holds.md"
    marked = re.compile(r"(<!-- table -->\n).*?(<!-- end -->)", re.DOTALL)
    page.write_text(marked.sub(lambda m: f"{m[1]}{table(found)}\n{m[2]}", page.read_text()))


if __name__ == "__main__":
    main()
