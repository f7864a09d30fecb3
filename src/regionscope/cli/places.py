"""Where a network is looked at: points, with labels if they have some, planes through them; and where runs are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from regionscope.cli.output import prints_aside
from regionscope.datasets.sets import mnist_sample
from regionscope.disk import reading
from regionscope.files import read_array
from regionscope.geometry.certificates import CertificateCost, certificate_cost
from regionscope.geometry.forecasts import Forecast, forecast
from regionscope.geometry.planes import USUAL_MARGIN, Plane
from regionscope.geometry.sweep import exact
from regionscope.tracing.trace import as_network

USUAL_RADIUS = 1.0  # of planes around a point
ROUNDS = 6  # in which a part is made smaller at the most
CAUTION = 0.9  # of the side that would just do
LEAST = 0.01  # of the side is left in each round: a plane that nothing fits into is no point yet
TO_SHARE = 0.2  # of the time at least is for what depends on the size


@dataclass(frozen=True)
class _Points:
    """_Points (n, ...), their labels (n,) if they have some, and a name of each."""

    points: Tensor
    labels: Tensor | None
    names: tuple[str, ...]

    def row(self, number: int, option: str) -> int:
        """The number of a point, if there is one."""
        if not 0 <= number < len(self.points):
            raise ValueError(f"{option} must be numbers of points, 0 to {len(self.points) - 1}, got {number}")
        return number


def check_points_files(points: Path | None, labels: Path | None) -> None:
    """An error if they are not there, or do not belong together."""
    if labels is not None and points is None:
        raise ValueError("--labels are those of --points; the images of MNIST have theirs")
    for option, file in (("--points", points), ("--labels", labels)):
        if file is not None and (file.suffix != ".npy" or not file.is_file()):
            raise ValueError(f"{option} must be an .npy file, as numpy.save writes it; there is none at {file}")


def chosen_points(network: nn.Module, file: Path | None, labels: Path | None = None) -> _Points:
    """Points for a network: those of a file, or MNIST with its labels."""
    if file is not None:
        data = _array(file).to(_dtype_of(network))
        if data.numel() == 0 or not data.isfinite().all():
            wrong = f"no points: its shape is {tuple(data.shape)}" if data.numel() == 0 else "NaN or infinity"
            raise ValueError(f"{file} must hold points (n, ...) of finite numbers, and holds {wrong}")
        if data.dim() < 2 and not (data.dim() == 1 and _takes(network, data[:1])):
            raise ValueError(f"{file} must hold points (n, ...), got {tuple(data.shape)}; save one point as x[None]")
        classes = None if labels is None else _array(labels)
        if classes is not None and classes.shape != (len(data),):
            raise ValueError(f"{labels} must hold {len(data)} labels, one a point, got {tuple(classes.shape)}")
        named = range(len(data)) if classes is None else classes.tolist()
        return _Points(data, classes, tuple(map(str, named)))
    images, digits = mnist_sample("train")
    for data in (images.flatten(1).to(_dtype_of(network)), images.to(_dtype_of(network))):
        if _takes(network, data[:2]):
            return _Points(data, digits, tuple(map(str, digits.tolist())))
    raise ValueError("the network does not take images of MNIST: give its inputs with --points")


@prints_aside()
def chosen_plane(
    network: nn.Module, file: Path | None, labels: Path | None, through: tuple[int, int, int] | None,
    around: int | None, radius: float | None, margin: float | None, seed: int,
) -> tuple[Plane, list[str]]:  # fmt: skip
    """The plane the options ask for, of its usual size if none is given, and the names of points it is laid through."""
    if through is not None and around is not None:
        raise ValueError("a plane goes through three points or lies around one: give --through or --around")
    origin = torch.zeros(2, dtype=_dtype_of(network))
    flat = file is None and through is None and around is None and _takes(network, origin[None])
    _check_sizes(radius, margin, centred=flat or around is not None)
    radius, margin = USUAL_RADIUS if radius is None else radius, USUAL_MARGIN if margin is None else margin
    if flat:
        return Plane.coordinates(origin, radius=radius), []
    found = chosen_points(network, file, labels)
    if around is not None:
        row = found.row(around, "--around")
        generator = torch.Generator().manual_seed(seed)
        return Plane.around(found.points[row], radius, generator=generator), [found.names[row]]
    default = [found.names.index(name) for name in "012"] if file is None else [0, 1, 2]
    rows = [found.row(number, "--through") for number in through or default]
    return Plane.through(*found.points[rows], margin=margin), [found.names[row] for row in rows]


def _check_sizes(radius: float | None, margin: float | None, *, centred: bool) -> None:
    """An error if a size is given that planes of the other kind have."""
    if centred and margin is not None:
        raise ValueError("--margin is the size of a plane through three points: around one, give --radius instead")
    if not centred and radius is not None:
        raise ValueError(
            "--radius is the size of a plane around one point: say around which with --around, or give --margin,"
            " the size of a plane through three"
        )


@prints_aside()
def fitting_plane(
    network: nn.Module,
    plane: Plane,
    *,
    up_to_layer: int | None,
    seconds: float,
    memory: int,
    certificate: bool,
    show_progress: bool = False,
) -> tuple[Plane, Forecast, Forecast]:
    """The middle of a plane that can be drawn, in so many seconds, with a certificate or without; about what it has,
    and what the whole plane has."""
    from regionscope.plots.planes import MANY

    net, part = exact(as_network(network, plane.origin[None])), plane
    whole = forecast(net, plane, up_to_layer=up_to_layer, show_progress=show_progress)
    cost = certificate_cost(net, plane, whole, up_to_layer=up_to_layer) if certificate else CertificateCost(0.0, 0.0)
    whole = found = cost.added_to(whole)
    left = max(seconds - cost.exactly, TO_SHARE * seconds)
    for _ in range(ROUNDS):
        growing = found.seconds + cost.each * found.cells
        spare = min(MANY / (found.cells + found.stderr), memory / found.bytes, left / max(growing, 1e-9))
        if spare >= 1:
            break
        part = Plane(plane.origin, plane.axes, CAUTION * max(math.sqrt(spare), LEAST) * part.domain, plane.anchors)
        found = cost.added_to(forecast(net, part, up_to_layer=up_to_layer, show_progress=show_progress))
    return part, found, whole


@prints_aside()
def plane_forecast(
    network: nn.Module, plane: Plane, *, up_to_layer: int | None, certificate: bool, show_progress: bool = False
) -> Forecast:
    """About what a plane has, and takes, with a certificate or without."""
    net = exact(as_network(network, plane.origin[None]))
    found = forecast(net, plane, up_to_layer=up_to_layer, show_progress=show_progress)
    return certificate_cost(net, plane, found, up_to_layer=up_to_layer).added_to(found) if certificate else found


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """The directories of runs, themselves or below."""
    found = {path: sorted(file.parent for file in path.glob("**/run.json")) for path in paths}
    for path, below in found.items():
        if not below:
            raise ValueError(f"there are no runs in {path}; make one with: regionscope train {path}/NAME")
    return list(dict.fromkeys(folder for below in found.values() for folder in below))


def _array(file: Path) -> Tensor:
    found = read_array(file)
    with reading(file, "cannot be read as an array of numbers"):
        return torch.from_numpy(found)


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
