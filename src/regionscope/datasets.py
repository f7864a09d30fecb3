"""Data to study networks on."""

from importlib.resources import files

import numpy as np
import torch
from torch import Tensor


def mnist_sample(split: str = "train") -> tuple[Tensor, Tensor]:
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
    return torch.from_numpy(images).float()[:, None] / 255, torch.from_numpy(labels.astype(np.int64))
