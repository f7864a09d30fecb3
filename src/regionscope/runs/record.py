"""What was recorded at one step of a training run."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from torch import Tensor

from regionscope.files import plain
from regionscope.results import with_error
from regionscope.tables import Facts, how_many

Finding = Mapping[str, Any]  # what a measure found, as its `to_dict` tells it: numbers, words, lists, tables of them


@dataclass(frozen=True, repr=False)
class Record(Facts):
    """One step of a run: what a training loop said of it, what was measured, and what could not be.

    `probes` holds, by probe and measure, what `to_dict` of the measure's result told, such as an estimate's "mean",
    "stderr" and "per_layer". `planes` counts the exact regions on each plane. `errors` says of "probe/measure",
    "planes/name" or "scalars/name" why there is no number, and of "weights" if they hold NaN. `seconds` is the time
    that measuring took.

    >>> found = {"mean": 3.0, "stderr": 0.5, "per_layer": [1.0, 2.0]}
    >>> Record(10, {"loss": 0.1}, {"train": {"local_rank": found}}).flat()
    {'loss': 0.1, 'train/local_rank': 3.0, 'train/local_rank/stderr': 0.5, 'train/local_rank/layer1': 1.0, \
'train/local_rank/layer2': 2.0}
    """

    step: int
    scalars: Mapping[str, float | None] = field(default_factory=dict)
    probes: Mapping[str, Mapping[str, Finding]] = field(default_factory=dict)
    planes: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None

    def _facts(self) -> dict[str, object]:
        """The numbers by name with their errors, but for layers; what is no single number is only named."""
        flat = self.flat()
        found = {
            f"{probe}/{name}": found for probe, measures in self.probes.items() for name, found in measures.items()
        }
        shown = {name: _in_words(flat.get(name), told.get("stderr")) for name, told in found.items()}
        return {
            "step": self.step, **{name: _in_words(value) for name, value in self.scalars.items()}, **shown,
            **{f"planes/{name}": how_many(cells, "cell") for name, cells in self.planes.items()},
            **({"could not be measured": ", ".join(self.errors)} if self.errors else {}),
        }  # fmt: skip

    def flat(self) -> dict[str, float | None]:
        """The numbers by name: scalars by their own, "probe/measure", ".../stderr", ".../layer1", "planes/name"."""
        values: dict[str, float | None] = dict(self.scalars)
        for probe, measures in self.probes.items():
            for name, found in measures.items():
                values |= _numbers(f"{probe}/{name}", found)
        return values | {f"planes/{name}": cells for name, cells in self.planes.items()}

    def to_dict(self) -> dict[str, Any]:
        """For JSON, where what is no finite number becomes null; errors only if there are some."""
        return {name: value for name, value in asdict(self).items() if name != "errors" or value}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`, also after JSON; an error that says what of it is no record."""
        known = {entry.name for entry in fields(cls)}
        if foreign := [name for name in stored if name not in known]:
            raise ValueError(f"a record has no {foreign[0]!r}; it has {', '.join(sorted(known))}")
        if "step" not in stored:
            raise ValueError("a record says its step, and this does not")
        for name, value in stored.items():
            if not _CHECKS[name](value):
                raise ValueError(f"{name} of a record cannot be {repr(value)[:60]}")
        return cls(**stored)


def whole_step(step: object) -> int:
    """A step as a whole number from 0 on, as which numbers of numpy and torch pass too.

    >>> whole_step(10.0)
    10
    >>> whole_step(-1)
    Traceback (most recent call last):
    ...
    ValueError: a step must be a whole number from 0 on, got -1
    """
    try:
        number = int(step)  # type: ignore[call-overload]
        fits = number == step and number >= 0 and not isinstance(step, bool | str | bytes)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        fits = False
    if not fits:
        raise ValueError(f"a step must be a whole number from 0 on, got {step!r}")
    return int(number)


def finding(told: Mapping[str, Any], name: str) -> Finding:
    """What a measure of the user's tells, as it can be recorded; an error if its mean or errors are no numbers."""
    found = plain(told)
    if not _is_finding(found):
        raise TypeError(f"mean, stderr and per_layer of a finding are numbers; {name} returned {str(found)[:60]}")
    return dict(found)


def number(value: Any) -> float:
    """A scalar that a training loop tells, as a number; text that looks like one is none."""
    if isinstance(value, str | bytes):
        raise TypeError(f"a scalar must be a number, got {value!r}")
    return float(value.detach() if isinstance(value, Tensor) else value)  # torch warns of losses with gradients


def check_status(found: Mapping[str, Any]) -> None:
    """An error if what is said of a whole run is no such thing."""
    for name, value in found.items():
        if name in _STATUS and not _STATUS[name](value):
            raise ValueError(f"{name} of a run cannot be {repr(value)[:60]}")


def _in_words(value: float | None, error: Any = None) -> str:
    """A number with its error, as far as they are known."""
    return "…" if value is None else f"{value:.4g}" if error is None else with_error(value, error)


def _numbers(name: str, found: Finding) -> dict[str, float | None]:
    """Those of one measure: the mean under its own name, or all that are in it by theirs."""
    if "mean" in found:
        layers = {f"{name}/layer{k + 1}": v for k, v in enumerate(found.get("per_layer") or [])}
        return {name: found["mean"], f"{name}/stderr": found.get("stderr"), **layers}
    values: dict[str, float | None] = {}
    for part, value in found.items():
        if isinstance(value, Mapping):
            values |= _numbers(f"{name}/{part}", value)
        elif isinstance(value, int | float):
            values[f"{name}/{part}"] = float(value)
    return values


# what a record may hold


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_finding(value: object) -> bool:
    """Whether it is a table whose mean, error and layers, if it has them, are numbers."""
    if not isinstance(value, Mapping):
        return False
    layers = value.get("per_layer") or []
    return isinstance(layers, list) and all(map(_is_number, [value.get("mean"), value.get("stderr"), *layers]))


def _table_of(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, Mapping) and all(map(check, value.values()))


def _is_step(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_CHECKS: dict[str, Callable[[object], bool]] = {
    "step": _is_step,
    "scalars": _table_of(_is_number),
    "probes": _table_of(_table_of(_is_finding)),
    "planes": _table_of(lambda value: isinstance(value, int)),
    "errors": _table_of(lambda value: isinstance(value, str)),
    "seconds": _is_number,
}
_STATUS: dict[str, Callable[[object], bool]] = {
    **dict.fromkeys(("step", "steps"), _is_step),
    **dict.fromkeys(("state", "reason", "monitoring"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("loss", "train_accuracy", "test_loss", "test_accuracy", "signal"), _is_number),
    "unwritten": lambda value: isinstance(value, list) and all(map(_is_step, value)),
    "errors": _table_of(lambda value: isinstance(value, str)),
}
