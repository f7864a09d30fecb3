"""Commands that show runs and networks in the browser."""

import webbrowser
from contextlib import suppress
from functools import partial
from math import prod
from pathlib import Path
from threading import Thread
from typing import Annotated

import cyclopts
import torch

from regionscope.app.library import Exhibit, Images, Library
from regionscope.app.page import exported_page
from regionscope.app.questions import first_look
from regionscope.app.server import Address, bound_socket, serve
from regionscope.app.viewer import Viewer
from regionscope.cli.models import TOLD_BY_FILE, Given
from regionscope.cli.output import SPOKEN, Output, Spoken, prints_aside
from regionscope.cli.places import check_points_files, chosen_plane, chosen_points, run_folders
from regionscope.files import write_text
from regionscope.runs.run import Run
from regionscope.training.config import digest, training_data
from regionscope.training.loop import run_config

PATIENCE = 10.0  # seconds
DIGIT_ENTRIES = 28 * 28  # of an image of MNIST
NOT_TOLD = "the run does not say what its network is: give --model path/to/file.py:function or package.module:function"


def view(
    paths: tuple[Path, ...] = (),
    *,
    given: Annotated[Given, cyclopts.Parameter(name="*")] = TOLD_BY_FILE,
    weights: Path | None = None,
    points: Path | None = None,
    labels: Path | None = None,
    port: int = 0,
    no_browser: bool = False,
    output: Spoken = SPOKEN,
) -> None:
    """Look at runs, or at a network, in the browser: curves, and exact regions at any zoom.

    Only this machine is served, and only those who have the address that is printed. Ctrl-C ends it.

    Parameters
    ----------
    paths
        Directories of runs, or folders of them, which may still be written; "runs" if there are no weights
        either.
    given
        What network it is, if the weights do not say so.
    weights
        A .safetensors file with the weights of a network to look at.
    points
        The network's inputs as an .npy file (n, ...), to lay planes through: by default the data of the run, or MNIST.
    labels
        Their classes as an .npy file (n,).
    port
        The port to listen on; a free one if not given.
    no_browser
        Only print the address.
    output
        How the address is printed.

    Examples
    --------
    regionscope view runs/grok --port 8000
    """
    bound_socket(port).close()  # an error if it cannot be used, before the work
    check_points_files(points, labels)
    folders = paths or (() if weights is not None else (Path("runs"),))
    run_folders(folders)  # an error where there are none; damaged ones are left out later
    shown = [] if weights is None else [_given_exhibit(weights, given, points, labels, output)]
    viewer = Viewer(Library(folders, partial(run_exhibit, given, points, labels), shown))
    looking = Thread(target=first_look, args=(viewer,), daemon=True)
    looking.start()
    try:
        with suppress(KeyboardInterrupt):  # which is how it is ended
            serve(viewer, port=port, started=partial(_say_address, output, no_browser))
    finally:
        looking.join(PATIENCE)  # a thread inside torch at the end of the process would abort it


def write_page(path: Path, out: Path) -> None:
    """Write a run as one HTML file that opens without a server."""
    run = Run.open(path)
    write_text(out, exported_page(run_exhibit(TOLD_BY_FILE, None, None, path.resolve().name, run)))


def _say_address(output: Output, no_browser: bool, address: Address) -> None:
    output.result(f"look at {address.url}\n(Ctrl-C ends it)", {"url": address.url, "port": address.port})
    if not no_browser:
        Thread(target=webbrowser.open, args=(address.url,), daemon=True).start()


# what is shown


def _given_exhibit(weights: Path, given: Given, points: Path | None, labels: Path | None, output: Output) -> Exhibit:
    """A network that is no run; what was assumed is said."""
    if weights.suffix != ".safetensors":
        raise ValueError(f"--weights must be a .safetensors file, got {weights}; rs.save_weights writes them")
    with prints_aside():
        loaded = given.loaded(weights)
    output.remark(loaded.assumed)
    network = loaded.network
    plane, _ = chosen_plane(network, points, labels, None, None, None, None, 0)
    images = None
    if points is not None or plane.origin.numel() > 2:
        with prints_aside():
            found = chosen_points(network, points, labels)
        images = _images(found.points, found.labels)
    return Exhibit(
        weights.stem, model=lambda step: network, planes={"start": plane},
        images=None if images is None else lambda: images,
    )  # fmt: skip


def run_exhibit(given: Given, points: Path | None, labels: Path | None, name: str, run: Run) -> Exhibit:
    """A run, with its network and its data as far as they are known."""
    told = "architecture" in run.config
    model = TOLD_BY_FILE if told else given
    known = told or given.model is not None

    def network_at(step: int) -> torch.nn.Module:
        return model.loaded(run.checkpoint(step)).network

    def own_images() -> Images:
        if not run.steps:
            raise ValueError(f"{name} has no records yet")
        found = chosen_points(network_at(run.steps[-1]), points, labels)
        return _images(found.points, found.labels)

    trained_here = "training" in run.config
    like_digits = not trained_here and prod(run.input_shape or ()) == DIGIT_ENTRIES
    own = known and (points is not None or like_digits)
    return Exhibit(
        name, run, model=network_at if known else None, reason=None if known else NOT_TOLD,
        images=own_images if own else partial(_training_images, run) if trained_here else None,
    )  # fmt: skip


def _images(points: torch.Tensor, labels: torch.Tensor | None) -> Images:
    whole = labels is not None and not labels.is_floating_point()
    return Images(points, labels if whole else None)


def _training_images(run: Run) -> Images:
    """The points that a run was trained on."""
    data = training_data(run_config(run))
    if digest(data) != run.config["data"]:
        raise ValueError(f"{data.name} is not what {run.path.name} was trained on: its images are not shown")
    points, targets = data.train
    return Images(points, targets if data.classes else None, data.classes)
