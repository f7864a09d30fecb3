"""Networks from files."""

from pathlib import Path

import pytest
import torch
from cases import mlp
from torch import nn

from regionscope.checkpoints import load_model, save_mlp


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2, self.fc10 = nn.Linear(3, 4), nn.Linear(4, 5, bias=False), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc10(self.fc2(self.fc1(x).relu()).relu())  # type: ignore[no-any-return]


def test_a_stack_of_linear_layers_is_recognised_by_its_weights(tmp_path: Path) -> None:
    x = torch.randn(5, 3)
    for model in (mlp(3, 4, 5, 2), Deep(), Deep().double()):
        x = x.to(next(model.parameters()).dtype)
        save_mlp(model, tmp_path / "net.safetensors")
        torch.save({"state_dict": model.state_dict(), "step": 3}, tmp_path / "net.pt")
        for name in ("net.safetensors", "net.pt"):
            assert torch.allclose(load_model(tmp_path / name)(x), model(x))


def test_the_activation_is_kept(tmp_path: Path) -> None:
    model = mlp(3, 4, 2, act=nn.Hardtanh)
    save_mlp(model, tmp_path / "net.safetensors", activation="hardtanh")
    x = 3 * torch.randn(5, 3)
    assert torch.allclose(load_model(tmp_path / "net.safetensors")(x), model(x))


def test_other_networks_are_built_by_a_function(tmp_path: Path) -> None:
    model = Deep()
    save_mlp(model, tmp_path / "net.safetensors")
    loaded = load_model(tmp_path / "net.safetensors", model="test_checkpoints:Deep")
    assert isinstance(loaded, Deep)
    assert torch.equal(loaded.fc1.weight, model.fc1.weight)


def test_convolutions_need_to_be_built(tmp_path: Path) -> None:
    save_mlp(nn.Sequential(nn.Conv2d(1, 2, 3)), tmp_path / "conv.safetensors")
    with pytest.raises(ValueError, match="say who builds it with --model"):
        load_model(tmp_path / "conv.safetensors")
    with pytest.raises(ValueError, match=r"package.module:function"):
        load_model(tmp_path / "conv.safetensors", model="Deep")


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path("evil").touch, ())


def test_loading_executes_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": Evil()}, "evil.pt")
    with pytest.raises(ValueError, match=r"evil.pt cannot be read as weights: Weights only load failed"):
        load_model("evil.pt")
    assert not Path("evil").exists()


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    for name in ("net.safetensors", "net.pt"):
        (tmp_path / name).write_bytes(b"broken")
        with pytest.raises(ValueError, match=f"{name} cannot be read as weights"):
            load_model(tmp_path / name)


def test_a_file_without_a_state_dict_is_named(tmp_path: Path) -> None:
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(ValueError, match=r"list.pt cannot be read as weights: it holds no state dict"):
        load_model(tmp_path / "list.pt")
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load_model(tmp_path / "nothing.pt")
