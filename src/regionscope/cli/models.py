"""What network a checkpoint belongs to, as the command line says it."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module, util
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from regionscope.training.checkpoints import Architecture, Loaded, loaded_model
from regionscope.training.models import ACTIVATIONS, MODELS, Activation


@dataclass(frozen=True)
class Given:
    """What network the weights belong to.

    Parameters
    ----------
    model
        path/to/file.py:function or package.module:function, in the current folder or installed, that returns the
        network, or its class: your code, which is run. Or mlp, cnn, resnet18, preact-resnet18 or transformer of
        regionscope.training.models, with ACTIVATION. Checkpoints of `regionscope train` need none.
    model_args
        What that function is called with: values, and name=value, such as 784 hidden=32. Numbers, true, false, null
        and lists are read as JSON, all else is text.
    prefix
        Take the weights whose names begin with this only. One that all have, such as Lightning's model., is left out
        by itself.
    activation
        What lies between the layers of an mlp, cnn or ResNet.
    shape
        Channels, height and width of the images that a cnn takes.
    """

    model: str | None = None
    model_args: tuple[str, ...] = ()
    prefix: str | None = None
    activation: Activation | None = None
    shape: tuple[int, int, int] | None = None

    def loaded(self, checkpoint: Path) -> Loaded:
        """The network of a checkpoint, and what was assumed."""
        return loaded_model(checkpoint, self._builder(), prefix=self.prefix)

    def _builder(self) -> Architecture | Callable[[], nn.Module] | None:
        """Who builds it; None if the checkpoint has to say."""
        if self.model_args and (self.model is None or self.model in MODELS):
            raise ValueError("--model-args go with --model path/to/file.py:function or package.module:function only")
        if self.model in MODELS:
            if self.activation is None:
                choice = ", ".join(ACTIVATIONS)
                raise ValueError(f"weights do not tell their activation: give --activation, one of {choice}")
            return Architecture(self.model, self.activation, self.shape)
        if self.model is not None:
            _check_form(self.model)
        if self.activation is not None or self.shape is not None:
            raise ValueError(f"--activation and --shape go with --model {', '.join(MODELS)} only")
        return None if self.model is None else self._called(_object_named(self.model))

    def _called(self, found: Any) -> Any:
        """What was named, which is to be called with the arguments if there are any, or can do without."""
        if isinstance(found, nn.Module) or not callable(found):
            if self.model_args:
                raise ValueError(f"--model {self.model} is a {type(found).__name__}, which takes no --model-args")
            return found
        pairs = [argument.partition("=") for argument in self.model_args]
        values = [value_of(first) for first, equals, _ in pairs if not equals]
        names = {name: value_of(text) for name, equals, text in pairs if equals}
        try:
            signature(found).bind(*values, **names)
        except TypeError as error:
            raise ValueError(f"--model {self.model} takes other --model-args: {error}") from error
        except ValueError:  # some built-in functions do not say what they take
            pass
        return partial(self._built, found, *values, **names)

    def _built(self, build: Callable[..., Any], *values: Any, **names: Any) -> Any:
        """What the user's function returns; if it fails, an error that says whose it is."""
        try:
            return build(*values, **names)
        except Exception as error:  # whatever the user's code leads to
            raise ValueError(f"--model {self.model} failed: {type(error).__name__}: {error}") from error


TOLD_BY_FILE = Given()  # if the command line says nothing


def value_of(text: str) -> Any:
    """As the shell gives it: numbers, true, false, null and lists as JSON writes them, all else as text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _check_form(text: str) -> None:
    """An error if it can be no path/to/file.py:name or package.module:name."""
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise ValueError(
            f"there is no model {text!r}: --model must be {', '.join(MODELS)}, path/to/file.py:function or"
            " package.module:function"
        )


def _object_named(text: str) -> Any:
    """What is named by path/to/file.py:name or package.module:name."""
    place, _, name = text.rpartition(":")
    try:
        found: Any = _module_from_file(Path(place)) if place.endswith(".py") else _module_by_name(place)
    except Exception as error:  # whatever the user's code leads to
        raise ValueError(f"--model {text} cannot be imported: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"--model {text}: there is no {part!r} in {place}")
        found = getattr(found, part)
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
