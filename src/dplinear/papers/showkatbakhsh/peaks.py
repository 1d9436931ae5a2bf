"""The exact second moments of a table and the largest square in each column, in one pass.

Only the reproduction of a paper needs the squares: they have no place in a guarantee.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from dplinear.arrays import Floats, Integers
from dplinear.exact.blocks import Blocks, Reduction
from dplinear.exact.gram import Accumulator, SecondMoments
from dplinear.exact.shape import Statistic
from dplinear.schema import Schema


@dataclass(frozen=True, eq=False, kw_only=True)
class PeakStatistic(Statistic):
    """Exact second moments, and the largest square of each column. Private."""

    peaks: Integers = field(repr=False)


class Peaks:
    """Second moments, and for each feature the largest square of its integers. Private."""

    __slots__ = ("moments", "squares")

    def __init__(self, moments: SecondMoments, squares: Integers) -> None:
        self.moments, self.squares = moments, squares

    def __repr__(self) -> str:
        return f"Peaks({len(self.squares)} features, private)"

    def to_bytes(self) -> bytes:
        """Return all as bytes, without pickle. They are private."""
        return self.squares.astype("<i8").tobytes() + self.moments.to_bytes()


class PeakAccumulator(Blocks[Peaks]):
    """Adds up moments and keeps the largest squares. One per thread or worker."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self._moments = Accumulator(schema)
        self._squares = np.zeros(schema.dimension, np.int64)

    def add(self, rows: Floats) -> None:
        """Add a block of rounded rows."""
        self._moments.add(rows)
        if rows.shape[1]:
            # Cells are integers below 2^26, so their squares are exact.
            largest = np.abs(rows).max(axis=1).astype(np.int64) ** 2
            self._squares = np.maximum(self._squares, largest)

    def result(self) -> Peaks:
        """Return what all rows so far came to."""
        return Peaks(self._moments.result(), self._squares)


class MomentsAndPeaks(Reduction[Peaks]):
    """The pass that finds both."""

    def accumulator(self) -> PeakAccumulator:
        """Return an empty accumulator."""
        return PeakAccumulator(self.schema)

    def merge(self, parts: Iterable[Peaks]) -> Peaks:
        """Return the moments added up, and the largest of the squares."""
        moments = SecondMoments.zero(self.schema)
        squares = np.zeros(self.schema.dimension, np.int64)
        for part in parts:
            moments += part.moments
            squares = np.maximum(squares, part.squares)
        return Peaks(moments, squares)

    def read(self, data: bytes) -> Peaks:
        """Return what a worker sent."""
        size = 8 * self.schema.dimension
        squares = np.frombuffer(data[:size], "<i8").astype(np.int64)
        return Peaks(SecondMoments.from_bytes(data[size:]), squares)
