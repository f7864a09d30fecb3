"""What a run shows, as a table, pictures and a page to read."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from regionscope import plots
from regionscope.network import aligned
from regionscope.runs import SIGNAL, Run
from regionscope.segmentation import Phases

PLANES = 6


def table(run: Run, lines: int = 14) -> str:
    """Some of the recorded steps, evenly chosen, with the means at the training points."""
    rows = run.rows()
    names = [n for n in dict.fromkeys(n for row in rows for n in row) if n.startswith("train/") and n.count("/") == 1]
    names = ["step", *(n for n in ("loss", "train_accuracy", "test_accuracy") if n in rows[0]), *names]
    names += [n for n in rows[0] if n.startswith("planes/")]
    chosen = sorted({round(i) for i in np.linspace(0, len(rows) - 1, min(lines, len(rows)))})
    head = [n.removeprefix("train/").replace("_", " ").replace("planes/", "cells on ") for n in names]
    return aligned([head, *[[shown(rows[i].get(name)) for name in names] for i in chosen]])


def shown(value: Any) -> str:
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.4g}"


def write_report(run: Run, folder: str | Path) -> list[Path]:
    """Write report.md with a table, the phases and how it was made; curves.png; planes.png if planes were recorded."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    found = run.phases() if len(run.rows_with(SIGNAL)) >= 3 else None
    files = [folder / "curves.png"]
    draw_curves(run, found).savefig(files[0], dpi=130)
    if run.planes(run.steps[-1]):
        files.append(folder / "planes.png")
        draw_planes(run).savefig(files[1], dpi=130)
    plt.close("all")
    files.append(folder / "report.md")
    pictures = "\n\n".join(f"![{file.stem}]({file.name})" for file in files[:-1])
    about = "\n".join(f"- {name}: {value}" for name, value in (run.versions | run.config).items())
    files[-1].write_text(
        f"# {run.path.name}\n\n{pictures}\n\n## Phases of {SIGNAL}\n\n```\n{found or 'not recorded'}\n```\n\n"
        f"## Records\n\n```\n{table(run)}\n```\n\n## How it was made\n\n{about}\n"
    )
    return files


def draw_curves(run: Run, found: Phases | None) -> Any:
    """One panel a measure, one curve a probe; accuracies together in the last."""
    rows = run.rows()
    columns = dict.fromkeys(name for row in rows for name in row)
    measures = list(
        dict.fromkeys(n.split("/")[1] for n in columns if n.count("/") == 1 and n.split("/")[0] != "planes")
    )
    scores = [m for m in measures if m.endswith("accuracy")]
    panels = [m for m in measures if m not in scores]
    figure = plt.figure(figsize=(8, 2.5 * (len(panels) + 1)), layout="constrained")
    axes = figure.subplots(len(panels) + 1, 1, sharex=True)
    steps = [row["step"] for row in rows]

    def column(name: str) -> list[float]:
        return [np.nan if row.get(name) is None else row[name] for row in rows]

    for ax, measure in zip(axes, panels, strict=False):
        probes = [n.split("/")[0] for n in columns if n.count("/") == 1 and n.endswith(f"/{measure}")]
        plots.curve(
            steps, {probe: column(f"{probe}/{measure}") for probe in probes}, ax,
            stderr={probe: column(f"{probe}/{measure}/stderr") for probe in probes},
            phases=found if measure == SIGNAL.split("/")[1] else None, label=measure.replace("_", " "),
        )  # fmt: skip
        ax.set_xlabel("")
    accuracies: dict[str, list[float]] = {n: column(n) for n in ("train_accuracy", "test_accuracy") if n in columns}
    accuracies |= {n: column(n) for n in columns if n.count("/") == 1 and n.split("/")[1] in scores}
    names = {name: name.replace("_", " ").replace("/", ", ") for name in accuracies}
    plots.curve(steps, {names[name]: values for name, values in accuracies.items()}, axes[-1], label="accuracy")
    return figure


def draw_planes(run: Run) -> Any:
    """The exact regions on the first plane at some of the steps."""
    name = run.planes(run.steps[-1])[0]
    recorded = [step for step in run.steps if name in run.planes(step)]
    chosen = sorted({recorded[round(i)] for i in np.linspace(0, len(recorded) - 1, min(PLANES, len(recorded)))})
    across = min(3, len(chosen))
    down = -(-len(chosen) // across)
    figure = plt.figure(figsize=(3.6 * across, 3.9 * down), layout="constrained")
    for k, step in enumerate(chosen):
        cells = run.plane(step, name)
        ax = plots.regions(cells, figure.add_subplot(down, across, k + 1), colour="pattern")
        ax.set(title=f"step {step:,}: {len(cells):,} regions", xticks=[], yticks=[], xlabel="", ylabel="")
    return figure
