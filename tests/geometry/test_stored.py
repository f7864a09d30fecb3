"""A file of cells whose numbers do not fit together is refused by its name, and told what is wrong with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import regionscope as rs
from regionscope.geometry import bases

Stored = dict[str, Any]


def first(name: str, **told: Any) -> Callable[[Stored, Stored], None]:
    """Say something else of the first site or column."""

    def change(about: Stored, arrays: Stored) -> None:
        about[name][0] |= told

    return change


def array(name: str, change: Callable[[Any], Any]) -> Callable[[Stored, Stored], None]:
    def changed(about: Stored, arrays: Stored) -> None:
        arrays[name] = change(arrays[name])

    return changed


WRONG: dict[str, tuple[Callable[[Stored, Stored], None], str]] = {
    "no blocks": (
        lambda about, arrays: arrays.update(
            {name: arrays[name][:0] for name in ("patterns.sizes", "patterns.common")}
        ),
        "its patterns.sizes does not fit the rest",
    ),
    "more bits than there are": (array("patterns.varying", lambda a: a[:-1]), "its patterns.sizes does not fit"),
    "blocks without cells": (array("patterns.sizes", lambda a: 0 * a), "its patterns.sizes does not fit"),
    "too few bytes": (array("patterns.bits", lambda a: a[:-1]), "its patterns.bits does not fit the rest"),
    "a column before the first": (first("columns", first_word=-1), r"its column 1:0 says \(-1, 1, 8, 1\)"),
    "a column of a share": (first("columns", entries=0.5), r"its column 1:0 says \(0, 1, 0.5, 1\)"),
    "a column behind the last": (first("columns", first_word=1), "its column 1:0 does not lie in patterns of 1 words"),
    "a column that is too wide": (first("columns", entries=65), "its column 1:0 does not lie in patterns of 1 words"),
    "a layer below all": (first("sites", layer=-1), r"its site 1:0 says \(-1, 8\)"),
    "a site that nothing holds": (first("sites", shape=[1 << 40]), "its site 1:0 says"),
    "too many axes": (first("sites", shape=[1] * 33), "its site 1:0 says"),
    "a breakpoint in words": (first("sites", breakpoints=["zero"]), "its site 1:0 has breakpoints that are no numbers"),
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with patterns in blocks, as wide networks have them."""
    monkeypatch.setattr(bases, "WIDE", 0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    plane = rs.Plane.around(torch.zeros(3), 2.0, generator=torch.Generator().manual_seed(0))
    rs.plane_cells(model, plane).save(tmp_path / "cells.npz")
    return tmp_path / "cells.npz"


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_together_is_named(name: str, path: Path) -> None:
    change, why = WRONG[name]
    with np.load(path) as file:
        arrays = dict(file)
    about = json.loads(str(arrays.pop("about")))
    change(about, arrays)
    np.savez(path, about=np.array(json.dumps(about)), **arrays)
    with pytest.raises(ValueError, match=rf"cells\.npz is damaged: {why}"):
        rs.PlaneCells.load(path)
