"""CSV, also gzip-compressed, read as bytes so that no cell can decide a type or break a row off.

A reader that infers types turns a whole column into text when one cell is bad, and one that checks
encodings raises. Here every cell arrives as bytes and is read by itself. What a row is, `records`
says. A row with too few or too many cells is a row too, in its place: all its cells count as
missing. So is an empty line where there is one column, since that is how its missing cells are
written; elsewhere it is no row.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from dplinear.arguments import rejection
from dplinear.curator.sources.records import (
    HeaderError,
    is_plain,
    narrow,
    pieces,
    read_header,
    widen,
)
from dplinear.curator.sources.source import WHERE, Task, check_names, failure
from dplinear.exact.blocks import Blocks
from dplinear.schema import Schema

_TORN = (OSError, EOFError, zlib.error)  # what a file that cannot be read or decompressed raises
_BEFORE = b"-\n"  # a line to skip: Arrow drops what looks like a mark of the order of bytes


def _open(file: Path) -> IO[bytes]:
    compressed = file.name.lower().endswith(".gz")
    return cast("IO[bytes]", gzip.open(file, "rb")) if compressed else file.open("rb")


def _delimiter(file: Path) -> str:
    return "\t" if ".tsv" in file.name.lower() else ","


def delimited_task(file: Path, schema: Schema) -> Task:
    """Return the task that reads a file, after checking its header."""
    mark = _delimiter(file)
    try:
        with _open(file) as opened:
            line, start = read_header(opened, mark.encode())
        text = io.StringIO(line.decode("utf-8", "replace"), newline="")
        header = next(csv.reader(text, delimiter=mark), [])
    except HeaderError:
        rule = f"a file with a header line and lines that end in \\n or \\r\\n ('{file.name}')"
        hint = "lines that end in \\r alone cannot be told from cells that hold one: convert them."
        raise rejection("data", WHERE, rule, "other line ends, or no header", hint) from None
    except (*_TORN, csv.Error):
        raise failure(f"the header of '{file.name}'") from None
    if not header:
        rule = f"a file with a header line ('{file.name}' has none)"
        raise rejection("data", WHERE, rule, "an empty line")
    check_names(schema, header, f"'{file.name}'")
    return partial(_add_file, file, header, start)


def _add_file(file: Path, header: list[str], start: int, accumulator: Blocks[Any]) -> Iterator[int]:
    """Add the rows of a file."""
    mark = _delimiter(file)
    broken = b"-\n" if len(header) > 1 else f"{mark}\n".encode()
    read = _Cells(header, accumulator.schema.read_columns, mark)
    try:
        with _open(file) as opened:
            opened.seek(start)
            for piece in pieces(opened, mark.encode(), broken):
                rows = read(piece)
                accumulator.update(rows)
                yield rows.num_rows
    except (pa.ArrowException, *_TORN):
        raise failure(f"'{file.name}'") from None


class _Cells:
    """Reads whole records: the cells of the needed columns as bytes."""

    def __init__(self, header: list[str], columns: tuple[str, ...], mark: str) -> None:
        # By number: other columns may be called anything, and alike.
        self._columns = columns
        self._indices = [str(header.index(name)) for name in columns]
        self._read_all = [str(index) for index in range(len(header))]
        self._mark = mark

    def __call__(self, piece: bytes) -> pa.RecordBatch:
        """Return a row for each record, those of another length as rows of missing cells."""
        blank = piece[:1] in b"\r\n" and not piece.replace(b"\r\n", b"").strip(b"\n")
        if blank and len(self._read_all) > 1:
            return pa.record_batch([pa.nulls(0)] * len(self._columns), names=list(self._columns))
        plain = is_plain(
            piece
        )  # Arrow prints broken rows that are no text, and takes \r for an end
        found, broken = self._parse(piece if plain else widen(piece))
        columns = [column.combine_chunks() for column in found.columns]
        if not plain:
            columns = [pa.array(map(narrow, c.to_pylist()), pa.binary()) for c in columns]
        batch = pa.RecordBatch.from_arrays(columns, names=list(self._columns))
        return _with_missing_rows(batch, broken)

    def _parse(self, piece: bytes) -> tuple[pa.Table, list[int]]:
        """Return the rows that have all cells, and the indices of the others among all rows."""
        broken: list[int] = []

        def note(row: Any) -> str:
            broken.append(row.number - 2)  # it counts from 1, and the line that is skipped
            return "skip"

        content = _BEFORE + piece
        table = pa_csv.read_csv(
            pa.BufferReader(content),
            read_options=pa_csv.ReadOptions(
                column_names=self._read_all,
                skip_rows=1,
                block_size=len(content) + 1,
                use_threads=False,
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self._mark,
                newlines_in_values=True,
                ignore_empty_lines=len(self._read_all) > 1,
                invalid_row_handler=note,
            ),
            convert_options=pa_csv.ConvertOptions(
                include_columns=self._indices,
                column_types={index: pa.binary() for index in self._indices},
                check_utf8=False,
            ),
        )
        return table, broken


def _with_missing_rows(batch: pa.RecordBatch, missing: list[int]) -> pa.RecordBatch:
    """Return a batch with rows of missing cells, such that these stand at the given indices."""
    if not missing:
        return batch
    absent = np.zeros(batch.num_rows + len(missing), bool)
    absent[missing] = True
    return batch.take(pa.array(np.cumsum(~absent) - 1, pa.int64(), mask=absent))
