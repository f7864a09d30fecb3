"""Commands on the checkpoint of a network."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import cyclopts
import matplotlib
import torch
from torch import Tensor, nn

import regionscope as rs
from regionscope.cli.models import Given
from regionscope.cli.output import (
    PICTURES,
    SPOKEN,
    TABLES,
    Output,
    Spoken,
    check_file,
    check_seconds,
    command_line,
    prints_aside,
    save_picture,
    told_if_stopped,
)
from regionscope.cli.places import (
    USUAL_RADIUS,
    check_points_files,
    chosen_plane,
    chosen_points,
    fitting_plane,
    plane_forecast,
)
from regionscope.geometry.forecasts import Forecast
from regionscope.geometry.planes import USUAL_MARGIN, check_size
from regionscope.inequalities.bound import Bounds
from regionscope.machine import GB
from regionscope.measures.attacks import box_of
from regionscope.measures.classification import checked_labels
from regionscope.measures.plans import Planned, planned_bounds, planned_measures, usual_measures
from regionscope.measures.table import BOUNDS_DEFAULTS, MEASURES, measure_named
from regionscope.results import SMOOTH, kind_of_error, options_in_words, with_error, with_interval
from regionscope.tables import how_many, text_table, write_rows

TOLD_BY_FILE = Given()
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
    network = _network_of(checkpoint, given, points, labels, output)
    whole, names = chosen_plane(network, points, labels, through, around, radius, margin, seed)
    room = int(memory * GB)
    if radius is None and margin is None:
        plane, found, asked = fitting_plane(
            network, whole, up_to_layer=up_to_layer, seconds=seconds, memory=room, certificate=not no_certificate
        )
        output.remark(_size_in_words(plane, whole, found, asked))
    else:
        plane, found = whole, plane_forecast(network, whole, up_to_layer=up_to_layer, certificate=not no_certificate)
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


def measure(
    checkpoint: Path,
    measures: tuple[str, ...] = (),
    *,
    given: Annotated[Given, cyclopts.Parameter(name="*")] = TOLD_BY_FILE,
    points: Path | None = None,
    labels: Path | None = None,
    count: int = 1000,
    sigma: float = MEASURES["local_complexity"].defaults["sigma"],
    draws: int | None = None,
    eps: float = MEASURES["local_rank"].defaults["eps"],
    radius: float = MEASURES["boundary_crossings"].defaults["radius"],
    allow_smooth: bool = False,
    out: Path | None = None,
    seed: int = 0,
    seconds: float = 60.0,
    plan: bool = False,
    output: Spoken = SPOKEN,
) -> None:
    """Measure a network at points: a table with one row a measure, its value per layer and its standard error.

    A large network is measured at fewer points and along random directions, so that it takes about SECONDS; how is said
    beforehand.

    Parameters
    ----------
    checkpoint
        Weights: .safetensors, or a state dict in .pt or .pth. Loading never executes code.
    measures
        local_complexity, boundary_crossings, local_rank, total_variation, boundary_distance, good_units,
        robust_accuracy, certified_radius (these two need labels), local_region_count; all but the last if none is
        named.
    given
        What network the weights belong to.
    points
        An .npy file with inputs (n, ...); by default the MNIST images that come with the library.
    labels
        An .npy file with the classes (n,) of the points.
    count
        Take this many points at the most.
    sigma
        Standard deviation of the noise on biases, for local complexity.
    draws
        Draws of that noise; if not given the usual number, or fewer to save time.
    eps
        Singular values at least this large count for the local rank.
    radius
        Radius of the neighbourhoods for crossings, half the side of the squares in which regions are counted.
    allow_smooth
        Take smooth activations such as gelu too, and study the boundaries of units instead of linear regions, but for
        certified_radius and local_region_count, which need those.
    out
        Write the results to this .json, .csv or .parquet file too.
    seed
        Seed of everything that is drawn.
    seconds
        How long a large network may take; inf sets no limit.
    plan
        Only say what would be measured, at how many points, and how long that takes.
    output
        How the result is printed.

    Examples
    --------
    regionscope measure net.pt local_complexity local_rank --model mine.py:build --out measures.json
    """
    check_file("--out", out, TABLES)
    check_size("--radius", radius)
    check_size("--sigma", sigma)
    if not eps >= 0:  # NaN neither
        raise ValueError(f"--eps must not be negative, got {eps}")
    _check_draws(draws)
    check_seconds(seconds)
    classified = points is None or labels is not None
    for name in measures:
        if measure_named(name).needs_labels and not classified:
            raise ValueError(f"{name} needs labels: give those of the points with --labels")
    net, data, classes = _network_and_points(checkpoint, given, points, labels, count, output, allow_smooth)
    for name in measures:
        if measure_named(name).needs_regions and not net.piecewise_linear:
            raise ValueError(f"{name} needs linear regions, and this network is smooth: measure it without")
    with _told_of_labels():
        chosen = measures or _usual_measures(net, data, classes, labels is not None, output)
        if classes is not None and any(measure_named(name).needs_labels for name in chosen):
            checked_labels(classes, net, data)
    told: dict[str, dict[str, object]] = {
        "local_complexity": {"sigma": sigma, **({} if draws is None else {"draws": draws})},
        "boundary_crossings": {"radius": radius},
        "local_rank": {"eps": eps},
        "local_region_count": {"radius": radius},
        "robust_accuracy": {"bounds": box_of([data])},
    }
    asked = {name: {**measure_named(name).defaults, **told.get(name, {})} for name in chosen}
    planned = planned_measures(net, data, asked, seconds=seconds, given=told, optional=not measures)
    if plan:
        output.result(f"{net!r}, {how_many(len(data), 'point')}\n\n{planned}", planned.to_dict())
        return
    if planned.changed:
        output.remark(f"{planned}\n")
    left = [how for how in planned.measures.values() if how.points]  # others are left out, as the plan says
    rows: list[dict[str, Any]] = []
    stopped: BaseException | None = None
    try:
        while left:
            rows.append(_measure_row(net, data, classes, left[0], seed, output))
            left.pop(0)
    except (KeyboardInterrupt, Exception) as stop:
        if not rows:
            raise
        stopped = stop  # what was measured until then is told all the same
        if isinstance(stop, KeyboardInterrupt):
            rest = command_line("measure", checkpoint, *(how.name for how in left))
            stop.add_note(f"the rest, with the same options and another --out: {rest}")
        else:
            stop.add_note(f"(in {left[0].name})")
    about = [f"{net!r}, {how_many(len(data), 'point')}", *([] if net.piecewise_linear else [SMOOTH])]
    text = "\n".join([*about, "", _measures_table(rows, net.layers)])
    if out is not None:
        write_rows(rows if out.suffix == ".json" else list(map(_flat, rows)), out)
        text += f"\n\nwrote {out}"
    output.result(text, rows)
    if stopped is not None:
        raise stopped


def _usual_measures(
    net: rs.Network, data: Tensor, classes: Tensor | None, given: bool, output: Output
) -> tuple[str, ...]:
    """The measures that are taken if none is named.

    Without labels, or with those of MNIST if they are none of this network, those that need them are left out, aloud.
    """
    why, how = "they need labels", "give those of the points with --labels"
    if classes is not None:
        try:
            checked_labels(classes, net, data)
        except ValueError as error:
            if given:
                raise
            why += f", and those of the MNIST images are not for this network ({error})"
            how = "give points with --points and their labels with --labels"
        else:
            return tuple(usual_measures(net))
    without = usual_measures(net, labels=False)
    left = [name for name in usual_measures(net) if name not in without]
    if left:
        output.remark(f"left out: {', '.join(left)}; {why}. To have them, {how}\n")
    return tuple(without)


@contextmanager
def _told_of_labels() -> Iterator[None]:
    """What is wrong with labels is said together with how to go on."""
    try:
        yield
    except (TypeError, ValueError) as error:
        none = ", ".join(name for name, measure in MEASURES.items() if not measure.needs_labels)
        error.add_note(
            "(give points with --points and labels that name outputs of the network with --labels, or name measures"
            f" that need none: {none})"
        )
        raise


def _measure_row(
    net: rs.Network, data: Tensor, classes: Tensor | None, how: Planned, seed: int, output: Output
) -> dict[str, Any]:
    """One measure as it is planned, as a row of the table."""
    x, y = data[: how.points], None if classes is None else classes[: how.points]
    found = measure_named(how.name).estimate(net, x, y, seed=seed, show_progress=output.bar, **how.options)
    return {**found.to_dict(), "seed": seed}


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row for files without objects in their cells: its options are JSON."""
    return {**row, "options": json.dumps(row["options"])}


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
    _check_draws(draws)
    check_seconds(seconds)
    net, data, _ = _network_and_points(checkpoint, given, points, None, count, output)
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


def _check_draws(draws: int | None) -> None:
    if draws is not None and draws < 1:
        raise ValueError(f"--draws must be at least 1, got {draws}")


def _network_of(checkpoint: Path, given: Given, points: Path | None, labels: Path | None, output: Output) -> nn.Module:
    """The network of a checkpoint; what was assumed is said."""
    check_points_files(points, labels)
    with prints_aside():
        loaded = given.loaded(checkpoint)
    output.remark(loaded.assumed)
    return loaded.network


def _network_and_points(
    checkpoint: Path,
    given: Given,
    points: Path | None,
    labels: Path | None,
    count: int,
    output: Output,
    allow_smooth: bool = False,
) -> tuple[rs.Network, Tensor, Tensor | None]:
    """The network of a checkpoint, the points to measure it at, and their labels if they have any."""
    if count < 1:
        raise ValueError(f"--count must be at least 1, got {count}")
    network = _network_of(checkpoint, given, points, labels, output)
    with prints_aside():
        found = chosen_points(network, points, labels)
        net = rs.trace(network, found.points[:1], allow_smooth=allow_smooth)
    return net, found.points[:count], None if found.labels is None else found.labels[:count]


def _bounds_table(found: list[rs.Bound], terms: bool) -> str:
    """Inequalities as text: left <= right, the ratio and the verdict; below each its terms, if asked for."""
    rows: list[tuple[str, ...]] = [Bounds.HEAD]
    for b in found:
        rows.append(b.in_words)
        for name, term in b.terms.items() if terms else ():
            rows.append((f"  {name}", "", f"{term.value:.5g}", "", f"{term.stderr:.2g}", "", ""))
    return text_table(rows)


def _measures_table(rows: list[dict[str, Any]], layers: int) -> str:
    """Rows of measures as text: the mean with its standard error, then the mean of each layer."""
    head = ["measure", "mean ± s.e.", *(f"layer {k + 1}" for k in range(layers)), ""]
    body = [head]
    for row in rows:
        per_layer = [f"{v:.4g}" for v in row["per_layer"]] if row["per_layer"] else [""] * layers
        points = how_many(row["n"], "point")
        kind = f"exact at each of {points}" if row["exact"] else f"{kind_of_error(row['quantity'])} at {points}"
        said = ", ".join([kind, *options_in_words(row["options"])])
        error, share = row["stderr"], row.get("interval")
        number = with_error(row["mean"], error) if share is None else with_interval(row["mean"], *share)
        body.append([row["label"], number, *per_layer, said])
    return text_table(body)
