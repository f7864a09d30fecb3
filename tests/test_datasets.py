"""The data that comes with the library."""

import pytest
import torch

from regionscope.datasets import mnist_sample


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_mnist_sample_is_there(split: str) -> None:
    images, labels = mnist_sample(split)
    assert images.shape == (1000, 1, 28, 28)
    assert 0 <= images.min() < images.max() <= 1
    assert sorted(torch.unique(labels).tolist()) == list(range(10))


def test_an_unknown_split_is_named() -> None:
    with pytest.raises(ValueError, match="train or test"):
        mnist_sample("all")
