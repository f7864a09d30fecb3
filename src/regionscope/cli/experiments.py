"""The command on experiments: figures of the papers, reproduced."""

from pathlib import Path
from typing import Any

import matplotlib
import torch

from regionscope.cli.output import SPOKEN, Output, Spoken, check_folder, command_line, save_picture, told_if_stopped
from regionscope.disk import make_folder
from regionscope.engines import check_engine
from regionscope.engines.tasks import TasksFailed
from regionscope.experiments.experiment import Experiment, Scale, findings
from regionscope.experiments.findings import Findings
from regionscope.experiments.lab import Lab
from regionscope.experiments.page import account, listing
from regionscope.experiments.registry import EXPERIMENTS, experiments_named
from regionscope.files import read_json, write_json
from regionscope.tables import text_table
from regionscope.training.loop import usable_device


def reproduce(
    names: tuple[str, ...] = (),
    *,
    list: bool = False,
    scale: Scale = "laptop",
    seeds: int | None = None,
    engine: str = "serial",
    device: str = "cpu",
    out: Path = Path("reproduction"),
    resume: bool = False,
    output: Spoken = SPOKEN,
) -> int:
    """Reproduce figures of the papers: train, measure, draw, and judge the claim by its rule.

    What was trained or measured is kept in OUT and used again, by other figures too. Stopped or killed, it goes on
    where it was when it is called again, with the result of one that was never stopped.

    Parameters
    ----------
    names
        Figures such as lc3, hr5 or pd8, all figures of a paper (lc, hr, pd, x), or all.
    list
        Show the figures, their claims, and the verdicts that are in OUT.
    scale
        How large: smoke takes seconds, laptop about ten minutes a figure, paper has the papers' own settings.
    seeds
        So many runs that differ in their seed only; as the scale has it if not given.
    engine
        Where it runs: serial, processes (all cores; processes:3 for three at a time), or ray (ray:ADDRESS).
    device
        Where networks train, such as cpu or cuda.
    out
        The folder for all results.
    resume
        Go on with what was asked for last with this OUT: no names are needed.
    output
        How the result is printed.

    Examples
    --------
    regionscope reproduce lc3 --scale smoke --out reproduction
    """
    check_engine(engine)
    if resume:
        names, scale, seeds = _asked_last(out)
    if list or not names:
        _say_list(names or ("all",), scale, out, output)
        return 0
    chosen = experiments_named(names)
    if not engine.startswith("ray"):  # other machines have other devices
        usable_device(device)
    for experiment in chosen:
        experiment.settings(scale, seeds)  # an error if there are none of that kind
    check_folder("--out", out)
    make_folder(out)
    write_json(out / "asked.json", {"names": names, "scale": scale, "seeds": seeds})
    lab = Lab(out, engine, device, show_progress=output.bar)
    matplotlib.use("agg")
    torch.set_num_threads(1)  # layers this small are slower on more
    found, failed = [], {}
    where = command_line("reproduce", "--resume", "--engine", engine, "--device", device, "--out", out)
    with told_if_stopped(f"go on with: {where}"):
        for experiment in chosen:
            output.remark(f"{experiment.name}: {experiment.title}")
            try:
                found.append(_findings_of(experiment, scale, seeds, lab, output))
            except (TasksFailed, OSError, ValueError) as error:
                failed[experiment.name] = str(error)
    table = text_table(listing(chosen, {known.name: known for known in found}))
    output.result(
        "\n".join(["", table, *(f"{name} failed: {why}" for name, why in failed.items())]),
        {"findings": [known.to_dict() for known in found], "failed": failed},
    )
    return 1 if failed else 0


def _asked_last(out: Path) -> tuple[tuple[str, ...], Scale, int | None]:
    if not (out / "asked.json").exists():
        raise ValueError(f"nothing was begun in {out}: regionscope reproduce NAME --out {out}")
    asked = read_json(out / "asked.json")
    return tuple(asked["names"]), asked["scale"], asked["seeds"]


def _say_list(names: tuple[str, ...], scale: Scale, out: Path, output: Output) -> None:
    chosen = experiments_named(names)
    files = {e.name: _file(out, e, scale) for e in chosen}
    found = {name: Findings.load(file) for name, file in files.items() if file.exists()}
    rows = [
        {"figure": e.name, "claim": e.claim, "verdict": known and known.verdict, "seconds": known and known.seconds}
        for e in chosen
        for known in [found.get(e.name)]
    ]
    output.result(text_table(listing(chosen, found)), rows)


def _findings_of(experiment: Experiment[Any], scale: Scale, seeds: int | None, lab: Lab, output: Output) -> Findings:
    """Findings and picture, written, and told."""
    found = findings(experiment, scale, lab, seeds=seeds)
    file = _file(lab.folder, experiment, scale)
    make_folder(file.parent)
    found.save(file)
    save_picture(EXPERIMENTS[found.name].draw(found).axes[0], file.with_suffix(".png"))
    output.remark(f"{account(found)}\n  wrote {file} and {file.with_suffix('.png').name}")
    return found


def _file(out: Path, experiment: Experiment[Any], scale: Scale) -> Path:
    return out / "findings" / scale / f"{experiment.name}.json"
