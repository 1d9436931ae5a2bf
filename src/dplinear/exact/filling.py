"""Cells that are filled in: which they are, on their way to sums that count them.

Gaps are truth values, a row for each column that may be filled in and a column for each row of a
block, as in blocks of cells. Where rows wait between passes, the gaps of one are bits of a few
float32 numbers.
"""

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats, Integers
from dplinear.exact.grid import Gaps, Grid, squared_norms
from dplinear.exact.integers import shrink
from dplinear.schema import Schema
from dplinear.schema.encoding import Encoder
from dplinear.schema.filling import filled_columns, filled_features

_BITS = 24  # of a float32 number that is an integer


def relief(schema: Schema, grid: Grid) -> Integers:
    """Return how much shorter a row is, in squared norm, for each column that it lacks.

    A cell in its place can be 1 and is a constant a: 1 − a², in units of the grid. 0 for levels,
    which are as long as others, and where rows are clipped: what is left may fill all of the bound.
    """
    shorter = np.zeros(len(filled_columns(schema)), np.int64)
    own = list(filled_features(schema))
    if schema.row_norm is None and own:
        unit = grid.steps_per_unit
        missing = np.rint(Encoder(schema, float(unit)).missing[own, 0])
        constants = np.clip(missing, -unit, unit).astype(np.int64)
        shorter[: len(own)] = unit**2 - constants**2
    return shorter


def hold_relief(grid: Grid, rows: Floats, gaps: Gaps, shorter: Integers) -> None:
    """Verify that rows with gaps are as much shorter as `relief` says; shorten others, in place.

    None is longer if rows are encoded as they should be.
    """
    some = np.flatnonzero(gaps.any(axis=0))
    squares = squared_norms(grid, rows[:, some])
    most = grid.sensitivity - shorter @ gaps[:, some]
    for index in np.flatnonzero(squares > most):
        row = some[index : index + 1]
        rows[:, row] = shrink(rows[:, row], squares[index : index + 1], int(most[index]))


def count_gaps(gaps: Gaps, weights: Integers | None) -> Integers:
    """Return how many cells of each column are filled in, or the weights of their rows."""
    if weights is None:
        return np.asarray(np.count_nonzero(gaps, axis=1), np.int64)
    return np.array([weights[own].sum() for own in gaps], np.int64)


def words_of(schema: Schema) -> int:
    """Return how many numbers hold the gaps of a row."""
    return -(-len(filled_columns(schema)) // _BITS)


def pack(gaps: Gaps) -> npt.NDArray[np.float32]:
    """Return the gaps of rows as numbers, shape (rows, words); exact, as float32 holds 24 bits."""
    starts = range(0, len(gaps), _BITS)
    words = [_bits(gaps[start : start + _BITS]) for start in starts]
    return np.stack(words, axis=1).astype(np.float32)


def _bits(gaps: Gaps) -> Integers:
    return np.asarray((1 << np.arange(len(gaps), dtype=np.int64)) @ gaps)


def unpack(words: npt.NDArray[np.float32], columns: int) -> Gaps | None:
    """Return what was packed, of so many columns; None where no cell was filled in."""
    if not words.any():
        return None
    whole = words.T.astype(np.int64)
    index = np.arange(columns)
    return np.asarray((whole[index // _BITS] >> (index % _BITS)[:, None]) & 1, np.bool_)
