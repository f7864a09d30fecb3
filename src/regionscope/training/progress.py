"""How far training is, for whoever looks: a bar on a terminal or in a notebook, elsewhere a line every so often."""

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from regionscope.progress import in_notebook, tqdm

SECONDS = 10.0  # between two lines


class Progress:
    """Tells steps, time left, the batch's loss and the accuracies of the last record, and what is being measured."""

    def __init__(self, first: int, steps: int, *, shown: bool) -> None:
        looked_at = sys.stderr.isatty() or in_notebook()
        self.bar: tqdm[Any] = tqdm(total=steps, initial=first, disable=not (shown and looked_at))
        self._lines = shown and not looked_at
        self._first, self.current, self._steps = first, first, steps
        self._began, self._said = float("inf"), float("-inf")  # the first step ended, the last line was said

    def step(self, loss: float, scores: Mapping[str, float]) -> None:
        """A step was made."""
        self.current += 1
        self._began = min(self._began, time.monotonic())
        if not self.bar.disable or self._is_time():
            names = {"train": "train_accuracy", "test": "test_accuracy"}
            found = {"loss": f"{loss:.3g}"} | {k: f"{scores[n]:.1%}" for k, n in names.items() if n in scores}
            self.bar.set_postfix(found, refresh=False)
            self._line(", ".join(f"{name} {value}" for name, value in found.items()))
        self.bar.update()

    def tell(self, what: str) -> None:
        """Something is being measured, which can take longer than all steps until then."""
        if what:
            self._line(what)
        if not self.bar.disable:
            self.bar.set_description_str(what)

    def say(self, text: str) -> None:
        """Something that has to be read now. It may come from a signal, amid a write that is not to be called again."""
        line = f"{text}\n" if self.bar.disable else f"\n{text}\n"
        try:
            os.write(sys.stderr.fileno(), line.encode())
        except (OSError, ValueError):  # it is no file, as in a notebook
            print(line, end="", file=sys.stderr, flush=True)

    def _is_time(self) -> bool:
        return self._lines and time.monotonic() - self._said >= SECONDS

    def _line(self, words: str) -> None:
        if not self._is_time():
            return
        self._said = time.monotonic()
        made, taken = self.current - self._first - 1, self._said - self._began  # the first step comes with a record
        until = ""
        if made > 0 and taken >= SECONDS:
            until = f", about {tqdm.format_interval(taken / made * (self._steps - self.current))} left"
        print(f"step {self.current:,} of {self._steps:,}: {words}{until}", file=sys.stderr, flush=True)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.tell("")
        self.bar.close()
