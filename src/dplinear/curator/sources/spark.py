"""Spark: its tasks read row groups of Parquet paths, or their own partitions, and send sums.

Spark retries what a lost worker had in hand. A task's sum is a function of its rows, so a retry is
the same sum, and each partition counts once.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from inspect import signature
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from dplinear.arguments import wrong_type
from dplinear.curator.sources.arrays import STEP
from dplinear.curator.sources.arrow import add_batch
from dplinear.curator.sources.files import Piece
from dplinear.curator.sources.paths import is_paths
from dplinear.curator.sources.quiet import quiet
from dplinear.curator.sources.source import (
    WHERE,
    Source,
    Task,
    check_names,
    withheld,
)
from dplinear.curator.sources.unit_shares import (
    Dealt,
    Weighed,
    check_whole,
    deal_rows,
    weigh_buckets,
)
from dplinear.curator.sources.workers import (
    collect,
    encode_result,
    from_batches,
    from_share,
    shares,
)
from dplinear.exact.blocks import Part, Reduction
from dplinear.schema import Schema

_SHARES_PER_CORE = 2
_TABLE = "the table on Spark"
_RESULT = "sums binary"
_DEALT = "bucket int, piece binary"
_WEIGHED = "buckets array<int>, sums binary"
_BUCKETS = 512  # more than partitions, so that they are about as large
_AT_ONCE = 64  # pieces in a batch
_BATCH = "batch binary"
_Job = Callable[[Reduction[Any]], list[bytes]]


class _QuietSession:
    """Holds back what Spark logs, here and in its driver, while any pass runs.

    Both log the messages of a table's own plan that fails, and those quote cells. A session on
    another machine (Spark Connect) logs there, and is left alone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._context: Any = None
        self._level = ""

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                with suppress(Exception):
                    self._hold()
        try:
            with quiet():
                yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside and self._level:
                    with suppress(Exception):
                        self._context.setLogLevel(self._level)

    def _hold(self) -> None:
        self._level = ""
        for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
            with suppress(ImportError):
                import_module("pyspark.logger").PySparkLogger.getLogger(name)  # made, to be held
        self._context = _session().sparkContext
        logs = self._context._jvm.org.apache.logging.log4j.LogManager  # noqa: SLF001 - no other way
        self._level = str(logs.getRootLogger().getLevel())
        self._context.setLogLevel("OFF")


def _session() -> Any:
    """Return the session of this thread, or the one that there is, where it has none of its own."""
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


_quiet_session = _QuietSession()


class SparkReader:
    """Passes over a Spark data frame or Parquet paths, checked when it is made."""

    def __init__(self, data: Any, schema: Schema, rows_per_unit: int) -> None:
        if is_paths(data):
            self._job = _read_paths(data, schema, rows_per_unit)
        elif hasattr(data, "mapInArrow"):
            chosen = _select_columns(data, schema)
            self._job = (
                _read_frame(chosen)
                if schema.unit is None
                else _weigh_frame(chosen, schema, rows_per_unit)
            )
        else:
            raise wrong_type("data", WHERE, "a Spark data frame", type(data))

    def run(self, reduction: Reduction[Part]) -> Part:
        """Run a pass."""
        with withheld(_TABLE), _quiet_session():
            results = self._job(reduction)
        return collect(reduction, results)


def _read_paths(data: Any, schema: Schema, rows_per_unit: int) -> _Job:
    session = _session()
    context = session.sparkContext
    dealt = shares(data, schema, _SHARES_PER_CORE * int(context.defaultParallelism))
    count = max(1, len(dealt))
    # One partition a share, so that a lost worker costs one share. Plain partitions start in half
    # the time that mapInArrow takes for as little as a number each.
    partitions = context.parallelize(dealt, count)
    if schema.unit is None:
        return lambda reduction: list(partitions.map(partial(_read_share, reduction)).collect())
    buckets = partitions.flatMap(partial(_deal_share, schema, count)).groupByKey(count)

    def job(reduction: Reduction[Any]) -> list[bytes]:
        def task(own: Iterator[tuple[int, Iterable[bytes]]]) -> Iterator[Weighed]:
            yield weigh_buckets(reduction, rows_per_unit, own)

        return check_whole(buckets.mapPartitions(task).collect())

    return job


def _read_share(reduction: Reduction[Any], pieces: list[Piece]) -> bytes:
    return encode_result(from_share(pieces, reduction.schema), reduction)


def _deal_share(schema: Schema, count: int, pieces: list[Piece]) -> Iterator[Dealt]:
    return deal_rows(from_share(pieces, schema), schema, count)


def _select_columns(data: Any, schema: Schema) -> Any:
    """Return the data frame with the schema's columns alone, once they are checked."""
    check_names(schema, data.columns, "the Spark data frame")
    chosen = data.select(*("`{}`".format(name.replace("`", "``")) for name in schema.read_columns))
    with withheld("the types of the Spark data frame"):
        # As the pass will have it, and before anything is spent. A zone changes no type's nature.
        zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
        to_arrow_schema(chosen.schema, **zone)
    return chosen


def _read_frame(chosen: Any) -> _Job:
    def job(reduction: Reduction[Any]) -> list[bytes]:
        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            part = encode_result(from_batches(batches), reduction)
            yield pa.record_batch({"sums": pa.array([part], pa.binary())})

        return [bytes(row["sums"]) for row in chosen.mapInArrow(task, _RESULT).collect()]

    return job


def _weigh_frame(chosen: Any, schema: Schema, rows_per_unit: int) -> _Job:
    """Shuffle rows by bucket, and weigh the buckets of each partition.

    Spark may put the rows of several buckets into one partition, and never splits those of one.
    """

    def deal(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dealt = deal_rows(from_batches(batches), schema, _BUCKETS)
        while some := list(islice(dealt, _AT_ONCE)):
            numbers, pieces = zip(*some, strict=True)
            columns = [pa.array(numbers, pa.int32()), pa.array(pieces, pa.binary())]
            yield pa.record_batch(columns, ["bucket", "piece"])

    def job(reduction: Reduction[Any]) -> list[bytes]:
        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            found, sums = weigh_buckets(reduction, rows_per_unit, _buckets(batches))
            columns = [pa.array([found], pa.list_(pa.int32())), pa.array([sums], pa.binary())]
            yield pa.record_batch(columns, ["buckets", "sums"])

        dealt = chosen.mapInArrow(deal, _DEALT).repartition("bucket")
        rows = dealt.sortWithinPartitions("bucket").mapInArrow(task, _WEIGHED).collect()
        return check_whole((row["buckets"], bytes(row["sums"])) for row in rows)

    return job


def _buckets(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Return buckets with their pieces, which stand one behind the other."""
    rows = (row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True))
    for bucket, own in groupby(rows, key=itemgetter(0)):
        yield bucket, map(itemgetter(1), own)


def partitions(data: Any, schema: Schema) -> Source:
    """Return the rows of a data frame, in order: its partitions come here, one after the other."""
    if not hasattr(data, "mapInArrow"):
        raise wrong_type("data", WHERE, "a Spark data frame", type(data))
    return Source(_Partitions(_select_columns(data, schema)), once=True)


class _Partitions:
    """The tasks of partitions, which Spark sends as Arrow, a batch at a time."""

    def __init__(self, chosen: Any) -> None:
        self._chosen = chosen

    def __iter__(self) -> Iterator[Task]:
        with withheld(_TABLE), _quiet_session():
            sent = self._chosen.mapInArrow(_write_batches, _BATCH).toLocalIterator()
            for row in sent:
                batch = pa.ipc.open_stream(bytes(row["batch"])).read_next_batch()
                for start in range(0, batch.num_rows, STEP):
                    yield partial(add_batch, batch.slice(start, STEP))


def _write_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        content = sink.getvalue().to_pybytes()
        yield pa.record_batch({"batch": pa.array([content], pa.binary())})
