"""Settings: frozen dataclasses that go to JSON and back, are told apart by a hash and compared in words."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from regionscope.files import plain
from regionscope.tables import how_many

S = TypeVar("S")
LETTERS = 16  # of a hash: two settings of 10^6 have the same by a chance of 10^-8


def settings_to_plain(settings: Any) -> dict[str, Any]:
    """For JSON.

    >>> from regionscope.training.config import Training
    >>> settings_from_plain(Training, settings_to_plain(Training(depth=3))) == Training(depth=3)
    True
    """
    return {field.name: _plain(getattr(settings, field.name)) for field in fields(settings)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return settings_to_plain(value)
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, Mapping) else plain(value)


def settings_from_plain(kind: type[S], stored: Mapping[str, Any]) -> S:
    """The inverse, also after JSON; settings hold tuples and no lists."""
    hints = get_type_hints(kind)
    if unknown := set(stored) - set(hints):
        raise ValueError(f"{kind.__name__} has no {unknown.pop()!r}; it has {', '.join(hints)}")
    return kind(**{name: _restored(hints[name], value) for name, value in stored.items()})


def _restored(hint: Any, value: Any) -> Any:
    origin, inside = get_origin(hint), get_args(hint)
    if value is None:
        return None
    if isinstance(hint, type) and is_dataclass(hint):
        return settings_from_plain(hint, value)
    if origin in (Union, UnionType):
        return _restored(next(kind for kind in inside if kind is not type(None)), value)
    if isinstance(value, list):
        kinds = inside if inside and inside[-1] is not ... else (inside or (Any,))[:1] * len(value)
        return tuple(_restored(kind, v) for kind, v in zip(kinds, value, strict=True))
    if isinstance(value, Mapping):
        return {name: _restored(inside[1] if inside else Any, v) for name, v in value.items()}
    return value


def settings_hash(settings: Any) -> str:
    """A name for settings; those that are as usual do not count, so that a new option changes no name."""
    return sha256(json.dumps(_unusual(settings), sort_keys=True).encode()).hexdigest()[:LETTERS]


def _unusual(value: Any) -> Any:
    """What differs from the defaults, in nested settings too, with the names of their kinds."""
    if not is_dataclass(value):
        return [_unusual(v) for v in value] if isinstance(value, tuple | list) else _plain(value)
    told = {field.name: getattr(value, field.name) for field in fields(value)}
    usual = {field.name: field.default for field in fields(value)}
    usual |= {f.name: f.default_factory() for f in fields(value) if callable(f.default_factory)}
    return {"": type(value).__name__} | {name: _unusual(v) for name, v in told.items() if v != usual[name]}


def differences(settings: Any, other: Any) -> tuple[str, ...]:
    """In words, where settings differ from others of their kind.

    >>> from regionscope.training.config import Training
    >>> differences(Training(steps=10), Training(steps=1_000_000))
    ('steps 10 instead of 1,000,000',)
    """
    found: list[str] = []
    for field in fields(settings):
        a, b = getattr(settings, field.name), getattr(other, field.name)
        if is_dataclass(a) and is_dataclass(b):
            found += differences(a, b)
        elif field.name == "seeds":
            found += [f"{how_many(len(a), 'seed')} instead of {len(b)}"] if len(a) != len(b) else []
        elif a != b:
            found.append(f"{field.name.replace('_', ' ')} {_words(a)} instead of {_words(b)}")
    return tuple(found)


def _words(value: Any, inside: bool = False) -> str:
    """A list of values; integers together inside a list are a shape."""
    if isinstance(value, tuple | list):
        shape = inside and all(isinstance(v, int) for v in value)
        return (" × " if shape else ", ").join(_words(v, True) for v in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(v)}" for name, v in value.items()) or "none"
    if value is None:
        return "all"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
