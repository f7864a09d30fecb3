"""Where each activation bends and how steep its pieces are: the table behind every site."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Activation:
    """A function of one variable: `len(slopes)` pieces that meet at the breakpoints.

    `None` stands for a slope that a parameter of the model sets (PReLU). A smooth activation has no linear pieces;
    its breakpoint 0 says where its units are taken to switch: where the pre-activation changes sign.
    """

    kind: str
    breakpoints: tuple[float, ...]
    slopes: tuple[float | None, ...]
    smooth: bool = False


Arguments = Mapping[str, Any]


def _bend(kind: str, breakpoint: float, left: float | None, right: float) -> Activation:
    """Two pieces; a single one if they have the same slope."""
    if left == right:
        return Activation(kind, (), (right,))
    return Activation(kind, (float(breakpoint),), (left, right))


def _box(kind: str, low: float | None, high: float | None, slope: float = 1.0) -> Activation:
    """Constant, then `slope` between low and high, then constant; `None` is a side without limit."""
    low, high = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    if low >= high:  # torch takes the upper limit everywhere: a constant
        return Activation(kind, (), (0.0,))
    left = ((low,), (0.0,)) if low > -math.inf else ((), ())
    right = ((high,), (0.0,)) if high < math.inf else ((), ())
    return Activation(kind, left[0] + right[0], (*left[1], slope, *right[1]))


def _threshold(a: Arguments) -> Activation:
    if a["value"] != a["threshold"]:
        raise ValueError(f"threshold({a['threshold']}) with value {a['value']} jumps: it is not continuous")
    return _bend("threshold", a["threshold"], 0.0, 1.0)


def _softshrink(a: Arguments) -> Activation:
    width = float(a["lambd"])
    return Activation("softshrink", (-width, width), (1.0, 0.0, 1.0)) if width else Activation("softshrink", (), (1.0,))


# keyed by the aten operation (an in-place twin has the same entry), called with the operation's arguments by name
PIECEWISE_LINEAR: dict[str, Callable[[Arguments], Activation]] = {
    "relu": lambda a: _bend("relu", 0.0, 0.0, 1.0),
    "leaky_relu": lambda a: _bend("leaky_relu", 0.0, a["negative_slope"], 1.0),
    "_prelu_kernel": lambda a: _bend("prelu", 0.0, None, 1.0),
    "threshold": _threshold,
    "hardtanh": lambda a: _box("hardtanh", a["min_val"], a["max_val"]),
    "hardsigmoid": lambda a: _box("hardsigmoid", -3.0, 3.0, 1 / 6),
    "softshrink": _softshrink,
    "abs": lambda a: _bend("abs", 0.0, -1.0, 1.0),
    "clamp": lambda a: _box("clamp", a["min"], a["max"]),
    "clamp_min": lambda a: _box("clamp", a["min"], None),
    "clamp_max": lambda a: _box("clamp", None, a["max"]),
}

# smooth activations: no linear regions, but a place where the unit switches
SMOOTH: dict[str, str] = {
    "gelu": "gelu",
    "silu": "silu",
    "elu": "elu",
    "celu": "celu",
    "softplus": "softplus",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "mish": "mish",
    "hardswish": "hardswish",
    "log_sigmoid_forward": "logsigmoid",
}

# two values compete and the larger (smaller) wins: the unit is their difference
PAIRWISE: dict[str, str] = {"maximum": "maximum", "minimum": "minimum", "fmax": "maximum", "fmin": "minimum"}


def pairwise(kind: str) -> Activation:
    """max(a, b) = b + relu(a - b): a bend at 0 in the difference, whatever the two are."""
    return Activation(kind, (0.0,), (0.0, 1.0))


def activation(operation: str, arguments: Arguments) -> Activation | None:
    """The activation an aten operation applies, or `None` if it is no activation.

    Raises `ValueError` where the arguments make it jump.

    >>> activation("hardtanh", {"min_val": -1, "max_val": 1})
    Activation(kind='hardtanh', breakpoints=(-1.0, 1.0), slopes=(0.0, 1.0, 0.0), smooth=False)
    """
    if operation in PIECEWISE_LINEAR:
        return PIECEWISE_LINEAR[operation](arguments)
    if operation in SMOOTH:
        return Activation(SMOOTH[operation], (0.0,), (), smooth=True)
    return None
