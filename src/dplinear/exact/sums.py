"""Several exact row sums in one pass: one reading and one rounding of the rows for all of them."""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats
from dplinear.exact.blocks import Blocks, Reduction
from dplinear.exact.row_sums import BLOCK_ROWS, WORD, RowSum
from dplinear.exact.totals import Total, Words, integers_of, normalised
from dplinear.schema import Schema


class ExactSums:
    """The integers of several sums, one behind the other. Private: not a release."""

    __slots__ = ("_high", "_low", "_sizes")

    def __init__(self, sizes: tuple[int, ...], high: Words, low: Words) -> None:
        self._sizes = sizes
        self._high, self._low = normalised(high, low)

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


class SumAccumulator(Blocks[ExactSums]):
    """Adds up row sums, exactly. One per thread or worker."""

    def __init__(self, schema: Schema, statistics: Sequence[RowSum]) -> None:
        super().__init__(schema)
        self._statistics = statistics
        self._totals = [Total((statistic.size,)) for statistic in statistics]

    def add(self, rows: Floats) -> None:
        """Add a block of rounded rows to every sum."""
        for statistic, total in zip(self._statistics, self._totals, strict=True):
            step = max(1, min(BLOCK_ROWS, (1 << WORD) // statistic.bound))
            for start in range(0, rows.shape[1], step):
                block = rows[:, start : start + step]
                total.add(statistic.sum(block), block.shape[1] * statistic.bound)

    def result(self) -> ExactSums:
        """Return the sums of all rows so far."""
        words = [total.words() for total in self._totals]
        high, low = (np.concatenate(part) for part in zip(*words, strict=True))
        return ExactSums(tuple(statistic.size for statistic in self._statistics), high, low)


class Sums(Reduction[ExactSums]):
    """The pass that adds up row sums."""

    def __init__(self, schema: Schema, statistics: Iterable[RowSum]) -> None:
        super().__init__(schema)
        self.statistics = tuple(statistics)

    def accumulator(self) -> SumAccumulator:
        """Return an accumulator of the sums."""
        return SumAccumulator(self.schema, self.statistics)

    def merge(self, parts: Iterable[ExactSums]) -> ExactSums:
        """Return the sum of partial sums."""
        return sum(parts, start=self.accumulator().result())

    def read(self, data: bytes) -> ExactSums:
        """Return the sums a worker sent."""
        sizes = tuple(statistic.size for statistic in self.statistics)
        high, low = np.frombuffer(data, "<i8").astype(np.int64).reshape(2, sum(sizes))
        return ExactSums(sizes, high, low)
