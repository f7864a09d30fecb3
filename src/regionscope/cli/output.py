"""What a command prints, and what it writes to, checked before the work."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regionscope.files import plain, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURES = (".png", ".svg", ".pdf")
TABLES = (".json", ".csv", ".parquet")


@dataclass(frozen=True)
class Output:
    """How a command speaks.

    Parameters
    ----------
    json
        Print the results as JSON, and nothing else.
    quiet
        Print nothing but errors, and JSON if it is asked for.
    """

    json: bool = False
    quiet: bool = False

    @property
    def bar(self) -> bool:
        """Whether bars are drawn."""
        return not self.quiet

    def remark(self, text: str) -> None:
        """What a user should know; beside JSON it goes where errors go."""
        if not self.quiet:
            print(text, file=sys.stderr if self.json else sys.stdout)

    def result(self, text: str, data: Any) -> None:
        """What a command found: in words, or as JSON."""
        if self.json:
            print(json.dumps(plain(data), indent=1, allow_nan=False))
        elif not self.quiet:
            print(text)


SPOKEN = Output()


def check_file(option: str, path: Path | None, kinds: Sequence[str]) -> None:
    """An error if a file cannot be written there: one of these kinds, into a folder that is there."""
    if path is None:
        return
    if path.suffix not in kinds:
        raise ValueError(
            f"{option} must end in {' or '.join(filter(None, [', '.join(kinds[:-1]), kinds[-1]]))}, got {path}"
        )
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{option} {path} cannot be written: there is no folder {path.parent}")


def save_picture(ax: "Axes", path: Path) -> None:
    """Write the figure that axes are in, and let go of it."""
    import matplotlib.pyplot as plt

    from regionscope.plots.style import figure_of

    figure = figure_of(ax)
    write_figure(figure, path, dpi=200)
    plt.close(figure)
