"""How pictures look. Sizes and fonts follow matplotlib's settings, so that a style changes all of them together."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill, wrap
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, hsv_to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike

from regionscope.types import Floats

LAYERS = LinearSegmentedColormap.from_list("layers", ["#3b0764", "#1d5fc4", "#00875f", "#b8740a"])
COLUMNS = {1: 3.25, 2: 6.75}  # inches
BOUNDARY = "#d62728"  # of decisions, and what is violated
HUES = {"train": "#7b3fa0", "test": "#e66f00", "random": "#2a7fc1", "uniform": "#2a7fc1"}  # those of PD
OTHERS = ("#1b8a6b", "#b8437f", "#555555", "#8c6d1f", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LOOKS = len(DASHES) * len(MARKERS)  # pairs of dashes and marks: the two lengths have no common divisor
MARKED = 12  # marks along a curve
LEGEND_LAYERS = 8  # of more layers, five are named
NARROW = 5.0  # inches
AXES = 0.775  # of a figure's width, before there is a layout
LETTERS = 24  # in a line of a legend
LETTERS_ACROSS = 22  # of a legend below narrow axes: so many have the width of these
SHORT = 20  # of names beside long ones, in a narrow figure
GOLDEN = (5**0.5 - 1) / 2  # of the circle of hues, from one class to the next: those before are far
LINE = 30  # letters of a label beside the axes, at most


@contextmanager
def paper(columns: int = 1) -> Iterator[None]:
    """Pictures drawn and saved inside fit a paper: one column wide (3.25 in) or two (6.75 in), 8 pt, fonts embedded.

    >>> with paper():
    ...     tuple(plt.rcParams["figure.figsize"])[0], plt.rcParams["font.size"], plt.rcParams["pdf.fonttype"]
    (3.25, 8.0, 42)
    """
    if columns not in COLUMNS:
        raise ValueError(f"columns must be 1 or 2, got {columns}")
    width = COLUMNS[columns]
    with plt.rc_context({
        "figure.figsize": (width, 0.62 * width), "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8,
        "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7, "legend.title_fontsize": 7,
        "lines.linewidth": 1.0, "lines.markersize": 3.0, "axes.linewidth": 0.6, "xtick.major.width": 0.6,
        "ytick.major.width": 0.6, "xtick.minor.width": 0.4, "ytick.minor.width": 0.4, "legend.handlelength": 2.2,
        "legend.columnspacing": 1.2, "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none",
        "savefig.dpi": 300,
    }):  # fmt: skip
        yield


def new_figure(height: float, entries: int = 0, *, below: bool | None = None) -> Figure:
    """As wide as matplotlib is set to, `height` times as high; higher for a legend of so many entries below.

    `below` says whether it is, as in `add_legend`.
    """
    width, size = plt.rcParams["figure.figsize"][0], plt.rcParams["font.size"] / 72
    rows = -(-entries // _legend_columns(AXES * width)) if (width < NARROW if below is None else below) else 0
    return plt.figure(figsize=(width, height * width + 1.7 * size * rows), layout="constrained")


def new_axes(height: float, entries: int = 0, *, below: bool | None = None) -> Axes:
    """Those of a `new_figure`."""
    return new_figure(height, entries, below=below).add_subplot()


def figure_of(ax: Axes) -> Figure:
    """The whole figure that axes are in."""
    figure: Figure = ax.figure.figure if isinstance(ax.figure, SubFigure) else ax.figure
    return figure


def thin() -> float:
    """The width of lines that are many."""
    return 0.4 * float(plt.rcParams["lines.linewidth"])


def paled(colours: ArrayLike, white: float = 0.6) -> Floats:
    """Colours (n, 3) mixed with that much white: areas under lines stay quiet."""
    return np.asarray(white + (1 - white) * np.asarray(colours, float)[..., :3])


def pale_map(name: str) -> Colormap:
    """A perceptually uniform map, paled."""
    return ListedColormap(paled(plt.get_cmap(name)(np.linspace(0, 1, 256)), 0.4))


def class_colours(count: int) -> Floats:
    """A pale colour for each class, (count, 3); no two are the same."""
    k = np.arange(count)
    if count <= 20:
        return paled(plt.get_cmap("tab10" if count <= 10 else "tab20")(k))
    shades = np.array([(1.0, 0.9), (0.6, 0.55), (0.75, 1.0)])[k % 3]  # saturation and value
    return paled(hsv_to_rgb(np.column_stack([k * GOLDEN % 1, shades])), 0.4)


def layer_colours(layers: int) -> Floats:
    """A dark colour for each layer, (layers, 3): from purple for the first by blue and green to ochre for the last."""
    return np.asarray(LAYERS(np.linspace(0, 1, max(1, layers))))[:layers, :3]


def layer_handles(layers: int, drawn: ArrayLike | None = None) -> list[Line2D]:
    """What a legend shows for those of so many layers that are `drawn`, numbers from 1; of many, for some of them."""
    named = np.arange(1, layers + 1) if drawn is None else np.asarray(drawn, int)
    if len(named) > LEGEND_LAYERS:
        named = named[np.linspace(0, len(named) - 1, 5).round().astype(int)]
    colours = layer_colours(layers)
    return [Line2D([], [], color=colours[k - 1], label=f"layer {k}") for k in named]


def curve_styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """How to draw curves by name: the hue of the probe they name; no two of 35 have the same dashes and marks."""
    styles: dict[str, dict[str, Any]] = {}
    taken: set[int] = set()
    unnamed = iter(OTHERS * len(HUES))
    for name in names:
        words = set(re.findall("[a-z]+", name.lower()))
        probe = next((probe for probe in HUES if probe in words), None)
        first = list(HUES).index(probe) if probe else 0
        look = next((k for k in (*range(first, LOOKS), *range(first)) if k not in taken), len(taken))
        taken.add(look)
        styles[name] = {
            "color": HUES[probe] if probe else next(unnamed, "black"), "linestyle": DASHES[look % len(DASHES)],
            "marker": MARKERS[look % len(MARKERS)], "markerfacecolor": "white" if look >= len(HUES) else None,
        }  # fmt: skip
    return styles


def marked_places(values: Floats) -> slice:
    """Which of the values of a curve have a mark: about a dozen."""
    return slice(None, None, max(1, -(-len(values) // MARKED)))


def in_lines(name: str, options: Sequence[str], ax: Axes, *, below: bool = False, size: float | None = None) -> str:
    """The options of a measure below its name, in lines that the axes have room for beside them, or below.

    In letters of a size, or the usual.
    """
    width, height = figure_of(ax).get_size_inches() * ax.get_position().size
    room = width if below else min(height, 0.4 * plt.rcParams["figure.figsize"][0])
    letters = int(room * 72 / (0.55 * (size or plt.rcParams["font.size"])))
    letters = letters if below else min(LINE, letters)
    whole = ", ".join(option.replace(" ", "\xa0") for option in options)  # an option stays in one line
    name = re.sub(rf"\([^()]{{1,{letters}}}\)", lambda aside: aside[0].replace(" ", "\xa0"), name)
    return "\n".join([*wrap(name, letters), *wrap(whole, letters, break_long_words=False)]).replace("\xa0", " ")


def is_narrow(ax: Axes) -> bool:
    """Whether a legend beside the axes would leave them too little of the figure."""
    return bool(figure_of(ax).get_figwidth() < NARROW)


def add_legend(ax: Axes, handles: Sequence[Artist], *, below: bool | None = None, title: str | None = None) -> None:
    """Beside the axes, or below them in as many columns as there is room for, as it is in a narrow figure."""
    names = [str(handle.get_label()) for handle in handles]
    beside_long = is_narrow(ax) and any(len(name) > LETTERS for name in names)
    names = [_in_legend(name, SHORT if beside_long else LETTERS) for name in names]
    if not (is_narrow(ax) if below is None else below):
        ax.legend(handles, names, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, title=title)
        return
    if figure_of(ax).get_layout_engine() is None and len(figure_of(ax).axes) > 1:
        figure_of(ax).set_layout_engine("compressed")  # or it would lie on other axes, or outside the figure
    width = figure_of(ax).get_figwidth() * ax.get_position().width
    usual = FontProperties(size=plt.rcParams["legend.fontsize"]).get_size_in_points()
    size = min(usual, width * 72 / LETTERS_ACROSS)
    columns = _legend_columns(width, size)
    room = ScaledTranslation(0, -4 * plt.rcParams["font.size"] / 72, ax.figure.dpi_scale_trans)  # for ticks and a label
    ax.legend(
        handles, names, loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=ax.transAxes + room,
        ncols=min(len(handles), columns) or 1, frameon=False, borderaxespad=0, fontsize=size, title_fontsize=size,
        title=None if title is None else in_lines(title, (), ax, below=True, size=size),
    )  # fmt: skip


def add_shared_legend(
    figure: Figure, handles: Sequence[Artist], labels: Sequence[str] | None = None, *, columns: int | None = None,
    above: bool = False,
) -> None:  # fmt: skip
    """One for all panels of a figure, below them or `above`: in so many columns, or all entries in one row."""
    names = [str(handle.get_label()) for handle in handles] if labels is None else labels
    room = figure.get_figwidth() * 72 / (columns or len(names) or 1) - 3.5 * plt.rcParams["font.size"]  # beside a line
    letters = max(LETTERS, int(room / (0.46 * plt.rcParams["font.size"])))
    figure.legend(
        handles, [_in_legend(name, letters) for name in names], ncols=columns or len(names), frameon=False,
        loc="outside upper center" if above else "outside lower center", fontsize="small",
    )  # fmt: skip


def _in_legend(name: str, letters: int = LETTERS) -> str:
    """A name in lines, so that a long one leaves the axes their room; a path breaks behind its slashes."""
    if "\n" in name:
        return name
    parts = name.replace("/", "/\v")  # which is a space to what makes lines of it
    lines = fill(parts, letters, break_long_words="/" in name, break_on_hyphens=False, replace_whitespace=False)
    return lines.replace("\v", "")


def _legend_columns(width: float, size: float | None = None) -> int:
    """How many of a legend in letters of a size, or the usual, fit side by side into so many inches."""
    return max(2, int(width / (9.5 * (size or plt.rcParams["font.size"]) / 72)))
