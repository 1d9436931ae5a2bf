"""Reading files of released rows, which need not be trusted.

A few kilobytes can claim billions of rows, or repeat a long text for each. So whatever a file says
is held to `memory_limit` its size before room is made for it, and rows are decoded a few at a time:
columns of numbers have a known width, texts are read as dictionaries and counted before they are
spelled out, and compressed parts are held to what they announce.
"""

import os
import stat
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from dplinear.analyst.releases import container
from dplinear.analyst.releases.container import ReleaseError, unsound
from dplinear.analyst.rows import csv_cells
from dplinear.analyst.rows.arrow_messages import read_announcement
from dplinear.analyst.rows.row_files import KEY, sidecar
from dplinear.analyst.rows.row_head import Head, read_beside, read_head

LEAST = 64 * 2**20  # bytes of decoded rows that any file may have
TIMES = 32  # … or so many for each of its bytes

_LARGEST_FOOTER = 64 * 2**20
_STEP = 2**16  # rows read at a time, at the most
_BLOCK = 2**24  # bytes of numbers read at a time
_WIDTHS = {pa.float64(): 8, pa.int64(): 8, pa.bool_(): 1, pa.string(): 4}
# Snappy cannot make more than 22 bytes of one; others make thousands, all at once.
_CODECS = {"UNCOMPRESSED", "SNAPPY"}
# A text by itself, or by its place in a list: not as what it adds to the one before.
_TEXTS = {"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"}
_UNREADABLE = (
    pa.ArrowException, OSError, ValueError, TypeError, KeyError, EOFError, struct.error
)  # fmt: skip


def memory_limit(size: int) -> int:
    """Return how many bytes the rows in a file of a given size may take once they are decoded."""
    return max(LEAST, TIMES * size)


class Meter:
    """Counts the bytes of decoded rows, and raises before there are too many of them."""

    def __init__(self, allowed: int, name: str) -> None:
        self._allowed, self._left, self._name = allowed, allowed, name

    def take(self, count: int) -> None:
        """Count bytes that are about to be made room for."""
        self._left -= count
        if self._left < 0:
            rule = f"a file whose rows take at most {self._allowed} bytes once they are decoded"
            hint = "if you trust where the file comes from, pass a larger `largest`."
            raise unsound(rule, self._name, hint)


def width(columns: pa.Schema) -> int:
    """Return how many bytes a row takes, beside its texts."""
    return sum(_WIDTHS[each.type] for each in columns)


class Rows(ABC):
    """Released rows, wherever they are kept: how many, and batches of them, as often as asked."""

    rows: int
    path: Path | None = None

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order."""


class HeldRows(Rows):
    """Rows in memory."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.rows = table, table.num_rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order."""
        yield from self.table.to_batches(max_chunksize=_STEP)


class StoredRows(Rows):
    """Rows in a file, read when they are asked for, and refused if it is not what it was.

    Decoded, they may take `largest` bytes; by default what `memory_limit` the file's size says.
    """

    def __init__(
        self, path: Path, columns: pa.Schema, rows: int, head: bytes, largest: int | None = None
    ) -> None:
        self.path, self.rows = path, rows
        self._columns, self._head, self._largest = columns, head, largest

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, each batch checked."""
        assert self.path is not None  # noqa: S101 - given when it was made
        seen = 0
        with _reading(self.path) as found:
            if found.head != self._head:
                raise unsound("the file it was when it was loaded", self.path.name)
            meter = found.meter(self._largest)
            for batch in found.read(self._columns, meter):
                seen += batch.num_rows
                if seen > self.rows:
                    break
                yield check_batch(batch, self._columns, self.path.name)
        if seen != self.rows:
            raise unsound(f"a file of {self.rows} rows, as it says", self.path.name)


def is_rows_file(path: Path) -> bool:
    """Return whether a file looks like released rows: by its first bytes, or as CSV by its name."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        if path.suffix.lower() == ".csv":
            return True
        with open(path, "rb", opener=container.opener) as opened:
            return opened.read(6).startswith((b"PAR1", b"ARROW1"))
    except (OSError, ValueError):
        return False


def open_rows_file(path: Path, largest: int | None = None) -> tuple[Head, StoredRows]:
    """Return the head of a file of rows, and its rows, unread; or raise ReleaseError.

    Decoded, the rows may take `largest` bytes; by default what `memory_limit` the file's size says.
    """
    with _reading(path) as found:
        head, rows = read_head(found.head, path.name)
        number = rows if found.number is None else found.number
        if number is None:
            raise unsound("released rows with their number", path.name)
        if found.columns is not None:
            check_columns(found.columns, head.columns, path.name)
        found.meter(largest).take(number * width(head.columns))
    return head, StoredRows(path.absolute(), head.columns, number, found.head, largest)


class _Opened(NamedTuple):
    """An opened file: its head, its own columns and number of rows, and what reads them."""

    path: Path
    size: int
    head: bytes
    columns: pa.Schema | None
    number: int | None
    read: Callable[[pa.Schema, Meter], Iterator[pa.RecordBatch]]

    def meter(self, largest: int | None) -> Meter:
        return Meter(memory_limit(self.size) if largest is None else largest, self.path.name)


@contextmanager
def _reading(path: Path) -> Iterator[_Opened]:
    """Open a file of rows."""
    suffix = path.suffix.lower()
    try:
        with open(path, "rb", opener=container.opener) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise unsound("a regular file", path.name)
            if suffix == ".csv":
                yield _read_csv(path, file, found.st_size)
            elif file.read(4) == b"PAR1":
                yield _read_parquet(path, file, found.st_size)
            else:
                yield _read_arrow(path, file, found.st_size)
    except ReleaseError:
        raise
    except _UNREADABLE:
        # Whatever a reader says of a file that is not to be trusted, is not to be trusted either.
        raise unsound("a file of released rows that can be read", path.name) from None


# Parquet


def _read_parquet(path: Path, file: IO[bytes], size: int) -> _Opened:
    file.seek(-8, os.SEEK_END)
    if int.from_bytes(file.read(4), "little") > _LARGEST_FOOTER:
        raise unsound(f"a file with a footer of at most {_LARGEST_FOOTER} bytes", path.name)
    file.seek(0)
    reader = pq.ParquetFile(file, pre_buffer=False)
    own = reader.schema_arrow

    def read(columns: pa.Schema, meter: Meter) -> Iterator[pa.RecordBatch]:
        check_columns(own, columns, path.name)
        texts = [each.name for each in columns if each.type == pa.string()]
        rows = pq.ParquetFile(
            file, metadata=reader.metadata, pre_buffer=False, read_dictionary=texts
        )
        each = max(1, min(_STEP, _BLOCK // width(columns)))
        for number in range(rows.num_row_groups):
            _check_group(reader.metadata.row_group(number), columns, size, path.name)
            for batch in rows.iter_batches(batch_size=each, row_groups=[number]):
                yield _decode_texts(batch, columns, meter)

    return _Opened(path, size, _own(own.metadata, path), own, int(reader.metadata.num_rows), read)


def _check_group(group: Any, columns: pa.Schema, size: int, name: str) -> None:
    """Raise for a part of a file that could unpack to more than a batch at a time."""
    parts = [group.column(number) for number in range(group.num_columns)]
    if len(parts) != len(columns) or any(each.compression not in _CODECS for each in parts):
        raise unsound(
            "a Parquet file whose columns are plain or compressed by Snappy",
            name,
            "`released.save` writes such files.",
        )
    if sum(each.total_compressed_size for each in parts) > size:
        raise unsound("a file whose columns have each their own bytes", name)
    texts = (each for each, field in zip(parts, columns, strict=True) if field.type == pa.string())
    if any(not _TEXTS.issuperset(each.encodings) for each in texts):
        raise unsound("a Parquet file whose texts are plain or in a dictionary", name)


def _decode_texts(batch: pa.RecordBatch, columns: pa.Schema, meter: Meter) -> pa.RecordBatch:
    """Return a batch with its texts spelled out, once it is known how long they will be."""
    meter.take(batch.num_rows * width(columns))
    batch.validate(full=True)  # before anything follows the offsets that a file claims
    plain = []
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            lengths = pc.binary_length(column.dictionary).take(column.indices)
            meter.take(pc.sum(lengths).as_py() or 0)
            column = column.dictionary_decode()  # noqa: PLW2901 - the same cells
        plain.append(column)
    return pa.RecordBatch.from_arrays(plain, names=batch.schema.names)


# Arrow


def _read_arrow(path: Path, file: IO[bytes], size: int) -> _Opened:
    file.seek(0)
    reader = pa.ipc.open_file(file)
    own = reader.schema
    head = _own(own.metadata, path)
    with pa.memory_map(str(path)) as mapped:  # so that counting touches no row
        lengths = [read_announcement(message).rows for message in _messages(mapped)]
    if len(lengths) != reader.num_record_batches:
        raise unsound("a file with the batches that it lists", path.name)

    def read(columns: pa.Schema, meter: Meter) -> Iterator[pa.RecordBatch]:
        check_columns(own, columns, path.name)
        for message in _messages(file):
            yield unpack_rows(message, own, meter)

    return _Opened(path, size, head, own, sum(lengths), read)


def _messages(file: Any) -> Iterator[pa.Message]:
    """Yield the messages of a file that hold rows: an Arrow file is a stream between two marks."""
    file.seek(8)
    for message in pa.ipc.MessageReader.open_stream(file):
        if message.type == "record batch":
            yield message
        elif message.type != "schema":
            raise ValueError("a message that released rows do not have")


def unpack_rows(message: pa.Message, columns: pa.Schema, meter: Meter) -> pa.RecordBatch:
    """Return the rows in a message, once it is known how much room they will take."""
    room = read_announcement(message).unpacked
    meter.take(room)
    batch = pa.ipc.read_record_batch(message, columns)
    batch.validate(full=True)
    meter.take(max(0, batch.nbytes - room))
    return batch


# CSV


def _read_csv(path: Path, file: IO[bytes], size: int) -> _Opened:
    beside = sidecar(path)
    if not beside.is_file():
        hint = f"released rows in CSV have their certificate beside them, in '{beside.name}'."
        raise unsound("a CSV file with its certificate", path.name, hint)
    with open(beside, "rb", opener=container.opener) as certificate:
        content = certificate.read(container.MOST_FACTS + 1)
    head, _, shielded = read_beside(content, beside.name)
    written = csv_cells.shielded_name if shielded else str
    kinds = {written(field.name): field.type for field in head.columns}

    def read(columns: pa.Schema, meter: Meter) -> Iterator[pa.RecordBatch]:
        options = pa_csv.ConvertOptions(column_types=kinds, strings_can_be_null=False)
        parse = pa_csv.ParseOptions(newlines_in_values=True)
        reading = pa_csv.ReadOptions(use_threads=False)
        for batch in pa_csv.open_csv(
            file, read_options=reading, parse_options=parse, convert_options=options
        ):
            meter.take(batch.nbytes)
            yield csv_cells.unshield_rows(batch, columns) if shielded else batch

    return _Opened(path, size, content, None, None, read)


def _own(metadata: Mapping[bytes, bytes] | None, path: Path) -> bytes:
    head = (metadata or {}).get(KEY)
    if head is None:
        hint = "this is a table like any other: release_rows makes one with a certificate."
        raise unsound("a file of released rows", path.name, hint)
    return head


# What is true of all


def check_columns(found: pa.Schema, columns: pa.Schema, name: str) -> None:
    """Raise unless columns have the names and types that a head gives them."""
    if found.names != columns.names or found.types != columns.types:
        raise unsound("a file with the columns that its certificate names", name)


def check_batch(batch: pa.RecordBatch, columns: pa.Schema, name: str) -> pa.RecordBatch:
    """Return a batch with the columns that its head names, if its cells are sound."""
    check_columns(batch.schema, columns, name)
    batch.validate(full=True)  # before anything follows the offsets that a file claims
    for column in batch.columns:
        floats = pa.types.is_floating(column.type)
        if column.null_count or (floats and not np.isfinite(column.to_numpy()).all()):
            raise unsound("a file whose cells are all there, and finite", name)
    return pa.RecordBatch.from_arrays(batch.columns, schema=columns)
