"""Where the numbers of a monitor go: TensorBoard, Weights & Biases, a CSV file.

    rs.Monitor(model, probes, loggers=[TensorBoard("logs"), CSV("numbers.csv")])

Any object with `log(step, values)` and `close()` will do.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from regionscope.disk import append, make_folder, read_whole, reading, write_whole
from regionscope.files import TEXT
from regionscope.integrations import extra


class TensorBoard:
    """Writes event files into a folder; `options` are those of torch's `SummaryWriter`.

    To go on after a kill, say `purge_step=` the step you go on from: TensorBoard then hides what was logged beyond it.
    """

    def __init__(self, folder: str | Path, **options: Any) -> None:
        with extra("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        self.make, self.folder, self.options = SummaryWriter, str(folder), options
        self.writer: Any = None  # from the first step on: of many processes only one logs

    def log(self, step: int, values: dict[str, float]) -> None:
        """Write the values of one step."""
        self.writer = self.writer or self.make(self.folder, **self.options)
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)
        self.writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self.writer is not None:
            self.writer.close()


class WandB:
    """Logs to Weights & Biases: to your own run, which stays open, or to a new one in a project, finished at the end.

    `options` are those of `wandb.init`, such as `mode="offline"`. Charts run over "step", logged as a value, so that
    what else you log to the run keeps its own steps.
    """

    def __init__(self, run: Any, **options: Any) -> None:
        with extra("wandb"):
            import wandb
        self.own = isinstance(run, str)
        if options and not self.own:
            raise ValueError(f"options are for a new run, got {', '.join(options)} with a run that is open already")
        self.make, self.options = wandb.init, {"project": run, **options}
        self.run = None if self.own else run
        self.known: set[str] = set()

    def log(self, step: int, values: dict[str, float]) -> None:
        """Log the values of one step."""
        self.run = self.run or self.make(**self.options)
        for name in sorted(values.keys() - self.known):
            self.run.define_metric(name, step_metric="step")
        self.known |= values.keys()
        self.run.log({**values, "step": step})

    def close(self) -> None:
        """Finish the run if it was started here."""
        if self.own and self.run is not None:
            self.run.finish()


class CSV:
    """One row a step; a column for every name, also for those that come later.

    What is in the file already is kept, and a step that is logged again replaces its old row: after a kill, give the
    same path and go on.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.columns, self.rows = _rows_in(self.path)
        self.begun = False  # the first row writes the file anew, without what a kill cut off

    def log(self, step: int, values: dict[str, float]) -> None:
        """Add the row of one step."""
        fits = self.begun and step not in self.rows and values.keys() <= set(self.columns)
        self.columns += [name for name in values if name not in self.columns]
        self.rows[step] = values
        if fits:
            append(self.path, _lines([self._cells(step)]))
        else:
            self._rewrite()

    def _rewrite(self) -> None:
        """A kill leaves the old file or the new one."""
        make_folder(self.path.parent)
        write_whole(self.path, _lines([["step", *self.columns], *(self._cells(step) for step in sorted(self.rows))]))
        self.begun = True

    def _cells(self, step: int) -> list[object]:
        return [step, *(self.rows[step].get(name, "") for name in self.columns)]

    def close(self) -> None:
        """Nothing is left to do: every row is in the file."""


def _lines(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _rows_in(path: Path) -> tuple[list[str], dict[int, dict[str, Any]]]:
    """The columns and rows of a file, if there is one; the end of a row that a kill cut off is left out."""
    if not path.exists():
        return [], {}
    data = read_whole(path, most=TEXT)
    with reading(path, "was not written by this logger"):
        return _rows_of(data.decode())


def _rows_of(text: str) -> tuple[list[str], dict[int, dict[str, Any]]]:
    lines = text[: text.rfind("\n") + 1].splitlines()
    if not lines:
        return [], {}
    head, *rows = csv.reader(lines)
    if head[:1] != ["step"]:
        raise ValueError(f"its first column is {''.join(head[:1])!r}, not step")
    return head[1:], {int(step): dict(zip(head[1:], cells, strict=True)) for step, *cells in rows}
