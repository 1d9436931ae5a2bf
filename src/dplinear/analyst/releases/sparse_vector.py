"""A vector of many coordinates, held by those that are not 0: small in memory and in files."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from dplinear.arguments import integer, rejection, wrong_type
from dplinear.arrays import Floats, Integers
from dplinear.schema.sparse_rows import SparseRows

_WHERE = "SparseVector"
_LONGEST = 1 << 31


@dataclass(frozen=True, eq=False)
class SparseVector:
    """`values` at ascending `indices` of `size` coordinates, 0 elsewhere. Read-only.

    Requires: finite values, none of them 0; indices within the size, each once.
    """

    size: int
    indices: Integers = field(repr=False)
    values: Floats = field(repr=False)

    def __post_init__(self) -> None:
        integer(self.size, "size", _WHERE, low=1, high=_LONGEST)
        indices, values = np.array(self.indices, np.int64), np.array(self.values, np.float64)
        if indices.ndim != 1 or indices.shape != values.shape:
            rule = "of one dimension, a value for each place"
            raise rejection("values", _WHERE, rule, values.shape)
        within = not len(indices) or (indices[0] >= 0 and indices[-1] < self.size)
        if not within or (np.diff(indices) <= 0).any():
            raise rejection("indices", _WHERE, f"ascending, from 0 to {self.size - 1}", indices)
        if not (np.isfinite(values) & (values != 0)).all():
            raise rejection("values", _WHERE, "finite, and not 0", values)
        for name, array in (("indices", indices), ("values", values)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def of(cls, vector: Floats) -> "SparseVector":
        """Return a dense vector in this form."""
        indices = np.flatnonzero(vector)
        return cls(len(vector), indices, vector[indices])

    @property
    def count(self) -> int:
        """How many coordinates are not 0."""
        return len(self.indices)

    @property
    def last(self) -> float:
        """The last coordinate."""
        there = self.count and self.indices[-1] == self.size - 1
        return float(self.values[-1]) if there else 0.0

    @cached_property
    def dense(self) -> Floats:
        """All coordinates; read-only."""
        full = np.zeros(self.size)
        full[self.indices] = self.values
        full.flags.writeable = False
        return full

    def products(self, rows: Any, where: str) -> Floats:
        """Return ⟨row, vector⟩ for rows in an array, a list of rows or a SciPy sparse matrix.

        Promises: cells that are NaN count as 0; a sparse matrix stays sparse, and of an array
        only the columns that matter are read.
        """
        if _is_sparse(rows):
            self._check(rows.shape, where)
            return self._sparse_products(rows)
        try:
            table = np.asarray(rows, np.float64)
        except (TypeError, ValueError):
            rule = "an array of numbers, or a sparse one"
            raise wrong_type("X", where, rule, type(rows).__name__) from None
        self._check(table.shape, where)
        chosen = table[:, self.indices]
        with np.errstate(all="ignore"):  # infinite cells give what they give, without a word
            return np.asarray(np.where(np.isnan(chosen), 0.0, chosen) @ self.values)

    def _sparse_products(self, matrix: Any) -> Floats:
        """Multiply without making room for coordinates that are 0."""
        count = matrix.shape[0]
        rows, columns, values = SparseRows.of(matrix).cells(0, count)
        at = np.searchsorted(self.indices, columns)
        here = np.flatnonzero(np.append(self.indices, -1)[at] == columns)
        cells = values[here]
        with np.errstate(all="ignore"):
            products = np.where(np.isnan(cells), 0.0, cells) * self.values[at[here]]
            return np.asarray(np.bincount(rows[here], products, count), np.float64)

    def _check(self, shape: tuple[int, ...], where: str) -> None:
        if len(shape) != 2 or shape[1] != self.size:
            raise rejection("X", where, f"of shape (rows, {self.size})", f"shape {shape}")


def _is_sparse(rows: object) -> bool:
    return bool(sparse.issparse(rows))
