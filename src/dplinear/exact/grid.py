"""The integer grid rows are rounded to, chosen from the schema alone.

A cell t in [−1, 1] becomes the integer nearest t·`steps_per_unit`; a row of integers has norm at
most 2^`exponent`. So the grid's unit is 1/`steps_per_unit`, exactly, the number 1 is the integer
`steps_per_unit`, and the norm bound in cells is B = 2^exponent / cells. docs/exact-pass.md has the
proofs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Self

import numpy as np
import numpy.typing as npt

from dplinear.arguments import integer
from dplinear.arrays import Floats
from dplinear.exact.integers import shrink
from dplinear.exact.row_sums import BLOCK_ROWS, take_columns
from dplinear.exact.shape import Shape
from dplinear.schema import Schema

_EXACT = 2**53
_LARGEST_CELL_SQUARED = _EXACT // BLOCK_ROWS
Gaps = npt.NDArray[np.bool_]  # which cells are filled in: a row for each column, as in blocks

_LARGEST_EXPONENT = 26  # so that the squared norms we verify stay below 2^53


@dataclass(frozen=True)
class Grid:
    """Integers `steps_per_unit` per unit; rows of integer norm at most 2^`exponent`."""

    exponent: int
    steps_per_unit: int

    def __post_init__(self) -> None:
        integer(self.exponent, "exponent", "Grid", low=1, high=_LARGEST_EXPONENT)
        integer(self.steps_per_unit, "cells", "Grid", low=1)
        if self.largest_cell**2 > _LARGEST_CELL_SQUARED:
            raise ValueError("The grid is too fine for blocks of float64 products to be exact.")

    @classmethod
    def of(cls, schema: Schema) -> Self:
        """Return the finest grid whose blocks of 4096 rows still multiply exactly.

        Promises: between 7e5 and 1.5e6 integers per half-range of a column for up to 4,000
        features (2^26/√d above). Rounding moves a cell by at most 1/(2·cells) of half its range.
        """
        return cls(*_finest_of(schema))

    @property
    def bound(self) -> Fraction:
        """B, the norm no clipped row exceeds, in cells: exact."""
        return Fraction(2**self.exponent, self.steps_per_unit)

    @property
    def largest_cell(self) -> int:
        """The largest integer a cell can be: 1, or a whole row."""
        return min(self.steps_per_unit, 1 << self.exponent)

    @property
    def sensitivity(self) -> int:
        """The most one row more or less changes the integer matrix, in Frobenius norm."""
        return 1 << 2 * self.exponent


def shape_of(schema: Schema) -> Shape:
    """Return what is public about the rows that a schema describes, on their grid."""
    grid = Grid.of(schema)
    return Shape(schema.dimension, grid.steps_per_unit, grid.exponent)


def moments_shape(schema: Schema) -> Shape:
    """Return what is public about the second moments of these rows, weighted if need be."""
    shape = shape_of(schema)
    return shape.weighted() if schema.is_weighted else shape


def plain_shape(dimension: int, square: float | None = None) -> Shape:
    """Return the same for rows of so many cells in [−1, 1], of a squared norm of at most `square`.

    None: whatever they are.
    """
    most = Fraction(dimension if square is None else square)
    exponent, cells = _finest(lambda exponent: isqrt(int(4**exponent / most)))
    return Shape(dimension, cells, exponent)


def _finest(cells_at: Callable[[int], int]) -> tuple[int, int]:
    """Return the largest exponent, and its cells, for which blocks of products are exact."""
    return next(
        (exponent, cells)
        for exponent in range(_LARGEST_EXPONENT, 0, -1)
        if min(cells := cells_at(exponent), 1 << exponent) ** 2 <= _LARGEST_CELL_SQUARED
    )


@lru_cache(maxsize=64)
def _finest_of(schema: Schema) -> tuple[int, int]:
    norm = schema.row_norm
    if norm is None:
        return _finest(lambda exponent: isqrt(4**exponent // schema.norm_squared))
    return _finest(lambda exponent: int(2**exponent / norm))


def round_to_grid(grid: Grid, scaled: Floats, missing: Floats) -> Floats:
    """Round cells (already times `grid.cells`) to integers whose rows have norm ≤ 2^exponent."""
    return round_with_gaps(grid, scaled, missing)[0]


def round_with_gaps(
    grid: Grid, scaled: Floats, missing: Floats, filled: Sequence[int] = ()
) -> tuple[Floats, Gaps | None]:
    """Do so, and say which cells of the features `filled` are filled in; None: none of them.

    Requires: shape (dimension, rows), any float64 at all; `missing`, a column of the public cells
    that replace NaN. Overwrites `scaled`.
    Promises: integer-valued; every column's squared norm is at most 4^exponent, verified on the
    integers; column j is a bitwise function of column j alone.
    """
    rows, found = np.rint(scaled, out=scaled), None
    largest = float(grid.steps_per_unit)
    np.clip(rows, -largest, largest, out=rows)
    if rows.size and np.isnan(rows.min()):
        gaps = np.isnan(rows)
        np.copyto(rows, np.clip(np.rint(missing), -largest, largest), where=gaps)
        found = take_columns(gaps, filled) if filled else None
    if len(rows) * grid.steps_per_unit**2 <= grid.sensitivity:
        return rows, found  # no row of such cells can be longer
    squares = squared_norms(grid, rows)
    over = np.flatnonzero(squares > grid.sensitivity)
    if len(over):
        rows[:, over] = shrink(rows[:, over], squares[over], grid.sensitivity)
    return rows, found


def squared_norms(grid: Grid, rows: Floats) -> Floats:
    """Return the squared norm of each column: exact, or in an order that is fixed for each."""
    if len(rows) * grid.steps_per_unit**2 <= _EXACT:
        # All partial sums are integers below 2^53: exact, in whatever order they are added.
        return np.asarray(np.einsum("ij,ij->j", rows, rows))
    total = np.zeros(rows.shape[1])
    for row in rows:  # a fixed order per column of `rows`, whatever stands beside it
        total += row * row
    return total
