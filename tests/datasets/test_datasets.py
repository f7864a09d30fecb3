"""Data sets: what they hold, and that no damaged file passes."""

import gzip
import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from regionscope.datasets import bunny
from regionscope.datasets import sets as datasets
from regionscope.datasets.files import DamagedData, DataFile, MissingData, contents, data_root
from regionscope.datasets.sets import Dataset, dataset, idx_array, mnist_sample

BYTES = bytes(range(256)) * 40
FILE = DataFile("set/raw/file", hashlib.sha256(BYTES).hexdigest())


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_mnist_sample_is_there(split: str) -> None:
    images, labels = mnist_sample(split)
    assert images.shape == (1000, 1, 28, 28)
    assert 0 <= images.min() < images.max() <= 1
    assert sorted(torch.unique(labels).tolist()) == list(range(10))


def test_an_unknown_split_is_named() -> None:
    with pytest.raises(ValueError, match="train or test"):
        mnist_sample("all")


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_is_there_is_found_plain_or_compressed(tmp_path: Path, packed: bool) -> None:
    written(tmp_path / (FILE.path + ".gz" * packed), gzip.compress(BYTES) if packed else BYTES)
    assert contents(FILE, tmp_path) == BYTES


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("harm", ["shorter", "empty", "longer", "a byte changed"])
def test_a_damaged_file_is_named(tmp_path: Path, packed: bool, harm: str) -> None:
    good = gzip.compress(BYTES) if packed else BYTES
    middle = len(good) // 2
    changed = good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]
    harmed = {"shorter": good[:-1], "empty": b"", "longer": good + b"!", "a byte changed": changed}[harm]
    path = written(tmp_path / (FILE.path + ".gz" * packed), harmed)
    with pytest.raises(DamagedData, match=rf"{path} is damaged: .*; delete it and load it again"):
        contents(FILE, tmp_path)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"set/raw/file is not there .*`make data`.*REGIONSCOPE_DATA"):
        contents(FILE, tmp_path)


def test_the_root_is_an_option_or_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGIONSCOPE_DATA", "there")
    assert data_root() == Path("there")
    assert data_root("here") == Path("here")
    monkeypatch.delenv("REGIONSCOPE_DATA")
    assert data_root().name == "regionscope"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server of this machine, and the folder it serves."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

    folder = tmp_path / "mirror"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()
        thread.join()


def test_a_missing_file_is_downloaded_once_from_the_first_mirror_that_has_it(
    mirror: tuple[str, Path], tmp_path: Path
) -> None:
    url, folder = mirror
    packed = written(folder / "file.gz", gzip.compress(BYTES)).read_bytes()
    file = replace(
        FILE, urls=(f"{url}/no/file.gz", f"{url}/file.gz"), download_hash=f"md5:{hashlib.md5(packed).hexdigest()}"
    )
    assert contents(file, tmp_path) == BYTES
    (folder / "file.gz").unlink()
    assert contents(file, tmp_path) == BYTES


def test_a_file_is_taken_out_of_a_downloaded_archive(mirror: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = mirror
    with tarfile.open(folder / "set.tar.gz", "w:gz") as tar:
        for name in (FILE.path, "../elsewhere"):
            info = tarfile.TarInfo(name)
            info.size = len(BYTES)
            tar.addfile(info, io.BytesIO(BYTES))
    md5 = hashlib.md5((folder / "set.tar.gz").read_bytes()).hexdigest()
    assert contents(replace(FILE, urls=(f"{url}/set.tar.gz",), download_hash=f"md5:{md5}"), tmp_path / "root") == BYTES
    assert (tmp_path / "root" / FILE.path).read_bytes() == BYTES
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_in_an_archive_is_not_the_file(mirror: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = mirror
    with tarfile.open(folder / "set.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo(FILE.path)
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
    md5 = hashlib.md5((folder / "set.tar.gz").read_bytes()).hexdigest()
    with pytest.raises(DamagedData, match=rf"set\.tar\.gz holds no file {FILE.path}"):
        contents(replace(FILE, urls=(f"{url}/set.tar.gz",), download_hash=f"md5:{md5}"), tmp_path / "root")


@pytest.mark.parametrize("data", [b"", b"\0\0\x08", b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", b"PK\x03\x04" * 3])
def test_what_is_no_array_of_bytes_in_the_idx_format_is_told(data: bytes) -> None:
    with pytest.raises(DamagedData, match=f"these {len(data)} bytes are no array in the IDX format"):
        idx_array(data)


def test_a_download_with_another_hash_is_refused(mirror: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = mirror
    written(folder / "file.gz", gzip.compress(BYTES))
    file = replace(FILE, urls=(f"{url}/file.gz",), download_hash="md5:" + "0" * 32)
    with pytest.raises(MissingData, match=r"cannot be downloaded \(http.*file.gz: ValueError\)"):
        contents(file, tmp_path)
    assert not list(tmp_path.rglob("set/raw/*"))


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


def test_files_like_those_of_mnist_and_cifar_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.default_rng(0)
    digits = [draws.integers(0, 256, shape, np.uint8) for shape in ((6, 28, 28), 6, (4, 28, 28), 4)]
    assert (idx_array(idx(digits[0])) == digits[0]).all()
    made = [
        replace(file, sha256=hashlib.sha256(idx(array)).hexdigest())
        for file, array in zip(datasets.MNIST, digits, strict=True)
    ]
    for file, array in zip(made, digits, strict=True):
        written(tmp_path / file.path, idx(array))
    monkeypatch.setattr(datasets, "MNIST", made)
    data = dataset("mnist", root=tmp_path)
    assert torch.equal(data.train[0], torch.from_numpy(digits[0]).float()[:, None] / 255)
    assert data.test[1].tolist() == digits[3].tolist()

    batches = [draws.integers(0, 10, (5, 3073), np.uint8) for _ in datasets.CIFAR10]
    made = [
        replace(file, sha256=hashlib.sha256(batch.tobytes()).hexdigest())
        for file, batch in zip(datasets.CIFAR10, batches, strict=True)
    ]
    for file, batch in zip(made, batches, strict=True):
        written(tmp_path / file.path, batch.tobytes())
    monkeypatch.setattr(datasets, "CIFAR10", made)
    data = dataset("cifar10", root=tmp_path)
    assert data.train[0].shape == (25, 3, 32, 32)
    assert data.train[1][5:10].tolist() == batches[1][:, 0].tolist()
    assert torch.equal(data.test[0][0].flatten(), torch.from_numpy(batches[5][0, 1:]).float() / 255)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10", "bunny"])
def test_the_full_sets_are_right_where_they_are(name: str) -> None:
    first = {"mnist": datasets.MNIST, "fashion-mnist": datasets.FASHION, "cifar10": datasets.CIFAR10}
    path = data_root() / first.get(name, [bunny.MESH])[0].path
    if not path.exists() and not path.with_name(f"{path.name}.gz").exists():
        pytest.skip(f"{name} is not in {data_root()}; make data brings it")
    data = dataset(name)
    sizes = {"mnist": (60_000, 10_000), "fashion-mnist": (60_000, 10_000), "cifar10": (50_000, 10_000)}
    assert (len(data.train[0]), len(data.test[0])) == sizes.get(name, (4096, 4096))
    if name == "mnist":
        assert torch.equal(data.train[0][:1000], mnist_sample("train")[0])
        assert torch.equal(data.test[1][:1000], mnist_sample("test")[1])


def test_subsets_and_noise_are_drawn_by_the_seed() -> None:
    plain, again, other = (dataset("mnist-sample", size=300, test_size=200, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(plain.train[0], again.train[0])
    assert not torch.equal(plain.train[0], other.train[0])
    assert (len(plain.train[0]), len(plain.test[1])) == (300, 200)
    noisy = dataset("mnist-sample", size=300, test_size=200, seed=1, label_noise=0.5)
    assert torch.equal(noisy.train[0], plain.train[0])
    assert torch.equal(noisy.test[1], plain.test[1])
    changed = (noisy.train[1] != plain.train[1]).float().mean()
    assert 0.38 < changed <= 0.5  # a tenth of what is drawn anew stays as it was
    assert torch.equal(noisy.train[1], dataset("mnist-sample", size=300, seed=1, label_noise=0.5).train[1])


def test_points_can_be_drawn_with_replacement() -> None:
    plain, drawn = (dataset("mnist-sample", size=900, replacement=given) for given in (False, True))
    assert len(plain.train[0].flatten(1).unique(dim=0)) == 900
    expected = 1000 * (1 - (1 - 1 / 1000) ** 900)  # different ones
    assert len(drawn.train[0].flatten(1).unique(dim=0)) == pytest.approx(expected, abs=50)
    assert torch.equal(drawn.test[0], plain.test[0])
    assert len(dataset("mnist-sample", replacement=True).train[0]) == 1000


def test_a_data_set_changes_its_dtype_but_for_classes() -> None:
    data = dataset("mnist-sample").to(torch.float64)
    assert (data.train[0].dtype, data.test[0].dtype, data.train[1].dtype) == (torch.float64, torch.float64, torch.int64)
    assert dataset("gaussians").to(torch.float64).train[1].dtype == torch.float64


def test_inputs_can_be_flat_and_normalised() -> None:
    data = dataset("mnist-sample", flat=True, normalise=(0.5, 0.5))
    assert data.shape == (784,)
    assert [float(data.train[0].min()), float(data.train[0].max())] == [-1, 1]


def test_gaussians_are_correlated_as_the_seed_says() -> None:
    data = dataset("gaussians")
    x, y = data.train
    assert (data.shape, data.outputs, data.classes) == ((100,), 2, ())
    assert torch.allclose(y.T.cov(), torch.eye(2), atol=0.05)
    cross = x.T @ y / len(x)
    assert torch.linalg.matrix_norm(cross, 2) == pytest.approx(0.9, abs=0.05)
    assert not torch.equal(y, dataset("gaussians", seed=1).train[1])


def test_a_mesh_is_shaded_where_it_is_and_the_nearest_triangle_wins() -> None:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0], [0.5, 0, 1.5], [0, 0.5, 1]])
    shade = bunny.shades(bunny.grid(40), corners, np.array([[0, 1, 2], [3, 4, 5]]))
    assert pytest.approx((shade > 0).sum(), rel=0.1) == 0.5 * (40 / 1.1) ** 2
    assert len(np.unique(shade)) == 3
    front = np.unique(shade)[np.argmin(np.bincount(np.unique(shade, return_inverse=True)[1]))]
    assert (shade == front).sum() == pytest.approx((40 / 1.1) ** 2 / 8, rel=0.15)


def drawn(path: Path, count: int, colour: tuple[int, int, int]) -> None:
    path.mkdir(parents=True)
    for k in range(count):
        Image.new("RGB", (50, 40), colour).save(path / f"{k}.png")


def test_a_folder_of_images_is_a_data_set(tmp_path: Path) -> None:
    drawn(tmp_path / "red", 10, (255, 0, 0))
    drawn(tmp_path / "blue", 10, (0, 0, 255))
    data = dataset(str(tmp_path), side=8)
    assert data.classes == ("blue", "red")
    assert (data.shape, len(data.train[0]), len(data.test[0])) == ((3, 8, 8), 16, 4)
    assert torch.equal(data.train[0][:, 0].mean(dim=(1, 2)), data.train[1].float())


def test_a_folder_may_say_what_is_for_testing(tmp_path: Path) -> None:
    drawn(tmp_path / "train" / "red", 3, (255, 0, 0))
    drawn(tmp_path / "val" / "red", 2, (255, 0, 0))
    data = dataset(str(tmp_path))
    assert (len(data.train[0]), len(data.test[0])) == (3, 2)


def test_what_is_wrong_with_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="holds no folders"):
        dataset(str(tmp_path))
    (tmp_path / "red").mkdir()
    with pytest.raises(MissingData, match="holds no images"):
        dataset(str(tmp_path))
    written(tmp_path / "red" / "a.png", b"no picture")
    with pytest.raises(DamagedData, match=r"a\.png cannot be read as an image"):
        dataset(str(tmp_path))


def test_a_picture_of_too_many_pixels_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn(tmp_path / "red", 3, (255, 0, 0))
    monkeypatch.setattr(datasets, "PIXELS", 10)
    with pytest.raises(DamagedData, match=r"cannot be read as an image: it has \d+ × \d+ pixels, and 10 are the most"):
        dataset(str(tmp_path))


def test_wrong_options_are_named() -> None:
    with pytest.raises(ValueError, match=r"one of mnist-sample, .* or a folder of images, got 'kittens'"):
        dataset("kittens")
    with pytest.raises(ValueError, match="size must be from 1 to 1000, got 2000"):
        dataset("mnist-sample", size=2000)
    with pytest.raises(ValueError, match="share from 0 to 1"):
        dataset("mnist-sample", label_noise=2.0)
    with pytest.raises(ValueError, match="gaussians has none"):
        dataset("gaussians", label_noise=0.1)


def test_a_data_set_is_frozen() -> None:
    data: Dataset = dataset("gaussians")
    with pytest.raises(AttributeError, match="cannot assign"):
        data.name = "other"  # type: ignore[misc]


def test_modular_addition_has_every_pair_once_with_its_sum() -> None:
    data = dataset("modular-addition", seed=1)
    x, y = (torch.cat(parts) for parts in zip(data.train, data.test, strict=True))
    a, b = x.argmax(dim=2).T
    assert x.shape == (59 * 59, 2, 59) and torch.equal(x.sum(dim=2), torch.ones(59 * 59, 2))
    assert len({*zip(a.tolist(), b.tolist(), strict=True)}) == 59 * 59 and torch.equal(y, (a + b) % 59)
    assert len(data.train[0]) == 59 * 59 // 2 and data.outputs == 59
    assert not torch.equal(dataset("modular-addition", seed=2).train[1], data.train[1])
