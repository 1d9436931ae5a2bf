"""What is public about integer rows before one is read, and the exact statistic of them all."""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dplinear.arrays import BigIntegers, Floats
from dplinear.exact.weights import HALF_BITS


@dataclass(frozen=True)
class Shape:
    """What is public about a second-moment matrix before any row is read.

    Rows are integers of Euclidean norm at most 2^`exponent`, `steps_per_unit` of them to the unit.
    """

    dimension: int
    steps_per_unit: int
    exponent: int

    @property
    def unit(self) -> int:
        """How many integer units of the matrix make 1 in the cells' units."""
        return self.steps_per_unit**2

    @property
    def sensitivity(self) -> int:
        """The most one row more or less changes the integer matrix, in Frobenius norm."""
        return 1 << 2 * self.exponent

    @property
    def bound(self) -> Fraction:
        """B, the norm no row exceeds, in cells."""
        return Fraction(2**self.exponent, self.steps_per_unit)

    def weighted(self) -> "Shape":
        """Return the shape of second moments of weighted rows: a grid as fine as their weights.

        Weights are whole numbers of 4^−12, so that each such sum is one of rows on a grid that is
        2^12 times as fine, and whoever has a weight of 1 in all moves it by its `sensitivity`.
        """
        return Shape(self.dimension, self.steps_per_unit << HALF_BITS, self.exponent + HALF_BITS)

    def unweighted(self) -> "Shape":
        """Return the shape of the rows that such sums are of."""
        return Shape(self.dimension, self.steps_per_unit >> HALF_BITS, self.exponent - HALF_BITS)


@dataclass(frozen=True, eq=False)
class Statistic:
    """The exact second moments of a table's bounded rows. Private.

    `rows` is the number of rows where the mechanism may use it: private under add_remove. `side`
    are other sums, of which a row, or all rows of a unit, move each by at most 1.
    """

    shape: Shape
    integers: BigIntegers = field(repr=False)
    rows: int | None = field(default=None, repr=False)
    side: tuple[Fraction, ...] = field(default=(), repr=False)

    def matrix(self) -> Floats:
        """Return the matrix in the cells' units, each entry rounded once."""
        unit = self.shape.unit
        # Python divides integers with one rounding, whatever their size.
        exact = [int(entry) / unit for entry in self.integers.ravel()]
        return np.array(exact, np.float64).reshape(self.integers.shape)
