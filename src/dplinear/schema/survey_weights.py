"""Survey weights: how many units of a population a row stands for, within public bounds.

A weight is a part of its public upper bound, so that a row moves a sum by no more than a whole one
does (docs/theory/survey-weights.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.schema.cells import Cells, numbers_of
from dplinear.schema.columns import WHERE, Numeric, check_bounds, exact_number, write_number

_RULE = 'a column and its bounds, such as ("wght", 0, 20)'
_HINT = 'a column that is named "weight" goes into the mapping: Schema({"weight": (30, 200)}).'


@dataclass(frozen=True)
class SurveyWeight:
    """The column of weights, clamped to [low, high]; 0 ≤ low < high. All of it is public."""

    column: str
    low: Fraction
    high: Fraction

    @staticmethod
    def of(given: Any) -> "SurveyWeight":
        """Return what `weight=(column, low, high)` says; raise where it says nothing."""
        if isinstance(given, SurveyWeight):
            return given
        if isinstance(given, str | bytes) or not isinstance(given, Sequence) or len(given) != 3:
            raise wrong_type("weight", WHERE, _RULE, given, _HINT)
        column, *ends = given
        if not is_name(column):
            raise wrong_type("weight", WHERE, _RULE, given, _HINT)
        low, high = (exact_number(end, "weight", _RULE, given) for end in ends)
        if low < 0:
            raise rejection("weight", WHERE, "bounds of at least 0", given)
        check_bounds(low, high, "weight", given)
        return SurveyWeight(column, low, high)

    def written(self) -> list[int | float | str]:
        """Return it as plain JSON that `of` reads back exactly."""
        return [self.column, write_number(self.low), write_number(self.high)]

    def scale(self, rows_per_unit: int | None) -> float:
        """Return what a row of weight 1 in sums weighs in the column's own scale."""
        return float(self.high) * (rows_per_unit or 1)

    def shares(self, cells: Cells) -> Floats:
        """Return the weights of rows as parts of `high`; NaN where a cell holds no number.

        Promises: all others in [0, 1]; each a bitwise function of its own cell; nothing raises or
        warns because of a value.
        """
        column = Numeric("number", self.low, self.high, Fraction(0))
        with np.errstate(all="ignore"):
            raw = np.asarray(numbers_of(column, cells), np.float64)
            return np.asarray(np.clip(raw, float(self.low), float(self.high)) / float(self.high))


def is_name(value: object) -> bool:
    """Return whether a value can be the name of a column."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()
