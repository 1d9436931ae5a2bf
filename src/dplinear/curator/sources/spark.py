"""Spark: its tasks read row groups of Parquet paths, or their own partitions, and send matrices.

Spark retries what a lost worker had in hand. A task's matrix is a function of its rows, so a retry
is the same matrix, and each partition counts once.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from dplinear.arguments import mistyped
from dplinear.curator.gram import SecondMoments
from dplinear.curator.schema import Schema
from dplinear.curator.sources.files import is_paths
from dplinear.curator.sources.source import WHERE, check_names, check_types, failure
from dplinear.curator.sources.workers import collect, read_batches, read_share, shares

_SHARES_PER_CORE = 4
_RESULT = "moments binary"


def spark_moments(data: Any, schema: Schema) -> SecondMoments:  # noqa: ANN401 - checked here
    """Return the exact second moments of a Spark data frame or of Parquet paths."""
    if is_paths(data):
        frame = _read_paths(data, schema)
    elif hasattr(data, "mapInArrow"):
        frame = _read_frame(data, schema)
    else:
        raise mistyped("data", WHERE, "a Spark data frame", type(data))
    try:
        results = frame.collect()
    except Exception as error:  # noqa: BLE001 - whatever an engine raises once retries are spent
        raise failure("the table on Spark", error) from None
    return collect(schema, (row["moments"] for row in results))


def _read_paths(data: Any, schema: Schema) -> Any:  # noqa: ANN401
    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    cores = int(session.sparkContext.defaultParallelism)
    dealt = shares(data, schema, _SHARES_PER_CORE * cores)

    def job(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield _result(read_share(schema, dealt[index]))

    # One partition a share, so that a lost worker costs one share.
    return session.range(0, len(dealt), 1, max(1, len(dealt))).mapInArrow(job, _RESULT)


def _read_frame(data: Any, schema: Schema) -> Any:  # noqa: ANN401
    check_names(schema, data.columns, "the Spark data frame")
    chosen = data.select(*("`{}`".format(name.replace("`", "``")) for name in schema.columns))
    check_types(schema, to_arrow_schema(chosen.schema), "the Spark data frame")

    def job(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _result(read_batches(schema, batches))

    return chosen.mapInArrow(job, _RESULT)


def _result(matrix: bytes) -> pa.RecordBatch:
    return pa.record_batch({"moments": pa.array([matrix], pa.binary())})
