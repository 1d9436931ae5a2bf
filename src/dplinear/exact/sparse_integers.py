"""Rows of a SciPy sparse matrix as bounded integers, each a bitwise function of its own cells."""

from typing import Any

import numpy as np
from scipy import sparse

from dplinear.arrays import Floats
from dplinear.exact.integers import clamp
from dplinear.schema.sparse_rows import Indices, SparseRows

_MARGIN = 2.0  # as for dense rows: rounding moves a length, so that few rows are too long again


def sparse_integers(  # noqa: PLR0917 - the rows, which of them, and what becomes of them
    rows: SparseRows, first: int, last: int, factor: float, norm: int, constant: int
) -> Any:
    """Return rows times `factor`, rounded and clipped to `norm`, then `constant` if not 0.

    Requires: `norm` from 2^10 to 2^26.
    Promises: a sparse array of shape (columns, rows), or one column more; integers in float64;
    every norm, but for the constant, at most `norm`, verified on them; no place twice.
    """
    count, size = last - first, rows.shape[1]
    indices, columns, values = rows.cells(first, last)
    steps = _shorten(indices, clamp(values.astype(np.float64) * factor), count, norm)
    kept = np.flatnonzero(steps)
    indices, columns, steps = indices[kept], columns[kept], steps[kept]
    starts = np.concatenate(([0], np.cumsum(np.bincount(indices, minlength=count))))
    if constant:
        columns = np.insert(columns, starts[1:], size)
        steps = np.insert(steps, starts[1:], float(constant))
        starts, size = starts + np.arange(count + 1), size + 1
    return sparse.csc_array((steps, columns, starts), shape=(size, count))


def _shorten(rows: Indices, values: Floats, count: int, norm: int) -> Floats:
    """Round entries; scale the rows then longer than `norm` down to it, and round again.

    Requires: values of at most 2^100, in order of rows.
    Promises: integers; every row's norm at most `norm`, verified on them. Sums of squares are
    added one after the other, in a row's own order; at most 2^53 they are exact.
    """
    steps = np.rint(values)
    squares = _squares(rows, steps, count)
    over = squares > norm**2
    if not over.any():
        return steps
    factors = np.where(over, (norm - _MARGIN) / np.sqrt(np.maximum(squares, 1.0)), 1.0)
    steps = np.rint(steps * factors[rows])
    squares = _squares(rows, steps, count)
    factors = np.where(squares > norm**2, norm / np.sqrt(np.maximum(squares, 1.0)), 1.0)
    while True:
        shorter = np.trunc(steps * factors[rows])
        over = _squares(rows, shorter, count) > norm**2
        if not over.any():
            return np.asarray(shorter)
        factors = np.where(over, factors * (1 - 2.0**-20), factors)


def _squares(rows: Indices, steps: Floats, count: int) -> Floats:
    return _totals(rows, steps * steps, count)


def _totals(indices: Indices, values: Floats, count: int) -> Floats:
    """Return the sum of the values at each index, added one after the other."""
    return np.asarray(np.bincount(indices, weights=values, minlength=count), np.float64)
