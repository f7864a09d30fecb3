"""Shows where a neural network bends: its linear regions, around data, on lines and planes, and while it trains."""

import ast
from importlib import import_module
from pkgutil import get_data

__version__ = "0.1.0"

# The public names are listed in __init__.pyi, for people, type checkers and this file. What a name needs is imported
# when it is first asked for: compiled kernels, solvers and pictures take longer to load than many scripts to run.
_FILES = {
    name.name: str(line.module)
    for line in ast.parse(get_data(__name__, "__init__.pyi") or "").body
    if isinstance(line, ast.ImportFrom) and line.module != __name__
    for name in line.names
}

__all__ = list(_FILES)


def __getattr__(name: str) -> object:
    if name == "plots":
        return import_module(f"{__name__}.plots")
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_FILES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_FILES})
