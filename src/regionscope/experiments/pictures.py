"""What the figures of experiments share: panels of curves with bands over seeds, in the width of two columns."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from regionscope.experiments.findings import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.75  # inches


def panels(columns: int, rows: int = 1, *, height: float = 2.4, sharey: bool = False) -> "tuple[Figure, list[Axes]]":
    """A figure with so many axes, row after row."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        rows, columns, figsize=(WIDTH, rows * height), layout="constrained", squeeze=False, sharey=sharey
    )
    return figure, list(axes.ravel())


def draw_curves(
    ax: "Axes", curves: Mapping[str, Curve], *, ylabel: str, xlabel: str = "training step", from_zero: bool = False
) -> None:
    """The mean of each over its seeds, with a band of ± one standard error."""
    from regionscope.plots.curves import curve_line, set_log_time
    from regionscope.plots.style import curve_styles

    styles = curve_styles(curves)
    for name, curve in curves.items():
        curve_line(curve.x, curve.mean, curve.stderr, name, styles[name], ax)
    set_log_time(ax, next(iter(curves.values())).x)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if from_zero:
        ax.set_ylim(0, 1.05 * ax.get_ylim()[1])
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize="small")
