"""What an engine's worker does: a share of the row groups in, the bytes of their sums out."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from dplinear.arguments import rejection
from dplinear.curator.sources.arrow import add_batch
from dplinear.curator.sources.files import Piece, add_row_group, parquet_pieces
from dplinear.curator.sources.paths import PARQUET, expand
from dplinear.curator.sources.pool import run
from dplinear.curator.sources.source import WHERE, Source
from dplinear.exact.blocks import Part, Reduction
from dplinear.schema import Schema


def shares(data: Any, schema: Schema, count: int) -> list[list[Piece]]:
    """Deal the row groups of Parquet paths into at most `count` shares, after checking them."""
    files = [file.absolute() for file in expand(data)]
    _check_parquet(files)
    pieces = [piece for file in files for piece in parquet_pieces(file, schema)]
    return [pieces[start::count] for start in range(min(count, len(pieces)))]


def _check_parquet(files: Sequence[Path]) -> None:
    for file in files:
        if not file.name.lower().endswith(PARQUET):
            hint = "leave `engine` out, or hand over the engine's own data frame."
            rule = "Parquet files where an engine is to read them"
            raise rejection("data", WHERE, rule, file.name, hint)


def from_share(pieces: Sequence[Piece], _: Schema) -> Source:
    """Read a share of row groups."""
    return Source([partial(add_row_group, piece) for piece in pieces])


def from_batches(batches: Iterable[pa.RecordBatch]) -> Source:
    """Read a partition that an engine hands over batch by batch."""
    return Source(partial(add_batch, batch) for batch in batches)


def encode_result(source: Source, reduction: Reduction[Any]) -> bytes:
    """Return what a worker sends back for a share of the rows, as bytes."""
    part = run(source, reduction, threads=1, progress=False)
    return bytes(part.to_bytes())


def collect(reduction: Reduction[Part], results: Iterable[bytes]) -> Part:
    """Return the sum of what the workers sent."""
    return reduction.merge(reduction.read(bytes(result)) for result in results)
