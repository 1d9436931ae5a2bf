"""The least eigenvalue behind noise that is bounded: a lower bound that never fails, for few bits.

Where bits are counted, a bound that fails with a small probability cannot be made up for by adding
that probability to them, as it can to δ. Uniform noise never fails (docs/theory/bits.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms.cells.table_cells import Cell
from dplinear.mechanisms.moments.eigenvalues import ROUNDING, UNITS, least_units
from dplinear.noise.entropy import Entropy
from dplinear.noise.integers import uniform_below
from dplinear.privacy.rounding import up


def most_shift(cell: Cell, square: Fraction) -> float:
    """Return the most that a cell moves the least eigenvalue of AᵀA, rounded up.

    Requires: `square` is B², which no row's squared norm exceeds, whatever the cell holds.
    Promises: an upper bound on λ_max(aaᵀ − bbᵀ) over rows a and b that differ in this cell alone.
    """
    rest = up(float(square - 1))
    if cell.diameter_squared == 4:  # a number in [−1, 1]
        return up(2 * math.sqrt(rest) if rest >= 1 else 1 + rest, 16)
    if cell.diameter_squared == 2:  # one of several levels
        return up(math.sqrt(1 + 2 * rest), 16)
    if cell.diameter_squared == 1:  # 0 or 1
        return up((1 + math.sqrt(1 + 4 * rest)) / 2, 16)
    return up(float(square))


@dataclass(frozen=True)
class BoundedQuery:
    """A lower bound on the least eigenvalue of the table without any one of its rows.

    Requires: rows of the shape's bound B; `steps_per_unit`, the columns whose cells are protected.
    Promises: at most `bits` are learnt of a cell; the bound holds surely. The eigenvalue is a
    certified enclosure (`eigenvalues.py`); the rest of the arithmetic is exact.
    """

    bits: float
    shape: Shape
    cells: Sequence[Cell]

    @property
    def levels(self) -> int:
        """The number of values of the noise, each as likely: at least reach/bits.

        The reach is the most that a cell moves the answer in units, so that a value of the noise
        tells something of the cell for `reach` of them at most.
        """
        square = self.shape.bound**2
        shift = max(most_shift(cell, square) for cell in self.cells)
        reach = math.ceil(Fraction(min(shift, up(float(square)))) / square * UNITS)
        return math.ceil((reach + ROUNDING) / Fraction(self.bits))

    def ask(self, statistic: Statistic, entropy: Entropy) -> float:
        """Return the bound, given the whole table."""
        units = least_units(statistic.integers, self.shape.sensitivity)
        units += uniform_below(self.levels, entropy) - (self.levels - 1)
        # A row less has an eigenvalue less by B² at the most, which are so many units.
        lower = Fraction(units - UNITS, UNITS) * self.shape.bound**2
        nearest = float(lower)
        return nearest if nearest <= lower else math.nextafter(nearest, -math.inf)
