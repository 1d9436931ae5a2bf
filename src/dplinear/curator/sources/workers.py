"""What an engine's worker does: a share of the row groups in, the bytes of their matrix out."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from dplinear.arguments import rejection
from dplinear.curator.gram import SecondMoments, merge
from dplinear.curator.sources.arrow import add_batch
from dplinear.curator.sources.files import PARQUET, Piece, add_row_group, expand, parquet_pieces
from dplinear.curator.sources.pool import run
from dplinear.curator.sources.source import WHERE, Source
from dplinear.schema import Schema


def shares(data: Any, schema: Schema, count: int) -> list[list[Piece]]:  # noqa: ANN401
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


def read_share(schema: Schema, pieces: Sequence[Piece]) -> bytes:
    """Return the matrix of a share of row groups, as bytes."""
    source = Source([partial(add_row_group, piece) for piece in pieces])
    return run(source, schema, threads=1, progress=False).to_bytes()


def read_batches(schema: Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Return the matrix of a partition that an engine hands over batch by batch."""
    source = Source(partial(add_batch, batch) for batch in batches)
    return run(source, schema, threads=1, progress=False).to_bytes()


def collect(schema: Schema, results: Iterable[bytes]) -> SecondMoments:
    """Return the sum of what the workers sent."""
    return merge(schema, [SecondMoments.from_bytes(bytes(result)) for result in results])
