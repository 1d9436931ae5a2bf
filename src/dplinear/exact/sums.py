"""Several exact row sums in one pass: one reading and one rounding of the rows for all of them."""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats, Integers
from dplinear.exact.blocks import Blocks, Reduction
from dplinear.exact.filling import count_gaps
from dplinear.exact.grid import Gaps, Grid
from dplinear.exact.row_sums import BLOCK_ROWS, WORD, FilledIn, LeftOut, RowSum, SquaredWeights
from dplinear.exact.totals import Total, integers_of, normalise
from dplinear.exact.unit_scores import UnitScores, UnitTotals
from dplinear.exact.weights import WHOLE, squared_weights
from dplinear.schema import Schema

_CELLS = 2**20  # of a wide table at a time: what is made of more leaves a processor's caches
_FEWEST_ROWS = 256  # so that a matrix is not read again for each of a few


class ExactSums:
    """The integers of several sums, one behind the other. Private: not a release."""

    __slots__ = ("_high", "_low", "_sizes")

    def __init__(self, sizes: tuple[int, ...], high: Integers, low: Integers) -> None:
        self._sizes = sizes
        self._high, self._low = normalise(high, low)

    def __add__(self, other: Self) -> Self:
        return type(self)(self._sizes, self._high + other._high, self._low + other._low)

    def __repr__(self) -> str:
        return f"ExactSums({self._sizes}, private)"

    def integers(self) -> list[npt.NDArray[np.object_]]:
        """Return each sum as Python integers."""
        ends = np.cumsum(self._sizes)[:-1]
        return list(np.split(integers_of(self._high, self._low), ends))

    def to_bytes(self) -> bytes:
        """Return the words as bytes, without pickle. They are private."""
        return np.stack((self._high, self._low)).astype("<i8").tobytes()


class SumTotal(Total):
    """One row sum over blocks of rows, as many at a time as a word holds."""

    def __init__(self, statistic: RowSum) -> None:
        super().__init__((statistic.size,))
        self.statistic = statistic

    def add_rows(self, rows: Floats, most: int = BLOCK_ROWS, times: int = 1) -> None:
        """Add the sum over a block, at most so many rows at a time; `times` as much."""
        bound = self.statistic.bound
        most = min(most, max(_CELLS // len(rows), _FEWEST_ROWS))
        step = max(1, min(most, (1 << WORD) // bound))
        for start in range(0, rows.shape[1], step):
            block = rows[:, start : start + step]
            self.add(self.statistic.sum(block), block.shape[1] * bound, times)


class SumAccumulator(Blocks[ExactSums]):
    """Adds up row sums, exactly. One per thread or worker."""

    def __init__(
        self, schema: Schema, statistics: Sequence[RowSum], grid: Grid | None = None
    ) -> None:
        super().__init__(schema, grid)
        self._totals = [SumTotal(statistic) for statistic in statistics]

    def add(self, rows: Floats) -> None:
        """Add a block of rounded rows to every sum."""
        self.add_multiple(rows, 1)

    def add_multiple(self, rows: Floats, times: int) -> None:
        """Add a block of rounded rows to every sum, so many times."""
        for total in self._totals:
            total.add_rows(rows, times=times)

    def unit_totals(self, units: int) -> list[UnitTotals]:
        """Return where the scores of so many units add up, one for each sum over units."""
        return [
            UnitTotals(total.statistic, units)
            for total in self._totals
            if isinstance(total.statistic, UnitScores)
        ]

    def add_units(self, totals: Sequence[UnitTotals]) -> None:
        """Add the scores of units, whose rows have all come, to the sums over units.

        They count as units of weight do, so that all sums of weighted rows are in the same units.
        """
        own = [total for total in self._totals if isinstance(total.statistic, UnitScores)]
        for total, scores in zip(own, totals, strict=True):
            for block, units in scores.blocks():
                total.add(block, units * total.statistic.bound, WHOLE)

    def leave(self, rows: Floats, weights: Integers | None = None) -> None:
        """Count rows that are left out, or add up their weights, where that is asked for."""
        count = rows.shape[1] if weights is None else int(weights.sum())
        for total in self._totals:
            if isinstance(total.statistic, LeftOut):
                total.add_integer(count)

    def fill(self, rows: Floats, gaps: Gaps, weights: Integers | None = None) -> None:
        """Count the cells that were filled in, where that is asked for."""
        for total in self._totals:
            if isinstance(total.statistic, FilledIn):
                most = rows.shape[1] * WHOLE
                total.add(count_gaps(gaps, weights), most)

    def weigh(self, weights: Integers, totals: Integers) -> None:
        """Add up squares of weights, where that is asked for."""
        for total in self._totals:
            if isinstance(total.statistic, SquaredWeights):
                total.add_integer(squared_weights(weights, totals))

    def result(self) -> ExactSums:
        """Return the sums of all rows so far."""
        words = [total.words() for total in self._totals]
        high, low = (np.concatenate(part) for part in zip(*words, strict=True))
        return ExactSums(tuple(total.statistic.size for total in self._totals), high, low)


class Sums(Reduction[ExactSums]):
    """The pass that adds up row sums."""

    def __init__(
        self, schema: Schema, statistics: Iterable[RowSum], grid: Grid | None = None
    ) -> None:
        super().__init__(schema, grid)
        self.statistics = tuple(statistics)

    @property
    def by_unit(self) -> bool:
        """Whether these are sums over units: then all of them must be."""
        kinds = {isinstance(statistic, UnitScores) for statistic in self.statistics}
        if len(kinds) > 1:
            raise TypeError("Sums over units and sums over rows are of different passes.")
        return kinds == {True}

    def accumulator(self) -> SumAccumulator:
        """Return an accumulator of the sums."""
        return SumAccumulator(self.schema, self.statistics, self.grid)

    def merge(self, parts: Iterable[ExactSums]) -> ExactSums:
        """Return the sum of partial sums."""
        return sum(parts, start=self.accumulator().result())

    def read(self, data: bytes) -> ExactSums:
        """Return the sums a worker sent."""
        sizes = tuple(statistic.size for statistic in self.statistics)
        high, low = np.frombuffer(data, "<i8").astype(np.int64).reshape(2, sum(sizes))
        return ExactSums(sizes, high, low)
