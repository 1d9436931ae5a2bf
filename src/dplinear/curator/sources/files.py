"""Files of a known format, checked by their metadata before any row."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dplinear.curator.sources.arrays import STEP
from dplinear.curator.sources.delimited import delimited_task
from dplinear.curator.sources.paths import DELIMITED, PARQUET
from dplinear.curator.sources.source import Source, Task, check_names, failure
from dplinear.exact.blocks import Blocks
from dplinear.schema import Schema

_COLUMN_BUFFER = 2**20  # bytes of a column chunk held at a time, so that row groups may be large


def from_files(files: Sequence[Path], schema: Schema) -> Source:
    """Read files, several row groups or batches at a time.

    Requires: files of the formats above. Opens each and checks names and types, before any row.
    """
    tasks: list[Task] = []
    rows: int | None = 0
    for file in files:
        name = file.name.lower()
        if name.endswith(PARQUET):
            pieces = parquet_pieces(file, schema)
            tasks.extend(partial(add_row_group, piece) for piece in pieces)
            rows = None if rows is None else rows + sum(piece.rows for piece in pieces)
        else:
            more = (
                [delimited_task(file, schema)] if name.endswith(DELIMITED) else _ipc(file, schema)
            )
            tasks.extend(more)
            rows = None
    return Source(tasks, rows)


class Piece:
    """One row group of a Parquet file, which any worker can read by itself."""

    def __init__(self, path: Path, group: int, rows: int, metadata: Any = None) -> None:
        self.path, self.group, self.rows, self._metadata = path, group, rows, metadata

    def __reduce__(self) -> tuple[Any, ...]:
        return Piece, (self.path, self.group, self.rows)  # workers read the metadata themselves

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Decode the needed columns, a few thousand rows at a time."""
        with pq.ParquetFile(
            self.path, metadata=self._metadata, pre_buffer=False, buffer_size=_COLUMN_BUFFER
        ) as file:
            yield from file.iter_batches(
                batch_size=STEP, row_groups=[self.group], columns=list(columns), use_threads=False
            )


def parquet_pieces(file: Path, schema: Schema) -> list[Piece]:
    """Return the row groups of a file, after checking its columns by its footer."""
    try:
        with pq.ParquetFile(file, pre_buffer=False) as opened:
            metadata, types = opened.metadata, opened.schema_arrow
    except (pa.ArrowException, OSError):
        raise failure(f"the footer of '{file.name}'") from None
    check_names(schema, types.names, f"'{file.name}'")
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return [Piece(file, group, rows, metadata) for group, rows in enumerate(sizes)]


def add_row_group(piece: Piece, accumulator: Blocks[Any]) -> Iterator[int]:
    """Add the rows of one row group."""
    batches = piece.batches(accumulator.schema.read_columns)
    yield from _add_all(batches, f"row group {piece.group} of '{piece.path.name}'", accumulator)


def _add_all(
    batches: Iterable[pa.RecordBatch], what: str, accumulator: Blocks[Any]
) -> Iterator[int]:
    try:
        for batch in batches:
            accumulator.update(batch)
            yield batch.num_rows
    except (pa.ArrowException, OSError):
        raise failure(what) from None


def _ipc(file: Path, schema: Schema) -> list[Task]:
    """Return tasks for an Arrow or Feather file: one a batch, or the whole where it is a stream."""
    try:
        with pa.OSFile(str(file)) as opened:
            if opened.read(6) != b"ARROW1":
                opened.seek(0)
                names = pa.ipc.open_stream(opened).schema.names
                check_names(schema, names, f"'{file.name}'")
                return [partial(_add_ipc_stream, file)]
            reader = pa.ipc.open_file(opened)
            types, count = reader.schema, reader.num_record_batches
    except (pa.ArrowException, OSError):
        raise failure(f"the metadata of '{file.name}'") from None
    check_names(schema, types.names, f"'{file.name}'")
    fields = sorted(types.get_field_index(name) for name in schema.read_columns)
    return [partial(_add_ipc_batch, file, index, fields) for index in range(count)]


def _add_ipc_batch(
    file: Path, index: int, fields: list[int], accumulator: Blocks[Any]
) -> Iterator[int]:
    what = f"batch {index} of '{file.name}'"
    try:
        with pa.OSFile(str(file)) as opened:
            options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
            batch = pa.ipc.open_file(opened, options=options).get_batch(index)
            steps = range(0, batch.num_rows, STEP)
            yield from _add_all((batch.slice(start, STEP) for start in steps), what, accumulator)
    except (pa.ArrowException, OSError):
        raise failure(what) from None


def _add_ipc_stream(file: Path, accumulator: Blocks[Any]) -> Iterator[int]:
    try:
        with pa.OSFile(str(file)) as opened:
            yield from _add_all(pa.ipc.open_stream(opened), f"'{file.name}'", accumulator)
    except (pa.ArrowException, OSError):
        raise failure(f"'{file.name}'") from None
