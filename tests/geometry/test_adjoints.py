"""What derivatives say of errors is true, and cells are the same with rows that are far off, if that is told."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from wide_models import MODELS

import regionscope as rs
from regionscope.geometry import bases
from regionscope.geometry.bases import Basis
from regionscope.geometry.complexes import Outcome
from regionscope.geometry.laws import Law
from regionscope.geometry.predicates import CARRIED, ERROR, FLOOR, GAIN
from regionscope.geometry.rounding import Spread
from regionscope.geometry.swept import Swept
from regionscope.types import Floats

WRONG = 1e-4  # the norm of what is added to the state at every site
ROWS = 4.0  # one over the smallest norm of the row of a unit


@pytest.fixture
def sloppy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows to which something is added at every site, and laws that say so, with norms that are of no use."""
    after, numbers, random = Basis.after, Swept._numbers, torch.Generator().manual_seed(0)

    def disturbed(self: Basis, *given: object) -> Basis:
        made = after(self, *given)  # type: ignore[arg-type]
        noise = [torch.randn(rows.shape[1], generator=random, dtype=torch.float64) for rows in made.rows]
        size = torch.cat(noise).norm()
        rows = [
            torch.cat([(r[0] + 0.99 * WRONG * n / size)[None], r[1:]]) for r, n in zip(made.rows, noise, strict=True)
        ]
        return replace(made, rows=tuple(rows))

    def told(self: Swept, measure: Spread) -> Floats:
        found = numbers(self, measure)
        found[[FLOOR, FLOOR + 1]] += WRONG * ROWS
        found[GAIN] *= 1e6
        return found

    monkeypatch.setattr(bases, "WIDE", 0)
    monkeypatch.setattr(Basis, "after", disturbed)
    monkeypatch.setattr(Swept, "_numbers", told)


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_are_far_off_give_the_same_cells(name: str, request: pytest.FixtureRequest) -> None:
    torch.manual_seed(3)
    make, shape = MODELS[name]
    model, x = make().eval(), torch.randn(shape)
    plane = rs.Plane.around(x, 1.5, generator=torch.Generator().manual_seed(2))
    whole = rs.plane_cells(model, plane)
    request.getfixturevalue("sloppy")
    cells = rs.plane_cells(model, plane)
    assert cells.close_decisions > 0 == cells.undecided
    number = whole.locate(cells.centres)
    assert sorted(number) == list(range(len(whole)))
    assert (cells.patterns == whole.patterns[number]).all()


@pytest.mark.usefixtures("sloppy")
def test_no_value_is_farther_off_than_derivatives_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """By rational arithmetic at the places where vertices are computed to be."""
    torch.manual_seed(0)
    sizes = (4, 16, 16, 16, 16)
    layers = [nn.Linear(*pair).double() for pair in pairwise(sizes)]
    model = nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))
    plane = rs.Plane.around(torch.ones(4), 0.5, generator=torch.Generator().manual_seed(0))
    shares = list[float]()

    def compared(self: Swept, outcome: Outcome, law: Law, following: Floats, *, whole: bool) -> None:
        cut = outcome.made
        doubt = cut.vertices.doubt[: outcome.vertices].copy()
        follow(self, outcome, law, following, whole=whole)
        assert self.summed is not None and self.among is not None
        z = _exactly(layers, plane, self.state[1].table(self.vertices)[:, 1:3], len(shares))[:, self.among.numbers]
        off = np.abs((cut.values[: self.vertices] - z).astype(np.float64))
        assert (off <= self.summed.away).all()
        assert not shares or cut.rule.law[CARRIED] < 1e-3 * (cut.rule.law[GAIN] * doubt[:, ERROR]).max()
        shares.append(float((off / self.summed.away).max()))

    follow = Swept.follow
    monkeypatch.setattr(Swept, "follow", compared)
    assert rs.plane_cells(model, plane).exact
    assert len(shares) == len(layers)
    assert min(shares) > 1e-3  # what is added makes up the bounds, rounding does not


def _exactly(layers: list[nn.Linear], plane: rs.Plane, places: Floats, number: int) -> NDArray[np.object_]:
    """What enters an activation at places of a plane, in rational arithmetic."""

    def exact(array: object) -> NDArray[np.object_]:
        return np.asarray(np.vectorize(Fraction, otypes=[object])(np.asarray(array, np.float64)))

    x = exact(plane.origin.flatten().numpy()) + exact(places) @ exact(plane.axes)
    for layer in layers[: number + 1]:
        z = x @ exact(layer.weight.detach().numpy()).T + exact(layer.bias.detach().numpy())
        x = z * (z > 0)
    return np.asarray(z)
