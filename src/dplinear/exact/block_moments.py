"""Second moments of rows of which two blocks have a bound each: features, and a target.

The bounds come from a schema, by reasoning about what its features can add up to. They are not
trusted here: every row's integers are held to them before they are multiplied.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import ClassVar

import numpy as np

from dplinear.arguments import integer, rejection
from dplinear.arrays import BigIntegers, Floats, Integers
from dplinear.exact.design import Design
from dplinear.exact.integers import bound_norms
from dplinear.exact.row_sums import (
    Count,
    FilledIn,
    LeftOut,
    RowSum,
    check_shape,
    chosen_columns,
    freeze,
    take_columns,
)
from dplinear.exact.rows import Rows
from dplinear.exact.shape import Shape


@dataclass(frozen=True, eq=False)
class BlockMoments(RowSum):
    """Σ c cᵀ, c the features x and the target y of a row, each held to a bound of its own.

    Requires: `features`, indices of cells, and `target`, another one; `feature_square`, the most
    that ‖x‖² may be, and `target_square`, y², both at least 1, in units of the grid.
    Promises: the whole symmetric matrix over `columns`, the indices in ascending order. In every
    row, features are scaled towards zero to their bound and the target is clipped at its own, on
    the integers that are multiplied. So one row more or less moves the block of features by at most
    `feature_square` in Frobenius norm, the target's column by at most √(feature_square ·
    target_square), and the whole by at most `bound`, the sum of both squares.
    """

    shape: Shape
    features: Sequence[int]
    target: int
    feature_square: int
    target_square: int
    columns: tuple[int, ...] = field(init=False)
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 2
    symmetric: ClassVar[bool] = True
    _largest: float = field(init=False, repr=False)
    _surely: bool = field(init=False, repr=False)  # whether cells alone keep rows within bounds

    def __post_init__(self) -> None:
        where = "BlockMoments"
        check_shape(self.shape, where)
        features = chosen_columns(self.features, self.shape, where)
        target = integer(self.target, "target", where, low=0, high=self.shape.dimension - 1)
        if target in features:
            raise rejection("target", where, "none of the features", target)
        for name in ("feature_square", "target_square"):
            integer(getattr(self, name), name, where, low=1, high=self.shape.sensitivity)
        columns = tuple(sorted((*features, target)))
        freeze(self, features=features, columns=columns, size=len(columns) ** 2)
        freeze(self, bound=self.feature_square + self.target_square)
        # The pass clips every integer at `steps_per_unit`: so many of them can be no longer.
        cell = min(self.shape.unit, self.shape.sensitivity)
        within = len(features) * cell <= self.feature_square and cell <= self.target_square
        freeze(self, _surely=within)
        freeze(self, unit=Fraction(1, self.shape.unit), _largest=float(isqrt(self.target_square)))

    def sum(self, rows: Floats) -> Integers:
        """Return the matrix of the bounded rows, flat."""
        cells = self._bound_rows(rows)
        return (cells @ cells.T).astype(np.int64).ravel()

    def _bound_rows(self, rows: Floats) -> Floats:
        """Return features and target within their bounds; a view of rows that are so already."""
        cells, largest = take_columns(rows, self.columns), self._largest
        if self._surely:
            return cells
        target = self.columns.index(self.target)
        label = cells[target]
        squares = np.einsum("ij,ij->j", cells, cells) - label * label  # integers: exact
        if (squares > self.feature_square).any() or (np.abs(label) > largest).any():
            cells = cells.copy(order="K")
            np.clip(cells[target], -largest, largest, out=cells[target])
            own = [index for index in range(len(cells)) if index != target]
            cells[own] = bound_norms(cells[own], self.feature_square)
        return cells


def design_moments(rows: Rows, design: Design) -> BigIntegers:
    """Return the second moments of a design's features and target, 0 elsewhere; exact, private.

    Promises: every row's features and target are within the design's bounds, verified on their
    integers (`BlockMoments`). The rows are counted in the same pass.
    """
    asked = _asked(design)
    found, _ = rows.sums([asked, Count()])
    return _whole(asked, found)


def moments_and_side(rows: Rows, design: Design) -> tuple[BigIntegers, list[int]]:
    """Return the same, and sums beside them, in the same pass.

    They are how many rows are left out, where some may be, and how many cells of each column are
    filled in; or their weights.
    """
    asked = _asked(design)
    beside: list[RowSum] = [LeftOut()] if design.leaves_out else []
    beside += [FilledIn(len(design.filled))] if design.filled else []
    found, *side = rows.sums([asked, *beside])
    return _whole(asked, found), [int(each) for sums in side for each in sums]


def _asked(design: Design) -> BlockMoments:
    return BlockMoments(
        design.shape, design.features, design.target, design.feature_square, design.target_square
    )


def _whole(asked: BlockMoments, found: BigIntegers) -> BigIntegers:
    whole = np.zeros((asked.shape.dimension,) * 2, object)
    whole[np.ix_(asked.columns, asked.columns)] = found.reshape(2 * (len(asked.columns),))
    return whole
