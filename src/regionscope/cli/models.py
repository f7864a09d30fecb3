"""What network a checkpoint belongs to, as the command line says it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from regionscope.training.checkpoints import MODELS, Architecture
from regionscope.training.models import ACTIVATIONS


@dataclass(frozen=True)
class Given:
    """What network the weights belong to.

    Parameters
    ----------
    model
        path/to/file.py:function or package.module:function that returns the network: your code, which is run. Or mlp,
        cnn or resnet18 of regionscope.training.models, with ACTIVATION. Checkpoints of `regionscope train` need none.
    activation
        What lies between the layers of an mlp, cnn or resnet18: relu, leaky_relu, hardtanh, relu6, gelu, silu or tanh.
    shape
        Channels, height and width of the images that a cnn takes.
    """

    model: str | None = None
    activation: str | None = None
    shape: tuple[int, int, int] | None = None

    def network(self) -> Architecture | Callable[[], nn.Module] | None:
        """Who builds it; None if the checkpoint has to say."""
        if self.model in MODELS:
            if self.activation is None:
                choice = ", ".join(ACTIVATIONS)
                raise ValueError(f"weights do not tell their activation: give --activation, one of {choice}")
            return Architecture(self.model, self.activation, self.shape)
        if self.activation is not None or self.shape is not None:
            raise ValueError(f"--activation and --shape go with --model {', '.join(MODELS)} only")
        return None if self.model is None else _imported(self.model)


def _imported(text: str) -> Any:
    """What is named by path/to/file.py:name or package.module:name."""
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise ValueError(
            f"--model must be path/to/file.py:function, package.module:function, {', '.join(MODELS)}, got {text!r}"
        )
    try:
        found: Any = _module_from_file(Path(place)) if place.endswith(".py") else _module_by_name(place)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # whatever the user's code leads to
        raise ValueError(f"--model {text} cannot be imported: {type(error).__name__}: {error}") from error
    return found


def _module_by_name(name: str) -> ModuleType:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # a command does not have the folder it is called in on its path
    return import_module(name)


def _module_from_file(path: Path) -> ModuleType:
    """The module in a file, which finds those beside it, as a script does."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    sys.path.insert(0, str(path.resolve().parent))
    specification = util.spec_from_file_location("regionscope_model", path)
    assert specification is not None and specification.loader is not None
    module = util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look for their module there
    specification.loader.exec_module(module)
    return module
