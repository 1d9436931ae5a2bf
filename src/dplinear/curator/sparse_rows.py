"""Rows of a SciPy sparse matrix as bounded integers, each a bitwise function of its own entries.

SciPy adds up entries that share a place in an order that may depend on other rows (it sorts all
rows or none, and its sort is not stable), so that is done here.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dplinear.erm.integers import clamped
from dplinear.schema.cells import Floats

_MARGIN = 2.0  # as for dense rows: rounding moves a length, so that few rows are too long again

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Entries row by row, each row's in the order they are stored in. Private."""

    columns: int
    _starts: npt.NDArray[Any]
    _places: npt.NDArray[Any]
    _values: npt.NDArray[Any]

    @classmethod
    def of(cls, matrix: Any) -> Self:  # noqa: ANN401 - any SciPy sparse format
        """Return the rows of a sparse matrix of two dimensions, in any format."""
        if matrix.format == "csc":
            matrix = matrix.tocsr()
        if matrix.format == "csr":
            return cls(matrix.shape[1], matrix.indptr, matrix.indices, matrix.data)
        entries = matrix.tocoo()
        order = np.argsort(entries.row, kind="stable")
        counts = np.bincount(entries.row, minlength=matrix.shape[0])
        starts = np.concatenate(([0], np.cumsum(counts)))
        return cls(matrix.shape[1], starts, entries.col[order], entries.data[order])

    def integers(self, first: int, last: int, factor: float, norm: int, constant: int) -> Any:  # noqa: ANN401
        """Return rows times `factor`, rounded and clipped to `norm`, then `constant` if not 0.

        Requires: `norm` from 2^10 to 2^26.
        Promises: a sparse array of shape (columns, rows), or one column more; integers in float64;
        every norm, but for the constant, at most `norm`, verified on them; no place twice.
        """
        count = last - first
        rows, places, values = self._entries(first, last)
        steps = _shortened(rows, clamped(values * factor), count, norm)
        kept = np.flatnonzero(steps)
        rows, places, steps = rows[kept], places[kept], steps[kept]
        starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count))))
        size = self.columns
        if constant:
            places = np.insert(places, starts[1:], size)
            steps = np.insert(steps, starts[1:], float(constant))
            starts, size = starts + np.arange(count + 1), size + 1
        return sparse.csc_array((steps, places, starts), shape=(size, count))

    def array(self, first: int, last: int) -> Floats:
        """Return rows as an array of shape (rows, columns): for few columns."""
        rows, places, values = self._entries(first, last)
        cells = np.zeros((last - first, self.columns))
        cells[rows, places] = values
        return cells

    def _entries(self, first: int, last: int) -> tuple[Indices, Indices, Floats]:
        """Return rows, columns and values in order of place; those that share one are added up.

        Entries in no column of the matrix are left out.
        """
        starts = self._starts[first : last + 1].astype(np.int64)
        within = slice(int(starts[0]), int(starts[-1]))
        rows = np.repeat(np.arange(last - first, dtype=np.int64), np.diff(starts))
        with np.errstate(all="ignore"):  # of numbers that are too long for float64
            values = self._values[within].astype(np.float64)
        places = self._places[within]
        outside = (places < 0) | (places >= self.columns)
        if outside.any():  # SciPy does not check; they would count for other rows
            rows, places, values = rows[~outside], places[~outside], values[~outside]
        keys = rows * self.columns + places
        if (np.diff(keys) > 0).all():
            return rows, keys - rows * self.columns, values
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        fresh = np.concatenate(([True], np.diff(keys) > 0))
        # One after the other, beginning with 0: the same bits for a row of different places.
        values = _totals(np.cumsum(fresh) - 1, values[order], int(fresh.sum()))
        rows, places = np.divmod(keys[fresh], self.columns)
        return rows, places, values


def _shortened(rows: Indices, values: Floats, count: int, norm: int) -> Floats:
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


def _totals(places: Indices, values: Floats, count: int) -> Floats:
    """Return the sum of the values at each place, added one after the other."""
    return np.asarray(np.bincount(places, weights=values, minlength=count), np.float64)
