"""Networks from files: weights only, so that nothing that is loaded can run code."""

import json
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regionscope.models import mlp


def save_mlp(model: nn.Module, path: str | Path, *, activation: str = "relu") -> None:
    """Write the weights of a stack of linear layers as safetensors, with the activation between them."""
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(state, path, metadata={"regionscope": json.dumps({"activation": activation})})


def load_model(path: str | Path, *, model: str | None = None) -> nn.Module:
    """The network of a checkpoint, in eval mode.

    A `.safetensors` file, or a `.pt` or `.pth` file that holds a state dict. `model` says who builds the network, as
    `package.module:function`; without it the weights must be those of linear layers, one after another.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        state, about = load_weights(path)
    except Exception as error:  # the readers raise whatever a broken file leads them into
        raise ValueError(
            f"{path} cannot be read as weights: {next(iter(str(error).splitlines()), type(error).__name__)}"
        ) from error
    if model is None:
        return built_mlp(state, about.get("activation", "relu"), path).eval()
    module, _, function = model.partition(":")
    if not function:
        raise ValueError(f"model must be package.module:function, got {model!r}")
    network: nn.Module = getattr(import_module(module), function)()
    network.load_state_dict(state)
    return network.eval()


def load_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    if path.suffix == ".safetensors":
        with safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {}).get("regionscope", "{}"))
        return load_file(path), about
    loaded = torch.load(path, map_location="cpu", weights_only=True)
    for key in ("state_dict", "model_state_dict", "model"):
        loaded = loaded[key] if isinstance(loaded, dict) and isinstance(loaded.get(key), dict) else loaded
    if not isinstance(loaded, dict) or not all(isinstance(v, Tensor) for v in loaded.values()):
        raise ValueError("it holds no state dict; save model.state_dict()")
    return loaded, {}


def built_mlp(state: dict[str, Tensor], activation: str, path: Path) -> nn.Module:
    """A stack of linear layers with these weights, in the natural order of their names."""
    names = sorted(
        {n.rpartition(".")[0] for n in state},
        key=lambda n: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", n)],
    )
    weights = [state[f"{name}.weight"] for name in names if f"{name}.weight" in state]
    fits = len(weights) == len(names) > 0 and all(w.dim() == 2 for w in weights)
    if not fits or any(a.shape[0] != b.shape[1] for a, b in pairwise(weights)):
        raise ValueError(f"{path} does not hold linear layers one after another; say who builds it with --model")
    network = mlp([weights[0].shape[1], *(w.shape[0] for w in weights)], activation).to(weights[0].dtype)
    for layer, name in zip((m for m in network if isinstance(m, nn.Linear)), names, strict=True):
        layer.weight.data = state[f"{name}.weight"]
        layer.bias.data = state.get(f"{name}.bias", torch.zeros_like(layer.bias))
    return network
