"""Networks from files."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from cases import mlp as dense
from safetensors.torch import save_file
from torch import Tensor, nn

import regionscope as rs
from regionscope.training.checkpoints import Architecture, load_model, loaded_model, save_weights
from regionscope.training.models import cnn, mlp, preact_resnet18, resnet18, transformer


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2, self.fc10 = nn.Linear(3, 4), nn.Linear(4, 5, bias=False), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc10(self.fc2(self.fc1(x).relu()).relu())  # type: ignore[no-any-return]


def saved(model: nn.Module, path: Path, architecture: Architecture | None = None) -> Path:
    if path.suffix == ".safetensors":
        save_weights(model.state_dict(), path, architecture)
    else:
        torch.save({"state_dict": model.state_dict(), "step": 3}, path)
    return path


FILES = ("net.safetensors", "net.pt", "net.pth")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("make", [Deep, lambda: dense(3, 4, 2), lambda: mlp([3, 4, 2])])
def test_weights_alone_are_not_guessed_a_network_for(name: str, make: Callable[[], nn.Module], tmp_path: Path) -> None:
    path = saved(make(), tmp_path / name)
    with pytest.raises(ValueError, match="neither the order of the layers nor the activations between them") as caught:
        load_model(path)
    message = str(caught.value)
    assert name in message and "load_model(path, model)" in message and "--model" in message and "\n" not in message


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_module_or_a_function_says_what_network_it_is(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    model, x = Deep().to(dtype), torch.randn(5, 3, dtype=dtype)
    path = saved(model.train(), tmp_path / name)
    own = Deep()
    for given in (Deep, lambda: own, own):
        loaded = load_model(path, given)
        assert isinstance(loaded, Deep) and not loaded.training
        assert loaded(x).equal(model(x))
    assert load_model(path, own) is own


def test_no_weight_is_rounded(tmp_path: Path) -> None:
    wide, narrow = saved(Deep().double(), tmp_path / "wide.pt"), saved(Deep(), tmp_path / "narrow.pt")
    for path, model in ((wide, Deep()), (narrow, Deep().double()), (wide, Deep().half())):
        loaded = load_model(path, model)
        assert {p.dtype for p in loaded.parameters()} == {torch.float64}
        stored = torch.load(path)["state_dict"]
        assert all(tensor.equal(stored[name].double()) for name, tensor in loaded.state_dict().items())


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Architecture]] = {
    "mlp": (lambda: mlp([6, 5, 4, 3], "tanh"), Architecture("mlp", "tanh")),
    "mlp of twelve layers": (lambda: mlp([6, *range(12, 1, -1)]), Architecture("mlp", "relu")),
    "mlp with batch norm": (lambda: mlp([6, 5, 4, 3], "hardtanh", batch_norm=True), Architecture("mlp", "hardtanh")),
    "mlp of maxout": (lambda: mlp([6, 5, 4, 3], "maxout"), Architecture("mlp", "maxout")),
    "transformer": (
        lambda: transformer((2, 5), 3, depth=2, width=32, activation="gelu"),
        Architecture("transformer", "gelu"),
    ),
    "linear": (lambda: mlp([6, 3]), Architecture("mlp", "relu")),
    "mlp that flattens nothing": (lambda: dense(6, 5, 4, 3, act=nn.SiLU), Architecture("mlp", "silu")),
    "cnn": (
        lambda: cnn((2, 9, 8), 3, depth=4, width=5, activation="relu6"),
        Architecture("cnn", "relu6", (2, 9, 8)),
    ),
    "cnn with batch norm": (
        lambda: cnn((1, 8, 8), 3, depth=2, width=4, activation="gelu", batch_norm=True),
        Architecture("cnn", "gelu", (1, 8, 8)),
    ),
    "resnet18": (
        lambda: resnet18(7, channels=1, width=2, activation="leaky_relu"),
        Architecture("resnet18", "leaky_relu"),
    ),
    "preact-resnet18": (
        lambda: preact_resnet18(7, channels=1, width=2, batch_norm=True),
        Architecture("preact-resnet18", "relu"),
    ),
    "resnet18 without batch norm": (lambda: resnet18(7, width=2, batch_norm=False), Architecture("resnet18", "relu")),
}
INPUTS = {
    "mlp": (6,),
    "linear": (6,),
    "transformer": (2, 5),
    "cnn": (2, 9, 8),
    "cnn with batch norm": (1, 8, 8),
    "resnet18": (1, 8, 8),
    "preact-resnet18": (1, 8, 8),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_the_library_need_a_name_and_an_activation(name: str, tmp_path: Path) -> None:
    make, architecture = NETWORKS[name]
    model = make().eval()
    x = torch.randn(4, *INPUTS.get(name, (3, 8, 8) if "resnet" in name else (6,)))
    state = torch.get_rng_state()
    for file in FILES:
        assert load_model(saved(model, tmp_path / file), architecture)(x).equal(model(x))
    itself = load_model(saved(model, tmp_path / "itself.safetensors", architecture))
    assert itself(x).equal(model(x)) and not itself.training
    assert torch.get_rng_state().equal(state)


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_checkpoints_of_training_runs_know_their_network(model: Literal["mlp", "cnn"], tmp_path: Path) -> None:
    config = rs.Training(
        size=20, test_size=5, model=model, depth=2, width=3, activation="tanh", batch_norm=True, steps=2, records=3,
        measures=("total_variation",), points=2,
    )  # fmt: skip
    run = rs.train(config, tmp_path / "run")
    for step in run.steps:
        weights = run.path / "steps" / f"{step:09d}" / "weights.safetensors"
        elsewhere = shutil.copy(weights, tmp_path / f"{step}.safetensors")
        x, expected = torch.randn(3, *run.config["shape"]), rs.run_model(run, step)
        assert load_model(weights)(x).equal(expected(x))
        assert load_model(elsewhere)(x).equal(expected(x))


def test_a_run_of_another_loop_needs_to_be_told(tmp_path: Path) -> None:
    model = Deep()
    with rs.Monitor(model, {"x": torch.randn(2, 3)}, measures=["total_variation"], run=tmp_path / "run") as monitor:
        monitor(0)
    path = tmp_path / "run" / "steps" / "000000000" / "weights.safetensors"
    with pytest.raises(ValueError, match="neither the order of the layers"):
        load_model(path)
    assert load_model(path, Deep)(torch.ones(1, 3)).equal(model(torch.ones(1, 3)))


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    path = saved(Deep(), tmp_path / "net.pt")
    wanted = {
        r"net.pt does not fit the network: missing 'fc2.bias'$": lambda: biased("fc2"),
        r"network: unexpected 'fc1.bias'$": lambda: unbiased("fc1"),
        r"network: 'fc10.weight' is \(2, 5\) instead of \(2, 7\)$": lambda: wider("fc10"),
        r"missing 'weight', 'bias'; unexpected 'fc1.weight', 'fc1.bias', 'fc2.weight', 'fc10.weight' and 1 more$": (
            lambda: nn.Linear(2, 2)
        ),
    }
    for match, make in wanted.items():
        with pytest.raises(ValueError, match=match):
            load_model(path, make)


def biased(name: str) -> nn.Module:
    return changed(name, lambda old: nn.Linear(old.in_features, old.out_features))


def unbiased(name: str) -> nn.Module:
    return changed(name, lambda old: nn.Linear(old.in_features, old.out_features, bias=False))


def wider(name: str) -> nn.Module:
    return changed(name, lambda old: nn.Linear(7, old.out_features))


def changed(name: str, change: Callable[[nn.Linear], nn.Module]) -> nn.Module:
    model = Deep()
    setattr(model, name, change(getattr(model, name)))
    return model


def test_names_that_do_not_tell_the_order_are_no_network_of_the_library(tmp_path: Path) -> None:
    path = saved(Deep(), tmp_path / "net.pt")
    with pytest.raises(ValueError, match=r"is no mlp of regionscope.*, .* numbered: it holds 'fc1.weight'"):
        load_model(path, Architecture("mlp", "relu"))
    gaps = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(), nn.Linear(4, 2))
    with pytest.raises(ValueError, match=r"missing '2.weight', '2.bias'; unexpected '3.weight', '3.bias'"):
        load_model(saved(gaps, tmp_path / "gaps.pt"), Architecture("mlp", "relu"))
    with pytest.raises(ValueError, match="holds too few weights for a cnn"):
        load_model(saved(mlp([3, 2]), tmp_path / "flat.pt"), Architecture("cnn", "relu", (1, 8, 8)))
    with pytest.raises(ValueError, match="holds too few weights for a mlp"):
        load_model(saved(nn.Sequential(nn.Conv2d(1, 2, 3)), tmp_path / "conv.pt"), Architecture("mlp", "relu"))


def test_a_description_must_be_whole_and_not_contradict_the_file(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="model must be one of mlp, cnn, resnet18, preact-resnet18, transformer, got 'vgg'"
    ):
        Architecture("vgg", "relu")
    with pytest.raises(ValueError, match="a cnn needs the shape of its images too"):
        Architecture("cnn", "relu")
    path = saved(mlp([3, 4, 2], "tanh"), tmp_path / "net.safetensors", Architecture("mlp", "tanh", (3,)))
    with pytest.raises(ValueError, match=r"the weights of mlp with tanh for inputs \(3,\), not of mlp with relu"):
        load_model(path, Architecture("mlp", "relu"))
    assert isinstance(load_model(path, Architecture("mlp", "tanh")), nn.Sequential)
    with pytest.raises(ValueError, match="activation must be one of relu"):
        load_model(saved(mlp([3, 4, 2]), tmp_path / "net.pt"), Architecture("mlp", "swish"))


def test_a_description_of_another_version_is_named_and_not_needed(tmp_path: Path) -> None:
    model, path, x = mlp([3, 4, 2]), tmp_path / "net.safetensors", torch.randn(2, 3)
    for about in ('{"activation": "relu"}', '{"model": "vgg", "activation": "relu"}', "[1]", "relu"):
        save_file(model.state_dict(), path, metadata={"regionscope": about})
        with pytest.raises(ValueError, match=r"net.safetensors says of its network what this version .* cannot read"):
            load_model(path)
        assert load_model(path, lambda: mlp([3, 4, 2]))(x).equal(model(x))


@pytest.mark.parametrize(
    ("model", "shape", "why"),
    [
        ("mlp", (0,), r"shape must be numbers of entries, such as 1 28 28, got \(0,\)"),
        ("mlp", (2.5,), "shape must be numbers of entries"),
        ("cnn", (1, 1 << 16, 2), "shape must be numbers of entries"),
        ("cnn", (28, 28), r"a cnn takes images of shape \(channels, height, width\), got \(28, 28\)"),
    ],
)
def test_a_shape_that_is_none_is_refused(model: Any, shape: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Architecture(model, "relu", shape)


def test_a_model_must_be_one(tmp_path: Path) -> None:
    path = saved(Deep(), tmp_path / "net.pt")
    with pytest.raises(TypeError, match="model must be a module or a function that returns one, got str"):
        load_model(path, "test_checkpoints:Deep")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"model must return a torch.nn.Module, got dict"):
        load_model(path, dict)  # type: ignore[arg-type]


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path("evil").touch, ())


def test_loading_executes_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": Evil()}, "evil.pt")
    with pytest.raises(
        ValueError, match=r"evil.pt cannot be read as weights: it holds getattr, and following that would run code"
    ):
        load_model("evil.pt", Deep)
    assert not Path("evil").exists()


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    for name, reason in (("net.safetensors", ""), ("net.pt", "it is not what torch.save writes")):
        (tmp_path / name).write_bytes(b"broken")
        with pytest.raises(ValueError, match=f"{name} cannot be read as weights: {reason}"):
            load_model(tmp_path / name, Deep)


@pytest.mark.parametrize(
    "content", [[1, 2], {"weights": 3}, {"model": {"a": torch.ones(1)}, "state_dict": {"b": torch.ones(1)}}]
)
def test_a_file_without_one_state_dict_is_named(content: object, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "net.pt")
    with pytest.raises(ValueError, match=r"net.pt cannot be read as weights: it holds no state dict, or several"):
        load_model(tmp_path / "net.pt", Deep)
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load_model(tmp_path / "nothing.pt")


def test_a_file_with_a_state_dict_under_another_name_says_what_it_has(tmp_path: Path) -> None:
    torch.save({"net": Deep().state_dict(), "epoch": 3}, tmp_path / "net.pt")
    with pytest.raises(
        ValueError, match="under state_dict, model_state_dict, model: it has 'net', 'epoch'; save model"
    ):
        load_model(tmp_path / "net.pt", Deep)


def test_what_compiling_puts_into_names_is_left_out_wherever_it_stands(tmp_path: Path) -> None:
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), torch.randn(5, 3)
    weights = {name.replace("0.", "0._orig_mod."): tensor for name, tensor in model.state_dict().items()}
    fresh = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    for prefix, left in (("", ""), ("model.", "; 'model.' is left out of the names of its weights")):
        torch.save({prefix + name: tensor for name, tensor in weights.items()}, tmp_path / "net.pt")
        found = loaded_model(tmp_path / "net.pt", fresh)
        assert found.network(x).equal(model(x))
        assert found.assumed.endswith(f"; '_orig_mod.' is left out of the names of its weights{left}")


class Wrapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = Deep()


@pytest.mark.parametrize("prefix", ["model.", "module.", "_orig_mod.", "model._orig_mod."])
def test_a_prefix_that_all_weights_have_is_left_out(prefix: str, tmp_path: Path) -> None:
    model, x = Deep(), torch.randn(5, 3)
    torch.save({"state_dict": {prefix + n: t for n, t in model.state_dict().items()}, "epoch": 3}, tmp_path / "a.ckpt")
    found = loaded_model(tmp_path / "a.ckpt", Deep)
    assert found.network(x).equal(model(x))
    assert (
        found.assumed == f"{tmp_path / 'a.ckpt'}: Deep, as you say; {prefix!r} is left out of the names of its weights"
    )
    dense = mlp([3, 4, 2], "tanh")
    torch.save({prefix + n: t for n, t in dense.state_dict().items()}, tmp_path / "b.pt")
    assert load_model(tmp_path / "b.pt", Architecture("mlp", "tanh"))(x).equal(dense(x))


def test_a_prefix_of_the_network_itself_stays(tmp_path: Path) -> None:
    wrapped = Wrapped()
    torch.save(wrapped.state_dict(), tmp_path / "net.pt")
    assert load_model(tmp_path / "net.pt", Wrapped).state_dict().keys() == wrapped.state_dict().keys()
    assert loaded_model(tmp_path / "net.pt", Deep).assumed.endswith("'model.' is left out of the names of its weights")


def test_of_several_networks_in_a_file_one_has_to_be_named(tmp_path: Path) -> None:
    one, two, x = Deep(), Deep(), torch.randn(5, 3)
    both = {f"{p}.{n}": t for p, m in (("model", one), ("ema", two)) for n, t in m.state_dict().items()}
    torch.save(both, tmp_path / "net.pt")
    with pytest.raises(ValueError, match=r"The whole network is below 'model.' and 'ema.': say so with prefix"):
        load_model(tmp_path / "net.pt", Deep)
    assert load_model(tmp_path / "net.pt", Deep, prefix="ema.")(x).equal(two(x))
    assert loaded_model(tmp_path / "net.pt", Deep, prefix="ema.").assumed.endswith(", and 5 others of the file")
    with pytest.raises(ValueError, match=r"no weights whose names begin with 'net.'; it has ema.fc1, ema.fc10"):
        load_model(tmp_path / "net.pt", Deep, prefix="net.")


def test_a_whole_module_in_a_file_is_not_made_again(tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 3), tmp_path / "net.pt")
    with pytest.raises(ValueError, match=r"it holds torch.nn.*Linear, and following that would run code; save model"):
        load_model(tmp_path / "net.pt", lambda: nn.Linear(2, 3))


def test_an_architecture_is_told_as_the_file_says_it(tmp_path: Path) -> None:
    path = saved(mlp([3, 4, 2], "tanh"), tmp_path / "net.safetensors", Architecture("mlp", "tanh"))
    assert loaded_model(path).assumed == f"{path}: mlp with tanh, as the file says"


def test_a_network_without_weights_takes_an_empty_state_dict(tmp_path: Path) -> None:
    torch.save({}, tmp_path / "none.pt")
    assert isinstance(load_model(tmp_path / "none.pt", nn.ReLU), nn.ReLU)
    with pytest.raises(ValueError, match=r"does not fit the network.*weight"):
        load_model(tmp_path / "none.pt", nn.Linear(2, 3))


def test_of_a_run_the_newest_weights_are_named(tmp_path: Path) -> None:
    with rs.Monitor(nn.Linear(2, 1), {"train": torch.eye(2)}, measures=["total_variation"], run=tmp_path / "run") as m:
        m(3)
        m(20)
    newest = tmp_path / "run" / "steps" / "000000020" / "weights.safetensors"
    with pytest.raises(IsADirectoryError, match=f"run is a run, not a checkpoint: its newest weights are {newest}"):
        rs.load_model(tmp_path / "run")
    with pytest.raises(IsADirectoryError, match="is a folder, not a checkpoint: name a file with weights"):
        rs.load_model(tmp_path)
