"""Checkpoints that were once loaded as another network: every test is named after the script that showed it."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from regionscope.training.checkpoints import Architecture, load_model


class Autoencoder(nn.Module):
    """Its layers come in another order than their names in the alphabet."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
        self.decoder = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 6))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x))  # type: ignore[no-any-return]


def tanh() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1))


@pytest.mark.parametrize("make", [Autoencoder, tanh])
def test_checkpoint_guess(make: type[nn.Module], tmp_path: Path) -> None:
    model, path, x = make(), tmp_path / "net.pt", torch.randn(5, 6)
    torch.save(model.state_dict(), path)
    with pytest.raises(ValueError, match="neither the order of the layers nor the activations between them"):
        load_model(path)
    assert load_model(path, make)(x).equal(model(x))


def test_checkpoint_guess_is_not_made_of_names_either(tmp_path: Path) -> None:
    torch.save(Autoencoder().state_dict(), tmp_path / "net.pt")
    with pytest.raises(ValueError, match=r"is no mlp of regionscope.training.models, whose layers are numbered"):
        load_model(tmp_path / "net.pt", Architecture("mlp", "relu"))
    model, x = tanh(), torch.randn(5, 6)
    torch.save(model.state_dict(), tmp_path / "tanh.pt")
    assert load_model(tmp_path / "tanh.pt", Architecture("mlp", "tanh"))(x).equal(model(x))
