"""Anything that speaks the Arrow C stream interface, and pandas' object columns, which cannot."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from dplinear.curator.blocks import Blocks
from dplinear.curator.sources.arrays import STEP
from dplinear.curator.sources.source import Source, Task, check_names, check_types, failure
from dplinear.schema import Schema
from dplinear.schema.cells import Cells, readable
from dplinear.schema.columns import Column


def add_batch(batch: pa.RecordBatch, accumulator: Blocks[Any]) -> Iterator[int]:
    """Add the rows of a batch that is already in memory."""
    accumulator.update(batch)
    yield batch.num_rows


def from_stream(data: Any, schema: Schema) -> Source:  # noqa: ANN401 - any producer
    """Read a reader, a table, a data frame or a relation, batch by batch.

    A producer of a library that is not known here may be able to export its rows only once.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    narrow = _narrowed(data, schema)
    stream = _Stream(narrow)
    check_types(schema, stream.schema, "the stream")
    library = _library(data)
    tables = library == "polars" or isinstance(data, pa.Table)
    rows = getattr(narrow, "height", None) if library == "polars" else _rows(data)
    return Source(stream, rows, once=not tables and library != "duckdb", in_memory=tables)


def _library(data: object) -> str:
    return type(data).__module__.partition(".")[0].lstrip("_")


def _rows(data: object) -> int | None:
    rows = getattr(data, "num_rows", None)
    return rows if isinstance(rows, int) else None


def _narrowed(data: Any, schema: Schema) -> Any:  # noqa: ANN401
    """Ask lazy producers for the needed columns only."""
    library = _library(data)
    if library == "duckdb":
        check_names(schema, data.columns, "the relation")
        quoted = ", ".join('"{}"'.format(name.replace('"', '""')) for name in schema.columns)
        return data.project(quoted)
    if library == "polars" and hasattr(data, "collect"):
        check_names(schema, data.collect_schema().names(), "the frame")
        return data.select(list(schema.columns)).collect(engine="streaming")
    if library == "polars":
        check_names(schema, data.columns, "the frame")
        return data.select(list(schema.columns))
    if isinstance(data, pa.Table):
        check_names(schema, data.column_names, "the table")
        return data.select(list(schema.columns))
    return data


def _opened(narrow: Any) -> pa.RecordBatchReader:  # noqa: ANN401
    if isinstance(narrow, pa.RecordBatchReader):
        return narrow
    if _library(narrow) == "duckdb":
        make = getattr(narrow, "to_arrow_reader", None) or narrow.fetch_arrow_reader
        return pa.RecordBatchReader.from_stream(make(STEP))
    return pa.RecordBatchReader.from_stream(narrow)


class _Stream:
    """The tasks of a producer: its batches, exported anew for each pass but the first."""

    def __init__(self, narrow: Any) -> None:  # noqa: ANN401
        self._narrow = narrow
        self._first: pa.RecordBatchReader | None = _opened(narrow)
        self.schema = self._first.schema

    def __iter__(self) -> Iterator[Task]:
        reader, self._first = self._first, None
        if reader is None:
            try:
                reader = _opened(self._narrow)
            except Exception as error:  # noqa: BLE001 - a producer may raise anything
                raise failure("the stream", error) from None
        yield from _tasks(reader)


def _tasks(reader: pa.RecordBatchReader) -> Iterator[Task]:
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except Exception as error:  # noqa: BLE001 - a producer may raise anything
            raise failure("the stream", error) from None
        for start in range(0, batch.num_rows, STEP):
            yield partial(add_batch, batch.slice(start, STEP))


def from_pandas(data: Any, schema: Schema) -> Source:  # noqa: ANN401 - pandas is not imported here
    """Read a pandas data frame column by column.

    Its own Arrow export raises on columns of mixed objects, that is, because of private values.
    It also chooses types by looking at values (a column of nothing but None is of floats), so a
    type that means nothing in a column makes its cells missing, where other sources raise.
    """
    check_names(schema, data.columns, "the frame")
    declared = schema.declared.items()
    columns = {name: _pandas_column(column, data[name]) for name, column in declared}
    return from_columns(columns, len(data))


def _pandas_column(column: Column, series: Any) -> Cells:  # noqa: ANN401
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufO":
        return series.to_numpy()
    try:
        cells = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        return series.to_numpy(dtype=object)
    if not readable(column, cells.type):
        return pa.nulls(len(series))
    return cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells


def from_columns(columns: dict[str, Cells], rows: int) -> Source:
    """Read columns held as arrays, in steps that keep memory flat."""
    steps = range(0, rows, STEP)
    tasks = [partial(_add_columns, columns, rows, start) for start in steps]
    return Source(tasks, rows, in_memory=True)


def _add_columns(
    columns: dict[str, Cells], rows: int, start: int, accumulator: Blocks[Any]
) -> Iterator[int]:
    stop = min(start + STEP, rows)
    step = {name: column[start:stop] for name, column in columns.items()}
    accumulator.update_columns(step, stop - start)
    yield stop - start
