"""The one binary format of all that is large: a small header in JSON, then arrays; see docs/explorer-format.md."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regionscope.app.windows import Window
from regionscope.files import plain
from regionscope.geometry import maps, traversals
from regionscope.geometry.patterns import pattern_codes
from regionscope.geometry.plane_cells import PlaneCells
from regionscope.geometry.predicates import rounding_bound
from regionscope.plots.planes import decided_pieces
from regionscope.types import Floats

MAGIC = b"RSX1"
STEP = 8  # bytes: arrays begin at multiples
PRECISE = 1e-3  # slopes that rounding may change by more than this share are found by differentiation
Arrays = Mapping[str, NDArray[Any]]


def block(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """A header and arrays in one piece.

    >>> made = block({"kind": "points"}, {"distance": np.zeros(3, np.float32)})
    >>> made[:4], len(made) % 8, sorted(read_block(made)[1])
    (b'RSX1', 0, ['distance'])
    """
    stored = {name: np.ascontiguousarray(array, array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    room = len(_head(header, stored, 10**12))  # offsets are no longer than this
    head = _head(header, stored, room).ljust(room)
    parts = [MAGIC, (room - 8).to_bytes(4, "little"), head[8:]]
    for array in stored.values():
        parts += [array.tobytes(), bytes(-array.nbytes % STEP)]
    return b"".join(parts)


def _head(header: Mapping[str, Any], arrays: Arrays, start: int) -> bytes:
    """Eight bytes and the header, filled up, if the arrays begin at `start`."""
    about = {}
    for name, array in arrays.items():
        about[name] = {"type": array.dtype.name, "shape": list(array.shape), "offset": start}
        start += array.nbytes + -array.nbytes % STEP
    text = json.dumps({**plain(header), "arrays": about}, allow_nan=False, separators=(",", ":")).encode()
    return bytes(8) + text + b" " * (-len(text) % STEP)


def read_block(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The inverse of `block`: the header and the arrays."""
    if data[:4] != MAGIC:
        raise ValueError("this is no block of the explorer: it does not begin with RSX1")
    header = json.loads(data[8 : 8 + int.from_bytes(data[4:8], "little")])
    arrays = {}
    for name, about in header.pop("arrays").items():
        count = int(np.prod(about["shape"], dtype=np.int64))
        kind = np.dtype(about["type"]).newbyteorder("<")
        arrays[name] = np.frombuffer(data, kind, count, about["offset"]).reshape(about["shape"])
    return header, arrays


# cells


def cells_header(cells: PlaneCells) -> dict[str, Any]:
    """What there is to say of cells as a whole."""
    sites = [
        {"name": s.name, "kind": s.kind, "layer": s.layer, "units": s.units, "shape": s.shape} for s in cells.sites
    ]
    return {
        "kind": "cells", "exact": cells.exact, "undecided": cells.undecided, "cells": len(cells),
        "outputs": None if cells.outputs is None else cells.outputs.shape[1],
        "layers": max((site.layer for site in cells.sites), default=0), "sites": sites,
    }  # fmt: skip


def cells_arrays(cells: PlaneCells, window: Window) -> dict[str, NDArray[Any]]:
    """Cells as they are sent: places relative to the window, lengths in its unit."""
    edges, scale = cells.edges, window.scale
    arrays: dict[str, NDArray[Any]] = {
        "vertices": window.relative(cells.vertices).astype(np.float32),
        "offsets": cells.offsets.astype(np.uint32),
        "corners": cells.corners.astype(np.uint32),
        "area": (cells.areas / scale**2).astype(np.float32),
        "pattern": (pattern_codes(cells.packed_patterns) >> np.uint64(32)).astype(np.uint32),
        "layer": _last_cuts(cells),
        "edge_vertices": edges.vertices.astype(np.uint32),
        "edge_cells": edges.cells.astype(np.int32),
        "edge_site": edges.site.astype(np.int16),
        "edge_unit": edges.unit.astype(np.int32),
        "edge_layer": edges.layer.astype(np.uint8),
        "edge_length": (edges.length / scale).astype(np.float32),
    }
    return arrays if cells.outputs is None else arrays | _decision_arrays(cells, window)


def _decision_arrays(cells: PlaneCells, window: Window) -> dict[str, NDArray[Any]]:
    """What the outputs tell."""
    boundary, (places, ends, cell, classes) = cells.decision_boundary(), decided_pieces(cells)
    return {
        "class": cells.classes.astype(np.int16),
        "gradient": _slope_norms(cells).astype(np.float32),
        "decision": window.relative(boundary.segments).astype(np.float32),
        "decision_classes": boundary.classes.astype(np.int16),
        "decision_cell": boundary.cell.astype(np.uint32),
        "piece_offsets": np.array([0, *ends], np.uint32),
        "piece_places": window.relative(places).astype(np.float32),
        "piece_cell": cell.astype(np.uint32),
        "piece_class": classes.astype(np.int16),
    }


def _last_cuts(cells: PlaneCells) -> NDArray[np.uint8]:
    """The highest layer among the sides of each cell."""
    highest = np.zeros(len(cells) + 1, np.uint8)  # the last one is the outside
    for side in cells.edges.cells.T:
        np.maximum.at(highest, side, cells.edges.layer.astype(np.uint8))
    return highest[:-1]


def _slope_norms(cells: PlaneCells) -> Floats:
    """The Frobenius norm of the affine map of each cell along the plane, (n,), as `gradient_norms` without their price.

    The outputs at the corners of a cell tell its map. Where corners are so close, or so much on one line, that
    rounding would show, the network is differentiated, if it is known.
    """
    assert cells.outputs is not None
    norms, widths = traversals.map_norms(cells.vertices, cells.outputs, cells.offsets, cells.corners)
    sure = rounding_bound(cells.outputs) <= PRECISE * norms * widths
    sure &= rounding_bound(cells.vertices) <= PRECISE * widths
    if not sure.all() and cells.network is not None:
        shape = cells.network.input_shape
        points = cells.plane.points(cells.centres[~sure]).reshape(-1, *shape)
        axes, patterns = torch.from_numpy(cells.plane.axes).reshape(2, *shape), cells.patterns_of(~sure)
        slopes = maps.derivatives(cells.network, points, axes, cells.columns, patterns)[1]
        norms[~sure] = np.linalg.norm(slopes, axis=(1, 2))
    return np.asarray(np.nan_to_num(norms, nan=0.0, posinf=0.0))
