"""What the figures of experiments share: panels of curves with bands over seeds, a graph over its regions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regionscope.experiments.findings import Curve
from regionscope.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.75  # inches, two columns


def panels(columns: int, rows: int = 1, *, height: float = 2.4, sharey: bool = False) -> "tuple[Figure, list[Axes]]":
    """A figure with so many axes, row after row; with `sharey` those of a row have one scale."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        rows, columns, figsize=(WIDTH, rows * height), layout="constrained", squeeze=False,
        sharey="row" if sharey else False,
    )  # fmt: skip
    return figure, list(axes.ravel())


def draw_curves(
    ax: "Axes",
    curves: Mapping[str, Curve],
    *,
    ylabel: str,
    xlabel: str = "training step",
    from_zero: bool = False,
    legend: bool = True,
) -> None:
    """The mean of each over its seeds, with a band of ± one standard error; a legend if there are several."""
    from regionscope.plots.curves import curve_line, set_log_time
    from regionscope.plots.style import curve_styles

    styles = curve_styles(curves)
    for name, curve in curves.items():
        curve_line(curve.x, curve.mean, curve.stderr, name, styles[name], ax)
    set_log_time(ax, next(iter(curves.values())).x)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if from_zero:
        ax.set_ylim(0, 1.05 * ax.get_ylim()[1], auto=True)  # shared axes go on growing with later panels
    if legend and len(curves) > 1:
        ax.legend(frameon=False, fontsize="small")


def draw_graph(polygons: Sequence[Floats], *, xlabel: str, ylabel: str) -> "Figure":
    """Regions of two inputs in random colours, and beside them the function over them; corners are (x, y, value)."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import PolyCollection
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

    figure = plt.figure(figsize=(WIDTH, 3.1), layout="constrained")
    flat = figure.add_subplot(1, 2, 1, aspect="equal")
    graph: Any = figure.add_subplot(1, 2, 2, projection="3d")  # matplotlib has no types for this
    colours = np.random.default_rng(1).uniform(0.45, 1.0, (len(polygons), 3))
    style: dict[str, Any] = {"facecolor": colours, "edgecolor": "0.25"}
    flat.add_collection(PolyCollection([corners[:, :2] for corners in polygons], lw=0.25, **style))
    most = max(map(len, polygons))  # corners: matplotlib would fill up fewer with whatever memory holds
    filled = [np.pad(corners, ((0, most - len(corners)), (0, 0)), mode="edge") for corners in polygons]
    graph.add_collection3d(Poly3DCollection(filled, lw=0.15, **style))
    every = np.concatenate(polygons)
    (left, bottom, low), (right, top, high) = every.min(axis=0), every.max(axis=0)
    flat.set(xlim=(left, right), ylim=(bottom, top), xlabel=xlabel, ylabel=ylabel, title=f"{len(polygons):,} regions")
    graph.set(xlim=(left, right), ylim=(bottom, top), zlim=(low, high), title="the function over them")
    graph.set_box_aspect(None, zoom=1.2)
    graph.tick_params(labelsize="small", pad=-3)
    return figure
