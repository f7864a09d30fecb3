"""Curves that were measured while a network trained."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, SymmetricalLogLocator
from numpy.typing import ArrayLike

from regionscope.plots.style import add_legend, curve_styles, in_lines, is_narrow, marked_places, new_axes, new_figure
from regionscope.runs.bundles import RunBundle
from regionscope.runs.phases import Phases, step_in_words
from regionscope.runs.run import SIGNAL, SIGNAL_COLUMN, Run
from regionscope.types import Floats

PHASES = {"descent": "0.955", "ascent": "0.88"}  # greys: hues belong to probes
MARKS = {"memorised": "--", "generalised": "-.", "peak": ":"}
ROOM = 0.02  # of the axes, before the first step and after the last
LABEL = 0.28  # inches that a label of time takes
Curves = Mapping[str, ArrayLike]


def curve(
    steps: ArrayLike,
    values: ArrayLike | Curves,
    ax: Axes | None = None,
    *,
    stderr: ArrayLike | Curves | None = None,
    phases: Phases | None = None,
    label: str = "value",
) -> Axes:
    """Measured curves over training steps, logarithmic after step 0 if there are many, with bands of ± standard errors.

    `values` is one curve or {name: curve}, `stderr` likewise. Curves of training points are purple, of test points
    orange, of random ones blue (as in PD), and all differ in dashes and marks. `phases` (see `rs.phases`) shades
    descents light and ascents dark, named above, and draws lines where the network had memorised, generalised, and at
    the peak.
    """
    curves = values if isinstance(values, Mapping) else {label: values}
    errors = stderr if isinstance(stderr, Mapping) else {} if stderr is None else {label: stderr}
    if unknown := set(errors) - set(curves):
        raise ValueError(f"stderr must name curves of {sorted(curves)}, got {sorted(unknown)}; use the same names")
    ax = ax or new_axes(0.45, entries=len(curves) + len(MARKS))
    _draw_curves(np.asarray(steps, float), curves, errors, ax)
    ax.set(xlabel="training step", ylabel=label if "\n" in label else in_lines(label, (), ax))
    if phases is not None:
        mark_phases(phases, ax)
    if len(ax.get_legend_handles_labels()[1]) > 1:
        add_legend(ax, ax.get_legend_handles_labels()[0])
    return ax


def training(
    steps: ArrayLike,
    values: ArrayLike | Curves,
    accuracies: Curves,
    axes: Sequence[Axes] | None = None,
    *,
    stderr: ArrayLike | Curves | None = None,
    phases: Phases | None = None,
    label: str = "value",
) -> Sequence[Axes]:
    """`curve` above the accuracies {name: accuracy} at the same steps, with the same phases; returns both axes."""
    if axes is None:
        entries = len(accuracies) + len(MARKS)
        axes = new_figure(0.75, entries).subplots(2, 1, sharex=True, height_ratios=[3, 2])
    curve(steps, values, axes[0], stderr=stderr, phases=phases, label=label)
    axes[0].set_xlabel("")
    _draw_curves(np.asarray(steps, float), accuracies, {}, axes[1])
    axes[1].set(ylim=(-0.03, 1.05), xlabel="training step", ylabel="accuracy")
    if phases is not None:
        mark_phases(phases, axes[1], named=False)
    if shared := axes[0].get_legend():
        shared.remove()
    both = {line.get_label(): line for ax in axes for line in ax.lines}  # curves of one name look alike in both
    add_legend(axes[1 if is_narrow(axes[0]) else 0], list(both.values()))
    return axes


def recorded(run: Run, what: str | None = None, ax: Axes | None = None) -> Axes:
    """What a run recorded: a measure at every probe, or one column such as "train/local_rank" or "loss".

    With phases if they are those of this measure. By default that is boundary crossings, or what was measured first.
    """
    rows = run.rows()
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "step"]
    measures = list(dict.fromkeys(measure for _, measure in run.places))
    what = what or next(iter([name for name in measures if name == SIGNAL[1]] or [*measures, *columns]), "")
    shown = {probe: f"{probe}/{measure}" for probe, measure in run.places if measure == what}
    shown = shown or ({what: what} if what in columns else {})
    if not shown:
        raise ValueError(f"{run.path} recorded no {what!r}; it has {', '.join([*measures, *columns]) or 'no records'}")

    def column(name: str) -> list[float]:
        return [np.nan if row.get(name) is None else row[name] for row in rows]

    errors = {probe: column(f"{name}/stderr") for probe, name in shown.items() if f"{name}/stderr" in columns}
    found = run.phases() if what in (SIGNAL[1], SIGNAL_COLUMN) and run.has_phases() else None
    curves = {probe: column(name) for probe, name in shown.items()}
    ax = ax or new_axes(0.45, entries=len(curves) + len(MARKS) + 1)
    label = in_lines(*run.name_and_options(what), ax)
    curve([row["step"] for row in rows], curves, ax, stderr=errors, phases=found, label=label)
    if errors:
        _add_legend_with_bands(ax, "points")
    return ax


def compared_runs(bundles: Sequence[RunBundle]) -> Axes:
    """A column of several runs over the steps, with bands of ± one standard error: over seeds where there are some."""
    ax = new_axes(0.45, entries=len(bundles) + 1)
    styles = curve_styles([bundle.name for bundle in bundles])
    for b in bundles:
        curve_line(np.array(b.steps, float), b.mean, b.stderr, b.name, styles[b.name], ax)
    set_log_time(ax, np.array(sorted({step for bundle in bundles for step in bundle.steps}), float))
    ax.set(xlabel="training step", ylabel=in_lines(bundles[0].label, bundles[0].options, ax))
    over = {"seeds" if len(bundle.paths) > 1 else "points" for bundle in bundles if bundle.stderr is not None}
    if over:
        _add_legend_with_bands(ax, " or ".join(sorted(over, reverse=True)))
    else:
        add_legend(ax, ax.get_legend_handles_labels()[0])
    return ax


def _add_legend_with_bands(ax: Axes, over: str) -> None:
    band = Patch(color="0.5", alpha=0.3, lw=0, label=f"± standard error\nover {over}")
    add_legend(ax, [*ax.get_legend_handles_labels()[0], band])


def _draw_curves(t: Floats, curves: Curves, errors: Curves, ax: Axes) -> None:
    styles = curve_styles(curves)
    for name, given in curves.items():
        error = np.asarray(errors[name], float) if name in errors else None
        curve_line(t, np.asarray(given, float), error, name, styles[name], ax)
    set_log_time(ax, t)


def curve_line(t: Floats, y: Floats, error: Floats | None, name: str, style: dict[str, Any], ax: Axes) -> None:
    ax.plot(t, y, label=name, zorder=3, markevery=marked_places(t), **style)
    if error is not None:
        ax.fill_between(t, y - error, y + error, color=style["color"], alpha=0.2, lw=0, zorder=2)


def set_log_time(ax: Axes, t: Floats) -> None:
    """A logarithmic axis of steps; if there is a step 0, it is linear up to the power of ten that comes next.

    It is linear as a whole if it would have no power of ten beyond that: few numbers would be at it.
    """
    first = t[0] if t[0] > 0 else 10 ** np.floor(np.log10(t[1])) if len(t) > 1 else 1.0
    if len(t) > 1 and t[-1] < 10 * first:
        ax.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    elif t[0] > 0:
        ax.set_xscale("log")
    elif len(t) > 1:
        decades = np.log10(t[-1] / first)
        ax.set_xscale("symlog", linthresh=first, linscale=max(0.5, 0.16 * decades))  # so far apart are their labels
        room = ax.get_window_extent().width / ax.figure.dpi / LABEL
        ticks = ax.xaxis.get_major_locator()
        assert isinstance(ticks, SymmetricalLogLocator)
        ticks.set_params(numticks=max(3, int(room)))
    if len(t) > 1:  # with room for marks, and lines, at both ends
        scale = ax.xaxis.get_transform()
        low, high = scale.transform(np.array([t[0], t[-1]]))
        ax.set_xlim(*scale.inverted().transform(np.array([low - ROOM * (high - low), high + ROOM * (high - low)])))


def mark_phases(phases: Phases, ax: Axes, *, named: bool = True) -> None:
    """Shade descents and ascents, with their names above if asked, and draw lines at memorisation and the like."""
    _shade_phases(phases, ax, named=named)
    _mark_times(phases, ax)


def _shade_phases(phases: Phases, ax: Axes, *, named: bool) -> None:
    size = float(plt.rcParams["font.size"])
    for name, segment in zip(phases.names, phases.segments, strict=True):
        ax.axvspan(segment.first, segment.last, color=PHASES[segment.kind], lw=0, zorder=0)
        low, high = ax.transData.transform([(segment.first, 0), (segment.last, 0)])[:, 0] * 72 / ax.figure.dpi
        if named and high - low > 2.5 * size:  # points
            middle = ax.transAxes.inverted().transform(((low + high) / 2 * ax.figure.dpi / 72, 0))[0]
            words = name.replace(" ", "\n") if high - low < 0.6 * size * len(name) else name
            ax.text(middle, 1.01, words, transform=ax.transAxes, ha="center", va="bottom", fontsize="small")


def _mark_times(phases: Phases, ax: Axes) -> None:
    for name, style in MARKS.items():
        step = getattr(phases, name)
        if step is not None:
            ax.axvline(step, color="0.2", ls=style, lw=1.0, label=f"{name}, step {step_in_words(step)}", zorder=1)
