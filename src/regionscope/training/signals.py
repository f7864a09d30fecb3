"""Signals that stop training between two steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from regionscope.training.progress import Progress


@contextmanager
def stop_signals(progress: Progress) -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that no step is left half done; the second of them ends the process."""
    came: list[int] = []

    def note(number: int, _: object) -> None:
        came.append(number)
        if len(came) > 1:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        progress.say(f"finishing step {progress.current:,}, once more to stop now")

    here = threading.current_thread() is threading.main_thread()  # only there Python lets signals be handled
    usual = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM) if here}
    try:
        yield came
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
