"""CSV, also gzip-compressed, read as bytes so that no cell can decide a type or break a line off.

A reader that infers types turns a whole column into text when one cell is bad, and one that checks
encodings raises. Here every cell arrives as bytes and is read by itself. A line with too few or too
many cells is a row too, in its place: all its cells count as missing. So is an empty line where
there is one column, since that is how its missing cells are written; elsewhere it is no row.
"""

import codecs
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
from dplinear.curator.blocks import Blocks
from dplinear.curator.sources.arrays import STEP
from dplinear.curator.sources.source import WHERE, Task, check_names, failure
from dplinear.schema import Schema

_BLOCK, _LONGEST = 4 * 2**20, 256 * 2**20  # bytes read at a time: at first, and for long lines
_TORN = (OSError, EOFError, zlib.error)  # what a file that cannot be read or decompressed raises


def _open(file: Path) -> IO[bytes]:
    compressed = file.name.lower().endswith(".gz")
    return cast("IO[bytes]", gzip.open(file, "rb")) if compressed else file.open("rb")


def _delimiter(file: Path) -> str:
    return "\t" if ".tsv" in file.name.lower() else ","


def delimited_task(file: Path, schema: Schema) -> Task:
    """Return the task that reads a file, after checking its header."""
    try:
        with _open(file) as opened:
            text = io.TextIOWrapper(opened, encoding="utf-8-sig", errors="replace", newline="")
            reader = csv.reader(text, delimiter=_delimiter(file))
            header = next(reader, [])
            lines = reader.line_num
    except (*_TORN, csv.Error) as error:
        raise failure(f"the header of '{file.name}'", error) from None
    if not header:
        rule = f"a file with a header line ('{file.name}' has none)"
        raise rejection("data", WHERE, rule, "an empty line")
    check_names(schema, header, f"'{file.name}'")
    return partial(_add_file, file, header, lines)


class _NotTextError(Exception):
    """A file is not UTF-8."""


def _add_file(file: Path, header: list[str], lines: int, accumulator: Blocks[Any]) -> Iterator[int]:
    """Add the rows of a file.

    Arrow ends at a line that is longer than a block, and prints what is in a broken one that is not
    UTF-8. Larger blocks, or bytes made characters, then take over from the rows that are done.
    """
    block, widened, done = _BLOCK, False, 0
    while True:
        seen = 0
        try:
            for batch in _batches(file, header, lines, accumulator.schema.columns, block, widened):
                fresh = batch.slice(max(0, done - seen))
                seen += batch.num_rows
                accumulator.update(fresh)
                done = max(done, seen)
                yield fresh.num_rows
        except _NotTextError:
            widened = True
        except (pa.ArrowException, *_TORN) as error:
            if _is_empty(file, lines):
                return
            if block == _LONGEST or not isinstance(error, pa.ArrowInvalid):
                raise failure(f"'{file.name}'", error) from None
            block = _LONGEST
        else:
            return


def _batches(  # noqa: PLR0913, PLR0917 - a file, what its header says, and how it is read
    file: Path,
    header: list[str],
    lines: int,
    columns: tuple[str, ...],
    block: int,
    widened: bool,  # noqa: FBT001
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a file, broken lines in their places, in the same order in every way."""
    broken = _Broken(lines)
    names = [name if name in columns else f"{index}:{name}" for index, name in enumerate(header)]
    with _open(file) as opened:
        reader = pa_csv.open_csv(
            pa.PythonFile(_Widened(opened) if widened else _Checked(opened), mode="r"),
            read_options=pa_csv.ReadOptions(
                column_names=names, skip_rows=lines, block_size=block, use_threads=False
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=_delimiter(file),
                newlines_in_values=True,
                ignore_empty_lines=len(header) > 1,
                invalid_row_handler=broken.note,
            ),
            convert_options=pa_csv.ConvertOptions(
                include_columns=list(columns),
                column_types={name: pa.binary() for name in columns},
                check_utf8=False,
            ),
        )
        for batch in reader:
            yield broken.put_back(_narrowed(batch) if widened else batch)
    for start in range(0, len(broken), STEP):
        rows = min(STEP, len(broken) - start)
        yield pa.record_batch([pa.nulls(rows)] * len(columns), names=list(columns))


class _Checked:
    """A file that ends in `_NotTextError` where it is not UTF-8, before anybody sees that part."""

    closed = False

    def __init__(self, opened: IO[bytes]) -> None:
        self._opened, self._decoder = opened, codecs.getincrementaldecoder("utf-8")()

    def read(self, count: int) -> bytes:
        """Return at most `count` bytes."""
        content = self._opened.read(count)
        try:
            self._decoder.decode(content, not content)
        except UnicodeDecodeError:
            raise _NotTextError from None
        return content

    def close(self) -> None:
        """Leave the file to whoever opened it."""


class _Widened(_Checked):
    """A file in which each byte is a character: well-formed text, whatever it holds."""

    def __init__(self, opened: IO[bytes]) -> None:
        super().__init__(opened)
        self._held = b""

    def read(self, count: int) -> bytes:
        """Return at most `count` bytes."""
        if len(self._held) < count:
            self._held += self._opened.read(count).decode("latin-1").encode()
        taken, self._held = self._held[:count], self._held[count:]
        return taken


def _narrowed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return cells as the bytes that they were."""
    columns = [
        [None if cell is None else cell.decode().encode("latin-1") for cell in column.to_pylist()]
        for column in batch.columns
    ]
    arrays = [pa.array(column, pa.binary()) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


class _Broken:
    """The lines that Arrow leaves out, and the way back for each, as a row of missing cells.

    Arrow numbers lines from 1, with the header's `lines`, and has noted all before a batch's end
    when it hands that batch over; it may have noted later ones.
    """

    def __init__(self, lines: int) -> None:
        self._next = lines + 1
        self._numbers: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def note(self, row: Any) -> str:  # noqa: ANN401 - Arrow's description of a line
        self._numbers.append(row.number)
        return "skip"

    def put_back(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the lines that belong before its last row, or right behind it."""
        places = np.array(self._numbers, np.int64) - self._next
        count = int(np.sum(places - np.arange(len(places)) <= batch.num_rows))
        self._next += batch.num_rows + count
        if not count:
            return batch
        del self._numbers[:count]
        absent = np.zeros(batch.num_rows + count, bool)
        absent[places[:count]] = True
        return batch.take(pa.array(np.cumsum(~absent) - 1, pa.int64(), mask=absent))


def _is_empty(file: Path, lines: int) -> bool:
    """Return whether nothing follows the header: Arrow takes that for an error, we for no rows."""
    try:
        with _open(file) as opened:
            for _ in range(lines):
                opened.readline()
            return not opened.read(1 << 16).strip()
    except _TORN:
        return False
