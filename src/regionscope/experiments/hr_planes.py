"""HR figure 8: regions on the plane through images of a 0, a 1 and a 2, while a network learns MNIST."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regionscope.experiments.experiment import Experiment
from regionscope.experiments.findings import Check, Curve, Evidence, Findings
from regionscope.experiments.hr_lines import HaninSettings, epochs_at, hanin_trainings, turns_around
from regionscope.experiments.lab import Lab, Measurement
from regionscope.experiments.pictures import draw_curves, panels
from regionscope.experiments.verdicts import falls_first, reported, rises_after, within
from regionscope.geometry.patterns import pattern_codes
from regionscope.geometry.plane_cells import PlaneCells, plane_cells
from regionscope.geometry.planes import Plane
from regionscope.training.config import Training, training_data
from regionscope.training.loop import run_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDER = 10.0  # "on the order of" is within this factor


@dataclass(frozen=True)
class PlaneSettings(HaninSettings):
    """And the square that is looked at, with its pictures."""

    networks: tuple[tuple[int, int], ...] = ((3, 64),)
    margin: float = 1.0  # half of its side, in circumradii
    wide: float = 10.0  # of a square that shows what is beyond, at the first and the last record
    shown: int = 7
    pixels: int = 240
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class DigitPlane:
    """Of a training the plane through a 0, a 1 and a 2, and pictures at so many of its records."""

    training: Training
    margin: float
    wide: float
    shown: int
    pixels: int


def _measurements(settings: PlaneSettings) -> list[Measurement]:
    looks = (settings.margin, settings.wide, settings.shown, settings.pixels)
    return [Measurement(_digit_plane_regions, DigitPlane(t, *looks)) for t in hanin_trainings(settings)]


def _digit_plane_regions(settings: DigitPlane, lab: Lab) -> dict[str, np.ndarray]:
    """Regions in the square at each record, in the wide one at both ends, and pictures of a number for every region."""
    run, (images, labels) = lab.run(settings.training), training_data(settings.training).train
    digits = [images[(labels == digit).nonzero()[settings.training.seed, 0]] for digit in (0, 1, 2)]
    plane, wide = (Plane.through(*digits, margin=margin) for margin in (settings.margin, settings.wide))
    models = [run_model(run, step) for step in run.steps]
    drawn = np.unique(np.linspace(0, len(models) - 1, settings.shown).round().astype(int))
    regions, pictures = [], []
    for k, model in enumerate(models):
        cells = plane_cells(model, plane)
        regions.append(len(cells))
        if k in drawn:
            pictures.append(_picture(cells, settings.pixels))
    return {
        "step": np.array(run.steps, np.float64), "regions": np.array(regions),
        "wide": np.array([len(plane_cells(model, wide)) for model in (models[0], models[-1])]),
        "drawn": drawn, "pictures": np.array(pictures), "anchors": plane.anchors / plane.domain.max(),
    }  # fmt: skip


def _picture(cells: PlaneCells, pixels: int) -> np.ndarray:
    """A number from 0 to 255 for the pattern at each pixel, the upper row first."""
    side = np.linspace(-1, 1, 2 * pixels + 1)[1::2] * cells.plane.domain.max()
    places = np.stack(np.meshgrid(side, side[::-1]), axis=-1).reshape(-1, 2)
    codes = (pattern_codes(cells.packed_patterns) >> np.uint64(8)).astype(np.uint8)
    return np.asarray(codes[cells.locate(places)].reshape(pixels, pixels))


def _evidence(settings: PlaneSettings, lab: Lab) -> Evidence:
    found = lab.measured(_measurements(settings))
    ((depth, width),) = settings.networks
    units = depth * width
    ratios = [measurement["regions"] / units**2 for measurement in found]
    curves = {"regions / units²": Curve.of(epochs_at(found[0]["step"], settings.dataset), ratios)}
    wide = np.array([measurement["wide"] for measurement in found]) / units**2
    return Evidence(curves, {"wide": wide, **{name: found[0][name] for name in ("drawn", "pictures", "anchors")}})


def _checks(settings: PlaneSettings, evidence: Evidence) -> Sequence[Check]:
    """Of the order of units², in the square and in a wide one, at the start and at the end; fewer, then more."""
    curve, wide = evidence.curves["regions / units²"], evidence.arrays["wide"]
    places = {"the square": curve.runs[:, [0, -1]], f"one {settings.wide:g} times as wide": wide}
    orders = [
        within(f"regions / units² in {place}, at the {when}", values[:, k], 1 / ORDER, ORDER, paper="of order 1")
        for place, values in places.items()
        for k, when in enumerate(("start", "end"))
    ]
    ((depth, width),) = settings.networks
    count = reported("regions in the square at the start", curve.runs[:, 0] * (depth * width) ** 2, paper="≈ 4·10^4")
    least = reported("regions / units² in the square, least over training", curve.runs.min(axis=1))
    return [*orders, *turns_around("regions", curve, (falls_first, rises_after), "fewer, then more"), count, least]


def _draw(findings: Findings) -> "Figure":
    """The square at several epochs, every region in a colour of its own, and how many there are."""
    from matplotlib.colors import ListedColormap

    arrays, ((name, curve),) = findings.evidence.arrays, findings.evidence.curves.items()
    pictures = arrays["pictures"]
    colours = ListedColormap(np.random.default_rng(0).uniform(0.3, 1.0, (256, 3)))
    columns = 4
    figure, axes = panels(columns, -(-(len(pictures) + 1) // columns), height=2.05)
    for ax, picture, record in zip(axes, pictures, arrays["drawn"], strict=False):
        ax.imshow(picture, cmap=colours, vmin=0, vmax=255, extent=(-1, 1, -1, 1), interpolation="nearest")
        for digit, (x, y) in enumerate(arrays["anchors"]):
            ax.text(x, y, str(digit), ha="center", va="center", fontsize="small", weight="bold").set_bbox(
                {"boxstyle": "circle,pad=0.15", "fc": "white", "lw": 0.5}
            )
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"epoch {curve.x[record]:.2g}", fontsize="medium", pad=9)  # above the circle of an image
    last = axes[len(pictures)]
    draw_curves(last, {name: curve}, xlabel="epoch", ylabel=name, from_zero=True)
    last.set_xticks([0.0, *(t for t in (0.01, 0.1, 1.0, 10.0) if t < curve.x[-1])])
    last.tick_params(labelsize="small")
    for ax in axes[len(pictures) + 1 :]:
        ax.remove()
    return figure


FIGURES = (
    Experiment(
        name="hr8",
        title="Regions on the plane through images of a 0, a 1 and a 2 during training, 3×64",
        claim="There are of the order of units² regions on a plane through three images; they become fewer, then more.",
        scales={
            "smoke": PlaneSettings(
                networks=((3, 16),), dataset="mnist-sample", steps=4, records=4, shown=4, pixels=40, seeds=(0, 1)
            ),
            "laptop": PlaneSettings(),
            "paper": PlaneSettings(),
        },
        trainings=hanin_trainings,
        measurements=_measurements,
        evidence=_evidence,
        checks=_checks,
        draw=_draw,
        choices=(
            "the order of units² is judged at both ends of training; the wide square came into the rule after a trial"
            " of 200 steps, whose small square had 0.11 units² regions at its start",
            "the square has the circumcircle of the images inscribed; the paper does not say how large its own is, so"
            " one ten times as wide is counted too",
            "20 epochs of batches of 128, three runs and the images, which the seed chooses",
        ),
    ),
)
