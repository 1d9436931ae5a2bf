"""Dask: its workers read row groups of Parquet paths, or their own partitions, and send matrices.

Dask retries what a lost worker had in hand. A task's matrix is a function of its rows, so a retry
is the same matrix, and each task counts once.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import dask
from dask.base import get_scheduler

from dplinear.arguments import mistyped
from dplinear.curator.gram import SecondMoments
from dplinear.curator.sources.arrays import check_dtype, check_shape, from_array
from dplinear.curator.sources.arrow import from_pandas
from dplinear.curator.sources.files import is_paths
from dplinear.curator.sources.pool import available_cores, run
from dplinear.curator.sources.source import WHERE, SourceError, check_names, failure
from dplinear.curator.sources.workers import collect, read_share, shares
from dplinear.schema import Schema

_SHARES_PER_CORE = 4


def dask_pass(data: Any, schema: Schema) -> Callable[[], SecondMoments]:  # noqa: ANN401 - checked
    """Check a Dask data frame, Dask array or Parquet paths; return the pass over its rows."""
    return partial(_moments, _tasks(data, schema), schema)


def _moments(tasks: list[Any], schema: Schema) -> SecondMoments:
    try:
        results = dask.compute(*tasks)
    except SourceError as error:
        raise SourceError(str(error)) from None
    except Exception as error:  # noqa: BLE001 - whatever an engine raises once retries are spent
        raise failure("the table on Dask", error) from None
    return collect(schema, results)


def _tasks(data: Any, schema: Schema) -> list[Any]:  # noqa: ANN401
    if is_paths(data):
        dealt = shares(data, schema, _SHARES_PER_CORE * _cores())
        return [dask.delayed(read_share, pure=False)(schema, share) for share in dealt]
    if hasattr(data, "to_delayed") and hasattr(data, "columns"):
        check_names(schema, data.columns, "the Dask data frame")
        parts = data[list(schema.columns)].to_delayed()
        return [dask.delayed(_read_frame, pure=False)(schema, part) for part in parts]
    if hasattr(data, "to_delayed") and hasattr(data, "chunks"):
        check_shape(schema, data.shape)
        check_dtype(schema, data.dtype, "the Dask array")
        parts = data.rechunk({1: -1}).to_delayed().ravel()
        return [dask.delayed(_read_array, pure=False)(schema, part) for part in parts]
    raise mistyped("data", WHERE, "a Dask data frame or a Dask array", type(data))


def _cores() -> int:
    """Return the number of cores that will work: the cluster's, if there is one."""
    client = getattr(get_scheduler(), "__self__", None)
    if client is None or not hasattr(client, "ncores"):
        return available_cores()
    return max(1, int(sum(client.ncores().values())))


def _read_frame(schema: Schema, frame: Any) -> bytes:  # noqa: ANN401
    return run(from_pandas(frame, schema), schema, threads=1, progress=False).to_bytes()


def _read_array(schema: Schema, block: Any) -> bytes:  # noqa: ANN401
    return run(from_array(block, schema), schema, threads=1, progress=False).to_bytes()
