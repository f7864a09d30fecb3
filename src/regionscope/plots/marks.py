"""Data points on a plane, and pictures of them."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import scipy
import torch
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from regionscope.geometry.planes import Plane
from regionscope.points import as_array
from regionscope.types import Floats

FLAT = {784: (28, 28), 3072: (3, 32, 32)}  # inputs that are images laid out in a row: MNIST, CIFAR-10
THUMBNAILS = 8  # of more points there are none unless they are asked for
RIM = 1e-6  # of the domain: points so near its rim are inside
MARK = 28**0.5  # points across
CLOSE = 3.0  # sizes of letters: points so near each other have their labels away from each other
LETTER = 0.65  # of its size is the width of a letter, about
SIDE, GAP = 0.14, 0.012  # of a thumbnail and around it, as a part of the axes


def draw_points(
    plane: Plane, ax: Axes, points: ArrayLike | Tensor | None, labels: Sequence[object] | None,
    images: ArrayLike | Tensor | bool | None,
) -> None:  # fmt: skip
    """Mark points of a plane, with labels and thumbnails; see `regions`. Points outside the domain are left out."""
    places, inputs = _coordinates_and_inputs(plane, points)
    shown = _chosen_images(inputs, images)
    for name, given in (("labels", labels), ("images", shown)):
        if given is not None and len(given) != len(places):
            raise ValueError(f"{name} must be one a point, {len(places)}; got {len(given)}")
    low, high = plane.domain.min(axis=0), plane.domain.max(axis=0)
    inside = np.flatnonzero((np.abs(places - (low + high) / 2) <= 0.5 * (1 + RIM) * (high - low)).all(axis=1))
    if len(inside) == 0:
        return
    x, y = places[inside].T
    ax.scatter(x, y, s=MARK**2, c="black", edgecolors="white", linewidths=0.9, zorder=5, clip_on=False)
    if shown is not None:
        _draw_thumbnails(places[inside], shown[inside], ax)
    if labels is not None:
        _draw_labels(places[inside], [str(labels[int(i)]) for i in inside], ax)


def _draw_labels(places: Floats, labels: list[str], ax: Axes) -> None:
    """Words beside points, towards the middle of them; of points close together away from it, or above all in a row."""
    size = float(plt.rcParams["font.size"])
    at = ax.transData.transform(places) * 72 / ax.figure.dpi
    centre = at.mean(axis=0) if len(at) > 1 else at[0] - 1
    widths = LETTER * size * np.array([len(label) for label in labels])
    for near in _groups(at, CLOSE * size + widths.max()):
        if len(near) == 1:
            _draw_label(labels[near[0]], places[near[0]], np.sign(centre - at[near[0]]) * 1.1 * size, ax)
            continue
        offsets = _offsets_outwards(at[near], widths[near], size)
        if offsets is not None:
            for k, offset in zip(near, offsets, strict=True):
                _draw_label(labels[k], places[k], offset, ax, led=True)
            continue
        words = ", ".join(dict.fromkeys(labels[k] for k in near))
        top = near[at[near, 1].argmax()]
        _draw_label(words, places[top], np.array([at[near, 0].mean() - at[top, 0], 1.3 * size]), ax)


def _draw_label(words: str, place: Floats, offset: Floats, ax: Axes, *, led: bool = False) -> None:
    """Words so many points from a place, perhaps with a line that leads to it."""
    ax.annotate(
        words, tuple(place), xytext=tuple(offset), textcoords="offset points", ha="center", va="center",
        fontweight="bold", zorder=6, path_effects=[withStroke(linewidth=2.5, foreground="white")],
        arrowprops={"arrowstyle": "-", "lw": 0.8, "shrinkA": 0, "shrinkB": 0} if led else None,
    )  # fmt: skip


def _groups(at: Floats, reach: float) -> list[NDArray[np.intp]]:
    """The numbers of points that are nearer to each other than that, directly or by others between."""
    linked = np.linalg.norm(at[:, None] - at, axis=2) < reach
    count, group = scipy.sparse.csgraph.connected_components(linked, directed=False)
    return [np.flatnonzero(group == k) for k in range(count)]


def _offsets_outwards(at: Floats, widths: Floats, size: float) -> Floats | None:
    """Where labels of these widths go, away from the middle of points, if each is nearest to its own and on no other.

    None if some are not, or marks cannot be told from each other. All lengths are in points.
    """
    apart = np.linalg.norm(at[:, None] - at, axis=2) + np.diag(np.full(len(at), np.inf))
    if apart.min() < MARK / 2:
        return None
    outwards = at - at.mean(axis=0)
    outwards /= np.maximum(np.linalg.norm(outwards, axis=1, keepdims=True), 1e-9)
    halves = np.column_stack([widths, np.full(len(at), size)]) / 2
    offsets = outwards * (1.2 * size + halves)
    centres = at + offsets
    gaps = np.abs(centres[:, None] - at) - halves[:, None]  # (labels, points, 2)
    far = np.linalg.norm(np.maximum(gaps, 0), axis=2)
    own = np.diag(far)
    overlap = (np.abs(centres[:, None] - centres) < halves[:, None] + halves).all(axis=2)
    alone = overlap.sum() == len(at) and (far + np.diag(np.full(len(at), np.inf)) > own[:, None]).all()
    return offsets if alone else None


def _coordinates_and_inputs(plane: Plane, points: ArrayLike | Tensor | None) -> tuple[Floats, Floats]:
    """The coordinates of points on the plane (n, 2), and the points as inputs (n, ...)."""
    if points is None:
        return plane.anchors, plane.points(plane.anchors).numpy()
    given = as_array(points)
    if given.ndim == 2 and given.shape[1] == 2:
        return given, plane.points(given).numpy()
    if given.shape[1:] != tuple(plane.origin.shape):
        raise ValueError(
            f"points must be (n, 2) on the plane or inputs (n, {', '.join(map(str, plane.origin.shape))}),"
            f" got {given.shape}"
        )
    return plane.project(torch.from_numpy(given)), given


def _chosen_images(inputs: Floats, images: ArrayLike | Tensor | bool | None) -> Floats | None:
    """The pictures to show of points: `images`, or the inputs themselves if they are few and images."""
    if images is False or (images is None and len(inputs) > THUMBNAILS):
        return None
    given = inputs if images is None or images is True else as_array(images)
    shown = as_images(given)
    if shown is None and images is not None:
        raise ValueError(f"images must be (n, height, width) or (n, 1 or 3, height, width), got {given.shape}")
    return shown


def as_images(inputs: Floats) -> Floats | None:
    """Inputs as images (n, height, width) or (n, height, width, 3), from 0 to 1 each; None if they are none."""
    shape = FLAT.get(inputs.shape[1], ()) if inputs.ndim == 2 else inputs.shape[1:]
    if len(shape) not in (2, 3) or min(shape[-2:]) < 4 or (len(shape) == 3 and shape[0] not in (1, 3)):
        return None
    images = inputs.reshape(len(inputs), *shape)
    if len(shape) == 3:
        images = images[:, 0] if shape[0] == 1 else np.moveaxis(images, 1, 3)
    axes = tuple(range(1, images.ndim))
    low, high = images.min(axis=axes, keepdims=True), images.max(axis=axes, keepdims=True)
    return np.asarray((images - low) / np.where(high > low, high - low, 1.0))


def _draw_thumbnails(places: Floats, images: Floats, ax: Axes) -> None:
    """Images along the rim of the axes, each near its point and on none of them, with a line between."""
    low, high = (np.array(pair) for pair in zip(ax.get_xlim(), ax.get_ylim(), strict=True))
    marked = (places - low) / (high - low)
    for place, image, corner in zip(marked, images, _free_corners(marked), strict=True):
        nearest = np.clip(place, corner, corner + SIDE)
        ends = low + np.stack([place, nearest]) * (high - low)
        ax.plot(*ends.T, color="black", lw=0.8, zorder=4, path_effects=[withStroke(linewidth=2.0, foreground="white")])
        inset = ax.inset_axes((*corner, SIDE, SIDE), zorder=4.5)
        inset.imshow(image, cmap="gray_r" if image.ndim == 2 else None, vmin=0, vmax=1, interpolation="nearest")
        inset.set(xticks=[], yticks=[])


def _free_corners(marked: Floats) -> Floats:
    """The lower left corners of a place for each point, in parts of the axes: the nearest that cover no point."""
    along = np.linspace(GAP, 1 - GAP - SIDE, 7)
    slots = np.array([(x, y) for x in along for y in along if x in along[[0, -1]] or y in along[[0, -1]]])
    beyond = np.abs(slots[:, None] + SIDE / 2 - marked).max(axis=2) - SIDE / 2  # (slots, n), below 0 if it is covered
    far = np.linalg.norm(slots[:, None] + SIDE / 2 - marked, axis=2) + 10.0 * (beyond.min(axis=1) < 3 * GAP)[:, None]
    if len(marked) > len(slots):
        raise ValueError(f"there is room for {len(slots)} images, got {len(marked)}; say images=False")
    return np.asarray(slots[scipy.optimize.linear_sum_assignment(far.T)[1]])
