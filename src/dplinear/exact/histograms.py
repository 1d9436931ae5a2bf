"""How the cells of a column are spread: counts in bins of equal width, for several columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import ClassVar

import numpy as np

from dplinear.arguments import integer
from dplinear.arrays import Floats, Integers
from dplinear.exact.row_sums import RowSum, check_shape, chosen_columns, freeze, take_columns
from dplinear.exact.shape import Shape
from dplinear.privacy.neighbours import Neighbours

_MOST_BINS = 2**16


@dataclass(frozen=True, eq=False)
class Histograms(RowSum):
    """The counts of cells in each of `bins` bins of [−1, 1], for each of the chosen columns.

    Requires: `columns`, indices of k cells, none twice; `bins`, from 2 to 2^16.
    Promises: k·bins counts, the first column's first. A row is one 1 in each of k histograms: one
    row more or less changes the sum by √k exactly, another row by √(2k) at most.
    """

    shape: Shape
    columns: Sequence[int]
    bins: int
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(default=Fraction(1), init=False)
    replaced: ClassVar[int] = 2

    def __post_init__(self) -> None:
        where = "Histograms"
        check_shape(self.shape, where)
        integer(self.bins, "bins", where, low=2, high=_MOST_BINS)
        chosen = chosen_columns(self.columns, self.shape, where)
        freeze(self, columns=chosen, size=len(chosen) * self.bins)
        freeze(self, bound=isqrt(len(chosen) - 1) + 1)  # the root, rounded up

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the most that the sums of two neighbours differ by, in squared norm."""
        return super().sensitivity_squared(neighbours) // self.bound**2 * len(self.columns)

    def sum(self, rows: Floats) -> Integers:
        """Return the counts, flat."""
        largest = min(self.shape.steps_per_unit, 1 << self.shape.exponent)
        cells = take_columns(rows, self.columns).astype(np.int64)
        # Integers throughout: a cell of −largest is in the first bin, one of +largest in the last.
        # Cells beyond them, which no row should have, count there too: a column counts a row once.
        indices = (cells + largest) * self.bins // (2 * largest + 1)
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < self.bins:
            np.clip(indices, 0, self.bins - 1, out=indices)
        indices += self.bins * np.arange(len(self.columns))[:, None]
        return np.bincount(indices.ravel(), minlength=self.size).astype(np.int64)
