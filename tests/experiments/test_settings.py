"""Settings: to JSON and back, names that stay, differences in words."""

from dataclasses import dataclass, field, make_dataclass, replace
from typing import Any

import pytest

from regionscope.experiments.settings import differences, settings_from_plain, settings_hash, settings_to_plain
from regionscope.training.config import Training


@dataclass(frozen=True)
class Inner:
    sizes: tuple[int, ...] = (1, 2)
    limit: tuple[float, float] | None = None


@dataclass(frozen=True)
class Outer:
    inner: Inner = field(default_factory=Inner)
    several: tuple[Inner, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0, 1, 2)


FULL = Outer(Inner((3,), (0.5, 1.5)), (Inner(), Inner((4, 5))), {"bounds": (0.0, 1.0), "deep": {"x": (1, 2)}}, (0,))


def test_nested_settings_come_back() -> None:
    assert settings_from_plain(Outer, settings_to_plain(FULL)) == FULL
    with pytest.raises(ValueError, match="Outer has no 'colour'; it has inner"):
        settings_from_plain(Outer, {"colour": "red"})


def test_names_tell_settings_apart_and_a_new_option_changes_none() -> None:
    assert len({settings_hash(s) for s in (FULL, Outer(), Outer(Inner((3,))), Inner(), Training())}) == 5
    newer = make_dataclass("Inner", [("sizes", tuple, (1, 2)), ("limit", object, None), ("new", int, 0)], frozen=True)
    assert settings_hash(newer((7,))) == settings_hash(Inner((7,)))
    assert settings_hash(newer((7,), None, 1)) != settings_hash(Inner((7,)))


def test_differences_are_told_in_words() -> None:
    assert differences(FULL, FULL) == ()
    told = differences(FULL, Outer(Inner(), FULL.several, FULL.options))
    assert told == ("sizes 3 instead of 1, 2", "limit 0.5, 1.5 instead of all", "1 seed instead of 3")
    told = differences(replace(FULL, options={"bounds": (0.0, 2.0), "deep": {}}), FULL)
    assert told == ("options bounds 0.0, 2.0, deep none instead of bounds 0.0, 1.0, deep x 1, 2",)
