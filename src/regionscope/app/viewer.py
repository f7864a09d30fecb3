"""Looks at networks as they were at steps, on planes, through windows; what was seen is kept for the next look."""

import time
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regionscope.app.cache import Cache
from regionscope.app.library import Exhibit, Images, Library, unknown_step
from regionscope.app.payload import block, cells_arrays, cells_header
from regionscope.app.problems import Problem
from regionscope.app.rasters import boundary_raster, complexity_raster
from regionscope.app.windows import Window
from regionscope.geometry.complexes import TooManyCells
from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import USUAL_MARGIN, Plane, check_resolved
from regionscope.geometry.sweep import exact
from regionscope.tracing.network import Network
from regionscope.tracing.trace import as_network

BLOCKS = 256 << 20  # bytes that are kept of what was sent
NETWORKS = 512 << 20  # the same of networks
MEMORY = 1 << 30  # bytes that one look may take
DATA_SETS = 3  # that are kept
LISTS = 1000
Check = Callable[[], None]


class Viewer:
    """Cells, densities and points of the exhibits of a library."""

    def __init__(self, library: Library, *, live: bool = True) -> None:
        self.library, self.live = library, live  # whether it is told when runs go on
        self.blocks = Cache[bytes](BLOCKS, len)
        self._networks = Cache[Network](NETWORKS, _network_bytes)
        self._images = Cache[Images](DATA_SETS, lambda images: 1)
        self._planes = Cache[Plane](LISTS, lambda plane: 1)
        self._plane_names = Cache[dict[str, list[int]]](LISTS, lambda names: 1)

    # what there is

    def images(self, exhibit: Exhibit) -> Images | None:
        """The points to choose from, if they are known."""
        load = exhibit.images
        return None if load is None else self._images.get((exhibit.id, exhibit.version), load)

    def plane_names(self, exhibit: Exhibit) -> dict[str, list[int]]:
        """The planes to begin with, by their ids, and the steps at which each can be seen without the network."""
        steps = exhibit.steps
        return self._plane_names.get(
            (exhibit.id, exhibit.version, len(steps)), partial(self._planes_at, exhibit, steps)
        )

    def _planes_at(self, exhibit: Exhibit, steps: list[int]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {f"given:{name}": [] for name in exhibit.planes}
        for step in steps if exhibit.run is not None else ():
            for name in self.library.check(exhibit, step).planes(step):
                found.setdefault(f"recorded:{name}", []).append(step)
        if exhibit.model is not None and self._is_planar(exhibit):
            found["coordinates"] = []
        if exhibit.model is not None and exhibit.images is not None and not found:
            found["through:0,1,2"] = []
        return found

    def plane(self, exhibit: Exhibit, name: str) -> Plane:
        """A plane by its id."""
        return self._planes.get((exhibit.id, exhibit.version, name), partial(self._plane, exhibit, name))

    def _plane(self, exhibit: Exhibit, name: str) -> Plane:
        kind, _, rest = name.partition(":")
        if kind == "given" and rest in exhibit.planes:
            return exhibit.planes[rest]
        if kind == "recorded" and (steps := self.plane_names(exhibit).get(name)):
            return self._recorded_cells(exhibit, steps[0], rest).plane
        if name == "coordinates" and self._is_planar(exhibit):
            return _whole_plane(self.images(exhibit))
        if kind == "through" and (images := self.images(exhibit)) is not None:
            return _plane_through(images, rest)
        known = ", ".join(self.plane_names(exhibit)) or "none"
        raise Problem("unknown", f"{exhibit.id} has no plane {name[:80]!r}; there are {known}, and through:I,J,K")

    def network(self, exhibit: Exhibit, step: int, plane: Plane) -> Network:
        """The network as it was at a step, traced and in float64."""
        model = exhibit.model
        if model is None:
            raise Problem("refused", f"{exhibit.id} cannot be computed anew: {exhibit.reason or 'no model is known'}")
        if exhibit.run is not None:
            self.library.check(exhibit, step)
        elif step not in exhibit.steps:
            raise unknown_step(exhibit, step)
        key = (exhibit.id, exhibit.version, step, tuple(plane.origin.shape))
        return self._networks.get(key, lambda: exact(as_network(model(step), plane.origin[None])))

    # what is seen

    def cells(
        self, exhibit: Exhibit, step: int, name: str, window: Window | None, max_cells: int, check: Check
    ) -> bytes:
        """The cells in a window; beyond `max_cells`, where the boundaries are dense."""
        key = ("cells", exhibit.id, exhibit.version, step, name, window, max_cells)
        return self.blocks.get(key, partial(self._cells, exhibit, step, name, window, max_cells, check))

    def density(
        self, exhibit: Exhibit, step: int, name: str, window: Window | None, sigma: float, check: Check
    ) -> bytes:
        """The density of local complexity in a window."""
        key = ("density", exhibit.id, exhibit.version, step, name, window, sigma)
        return self.blocks.get(key, partial(self._density, exhibit, step, name, window, sigma, check))

    def points(self, exhibit: Exhibit, name: str) -> bytes:
        """Where all images are, seen from a plane, and how far from it."""
        return self.blocks.get(("points", exhibit.id, exhibit.version, name), partial(self._points, exhibit, name))

    def _cells(
        self, exhibit: Exhibit, step: int, name: str, window: Window | None, max_cells: int, check: Check
    ) -> bytes:
        began = time.perf_counter()
        recorded = exhibit.model is None
        plane = self.plane(exhibit, name)
        seen = _checked_window(window, plane)
        if recorded:
            if window is not None and window != Window.of(plane):
                raise Problem("refused", f"{exhibit.id} has this plane as it was recorded only: {exhibit.reason}")
            cells = self._recorded_cells(exhibit, step, name.removeprefix("recorded:"))
        else:
            net = self.network(exhibit, step, plane)
            try:
                cells = plane_cells(net, seen.on(plane), max_cells=max_cells, memory=MEMORY, check=check)
            except TooManyCells:
                arrays = boundary_raster(net, plane, seen, check)
                header = _raster_header("boundary_density", "boundaries, length per area", arrays, max_cells)
                return self._block(exhibit, step, name, seen, header, arrays, net.output_shape, began)
        outputs = () if cells.outputs is None else cells.outputs.shape[1:]
        header = cells_header(cells) | {"recorded": recorded}
        return self._block(exhibit, step, name, seen, header, cells_arrays(cells, seen), outputs, began)

    def _density(
        self, exhibit: Exhibit, step: int, name: str, window: Window | None, sigma: float, check: Check
    ) -> bytes:
        began, plane = time.perf_counter(), self.plane(exhibit, name)
        seen, net = _checked_window(window, plane), self.network(exhibit, step, plane)
        arrays = complexity_raster(net, plane, seen, sigma, check)
        header = _raster_header("local_complexity", f"local complexity density, noise {sigma:g}", arrays, None)
        return self._block(exhibit, step, name, seen, header, arrays, net.output_shape, began)

    def _block(
        self, exhibit: Exhibit, step: int, name: str, window: Window, header: dict[str, Any], arrays: dict[str, Any],
        output_shape: tuple[int, ...], began: float,
    ) -> bytes:  # fmt: skip
        """A block with what is said of each."""
        about = {"run": exhibit.id, "step": step, "plane": name, "window": window.to_dict()}
        classes = _class_names(self.images(exhibit), prod(output_shape)) if output_shape else []
        seconds = time.perf_counter() - began
        return block(header | about | {"classes": classes, "seconds": round(seconds, 4)}, arrays)

    def _points(self, exhibit: Exhibit, name: str) -> bytes:
        images = self.images(exhibit)
        if images is None:
            raise Problem("unknown", f"the data of {exhibit.id} are not known")
        plane = self.plane(exhibit, name)
        flat = images.points.flatten(1).double()
        if flat.shape[1] != plane.origin.numel():
            raise Problem("refused", f"the images have {flat.shape[1]} entries, the plane {plane.origin.numel()}")
        places = plane.project(flat)
        distances = np.linalg.norm((flat - plane.points(places).flatten(1)).numpy(), axis=1)
        labels = torch.full((len(flat),), -1) if images.labels is None else images.labels
        arrays = {
            "place": places, "distance": distances.astype(np.float32), "class": labels.numpy().astype(np.int32)
        }  # fmt: skip
        return block({"kind": "points", "run": exhibit.id, "plane": name, "total": len(flat)}, arrays)

    def _is_planar(self, exhibit: Exhibit) -> bool:
        """Whether inputs have two entries, as a run says, or the data."""
        shape = exhibit.run.input_shape if exhibit.run is not None else None
        if shape is None and (images := self.images(exhibit)) is not None:
            shape = images.points.shape[1:]
        return shape is not None and prod(shape) == 2

    def _recorded_cells(self, exhibit: Exhibit, step: int, name: str) -> PlaneCells:
        run = self.library.check(exhibit, step)
        if name not in run.planes(step):
            raise Problem("unknown", f"{exhibit.id} has no plane {name[:80]!r} at step {step}")
        return run.plane(step, name)


def warm_up() -> None:
    """Have the compiled kernels loaded before somebody waits for them."""
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    cells = plane_cells(net, Plane.coordinates(torch.zeros(2)))
    cells_arrays(cells, Window.of(cells.plane))


def _class_names(images: Images | None, outputs: int) -> list[str]:
    """Of a network with so many outputs."""
    if outputs == 1:
        return ["output ≤ 0", "output > 0"]
    known = images.classes if images is not None else ()
    return list(known) if len(known) == outputs else [str(k) for k in range(outputs)]


def _checked_window(window: Window | None, plane: Plane) -> Window:
    """The window, or the whole plane; a problem if it cannot be looked through."""
    if window is None:
        return Window.of(plane)
    window.check(plane)
    try:
        check_resolved(min(window.hx, window.hy), plane.points(window.centre[None]))
    except ValueError as error:
        raise Problem("refused", str(error)) from None
    return window


def _raster_header(quantity: str, label: str, arrays: dict[str, Any], more_than: int | None) -> dict[str, Any]:
    return {
        "kind": "raster", "quantity": quantity, "label": label, "exact": False, "estimated": True,
        "more_than": more_than, "size": arrays["values"].shape,
    }  # fmt: skip


def _network_bytes(net: Network) -> int:
    return sum(tensor.nbytes for tensor in net.program.constants.values())


def _whole_plane(images: Images | None) -> Plane:
    """The plane of inputs with two entries, around the data."""
    if images is None:
        return Plane.coordinates(torch.zeros(2))
    points = images.points.double()
    low, high = points.amin(dim=0), points.amax(dim=0)
    radius = USUAL_MARGIN * float((high - low).max()) / 2
    return Plane.coordinates((low + high) / 2, radius=radius if radius > 0 else 1.0)


def _plane_through(images: Images, text: str) -> Plane:
    """The plane through three images, by their numbers."""
    parts = text.split(",")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise Problem("malformed", f"a plane is through three images, such as through:0,1,2; got {text[:80]!r}")
    rows = [int(part) for part in parts]
    if max(rows) >= len(images.points):
        raise Problem("unknown", f"there is no image {max(rows)}; there are 0 to {len(images.points) - 1}")
    chosen: list[Tensor] = [images.points[row] for row in rows]
    try:
        return Plane.through(*chosen, margin=USUAL_MARGIN)
    except ValueError as error:
        raise Problem("refused", str(error)) from None
