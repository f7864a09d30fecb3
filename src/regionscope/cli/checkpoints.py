"""Commands on the checkpoint of a network."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import cyclopts
import matplotlib
import numpy as np
import torch
from torch import Tensor, nn

import regionscope as rs
from regionscope.cli.models import Given
from regionscope.datasets.sets import mnist_sample
from regionscope.measures.table import MEASURES, measure_named
from regionscope.tables import aligned, write_rows
from regionscope.training.checkpoints import load_model

Colour = Literal["class", "gradient", "layer", "pattern", "none"]


def regions(
    checkpoint: Path,
    *,
    out: Path = Path("regions.png"),
    given: Annotated[Given | None, cyclopts.Parameter(name="*")] = None,
    points: Path | None = None,
    through: tuple[int, int, int] | None = None,
    around: int | None = None,
    radius: float = 1.0,
    margin: float = 1.0,
    colour: Colour | None = None,
    up_to_layer: int | None = None,
    max_cells: int = 10_000_000,
    certified: bool = False,
    save: Path | None = None,
    seed: int = 0,
) -> None:
    """Draw the exact linear regions of a network on a plane, and certify them.

    A network with two inputs is drawn on the square of half-side RADIUS around the origin. Others are cut along the
    plane through three points, or a random plane around one; by default through a 0, a 1 and a 2 of MNIST.

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
    through
        The numbers of three of the points.
    around
        The number of one of the points.
    radius
        Half the side of the square around a point.
    margin
        Half the side of the square through three points, in circumradii.
    colour
        What the cells are filled by: the class if there are several outputs, else the norm of the gradient.
    up_to_layer
        Stop after this layer.
    max_cells
        Stop with an error beyond this number of cells.
    certified
        Stop with an error if a sign cannot be proved, however long that takes.
    save
        Write the cells to this .npz file too.
    seed
        Seed of the random plane.
    """
    network = _network_of(checkpoint, given)
    plane, names = _chosen_plane(network, points, through, around, radius, margin, seed)
    matplotlib.use("agg")
    from regionscope.plots.style import figure_of

    cells = rs.plane_cells(
        network, plane, up_to_layer=up_to_layer, max_cells=max_cells, certified=certified,
        show_progress=sys.stderr.isatty(),
    )  # fmt: skip
    axes = cells.plot(colour=colour, labels=names)
    figure_of(axes).savefig(out, dpi=200)
    if save is not None:
        cells.save(save)
    certificate = cells.verify(generator=torch.Generator().manual_seed(seed))
    layers = ", ".join(f"{length:.4g}" for length in cells.boundary_length())
    print(f"{len(cells):,} linear regions, {len(cells.vertices):,} vertices (exact)")
    print(f"length of the boundaries by layer: {layers}")
    exactly = (
        "" if certificate.checked_exactly is None else f", {certificate.checked_exactly} cells in exact arithmetic"
    )
    print(
        f"certificate {'holds' if certificate.holds else 'FAILS'}: area to {certificate.area_error:.0e},"
        f" Euler's formula, every pattern by a forward pass{exactly};"
        f" {certificate.close_decisions:,} signs within the bounds of rounding, {certificate.undecided:,} undecided"
    )
    print(f"wrote {out}")


def measure(
    checkpoint: Path,
    *measures: str,
    given: Annotated[Given | None, cyclopts.Parameter(name="*")] = None,
    points: Path | None = None,
    count: int = 1000,
    sigma: float = MEASURES["local_complexity"].defaults["sigma"],
    draws: int = MEASURES["local_complexity"].defaults["draws"],
    eps: float = MEASURES["local_rank"].defaults["eps"],
    radius: float = MEASURES["boundary_crossings"].defaults["radius"],
    out: Path | None = None,
    seed: int = 0,
) -> None:
    """Measure a network at points: a table with one row a measure, its value per layer and its standard error.

    Parameters
    ----------
    checkpoint
        Weights: .safetensors, or a state dict in .pt or .pth. Loading never executes code.
    measures
        local_complexity, boundary_crossings, local_rank, total_variation, boundary_distance, good_units,
        robust_accuracy, certified_radius (these two with MNIST only, as they need labels), local_region_count; all but
        the last if none is named.
    given
        What network the weights belong to.
    points
        An .npy file with inputs (n, ...); by default the MNIST images that come with the library.
    count
        Take this many points at the most.
    sigma
        Standard deviation of the noise on biases, for local complexity.
    draws
        Draws of that noise.
    eps
        Singular values at least this large count for the local rank.
    radius
        Radius of the neighbourhoods for crossings, half the side of the squares in which regions are counted.
    out
        Write the results to this .json, .csv or .parquet file too.
    seed
        Seed of everything that is drawn.
    """
    net, data, labels = _network_and_points(checkpoint, given, points, count)
    options: dict[str, dict[str, object]] = {
        "local_complexity": {"sigma": sigma, "draws": draws},
        "boundary_crossings": {"radius": radius},
        "local_rank": {"eps": eps},
        "local_region_count": {"radius": radius},
    }
    rows = []
    usual = [n for n, m in MEASURES.items() if n != "local_region_count" and (points is None or not m.needs_labels)]
    for name in measures or usual:
        told = {**options.get(name, {}), "show_progress": sys.stderr.isatty()}
        rows.append(measure_named(name).estimate(net, data, labels, seed=seed, **told).to_dict())
    print(f"{net!r}, {len(data)} points\n")
    print(_measures_table(rows, net.layers))
    if out is not None:
        write_rows(rows, out)
        print(f"\nwrote {out}")


def bounds(
    checkpoint: Path,
    *,
    given: Annotated[Given | None, cyclopts.Parameter(name="*")] = None,
    points: Path | None = None,
    count: int = 100,
    sigma: float = 0.05,
    eta: float | None = None,
    eps: float = 0.1,
    draws: int = 4,
    constants: Literal["product", "data"] = "product",
    terms: bool = False,
    plot: Path | None = None,
    out: Path | None = None,
    seed: int = 0,
) -> None:
    """Hold the inequalities of the papers against a network: both sides and a verdict, as printed and as they hold.

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
        Draws of the noise for each point.
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
    """
    net, data, _ = _network_and_points(checkpoint, given, points, count)
    found = rs.bounds(
        net, data, sigma=sigma, eta=eta, eps=eps, draws=draws, constants_from=constants,
        generator=torch.Generator().manual_seed(seed), show_progress=sys.stderr.isatty(),
    )  # fmt: skip
    print(f"{net!r}, {len(data)} points\n")
    print(_bounds_table(found, terms))
    if plot is not None:
        matplotlib.use("agg")
        from regionscope.plots.scatter import bounds as draw_bounds
        from regionscope.plots.style import figure_of

        figure_of(draw_bounds(found)).savefig(plot, dpi=200)
        print(f"\nwrote {plot}")
    if out is not None:
        write_rows([b.to_dict() for b in found], out)
        print(f"\nwrote {out}")


def _network_of(checkpoint: Path, given: Given | None) -> nn.Module:
    """The network of a checkpoint."""
    return load_model(checkpoint, None if given is None else given.network())


def _network_and_points(
    checkpoint: Path, given: Given | None, points: Path | None, count: int
) -> tuple[rs.Network, Tensor, Tensor | None]:
    """The network of a checkpoint, the points to measure it at, and their labels if they have any."""
    network = _network_of(checkpoint, given)
    data, labels = (part[:count] for part in _chosen_points(network, points))
    return rs.trace(network, data[:1]), data, labels if points is None else None


def _bounds_table(found: list[rs.Bound], terms: bool) -> str:
    """Inequalities as text: left <= right, the ratio and the verdict; below each its terms, if asked for."""
    rows = [["inequality", "form", "left", "right", "± s.e.", "left/right", "verdict"]]
    for b in found:
        verdict = f"{b.verdict}: {b.note}" if b.note else b.verdict
        rows.append(
            [b.reference, b.kind, f"{b.left:.5g}", f"{b.right:.5g}", f"{b.stderr:.2g}", f"{b.ratio:.3g}", verdict]
        )
        for name, term in b.terms.items() if terms else ():
            rows.append([f"  {name}", "", f"{term.value:.5g}", "", f"{term.stderr:.2g}", "", ""])
    return aligned(rows)


def _measures_table(rows: list[dict[str, Any]], layers: int) -> str:
    """Rows of measures as text: the mean with its standard error, then the mean of each layer."""
    head = ["measure", "mean", "± s.e.", *(f"layer {k + 1}" for k in range(layers)), ""]
    body = [head]
    for row in rows:
        per_layer = [f"{v:.4g}" for v in row["per_layer"]] if row["per_layer"] else [""] * layers
        kind = "exact at each point" if row["exact"] else "estimated"
        body.append([row["name"], f"{row['mean']:.5g}", f"{row['stderr']:.2g}", *per_layer, kind])
    return aligned(body)


def _chosen_points(network: nn.Module, file: Path | None) -> tuple[Tensor, Tensor]:
    """Points for a network, and a number to name each by: those of a file, or MNIST with its labels."""
    if file is not None:
        data = torch.from_numpy(np.load(file, allow_pickle=False)).to(_dtype_of(network))
        return data, torch.arange(len(data))
    images, labels = mnist_sample("train")
    for data in (images.flatten(1).to(_dtype_of(network)), images.to(_dtype_of(network))):
        if _takes(network, data[:2]):
            return data, labels
    raise ValueError("the network does not take images of MNIST: give its inputs with --points")


def _dtype_of(network: nn.Module) -> torch.dtype:
    return next((p.dtype for p in network.parameters() if p.is_floating_point()), torch.float32)


@torch.no_grad()
def _takes(network: nn.Module, points: Tensor) -> bool:
    """Whether points have the shape of the network's inputs: it is the network that says so."""
    try:
        network(points)
    except Exception:  # of many kinds, as modules are
        return False
    return True


def _chosen_plane(
    network: nn.Module, file: Path | None, through: tuple[int, int, int] | None, around: int | None,
    radius: float, margin: float, seed: int,
) -> tuple[rs.Plane, list[str]]:  # fmt: skip
    """The plane the options ask for, and the names of the points that it is laid through."""
    origin = torch.zeros(2, dtype=_dtype_of(network))
    if file is None and _takes(network, origin[None]):
        return rs.Plane.coordinates(origin, radius=radius), []
    data, labels = _chosen_points(network, file)
    if around is not None:
        generator = torch.Generator().manual_seed(seed)
        return rs.Plane.around(data[around], radius, generator=generator), [str(int(labels[around]))]
    default = [int((labels == digit).nonzero()[0]) for digit in range(3)] if file is None else [0, 1, 2]
    rows = list(through) if through else default
    return rs.Plane.through(*data[rows], margin=margin), [str(int(labels[i])) for i in rows]
