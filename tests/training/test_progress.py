"""What training says while it goes on."""

import io
import sys

import pytest

from regionscope.training import progress
from regionscope.training.progress import Progress


class Clock:
    """A time that passes when it is told to."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_without_a_terminal_there_is_a_line_every_so_often(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    with Progress(10, 40, shown=True) as shown:
        shown.tell("measuring local_rank at train")
        shown.tell("measuring local_rank at test")  # too soon after the first
        clock.now += 60  # what the first record takes says nothing of the steps
        for _ in range(4):
            clock.now += 4
            shown.step(0.25, {"train_accuracy": 0.5, "test_accuracy": 0.125})
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "step 10 of 40: measuring local_rank at train",
        "step 11 of 40: loss 0.25, train 50.0%, test 12.5%",
        "step 14 of 40: loss 0.25, train 50.0%, test 12.5%, about 01:44 left",
    ]


def test_what_must_be_read_now_is_said_and_nothing_else_if_it_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(0, 5, shown=False) as hidden:
        hidden.tell("measuring local_rank at train")
        hidden.step(1.0, {})
        hidden.say(f"finishing step {hidden.current}, once more to stop now")
    assert capsys.readouterr().err == "finishing step 1, once more to stop now\n"


def test_on_a_terminal_a_bar_says_what_is_measured_and_the_last_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress(0, 5, shown=True) as shown:
        shown.tell("measuring local_rank at train")
        assert terminal.getvalue().splitlines()[-1].split("\r")[-1].startswith("measuring local_rank at train:   0%")
        shown.step(0.25, {"train_accuracy": 0.5})
        shown.say("finishing step 1, once more to stop now")
    assert "\nfinishing step 1, once more to stop now\n" in terminal.getvalue()
    last = terminal.getvalue().split("\r")[-1]
    assert "1/5" in last and "loss=0.25" in last and "train=50.0%" in last and "measuring" not in last
