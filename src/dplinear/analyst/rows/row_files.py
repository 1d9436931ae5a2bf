"""Files of released rows: Parquet, Arrow or CSV, with the certificate inside or beside them.

Whole or not at all: rows stream to a name of their own in the same folder, and the file gets its
name when it is complete. `row_reading.py` reads them again.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from dplinear.analyst.releases.container import ReleaseError
from dplinear.analyst.releases.outputs import Output, UnplacedError, no_folder
from dplinear.analyst.rows import csv_cells
from dplinear.analyst.rows.row_head import Head
from dplinear.arguments import rejection

SUFFIXES = (".parquet", ".arrow", ".csv")
KEY = b"dplinear"
_GROUP = 2**22  # values in a row group of Parquet


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


class _CsvWriter:
    """Writes CSV: names and texts so that no spreadsheet runs them."""

    def __init__(self, opened: IO[bytes], columns: pa.Schema) -> None:
        fields = [each.with_name(csv_cells.shielded_name(each.name)) for each in columns]
        self._columns = pa.schema(fields)
        self._writer = pa_csv.CSVWriter(opened, self._columns)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(csv_cells.shield_rows(batch, self._columns))

    def close(self) -> None:
        self._writer.close()


def _writer(opened: IO[bytes], columns: pa.Schema, suffix: str) -> Any:
    if suffix == ".parquet":
        return _Writer(opened, columns)
    if suffix == ".arrow":
        return pa.ipc.new_file(opened, columns)
    return _CsvWriter(opened, columns)


class RowsFile:
    """A file of rows in the making. `finish` gives it its name; `abandon` leaves nothing half-made.

    Requires: a path whose folder is there. Every file that `finish` needs is opened here, so that
    what stands in its way is found before anything is spent: OSError.
    Promises: rows that are complete are removed by nothing. Where their name is taken meanwhile,
    `finish` raises UnplacedError, which says where they stay.
    """

    def __init__(self, target: Path, head: Head, *, overwrite: bool = False) -> None:
        self._target, self._head, self._overwrite = target, head, overwrite
        self._suffix = suffix_of(target, "save")
        self._rows = 0
        self._writer: Any = None
        self._certificate: Output | None = None
        self._output = Output(target, overwrite=overwrite)
        try:
            columns = head.columns
            if self._suffix != ".csv":
                columns = columns.with_metadata({KEY: head.to_bytes()})
            else:
                beside = sidecar(target)
                if not target.exists():
                    beside.unlink(missing_ok=True)  # left by a crash: there are no rows to it
                own = sidecar(self._output.path)
                self._certificate = Output(beside, overwrite=overwrite, path=own)
            self._writer = _writer(self._output.file, columns, self._suffix)
        except BaseException:
            self.abandon()
            raise

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the next rows."""
        self._rows += batch.num_rows
        self._writer.write(batch)

    def finish(self) -> None:
        """Make the file last, and give it its name; or raise `UnplacedError`."""
        try:
            self._writer.close()
            if self._certificate is not None:
                self._certificate.file.write(self._facts())
            self._complete()
            self._place()
        except UnplacedError as error:  # it is the rows that are looked for
            raise UnplacedError(self._target, self._output.path, error.reason) from None
        except BaseException:  # such as a signal: rows that are whole get their name after all
            self._place_after_all()
            raise
        finally:
            self.abandon()

    def _complete(self) -> None:
        try:
            self._output.complete()
        finally:
            if self._certificate is not None:
                self._certificate.complete()

    def abandon(self) -> None:
        """Remove what was written, unless it is complete by now."""
        if isinstance(self._writer, _Writer):
            self._writer.give_up()
        self._output.abandon()
        if self._certificate is None:
            return
        if self._output.whole:
            self._certificate.abandon()
        else:
            self._certificate.discard()

    def _facts(self) -> bytes:
        columns = self._head.columns
        texts = any(each.type == pa.string() for each in columns)
        odd = any(csv_cells.shielded_name(name) != name for name in columns.names)
        return self._head.to_bytes(self._rows, shielded=texts or odd)

    def _place(self) -> None:
        certificate = self._certificate
        if certificate is None:
            self._output.place()
            return
        if self._overwrite:
            # A crash in between leaves no file, rather than rows with another's certificate.
            self._target.unlink(missing_ok=True)
        certificate.claim()
        try:
            self._output.claim()
        except BaseException:
            certificate.release()
            raise
        certificate.settle()
        self._output.settle()

    def _place_after_all(self) -> None:
        if not self._output.whole:
            return
        with suppress(OSError, UnplacedError):
            if self._certificate is not None and not self._certificate.whole:
                self._certificate.complete()
            if self._output.path.exists():
                self._place()
            elif self._certificate is not None:
                self._certificate.settle()


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
        raise ReleaseError(str(no_folder("path", "save", path)))
    try:
        writing = RowsFile(path, head, overwrite=overwrite)
    except OSError as error:
        rule = f"the path of a file that can be written ({error.strerror})"
        raise ReleaseError(str(rejection("path", "save", rule, path.name))) from None
    try:
        for batch in batches:
            writing.write(batch)
        writing.finish()
    finally:
        writing.abandon()
