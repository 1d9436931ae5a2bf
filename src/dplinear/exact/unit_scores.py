"""The outer products of units' scores: what standard errors need where rows are not independent.

The score of a unit is the weighted sum of its rows' clipped gradients. Its weights add up to at
most 1, so it is no longer than the gradient of one row may be; one unit more or less then moves the
sum of outer products by at most that length squared (docs/theory/units.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear.arrays import Floats, Indices, Integers
from dplinear.exact.integers import bound_norms
from dplinear.exact.residual_sums import Gradient
from dplinear.exact.row_sums import BLOCK_ROWS, RowSum, freeze
from dplinear.exact.shape import Shape
from dplinear.exact.weights import BITS, WHOLE

_SCORE_BITS = 20  # so that a block of outer products is exact in float64


@dataclass(frozen=True, eq=False)
class UnitScores(RowSum):
    """Σ t tᵀ over units, t = Σ v·g the score of a unit: g its rows' gradients, v their weights.

    Requires: rows with weights and owners, all rows of a unit among them (`UnitTotals`).
    Promises: a score is rounded towards zero to integers of norm at most N = √`bound` ≤ 2^20,
    verified on them; so one unit more or less moves the sum by at most `bound`, and one that is
    replaced by at most √2·`bound`. Sums are counted as those of weighted rows are, in units of a
    2^24-th.
    """

    gradient: Gradient
    shape: Shape = field(init=False)
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 2
    symmetric: ClassVar[bool] = True
    _shift: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        own = self.gradient
        shift = max(own.bound.bit_length() - _SCORE_BITS, 0)
        freeze(self, shape=own.shape, size=own.size**2, _shift=shift)
        length = -(-own.bound >> shift)  # rounded up, so that no score is clipped
        freeze(self, bound=length**2, unit=(own.unit * 2**shift) ** 2)

    def sum(self, rows: Floats) -> Integers:
        """Return nothing of rows that do not say whose they are."""
        raise TypeError("The scores of units need rows that say whose they are.")

    def of_rows(self, rows: Floats, weights: Integers) -> Integers:
        """Return what each row adds to the score of its unit, in units of weight.

        Requires: at most `BLOCK_ROWS` rows. Added up over a unit, it is within 2^50: gradients are
        at most 2^26 long, and the weights of a unit at most 2^24 in all.
        """
        return np.asarray(self.gradient.of_rows(rows).astype(np.int64) * weights)

    def of_units(self, scores: Integers, weights: Integers) -> Integers:
        """Return the sum of outer products, `size` integers, given whole scores.

        Requires: at most `BLOCK_ROWS` units, and the sum of the weights of each.
        """
        if (weights > WHOLE).any():
            raise ArithmeticError("The weights of a unit add up to more than 1.")
        shorter = np.sign(scores) * (np.abs(scores) >> (BITS + self._shift))
        short = bound_norms(shorter.astype(np.float64), self.bound)
        return np.asarray((short @ short.T).astype(np.int64).ravel())


class UnitTotals:
    """The scores of units while their rows come in, in any order; then their outer products."""

    def __init__(self, statistic: UnitScores, units: int) -> None:
        self._statistic = statistic
        self._scores = np.zeros((units, statistic.gradient.size), np.int64)
        self._weights = np.zeros(units, np.int64)

    def add(self, rows: Floats, weights: Integers, owners: Indices) -> None:
        """Add weighted rows, any number of them, each to the score of its unit."""
        np.add.at(self._weights, owners, weights)
        for start in range(0, rows.shape[1], BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            some = self._statistic.of_rows(rows[:, block], weights[block])
            np.add.at(self._scores, owners[block], some.T)

    def blocks(self) -> Iterator[tuple[Integers, int]]:
        """Return the sums of outer products of some units at a time, and how many they are."""
        for start in range(0, len(self._scores), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            scores, weights = self._scores[block].T, self._weights[block]
            yield self._statistic.of_units(scores, weights), len(weights)
