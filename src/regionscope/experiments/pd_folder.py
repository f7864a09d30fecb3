"""PD figure 12: crossings at test points while ResNet18 learns a folder of images, ImageNet if it is there."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from filelock import FileLock
from PIL import Image

from regionscope.datasets.files import MissingData, data_root
from regionscope.disk import make_folder, whole_file, whole_folder
from regionscope.experiments.curves import curve_of
from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Evidence, Findings
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pd_images import RESNET, ImageSettings, image_crossings, image_trainings, smoke_images
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import falls_again, falls_first, reported, rises_after, untested
from regionscope.training.config import Training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GENERATED = "generated"  # the folder that is made where there is no ImageNet
CLASSES, IMAGES = 4, 30  # of it, each class with so many images


@dataclass(frozen=True)
class FolderSettings(ImageSettings):
    """ResNet18 on a folder of images: a name in the folder of data sets, or `generated`."""

    side: int = 224


@dataclass(frozen=True)
class LearnedFolder:
    """A training whose data set is the name of a folder, and the test points that are looked at."""

    training: Training
    points: int
    radius: float


def _measurements(settings: FolderSettings) -> list[Measurement]:
    return [
        Measurement(_folder_crossings, LearnedFolder(replace(t, side=settings.side), settings.points, settings.radius))
        for t in image_trainings(settings)
    ]


def _folder_crossings(settings: LearnedFolder, lab: Lab) -> dict[str, np.ndarray]:
    """Crossings at test points and accuracies at every record; where the folder lies is known in the lab only."""
    folder = _image_folder(settings.training.dataset, settings.training.side, lab)
    training = replace(settings.training, dataset=str(folder))
    run = lab.run(training)
    (found,) = lab.measured([image_crossings(training, settings.points, settings.radius, probes=("test",))])
    accuracies = {name: run.curve(name)[1] for name in ("train_accuracy", "test_accuracy")}
    kept = {name: found[name] for name in ("step", "test/boundary_crossings")}
    return {**kept, **{name: np.asarray(values, np.float64) for name, values in accuracies.items()}}


def _image_folder(name: str, side: int, lab: Lab) -> Path:
    if name == GENERATED:
        return generated_images(lab.folder.resolve() / "images" / f"{name}-{side}", side)
    folder = data_root() / name
    if not folder.is_dir():
        raise MissingData(f"there is no {folder}; put ImageNet there, as train/CLASS/… and val/CLASS/…")
    return folder


def generated_images(folder: Path, side: int) -> Path:
    """A folder of images that are told apart by the direction of their stripes, made if it is not there."""
    make_folder(folder.parent)
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            draws = np.random.default_rng(0)
            with whole_folder(folder) as new:
                for k in range(CLASSES):
                    make_folder(new / f"direction-{k}")
                    for number in range(IMAGES):
                        with whole_file(new / f"direction-{k}" / f"{number}.png") as file:
                            Image.fromarray(_stripes(k, side, draws)).save(file, "png")
    return folder


def _stripes(k: int, side: int, draws: np.random.Generator) -> np.ndarray:
    """Waves in one of the directions, with any phase, length and colours, and noise: bytes (side, side, 3)."""
    angle, (y, x) = np.pi * k / CLASSES, np.mgrid[:side, :side] / side
    phase = 2 * np.pi * (draws.uniform(2, 5) * (x * np.cos(angle) + y * np.sin(angle)) + draws.uniform())
    colours = draws.uniform(-1, 1, size=3)
    picture = 0.5 + 0.4 * np.sin(phase)[..., None] * colours + draws.normal(scale=0.05, size=(side, side, 3))
    return np.asarray(255 * picture.clip(0, 1), np.uint8)


def _evidence(settings: FolderSettings, lab: Lab) -> Evidence:
    found = lab.measured(_measurements(settings))
    columns = {"test": "test/boundary_crossings", "train accuracy": "train_accuracy", "test accuracy": "test_accuracy"}
    return Evidence({name: curve_of(found, column) for name, column in columns.items()})


def _checks(settings: FolderSettings, evidence: Evidence) -> Sequence[Check]:
    """A descent, an ascent and a second descent on ImageNet; generated images decide nothing."""
    curves = evidence.curves
    ends = [reported(f"{name} at the end", curves[name].runs[:, -1]) for name in curves if name != "test"]
    if settings.dataset == GENERATED:
        why = "ImageNet is not here: the images are generated, and only the way through the code is tried"
        return [untested("descent, ascent and second descent at test points", why), *ends]
    return [*(rule("test", curves["test"]) for rule in (falls_first, rises_after, falls_again)), *ends]


def _draw(findings: Findings) -> "Figure":
    curves = findings.evidence.curves
    figure, (left, right) = panels(2)
    draw_curves(left, {"test": curves["test"]}, ylabel="crossings at test points", from_zero=True)
    draw_curves(right, {split: curves[f"{split} accuracy"] for split in ("train", "test")}, ylabel="accuracy")
    right.set_ylim(-0.03, 1.03)
    return figure


PAPER = FolderSettings(**{**asdict(RESNET), "dataset": "imagenet", "points": 1000, "seeds": (0,)})

FIGURES = (
    Experiment(
        name="pd12",
        title="Crossings at test points while ResNet18 learns ImageNet",
        claim="Local complexity at test points falls, rises and falls again while ResNet18 learns ImageNet.",
        scales={
            "smoke": smoke_images(PAPER, dataset=GENERATED, size=None, test_size=None, side=16),
            "laptop": replace(
                PAPER, dataset=GENERATED, side=32, width=8, batch_size=32, steps=300, records=11, points=24,
                seeds=(0, 1, 2),
            ),
            "paper": PAPER,
        },
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "the ResNet18 of figure 5, r = 0.005 and 20 directions: the paper prints none of them here; the folder of"
            " data sets is where imagenet is looked for, and all of it is held in memory",
        ),
    ),
)  # fmt: skip
