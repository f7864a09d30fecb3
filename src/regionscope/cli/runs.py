"""Commands on runs: training that is recorded, and what it shows."""

import json
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import cyclopts
import torch

from regionscope.runs.report import summary, write_report
from regionscope.runs.run import Run, runs_in
from regionscope.runs.watched import USUAL
from regionscope.tables import aligned
from regionscope.training import loop as training
from regionscope.training.config import Training

Picture = Literal["png", "svg", "pdf"]


def train(
    path: Path,
    *,
    config: Annotated[Training | None, cyclopts.Parameter(name="*")] = None,
    save_every: float = 60.0,
    device: str = "cpu",
) -> None:
    """Train a network and record how its linear regions move.

    Parameters
    ----------
    path
        The directory of the run: one that has none yet.
    config
        What is trained on what.
    save_every
        Seconds after which it is saved where training is, so that `regionscope resume` can go on from there.
    device
        Where to train, such as cpu or cuda.
    """
    config = config or Training()
    config = replace(config, options={name: _values(given) for name, given in config.options.items()})
    bar = sys.stderr.isatty()
    _say_end(training.train(config, path, save_every=save_every, device=device, show_progress=bar))


def _values(given: dict[str, str]) -> dict[str, Any]:
    """Options as the shell gives them: numbers, true, false and lists as JSON writes them, all else as text."""
    read: dict[str, Any] = dict(given)
    for name, text in given.items():
        with suppress(json.JSONDecodeError):
            read[name] = json.loads(text)
    return read


def resume(path: Path, *, save_every: float = 60.0, device: str = "cpu") -> None:
    """Go on with a run that was stopped or killed; the result is that of a run that never stopped.

    Parameters
    ----------
    path
        The directory of the run.
    save_every
        Seconds after which it is saved where training is.
    device
        Where to train, such as cpu or cuda.
    """
    _say_end(training.resume(path, save_every=save_every, device=device, show_progress=sys.stderr.isatty()))


def _say_end(run: Run) -> None:
    """Say how training ended."""
    status = run.status
    numbers = ", ".join(f"{name.replace('_', ' ')} {status[name]:.4g}" for name in training.SCORES if name in status)
    print(f"{status['state']} at step {status['step']:,} of {status['steps']:,}: {numbers}")
    print(f"{len(run.steps)} records in {run.path} ({status['monitoring']})")
    if status["state"] == "stopped":
        print(f"go on with: regionscope resume {run.path}")


def status(path: Path = Path("runs")) -> None:
    """Show the state of a run, or of all runs below a folder.

    Parameters
    ----------
    path
        A run's directory, or a folder of them.
    """
    found = runs_in(path)
    if not found:
        raise ValueError(f"there are no runs in {path}; make one with: regionscope train {path}/NAME")
    body = [["run", "state", "step", "of", "records", "loss", "train", "test"]]
    for run in found:
        now = run.status
        scores = [f"{now[name]:.4g}" if name in now else "" for name in ("loss", "train_accuracy", "test_accuracy")]
        steps = [str(now.get("step", "")), str(now.get("steps", ""))]
        body.append([str(run.path), training.run_state(run), *steps, str(len(run.steps)), *scores])
    print(aligned(body))
    for run in found:
        if "reason" in run.status:
            print(f"{run.path}: {run.status['reason']}")


def report(path: Path, *, out: Path | None = None, pictures: tuple[Picture, ...] = ("png",)) -> None:
    """Write what a run shows: curves with their phases, planes, a table.

    Parameters
    ----------
    path
        The directory of the run.
    out
        The folder to write to; by default "report" in the run's directory.
    pictures
        The kinds of files for curves and planes: png, svg, pdf, or several.
    """
    run = Run.open(path)
    files = write_report(run, out or path / "report", pictures=pictures)
    print(f"{summary(run)}\n\nwrote {', '.join(map(str, files))}")


DEMO = Training(
    depth=4, width=64, loss="mse", optimiser="adamw", lr=1e-3, weight_decay=0.01, batch_size=200, steps=30_000,
    records=36, points=300, plane=True,
    measures=(*USUAL, "robust_accuracy"),
    options={"robust_accuracy": {"points": 100, "bounds": (0.0, 1.0)}},
)  # fmt: skip


def demo(*, out: Path = Path("demo"), steps: int = DEMO.steps, seed: int = 0) -> None:
    """Train a network on a thousand MNIST images and watch its linear regions come and go.

    Takes about two minutes on two cores; stopped, it goes on where it was when it is called again.

    Parameters
    ----------
    out
        The folder for the run, the pictures and the report.
    steps
        Training steps.
    seed
        Seed of everything that is drawn.
    """
    path, bar = out / "run", sys.stderr.isatty()
    print(f"784-64x4-10 on 1000 MNIST images, {steps:,} steps of AdamW on the squared error; everything goes to {out}")
    torch.set_num_threads(1)  # layers this small are slower on more
    if (path / "run.json").exists():
        run = training.resume(path, show_progress=bar)
    else:
        run = training.train(replace(DEMO, steps=steps, seed=seed), path, show_progress=bar)
    files = write_report(run, out)
    print(f"\n{summary(run)}\n")
    if run.has_phases():
        print(f"boundary crossings at the training images:\n{run.phases()}\n")
    _say_end(run)
    print(f"look at {', '.join(map(str, files))}")
