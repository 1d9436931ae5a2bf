"""The integer grid rows are rounded to, chosen from the schema alone.

A cell t in [−1, 1] becomes the integer nearest t·`cells`; a row of integers has norm at most
2^`exponent`. So the grid's unit is 1/`cells`, exactly, the number 1 is the integer `cells`, and the
norm bound in cells is B = 2^exponent / cells. docs/exact-pass.md has the proofs.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Self

import numpy as np

from dplinear.arguments import integer
from dplinear.arrays import Floats
from dplinear.exact.integers import shrunk
from dplinear.exact.row_sums import BLOCK_ROWS
from dplinear.schema import Schema

_EXACT = 2**53
_LARGEST_CELL_SQUARED = _EXACT // BLOCK_ROWS
_LARGEST_EXPONENT = 26  # so that the squared norms we verify stay below 2^53


@dataclass(frozen=True)
class Grid:
    """Integers `cells` per unit; rows of integer norm at most 2^`exponent`."""

    exponent: int
    cells: int

    def __post_init__(self) -> None:
        integer(self.exponent, "exponent", "Grid", low=1, high=_LARGEST_EXPONENT)
        integer(self.cells, "cells", "Grid", low=1)
        if self.largest_cell**2 > _LARGEST_CELL_SQUARED:
            raise ValueError("The grid is too fine for blocks of float64 products to be exact.")

    @classmethod
    def of(cls, schema: Schema) -> Self:
        """Return the finest grid whose blocks of 4096 rows still multiply exactly.

        Promises: between 7e5 and 1.5e6 integers per half-range of a column for up to 4,000
        features (2^26/√d above). Rounding moves a cell by at most 1/(2·cells) of half its range.
        """
        exponent = _finest_exponent(schema)
        return cls(exponent, _cells(schema, exponent))

    @property
    def bound(self) -> Fraction:
        """B, the norm no clipped row exceeds, in cells: exact."""
        return Fraction(2**self.exponent, self.cells)

    @property
    def largest_cell(self) -> int:
        """The largest integer a cell can be: 1, or a whole row."""
        return min(self.cells, 1 << self.exponent)

    @property
    def sensitivity(self) -> int:
        """The most one row more or less changes the integer matrix, in Frobenius norm."""
        return 1 << 2 * self.exponent


@lru_cache(maxsize=64)
def _finest_exponent(schema: Schema) -> int:
    candidates = range(_LARGEST_EXPONENT, 0, -1)
    return next(q for q in candidates if _largest(schema, q) ** 2 <= _LARGEST_CELL_SQUARED)


def _cells(schema: Schema, exponent: int) -> int:
    if schema.row_norm is None:
        return isqrt(4**exponent // schema.norm_squared)
    return int(2**exponent / schema.row_norm)


def _largest(schema: Schema, exponent: int) -> int:
    return min(_cells(schema, exponent), 1 << exponent)


def round_to_grid(grid: Grid, scaled: Floats, missing: Floats) -> Floats:
    """Round cells (already times `grid.cells`) to integers whose rows have norm ≤ 2^exponent.

    Requires: shape (dimension, rows), any float64 at all; `missing`, a column of the public cells
    that replace NaN. Overwrites `scaled`.
    Promises: integer-valued; every column's squared norm is at most 4^exponent, verified on the
    integers; column j is a bitwise function of column j alone.
    """
    rows = np.rint(scaled, out=scaled)
    largest = float(grid.cells)
    np.clip(rows, -largest, largest, out=rows)
    if rows.size and np.isnan(rows.min()):
        np.copyto(rows, np.clip(np.rint(missing), -largest, largest), where=np.isnan(rows))
    if len(rows) * grid.cells**2 <= grid.sensitivity:
        return rows  # no row of such cells can be longer
    squares = _squared_norms(grid, rows)
    over = np.flatnonzero(squares > grid.sensitivity)
    if len(over):
        rows[:, over] = shrunk(rows[:, over], squares[over], grid.sensitivity)
    return rows


def _squared_norms(grid: Grid, rows: Floats) -> Floats:
    if len(rows) * grid.cells**2 <= _EXACT:
        # All partial sums are integers below 2^53: exact, in whatever order they are added.
        return np.asarray(np.einsum("ij,ij->j", rows, rows))
    total = np.zeros(rows.shape[1])
    for row in rows:  # a fixed order per column of `rows`, whatever stands beside it
        total += row * row
    return total
