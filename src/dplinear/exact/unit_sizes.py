"""How many units have how many rows: each unit counts once, in the bin of its own number of rows.

A row of a unit of m rows has the weight of 1/m (`weights.shared_weights`), and so do all the rows
of that unit: m can be told from it, up to a thousand and beyond. The rows add their weights to one
bin, so that a unit adds at most 1 (`WHOLE`) to one of the counts, and 1 − 2^−11 at the least, as
weights are rounded down. The weights of a unit are verified to add up to no more.
"""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats, Integers
from dplinear.exact.blocks import Blocks, Reduction
from dplinear.exact.weights import WHOLE, shared_weights
from dplinear.schema import Schema

MOST = 1_000  # rows, up to which bins may end anywhere


def weights_at(edges: Sequence[int]) -> Integers:
    """Return the weight of a row at each end of a bin, in falling order.

    Requires: rising numbers from 1 to `MOST`.
    Promises: a unit of one row more has a smaller weight, verified here.
    """
    ends = np.array(edges, np.int64)
    own, beyond = shared_weights(ends, 1), shared_weights(ends + 1, 1)
    if not len(ends) or (np.diff(ends) <= 0).any() or (own <= beyond).any():
        raise ArithmeticError("Bins of units end at rising numbers that weights tell apart.")
    return own


class UnitCounts:
    """The sum of weights in each bin, in units of 1/2^24. Private: not a release."""

    __slots__ = ("_sums",)

    def __init__(self, sums: Integers) -> None:
        self._sums = sums

    def __add__(self, other: Self) -> Self:
        return type(self)(self._sums + other._sums)

    def __repr__(self) -> str:
        return f"UnitCounts({len(self._sums)} bins, private)"

    def integers(self) -> npt.NDArray[np.object_]:
        """Return the sums as Python integers."""
        return self._sums.astype(object)

    def to_bytes(self) -> bytes:
        """Return the sums as bytes, without pickle. They are private."""
        return self._sums.astype("<i8").tobytes()


class UnitSizeAccumulator(Blocks[UnitCounts]):
    """Adds weights to bins. Rows without weights are none of any unit's."""

    def __init__(self, schema: Schema, ends: Integers) -> None:
        super().__init__(schema)
        self._ends = ends
        self._sums = np.zeros(len(ends) + 1, np.int64)

    def add(self, rows: Floats) -> None:
        """Refuse rows that belong to nobody."""
        raise TypeError("Rows are counted by unit only where they belong to one.")

    def add_weighted(self, rows: Floats, weights: Integers, totals: Integers | None = None) -> None:
        """Add each row's weight to the bin of its unit's number of rows."""
        bins = np.searchsorted(-self._ends, -weights)
        np.add.at(self._sums, bins, weights)  # exact: fewer than 2^39 rows

    def result(self) -> UnitCounts:
        """Return the sums so far."""
        return UnitCounts(self._sums.copy())


class UnitSizes(Reduction[UnitCounts]):
    """The pass that counts units by their number of rows.

    Requires: a schema that names a unit, whose reader gives a unit's rows weights that add up to 1
    (`rows_per_unit` of 1); the largest number of rows of each bin but the last, which is open.
    Promises: one unit more or less changes one sum, by at most `WHOLE`.
    """

    sensitivity = WHOLE

    def __init__(self, schema: Schema, edges: Sequence[int]) -> None:
        super().__init__(schema)
        self.edges = tuple(edges)
        weights_at(self.edges)

    def accumulator(self) -> UnitSizeAccumulator:
        """Return an accumulator of the sums."""
        return UnitSizeAccumulator(self.schema, weights_at(self.edges))

    def merge(self, parts: Iterable[UnitCounts]) -> UnitCounts:
        """Return the sum of partial sums."""
        return sum(parts, start=self.accumulator().result())

    def read(self, data: bytes) -> UnitCounts:
        """Return the sums a worker sent."""
        return UnitCounts(np.frombuffer(data, "<i8").astype(np.int64))
