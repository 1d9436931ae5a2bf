"""Files of released rows: Parquet, Arrow or CSV, with the certificate inside or beside them.

Whole or not at all: rows stream to a temporary name in the same folder, and the file gets its own
name when it is complete. What is loaded need not be trusted.
"""

import os
import stat
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from dplinear.analyst import container, files
from dplinear.analyst.container import ReleaseError, unsound
from dplinear.analyst.row_head import Head, read_head
from dplinear.arguments import rejection

__all__ = [
    "SUFFIXES",
    "Head",
    "HeldRows",
    "Rows",
    "RowsFile",
    "StoredRows",
    "opened",
    "read_head",
    "recognised",
    "save",
    "sidecar",
    "suffix_of",
]

SUFFIXES = (".parquet", ".arrow", ".csv")
_KEY = b"dplinear"
_LARGEST_FOOTER = 64 * 2**20
_GROUP = 2**22  # values in a row group of Parquet
_STEP = 2**16  # rows read at a time
_UNREADABLE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, EOFError)


def suffix_of(path: Path, where: str) -> str:
    """Return the format that a path names, or raise."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        rule = f"the path of a file that ends in {', '.join(SUFFIXES)}"
        raise rejection("output" if where == "release_rows" else "path", where, rule, path.name)
    return suffix


def sidecar(path: Path) -> Path:
    """Return where the certificate of a CSV file stands."""
    return path.with_name(f"{path.name}.certificate.json")


# Writing


class _Writer:
    """Writes Parquet: batches are gathered into row groups of a usual size."""

    def __init__(self, opened: IO[bytes], columns: pa.Schema) -> None:
        self._columns, self._held, self._rows = columns, list[pa.RecordBatch](), 0
        self._most = max(1, _GROUP // len(columns))
        # Noise fills every digit: neither a dictionary nor compression finds anything to save.
        self._writer = pq.ParquetWriter(
            opened, columns, compression="none", use_dictionary=False, write_statistics=False
        )

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._rows += batch.num_rows
        if self._rows >= self._most:
            self._flush()

    def close(self) -> None:
        if self._rows:
            self._flush()
        self._writer.close()

    def give_up(self) -> None:
        # Or it would still write its footer when memory is cleared, to a file that is closed.
        self._writer.is_open = False

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._held, self._columns)
        self._held, self._rows = [], 0
        self._writer.write_table(table, row_group_size=table.num_rows)


def _writer(opened: IO[bytes], columns: pa.Schema, suffix: str) -> Any:  # noqa: ANN401 - of three libraries
    if suffix == ".parquet":
        return _Writer(opened, columns)
    if suffix == ".arrow":
        return pa.ipc.new_file(opened, columns)
    return pa_csv.CSVWriter(opened, columns.remove_metadata())


class RowsFile:
    """A file of rows in the making. `finish` gives it its name; `abandon` leaves no trace of it."""

    def __init__(self, target: Path, head: Head, *, overwrite: bool = False) -> None:
        self._target, self._head, self._overwrite = target, head, overwrite
        self._suffix = suffix_of(target, "save")
        self._beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        self._rows = 0
        self._writer: Any = None
        columns = head.columns
        if self._suffix != ".csv":
            columns = columns.with_metadata({_KEY: head.to_bytes()})
        elif not target.exists():
            sidecar(target).unlink(missing_ok=True)  # left by a crash: there are no rows to it
        self._opened = self._beside.open("xb")
        try:
            self._writer = _writer(self._opened, columns, self._suffix)
        except BaseException:
            self.abandon()
            raise

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the next rows."""
        self._rows += batch.num_rows
        self._writer.write(batch)

    def finish(self) -> None:
        """Make the file last, and give it its name; raise FileExistsError if another has it."""
        try:
            self._writer.close()
            self._opened.flush()
            os.fsync(self._opened.fileno())
            self._opened.close()
            self._place()
        finally:
            self.abandon()
        with suppress(OSError):
            files.sync_folder(self._target.parent)

    def abandon(self) -> None:
        """Remove what was written, unless it has its name by now."""
        if isinstance(self._writer, _Writer):
            self._writer.give_up()
        with suppress(Exception):
            self._opened.close()
        self._beside.unlink(missing_ok=True)

    def _place(self) -> None:
        if self._overwrite:
            # A crash in between leaves no file, rather than rows with another's certificate.
            self._target.unlink(missing_ok=True)
        if self._suffix != ".csv":
            files.claim(self._beside, self._target)
            return
        beside, certificate = sidecar(self._beside), sidecar(self._target)
        if self._overwrite:
            certificate.unlink(missing_ok=True)
        try:
            with beside.open("xb") as opened:
                opened.write(self._head.to_bytes(self._rows))
                opened.flush()
                os.fsync(opened.fileno())
            files.claim(beside, certificate)
        finally:
            beside.unlink(missing_ok=True)
        try:
            files.claim(self._beside, self._target)
        except BaseException:
            certificate.unlink(missing_ok=True)
            raise


def save(
    head: Head, batches: Iterator[pa.RecordBatch], path: Path, *, overwrite: bool = False
) -> None:
    """Write rows to a file, whole or not at all."""
    suffix_of(path, "save")
    if os.path.lexists(path) and not (overwrite and path.is_file()):
        hint = "pass overwrite=True to replace the file."
        rule = "the path of a file that is not there yet"
        raise ReleaseError(str(rejection("path", "save", rule, path.name, hint)))
    if not path.parent.is_dir():
        raise ReleaseError(str(rejection("path", "save", "in a folder that is there", path.name)))
    writing = RowsFile(path, head, overwrite=overwrite)
    try:
        for batch in batches:
            writing.write(batch)
        writing.finish()
    finally:
        writing.abandon()


# Reading


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
    """Rows in a file, read when they are asked for, and refused if it is not what it was."""

    def __init__(self, path: Path, columns: pa.Schema, rows: int, head: bytes) -> None:
        self.path, self.rows = path, rows
        self._columns, self._head = columns, head

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, each batch checked."""
        assert self.path is not None  # noqa: S101 - given when it was made
        seen = 0
        with _reading(self.path) as (head, _, read):
            if head != self._head:
                raise unsound("the file it was when it was loaded", self.path.name)
            for batch in read():
                seen += batch.num_rows
                if seen > self.rows:
                    break
                yield checked(batch, self._columns, self.path.name)
        if seen != self.rows:
            raise unsound(f"a file of {self.rows} rows, as it says", self.path.name)


def recognised(path: Path) -> bool:
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


def opened(path: Path) -> tuple[Head, StoredRows]:
    """Return the head of a file of rows, and its rows, unread; or raise ReleaseError."""
    with _reading(path) as (content, count, _):
        head, rows = read_head(content, path.name)
    number = rows if count is None else count
    if number is None:
        raise unsound("released rows with their number", path.name)
    return head, StoredRows(path.absolute(), head.columns, number, content)


_Opened = tuple[bytes, int | None, Callable[[], Iterator[pa.RecordBatch]]]


@contextmanager
def _reading(path: Path) -> Iterator[_Opened]:
    """Open a file of rows: its head, its number of rows if it says, and what reads them."""
    suffix = path.suffix.lower()
    try:
        with open(path, "rb", opener=container.opener) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise unsound("a regular file", path.name)
            if suffix == ".csv":
                yield _read_csv(path, file)
            elif file.read(4) == b"PAR1":
                yield _read_parquet(path, file)
            else:
                yield _read_arrow(path, file)
    except ReleaseError:
        raise
    except _UNREADABLE:
        # Whatever a reader says of a file that is not to be trusted, is not to be trusted either.
        raise unsound("a file of released rows that can be read", path.name) from None


def _read_parquet(path: Path, file: IO[bytes]) -> _Opened:
    file.seek(-8, os.SEEK_END)
    if int.from_bytes(file.read(4), "little") > _LARGEST_FOOTER:
        raise unsound(f"a file with a footer of at most {_LARGEST_FOOTER} bytes", path.name)
    file.seek(0)
    reader = pq.ParquetFile(file, pre_buffer=False)
    head = _own(reader.schema_arrow.metadata, path)
    count = int(reader.metadata.num_rows)
    return head, count, lambda: reader.iter_batches(batch_size=_STEP)


def _read_arrow(path: Path, file: IO[bytes]) -> _Opened:
    file.seek(0)
    reader = pa.ipc.open_file(file)
    numbers = range(reader.num_record_batches)
    head = _own(reader.schema.metadata, path)
    mapped = pa.memory_map(str(path))
    with mapped:  # so that counting touches no row
        counter = pa.ipc.open_file(mapped)
        count = sum(counter.get_batch(number).num_rows for number in numbers)
    return head, count, lambda: (reader.get_batch(number) for number in numbers)


def _read_csv(path: Path, file: IO[bytes]) -> _Opened:
    beside = sidecar(path)
    if not beside.is_file():
        hint = f"released rows in CSV have their certificate beside them, in '{beside.name}'."
        raise unsound("a CSV file with its certificate", path.name, hint)
    with open(beside, "rb", opener=container.opener) as certificate:
        content = certificate.read(container.MOST_FACTS + 1)
    head, _ = read_head(content, beside.name)
    kinds = {field.name: field.type for field in head.columns}

    def read() -> Iterator[pa.RecordBatch]:
        options = pa_csv.ConvertOptions(column_types=kinds, strings_can_be_null=False)
        parse = pa_csv.ParseOptions(newlines_in_values=True)
        reading = pa_csv.ReadOptions(use_threads=False)
        yield from pa_csv.open_csv(
            file, read_options=reading, parse_options=parse, convert_options=options
        )

    return content, None, read


def _own(metadata: Mapping[bytes, bytes] | None, path: Path) -> bytes:
    head = (metadata or {}).get(_KEY)
    if head is None:
        hint = "this is a table like any other: release_rows makes one with a certificate."
        raise unsound("a file of released rows", path.name, hint)
    return head


def checked(batch: pa.RecordBatch, columns: pa.Schema, name: str) -> pa.RecordBatch:
    """Return a batch with the columns that its head names, if its cells are sound."""
    if batch.schema.names != columns.names or batch.schema.types != columns.types:
        raise unsound("a file with the columns that its certificate names", name)
    batch.validate(full=True)  # before anything follows the offsets that a file claims
    for column in batch.columns:
        floats = pa.types.is_floating(column.type)
        if column.null_count or (floats and not np.isfinite(column.to_numpy()).all()):
            raise unsound("a file whose cells are all there, and finite", name)
    return pa.RecordBatch.from_arrays(batch.columns, schema=columns)
