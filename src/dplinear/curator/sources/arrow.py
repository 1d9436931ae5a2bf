"""Anything that speaks the Arrow C stream interface, and pandas' object columns, which cannot."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from dplinear.curator.sources.arrays import STEP
from dplinear.curator.sources.source import Source, Task, check_names, failure, withheld
from dplinear.exact.blocks import Blocks
from dplinear.schema import Schema
from dplinear.schema.cells import Cells
from dplinear.schema.frames import exportable, series_cells
from dplinear.schema.libraries import library_of
from dplinear.schema.storage import is_text

Opening = Callable[[], pa.RecordBatchReader]
_T = TypeVar("_T")
_JSON = "JSON"
_LONG = {"HUGEINT", "UHUGEINT", "BIGNUM", "VARINT"}  # DuckDB's, which Arrow has no integers for


def add_batch(batch: pa.RecordBatch, accumulator: Blocks[Any]) -> Iterator[int]:
    """Add the rows of a batch that is already in memory; raise `SourceError` if it is damaged."""
    try:
        accumulator.update(batch)
    except pa.ArrowException:
        raise failure("the stream") from None
    yield batch.num_rows


def from_stream(data: Any, schema: Schema) -> Source:
    """Read a reader, a table, a data frame or a relation, batch by batch.

    Promises: a lazy frame or a relation computes its rows in the pass, and not before. A producer
    of a library that is not known here may be able to export its rows only once. No type is
    refused: frames and relations have types that a library chose by looking at cells, so that an
    error would tell of a cell. Where a type means nothing in a column, its cells are missing.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    library = library_of(data)
    empty, whole = _openings(data, schema)
    check_names(schema, _open_stream(empty).schema.names, "the stream")
    tables = isinstance(data, pa.Table) or (library == "polars" and not hasattr(data, "collect"))
    rows = getattr(data, "height" if library == "polars" else "num_rows", None)
    return Source(
        _Stream(whole),
        rows if isinstance(rows, int) else None,
        once=not tables and library not in {"duckdb", "polars"},
        in_memory=tables,
    )


def _openings(data: Any, schema: Schema) -> tuple[Opening, Opening]:
    """Return what opens a stream of the same types without computing rows, and the stream.

    A plan that cannot be carried out fails here, as it would in the pass.
    """
    library = library_of(data)
    if library == "duckdb":
        check_names(schema, data.columns, "the relation")
        kinds = dict(zip(data.columns, map(str, data.types), strict=True))
        relation = data.project(
            ", ".join(_select_column(name, kinds[name]) for name in schema.read_columns)
        )
        json = frozenset(name for name, kind in kinds.items() if kind == _JSON)
        return partial(_relation, relation.limit(0), json), partial(_relation, relation, json)
    if library == "polars" and hasattr(data, "collect"):
        check_names(schema, _open_stream(data.collect_schema).names(), "the frame")
        frame = data.select(list(schema.read_columns))
        return (
            lambda: _stream(exportable(frame.collect_schema().to_frame())),
            lambda: _stream(exportable(frame.collect(engine="streaming"))),
        )
    if library == "polars" or isinstance(data, pa.Table):
        narrow = _select_columns(data, schema)
        if library == "polars":
            narrow = _open_stream(partial(exportable, narrow))
        return partial(_stream, narrow), partial(_stream, narrow)
    reader = _open_stream(partial(_stream, data))
    return (lambda: reader), (lambda: reader)


def _select_column(name: str, kind: str) -> str:
    """Return a column of a relation, long integers as text: one of them is a type for all rows."""
    quoted = '"{}"'.format(name.replace('"', '""'))
    return f"CAST({quoted} AS VARCHAR) AS {quoted}" if kind in _LONG else quoted


def _open_stream(opening: Callable[[], _T]) -> _T:
    with withheld("the stream"):
        return opening()


def _stream(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    return pa.RecordBatchReader.from_stream(data)


def _relation(relation: Any, json: frozenset[str]) -> pa.RecordBatchReader:
    """Return the rows of a relation, columns of JSON by that name: DuckDB hands over their text.

    One cell of another JSON type makes a column one of JSON, in which texts have quotation marks.
    """
    make = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    rows = _stream(make(STEP))
    named = [
        field.with_type(pa.json_(field.type))
        if field.name in json and is_text(field.type)
        else field
        for field in rows.schema
    ]
    kinds = pa.schema(named)
    if kinds == rows.schema:
        return rows
    return pa.RecordBatchReader.from_batches(kinds, (_typed_column(batch, kinds) for batch in rows))


def _typed_column(batch: pa.RecordBatch, kinds: pa.Schema) -> pa.RecordBatch:
    """Return a batch whose columns have these types, each of which its own may store."""
    columns = [
        column if column.type == kind.type else pa.ExtensionArray.from_storage(kind.type, column)
        for kind, column in zip(kinds, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=kinds)


def _select_columns(data: Any, schema: Schema) -> Any:
    """Ask a table for the needed columns only."""
    names = data.column_names if isinstance(data, pa.Table) else data.columns
    check_names(schema, names, "the table" if isinstance(data, pa.Table) else "the frame")
    return data.select(list(schema.read_columns))


class _Stream:
    """The tasks of a producer: its batches, exported anew for each pass."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    def __iter__(self) -> Iterator[Task]:
        yield from _tasks(_open_stream(self._opening))


def _tasks(reader: pa.RecordBatchReader) -> Iterator[Task]:
    while True:
        with withheld("the stream"):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
        for start in range(0, batch.num_rows, STEP):
            yield partial(add_batch, batch.slice(start, STEP))


def from_pandas(data: Any, schema: Schema) -> Source:
    """Read a pandas data frame column by column."""
    check_names(schema, data.columns, "the frame")
    columns = {name: series_cells(data[name]) for name in schema.read_columns}
    return from_columns(columns, len(data))


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
