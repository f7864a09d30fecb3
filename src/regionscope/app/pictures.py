"""Small pictures as PNG: images of the data, alone and in sheets, and the cells of a plane."""

from io import BytesIO

import numpy as np
from PIL import Image, ImageDraw

from regionscope.app.library import Images
from regionscope.geometry.plane_cells import PlaneCells
from regionscope.plots.marks import as_images
from regionscope.plots.planes import pattern_colours
from regionscope.types import Floats

COLUMNS = 20  # images a row of a sheet
SIDE = 160  # pixels of the picture of a plane
FINER = 2  # drawn so many times as large


def image_shape(images: Images) -> tuple[int, int, int] | None:
    """Height, width and channels of the points as images; None if they are none."""
    shown = as_images(images.points[:1].double().numpy())
    return None if shown is None else (shown.shape[1], shown.shape[2], 1 if shown.ndim == 3 else 3)


def image_sheet(images: Images, start: int, count: int) -> bytes:
    """Images side by side, row by row, without gaps."""
    shown = _pixels(images, start, count)  # (n, height, width) or (n, height, width, 3)
    columns = min(COLUMNS, len(shown))
    missing = -len(shown) % columns
    padded = np.concatenate([shown, np.full((missing, *shown.shape[1:]), 255, np.uint8)])
    rows = padded.reshape(-1, columns, *shown.shape[1:]).swapaxes(1, 2)  # (rows, height, columns, width, ...)
    return _png(Image.fromarray(rows.reshape(rows.shape[0] * rows.shape[1], -1, *shown.shape[3:])))


def _pixels(images: Images, start: int, count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    shown = as_images(images.points[start : start + count].double().numpy())
    assert shown is not None
    grey = shown.ndim == 3
    return (255 * (1 - shown if grey else shown)).round().astype(np.uint8)  # grey ones dark on light


def plane_picture(cells: PlaneCells) -> bytes:
    """The cells of a plane, a pale colour each, with thin sides."""
    low, high = cells.plane.domain.min(axis=0), cells.plane.domain.max(axis=0)
    side = FINER * SIDE
    places = (cells.vertices - low) / (high - low) * [side, -side] + [0, side]
    colours = (255 * pattern_colours(cells.packed_patterns)).astype(int)
    picture = Image.new("RGB", (side, side), "white")
    pen = ImageDraw.Draw(picture)
    for corners, colour in zip(np.split(places[cells.corners], cells.offsets[1:-1]), colours.tolist(), strict=True):
        pen.polygon(_path(corners), fill=tuple(colour))
    for ends in places[cells.edges.vertices[cells.edges.layer > 0]]:
        pen.line(_path(ends), fill=(90, 90, 110))
    return _png(picture.resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def _path(places: Floats) -> list[tuple[float, float]]:
    return [(x, y) for x, y in places.tolist()]


def _png(picture: Image.Image) -> bytes:
    file = BytesIO()
    picture.save(file, "png")
    return file.getvalue()
