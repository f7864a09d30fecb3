"""A grey picture of the Stanford bunny, as a function of the plane (LC figure 1)."""

import json
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regionscope.datasets.files import DataFile, contents

MESH = DataFile(
    "bunny/index.js",
    "4c428649f2cabf3c11a0225f58367c503d181b7e2a59223a610c88a5308412b3",
    ("https://cdn.jsdelivr.net/npm/bunny@1.0.1/index.js", "https://unpkg.com/bunny@1.0.1/index.js"),
    "sha256:4c428649f2cabf3c11a0225f58367c503d181b7e2a59223a610c88a5308412b3",
)
LIGHT = np.array([0.4, 0.6, 0.7])


def mesh(root: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The corners (n, 3) and triangles (m, 3) of the bunny; the numbers are read out of the file, which is not run."""
    text = contents(MESH, root).decode()
    corners, triangles = (
        re.search(rf"exports\.{name}=(\[\[[-\d.,e\[\]]*\]\])", text) for name in ("positions", "cells")
    )
    assert corners is not None and triangles is not None, "the hash fixes what the file holds"
    return np.array(json.loads(corners[1])), np.array(json.loads(triangles[1]))


def shades(
    points: NDArray[np.float64], corners: NDArray[np.float64], triangles: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How bright the mesh is at points (n, 2) of [0, 1]², seen along the third axis: (n,) in [0, 1], 0 beside it."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    placed = (corners - (low + high) / 2) / (1.1 * (high - low)[:2].max()) + 0.5
    a, b, c = (placed[triangles[:, k]] for k in range(3))  # (m, 3)
    normal = np.cross(b - a, c - a)
    lit = 0.25 + 0.75 * np.abs(normal @ LIGHT) / np.maximum(
        np.linalg.norm(normal, axis=1) * np.linalg.norm(LIGHT), 1e-12
    )
    shade, depth = np.zeros(len(points)), np.full(len(points), -np.inf)
    for k in np.flatnonzero(np.abs(normal[:, 2]) > 1e-12):  # triangles that are seen from the side cover nothing
        box = np.stack([a[k], b[k], c[k]])[:, :2]
        near = np.flatnonzero(((points >= box.min(axis=0)) & (points <= box.max(axis=0))).all(axis=1))
        u, v = np.linalg.solve(np.stack([b[k] - a[k], c[k] - a[k]])[:, :2].T, (points[near] - a[k, :2]).T)
        z = a[k, 2] + u * (b[k, 2] - a[k, 2]) + v * (c[k, 2] - a[k, 2])
        seen = (u >= 0) & (v >= 0) & (u + v <= 1) & (z > depth[near])
        shade[near[seen]], depth[near[seen]] = lit[k], z[seen]
    return shade


def grid(side: int, shift: float = 0.5) -> NDArray[np.float64]:
    """The centres of side × side pixels in [0, 1]², row by row; with another `shift`, other points of the pixels."""
    ticks = (np.arange(side) + shift) / side
    return np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
