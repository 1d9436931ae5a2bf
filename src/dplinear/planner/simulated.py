"""A simulated table in memory, as solvers see one: integer rows, and exact sums over them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dplinear.arguments import integer, rejection, wrong_type
from dplinear.arrays import BigIntegers, Floats
from dplinear.exact.block_moments import design_moments
from dplinear.exact.design import Design
from dplinear.exact.grid import plain_shape
from dplinear.exact.integers import scratch
from dplinear.exact.row_sums import BLOCK_ROWS, RowSum
from dplinear.exact.shape import Shape
from dplinear.exact.sums import SumTotal
from dplinear.exact.totals import WORD, Total

Kept = npt.NDArray[np.float32]


def plain_design(columns: int) -> Design:
    """Return the design of a regression on so many numeric columns, with an intercept.

    Promises: the facts and the grid of a schema of these columns and a target: the constant first,
    the columns, the target last; rows that lack a number are left out, as gates leave them.
    """
    columns = integer(columns, "columns", "plain_design", low=1)
    shape = plain_shape(columns + 2)
    cells = shape.steps_per_unit
    return Design(
        shape=shape,
        features=tuple(range(columns + 1)),
        target=columns + 1,
        feature_square=(columns + 1) * cells**2,
        target_square=cells**2,
        intercept=True,
        indicators=(False,) * (columns + 1),
        leaves_out=True,
    )


@dataclass(frozen=True, eq=False)
class SimulatedMoments:
    """The exact second moments of simulated rows."""

    integers: BigIntegers = field(repr=False)


class SimulatedRows:
    """Rows of a simulated table, rounded to the grid of a shape.

    Requires: blocks of finite cells in [−1, 1], shape (rows, dimension).
    Promises: integers of norm at most 2^exponent, verified on them; the sums of the same cells on
    the same grid are those of an exact pass, to the bit. Four bytes to a cell.
    """

    def __init__(self, shape: Shape, blocks: Iterator[Floats]) -> None:
        self.shape = shape
        self.count = 0
        self._kept: list[Kept] = []
        for block in blocks:
            self._keep(block)

    def _keep(self, block: Floats) -> None:
        rule = f"rows of {self.shape.dimension} cells in [−1, 1]"
        wide = block.ndim == 2 and block.shape[1] == self.shape.dimension
        if not wide or not bool((np.abs(block) <= 1).all()):
            raise rejection("blocks", "SimulatedRows", rule, f"shape {block.shape}")
        for start in range(0, len(block), BLOCK_ROWS):
            rows = np.rint(
                block[start : start + BLOCK_ROWS].T * float(self.shape.steps_per_unit), order="C"
            )
            squares = np.einsum("ij,ij->j", rows, rows)
            if squares.max() > self.shape.sensitivity:
                rule = f"rows of norm at most {float(self.shape.bound):g}"
                raise rejection("blocks", "SimulatedRows", rule, "longer ones")
            self._kept.append(rows.astype(np.float32))  # exact: a cell is below 2^21
            self.count += rows.shape[1]

    def _blocks(self) -> Iterator[Floats]:
        """Yield the rows block by block, shape (dimension, rows), in memory used over and over."""
        for kept in self._kept:
            rows = scratch("rows", kept.shape)
            np.copyto(rows, kept)
            yield rows

    def moments(self) -> SimulatedMoments:
        """Return the exact second moments."""
        total = Total(2 * (self.shape.dimension,))
        for rows in self._blocks():
            total.add((rows @ rows.T).astype(np.int64), 1 << WORD)
        return SimulatedMoments(total.integers())

    def bounded_moments(self, design: Design) -> BigIntegers:
        """Return the second moments of a design's features and target, held to its bounds."""
        return design_moments(self, design)

    denominator = 1  # its rows have no weights

    def sums(self, statistics: Sequence[Any]) -> list[BigIntegers]:
        """Return several exact sums over rows, in one pass."""
        for statistic in statistics:
            if not isinstance(statistic, RowSum):
                raise wrong_type(
                    "statistics", "SimulatedRows.sums", "a list of row sums", statistic
                )
        totals = [SumTotal(statistic) for statistic in statistics]
        for rows in self._blocks():
            for total in totals:
                total.add_rows(rows)
        return [total.integers() for total in totals]
