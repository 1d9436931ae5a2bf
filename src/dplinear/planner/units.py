"""Units with several rows in a plan: what `rows_per_unit` does to the noise and to the sampling.

With k rows per unit, each of a unit's m rows has the weight v = min(1/k, 1/m) in sums, so a unit
adds s = m·v = min(m/k, 1) to the sum of weights, N = Σ s, and moves any sum by no more than one row
of weight 1 does. The noise is therefore that of N single rows, whatever k is: it falls with N,
which is largest at k = 1, the number of units. Estimates are weighted means. Where two rows of a
unit correlate by r, a unit's part has the variance v²·m·(1 + (m − 1)·r), so that the sampling error
is that of N²/Σ v²·m·(1 + (m − 1)·r) independent rows: with little correlation a larger k lets units
with many rows say more, and with r = 1 nothing is better than k = 1 (docs/theory/units.md). Where r
is left open, the sampling error is the geometric mean over `CORRELATIONS`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dplinear.arguments import integer, positive, real, rejection, wrong_type
from dplinear.privacy.units import MOST_ROWS

AUTO = "auto"
CANDIDATES = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987)
# What is tried where the caller does not say how two rows of a unit correlate in what they add to a
# sum, the product of a feature and a residual: each of the two may correlate by anything from 0 to
# 1, evenly, and of such products these are the middles of the lower, middle and upper third.
CORRELATIONS = (0.04, 0.19, 0.48)
_GUESSES = 256  # of rows per unit, evenly in logarithms
_WHERE = "plan"
_RULE = "a number of rows, a pair (low, high), a list of several, or a mapping of rows to shares"
_GUESS = "a public guess of how many rows a unit has"
_SINGLE = "rows_each=1 says that each has one."
_HINT = "rows_each=(1, 20) says that a unit has 1 to 20 rows, a public guess."


@dataclass(frozen=True)
class UnitRows:
    """What is assumed of the rows of units, and how many of them count.

    Requires: numbers of rows, from 1, each with its share of the units; shares add up to 1. The
    `correlation` is None where it is left open.
    """

    sizes: tuple[int, ...]
    shares: tuple[float, ...]
    rows_per_unit: int = 1
    correlation: float | None = None

    def at(self, rows_per_unit: int) -> "UnitRows":
        """Return the same units, of which so many rows count."""
        return replace(self, rows_per_unit=rows_per_unit)

    @property
    def mean(self) -> float:
        """The mean number of a unit's rows."""
        return self._over([float(size) for size in self.sizes])

    def counted(self, rows: float) -> float:
        """Return the sum of weights of so many rows: the rows whose noise a release has."""
        k = self.rows_per_unit
        return rows / self.mean * self._over([min(size / k, 1.0) for size in self.sizes])

    def sample(self, rows: float) -> float:
        """Return how many independent rows have the same sampling error.

        Where the correlation is left open: the geometric mean over `CORRELATIONS`.
        """
        tried = CORRELATIONS if self.correlation is None else (self.correlation,)
        logs = [math.log(self._sample_at(each, rows)) for each in tried]
        return math.exp(math.fsum(logs) / len(logs))

    def _sample_at(self, correlation: float, rows: float) -> float:
        k = self.rows_per_unit
        variance = self._over(
            [
                min(1 / k, 1 / size) ** 2 * size * (1 + (size - 1) * correlation)
                for size in self.sizes
            ]
        )
        return self.counted(rows) ** 2 / (rows / self.mean * variance)

    def _over(self, values: Sequence[float]) -> float:
        """Return the mean over units."""
        return math.fsum(share * value for share, value in zip(self.shares, values, strict=True))


def read_units(
    rows_per_unit: Any, rows_each: Any, correlation: Any, *, named: bool
) -> tuple[UnitRows | None, tuple[int, ...]]:
    """Return what is assumed of units, and which numbers of rows to compare.

    `named` says that a schema names a unit: then how many rows one has is asked for, as neither
    noise nor sampling error can be predicted from a number of rows alone.
    """
    if rows_each is None:
        if rows_per_unit is not None:
            raise rejection(
                "rows_per_unit", _WHERE, f"given with rows_each, {_GUESS}", rows_per_unit, _HINT
            )
        if correlation is not None:
            raise rejection("correlation", _WHERE, "given with rows_each", correlation, _HINT)
        if named:
            rule = f"given where the schema names a unit: {_GUESS}"
            raise wrong_type("rows_each", _WHERE, rule, rows_each, f"{_HINT} {_SINGLE}")
        return None, ()
    shares = read_rows_each(rows_each, _WHERE)
    if correlation is not None:
        correlation = real(correlation, "correlation", _WHERE, low=0, high=1)
    units = UnitRows(tuple(shares), tuple(shares.values()), 1, correlation)
    return units, _candidates(rows_per_unit, max(shares))


def _candidates(value: Any, most: int) -> tuple[int, ...]:
    if value is None or (isinstance(value, str) and value == AUTO):
        return tuple(k for k in CANDIDATES if k <= most)
    several = isinstance(value, Sequence) and not isinstance(value, str)
    if several and not value:
        raise rejection("rows_per_unit", _WHERE, 'a number, several, or "auto"', value)
    asked = value if several else [value]
    return tuple(
        sorted({integer(k, "rows_per_unit", _WHERE, low=1, high=MOST_ROWS) for k in asked})
    )


def read_rows_each(value: Any, where: str) -> dict[int, float]:
    """Return the share of units that have so many rows, for each number of rows.

    A pair (low, high) is spread evenly in logarithms, as few units have many rows; several numbers
    are as many units; a mapping has a share, or a count, for each number of rows.
    """
    if isinstance(value, Mapping):
        if not value:
            raise wrong_type("rows_each", where, _RULE, value, _HINT)
        sizes = [_size(size, where) for size in value]
        weights = [positive(weight, "rows_each", where) for weight in value.values()]
    elif isinstance(value, np.ndarray) or (
        isinstance(value, Sequence) and not isinstance(value, str | bytes)
    ):
        sizes = _listed([_size(size, where) for size in value], where)
        weights = [1.0] * len(sizes)
    elif isinstance(value, str | bytes):
        raise wrong_type("rows_each", where, _RULE, value, _HINT)
    else:
        sizes, weights = [_size(value, where)], [1.0]
    found: dict[int, float] = {}
    for size, weight in sorted(zip(sizes, weights, strict=True)):
        found[size] = found.get(size, 0.0) + weight
    total = math.fsum(found.values())
    return {size: weight / total for size, weight in found.items()}


def _listed(given: list[int], where: str) -> list[int]:
    if not given:
        raise wrong_type("rows_each", where, _RULE, "none", _HINT)
    if len(given) != 2:
        return given
    low, high = given
    if low > high:
        raise rejection("rows_each", where, "a pair (low, high) with low at most high", given)
    return [int(size) for size in np.rint(np.geomspace(low, high, _GUESSES))]


def _size(value: Any, where: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return integer(value, "rows_each", where, low=1, high=MOST_ROWS, hint=_HINT)
