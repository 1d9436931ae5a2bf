"""What a library itself shows of a table that it made: its columns, and its rows as Python values.

This is the table that dplinear was given. Where two such tables differ in more than one row, their
library had changed other rows before anybody could undo it.
"""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

Rows = list[tuple[Any, ...]]


class CannotShowError(Exception):
    """The library fails at its own table."""


def shown(data: Any, names: list[str]) -> tuple[tuple[str, ...], Rows]:
    """Return the names of a table's columns among `names`, and its rows in those columns."""
    if isinstance(data, tuple):  # X, y and what else a learner is told
        data = data[0]
    if hasattr(data, "to_native"):  # within Narwhals' wrapper
        data = data.to_native()
    try:
        columns = _columns(data)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | AssertionError):
            raise
        raise CannotShowError(type(error).__name__) from None
    if columns is None:  # by position
        cells = data if isinstance(data, list) else data.tolist()
        return tuple(names), [tuple(row) for row in cells]
    found = tuple(name for name in names if name in columns)
    return found, list(zip(*(columns[name] for name in found), strict=True))


def _columns(data: Any) -> dict[str, list[Any]] | None:  # noqa: PLR0911 - a library each
    library = type(data).__module__.partition(".")[0].lstrip("_")
    if isinstance(data, np.ndarray):
        names = data.dtype.names
        return None if names is None else {name: data[name].tolist() for name in names}
    if isinstance(data, list) and data and isinstance(data[0], list):
        return None
    if isinstance(data, list | str | Path):
        return _files(data)
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if isinstance(data, pa.Table):
        return dict(zip(data.column_names, map(_arrow_cells, data.columns), strict=True))
    if library in {"polars", "elsewhere"} and hasattr(data, "collect_schema"):
        frame = data.collect() if hasattr(data, "collect") else data
        return {name: frame[name].to_list() for name in frame.columns}
    if library == "duckdb":
        rows = data.fetchall()
        kinds = [str(kind) for kind in data.types]
        return {
            name: [_json_cell(row[at]) if kinds[at] == "JSON" else row[at] for row in rows]
            for at, name in enumerate(data.columns)
        }
    if library == "pyspark":
        rows = data.collect()
        return {name: [row[at] for row in rows] for at, name in enumerate(data.columns)}
    if library in {"dask", "dask_expr"}:
        data.to_delayed()  # some plans can be carried out, and not taken apart
        data = data.compute()
    return {str(name): list(data[name]) for name in data.columns}


def _arrow_cells(column: pa.ChunkedArray) -> list[Any]:
    """Return cells; text as bytes, since Arrow's own text raises over a broken letter."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        large = pa.types.is_large_string(column.type)
        column = column.cast(pa.large_binary() if large else pa.binary())
    cells: list[Any] = column.to_pylist()
    json_cells = getattr(column.type, "extension_name", "") == "arrow.json"
    return [_json_cell(cell) for cell in cells] if json_cells else cells


def _json_cell(cell: Any) -> Any:
    return None if cell is None else json.loads(cell)


def _files(data: Any) -> dict[str, list[Any]]:
    path = Path(str(data[0] if isinstance(data, list) else data))
    files = data if isinstance(data, list) else [path]
    if path.is_dir():
        files = sorted(path.rglob("*.csv"))
    elif "*" in path.name:
        files = sorted(path.parent.parent.rglob(path.name))
    columns: dict[str, list[Any]] = {}
    for file in map(Path, files):
        for name, cells in _file(file).items():
            columns.setdefault(name, []).extend(cells)
    return columns


def _file(file: Path) -> dict[str, list[Any]]:
    if file.suffix == ".parquet":
        return _columns(pa.parquet.read_table(file)) or {}
    if file.suffix in {".feather", ".arrow", ".ipc", ".arrows"}:
        content = file.read_bytes()
        make = pa.ipc.open_file if content[:6] == b"ARROW1" else pa.ipc.open_stream
        return _columns(make(content).read_all()) or {}
    content = file.read_bytes()
    text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode(
        "utf-8", "surrogateescape"
    )
    csv.field_size_limit(2**30)
    mark = "\t" if ".tsv" in file.name else ","
    header, *rows = list(csv.reader(text.splitlines(keepends=True), delimiter=mark)) or [[]]
    return {name: [row[at] for row in rows] for at, name in enumerate(header)}
