"""What a command prints and says when it is stopped, and what it writes to, checked before the work."""

import json
import logging
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts

from regionscope.disk import check_writable
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
    verbose
        Say what is being done, and when.
    debug
        Show where in the code an error comes from, instead of one line.
    """

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    debug: bool = False

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise ValueError("give --quiet or --verbose, not both")

    @property
    def bar(self) -> bool:
        """Whether bars are drawn."""
        return not self.quiet

    def remark(self, text: str) -> None:
        """What a user should know; beside JSON it goes where errors go."""
        if not self.quiet:
            print(text, file=sys.stderr if self.json else sys.stdout)

    def warn(self, text: str) -> None:
        """What may go wrong; it goes where errors go."""
        if not self.quiet:
            print(f"regionscope: {text}", file=sys.stderr, flush=True)

    def result(self, text: str, data: Any) -> None:
        """What a command found: in words, or as JSON."""
        if self.json:
            print(json.dumps(plain(data), indent=1, allow_nan=False), flush=True)
        elif not self.quiet:
            print(text, flush=True)

    def hear_library(self) -> None:
        """Let what the library logs be read: warnings, with --verbose all of it, with --quiet errors alone."""
        log, handler = logging.getLogger("regionscope"), _BesideBars()
        handler.setFormatter(logging.Formatter("%(relativeCreated)7d ms  %(message)s" if self.verbose else None))
        log.setLevel(logging.ERROR if self.quiet else logging.INFO if self.verbose else logging.WARNING)
        log.handlers, log.propagate = [handler], False


SPOKEN = Output()
Spoken = Annotated[Output, cyclopts.Parameter(name="*", group="Output")]


class _BesideBars(logging.Handler):
    """Lines on standard error that leave bars whole."""

    def emit(self, record: logging.LogRecord) -> None:
        from regionscope.progress import tqdm

        tqdm.write(self.format(record), file=sys.stderr)


def command_line(*words: object) -> str:
    """What to type."""
    return shlex.join(["regionscope", *map(str, words)])


@contextmanager
def told_if_stopped(how: str, begun: Path | None = None) -> Iterator[None]:
    """Whoever stops the work is told how to go on, unless the file that shows that it was begun is missing."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stop:
        if begun is None or begun.exists():
            stop.add_note(how)  # which `main` prints
        raise


@contextmanager
def prints_aside() -> Iterator[None]:
    """Around a user's own code: what it prints goes where errors go, since JSON may be read from the other.

    That holds for all threads, so only the one that prints results may ask for it.
    """
    with redirect_stdout(sys.stderr):
        yield


def check_file(option: str, path: Path | None, kinds: Sequence[str]) -> None:
    """An error if a file cannot be written there: one of these kinds, into a folder that is there and takes files."""
    if path is None:
        return
    if path.suffix not in kinds:
        raise ValueError(
            f"{option} must end in {' or '.join(filter(None, [', '.join(kinds[:-1]), kinds[-1]]))}, got {path}"
        )
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ValueError(f"{option} {path} needs pyarrow: pip install 'regionscope[parquet]'")
    if path.is_dir():
        raise ValueError(f"{option} {path} cannot be written: it is a folder")
    if not path.parent.is_dir():
        raise ValueError(f"{option} {path} cannot be written: there is no folder {path.parent}")
    check_folder(option, path, path.parent)


def check_folder(what: str, path: Path, folder: Path | None = None) -> None:
    """An error if nothing can be written into a folder, or into the one that is named besides."""
    try:
        check_writable(path if folder is None else folder)
    except OSError as error:
        raise ValueError(f"{what} {path} cannot be written: {error}") from error


def check_seconds(seconds: float) -> None:
    """An error if it is no time that work can take."""
    if not seconds > 0:  # NaN neither
        raise ValueError(f"--seconds must be positive, got {seconds:g}; inf sets no limit")


def save_picture(ax: "Axes", path: Path) -> None:
    """Write the figure that axes are in, and let go of it."""
    import matplotlib.pyplot as plt

    from regionscope.plots.style import figure_of

    figure = figure_of(ax)
    write_figure(figure, path, dpi=200)
    plt.close(figure)
