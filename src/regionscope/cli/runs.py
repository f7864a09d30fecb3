"""Commands on runs: training that is recorded, and what it shows."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import cyclopts
import matplotlib
import torch

from regionscope.cli.models import value_of
from regionscope.cli.output import (
    PICTURES,
    SPOKEN,
    TABLES,
    Output,
    Spoken,
    check_file,
    check_folder,
    command_line,
    save_picture,
    told_if_stopped,
)
from regionscope.cli.places import run_folders
from regionscope.disk import check_writable
from regionscope.results import SMOOTH, with_error
from regionscope.runs.bundles import bundles_as_rows, bundles_of
from regionscope.runs.report import reason, summary, write_report
from regionscope.runs.run import SIGNAL_COLUMN, Run, run_state
from regionscope.runs.watched import USUAL
from regionscope.tables import as_text, how_many, some_of, text_table, write_rows
from regionscope.training import loop as training
from regionscope.training.config import Training

Picture = Literal["png", "svg", "pdf"]
USUAL_TRAINING = Training()
FEW = 5


def train(
    path: Path,
    *,
    config: Annotated[Training, cyclopts.Parameter(name="*")] = USUAL_TRAINING,
    overwrite: bool = False,
    save_every: float = 60.0,
    device: str = "cpu",
    output: Spoken = SPOKEN,
) -> int:
    """Train a network and record how its linear regions move.

    Ctrl-C finishes the step and saves it, a second one stops at once; `regionscope resume` goes on after both.

    Parameters
    ----------
    path
        The directory of the run: one that has none yet.
    config
        What is trained on what.
    overwrite
        Remove the run that is in the directory already.
    save_every
        Seconds after which it is saved where training is, so that `regionscope resume` can go on from there.
    device
        Where to train, such as cpu or cuda.
    output
        How the result is printed.

    Examples
    --------
    regionscope train runs/grok --depth 4 --width 200 --loss mse --steps 100000 --records 60
    """
    check_folder("the run", path)
    options = {name: {k: value_of(v) for k, v in given.items()} for name, given in config.options.items()}
    with _told_to_resume(path):
        run = training.train(
            replace(config, options=options), path, save_every=save_every, device=device, overwrite=overwrite,
            show_progress=output.bar,
        )  # fmt: skip
    return _say_end(run, output)


def resume(path: Path, *, save_every: float = 60.0, device: str = "cpu", output: Spoken = SPOKEN) -> int:
    """Go on with a run that was stopped or killed; the result is that of a run that never stopped.

    Parameters
    ----------
    path
        The directory of the run.
    save_every
        Seconds after which it is saved where training is.
    device
        Where to train, such as cpu or cuda.
    output
        How the result is printed.

    Examples
    --------
    regionscope resume runs/grok
    """
    with _told_to_resume(path):
        run = training.resume(path, save_every=save_every, device=device, show_progress=output.bar)
    return _say_end(run, output)


def _told_to_resume(path: Path) -> AbstractContextManager[None]:
    return told_if_stopped(f"go on with: {command_line('resume', path)}", begun=path / "run.json")


def _say_end(run: Run, output: Output) -> int:
    """Say how training ended; the exit code: 0, 1 if records are missing, or 128 and the number of the signal."""
    status, missing = run.status, run.missing
    numbers = ", ".join(f"{n.replace('_', ' ')} {_number(status[n])}" for n in training.SCORES if n in status)
    lines = [
        f"{status['state']} at step {status['step']:,} of {status['steps']:,}: {numbers}",
        f"{how_many(len(run.steps), 'record')} in {run.path} ({status.get('monitoring', 'at unknown cost')})",
        *_smooth_in_words(run),
        *_missing_in_words(run, missing),
        *_failures_in_words(run),
    ]
    stopped = status["state"] == "stopped"
    goes_on = stopped or missing
    lines.append(
        f"go on with: {command_line('resume', run.path)}"
        if goes_on
        else f"see it with: {command_line('report', run.path)}"
    )
    known = {"run": run.path, "piecewise_linear": run.piecewise_linear, "records": len(run.steps)}
    data = {**known, "missing": sorted(missing), "failures": run.failures, **status}
    output.result("\n".join(lines), data)
    return 128 + status["signal"] if stopped else int(bool(missing))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _smooth_in_words(run: Run) -> list[str]:
    """A line if the network is smooth."""
    return [f"{run.path}: {SMOOTH}"] if run.piecewise_linear is False else []


def _missing_in_words(run: Run, missing: Mapping[int, str]) -> list[str]:
    """One line for each of the first few records that are missing, and how many more there are."""
    said = [f"{run.path}: step {step} is missing: {why}" for step, why in list(missing.items())[:FEW]]
    return said + ([f"{run.path}: {len(missing) - FEW} more are missing"] if len(missing) > FEW else [])


def _failures_in_words(run: Run) -> list[str]:
    """One line for each of the first few measures that failed, how often and why at first; and how many more did."""
    failures, records = run.failures, len(run.steps)
    said = [
        f"{run.path}: {what} could not be measured at {len(steps)} of {records} records: " + reason(run, what, steps[0])
        for what, steps in list(failures.items())[:FEW]
    ]
    return said + ([f"{run.path}: {len(failures) - FEW} more could not be measured"] if len(failures) > FEW else [])


def status(path: Path = Path("runs"), *, output: Spoken = SPOKEN) -> None:
    """Show the state of a run, or of all runs below a folder.

    Parameters
    ----------
    path
        A run's directory, or a folder of them.
    output
        How the result is printed.

    Examples
    --------
    regionscope status runs
    """
    body, remarks, data = [["run", "state", "step", "of", "records", "loss", "train", "test"]], [], []
    for folder in run_folders([path]):
        try:
            run = Run.open(folder)
            now, state, missing = _now(run), run_state(run), run.missing
        except (OSError, ValueError) as error:  # the others can be shown all the same
            body.append([str(folder), "damaged", *[""] * 6])
            remarks.append(str(error))
            data.append({"run": folder, "state": "damaged", "reason": str(error)})
            continue
        scores = [_number(now.get(name)) for name in ("loss", "train_accuracy", "test_accuracy")]
        steps = [str(now.get("step", "")), str(now.get("steps", ""))]
        body.append([str(folder), state, *steps, str(len(run.steps)), *scores])
        remarks += [f"{folder}: {now['reason']}"] if "reason" in now else []
        if any(scores) and now.get("scored") not in (None, now.get("step")):
            remarks.append(f"{folder}: loss and accuracies are those of step {now['scored']}")
        remarks += [*_smooth_in_words(run), *_missing_in_words(run, missing), *_failures_in_words(run)]
        known = {"run": folder, "state": state, "piecewise_linear": run.piecewise_linear, "records": len(run.steps)}
        data.append({**now, **known, "missing": sorted(missing), "failures": run.failures})
    output.result("\n".join([text_table(body), *remarks]), data)


def _now(run: Run) -> dict[str, Any]:
    """What is known of a run: its status, and the last scores, of the step `scored`."""
    rows, status = run.rows(), run.status
    if not rows:
        return status
    step = rows[-1]["step"]  # of the last record that can be read
    scalars = run.read(step).scalars
    known = {"step": step, **scalars, **status}
    if (status.get("scored") or -1) > step:  # it was stopped between two records
        return known
    return {**known, **{name: scalars[name] for name in training.SCORES if name in scalars}, "scored": step}


def _runs(paths: Sequence[Path]) -> list[Run]:
    """The runs in directories, or below them."""
    return [Run.open(folder) for folder in run_folders(paths)]


def report(
    path: Path, *, out: Path | None = None, pictures: tuple[Picture, ...] = ("png",), output: Spoken = SPOKEN
) -> None:
    """Write what a run shows: curves with their phases, planes, a table.

    Parameters
    ----------
    path
        The directory of the run.
    out
        The folder to write to; by default "report" in the run's directory.
    pictures
        The kinds of files for curves and planes: png, svg, pdf, or several.
    output
        How the result is printed.

    Examples
    --------
    regionscope report runs/grok --pictures svg pdf
    """
    if not pictures:
        raise ValueError("--pictures must be followed by png, svg or pdf, or several")
    run = Run.open(path)
    try:
        check_writable(out or path / "report")
        files = write_report(run, out or path / "report", pictures=pictures)
    except OSError as error:
        raise error if out is not None else OSError(f"{error}; write it elsewhere with --out") from error
    output.result(f"{summary(run)}\n\nwrote {', '.join(map(str, files))}", {"run": path, "files": files})


def compare(
    paths: tuple[Path, ...] = (Path("runs"),),
    *,
    column: str = SIGNAL_COLUMN,
    out: Path | None = None,
    lines: int = 14,
    output: Spoken = SPOKEN,
) -> None:
    """Compare runs: one number at every step, a column each. Runs that differ in their seed only are taken together.

    Parameters
    ----------
    paths
        Directories of runs, or folders of them.
    column
        What is compared, by its name in `regionscope export`, such as train/local_rank or test_accuracy.
    out
        Draw the curves to this .png, .svg or .pdf file, or write them to this .csv, .json or .parquet file.
    lines
        Print this many of the steps.
    output
        How the result is printed.

    Examples
    --------
    regionscope compare runs --column test_accuracy --out accuracy.png
    """
    check_file("--out", out, (*PICTURES, *TABLES))
    if lines < 1:
        raise ValueError(f"--lines must be at least 1, got {lines}")
    found = bundles_of(_runs(paths), column)
    rows = bundles_as_rows(found)
    chosen = [rows[i] for i in some_of(len(rows), lines)]
    body = [["step", *(bundle.name for bundle in found)]]
    body += [[str(row["step"]), *(_with_error(row, bundle.name) for bundle in found)] for row in chosen]
    text = [", ".join([found[0].label, *found[0].options]), text_table(body)]
    if len(chosen) < len(rows):
        text.append(
            f"{len(chosen)} of {len(rows)} steps; all of them with --lines {len(rows)}, --json or --out FILE.csv"
        )
    for bundle in found:
        if len(bundle.paths) > 1:
            text.append(f"{bundle.name}: the mean of {len(bundle.paths)} seeds ± its standard error over them")
    if repeats := [str(path) for bundle in found for path in bundle.repeats]:
        # a remark, since rows have no place for it
        output.remark(f"not counted, since another run has the same settings and seed: {', '.join(repeats)}")
    if out is not None and out.suffix in PICTURES:
        matplotlib.use("agg")
        from regionscope.plots.curves import compared_runs

        save_picture(compared_runs(found), out)
    elif out is not None:
        write_rows(rows, out)
    output.result("\n".join([*text, *([] if out is None else [f"\nwrote {out}"])]), rows)


def _with_error(row: dict[str, Any], name: str) -> str:
    value, error = row.get(name), row.get(f"{name}/stderr")
    return "-" if value is None else f"{value:.4g}" if error is None else with_error(value, error)


def export(
    paths: tuple[Path, ...], *, out: Path | None = None, html: Path | None = None, output: Spoken = SPOKEN
) -> None:
    """Write all numbers that runs recorded, one row a step: as CSV, or as JSON with --json. Or a run as a page.

    Parameters
    ----------
    paths
        Directories of runs, or folders of them; of several, a column says which.
    out
        Write to this .csv, .json or .parquet file instead of printing.
    html
        Write one run, its curves and its recorded planes, to this .html file, which opens without a server.
    output
        How the result is printed.

    Examples
    --------
    regionscope export runs --out runs.csv
    """
    check_file("--out", out, TABLES)
    check_file("--html", html, (".html",))
    if html is not None:
        if len(paths) != 1 or out is not None:
            raise ValueError("--html is for one run, and without --out")
        from regionscope.cli.explorer import write_page  # a server is loaded for it

        write_page(paths[0], html)
        output.result(f"wrote {html}", {"html": html})
        return
    found = _runs(paths)
    rows = [({"run": str(run.path)} if len(found) > 1 else {}) | row for run in found for row in run.rows()]
    if not rows:
        raise ValueError(f"nothing was recorded in {', '.join(str(run.path) for run in found)} yet")
    if out is None:
        output.result(as_text(rows, ".csv").rstrip("\n"), rows)
        return
    write_rows(rows, out)
    output.result(f"wrote {how_many(len(rows), 'row')} to {out}", {"rows": len(rows), "out": out})


DEMO = Training(
    depth=4, width=64, loss="mse", optimiser="adamw", lr=1e-3, weight_decay=0.01, batch_size=200, steps=30_000,
    records=36, points=300, plane=True,
    measures=(*USUAL, "robust_accuracy"),
    options={"robust_accuracy": {"points": 100, "bounds": (0.0, 1.0)}},
)  # fmt: skip


def demo(
    *, out: Path = Path("demo"), steps: int = DEMO.steps, seed: int = 0, open: bool = False, output: Spoken = SPOKEN
) -> int:
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
    open
        Show the run in the browser at the end; Ctrl-C ends it.
    output
        How the result is printed.

    Examples
    --------
    regionscope demo --steps 3000 --out demo
    """
    check_folder("--out", out)
    path = out / "run"
    output.remark(
        f"784-64x4-10 on 1000 MNIST images, {steps:,} steps of AdamW on the squared error; everything goes to {out}"
    )
    torch.set_num_threads(1)  # layers this small are slower on more
    with told_if_stopped(f"go on with: {command_line('demo', '--out', out)}"):
        if (path / "run.json").exists():
            run = training.resume(path, show_progress=output.bar)
        else:
            run = training.train(replace(DEMO, steps=steps, seed=seed), path, show_progress=output.bar)
        files = write_report(run, out)
    if not output.json:
        output.remark(f"\n{summary(run)}\n")
        if run.has_phases():
            output.remark(f"boundary crossings at the training images:\n{run.phases()}\n")
    code = _say_end(run, output)
    output.remark(f"look at {', '.join(map(str, files))}")
    if open:
        from regionscope.cli.explorer import view

        view((out,), output=output)
    else:
        output.remark(f"zoom into its regions in the browser: regionscope view {out}")
    return code
