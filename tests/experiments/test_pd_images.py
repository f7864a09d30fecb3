"""Rules of PD's figures of convolutional networks on curves whose answer is known, and the folder of images."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from regionscope.datasets.sets import dataset
from regionscope.experiments.findings import Curve, Evidence, verdict_of
from regionscope.experiments.pd_folder import generated_images
from regionscope.experiments.pd_images import CNN, image_networks, norm_checks
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
