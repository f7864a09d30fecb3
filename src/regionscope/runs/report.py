"""What a run shows, as a table, pictures and a page to read."""

import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from regionscope.disk import make_folder
from regionscope.files import write_figure, write_text
from regionscope.results import SMOOTH
from regionscope.runs.run import SIGNAL, SIGNAL_COLUMN, Run
from regionscope.tables import how_many, some_of, text_table

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

ACCURACIES = ("train_accuracy", "test_accuracy")
LINES = 14
PLANES = 6
STEPS = 10  # that are named of those at which one thing failed
REASON = 200  # characters
WIDTH = 8.0  # inches


def summary(run: Run) -> str:
    """Some of the recorded steps, evenly chosen, with the means at the training points; what is left out is said."""
    rows = run.rows()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    probes = list(dict.fromkeys(probe for probe, _ in run.places))
    probe = "train" if "train" in probes else next(iter(probes), "")
    heads: dict[str, str] = {n: n.replace("_", " ") for n in ("step", "loss", *ACCURACIES) if n in columns}
    heads |= {f"{probe}/{measure}": _head(run, measure) for place, measure in run.places if place == probe}
    heads |= {f"planes/{plane}": f"cells on {plane}" for row in rows for plane in run.read(row["step"]).planes}
    chosen = some_of(len(rows), LINES)
    table = text_table([list(heads.values()), *[[_as_text(rows[i].get(name)) for name in heads] for i in chosen]])
    return "\n".join([table, "", *_notes(run, len(chosen), len(rows), probe, [p for p in probes if p != probe])])


def _notes(run: Run, shown: int, recorded: int, probe: str, others: list[str]) -> list[str]:
    """What the table is of, with which options it was measured, and what it leaves out."""
    said = [f"step {step} is missing: {why}" for step, why in run.missing.items()]
    said += [SMOOTH] if run.piecewise_linear is False else []
    said += [] if not probe else [f"measures are means at the probe {probe!r}"]
    if others:
        said[-1] += f"; those at {', '.join(others)} are left out"
    told = [measure for place, measure in run.places if place == probe and run.name_and_options(measure)[1]]
    said += [f"- {run.label(measure)}" for measure in told]
    if shown < recorded:
        said.append(f"{shown} of {recorded} records, evenly chosen; {recorded - shown} are left out")
    if others or shown < recorded:
        said.append(f"all numbers: regionscope export {run.path}")
    return said


def _head(run: Run, measure: str) -> str:
    return measure.replace("_", " ") + (", sum" if run.is_sum(measure) else "")


def _as_text(value: Any) -> str:
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.4g}"


def reason(run: Run, what: str, step: int) -> str:
    """Why something could not be measured at a step, in one line."""
    return shorten(run.read(step).errors[what], REASON, placeholder=" …")


def _failures(run: Run) -> list[str]:
    """What could not be measured, at which steps and why: one line a reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for what, steps in run.failures.items():
        for step in steps:
            found.setdefault((what, reason(run, what, step)), []).append(str(step))
    return [
        f"{what} at step{'s' if len(steps) > 1 else ''} {', '.join(steps[:STEPS])}"
        + (f" and {len(steps) - STEPS} more" if len(steps) > STEPS else "")
        + f": {why}"
        for (what, why), steps in found.items()
    ]


def write_report(run: Run, folder: str | Path, *, pictures: Sequence[str] = ("png",)) -> list[Path]:
    """Write report.md (a table, phases, what failed, how it was made), curves.png; planes.png if planes were recorded.

    `pictures` are the kinds of files for the pictures: "png", "svg", "pdf", or several; the page shows the first.
    """
    import matplotlib.pyplot as plt

    folder = Path(folder)
    if not run.rows():
        raise ValueError(f"nothing was recorded in {run.path} yet")
    make_folder(folder)
    found = run.phases() if run.has_phases() else None
    drawn = {"curves": _curves_figure(run)}
    if any(run.planes(step) for step in run.steps):
        drawn["planes"] = _planes_figure(run)
    files = [folder / f"{name}.{kind}" for name in drawn for kind in pictures]
    for file in files:
        write_figure(drawn[file.stem], file, dpi=150)
    for figure in drawn.values():
        plt.close(figure)
    files.append(folder / "report.md")
    shown = "\n\n".join(f"![{name}]({name}.{pictures[0]})" for name in drawn)
    about = "\n".join(f"- {name}: {value}" for name, value in (run.versions | run.config).items())
    failed = "\n".join(_failures(run)) or "nothing"
    write_text(
        files[-1],
        f"# {run.path.name}\n\n{shown}\n\n## Phases of {SIGNAL_COLUMN}\n\n```\n{found or 'not recorded'}\n```\n\n"
        f"## Records\n\n```\n{summary(run)}\n```\n\n"
        f"## What could not be measured\n\n```\n{failed}\n```\n\n## How it was made\n\n{about}\n",
    )
    return files


def _curves_figure(run: Run) -> "Figure":
    """One panel a measure, one curve a probe; then the loss, and all accuracies; phases in each, one legend for all."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    from regionscope.plots.curves import curve, mark_phases, recorded
    from regionscope.plots.style import add_shared_legend

    rows = run.rows()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    measures = list(dict.fromkeys(measure for _, measure in run.places if not measure.endswith("accuracy")))
    measures += ["loss"] if "loss" in columns else []
    scores: dict[str, str] = {name: name.replace("_", " ") for name in ACCURACIES if name in columns}
    robust = [(probe, measure) for probe, measure in run.places if measure.endswith("accuracy")]
    scores |= {f"{probe}/{measure}": f"{probe}, {measure.replace('_', ' ')}" for probe, measure in robust}
    count = max(1, len(measures) + bool(scores))
    figure = plt.figure(figsize=(WIDTH, 2.0 * count + 0.6), layout="constrained")
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    for ax, measure in zip(axes, measures, strict=False):
        recorded(run, measure, ax)
    if scores:
        accuracies: dict[str, ArrayLike] = {
            label: [np.nan if row.get(name) is None else row[name] for row in rows] for name, label in scores.items()
        }
        errors: dict[str, ArrayLike] = {
            label: [np.nan if (error := row.get(f"{name}/stderr")) is None else error for row in rows]
            for name, label in scores.items()
            if f"{name}/stderr" in columns
        }
        curve([row["step"] for row in rows], accuracies, axes[-1], stderr=errors, label=_accuracy_label(run))
    found = run.phases() if run.has_phases() else None
    for ax, shown in zip_longest(axes, measures):
        if found is not None and shown != SIGNAL[1]:  # which has them already
            mark_phases(found, ax, named=False)
        if legend := ax.get_legend():
            legend.remove()
        ax.set_xlabel("")
    axes[-1].set_xlabel("training step")
    figure.align_ylabels()
    entries: dict[str, Artist] = {str(line.get_label()): line for ax in axes for line in ax.lines}
    entries["± one standard error over points"] = Patch(color="0.5", alpha=0.3, lw=0)
    add_shared_legend(figure, [*entries.values()], [*entries], columns=3)
    return figure


def _place_in_legend(entry: str) -> tuple[bool, bool, int, str]:
    """Layers by number, then the decision boundary, then classes by number."""
    number = re.search(r"\d+", entry)
    return entry.startswith("class"), entry.startswith("decision"), int(number[0]) if number else 0, entry


def _accuracy_label(run: Run) -> str:
    """With what it is robust to, if that was asked for."""
    _, robust = run.name_and_options("robust_accuracy")
    return "\n".join(["accuracy", f"robust: {robust[0]}", ", ".join(robust[1:])]) if robust else "accuracy"


def _planes_figure(run: Run) -> "Figure":
    """The exact regions on the first plane at some of the steps, and the data that it passes through."""
    import matplotlib.pyplot as plt

    from regionscope.plots.planes import regions
    from regionscope.plots.style import add_shared_legend

    name = next(names[0] for step in reversed(run.steps) if (names := run.planes(step)))
    recorded = [step for step in run.steps if name in run.planes(step)]
    chosen = sorted({recorded[round(i)] for i in np.linspace(0, len(recorded) - 1, min(PLANES, len(recorded)))})
    across = min(3, len(chosen))
    down = -(-len(chosen) // across)
    figure = plt.figure(figsize=(WIDTH * across / 3, WIDTH / 3 * 1.1 * down + 0.4), layout="constrained")
    entries: dict[str, Artist] = {}
    for k, step in enumerate(chosen):
        cells = run.plane(step, name)
        ax = regions(cells, figure.add_subplot(down, across, k + 1))
        ax.set(title=f"step {step:,}: {how_many(len(cells), 'region')}", xticks=[], yticks=[], xlabel="", ylabel="")
        if legend := ax.get_legend():  # one for all of them
            pairs = zip(legend.get_texts(), legend.legend_handles, strict=True)
            entries |= {text.get_text(): handle for text, handle in pairs if handle is not None}
            legend.remove()
    if entries:
        names = sorted(entries, key=_place_in_legend)
        add_shared_legend(figure, [entries[entry] for entry in names], names, columns=2 * across)
    figure.draw_without_rendering()  # only then is it known where titles above squares are, and room is made for them
    return figure
