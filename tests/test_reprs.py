"""What is seen of a thing that is printed, or is the last line of a notebook's cell."""

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import mlp

import regionscope as rs

POINTS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
PLANE = rs.Plane.through(*POINTS[:3])


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return mlp(3, 8, 8, 2)


def monitor(folder: Path) -> rs.Monitor:
    with rs.Monitor(network(), {"train": POINTS}, measures=["total_variation"], run=folder / "run") as made:
        for step in (0, 5):
            made(step)
    return made


THINGS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "plane": (lambda _: PLANE, r"Plane\(inputs: \(3,\); domain: \[-.*\] × \[.*\]; corners: 4; marked points: 3\)"),
    "dataset": (
        lambda _: rs.dataset("mnist-sample"),
        r"Dataset\(name: mnist-sample; train: 1,000; test: 1,000; inputs: \(1, 28, 28\) in \[0, 1\]; classes: 10\)",
    ),
    "run": (
        lambda folder: rs.Run.open(monitor(folder).run.path),  # type: ignore[union-attr]
        r"Run\(path: .*run; .*; records: 2, from step 0 to 5; measures: total_variation; probes: train\)",
    ),
    "monitor": (
        monitor,
        r"Monitor\(model: .*; probes: train \(6 points\); measures: total_variation; steps: all; run: .*; so far: 2",
    ),
    "record": (
        lambda _: rs.Monitor(network(), {"train": POINTS}, measures=["total_variation"])(3, loss=0.25),
        r"Record\(step: 3; loss: 0.25; train/total_variation: [\d.]+ ± [\d.]+\)",
    ),
    "cells": (
        lambda _: rs.plane_cells(network(), PLANE),
        r"PlaneCells\(\d+ cells, \d+ vertices, \d+ edges\)",
    ),
    "line": (
        lambda _: rs.line_cells(network(), POINTS[0], POINTS[1]),
        r"LineCells\(\d+ cells, length [\d.]+\)",
    ),
    "bound": (
        lambda _: rs.bounds(network(), POINTS, sigma=0.1)[0],
        r"Bound\(.*: .* <= .*, \w+\)",
    ),
    "certificate": (
        lambda _: rs.plane_cells(network(), PLANE).verify(),
        r"Certificate\(verdict: holds; cells: \d+; checked exactly: 8; undecided: 0\)",
    ),
    "line certificate": (
        lambda _: rs.line_cells(network(), POINTS[0], POINTS[1]).verify(),
        r"LineCertificate\(verdict: holds; cells: \d+; ",
    ),
    "affinity": (
        lambda _: rs.trace(network(), POINTS).verify(POINTS),
        r"Affinity\(verdict: holds; reason: affine to rounding at all 6 points\)",
    ),
    "estimate": (lambda _: rs.total_variation(network(), POINTS), r"Estimate\(total variation = .* ± .*, n = 6, "),
    "deformation": (
        lambda _: rs.neighbourhood_deformation(network(), POINTS, radius=0.5),
        r"Deformation\(n = 6, eccentricity",
    ),
    "confirmation": (
        lambda _: rs.confirmed_crossings(network(), POINTS[:1], radius=0.5),
        r"Confirmation\(100.0% of \d+ crossings",
    ),
    "comparison": (
        lambda _: rs.compare_complexities(network(), POINTS, radius=0.5),
        r"Comparison\(points: 6; local complexity and boundary crossings: ",
    ),
    "cost": (lambda _: rs.representation_cost(network()), r"RepresentationCost\(cost: .*; norm: .*; imbalance: "),
    "univariate": (
        lambda _: rs.univariate_certificate(mlp(1, 8, 1), torch.linspace(-1, 1, 200)[:, None]),
        r"UnivariateCertificate\(verdict: holds; points: 200; certified: \d+; mean radius: ",
    ),
    "network": (lambda _: rs.trace(network(), POINTS), r"Network\(2 sites, 16 units, 2 layers, piecewise linear\)"),
}


class Cells(HTMLParser):
    """The text of a page, and an error for a tag that is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.mark.parametrize("name", THINGS)
def test_things_say_in_a_line_and_in_a_table_what_they_are(name: str, tmp_path: Path) -> None:
    make, line = THINGS[name]
    thing = make(tmp_path)
    assert len(repr(thing)) < 300 + len(str(tmp_path)) and "\n" not in repr(thing)
    assert re.match(line, repr(thing)), repr(thing)
    assert len(Cells(thing._repr_html_()).text) > 3


def test_words_in_lines_are_lines_in_notebooks(tmp_path: Path) -> None:
    found = rs.phases(range(8), [9, 5, 1, 3, 6, 9, 4, 1])
    for thing in (rs.trace(network(), POINTS).describe(), found, monitor(tmp_path).cost):
        assert Cells(thing._repr_html_()).text == [str(thing)] and thing._repr_html_().startswith("<pre>")
    described = rs.trace(network(), POINTS).describe()
    assert isinstance(described, str) and repr(described) == str(described) and described.count("\n") > 5


def test_inequalities_are_a_list_and_a_table() -> None:
    found = rs.bounds(network(), POINTS, sigma=0.1)
    text = Cells(found._repr_html_()).text  # type: ignore[attr-defined]
    assert isinstance(found, list) and {bound.reference for bound in found} <= set(text)


def test_a_certificate_names_what_is_wrong() -> None:
    found = rs.plane_cells(network(), PLANE).verify()
    wrong = replace(found, wrong_inside=3, euler=2, area_error=0.5)
    assert not wrong.holds and wrong.wrong == {"wrong_inside": 3, "euler": 2, "area_error": 0.5}
    assert "verdict: does not hold" in repr(wrong) and "wrong inside: 3" in repr(wrong)
    line = replace(rs.line_cells(network(), POINTS[0], POINTS[1]).verify(), not_in_order=1)
    assert not line.holds and "not in order: 1" in repr(line)


def test_names_of_files_do_not_become_tags(tmp_path: Path) -> None:
    assert "&lt;b&gt;" in monitor(tmp_path / "<b>")._repr_html_()


def test_a_line_in_one_region_has_1_cell() -> None:
    cells = rs.line_cells(torch.nn.Linear(3, 1), torch.zeros(3), torch.ones(3))
    assert repr(cells) == "LineCells(1 cell, length 1.73205)"
