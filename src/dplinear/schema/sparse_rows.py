"""Rows of a SciPy sparse matrix: the one reader of them, each row by itself.

SciPy adds up entries that share a cell in an order that other rows may decide: it sorts all rows or
none, its sorts are not stable, and its sums are in the matrix's own type, where they may wrap
around. It also trusts indices, and writes outside of its memory where they are wrong. So nothing
here calls its conversions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Array
from dplinear.schema.canonical import number_in

Indices = npt.NDArray[np.int64]
_Entries = tuple[Array, Array, Array]  # the row, the column and the value of each
_NO_COLUMN = -1
_WRAPPED = 2.0**62  # farther than this from a sum of floats, a sum of integers has wrapped around


@dataclass(frozen=True, eq=False)
class SparseRows:
    """The rows of a sparse matrix. Private.

    Promises: a cell is what its entries add up to, and a bitwise function of the set of those
    entries, in whatever order and format they are stored: sums are made in float64 from the
    smallest entry to the largest; of integers exactly, in 64 bits, ending at the largest one that
    there is; of truth values, true where one entry is. Entries of no row or no column of the matrix
    are left out. Nothing raises or warns because of an entry.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    _starts: Indices
    _columns: Array
    _values: Array
    _chosen: Indices | None = None  # for each column of the matrix, its index here, or -1

    @classmethod
    def of(cls, matrix: Any) -> Self:
        """Return the rows of a sparse matrix of two dimensions and of real numbers."""
        count, width = (int(size) for size in matrix.shape)
        if matrix.format == "csr":
            columns, values = matrix.indices, matrix.data
            starts = _starts_in(matrix.indptr, min(len(columns), len(values)))
        else:
            starts, columns, values = _by_row(_ENTRIES[matrix.format](matrix), count)
        return cls((count, width), _cell_type(matrix.dtype), starts, columns, values)

    def select(self, columns: Sequence[int]) -> Self:
        """Return the same rows with some of their columns, in the order that is asked for."""
        chosen = np.full(self.shape[1], _NO_COLUMN, np.int64)
        chosen[list(columns)] = np.arange(len(columns))
        if self._chosen is not None:
            chosen = np.where(self._chosen < 0, _NO_COLUMN, chosen[self._chosen])
        return replace(self, shape=(self.shape[0], len(columns)), _chosen=chosen)

    def cells(self, first: int, last: int) -> tuple[Indices, Indices, Array]:
        """Return rows (from 0), columns and values of the cells that are stored, in their order."""
        keys, values = _add_duplicates(*self._entries(first, last))
        rows, columns = np.divmod(keys, self.shape[1])
        return rows, columns, values

    def array(self, first: int, last: int) -> Array:
        """Return rows as an array of shape (rows, columns)."""
        keys, values = self._entries(first, last)
        block = np.zeros((last - first, self.shape[1]), self.dtype)
        seen = np.zeros(block.size, bool)
        seen[keys] = True
        if np.count_nonzero(seen) < len(keys):
            keys, values = _add_duplicates(keys, values)
        with np.errstate(all="ignore"):  # a sum may be too long for a short type
            block.ravel()[keys] = values
        return block

    def _entries(self, first: int, last: int) -> tuple[Indices, Array]:
        """Return the cell of each entry, numbered row by row from the first, and its value."""
        starts = self._starts[first : last + 1]
        within = slice(int(starts[0]), int(starts[-1]))
        rows = np.repeat(np.arange(last - first, dtype=np.int64), np.diff(starts))
        columns = self._columns[within].astype(np.int64)
        values = _widen(self._values[within])
        width = self.shape[1] if self._chosen is None else len(self._chosen)
        outside = (columns < 0) | (columns >= width)
        if outside.any():
            rows, columns, values = rows[~outside], columns[~outside], values[~outside]
        if self._chosen is not None:
            columns = self._chosen[columns]
            kept = columns >= 0
            rows, columns, values = rows[kept], columns[kept], values[kept]
        return rows * self.shape[1] + columns, values


def _cell_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of a dense cell: integers in 64 bits, which sums of small ones need."""
    wide = {"b": np.bool_, "i": np.int64, "u": np.uint64}.get(dtype.kind)
    if wide is not None:
        return np.dtype(wide)
    return dtype.newbyteorder("=") if dtype.itemsize < 8 else np.dtype(np.float64)


def _widen(values: Array) -> Array:
    wide = {"b": np.bool_, "i": np.int64, "u": np.uint64}.get(values.dtype.kind, np.float64)
    with np.errstate(all="ignore"):  # of numbers that are too long for float64
        # −0 becomes 0, as it does in a sum.
        return np.asarray(values.astype(wide) + wide(0))


def _add_duplicates(keys: Indices, values: Array) -> tuple[Indices, Array]:
    """Return cells in their order, each once, and what their entries come to."""
    if (np.diff(keys) > 0).all():
        return keys, values
    order = np.argsort(keys, kind="stable")
    if (np.diff(keys[order]) > 0).all():
        return keys[order], values[order]
    order = np.lexsort((values, keys))
    keys = keys[order]
    firsts = np.flatnonzero(np.concatenate(([True], np.diff(keys) > 0)))
    return keys[firsts], _totals(firsts, values[order])


def _totals(firsts: Indices, values: Array) -> Array:
    """Return the sum of each group; `firsts` says where groups begin, their values in order."""
    if values.dtype.kind == "b":
        return np.asarray(np.logical_or.reduceat(values, firsts))
    groups = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(values))))
    # One after the other, beginning with 0: the same bits for a group wherever it stands.
    sums = np.bincount(groups, weights=values.astype(np.float64), minlength=len(firsts))
    if values.dtype.kind == "f":
        return np.asarray(sums, np.float64)
    exact = np.add.reduceat(values, firsts)
    limits = np.iinfo(values.dtype)
    high, low = (values.dtype.type(end) for end in (limits.max, limits.min))
    ends = np.where(sums > 0, high, low)
    return np.where(np.abs(sums - exact.astype(np.float64)) > _WRAPPED, ends, exact)


def _starts_in(pointers: Array, entries: int) -> Indices:
    """Return where rows begin among entries: as they are, but never backwards or beyond the end."""
    return np.maximum.accumulate(np.clip(pointers.astype(np.int64), 0, entries))


def _by_row(entries: _Entries, count: int) -> tuple[Indices, Array, Array]:
    """Return where each row begins, and columns and values, row by row."""
    rows, columns, values = (part[: min(map(len, entries))] for part in entries)
    rows = rows.astype(np.int64)  # of unsigned ones no difference is below 0
    outside = (rows < 0) | (rows >= count)
    if outside.any():
        rows, columns, values = rows[~outside], columns[~outside], values[~outside]
    if (np.diff(rows) < 0).any():
        order = np.argsort(rows, kind="stable")
        rows, columns, values = rows[order], columns[order], values[order]
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count))))
    return starts.astype(np.int64), columns, values


def _of_coo(matrix: Any) -> _Entries:
    return matrix.row, matrix.col, matrix.data


def _of_csc(matrix: Any) -> _Entries:
    starts = _starts_in(matrix.indptr, min(len(matrix.indices), len(matrix.data)))
    within = slice(int(starts[0]), int(starts[-1]))
    columns = np.repeat(np.arange(matrix.shape[1]), np.diff(starts))
    return matrix.indices[within], columns, matrix.data[within]


def _of_bsr(matrix: Any) -> _Entries:
    tall, wide = matrix.blocksize
    starts = _starts_in(matrix.indptr, min(len(matrix.indices), len(matrix.data)))
    within = slice(int(starts[0]), int(starts[-1]))
    tops = np.repeat(tall * np.arange(len(starts) - 1), np.diff(starts))
    lefts = wide * matrix.indices[within].astype(np.int64)
    values = matrix.data[within]
    rows = tops[:, None, None] + np.arange(tall)[:, None]
    columns = lefts[:, None, None] + np.arange(wide)
    return (
        np.broadcast_to(rows, values.shape).ravel(),
        np.broadcast_to(columns, values.shape).ravel(),
        values.ravel(),
    )


def _of_dia(matrix: Any) -> _Entries:
    values = matrix.data
    columns = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    rows = columns - matrix.offsets.astype(np.int64)[:, None]
    return rows.ravel(), columns.ravel(), values.ravel()


def _of_dok(matrix: Any) -> _Entries:
    items = [(key, value) for key, value in matrix.items() if _is_pair(key)]
    return (
        _indices(key[0] for key, _ in items),
        _indices(key[1] for key, _ in items),
        _numbers([value for _, value in items], matrix.dtype),
    )


def _of_lil(matrix: Any) -> _Entries:
    # A row is two lists, which anyone may change; what stands in one alone is no entry.
    held = zip(map(_as_list, matrix.rows), map(_as_list, matrix.data), strict=False)
    pairs = [list(zip(columns, values, strict=False)) for columns, values in held]
    rows = np.repeat(np.arange(len(pairs)), [len(row) for row in pairs])
    entries = list(chain.from_iterable(pairs))
    columns = _indices(column for column, _ in entries)
    return rows, columns, _numbers([value for _, value in entries], matrix.dtype)


def _as_list(held: Any) -> Sequence[Any]:
    return held if isinstance(held, list | tuple) else []


def _is_pair(key: object) -> bool:
    return isinstance(key, tuple) and len(key) == 2


def _indices(values: Iterable[Any]) -> Indices:
    return np.array([_index(value) for value in values], np.int64)


def _index(value: Any) -> int:
    known = isinstance(value, int | np.integer) and 0 <= value < 2**62
    return int(value) if known else _NO_COLUMN


def _numbers(values: Sequence[Any], dtype: np.dtype[Any]) -> Array:
    """Return objects as numbers, each by itself; one that is none is NaN, or 0 in other types."""
    if dtype.kind == "f":
        numbers = (value if type(value) is float else number_in(value) for value in values)
        return np.fromiter(numbers, np.float64, len(values))
    if dtype.kind == "b":
        return np.fromiter((abs(number_in(value)) > 0 for value in values), bool, len(values))
    limits = np.iinfo(np.int64 if dtype.kind == "i" else np.uint64)
    whole = [min(max(_whole(value), int(limits.min)), int(limits.max)) for value in values]
    return np.array(whole, limits.dtype)


def _whole(value: Any) -> int:
    if isinstance(value, int | np.integer):
        return int(value)
    number = number_in(value)
    return 0 if number != number else int(min(max(number, -(2.0**64)), 2.0**64))  # noqa: PLR0124 - NaN


_ENTRIES = {
    "coo": _of_coo,
    "csc": _of_csc,
    "bsr": _of_bsr,
    "dia": _of_dia,
    "dok": _of_dok,
    "lil": _of_lil,
}
