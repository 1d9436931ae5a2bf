"""Rows of units on an engine: its workers deal them into buckets by unit, then weigh each bucket.

All rows of a unit come into one bucket, whichever workers read them, so that a bucket's weights are
functions of its own rows. Sums are exact: in which order, or how often, an engine deals the same
rows changes no bit. What goes from worker to worker is rounded rows and ids: they are private, and
are wherever the engine keeps what it shuffles.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa

from dplinear.curator.sources.pool import one_blas_thread
from dplinear.curator.sources.source import Source, SourceError, Task
from dplinear.curator.sources.spool import Cells, chunks_of, deal, pack, unpack
from dplinear.curator.sources.unit_rows import Gatherer, add_by_unit, add_chunk, weigh
from dplinear.curator.sources.workers import encode_result
from dplinear.exact.blocks import Reduction
from dplinear.exact.groups import is_by_unit
from dplinear.schema import Schema

Dealt = tuple[int, bytes]  # the number of a bucket, and some of its rows
Weighed = tuple[list[int], bytes]  # sums, and the buckets whose rows are in them

_HELD = 2**25  # bytes of rows and keys that a worker holds before it deals them
_PIECE = 2**16  # bytes: Spark sends ten thousand pieces at once, which must be less than 2 GiB


class _Holder:
    """Rows with the keys of their units, on their way into buckets."""

    def __init__(self) -> None:
        self._rows: list[tuple[Cells, pa.Array]] = []
        self.held = 0

    def put(self, cells: Cells, keys: pa.Array) -> None:
        self._rows.append((cells, keys))
        self.held += cells.nbytes + keys.nbytes

    def deal(self, count: int) -> Iterator[Dealt]:
        rows, self._rows, self.held = self._rows, [], 0
        if not rows:
            return
        cells, keys = np.concatenate([some for some, _ in rows]), [own for _, own in rows]
        for bucket, (some, own) in enumerate(deal(cells, pa.concat_arrays(keys), count)):
            step = max(1, len(some) * _PIECE // max(1, some.nbytes + own.nbytes))
            for start in range(0, len(some), step):
                yield bucket, pack(some[start : start + step], own[start : start + step])


def deal_rows(source: Source, schema: Schema, count: int) -> Iterator[Dealt]:
    """Return the rounded rows of a share of a table in pieces of `count` buckets."""
    holder = _Holder()
    gatherer = Gatherer(schema, holder.put)
    with one_blas_thread():
        for task in source.tasks:
            for _ in task(gatherer):
                if holder.held > _HELD:
                    yield from holder.deal(count)
    yield from holder.deal(count)


def weigh_buckets(
    reduction: Reduction[Any], rows_per_unit: int, buckets: Iterable[tuple[int, Iterable[bytes]]]
) -> Weighed:
    """Return what the weighted rows of some buckets come to, given all pieces of each."""
    found: list[int] = []

    weights = partial(weigh, schema=reduction.schema, rows_per_unit=rows_per_unit)

    def opened() -> Iterator[list[tuple[Cells, pa.Array]]]:
        for bucket, pieces in buckets:
            found.append(bucket)
            yield [some for piece in pieces for some in unpack(BytesIO(piece))]

    if is_by_unit(reduction):
        size = reduction.schema.row_size
        each = [add_by_unit(list(chunks_of(rows, weights, size)), reduction) for rows in opened()]
        return found, reduction.merge(each).to_bytes()

    def tasks() -> Iterator[Task]:
        for rows in opened():
            for chunk in chunks_of(rows, weights, reduction.schema.row_size):
                yield partial(add_chunk, chunk)

    sums = encode_result(Source(tasks()), reduction)
    return found, sums


def check_whole(results: Iterable[Weighed]) -> list[bytes]:
    """Return the sums; raise if a bucket came in two parts, each of which weighed units alone."""
    held = list(results)
    numbers = [bucket for found, _ in held for bucket in found]
    if len(set(numbers)) < len(numbers):
        raise SourceError(
            "The engine did not keep the rows of a unit together, so nothing was computed or "
            "released."
        )
    return [sums for _, sums in held]
