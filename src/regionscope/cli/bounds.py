"""The command that holds the inequalities of the papers against a network."""

from pathlib import Path
from typing import Annotated, Literal

import cyclopts
import matplotlib
import torch

import regionscope as rs
from regionscope.cli.checkpoints import check_draws, network_and_points
from regionscope.cli.models import TOLD_BY_FILE, Given
from regionscope.cli.output import PICTURES, SPOKEN, Spoken, check_file, check_seconds, save_picture
from regionscope.geometry.planes import check_size
from regionscope.inequalities.bound import Bounds
from regionscope.measures.plans import planned_bounds
from regionscope.measures.table import BOUNDS_DEFAULTS
from regionscope.tables import how_many, text_table, write_rows


def bounds(
    checkpoint: Path,
    *,
    given: Annotated[Given, cyclopts.Parameter(name="*")] = TOLD_BY_FILE,
    points: Path | None = None,
    count: int = 100,
    sigma: float = BOUNDS_DEFAULTS["sigma"],
    eta: float | None = BOUNDS_DEFAULTS["eta"],
    eps: float = BOUNDS_DEFAULTS["eps"],
    draws: int | None = None,
    constants: Literal["product", "data"] = BOUNDS_DEFAULTS["constants_from"],
    terms: bool = False,
    plot: Path | None = None,
    out: Path | None = None,
    seed: int = 0,
    seconds: float = 60.0,
    plan: bool = False,
    output: Spoken = SPOKEN,
) -> None:
    """Hold the inequalities of the papers against a network: both sides and a verdict, as printed and as they hold.

    Of a large network fewer points are taken, and fewer draws, so that it takes about SECONDS; how many is said
    beforehand.

    Parameters
    ----------
    checkpoint
        Weights: .safetensors, or a state dict in .pt or .pth. Loading never executes code.
    given
        What network the weights belong to.
    points
        An .npy file with inputs (n, ...); by default the MNIST images that come with the library.
    count
        Take this many points at the most.
    sigma
        Standard deviation of the noise on biases.
    eta
        How near its boundary a unit has to be for the lower bounds; sigma if not given.
    eps
        Singular values at least this large count for the local rank.
    draws
        Draws of the noise for each point; if not given the usual number, or 1 to save time.
    constants
        Gradient and Lipschitz constants by operator norms (product), or the largest met on the data.
    terms
        Print every number that enters each inequality.
    plot
        Draw how tight each one is to this .png, .svg or .pdf file.
    out
        Write the results to this .json or .parquet file too.
    seed
        Seed of everything that is drawn.
    seconds
        How long a large network may take; inf sets no limit.
    plan
        Only say at how many points the inequalities would be looked at, and how long that takes.
    output
        How the result is printed.

    Examples
    --------
    regionscope bounds net.pt --model mine.py:build --count 20 --plot bounds.png
    """
    check_file("--out", out, (".json", ".parquet"))
    check_file("--plot", plot, PICTURES)
    for option, value in (("--sigma", sigma), ("--eta", sigma if eta is None else eta), ("--eps", eps)):
        check_size(option, value)
    check_draws(draws)
    check_seconds(seconds)
    net, data, _ = network_and_points(checkpoint, given, points, None, count, output)
    planned = planned_bounds(net, data, draws=draws, seconds=seconds)
    if plan:
        output.result(f"{net!r}, {how_many(len(data), 'point')}\n\n{planned}", planned.to_dict())
        return
    if planned.changed:
        output.remark(f"{planned}\n")
    how = planned.measures["bounds"]
    data = data[: how.points]
    found = rs.bounds(
        net, data, sigma=sigma, eta=eta, eps=eps, draws=how.options["draws"], constants_from=constants,
        generator=torch.Generator().manual_seed(seed), show_progress=output.bar,
    )  # fmt: skip
    text = f"{net!r}, {how_many(len(data), 'point')}\n\n{_bounds_table(found, terms)}"
    if plot is not None:
        matplotlib.use("agg")
        from regionscope.plots.scatter import bounds as draw_bounds

        save_picture(draw_bounds(found), plot)
        text += f"\n\nwrote {plot}"
    rows = [b.to_dict() for b in found]
    if out is not None:
        write_rows(rows, out)
        text += f"\n\nwrote {out}"
    output.result(text, rows)


def _bounds_table(found: list[rs.Bound], terms: bool) -> str:
    """Inequalities as text: left <= right, the ratio and the verdict; below each its terms, if asked for."""
    rows: list[tuple[str, ...]] = [Bounds.HEAD]
    for b in found:
        rows.append(b.in_words)
        for name, term in b.terms.items() if terms else ():
            rows.append((f"  {name}", "", f"{term.value:.5g}", "", f"{term.stderr:.2g}", "", ""))
    return text_table(rows)
