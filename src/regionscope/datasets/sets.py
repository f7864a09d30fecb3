"""Data to study networks on. Nothing that is read here can run code, and what has a known hash is checked."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from regionscope.datasets import bunny
from regionscope.datasets.files import DamagedData, DataFile, MissingData, contents, data_root
from regionscope.disk import one_line, open_file
from regionscope.tables import Facts

Split = tuple[Tensor, Tensor]
DIGITS = tuple("0123456789")
CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
THINGS = tuple("airplane automobile bird cat deer dog frog horse ship truck".split())
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
MODULUS = 59
PIXELS = 50_000_000  # of an image; larger ones are no data for a network


@dataclass(frozen=True, repr=False)
class Dataset(Facts):
    """Inputs and targets to train and to test on.

    `train` and `test` are pairs (x, y): x float32 (n, ...), in [0, 1] for images, and y the classes (n,) or, where
    there are none, real targets (n, m). `classes` are the names of the classes.
    """

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]

    def _facts(self) -> dict[str, object]:
        low, high = (float(end(self.train[0])) for end in (torch.min, torch.max))
        return {
            "name": self.name, "train": f"{len(self.train[0]):,}", "test": f"{len(self.test[0]):,}",
            "inputs": f"{self.shape} in [{low:.3g}, {high:.3g}]",
            "classes" if self.classes else "targets": self.outputs,
        }  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.train[0].shape[1:])

    @property
    def outputs(self) -> int:
        """How many outputs a network for this data has."""
        return len(self.classes) or self.train[1].shape[1]

    def to(self, dtype: torch.dtype) -> "Dataset":
        """The same with inputs and real targets of a dtype."""
        train, test = ((x.to(dtype), y.to(dtype) if y.is_floating_point() else y) for x, y in (self.train, self.test))
        return replace(self, train=train, test=test)


def dataset(
    name: str, *, size: int | None = None, test_size: int | None = None, label_noise: float = 0.0, flat: bool = False,
    normalise: tuple[float, float] | None = None, side: int = 32, seed: int = 0, replacement: bool = False,
    root: str | Path | None = None,
) -> Dataset:  # fmt: skip
    """A data set by name: mnist-sample, mnist, fashion-mnist, cifar10, gaussians, modular-addition, bunny, bump, …

    `size` and `test_size` take that many of the training and test points, drawn by `seed`, the training points with
    `replacement` if asked for (all their number of draws, if no size is given). `label_noise` is the share of the
    training labels that are drawn anew from all classes. `flat` makes the inputs vectors, `normalise` subtracts
    a mean and divides by a standard deviation. Images of a folder are fitted to `side` × `side` pixels. `root` is where
    the files lie, in the layout of torchvision; by default REGIONSCOPE_DATA or a cache folder, where what is missing is
    downloaded to. All but mnist-sample, gaussians, modular-addition and bump need files.

    >>> data = dataset("mnist-sample", size=100, label_noise=0.5, flat=True)
    >>> data.train[0].shape, data.outputs
    (torch.Size([100, 784]), 10)
    """
    if name in DATASETS:
        data = DATASETS[name](data_root(root), seed)
    elif Path(name).is_dir():
        data = _image_folder(name, side=side, seed=seed)
    else:
        raise ValueError(f"dataset must be one of {', '.join(DATASETS)} or a folder of images, got {name!r}")
    size = len(data.train[0]) if replacement and size is None else size
    train = _subset(data.train, size, "size", seed, replacement=replacement)
    test = _subset(data.test, test_size, "test_size", seed)
    if label_noise:
        train = train[0], _noisy_labels(train[1], label_noise, data, seed)
    return replace(data, train=_shaped_split(train, flat, normalise), test=_shaped_split(test, flat, normalise))


def _subset(split: Split, size: int | None, option: str, seed: int, *, replacement: bool = False) -> Split:
    if size is None:
        return split
    n = len(split[0])
    if not 1 <= size <= n:
        raise ValueError(f"{option} must be from 1 to {n}, got {size}")
    draws = np.random.default_rng([seed, 1])
    chosen = torch.from_numpy(draws.integers(n, size=size) if replacement else draws.permutation(n)[:size])
    return split[0][chosen], split[1][chosen]


def _noisy_labels(labels: Tensor, share: float, data: Dataset, seed: int) -> Tensor:
    if not data.classes:
        raise ValueError(f"label_noise needs classes, and {data.name} has none")
    if not 0 <= share <= 1:
        raise ValueError(f"label_noise is a share from 0 to 1, got {share}")
    draws = np.random.default_rng([seed, 2])
    chosen = torch.from_numpy(draws.permutation(len(labels))[: round(share * len(labels))])
    return labels.index_put((chosen,), torch.from_numpy(draws.integers(len(data.classes), size=len(chosen))))


def _shaped_split(split: Split, flat: bool = False, normalise: tuple[float, float] | None = None) -> Split:
    """Inputs as floats, bytes as those in [0, 1], then normalised and made vectors if asked for; and their targets."""
    x, y = split
    x = x.float() / 255 if x.dtype == torch.uint8 else x
    if normalise is not None:
        if not normalise[1] > 0:
            raise ValueError(f"normalise is a mean and a positive standard deviation, got {normalise}")
        x = (x - normalise[0]) / normalise[1]
    return (x.flatten(1) if flat else x), y


def mnist_sample(split: str = "train") -> Split:
    """The first 1000 images of MNIST's training or test set, which come with the library.

    Images (1000, 1, 28, 28) in [0, 1] and labels (1000,). MNIST is by Yann LeCun and Corinna Cortes, CC BY-SA 3.0.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split must be train or test, got {split!r}")
    with (
        (files("regionscope") / "data" / "mnist-1000.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as data,
    ):
        images, labels = data[f"{split}_images"], data[f"{split}_labels"]
    return _shaped_split(_byte_split(images[:, None], labels))


def _byte_split(images: np.ndarray, labels: np.ndarray) -> Split:
    """Images as bytes (n, c, h, w), which become numbers once it is known which are wanted, and their classes (n,)."""
    return torch.from_numpy(images.copy()), torch.from_numpy(labels.astype(np.int64))


def _idx_files(folder: str, hashes: list[tuple[str, str]], *mirrors: str) -> list[DataFile]:
    """The four files of MNIST or a set like it: images and labels to train, then to test."""
    names = [f"{split}-{kind}-ubyte" for split in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    return [
        DataFile(f"{folder}/raw/{name}", sha256, tuple(f"{mirror}{name}.gz" for mirror in mirrors), f"md5:{md5}")
        for name, (sha256, md5) in zip(names, hashes, strict=True)
    ]


MNIST = _idx_files(
    "MNIST",
    [
        ("ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", "9fb629c4189551a2d022fa330f9573f3"),
        ("ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", "ec29112dd5afa0611ce80d1b7f02629c"),
    ],
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
FASHION = _idx_files(
    "FashionMNIST",
    [
        ("c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9", "25c81989df183df01b3e8a0aad5dffbe"),
        ("5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b", "bef4ecab320f06d8554ea6380940ec79"),
        ("0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34", "bb300cfdad3c16e7a12a480ee83cd310"),
    ],
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
)
CIFAR10 = [
    DataFile(
        f"cifar-10-batches-bin/{name}.bin",
        sha256,
        ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
        "md5:c32a1d4ab5d03f1284b67883e8d87530",
    )
    for name, sha256 in {
        "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    }.items()
]


def _idx_dataset(name: str, parts: list[DataFile], classes: tuple[str, ...], root: Path) -> Dataset:
    images, labels, test_images, test_labels = (idx_array(contents(part, root)) for part in parts)
    train, test = _byte_split(images[:, None], labels), _byte_split(test_images[:, None], test_labels)
    return Dataset(name, train, test, classes)


def idx_array(data: bytes) -> np.ndarray:
    """An array of bytes in the IDX format: two zeros, 8 for bytes, the number of axes, their lengths, the entries."""
    if len(data) < 4 or data[:3] != bytes([0, 0, 8]):
        raise DamagedData(f"these {len(data)} bytes are no array in the IDX format")
    shape = np.frombuffer(data, ">i4", count=data[3], offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def _cifar10(root: Path, seed: int) -> Dataset:
    batches = [np.frombuffer(contents(file, root), np.uint8).reshape(-1, 3073) for file in CIFAR10]
    train, test = (
        _byte_split(b[:, 1:].reshape(-1, 3, 32, 32), b[:, 0]) for b in (np.concatenate(batches[:5]), batches[5])
    )
    return Dataset("cifar10", train, test, THINGS)


def _gaussians(root: Path, seed: int) -> Dataset:
    """x ~ N(0, I_100) and y ~ N(0, I_2) with a random cross-covariance C of norm 0.9 (LC B.2; the norm is ours)."""
    draws = np.random.default_rng([seed, 3])
    C = draws.standard_normal((100, 2))
    C *= 0.9 / np.linalg.norm(C, 2)
    x, noise = draws.standard_normal((11_000, 100)), draws.standard_normal((11_000, 2))
    y = x @ C + noise @ np.linalg.cholesky(np.eye(2) - C.T @ C).T
    tx, ty = torch.from_numpy(x).float(), torch.from_numpy(y).float()
    return Dataset("gaussians", (tx[:10_000], ty[:10_000]), (tx[10_000:], ty[10_000:]), ())


def _modular_addition(root: Path, seed: int) -> Dataset:
    """All pairs of numbers below 59, each as two one-hot vectors, with their sum modulo 59; half of them to train on.

    What grokking was first seen on (Power et al. 2022, with 97); the seed draws which half.
    """
    numbers = torch.arange(MODULUS)
    pairs = torch.cartesian_prod(numbers, numbers)[np.random.default_rng([seed, 5]).permutation(MODULUS**2)]
    x, y = torch.nn.functional.one_hot(pairs, MODULUS).float(), pairs.sum(dim=1) % MODULUS
    half = len(x) // 2
    return Dataset("modular-addition", (x[:half], y[:half]), (x[half:], y[half:]), tuple(map(str, range(MODULUS))))


def _bunny_picture(root: Path, seed: int) -> Dataset:
    """A grey picture of the Stanford bunny (LC figure 1)."""
    shape = bunny.mesh(root)
    return _pixels("bunny", lambda points: bunny.shades(points, *shape))


def _bump(root: Path, seed: int) -> Dataset:
    """exp(-|x - c|² / 2 w²) on [0, 1]², curved around c, flat elsewhere (for PD figure 2)."""
    centre, w = np.array([0.4, 0.6]), 0.12
    return _pixels("bump", lambda points: np.exp(-((points - centre) ** 2).sum(axis=1) / (2 * w * w)))


def _pixels(name: str, shades: Callable[[np.ndarray], np.ndarray]) -> Dataset:
    """A function on [0, 1]²: at the centres of 64 × 64 pixels to train on, at their corners to test."""
    train, test = (
        (torch.from_numpy(points).float(), torch.from_numpy(shades(points)).float()[:, None])
        for points in (bunny.grid(64), bunny.grid(64, shift=0.0))
    )
    return Dataset(name, train, test, ())


def _image_folder(path: str | Path, *, side: int, seed: int) -> Dataset:
    """Images in folders by class, fitted to side × side pixels in colour.

    Either PATH/train/CLASS/… with PATH/test/CLASS/… or PATH/val/CLASS/…, or PATH/CLASS/…, of which every fifth image,
    drawn by the seed, is for testing.
    """
    path = Path(path)
    tests = [path / name for name in ("test", "val") if (path / name).is_dir()]
    if (path / "train").is_dir() and tests:
        classes = _class_names(path / "train")
        train, test = (_byte_split(*_pictures(folder, classes, side)) for folder in (path / "train", tests[0]))
        return Dataset(path.name, train, test, classes)
    classes = _class_names(path)
    images, labels = _byte_split(*_pictures(path, classes, side))
    order = torch.from_numpy(np.random.default_rng([seed, 4]).permutation(len(images)))
    held, kept = order[::5], order[torch.arange(len(order)) % 5 != 0]
    return Dataset(path.name, (images[kept], labels[kept]), (images[held], labels[held]), classes)


def _class_names(path: Path) -> tuple[str, ...]:
    names = tuple(sorted(folder.name for folder in path.iterdir() if folder.is_dir() and folder.name[0] != "."))
    if not names:
        raise MissingData(f"{path} holds no folders; an image folder has one folder for each class")
    return names


def _pictures(path: Path, classes: tuple[str, ...], side: int) -> tuple[np.ndarray, np.ndarray]:
    """The images under path/CLASS/ as bytes (n, 3, side, side), and their classes (n,)."""
    found = [(file, k) for k, name in enumerate(classes) for file in sorted((path / name).rglob("*"))]
    found = [(file, k) for file, k in found if file.suffix.lower() in PICTURES]
    if not found:
        raise MissingData(f"{path} holds no images; they end in {', '.join(PICTURES)}")
    return np.stack([_picture(file, side) for file, _ in found]), np.array([k for _, k in found])


def _picture(file: Path, side: int) -> np.ndarray:
    try:
        with open_file(file) as opened, Image.open(opened) as image:
            if image.width * image.height > PIXELS:
                raise ValueError(f"it has {image.width} × {image.height} pixels, and {PIXELS:,} are the most")
            return np.asarray(ImageOps.fit(image.convert("RGB"), (side, side))).transpose(2, 0, 1)
    except Exception as error:  # of many kinds, as the broken files that Pillow meets
        raise DamagedData(f"{file} cannot be read as an image: {one_line(error)}") from error


DATASETS: dict[str, Callable[[Path, int], Dataset]] = {
    "mnist-sample": lambda root, seed: Dataset("mnist-sample", mnist_sample("train"), mnist_sample("test"), DIGITS),
    "mnist": lambda root, seed: _idx_dataset("mnist", MNIST, DIGITS, root),
    "fashion-mnist": lambda root, seed: _idx_dataset("fashion-mnist", FASHION, CLOTHES, root),
    "cifar10": _cifar10,
    "gaussians": _gaussians,
    "modular-addition": _modular_addition,
    "bunny": _bunny_picture,
    "bump": _bump,
}
