"""Tables of any kind, and the one pass over them.

`second_moments` is the door; a source per kind of table stands behind it, and every source passes
the same contract (tests/contracts/test_sources.py).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from dplinear.arguments import choice, integer, wrong_type
from dplinear.curator.sources.arrays import from_array, from_sparse, is_sparse
from dplinear.curator.sources.arrow import from_pandas, from_stream
from dplinear.curator.sources.files import from_files
from dplinear.curator.sources.paths import expand, is_paths
from dplinear.curator.sources.pool import LocalReader, available_cores
from dplinear.curator.sources.source import WHERE, Reader, Source, SourceError
from dplinear.curator.sources.unit_rows import UnitReader
from dplinear.curator.sources.warm import warm
from dplinear.exact.blocks import Part, Reduction
from dplinear.exact.gram import Moments, SecondMoments
from dplinear.privacy.units import MOST_ROWS
from dplinear.schema import Schema
from dplinear.schema.libraries import library_of, plain_frame, unwrap

_KINDS = (
    "a NumPy array, a SciPy sparse matrix, anything with the Arrow C stream interface, a path or "
    "glob of Parquet, CSV or Arrow files, or a Dask or Spark collection"
)

_T = TypeVar("_T")


def second_moments(
    data: Any,
    schema: Schema,
    *,
    threads: int | None = None,
    engine: str | None = None,
    progress: bool | None = None,
    rows_per_unit: int = 1,
) -> SecondMoments:
    """Return the exact second moments of a table's encoded rows, in one pass.

    Requires: a table with the schema's columns (by name; NumPy and sparse by position). `engine`
    ("dask" or "spark") makes its workers read Parquet paths themselves; every machine must see
    them. `threads` defaults to all cores; `progress` to a bar on a terminal when work is long.
    Promises: the same bits for the same rows in any order, chunks, threads or engine; errors about
    columns and types before any row is read; a source that breaks off raises `SourceError`, and
    there is no partial result. The result is private: only a mechanism may release anything of it.
    Where the schema names a unit of privacy, the rows of each have weights min(1/k, 1/count), with
    k `rows_per_unit`, which add up to at most 1.
    """
    reader = open_reader(
        data,
        schema,
        threads=threads,
        engine=engine,
        progress=progress,
        rows_per_unit=rows_per_unit,
    )
    return reader.run(Moments(schema))


def open_reader(
    data: Any,
    schema: Schema,
    *,
    threads: int | None = None,
    engine: str | None = None,
    progress: bool | None = None,
    again: bool = False,
    anew: bool = False,
    rows_per_unit: int = 1,
) -> Reader:
    """Check all that can be checked before a row is read.

    `again`: for more passes than one. `anew`: the table will be opened once more, under another
    schema, so that a stream will not do. Where the schema names a unit of privacy, each counts as
    at most `rows_per_unit` rows.
    """
    step = partial(
        _open_reader, data, schema, threads, engine, progress, again, anew, rows_per_unit
    )
    reader = _Discreet(_withholding(step))
    warm(data, progress=progress)
    return reader


class _Discreet:
    """A reader that keeps the words of a source that breaks off to itself."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def run(self, reduction: Reduction[Part]) -> Part:
        """Return what the reduction comes to over every row; or raise `SourceError`."""
        return _withholding(partial(self._reader.run, reduction))


def _withholding(step: Callable[[], _T]) -> _T:
    """Take a step; of a source that breaks off, keep no word but our own.

    `from None` hides a reader's message from tracebacks only: whoever logs errors may follow it.
    """
    try:
        return step()
    except SourceError as error:
        error.__context__ = None
        raise


def _open_reader(  # noqa: PLR0917 - as above
    data: Any,
    schema: Schema,
    threads: int | None,
    engine: str | None,
    progress: bool | None,  # noqa: FBT001 - the caller's arguments, passed on
    again: bool,  # noqa: FBT001
    anew: bool,  # noqa: FBT001
    rows_per_unit: int,
) -> Reader:
    if not isinstance(schema, Schema):
        raise wrong_type("schema", WHERE, "a Schema", schema)
    schema.check_levels()
    workers = available_cores()
    if threads is not None:
        workers = integer(threads, "threads", WHERE, low=1, high=1024)
    rows_per_unit = integer(rows_per_unit, "rows_per_unit", WHERE, low=1, high=MOST_ROWS)
    if progress is not None and not isinstance(progress, bool):
        raise wrong_type("progress", WHERE, "True, False or None", progress)
    if engine is not None:
        choice(engine, "engine", WHERE, ("dask", "spark"))
        if not is_paths(data):
            rule = "a path or glob where an engine is named"
            hint = "Dask and Spark collections bring their own engine."
            raise wrong_type("data", WHERE, rule, type(data), hint)
    data = unwrap(data)
    library = engine or library_of(data)
    if library == "dask":
        from dplinear.curator.sources.dask import DaskReader

        return DaskReader(data, schema, rows_per_unit)
    if library == "pyspark" or engine == "spark":
        from dplinear.curator.sources.spark import SparkReader

        return SparkReader(data, schema, rows_per_unit)
    source = local_source(data, schema)
    if anew and source.once:
        rule = "a table that can be read more than once, since its cells are clamped anew"
        hint = "write the stream to a file, or hold it in memory: pyarrow.table(data)."
        raise wrong_type("data", WHERE, rule, type(data), hint)
    if schema.unit is not None:
        return UnitReader(source, schema, rows_per_unit, threads=workers, progress=progress)
    return LocalReader(source, threads=workers, progress=progress, again=again or anew)


def local_source(data: Any, schema: Schema) -> Source:
    """Return the source for a table that this process can read itself."""
    if is_paths(data):
        return from_files(expand(data), schema)
    if isinstance(data, np.ndarray):
        return from_array(data, schema)
    library = library_of(data)
    if is_sparse(data):
        return from_sparse(data, schema)
    if library == "pandas" and hasattr(data, "columns") and hasattr(data, "dtypes"):
        return from_pandas(plain_frame(data), schema)
    frame = library == "polars" and hasattr(data, "collect_schema")
    # A column is no table, even one of structs: a row that is null as a whole is none of a batch.
    column = library in {"pandas", "polars"} or isinstance(data, pa.Array | pa.ChunkedArray)
    streams = not column and hasattr(data, "__arrow_c_stream__")
    if frame or streams or isinstance(data, pa.RecordBatch):
        return from_stream(data, schema)
    raise wrong_type("data", WHERE, _KINDS, type(data))


__all__ = ["SourceError", "open_reader", "second_moments"]
