"""Pictures of planes: what is filled, drawn, named and marked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import mlp
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_rgb
from torch import Tensor, nn

import regionscope as rs
from regionscope import plots
from regionscope.plots.marks import SIDE
from regionscope.plots.planes import _usual_colour, decided_pieces
from regionscope.plots.style import BOUNDARY, class_colours, figure_of, layer_colours
from regionscope.types import Floats


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Iterator[None]:
    plt.switch_backend("agg")
    yield
    plt.close("all")


def network(*widths: int, seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    model = mlp(*widths).double()
    for p in model.parameters():
        p.data = torch.randn_like(p) / p.shape[-1] ** 0.5
    return model


def square(model: nn.Module) -> rs.PlaneCells:
    return rs.plane_cells(model, rs.Plane.coordinates(torch.zeros(2, dtype=torch.float64), radius=2.0))


def found(ax: Axes, kind: type) -> list[Any]:
    return [artist for artist in ax.collections if type(artist) is kind]


def names(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def pixels(ax: Axes, places: Floats) -> Floats:
    """The colours (n, 3) that are seen at places of the axes."""
    figure = figure_of(ax)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())
    column, row = ax.transData.transform(places).T
    return np.asarray(image[image.shape[0] - 1 - row.astype(int), column.astype(int), :3] / 255)


@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_the_colour_at_a_point_is_that_of_the_class_the_model_gives_there(outputs: int) -> None:
    model = network(2, 7, 7, outputs)
    u = np.random.default_rng(0).uniform(-1.95, 1.95, (400, 2))
    last = model[-1]
    assert isinstance(last, nn.Linear)
    last.bias.data -= model(torch.from_numpy(u)).detach().mean(dim=0)  # so that each output is largest somewhere
    ax = square(model).plot(colour="class", boundaries=False, decision=False)
    with torch.no_grad():
        out = model(torch.from_numpy(u)).numpy()
    single = outputs == 1
    out = np.pad(out, ((0, 0), (1, 0))) if single else out
    first, second = np.sort(out, axis=1)[:, :-3:-1].T
    clear = first - second > 0.1 * np.ptp(out)  # not within a pixel of a boundary
    expected = class_colours(int(out.argmax(axis=1).max()) + 1)[out.argmax(axis=1)]
    assert clear.sum() > 50 and len(np.unique(out[clear].argmax(axis=1))) > 1
    assert np.abs(pixels(ax, u) - expected)[clear].max() < 0.01
    assert names(ax) == (
        ["output ≤ 0", "output > 0"] if single else [f"class {c}" for c in np.unique(out.argmax(axis=1))]
    )


def test_one_output_is_filled_by_its_gradient_norm_with_a_colour_bar() -> None:
    model = network(2, 6, 6, 1)
    cells = square(model)
    ax = cells.plot()
    (polygons,) = found(ax, PolyCollection)
    centres = torch.from_numpy(cells.centres).requires_grad_()
    (gradient,) = torch.autograd.grad(model(centres).sum(), centres)
    np.testing.assert_allclose(np.asarray(polygons.get_array()), gradient.norm(dim=1).clamp_min(1e-12))
    (bar,) = ax.child_axes
    assert bar.get_ylabel() == "gradient norm along the plane"
    colours = polygons.cmap(np.linspace(0, 1, 50))[:, :3] @ (0.299, 0.587, 0.114)
    assert (np.diff(colours) > 0).all()  # also without colour
    assert names(ax) == ["layer 1", "layer 2"]  # a single output has no decision boundary unless asked


def test_planes_that_share_limits_have_the_same_colours_for_the_same_gradient_norms() -> None:
    cells = [square(network(2, 6, 6, 1)), square(network(2, 9, 9, 1))]
    limits = plots.gradient_limits(*cells)
    drawn = [found(plots.regions(c, limits=limits), PolyCollection)[0] for c in cells]
    assert [d.norm(limits).tolist() for d in drawn] == [[0, 1], [0, 1]]
    norms = np.concatenate([c.gradient_norms for c in cells])
    assert limits == (max(norms.min(), 1e-4 * norms.max()), norms.max())


@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_cells_are_cut_into_pieces_of_one_class_that_tile_them(outputs: int) -> None:
    model = network(2, 20, 20, outputs, seed=3)
    model[-1].bias.data -= model(torch.zeros(1, 2, dtype=torch.float64))[0].detach()  # the decision changes at 0
    cells = square(model)
    places, ends, owner, classes = decided_pieces(cells)
    assert len(ends) > 5
    area = np.zeros(len(cells))
    for corners, cell, k in zip(np.split(places, ends[:-1]), owner, classes, strict=True):
        x, y = corners.T
        area[cell] += (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2
        at = model(cells.plane.points(corners.mean(axis=0, keepdims=True)))[0]
        assert (int(at[0] > 0) if outputs == 1 else int(at.argmax())) == k
    assert np.allclose(area[owner], cells.areas[owner])


def test_a_class_has_the_same_colour_whichever_others_are_seen() -> None:
    model = network(2, 6, 6, 3)
    near, far = (rs.plane_cells(model, rs.Plane.around(torch.zeros(2).double(), r)) for r in (1e-3, 30.0))
    seen = [
        {tuple(c) for c in found(plots.regions(c, colour="class"), PolyCollection)[0].get_facecolor()}
        for c in (near, far)
    ]
    assert len(seen[0]) == 1 and seen[0] < seen[1]


def test_a_picture_says_that_sides_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = square(network(2, 6, 6, 1))
    monkeypatch.setattr(plots.planes, "MANY", len(cells) - 1)
    assert "sides are not drawn" in plots.regions(cells).get_title()


def test_many_cells_up_to_a_layer_are_filled_as_their_sides_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = rs.Plane.coordinates(torch.zeros(2, dtype=torch.float64), radius=2.0)
    cells = rs.plane_cells(network(2, 6, 6, 1), plane, up_to_layer=1)
    assert not found(plots.regions(cells), PolyCollection) and found(plots.regions(cells), LineCollection)
    monkeypatch.setattr(plots.planes, "MANY", len(cells) - 1)
    (polygons,) = found(plots.regions(cells), PolyCollection)
    assert len(np.unique(polygons.get_facecolor(), axis=0)) == len(cells)


def test_a_legend_names_only_what_is_seen() -> None:
    model = network(2, 5, 4, 2)
    with torch.no_grad():
        first, second, last = (module for module in model if isinstance(module, nn.Linear))
        first.bias.fill_(100.0)  # the first layer does not bend here
        second.bias.copy_(-second.weight @ first.bias)
        last.weight.zero_()
        last.bias.copy_(torch.tensor([0.0, 1.0]))  # and one class wins everywhere
    cells = square(model)
    assert set(cells.edges.layer) <= {0, 2}
    assert [name for name in names(cells.plot()) if not name.startswith("class")] == ["layer 2"]


def test_patterns_have_a_colour_each_and_none_has_no_fill() -> None:
    cells = square(network(2, 6, 3))
    (polygons,) = found(cells.plot(colour="pattern"), PolyCollection)
    assert len(np.unique(polygons.get_facecolor(), axis=0)) == len(cells)
    assert not found(cells.plot(colour="none"), PolyCollection)
    with pytest.raises(ValueError, match="colour must be one of class"):
        cells.plot(colour="mood")


@pytest.mark.parametrize("boundaries", [True, False])
@pytest.mark.parametrize(
    ("colour", "words"), [("layer", "the same pattern in layer 1"), ("pattern", "no other meaning")]
)
def test_the_legend_says_what_colours_of_patterns_mean(colour: str, words: str, boundaries: bool) -> None:
    with plots.paper():
        ax = square(network(2, 5, 8, 1)).plot(colour=colour, boundaries=boundaries)
        figure_of(ax).draw_without_rendering()
    legend = ax.get_legend()
    assert legend is not None and words in legend.get_title().get_text().replace("\n", " ")
    seen, whole = legend.get_window_extent(), figure_of(ax).bbox
    assert whole.x0 <= seen.x0 and seen.x1 <= whole.x1 and whole.y0 <= seen.y0
    assert square(network(2, 5, 1)).plot(colour=colour, legend=False).get_legend() is None


@pytest.mark.parametrize("shape", [(1, 2), (2, 3)])
def test_planes_side_by_side_have_their_legends_to_themselves(shape: tuple[int, int]) -> None:
    figure, axes = plt.subplots(*shape, figsize=(9, 5))
    cells = square(network(2, 9, 8, 7, 6, 3))
    for ax, colour in zip(axes.flat, ("class", "gradient", "layer", "pattern", "none", "class"), strict=False):
        cells.plot(ax, colour=colour)
    figure.canvas.draw()
    for ax in axes.flat:
        legend = ax.get_legend()
        for part in (legend, ax.title, ax.xaxis.label):
            seen = part.get_window_extent()
            assert figure.bbox.x0 <= seen.x0 and seen.x1 <= figure.bbox.x1, part
            assert figure.bbox.y0 <= seen.y0 and seen.y1 <= figure.bbox.y1, part
            assert not any(seen.overlaps(other.get_window_extent()) for other in axes.flat), part
        assert legend.get_texts()[0].get_size() >= 5
    figure, own = plt.subplots(1, 2, layout="constrained")
    engine = figure.get_layout_engine()
    cells.plot(own[0])
    assert figure.get_layout_engine() is engine  # one's own stays


def test_by_layer_cells_of_one_first_pattern_are_alike() -> None:
    cells = square(network(2, 5, 8, 2))
    (polygons,) = found(cells.plot(colour="layer"), PolyCollection)
    colours = np.asarray(polygons.get_facecolor())[:, :3]
    first = np.unique(cells.patterns[:, :5], axis=0, return_inverse=True)[1].ravel()
    assert len(np.unique(first)) < len(cells)
    within = [np.ptp(colours[first == k], axis=0).max() for k in np.unique(first)]
    assert max(within) <= 0.25 * 0.36 + 1e-9 < np.ptp(colours, axis=0).max()


def test_sides_have_the_colour_of_their_layer_and_the_decision_is_red() -> None:
    cells = square(network(2, 5, 6, 4, 3))
    ax = cells.plot()
    lines = {to_rgb(c.get_colors()[0]): sum(map(len, c.get_segments())) / 2 for c in found(ax, LineCollection)}
    for k, colour in enumerate(layer_colours(3)):
        assert lines[tuple(colour)] == (cells.edges.layer == k + 1).sum() > 0
    assert lines[to_rgb(BOUNDARY)] == len(cells.decision_boundary().segments) > 0
    assert names(ax)[:4] == ["layer 1", "layer 2", "layer 3", "decision boundary"]
    legend = ax.get_legend()
    assert legend is not None
    shown = [to_rgb(handle.get_color()) for handle in legend.legend_handles[:4]]  # type: ignore[union-attr]
    assert shown == [*map(tuple, layer_colours(3)), to_rgb(BOUNDARY)]
    assert cells.plot(legend=False).get_legend() is None
    assert len(found(cells.plot(boundaries=False, decision=False), LineCollection)) == 0
    assert len({to_rgb(c) for c in layer_colours(17)}) == 17


def test_many_layers_are_named_by_a_few() -> None:
    cells = square(network(2, *[16] * 12, 1, seed=4))
    assert set(cells.edges.layer) == set(range(13))  # all of them are seen
    ax = cells.plot(colour="none")
    assert names(ax) == [f"layer {k}" for k in (1, 4, 7, 9, 12)]


# the data that a plane passes through


def digits(*shape: int) -> Tensor:
    return torch.rand(3, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def marks(ax: Axes) -> Floats:
    (dots,) = found(ax, PathCollection)
    return np.asarray(dots.get_offsets())


@pytest.mark.parametrize("shape", [(784,), (28, 28), (1, 12, 12), (3, 8, 8), (3072,)])
def test_a_plane_through_images_shows_them_beside_their_points(shape: tuple[int, ...], tmp_path: Path) -> None:
    x = digits(*shape)
    model = nn.Sequential(nn.Flatten(), network(x[0].numel(), 4, 3))
    plane = rs.Plane.through(*x)
    cells = rs.plane_cells(model, plane)
    cells.save(tmp_path / "cells.npz")
    for known in (cells, rs.PlaneCells.load(tmp_path / "cells.npz")):
        ax = known.plot()
        np.testing.assert_allclose(marks(ax), plane.project(x), atol=1e-9)
        assert len(ax.child_axes) == 3
        for inset, image in zip(ax.child_axes, x, strict=True):
            shown = np.asarray(inset.images[0].get_array())
            size = {784: (28, 28), 3072: (3, 32, 32)}.get(image.numel(), tuple(image.shape))
            image = image.reshape(size).squeeze(0)
            image = image if image.dim() == 2 else image.movedim(0, 2)
            expected = (image - image.min()) / (image.max() - image.min())
            np.testing.assert_allclose(shown, expected, atol=1e-9)
    assert not cells.plot(images=False).child_axes
    assert len(marks(cells.plot(points=x[:2]))) == 2
    assert len(cells.plot(points=plane.project(x[:1])).child_axes) == 1
    assert len(cells.plot(images=digits(9, 9)).child_axes) == 3


def test_thumbnails_cover_no_point_and_no_other() -> None:
    for seed in range(20):
        x = torch.randn(3, 28, 28, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        x = x * torch.tensor([1.0, 1.0, 0.02 + seed / 10])[:, None, None]
        plane = rs.Plane.through(*x, margin=1.0 + seed / 20)
        ax = rs.plane_cells(lambda x: 1.0 * x.flatten(1)[:, :2], plane).plot()
        low, high = plane.domain.min(axis=0), plane.domain.max(axis=0)
        places = (marks(ax) - low) / (high - low)
        figure_of(ax).canvas.draw()
        boxes = [ax.transAxes.inverted().transform(inset.bbox.corners()) for inset in ax.child_axes]
        for i, box in enumerate(boxes):
            inside = ((places > box.min(axis=0) - 0.01) & (places < box.max(axis=0) + 0.01)).all(axis=1)
            assert not inside.any()
            assert np.ptp(box, axis=0).max() == pytest.approx(SIDE)
            for other in boxes[:i]:
                apart = (box.min(axis=0) >= other.max(axis=0) - 1e-9) | (other.min(axis=0) >= box.max(axis=0) - 1e-9)
                assert apart.any()
        plt.close("all")


def test_a_plane_around_a_point_marks_it_and_one_along_axes_marks_none() -> None:
    model = network(5, 4, 2)
    x = torch.randn(5, dtype=torch.float64)
    around = rs.plane_cells(model, rs.Plane.around(x, 1.0, generator=torch.Generator().manual_seed(0)))
    ax = around.plot(labels=["x"])
    assert marks(ax).tolist() == [[0, 0]] and [t.get_text() for t in ax.texts] == ["x"]
    assert not ax.child_axes  # five numbers are no image
    along = rs.plane_cells(model, rs.Plane.coordinates(x))
    assert not found(along.plot(), PathCollection)
    np.testing.assert_allclose(marks(along.plot(points=x[None])), [[0, 0]], atol=1e-12)


def test_points_outside_are_left_out_with_their_labels() -> None:
    ax = square(network(2, 3, 1)).plot(points=[[0.0, 0.0], [9.0, 0.0], [2.0, 2.0]], labels="abc")
    assert marks(ax).tolist() == [[0, 0], [2, 2]]
    assert [text.get_text() for text in ax.texts] == ["a", "c"]
    assert not found(square(network(2, 3, 1)).plot(points=[[9.0, 0.0]]), PathCollection)


@pytest.mark.parametrize("apart", [0.0, 0.01, 0.7, 1.5])
def test_labels_of_points_that_almost_coincide_are_nearest_to_their_own_or_above_all(apart: float) -> None:
    places = apart * np.array([[0.0, 1.0], [-0.9, -0.5], [0.9, -0.5]])
    cells = rs.plane_cells(network(2, 3, 1), rs.Plane.coordinates(torch.zeros(2, dtype=torch.float64), radius=20))
    ax = cells.plot(points=places, labels=["0", "1", "2"])
    figure_of(ax).canvas.draw()
    at = ax.transData.transform(places)
    middles = np.array([text.get_window_extent().get_points().mean(axis=0) for text in ax.texts])
    if apart < 0.1:  # marks lie on each other
        assert [text.get_text() for text in ax.texts] == ["0, 1, 2"]
        assert np.linalg.norm(middles[0] - at, axis=1).max() < 3 * plt.rcParams["font.size"] * figure_of(ax).dpi / 72
    else:
        nearest = np.linalg.norm(middles[:, None] - at, axis=2).argmin(axis=1)
        assert [ax.texts[k].get_text() for k in range(3)] == [str(i) for i in nearest] == ["0", "1", "2"]
        for text, own in zip(ax.texts, places, strict=True):
            assert text.arrow_patch is not None and text.xy == tuple(own)  # type: ignore[attr-defined]


def test_what_does_not_fit_the_points_is_named() -> None:
    cells = rs.plane_cells(network(5, 3, 1), rs.Plane.through(*torch.eye(5, dtype=torch.float64)[:3]))
    with pytest.raises(ValueError, match=r"\(n, 2\) on the plane or inputs \(n, 5\), got \(2, 3\)"):
        cells.plot(points=torch.zeros(2, 3))
    with pytest.raises(ValueError, match="labels must be one a point, 3; got 1"):
        cells.plot(labels=["x"])
    with pytest.raises(ValueError, match=r"images must be \(n, height, width\)"):
        cells.plot(images=True)
    with pytest.raises(ValueError, match="images must be one a point, 3; got 2"):
        cells.plot(images=torch.zeros(2, 8, 8))
    with pytest.raises(ValueError, match="room for 24 images, got 25"):
        cells.plot(points=np.zeros((25, 2)), images=np.zeros((25, 8, 8)))


# sizes and files


def test_a_papers_pictures_have_its_columns_fonts_and_text(tmp_path: Path) -> None:
    before = plt.rcParams.copy()
    cells = square(network(2, 4, 2))
    for columns, width in ((1, 3.25), (2, 6.75)):
        with plots.paper(columns):
            ax = cells.plot()
            figure = figure_of(ax)
            assert figure.get_figwidth() == width
            legend = ax.get_legend()
            assert legend is not None
            texts = [ax.title, ax.xaxis.label, *ax.get_xticklabels(), *legend.get_texts()]
            assert {text.get_fontsize() for text in texts} == {7, 8}
            for kind in ("pdf", "svg"):
                figure.savefig(tmp_path / f"cells.{kind}")
    assert plt.rcParams == before
    assert ">decision boundary</text>" in (tmp_path / "cells.svg").read_text()  # text, no outlines of letters
    pdf = (tmp_path / "cells.pdf").read_bytes()
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf  # embedded whole
    with pytest.raises(ValueError, match="columns must be 1 or 2, got 3"), plots.paper(3):
        pass


def test_vector_files_hold_very_many_cells_as_dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = square(network(2, 12, 12, 2))
    figure_of(cells.plot()).savefig(tmp_path / "lines.svg")
    monkeypatch.setattr("regionscope.plots.planes.DOTS", 5)
    figure_of(cells.plot()).savefig(tmp_path / "dots.svg")
    drawn = [(tmp_path / name).read_text() for name in ("lines.svg", "dots.svg")]
    assert ["<image" in text for text in drawn] == [False, True]
    assert drawn[0].count("L ") - drawn[1].count("L ") > len(cells)


@pytest.mark.parametrize("classes", [10, 20, 25, 100])
def test_no_two_classes_have_one_colour(classes: int) -> None:
    assert len(np.unique(class_colours(classes).round(3), axis=0)) == classes


def test_so_many_regions_that_no_sides_are_drawn_are_coloured_by_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = rs.plane_cells(mlp(2, 8, 3), rs.Plane.coordinates(torch.zeros(2)))
    assert _usual_colour(cells) == "class"
    monkeypatch.setattr("regionscope.plots.planes.MANY", 1)
    assert _usual_colour(cells) == "gradient"
    cells.plot()
    plt.close("all")


def test_a_line_says_that_its_many_outputs_are_not_named() -> None:
    ax = rs.line_cells(mlp(2, 8, 25), -torch.ones(2), torch.ones(2)).plot()
    assert ax.get_title().endswith("25 outputs\n(beyond 10 they are not named)")
    plt.close("all")
