"""The command that draws the exact regions of a network on a plane."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
import matplotlib
import torch

import regionscope as rs
from regionscope.cli.checkpoints import network_of
from regionscope.cli.models import TOLD_BY_FILE, Given
from regionscope.cli.output import (
    PICTURES,
    SPOKEN,
    Spoken,
    check_file,
    check_seconds,
    prints_aside,
    save_picture,
    told_if_stopped,
)
from regionscope.cli.places import USUAL_RADIUS, chosen_plane, fitting_plane, plane_forecast
from regionscope.geometry.forecasts import Forecast
from regionscope.geometry.planes import USUAL_MARGIN, check_size
from regionscope.machine import GB
from regionscope.tables import how_many

Colour = Literal["class", "gradient", "layer", "pattern", "none"]


def regions(
    checkpoint: Path,
    *,
    out: Path = Path("regions.png"),
    given: Annotated[Given, cyclopts.Parameter(name="*")] = TOLD_BY_FILE,
    points: Path | None = None,
    labels: Path | None = None,
    through: tuple[int, int, int] | None = None,
    around: int | None = None,
    radius: float | None = None,
    margin: float | None = None,
    seconds: float = 60.0,
    colour: Colour | None = None,
    up_to_layer: int | None = None,
    max_cells: int = 10_000_000,
    memory: float = 2.0,
    certified: bool = False,
    no_certificate: bool = False,
    save: Path | None = None,
    seed: int = 0,
    output: Spoken = SPOKEN,
) -> int:
    """Draw the exact linear regions of a network on a plane, and certify them; the exit code is 1 if that fails.

    A network with two inputs is drawn on the square of half-side RADIUS around the origin. Others are cut along the
    plane through three points, or a random plane around one; by default through a 0, a 1 and a 2 of MNIST. What that
    will have, and how long it takes, is estimated and said beforehand. If neither RADIUS nor MARGIN is given and the
    whole would be too much, its middle is drawn, as the title says.

    Parameters
    ----------
    checkpoint
        Weights: .safetensors, or a state dict in .pt or .pth. Loading never executes code.
    out
        The picture: .png, .svg or .pdf.
    given
        What network the weights belong to.
    points
        An .npy file with inputs (n, ...); by default the MNIST images that come with the library.
    labels
        An .npy file with the classes (n,) of the points.
    through
        The numbers of three of the points.
    around
        The number of one of the points.
    radius
        Half the side of the square around a point, with AROUND or two inputs; 1, or less if that is too much.
    margin
        Half the side of the square through three points, in circumradii; 1.2, or less if that is too much.
    seconds
        How long cutting and the certificate may take, about, if the size is not given; inf sets no limit.
    colour
        What the cells are filled by: the class if there are several outputs, else the norm of the gradient.
    up_to_layer
        Stop after this layer.
    max_cells
        Stop with an error beyond this number of cells.
    memory
        Keep to this many GB; what does not fit is refused, and what may not, by an estimate, is told before the work.
    certified
        Stop with an error if a sign cannot be proved, however long that takes.
    no_certificate
        Do not check all cells by other means in the end, which can take longer than to find them.
    save
        Write the cells to this .npz file too.
    seed
        Seed of the random plane.
    output
        How the result is printed.

    Examples
    --------
    regionscope regions net.pt --model mine.py:build --through 0 1 2 --out regions.png
    """
    check_file("--out", out, PICTURES)
    check_file("--save", save, (".npz",))
    check_seconds(seconds)
    check_size("--memory", memory)
    network = network_of(checkpoint, given, points, labels, output)
    whole, names = chosen_plane(network, points, labels, through, around, radius, margin, seed)
    room = int(memory * GB)
    if radius is None and margin is None:
        plane, found, asked = fitting_plane(
            network, whole, up_to_layer=up_to_layer, seconds=seconds, memory=room, certificate=not no_certificate,
            show_progress=output.bar,
        )  # fmt: skip
        output.remark(_size_in_words(plane, whole, found, asked))
    else:
        plane = whole
        found = plane_forecast(
            network, whole, up_to_layer=up_to_layer, certificate=not no_certificate, show_progress=output.bar
        )
        output.remark(f"expected by an estimate: {found}")
    found.check(max_cells, room)
    if excess := found.excess(max_cells, room):
        output.warn(excess)
    matplotlib.use("agg")
    with told_if_stopped("the same command begins anew; a smaller --margin or --radius takes less time"):
        with prints_aside():
            cells = rs.plane_cells(
                network, plane, up_to_layer=up_to_layer, max_cells=max_cells, memory=room, certified=certified,
                show_progress=output.bar,
            )  # fmt: skip
        ax = cells.plot(colour=colour, labels=names)
        if plane is not whole:
            part = f"only the middle of the plane, {_share(plane, whole):.2g} of its side"
            ax.set_title(f"{ax.get_title()}\n{part}")
        save_picture(ax, out)
        if save is not None:
            cells.save(save)
        checked = None
        if not no_certificate:
            checked = cells.verify(generator=torch.Generator().manual_seed(seed), show_progress=output.bar)
    output.result(
        f"{_regions_in_words(cells, checked)}\nwrote {out}",
        {
            "regions": len(cells), "exact": cells.exact, "expected": asdict(found), "domain": plane.domain,
            "vertices": len(cells.vertices),
            "boundary_length": cells.boundary_length(),
            "certificate": None if checked is None else asdict(checked) | {"holds": checked.holds},
            "out": out, "save": save,
        },
    )  # fmt: skip
    return 0 if checked is None or checked.holds else 1


def _share(plane: rs.Plane, whole: rs.Plane) -> float:
    """The side of a part of a plane, by that of the whole."""
    return math.sqrt(plane.area / whole.area)


def _size_in_words(plane: rs.Plane, whole: rs.Plane, found: Forecast, asked: Forecast) -> str:
    """What is looked at, and why."""
    if plane is whole:
        return f"expected by an estimate: {found}"
    share = _share(plane, whole)
    return (
        f"the whole plane would have {asked}\nso only its middle is looked at, {share:.2g} of its side"
        f" (--margin {USUAL_MARGIN * share:.2g}, or --radius {USUAL_RADIUS * share:.2g} of a plane around a point);"
        f" expected by an estimate: {found}"
    )


def _regions_in_words(cells: rs.PlaneCells, certificate: rs.Certificate | None) -> str:
    layers = ", ".join(f"{length:.4g}" for length in cells.boundary_length())
    kind = "exact" if cells.exact else f"NOT exact: {cells.undecided:,} signs are not proved"
    checked = "no certificate: it was not asked for" if certificate is None else _certificate_in_words(certificate)
    return (
        f"{how_many(len(cells), 'linear region')}, {len(cells.vertices):,} vertices ({kind})\n"
        f"length of the boundaries by layer: {layers}\n{checked}"
    )


def _certificate_in_words(certificate: rs.Certificate) -> str:
    exactly = (
        ""
        if certificate.checked_exactly is None
        else f", {how_many(certificate.checked_exactly, 'cell')} in exact arithmetic"
    )
    return (
        f"certificate {'holds' if certificate.holds else 'FAILS'}: area to {certificate.area_error:.0e},"
        f" Euler's formula, every pattern by a forward pass{exactly};"
        f" {certificate.close_decisions:,} signs within the bounds of rounding, {certificate.undecided:,} undecided"
    )
