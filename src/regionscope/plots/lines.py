"""A network along a line."""

from matplotlib.axes import Axes

from regionscope.geometry.line_cells import LineCells
from regionscope.plots.style import (
    DASHES,
    MARKERS,
    add_legend,
    layer_colours,
    layer_handles,
    marked_places,
    new_axes,
    thin,
)
from regionscope.tables import how_many

NAMED = 10  # outputs in a legend
RUG = 0.12  # of the height, for the marks of breakpoints


def line(cells: LineCells, ax: Axes | None = None, *, output: int | None = None) -> Axes:
    """The outputs of a network along a line, and below them a mark for every breakpoint, one row a layer (HR Fig. 4).

    `output` is the number of the only one to draw.
    """
    values = cells.corner_outputs
    chosen = range(values.shape[1]) if output is None else [output]
    layers = max((site.layer for site in cells.sites), default=0)
    ax = ax or new_axes(0.5, entries=layers + len(chosen), below=True)
    places = cells.corners
    for k in chosen:
        again, dashes = divmod(k, len(DASHES))  # what repeats dashes has marks
        marker = MARKERS[(again - 1) % len(MARKERS)] if again else None
        ax.plot(
            places, values[:, k], color=f"C{k % 10}", ls=DASHES[dashes], marker=marker, markevery=marked_places(places),
            label=f"output {k}",
        )  # fmt: skip
    low, high = ax.get_ylim()
    ax.set_ylim(low - RUG / (1 - RUG) * (high - low), high)
    for k, colour in enumerate(layer_colours(layers)):
        top = RUG * (1 - k / layers)
        ax.vlines(
            cells.breakpoints[cells.layers == k + 1], top - 0.9 * RUG / layers, top, colors=[colour], lw=2 * thin(),
            transform=ax.get_xaxis_transform(),
        )  # fmt: skip
    ax.set(xlim=(0, 1), xlabel="position along the line", ylabel="output", title=how_many(len(cells), "linear region"))
    if len(chosen) > NAMED:
        ax.set_title(f"{ax.get_title()}, {len(chosen)} outputs\n(beyond {NAMED} they are not named)")
    outputs = ax.get_lines() if 1 < len(chosen) <= NAMED else []
    if handles := [*outputs, *layer_handles(layers)]:
        add_legend(ax, handles, below=True)
    return ax
