"""Spark: its tasks read row groups of Parquet paths, or their own partitions, and send sums.

Spark retries what a lost worker had in hand. A task's sum is a function of its rows, so a retry is
the same sum, and each partition counts once.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from dplinear.arguments import wrong_type
from dplinear.curator.sources.arrays import STEP
from dplinear.curator.sources.arrow import add_batch
from dplinear.curator.sources.paths import is_paths
from dplinear.curator.sources.quiet import quiet
from dplinear.curator.sources.source import (
    WHERE,
    Source,
    Task,
    check_names,
    withheld,
)
from dplinear.curator.sources.workers import collect, read_batches, read_share, shares
from dplinear.exact.blocks import Part, Reduction
from dplinear.schema import Schema

_SHARES_PER_CORE = 2
_TABLE = "the table on Spark"
_RESULT = "sums binary"
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
        self._context = SparkSession.getActiveSession().sparkContext
        logs = self._context._jvm.org.apache.logging.log4j.LogManager  # noqa: SLF001 - no other way
        self._level = str(logs.getRootLogger().getLevel())
        self._context.setLogLevel("OFF")


_quiet_session = _QuietSession()


class SparkReader:
    """Passes over a Spark data frame or Parquet paths, checked when it is made."""

    def __init__(self, data: Any, schema: Schema) -> None:
        if is_paths(data):
            self._job = _read_paths(data, schema)
        elif hasattr(data, "mapInArrow"):
            self._job = _read_frame(data, schema)
        else:
            raise wrong_type("data", WHERE, "a Spark data frame", type(data))

    def run(self, reduction: Reduction[Part]) -> Part:
        """Run a pass."""
        with withheld(_TABLE), _quiet_session():
            results = self._job(reduction)
        return collect(reduction, results)


def _read_paths(data: Any, schema: Schema) -> _Job:
    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    context = session.sparkContext
    dealt = shares(data, schema, _SHARES_PER_CORE * int(context.defaultParallelism))
    # One partition a share, so that a lost worker costs one share. Plain partitions start in half
    # the time that mapInArrow takes for as little as a number each.
    partitions = context.parallelize(dealt, max(1, len(dealt)))
    return lambda reduction: list(partitions.map(partial(read_share, reduction)).collect())


def _select_columns(data: Any, schema: Schema) -> Any:
    """Return the data frame with the schema's columns alone, once they are checked."""
    check_names(schema, data.columns, "the Spark data frame")
    chosen = data.select(*("`{}`".format(name.replace("`", "``")) for name in schema.read_columns))
    with withheld("the types of the Spark data frame"):
        # As the pass will have it, and before anything is spent. A zone changes no type's nature.
        zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
        to_arrow_schema(chosen.schema, **zone)
    return chosen


def _read_frame(data: Any, schema: Schema) -> _Job:
    chosen = _select_columns(data, schema)

    def job(reduction: Reduction[Any]) -> list[bytes]:
        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            part = read_batches(reduction, batches)
            yield pa.record_batch({"sums": pa.array([part], pa.binary())})

        return [bytes(row["sums"]) for row in chosen.mapInArrow(task, _RESULT).collect()]

    return job


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
