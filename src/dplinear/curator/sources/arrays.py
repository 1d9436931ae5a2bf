"""NumPy arrays and SciPy sparse matrices: columns by position, in the schema's order."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from dplinear.arguments import rejection
from dplinear.arrays import kind_of
from dplinear.curator.sources.source import WHERE, Source, check_names
from dplinear.exact.blocks import Blocks
from dplinear.schema import Schema
from dplinear.schema.sparse_rows import SparseRows

STEP = 32_768
_READABLE = "biufcmOSUM"  # spans of time are missing; so are numbers that are not real


def check_dtype(dtype: np.dtype[Any], table: str) -> None:
    """Raise unless cells of this dtype can mean something.

    Whether dates stand where the schema says so is not asked: np.array finds dates, or numbers,
    where all cells but one are missing, so that one row would decide. What a cell cannot mean in
    its column is missing there, as in a data frame.
    """
    if dtype.kind not in _READABLE:
        rule = f"of real numbers, text, dates or objects ({table})"
        raise rejection("data", WHERE, rule, kind_of(dtype))


def check_shape(schema: Schema, shape: tuple[int, ...]) -> None:
    """Raise unless the shape is (rows, source columns)."""
    count = len(schema.read_columns)
    if len(shape) != 2 or shape[1] != count:
        rule = f"of shape (rows, {count}), one column for each of the schema's"
        hint = "a table with more columns needs names: a data frame, or a structured array."
        raise rejection("data", WHERE, rule, f"{len(shape)} dimensions {shape[1:]}", hint)


def from_array(data: npt.NDArray[Any], schema: Schema) -> Source:
    """Read a two-dimensional array of any layout and dtype, or a structured one by field names."""
    in_memory = not isinstance(data, np.memmap)
    if not isinstance(data, np.ma.MaskedArray):
        data = data.view(np.ndarray)  # and not a class with its own ideas
    if data.dtype.names is not None:
        check_names(schema, data.dtype.names, "the array")
        if data.ndim != 1:
            raise rejection("data", WHERE, "a one-dimensional structured array", data.ndim)
        for name in schema.read_columns:
            if data.dtype[name].shape:
                rule = f"a table whose column '{name}' holds single values (the array)"
                raise rejection("data", WHERE, rule, kind_of(data.dtype[name]))
        steps = range(0, len(data), STEP)
        tasks = [partial(_add_fields, data, start) for start in steps]
        return Source(tasks, len(data), in_memory=in_memory)
    check_shape(schema, data.shape)
    check_dtype(data.dtype, "the array")
    steps = range(0, len(data), STEP)
    tasks = [partial(_add_rows, data, start) for start in steps]
    return Source(tasks, len(data), in_memory=in_memory)


def _add_rows(data: Any, start: int, accumulator: Blocks[Any]) -> Iterator[int]:
    block = data[start : start + STEP]
    accumulator.update_array(block)
    yield len(block)


def _add_fields(data: npt.NDArray[Any], start: int, accumulator: Blocks[Any]) -> Iterator[int]:
    block = data[start : start + STEP]
    columns = {name: block[name] for name in accumulator.schema.read_columns}
    accumulator.update_columns(columns, len(block))
    yield len(block)


def is_sparse(data: object) -> bool:
    """Return whether a table is a SciPy sparse matrix, or the rows of one."""
    return isinstance(data, SparseRows) or bool(sparse.issparse(data))


def from_sparse(data: Any, schema: Schema) -> Source:
    """Read a SciPy sparse matrix, or its rows, a few thousand dense rows at a time."""
    check_shape(schema, data.shape)
    if data.dtype.kind not in "biuf":
        raise rejection("data", WHERE, "of real numbers (the matrix)", kind_of(data.dtype))
    check_dtype(data.dtype, "the matrix")
    rows = data if isinstance(data, SparseRows) else SparseRows.of(data)
    count, width = rows.shape
    step = max(1, min(STEP, 2**22 // max(1, width)))
    tasks = [
        partial(_add_sparse, rows, first, min(first + step, count))
        for first in range(0, count, step)
    ]
    return Source(tasks, count, in_memory=True)


def _add_sparse(rows: SparseRows, first: int, last: int, accumulator: Blocks[Any]) -> Iterator[int]:
    accumulator.update_array(rows.array(first, last))
    yield last - first
