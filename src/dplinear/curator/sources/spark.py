"""Spark: its tasks read row groups of Parquet paths, or their own partitions, and send matrices.

Spark retries what a lost worker had in hand. A task's matrix is a function of its rows, so a retry
is the same matrix, and each partition counts once.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from dplinear.arguments import mistyped
from dplinear.curator.gram import SecondMoments
from dplinear.curator.sources.files import is_paths
from dplinear.curator.sources.source import WHERE, check_names, check_types, failure
from dplinear.curator.sources.workers import collect, read_batches, read_share, shares
from dplinear.schema import Schema

_SHARES_PER_CORE = 2
_RESULT = "moments binary"


def spark_pass(data: Any, schema: Schema) -> Callable[[], SecondMoments]:  # noqa: ANN401 - checked
    """Check a Spark data frame or Parquet paths; return the pass over its rows."""
    if is_paths(data):
        job = _read_paths(data, schema)
    elif hasattr(data, "mapInArrow"):
        job = _read_frame(data, schema)
    else:
        raise mistyped("data", WHERE, "a Spark data frame", type(data))
    return partial(_moments, job, schema)


def _moments(job: Callable[[], list[bytes]], schema: Schema) -> SecondMoments:
    try:
        results = job()
    except Exception as error:  # noqa: BLE001 - whatever an engine raises once retries are spent
        raise failure("the table on Spark", error) from None
    return collect(schema, results)


def _read_paths(data: Any, schema: Schema) -> Callable[[], list[bytes]]:  # noqa: ANN401
    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    context = session.sparkContext
    dealt = shares(data, schema, _SHARES_PER_CORE * int(context.defaultParallelism))
    # One partition a share, so that a lost worker costs one share. Plain partitions start in half
    # the time that mapInArrow takes for as little as a number each.
    partitions = context.parallelize(dealt, max(1, len(dealt)))
    return partial(_collected, partitions.map(partial(read_share, schema)))


def _collected(partitions: Any) -> list[bytes]:  # noqa: ANN401 - an RDD
    return list(partitions.collect())


def _read_frame(data: Any, schema: Schema) -> Callable[[], list[bytes]]:  # noqa: ANN401
    check_names(schema, data.columns, "the Spark data frame")
    chosen = data.select(*("`{}`".format(name.replace("`", "``")) for name in schema.columns))
    check_types(schema, to_arrow_schema(chosen.schema), "the Spark data frame")

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matrix = read_batches(schema, batches)
        yield pa.record_batch({"moments": pa.array([matrix], pa.binary())})

    mapped = chosen.mapInArrow(task, _RESULT)
    return lambda: [bytes(row["moments"]) for row in mapped.collect()]
