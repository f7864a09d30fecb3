"""Networks from files: nothing that is loaded can run code, and nothing that a file does not say is guessed."""

import os
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from regionscope.disk import DamagedFile, one_line, open_file, reading
from regionscope.files import json_table, read_tensors, write_tensors
from regionscope.training.models import ACTIVATIONS, MODELS, RESNETS, cnn, mlp, transformer

State = dict[str, Tensor]

HOLDERS = ("state_dict", "model_state_dict", "model")  # where training scripts keep the state dict in what they save

COMPILED = "_orig_mod."


@dataclass(frozen=True)
class Architecture:
    """What weights do not tell of a network of `regionscope.training.models`; its sizes they do.

    `model` is mlp, cnn, resnet18, preact-resnet18 or transformer, `activation` a name such as relu, `shape` that of an
    input, which only a cnn needs.
    """

    model: str
    activation: str
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"model must be one of {', '.join(MODELS)}, got {self.model!r}")
        if self.model == "cnn" and self.shape is None:
            raise ValueError("a cnn needs the shape of its images too, such as 1 28 28: weights do not tell it")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {str(self.activation)[:60]!r}")
        if self.shape is not None:
            object.__setattr__(self, "shape", tuple(self.shape))
            if not all(isinstance(side, int) and 0 < side < 1 << 16 for side in self.shape):
                raise ValueError(f"shape must be numbers of entries, such as 1 28 28, got {str(self.shape)[:60]}")
            if self.model == "cnn" and len(self.shape) != 3:
                raise ValueError(f"a cnn takes images of shape (channels, height, width), got {self.shape}")

    def __str__(self) -> str:
        return f"{self.model} with {self.activation}{'' if self.shape is None else f' for inputs {self.shape}'}"


def save_weights(weights: Mapping[str, Tensor], path: str | Path, architecture: Architecture | None = None) -> None:
    """Write a state dict as safetensors, whole or not at all; with its architecture `load_model` needs no more."""
    write_tensors(path, weights, None if architecture is None else asdict(architecture))


ModelOf = nn.Module | Callable[[], nn.Module] | Architecture | None  # who says what network it is


@dataclass(frozen=True)
class Loaded:
    """The network of a file, and what the weights do not say of it: who says so, what is left out of their names."""

    network: nn.Module
    assumed: str


def load_model(path: str | Path, model: ModelOf = None, *, prefix: str | None = None) -> nn.Module:
    """The network of a checkpoint, in eval mode: a `.safetensors` file, or a `.pt` or `.pth` file with a state dict.

    Weights say neither in which order layers come nor what lies between them. `model` does: a module, which takes the
    weights, a function that returns one, or an `Architecture`. Checkpoints of `regionscope train`, and all that
    `save_weights` wrote with an architecture, need none. Every weight must have its place, of its shape, and none is
    rounded: the network gets the wider dtype of its own and the file's. No code in the file is ever executed.

    A prefix that all weights have and the network does not know, such as Lightning's "model.", is left out, and so is
    the "_orig_mod." of torch.compile wherever it stands. Where only some have a prefix, `prefix` says whose weights are
    meant, and the others are left out.

    >>> from tempfile import mkdtemp
    >>> torch.save(nn.Linear(2, 3).state_dict(), path := mkdtemp() + "/linear.pt")
    >>> load_model(path, lambda: nn.Linear(2, 3))
    Linear(in_features=2, out_features=3, bias=True)
    """
    return loaded_model(path, model, prefix=prefix).network


def loaded_model(path: str | Path, model: ModelOf = None, *, prefix: str | None = None) -> Loaded:
    """As `load_model`, with what was assumed."""
    path = Path(path)
    state, about = _load_weights(path)
    named = state if prefix is None else _weights_of(prefix, state, path)
    if model is None or isinstance(model, Architecture):
        architecture = _known_architecture(path, about, model)
        said = f"{architecture}, as {'the file says' if about else 'you say'}"
        named = _without_prefix(named, _are_numbered)
        network = _network_for(architecture, named, path)
    else:
        network = _module_of(model)
        said = f"{type(network).__name__}, as you say"
        wanted = set(network.state_dict())
        named = _without_prefix(named, wanted.__eq__)
        if set(named) != wanted and set(bare := _without_prefix(_uncompiled(named), wanted.__eq__)) == wanted:
            state, named = _uncompiled(state), bare
            said += f"; {COMPILED!r} is left out of the names of its weights"
    cut = next(iter(state), "").removesuffix(next(iter(named), "")) if prefix is None else prefix
    left = f"; {cut!r} is left out of the names of its weights" if cut else ""
    left += f", and {len(state) - len(named)} others of the file" if len(named) < len(state) else ""
    return Loaded(with_weights(network, named, path).eval(), f"{path}: {said}{left}")


HOW_TO_SAY = (
    "neither the order of the layers nor the activations between them. Say what network it is: in Python"
    " load_model(path, model) with a module or a function that returns one, on the command line --model"
    " path/to/file.py:function, --model package.module:function or, for a network of regionscope.training.models,"
    f" --model {', '.join(MODELS)} with --activation"
)


def _known_architecture(path: Path, about: str | None, given: Architecture | None) -> Architecture:
    """What a file says of its network, or the caller does; an error if nobody does, or if they disagree."""
    try:
        told = None if about is None else Architecture(**json_table(about))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} says of its network what this version of regionscope cannot read: {str(about)[:200]}"
        ) from error
    if told is not None and given is not None and not _alike(told, given):
        raise ValueError(f"{path} holds the weights of {told}, not of {given}")
    known = told or given
    if known is None:
        raise ValueError(f"{path} holds weights only, {HOW_TO_SAY}")
    return known


def _alike(a: Architecture, b: Architecture) -> bool:
    """Whether two descriptions say the same, as far as both say it."""
    pairs = zip(asdict(a).values(), asdict(b).values(), strict=True)
    return all(one is None or other is None or one == other for one, other in pairs)


# reading


def _load_weights(path: Path) -> tuple[State, str | None]:
    """The state dict in a file, and what the file says of its network."""
    if path.is_dir():
        raise IsADirectoryError(_weights_in_words(path))
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        state, about = read_tensors(path) if path.suffix == ".safetensors" else (_state_in(_pickled(path)), None)
        for name, tensor in state.items():
            _check_tensor(name, tensor)
        return state, about
    except DamagedFile as error:
        raise DamagedFile(f"{path} cannot be read as weights: {str(error).removeprefix(f'{path} ')}") from error
    except Exception as error:  # the readers raise whatever a broken file leads them into
        reason = one_line(error)
        if foreign := re.search(r"GLOBAL (\S+) was not an allowed", str(error)):
            reason = f"it holds {foreign[1]}, and following that would run code; save model.state_dict()"
        raise DamagedFile(f"{path} cannot be read as weights: {reason}") from error


def _weights_in_words(folder: Path) -> str:
    """What to name instead of a folder: the newest weights if it is a run."""
    kept = sorted(folder.glob("steps/*/weights.safetensors")) if (folder / "run.json").is_file() else []
    if kept:
        return f"{folder} is a run, not a checkpoint: its newest weights are {kept[-1]}"
    return f"{folder} is a folder, not a checkpoint: name a file with weights"


def _pickled(path: Path) -> object:
    """What torch.save wrote. Archives that unpack to more than they are, as it makes none, are not unpacked."""
    with open_file(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of kinds of tensors that are refused below
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                claimed = sum(entry.file_size for entry in archive.infolist())
            if claimed > os.fstat(file.fileno()).st_size:
                raise ValueError(f"it would unpack to {claimed:,} bytes; torch.save compresses nothing")
        file.seek(0)
        if file.read(1) not in (b"P", b"\x80"):  # an archive, or, before there were, a pickle
            raise ValueError("it is not what torch.save writes")
        file.seek(0)
        return torch.load(file, map_location="cpu", weights_only=True)


def _check_tensor(name: str, tensor: Tensor) -> None:
    """An error if it is no plain tensor, or claims more entries than the file has."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested or tensor.device.type != "cpu":
        raise ValueError(f"{name!r} is no plain tensor of numbers: {tensor.layout}, {tensor.dtype}")
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        held = tensor.untyped_storage().nbytes()
        raise ValueError(f"{name!r} claims shape {tuple(tensor.shape)} of {tensor.dtype}, and {held} bytes are there")


def _state_in(loaded: object) -> State:
    """The state dict that a file holds, itself or under one of the usual names."""
    there = ""
    if isinstance(loaded, dict) and not _is_state(loaded):
        there = f", under {', '.join(HOLDERS)}: it has {_first_few([repr(name)[:60] for name in loaded])}"
        held = [loaded[name] for name in HOLDERS if _is_state(loaded.get(name))]
        loaded = held[0] if len(held) == 1 else None
    if not _is_state(loaded):
        raise ValueError(f"it holds no state dict, or several{there}; save model.state_dict()")
    return loaded


def _is_state(value: object) -> TypeGuard[State]:
    return isinstance(value, dict) and all(isinstance(n, str) and isinstance(t, Tensor) for n, t in value.items())


# names


def _weights_of(prefix: str, state: State, path: Path) -> State:
    """Those with a prefix, without it."""
    found = _below(prefix, state)
    if not found:
        there = _first_few(sorted({name.rpartition(".")[0] for name in state}))
        raise ValueError(f"{path} has no weights whose names begin with {prefix!r}; it has {there}")
    return found


def _below(prefix: str, state: State) -> State:
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def _uncompiled(state: State) -> State:
    """Weights without what torch.compile puts into the names of those of parts of a network."""
    return {name.replace(COMPILED, ""): tensor for name, tensor in state.items()}


def _without_prefix(state: State, fits: Callable[[set[str]], bool]) -> State:
    """Weights without the prefix that all of them have, if their names fit then; otherwise as they are."""
    rest = state
    while not fits(set(rest)):
        parts = {name: name.partition(".") for name in rest}
        if len({first for first, _, _ in parts.values()}) != 1 or not all(last for _, _, last in parts.values()):
            return state
        rest = {parts[name][2]: tensor for name, tensor in rest.items()}
    return rest


def _are_numbered(names: set[str]) -> bool:
    """Whether they are of layers in a sequence, as those of the networks of this library are."""
    return all(_is_place(name.split(".")[0]) for name in names)


def _is_place(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


# building


def _module_of(model: nn.Module | Callable[[], nn.Module]) -> nn.Module:
    """The module, or what the function returns."""
    if not callable(model):
        raise TypeError(f"model must be a module or a function that returns one, got {type(model).__name__}")
    network = model if isinstance(model, nn.Module) else model()
    if not isinstance(network, nn.Module):
        raise TypeError(f"model must return a torch.nn.Module, got {type(network).__name__}")
    return network


def _network_for(architecture: Architecture, state: State, path: Path) -> nn.Module:
    """The network of an architecture with the sizes of these weights; whether they fit is not looked at."""
    if not _are_numbered(set(state)):
        foreign = [name for name in state if not _are_numbered({name})]
        raise ValueError(
            f"{path} is no {architecture.model} of regionscope.training.models, whose layers are numbered: it holds"
            f" {foreign[0]!r}. Write a function that returns the network, for --model path/to/file.py:function"
        )
    in_order = [state[name] for name in sorted(state, key=lambda name: int(name.split(".")[0]))]
    matrices, kernels = ([weight for weight in in_order if weight.dim() == k] for k in (2, 4))
    if not matrices or (architecture.model not in ("mlp", "transformer") and not kernels):
        raise ValueError(f"{path} holds too few weights for a {architecture.model}")
    normed = any(name.endswith("running_mean") for name in state)
    options: dict[str, Any] = {"activation": architecture.activation, "batch_norm": normed}

    def built() -> nn.Module:
        if architecture.model == "mlp":
            network = mlp([*(matrix.shape[1] for matrix in matrices), len(matrices[-1])], **options)
            return nn.Sequential(*list(network)[1:]) if "0.weight" in state else network  # it may flatten or not
        if architecture.model == "transformer":
            width, symbols = state["0.symbols.weight"].shape
            layers, activation = sum(name.endswith("enter.weight") for name in state), architecture.activation
            shape = (len(state["0.places"]), symbols)
            return transformer(shape, len(matrices[-1]), depth=layers, width=width, activation=activation)
        size = {"width": kernels[0].shape[0], **options}
        if architecture.model in RESNETS:
            return RESNETS[architecture.model](len(matrices[-1]), channels=kernels[0].shape[1], **size)
        assert architecture.shape is not None
        return cnn(architecture.shape, len(matrices[-1]), depth=len(kernels), **size)

    with torch.random.fork_rng(devices=[]):
        with torch.device("meta"), reading(path, f"fits no {architecture.model}"):  # which takes no memory
            _check_fit(built(), state, path)
        return built()


def with_weights(network: nn.Module, state: State, path: Path) -> nn.Module:
    """The network with these weights, all of them and no others, none rounded."""
    _check_fit(network, state, path)
    dtypes = [t.dtype for t in (*state.values(), *network.state_dict().values()) if t.is_floating_point()]
    try:
        if dtypes:
            network.to(reduce(torch.promote_types, dtypes))
        network.load_state_dict(state, strict=True)
    except RuntimeError as error:
        raise ValueError(f"{path} does not fit the network: {one_line(error)}") from error
    return network


def _check_fit(network: nn.Module, state: State, path: Path) -> None:
    """An error that says which weights have no place in a network, and where they may be meant to go."""
    wanted = network.state_dict()
    if misfit := _misfit(wanted, state):
        raise DamagedFile(f"{path} does not fit the network: {misfit}{_prefixes(wanted, state)}")


def _misfit(wanted: Mapping[str, Tensor], state: State) -> str:
    """Which weights are missing, which have no place and which are of another shape."""
    wanted = {name: tensor for name, tensor in wanted.items() if isinstance(tensor, Tensor)}
    shapes = [
        f"{name!r} is {tuple(state[name].shape)} instead of {tuple(tensor.shape)}"
        for name, tensor in wanted.items()
        if name in state and state[name].shape != tensor.shape
    ]
    shapes += [
        f"{name!r} is {state[name].dtype} instead of {tensor.dtype}"
        for name, tensor in wanted.items()
        if name in state and not torch.can_cast(state[name].dtype, tensor.dtype)
    ]
    missing, unexpected = ([repr(n) for n in a if n not in b] for a, b in ((wanted, state), (state, wanted)))
    parts = {"missing ": missing, "unexpected ": unexpected, "": shapes}
    return "; ".join(f"{word}{_first_few(names)}" for word, names in parts.items() if names)


def _prefixes(wanted: Mapping[str, Tensor], state: State) -> str:
    """Advice, if there are prefixes below which all that is missing is found."""
    first = next(iter(wanted), "")
    found = [name.removesuffix(first) for name in state if name.endswith(f".{first}")]
    whole = [repr(prefix) for prefix in found if not _misfit(wanted, _below(prefix, state))]
    return f". The whole network is below {' and '.join(whole)}: say so with prefix, or --prefix" if whole else ""


def _first_few(names: list[str]) -> str:
    few, left = names[:4], len(names[4:])
    return ", ".join(few) + (f" and {left} more" if left else "")
