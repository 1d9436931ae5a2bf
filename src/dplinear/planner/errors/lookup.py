"""The shipped table of simulated errors, looked up and interpolated.

`data/errors.json` is written by `python -m dplinear.planner.errors.table`. It is read when first
needed, never on import.
"""

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from dplinear.arrays import Floats
from dplinear.descent.whitened import WhitenedDescent
from dplinear.planner.errors.curves import (
    PROPORTIONAL,
    WHOLE_MATRIX,
    Size,
    abscissa,
    far_bounds,
    sampling_error,
)
from dplinear.planner.errors.real_like_errors import RealLikeTable
from dplinear.planner.forecast import FLOOR
from dplinear.planner.populations import WIDTH

_NAME = "errors.json"
_FITTED = 0.3  # how far off a curve may be, as a standard deviation of its natural logarithm


@dataclass(frozen=True)
class Assumed:
    """One population: how far its features are correlated, and how long its tails are."""

    condition: float
    tails: str
    explained: float = 0.5


@dataclass(frozen=True)
class Found:
    """A looked-up error: its median over tables, and the standard deviation of its logarithm.

    `outside` says that the table has no such size or condition, so that the law was extrapolated.
    """

    error: float
    floor: float
    spread: float
    outside: bool


@dataclass(frozen=True)
class Interval:
    """Where a number lies between two entries of an axis, by logarithms."""

    low: int
    high: int
    share: float
    outside: bool

    @classmethod
    def of(cls, value: float, axis: list[float]) -> "Interval":
        """Return the interval; beyond the ends it is the end."""
        if len(axis) == 1 or value <= axis[0]:
            return cls(0, 0, 0.0, value < axis[0])
        if value >= axis[-1]:
            return cls(len(axis) - 1, len(axis) - 1, 0.0, value > axis[-1])
        high = next(index for index, entry in enumerate(axis) if entry >= value)
        width = math.log(axis[high] / axis[high - 1])
        return cls(high - 1, high, math.log(value / axis[high - 1]) / width, outside=False)

    def of_values(self, values: Floats) -> Floats:
        """Interpolate along the first axis of an array."""
        return np.asarray(values[self.low] * (1 - self.share) + values[self.high] * self.share)


class ErrorTable:
    """Curves of what privacy adds, by method, tails, condition and columns."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.nodes = np.asarray(content["nodes"], float)
        self.tails: list[str] = content["tails"]
        self.conditions: list[float] = content["conditions"]
        self.columns: list[float] = content["columns"]
        self._curves = {
            name: np.asarray(each["added"], float) for name, each in content["methods"].items()
        }
        self._spreads = {
            name: np.asarray(each["spread"], float) for name, each in content["methods"].items()
        }
        self._biases = {
            name: np.asarray(each["bias"], float) for name, each in content["floors"].items()
        }
        self._factors: dict[str, list[float]] = {
            name: each["factor"] for name, each in content["floors"].items()
        }

    @property
    def methods(self) -> list[str]:
        """The methods that the table has."""
        return list(self._curves)

    def floor(self, size: Size, assumed: Assumed, name: str = FLOOR) -> float:
        """Return the median excess risk of a method without noise; by default of least squares.

        What is clamped biases it: the simulated bias is that of bounds at four standard
        deviations, and the squared share of a heavy tail falls as the fourth power of them.
        """
        tail, kind = self.tails.index(assumed.tails), name if name in self._factors else FLOOR
        factor = self._factors[kind][tail]
        bias = Interval.of(assumed.condition, self.conditions).of_values(self._biases[kind][tail])
        bias = Interval.of(size.columns, self.columns).of_values(bias)
        rows = size.rows if size.sample is None else size.sample
        error = sampling_error(rows, size.columns, assumed.explained, factor)
        return min(error + float(bias) * (WIDTH / size.width) ** 4, 1.0)

    def find(self, name: str, size: Size, assumed: Assumed) -> Found:
        """Return what is expected of a method."""
        tail = self.tails.index(assumed.tails)
        condition = Interval.of(assumed.condition, self.conditions)
        columns = Interval.of(size.columns, self.columns)
        curve = columns.of_values(condition.of_values(self._curves[name][tail]))
        x = abscissa(name, size)
        added = curve_at(x, self.nodes, curve)
        added *= _residual_scale(name, added, assumed.explained)
        if name == WhitenedDescent.name:
            added += far_bounds(size)
        floor = self.floor(size, assumed, name)
        error = floor + added
        own = float(columns.of_values(self._spreads[name]))
        sampling = math.sqrt(2 / (size.columns + 1))
        spread = math.hypot((added * own + floor * sampling) / error, _FITTED)
        outside = columns.outside or condition.outside
        return Found(error, floor, spread, outside)


def curve_at(x: float, nodes: Floats, curve: Floats) -> float:
    """Return what privacy adds at x, from logarithms at nodes; beyond the last it goes on."""
    logarithm = math.log10(x)
    value = float(np.interp(logarithm, nodes, curve))
    slope = float(curve[-1] - curve[-2]) / float(nodes[-1] - nodes[-2])
    return math.pow(10.0, value + slope * max(logarithm - float(nodes[-1]), 0.0))


def _residual_scale(name: str, added: float, explained: float) -> float:
    """Return what another share of explained variance does to what privacy adds.

    A descent's noise follows the residuals; a whole matrix's meets the line too, whose variance is
    1 where the target's is 1/explained. Where the line says nothing, neither matters.
    """
    whole = name in WHOLE_MATRIX or name in PROPORTIONAL
    ratio = (1 + 1 / explained) / 3 if whole else 1 / explained - 1
    return math.pow(ratio, 1 - min(added, 1.0))


@cache
def error_table() -> ErrorTable:
    """Return the table that the package carries."""
    text = (files("dplinear") / "data" / _NAME).read_text(encoding="utf-8")
    return ErrorTable(json.loads(text))


@cache
def real_like_table() -> RealLikeTable:
    """Return the part of it about tables that look like real ones."""
    return RealLikeTable(error_table().content["real_like"])
