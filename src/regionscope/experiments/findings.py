"""What an experiment found: curves and numbers, what they say of the claim, and how all of it was made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from regionscope.files import read_arrays, read_json, write_arrays, write_json
from regionscope.types import Floats

Verdict = Literal["reproduced", "partly", "not reproduced", "not testable at this scale"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "partly", "not reproduced", "not testable at this scale")
DIGITS = 6  # that curves are kept with


@dataclass(frozen=True, eq=False)
class Curve:
    """A number at the same places, most often steps, in several runs that differ in their seed only."""

    x: Floats  # (n,)
    runs: Floats  # (seeds, n)

    @staticmethod
    def of(x: ArrayLike, runs: ArrayLike) -> "Curve":
        """With the digits that are kept, so that it is the same after it was written and read."""
        curve = Curve(_to_digits(x), np.atleast_2d(_to_digits(runs)))
        if curve.runs.shape[1:] != curve.x.shape:
            raise ValueError(f"runs must be (seeds, {len(curve.x)}), one number a place, got {curve.runs.shape}")
        return curve

    @property
    def mean(self) -> Floats:
        """Over the seeds, (n,)."""
        return np.asarray(self.runs.mean(axis=0), np.float64)

    @property
    def stderr(self) -> Floats | None:
        """The standard error of the mean over the seeds, (n,); of a single one there is none."""
        count = len(self.runs)
        return np.asarray(self.runs.std(axis=0, ddof=1) / np.sqrt(count)) if count > 1 else None


def _to_digits(values: ArrayLike) -> Floats:
    numbers = np.asarray(values, np.float64)
    return np.array([float(f"{v:.{DIGITS}g}") for v in numbers.ravel()]).reshape(numbers.shape)


@dataclass(frozen=True, eq=False)
class Evidence:
    """All numbers that a figure is drawn from and judged by: curves, and arrays of any other kind."""

    curves: Mapping[str, Curve] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """One part of a claim: what the paper says, what was found, and whether that agrees by a rule.

    `found` is the mean over seeds and `error` its standard error. A number without a `rule` is only told. `holds` is
    None where the rule cannot be applied, and `why` says why.
    """

    words: str
    found: float | None = None
    error: float | None = None
    paper: str = ""
    rule: str = ""
    holds: bool | None = None
    why: str = ""


def verdict_of(checks: Sequence[Check]) -> Verdict:
    """Reproduced if every rule holds, not if none does, partly if some do; not testable if none could be applied.

    >>> verdict_of([Check("rises", rule="> 0", holds=True), Check("falls", rule="< 0", holds=False)])
    'partly'
    """
    outcomes = [check.holds for check in checks if check.rule]
    if not any(holds is not None for holds in outcomes):
        return "not testable at this scale"
    if all(outcomes):
        return "reproduced"
    return "partly" if any(outcomes) else "not reproduced"


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """What an experiment found at one scale, and how.

    `deviations` say where its settings are not the paper's, `choices` what the paper leaves open. `seconds` are those
    of all its trainings and measurements, one after another.
    """

    name: str
    scale: str
    claim: str
    checks: tuple[Check, ...]
    evidence: Evidence
    deviations: tuple[str, ...]
    choices: tuple[str, ...]
    settings: Mapping[str, Any]
    seeds: tuple[int, ...]
    versions: Mapping[str, str]
    seconds: float
    command: str

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.checks)

    def to_dict(self) -> dict[str, Any]:
        """All but the arrays, for JSON."""
        about = {name: value for name, value in vars(self).items() if name not in ("checks", "evidence")}
        return {
            **about, "verdict": self.verdict, "checks": [vars(check) for check in self.checks],
            "curves": {name: {"x": c.x, "runs": c.runs} for name, c in self.evidence.curves.items()},
        }  # fmt: skip

    @staticmethod
    def from_dict(stored: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "Findings":
        """The inverse, also after JSON; a verdict that is not that of the checks is an error."""
        about: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in stored.items()}
        curves = {name: Curve.of(_numbers(c["x"]), _numbers(c["runs"])) for name, c in about.pop("curves").items()}
        checks, told = tuple(Check(**check) for check in about.pop("checks")), about.pop("verdict")
        findings = Findings(checks=checks, evidence=Evidence(curves, arrays), **about)
        if findings.verdict != told:
            raise ValueError(f"{findings.name} says {told!r}, but its checks say {findings.verdict!r}")
        return findings

    def save(self, path: Path) -> None:
        """Write a .json file, and beside it a .npz file with the arrays if there are any."""
        if self.evidence.arrays:
            write_arrays(path.with_suffix(".npz"), self.evidence.arrays)
        write_json(path, self.to_dict())

    @staticmethod
    def load(path: Path) -> "Findings":
        """What `save` wrote; nothing that is read can run code."""
        stored = read_json(path)
        beside = path.with_suffix(".npz")
        arrays = read_arrays(beside) if beside.exists() else {}
        try:
            return Findings.from_dict(stored, arrays)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} holds no findings: {error}") from None


def _numbers(values: Any) -> Floats:
    """As JSON has them, where null is no number."""
    return np.array(values, np.float64)
