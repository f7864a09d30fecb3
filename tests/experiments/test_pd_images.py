"""Rules of PD's figures of convolutional networks on curves whose answer is known, and the folder of images."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from regionscope.datasets.files import MissingData
from regionscope.datasets.sets import dataset
from regionscope.experiments.findings import Curve, Evidence, verdict_of
from regionscope.experiments.lab import Lab
from regionscope.experiments.pd_folder import _image_folder, generated_images
from regionscope.experiments.pd_images import CNN, image_networks, norm_checks, with_one_legend
from regionscope.experiments.registry import EXPERIMENTS

STEPS = np.array([0, 1, 10, 100, 1000, 10_000], float)
DOUBLE = np.array([5.0, 4.0, 2.0, 4.0, 3.0, 1.0])
RISING = np.array([5.0, 4.5, 4.0, 7.0, 7.4, 7.5])
LEARNING = np.array([0.1, 0.1, 0.5, 0.9, 1.0, 1.0])


def evidence(shapes: Mapping[str, np.ndarray], accuracy: np.ndarray = LEARNING) -> Evidence:
    """Of three seeds; test and random points are as training points are."""
    noise = 1 + 0.01 * np.random.default_rng(0).normal(size=(3, len(STEPS)))
    curves = {
        f"{name}: {probe}": Curve.of(STEPS, values * noise)
        for name, values in shapes.items()
        for probe in ("train", "test", "random")
    }
    accuracies = {f"{n}: {s} accuracy": Curve.of(STEPS, [accuracy] * 3) for n in shapes for s in ("train", "test")}
    return Evidence({**curves, **accuracies})


def test_batch_norm_is_judged_both_ways() -> None:
    settings = replace(CNN, depths=(3, 5), batch_norms=(False, True))
    names = list(image_networks(settings))
    claimed = dict(zip(names, (DOUBLE, RISING, 1.2 * DOUBLE, RISING), strict=True))
    other = dict(zip(names, (RISING, DOUBLE, 0.9 * RISING, DOUBLE), strict=True))
    assert verdict_of(norm_checks(settings, evidence(claimed))) == "reproduced"
    judged = {check.words: check.holds for check in norm_checks(settings, evidence(other)) if check.rule}
    assert [holds for words, holds in judged.items() if holds] == [True, True], judged  # an ascent; test as train
    early = norm_checks(settings, evidence(claimed, 0.9 * LEARNING))
    assert verdict_of(early) == "not testable at this scale"
    one = replace(settings, depths=(3,))
    alone = norm_checks(one, evidence(dict(zip(image_networks(one), (DOUBLE, RISING), strict=True))))
    assert verdict_of(alone) == "reproduced" and not any("peak of the ascent" in check.words for check in alone)


def test_deformation_is_judged_both_ways() -> None:
    """Nearly affine and in proportion to the radius up to the small one, and deformed at the largest; or not."""
    figure = EXPERIMENTS["pd18"]
    settings = replace(figure.scales["paper"], radii=(0.001, 0.014, 0.5))
    layers, rising = np.arange(1.0, 6.0), figure.scales["paper"].model == "cnn"
    sizes = layers if rising else layers[::-1]
    for defects, power, order, verdict in (
        ((1e-6, 1e-5, 0.5), 1.0, 1, "reproduced"), ((0.8, 0.8, 0.8), 2.0, -1, "not reproduced"),
    ):  # fmt: skip
        curves = {}
        for radius, defect in zip(settings.radii, defects, strict=True):
            curves[f"defect, r = {radius:g}"] = Curve.of(layers, np.full((3, 5), defect))
            curves[f"eccentricity, r = {radius:g}"] = Curve.of(layers, [radius**power * sizes[::order]] * 3)
        assert verdict_of(figure.checks(settings, Evidence(curves))) == verdict


def test_imagenet_is_judged_both_ways_and_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = EXPERIMENTS["pd12"]
    settings = figure.scales["paper"]
    for shape, verdict in ((DOUBLE, "reproduced"), (np.ones(6), "not reproduced")):
        curves = {"test": Curve.of(STEPS, [shape] * 3), "test accuracy": Curve.of(STEPS, [LEARNING] * 3)}
        assert verdict_of(figure.checks(settings, Evidence(curves))) == verdict
    monkeypatch.setenv("REGIONSCOPE_DATA", str(tmp_path))
    with pytest.raises(MissingData, match=f"there is no {tmp_path}/{settings.dataset}; put ImageNet there"):
        _image_folder(settings.dataset, 224, Lab(tmp_path / "lab"))
    (tmp_path / settings.dataset).mkdir()
    assert _image_folder(settings.dataset, 224, Lab(tmp_path / "lab")) == tmp_path / settings.dataset


def test_only_the_first_panel_keeps_its_legend() -> None:
    figure, axes = plt.subplots(1, 3)
    for ax in axes[:2]:
        ax.plot([0, 1], label="line")
        ax.legend()
    assert [ax.get_legend() is not None for ax in with_one_legend(figure).axes] == [True, False, False]
    plt.close(figure)


def test_weight_decay_is_judged_both_ways() -> None:
    decays, figure = (0.01, 0.1, 1.0), EXPERIMENTS["pd7"]
    settings = replace(CNN, decays=decays)
    shapes = (DOUBLE + 2, DOUBLE[[0, 1, 2, 3, 3, 3]], RISING / 4)
    claimed = dict(zip(image_networks(settings), shapes, strict=True))
    assert verdict_of(figure.checks(settings, evidence(claimed))) == "reproduced"
    other = dict(zip(claimed, (RISING, DOUBLE + 4, 3 * DOUBLE), strict=True))
    assert verdict_of(figure.checks(settings, evidence(other))) == "not reproduced"


def test_relus_of_a_block_are_judged_both_ways() -> None:
    figure = EXPERIMENTS["pd16"]
    settings = figure.scales["paper"]
    relus = {f"ReLU {k}": RISING if k % 2 else DOUBLE for k in range(1, 17)}
    assert verdict_of(figure.checks(settings, evidence({"network": DOUBLE, **relus}))) == "reproduced"
    swapped = {f"ReLU {k}": DOUBLE if k % 2 else RISING for k in range(1, 17)}
    assert verdict_of(figure.checks(settings, evidence({"network": DOUBLE, **swapped}))) == "not reproduced"


def test_generated_images_are_a_folder_that_can_be_learned_and_are_made_once(tmp_path: Path) -> None:
    folder = generated_images(tmp_path / "images" / "some", 16)
    data = dataset(str(folder), side=16)
    assert data.shape == (3, 16, 16) and data.outputs == 4
    assert (len(data.train[0]), len(data.test[0])) == (96, 24)
    (folder / "direction-0" / "0.png").unlink()
    assert not (generated_images(folder, 16) / "direction-0" / "0.png").exists()
