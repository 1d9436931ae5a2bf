"""Unit conversion: how rows and labels came to a learner's units, and how its numbers go back."""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dplinear.arguments import positive, real, rejection, wrong_type

_KEYS = ["row_norm", "scale", "constant", "target_bounds", "classes"]
_WHERE = "UnitConversion"
_LONGEST = 200

Label = str | int | float | bool


@dataclass(frozen=True)
class UnitConversion:
    """Rows were clipped to norm `row_norm`, in their own units, and multiplied by `scale`.

    `constant` is the value of one more feature, the intercept's, in the learner's units; None
    without it. Labels were numbers within `target_bounds`, the middle of which became 0 and the
    ends ±1; or one of two `classes`, of which the second became +1 and all else −1.
    """

    row_norm: float
    scale: float
    constant: float | None = None
    target_bounds: tuple[float, float] | None = None
    classes: tuple[Label, Label] | None = None

    def __post_init__(self) -> None:
        positive(self.row_norm, "row_norm", _WHERE)
        positive(self.scale, "scale", _WHERE)
        if self.constant is not None:
            positive(self.constant, "constant", _WHERE)
        if (self.target_bounds is None) == (self.classes is None):
            raise rejection("classes", _WHERE, "given, or else target_bounds", self.classes)

    @property
    def target_scale(self) -> float:
        """How much of the target a margin of 1 is."""
        if self.target_bounds is None:
            return 1.0
        low, high = self.target_bounds
        return high / 2 - low / 2

    @property
    def target_middle(self) -> float:
        """What a margin of 0 stands for."""
        if self.target_bounds is None:
            return 0.0
        low, high = self.target_bounds
        return low / 2 + high / 2

    def features(self, size: int) -> int:
        """Return how many of so many coordinates are features: all but the intercept's."""
        return size if self.constant is None else size - 1

    def offset(self, last: float) -> float:
        """Return the prediction of a row without anything in it, from the last coordinate of θ."""
        own = 0.0 if self.constant is None else self.constant * last
        return self.target_middle + self.target_scale * own

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "row_norm": self.row_norm,
            "scale": self.scale,
            "constant": self.constant,
            "target_bounds": None if self.target_bounds is None else list(self.target_bounds),
            "classes": None if self.classes is None else list(self.classes),
        }

    @staticmethod
    def from_dict(content: Any) -> "UnitConversion":
        """Build it from what `to_dict` returned; anything else raises."""
        if not isinstance(content, Mapping) or list(content) != _KEYS:
            raise wrong_type("reading", _WHERE, "a mapping of " + ", ".join(_KEYS), content)
        constant, bounds = content["constant"], content["target_bounds"]
        return UnitConversion(
            row_norm=positive(content["row_norm"], "row_norm", _WHERE),
            scale=positive(content["scale"], "scale", _WHERE),
            constant=None if constant is None else positive(constant, "constant", _WHERE),
            target_bounds=None if bounds is None else read_bounds(bounds, _WHERE),
            classes=None
            if content["classes"] is None
            else read_classes(content["classes"], _WHERE),
        )


def read_bounds(value: Any, where: str) -> tuple[float, float]:
    """Return the public bounds of a target."""
    rule = "a pair of finite numbers (low, high), low below high"
    hint = "bounds are public: they come from what is known of the target, never from the rows."
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise wrong_type("target_bounds", where, rule, value, hint)
    low, high = (real(end, "target_bounds", where, hint=hint) for end in value)
    if low >= high:
        raise rejection("target_bounds", where, rule, value, hint)
    return low, high


def read_classes(value: Any, where: str) -> tuple[Label, Label]:
    """Return the two public labels, if they are two different numbers, or two different texts."""
    rule = "a pair of different labels, both numbers or both texts"
    hint = (
        "write classes=(no, yes), the second one being explained. Labels are public: they come "
        "from what y means, never from what it holds."
    )
    listed = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(listed, list | tuple) or len(listed) != 2:
        raise wrong_type("classes", where, rule, value, hint)
    texts = all(
        isinstance(label, str) and label.isprintable() and len(label) <= _LONGEST
        for label in listed
    )
    counts = all(isinstance(label, numbers.Real) and math.isfinite(label) for label in listed)
    if not (texts or counts) or listed[0] == listed[1]:
        raise rejection("classes", where, rule, value, hint)
    first, second = (label if isinstance(label, str) else _plain(label) for label in listed)
    return first, second


def _plain(label: Any) -> Label:
    """Return a number as one that files can hold."""
    if isinstance(label, bool):
        return label
    return int(label) if isinstance(label, numbers.Integral) else float(label)
