"""The outer products of units' scores: what standard errors need where rows are not independent.

The score of a unit is the weighted sum of its rows' clipped gradients. Its weights add up to at
most 1, so it is no longer than the gradient of one row may be; one unit more or less then moves the
sum of outer products by at most that length squared (docs/theory.md, "Units of privacy").
"""

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

    Requires: rows that come unit by unit, none of which is in two blocks (`of_units`).
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
        raise TypeError("The scores of units need rows that come unit by unit.")

    def of_units(self, rows: Floats, weights: Integers, starts: Indices) -> Integers:
        """Return the sum over whole units, the first row of each given, `size` integers.

        Requires: any number of rows; at most `BLOCK_ROWS` units.
        """
        if (np.add.reduceat(weights, starts) > WHOLE).any():
            raise ArithmeticError("The weights of a unit add up to more than 1.")
        scores = np.zeros((self.gradient.size, len(starts)), np.int64)
        owners = np.repeat(np.arange(len(starts)), np.diff([*starts.tolist(), rows.shape[1]]))
        for start in range(0, rows.shape[1], BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            some = self.gradient.of_rows(rows[:, block]).astype(np.int64) * weights[block]
            first = np.flatnonzero(np.diff(owners[block], prepend=-1))
            # Within 2^50: gradients are at most 2^26 long, and the weights of a unit at most 2^24.
            scores[:, owners[block][first]] += np.add.reduceat(some, first, axis=1)
        shorter = np.sign(scores) * (np.abs(scores) >> (BITS + self._shift))
        short = bound_norms(shorter.astype(np.float64), self.bound)
        return np.asarray((short @ short.T).astype(np.int64).ravel())
