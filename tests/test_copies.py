"""Results can be copied and sent to other processes."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from cases import mlp
from torch import Tensor

import regionscope as rs

POINTS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 1, 0, 1, 0, 1])
CURVE = ([*range(1, 11)], [9.0, 8, 7, 6, 5, 6, 7, 8, 9, 10])


def cells(model: Any) -> rs.PlaneCells:
    found = rs.plane_cells(model, rs.Plane.coordinates(POINTS[0], radius=3.0))
    assert found.patterns.size and found.areas.size  # what is kept of them is copied too
    return found


RESULTS: dict[str, Callable[[Any], Any]] = {
    "plane": lambda model: cells(model).plane,
    "cells": lambda model: replace(cells(model), network=None),
    "decision boundary": lambda model: cells(model).decision_boundary(),
    "certificate": lambda model: cells(model).verify(),
    "crossings": lambda model: rs.boundary_crossings(model, POINTS, radius=0.5),
    "deformation": lambda model: rs.neighbourhood_deformation(model, POINTS, radius=0.5),
    "confirmation": lambda model: rs.confirmed_crossings(model, POINTS, radius=0.5),
    "comparison": lambda model: rs.compare_complexities(model, POINTS, radius=0.5),
    "region count": lambda model: rs.local_region_count(model, POINTS, radius=0.5),
    "complexity": lambda model: rs.local_complexity(model, POINTS, sigma=0.1, draws=2),
    "rank": lambda model: rs.local_rank(model, POINTS, eps=0.1),
    "distance": lambda model: rs.boundary_distance(model, POINTS),
    "certified radius": lambda model: rs.certified_radius(model, POINTS, LABELS),
    "bounds": lambda model: rs.bounds(model, POINTS, sigma=0.1),
    "representation cost": rs.representation_cost,
    "phases": lambda model: rs.phases(*CURVE),
    "training": lambda model: rs.Training(measures=("local_rank",)),
    "dataset": lambda model: rs.dataset("gaussians"),
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "copied": copy.deepcopy,
    "pickled": lambda result: pickle.loads(pickle.dumps(result)),
}


def same(a: Any, b: Any) -> bool:
    """Whether two results hold the same numbers."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and a.equal(b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if is_dataclass(a):
        return all(same(getattr(a, field.name), getattr(b, field.name)) for field in fields(a))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b or (a != a and b != b))


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", RESULTS)
def test_a_copy_of_a_result_holds_the_same(name: str, way: str) -> None:
    torch.manual_seed(0)
    result = RESULTS[name](mlp(3, 8, 8, 2))
    again = COPIES[way](result)
    assert again is not result and same(result, again)
    assert repr(again) == repr(result)


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_cells_has_their_network(way: str) -> None:
    model = mlp(3, 8, 8, 2)
    plane, line = cells(model), rs.line_cells(model, POINTS[0], POINTS[1])
    plane_again, line_again = COPIES[way](plane), COPIES[way](line)
    assert plane_again.verify().holds
    assert all(map(np.array_equal, plane_again.affine_maps(), plane.affine_maps()))
    assert all(map(np.array_equal, line_again.affine_maps(), line.affine_maps()))
    assert np.array_equal(line_again.patterns, line.patterns)


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_an_estimate_with_gradients_has_its_mean_without_them(way: str) -> None:
    found = rs.total_variation(mlp(3, 8, 8, 2), POINTS, differentiable=True)
    again = COPIES[way](found)
    assert found.tensor is not None and found.tensor.requires_grad
    assert again.tensor.equal(found.tensor) and not again.tensor.requires_grad
    assert np.array_equal(again.per_point, found.per_point)
