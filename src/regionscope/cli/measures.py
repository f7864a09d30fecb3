"""The command that measures a network at points."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import cyclopts
from torch import Tensor

import regionscope as rs
from regionscope.cli.checkpoints import check_draws, network_and_points
from regionscope.cli.models import TOLD_BY_FILE, Given
from regionscope.cli.output import SPOKEN, TABLES, Output, Spoken, check_file, check_seconds, command_line
from regionscope.geometry.planes import check_size
from regionscope.measures.attacks import box_of
from regionscope.measures.classification import checked_labels
from regionscope.measures.plans import Planned, planned_measures, usual_measures
from regionscope.measures.table import MEASURES, measure_named
from regionscope.results import SMOOTH, kind_of_error, options_in_words, with_error, with_interval
from regionscope.tables import how_many, text_table, write_rows


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
    check_draws(draws)
    check_seconds(seconds)
    classified = points is None or labels is not None
    for name in measures:
        if measure_named(name).needs_labels and not classified:
            raise ValueError(f"{name} needs labels: give those of the points with --labels")
    net, data, classes = network_and_points(checkpoint, given, points, labels, count, output, allow_smooth)
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
