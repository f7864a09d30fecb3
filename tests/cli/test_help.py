"""What holds for every command: an example, completion, colours, exit codes, quiet and verbose, errors."""

import io
import logging
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from rich.console import Console
from terminals import read_to_end
from torch import nn

import regionscope as rs
from regionscope.cli import main
from regionscope.cli.commands import CODES, app
from regionscope.cli.output import Output
from regionscope.measures.table import Measure
from regionscope.training import loop

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
NAMES = [name for name in app if not name.startswith("-")]
LONG = {"train", "resume", "demo", "view", "reproduce"}  # only parsed
MINE = "from torch import nn\ndef build():\n    return nn.Sequential(nn.Linear(784, 6), nn.ReLU(), nn.Linear(6, 10))\n"
TINY = "--steps 3 --size 50 --test-size 20 --depth 1 --width 4 --points 5 --records 3 --measures boundary_crossings"
Main = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a network of one's own in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("mine.py").write_text(MINE)
    torch.manual_seed(0)
    torch.save(nn.Sequential(nn.Linear(784, 6), nn.ReLU(), nn.Linear(6, 10)).state_dict(), "net.pt")
    return tmp_path


@pytest.fixture
def called(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Main]:
    """The command as the shell calls it, in this process: its exit code."""
    log = logging.getLogger("regionscope")
    before = log.handlers, log.level, log.propagate
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def call(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["regionscope", *words])
        with pytest.raises(SystemExit) as end:
            main()
        if isinstance(end.value.code, str):  # as Python itself does
            print(end.value.code, file=sys.stderr)
            return 1
        return int(end.value.code or 0)

    yield call
    log.handlers, log.propagate = before[0], before[2]
    log.setLevel(before[1])


def help_of(*names: str) -> str:
    text = io.StringIO()
    app.help_print(names, console=Console(file=text, width=200))
    return text.getvalue()


def example(name: str) -> str:
    return help_of(name).rstrip().rpartition("\nExample: ")[2]


@pytest.mark.parametrize("name", NAMES)
def test_help_ends_with_an_example_that_is_understood(name: str) -> None:
    words = shlex.split(example(name).removeprefix('eval "$(').removesuffix(')"'))
    assert words[:2] == ["regionscope", name]
    _, given, _ = app.parse_args([*words[1:], "--json", "--verbose", "--debug"], exit_on_error=False)
    assert given.arguments["output"] == Output(json=True, verbose=True, debug=True)


def test_examples_that_take_no_time_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app(["train", "runs/grok", *TINY.split(), "--quiet"])
    for name in [name for name in NAMES if name not in LONG | {"completion"}]:
        assert not app(shlex.split(example(name))[1:]), name
    made = {path.name for path in folder.iterdir()}
    assert {"regions.png", "measures.json", "bounds.png", "accuracy.png", "runs.csv"} <= made
    assert "finished" in capsys.readouterr().out


# completion


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["mea"], {"measure"}),
        (["measure", "--act"], {"--activation"}),
        (["train", "here", "--activation", "g"], {"gelu"}),
        (["status", "--"], {"--json", "--quiet", "--verbose", "--debug", "--path"}),
    ],
)
def test_bash_completes(words: list[str], found: set[str], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(app.generate_completion(shell="bash"))
    asked = f"COMP_WORDS=(regionscope {shlex.join(words)}); COMP_CWORD={len(words)}; _regionscope"
    code = f'source {tmp_path}/script; complete -p regionscope >&2; {asked}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert "-F _regionscope regionscope" in done.stderr
    assert found <= set(done.stdout.split())
    assert all(word.startswith(words[-1]) for word in done.stdout.split())


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_understand_their_script(shell: str, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(app.generate_completion(shell="zsh" if shell == "zsh" else "fish"))
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


# colours


def shown(terminal: bool, **environment: str) -> bytes:
    """What a process prints of the help, on a terminal or to a pipe."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "regionscope", "--help"]
    env = {**kept, "TERM": "xterm-256color", **environment}
    if not terminal:
        return subprocess.run(command, capture_output=True, check=True, env=env).stdout
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 100))
    with subprocess.Popen(command, stdout=follower, env=env) as process:
        os.close(follower)
        seen = read_to_end(leader)
    assert process.returncode == 0
    return seen


def test_colours_are_for_terminals_and_not_for_who_does_not_want_them() -> None:
    colour = re.compile(rb"\x1b\[[0-9;]*3[0-8]")
    assert colour.search(shown(terminal=True))
    assert not colour.search(shown(terminal=True, NO_COLOR="1"))
    assert b"\x1b" not in shown(terminal=False)


# exit codes, and what is said


def test_exit_codes_are_documented(called: Main, capsys: pytest.CaptureFixture[str]) -> None:
    table = PAGE.read_text().partition("| code |")[2].partition("\n\n")[0]
    codes = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(", ")}
    assert codes == {0, 1, 2, 130, 141, 143} == {int(code) for code in re.findall(r"\b\d+\b", CODES)}
    assert called("--version") == 0
    assert capsys.readouterr().out.strip() == rs.__version__
    assert called("status", "nowhere") == 1
    assert capsys.readouterr().err.startswith("regionscope: there are no runs in nowhere")
    for wrong in (["nonsense"], ["status", "--mood"], ["train", "a", "--depth", "deep"]):
        assert called(*wrong) == 2
    assert called("status", "--quiet", "--verbose") == 1
    assert "give --quiet or --verbose, not both" in capsys.readouterr().err


def test_debug_shows_where_an_error_comes_from(called: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["regionscope", "status", "nowhere", "--debug"])
    with pytest.raises(ValueError, match="there are no runs in nowhere"):
        main()


def test_verbose_says_what_is_done_and_quiet_hides_warnings(called: Main, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["measure", "net.pt", "total_variation", "--model", "mine.py:build", "--count", "3", "--out", "a.json"]
    assert called(*asked, "--verbose", "--json") == 0
    said = capsys.readouterr().err
    assert re.search(r"^ *\d+ ms  traced Network", said, re.MULTILINE)
    assert re.search(r"^ *\d+ ms  wrote a.json, \d+ bytes", said, re.MULTILINE)
    Path("mine.py").write_text(f"import warnings\nwarnings.warn('careful', stacklevel=1)\n{MINE}")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert called(*asked) == 0
        assert "regionscope: careful\n" in capsys.readouterr().err
        assert called(*asked, "--quiet") == 0
        assert capsys.readouterr() == ("", "")


# stopped


def stop(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_training_that_is_stopped_says_how_to_go_on(
    number: signal.Signals, code: int, called: Main, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step = loop._take_step

    def step_and_signal(*given: Any) -> float:
        os.kill(os.getpid(), number)
        return step(*given)

    monkeypatch.setattr(loop, "_take_step", step_and_signal)
    assert called("train", "runs/a run", *TINY.split()) == code
    assert capsys.readouterr().out.endswith("go on with: regionscope resume 'runs/a run'\n")
    monkeypatch.setattr(loop, "_take_step", step)
    assert called("resume", "runs/a run") == 0


def test_threads_that_a_command_has_not_begun_do_not_end_the_process(
    called: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a program, or a suite of tests, that calls the command as a function."""
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        assert called("--version") == 0
        monkeypatch.setattr(loop, "training_data", stop)
        assert called("train", "runs/never", "--quiet") == 130
    finally:
        done.set()
        other.join()


def test_whoever_stops_at_once_is_told_how_to_go_on(
    called: Main, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*words: str) -> str:
        assert called(*words, "--quiet") == 130
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1
        return err.removeprefix("regionscope: stopped; ").rstrip()

    again = "give the same command again; what was kept before stays"
    with monkeypatch.context() as early:
        early.setattr(loop, "training_data", stop)
        assert said("train", "runs/never") == again, "nothing was begun"
    for name in ("regionscope.training.loop._take_step", "regionscope.plane_cells", "regionscope.bounds"):
        monkeypatch.setattr(name, stop)
    monkeypatch.setattr("regionscope.cli.experiments.findings", stop)
    asked = ["net.pt", "--model", "mine.py:build"]
    assert said("train", "runs/a", *TINY.split()) == "go on with: regionscope resume runs/a"
    assert said("resume", "runs/a") == "go on with: regionscope resume runs/a"
    assert said("demo", "--out", "my demo") == "go on with: regionscope demo --out 'my demo'"
    assert said("regions", *asked) == "the same command begins anew; a smaller --margin or --radius takes less time"
    assert said("bounds", *asked) == again
    lab = "go on with: regionscope reproduce --resume --engine serial --device cpu --out lab"
    assert said("reproduce", "lc3", "--scale", "smoke", "--out", "lab") == lab


def test_measures_that_were_taken_are_kept_and_the_rest_is_named(
    called: Main, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["measure", "net.pt", "--model", "mine.py:build", "--count", "3", "--out", "a.csv"]
    estimate = Measure.estimate

    def estimate_unless_rank(measure: Measure, *given: Any, **options: Any) -> rs.Estimate:
        return stop() if measure.function is rs.local_rank else estimate(measure, *given, **options)

    monkeypatch.setattr(Measure, "estimate", estimate_unless_rank)
    assert called(*asked, "total_variation", "local_rank", "good_units") == 130
    out, err = capsys.readouterr()
    assert "total variation" in out and "good units" not in out
    rest = "regionscope measure net.pt local_rank good_units"
    assert err.splitlines()[-1] == f"regionscope: stopped; the rest, with the same options and another --out: {rest}"
    assert Path("a.csv").read_text().count("\n") == 2
    assert called(*asked, "local_rank") == 130, "nothing was measured"
    assert capsys.readouterr().err == "regionscope: stopped; give the same command again; what was kept before stays\n"
