"""CSV, also gzip-compressed, read as bytes so that no cell can decide a type or break a line off.

A reader that infers types turns a whole column into text when one cell is bad, and one that checks
encodings raises. Here every cell arrives as bytes and is read by itself. A line with too few or too
many cells is a row too: all its cells count as missing.
"""

import csv
import gzip
import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.csv as pa_csv

from dplinear.arguments import rejection
from dplinear.curator.blocks import Blocks
from dplinear.curator.sources.arrays import STEP
from dplinear.curator.sources.source import WHERE, Task, check_names, failure
from dplinear.schema import Schema

_BLOCK = 4 * 2**20


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
    except (OSError, EOFError, csv.Error) as error:
        raise failure(f"the header of '{file.name}'", error) from None
    if not header:
        rule = f"a file with a header line ('{file.name}' has none)"
        raise rejection("data", WHERE, rule, "an empty line")
    check_names(schema, header, f"'{file.name}'")
    return partial(_add_file, file, header, lines)


def _add_file(file: Path, header: list[str], lines: int, accumulator: Blocks[Any]) -> Iterator[int]:
    columns = accumulator.schema.columns
    broken = 0

    def count(_row: Any) -> str:  # noqa: ANN401 - Arrow's description of a line
        nonlocal broken
        broken += 1
        return "skip"

    names = [name if name in columns else f"{index}:{name}" for index, name in enumerate(header)]
    try:
        with _open(file) as opened:
            reader = pa_csv.open_csv(
                pa.PythonFile(opened, mode="r"),
                read_options=pa_csv.ReadOptions(
                    column_names=names, skip_rows=lines, block_size=_BLOCK, use_threads=False
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=_delimiter(file), newlines_in_values=True, invalid_row_handler=count
                ),
                convert_options=pa_csv.ConvertOptions(
                    include_columns=list(columns),
                    column_types={name: pa.binary() for name in columns},
                    check_utf8=False,
                ),
            )
            for batch in reader:
                accumulator.update(batch)
                yield batch.num_rows
    except (pa.ArrowException, OSError, EOFError) as error:
        if not _is_empty(file, lines):
            raise failure(f"'{file.name}'", error) from None
    for start in range(0, broken, STEP):
        rows = min(STEP, broken - start)
        accumulator.update_columns(dict.fromkeys(columns, pa.nulls(rows)), rows)
        yield rows


def _is_empty(file: Path, lines: int) -> bool:
    """Return whether nothing follows the header: Arrow takes that for an error, we for no rows."""
    try:
        with _open(file) as opened:
            for _ in range(lines):
                opened.readline()
            return not opened.read(1 << 16).strip()
    except (OSError, EOFError):
        return False
