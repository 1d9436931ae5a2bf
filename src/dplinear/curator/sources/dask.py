"""Dask: its workers read row groups of Parquet paths, or their own partitions, and send sums.

Dask retries what a lost worker had in hand. A task's sum is a function of its rows, so a retry is
the same sum, and each task counts once.
"""

from collections.abc import Callable
from typing import Any

import dask
from dask.base import get_scheduler

from dplinear.arguments import mistyped
from dplinear.curator.blocks import Part, Reduction
from dplinear.curator.sources.arrays import check_dtype, check_shape, from_array
from dplinear.curator.sources.arrow import from_pandas
from dplinear.curator.sources.files import is_paths
from dplinear.curator.sources.pool import available_cores
from dplinear.curator.sources.source import WHERE, SourceError, check_names, failure
from dplinear.curator.sources.workers import collect, read_share, sent, shares
from dplinear.schema import Schema

_SHARES_PER_CORE = 4


class DaskReader:
    """Passes over a Dask data frame, a Dask array or Parquet paths, checked when it is made."""

    def __init__(self, data: Any, schema: Schema) -> None:  # noqa: ANN401 - checked
        self._read, self._parts = _parts(data, schema)

    def run(self, reduction: Reduction[Part]) -> Part:
        """Run a pass."""
        task = dask.delayed(self._read, pure=False)
        try:
            results = dask.compute(*(task(reduction, part) for part in self._parts))
        except SourceError as error:
            raise SourceError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - whatever an engine raises once retries are spent
            raise failure("the table on Dask", error) from None
        return collect(reduction, results)


def _parts(data: Any, schema: Schema) -> tuple[Callable[..., bytes], list[Any]]:  # noqa: ANN401
    """Return what a worker does, and the shares it does it to."""
    if is_paths(data):
        return read_share, shares(data, schema, _SHARES_PER_CORE * _cores())
    if hasattr(data, "to_delayed") and hasattr(data, "columns"):
        check_names(schema, data.columns, "the Dask data frame")
        return _read_frame, list(data[list(schema.columns)].to_delayed())
    if hasattr(data, "to_delayed") and hasattr(data, "chunks"):
        check_shape(schema, data.shape)
        check_dtype(schema, data.dtype, "the Dask array")
        return _read_array, list(data.rechunk({1: -1}).to_delayed().ravel())
    raise mistyped("data", WHERE, "a Dask data frame or a Dask array", type(data))


def _cores() -> int:
    """Return the number of cores that will work: the cluster's, if there is one."""
    client = getattr(get_scheduler(), "__self__", None)
    if client is None or not hasattr(client, "ncores"):
        return available_cores()
    return max(1, int(sum(client.ncores().values())))


def _read_frame(reduction: Reduction[Any], frame: Any) -> bytes:  # noqa: ANN401
    return sent(from_pandas(frame, reduction.schema), reduction)


def _read_array(reduction: Reduction[Any], block: Any) -> bytes:  # noqa: ANN401
    return sent(from_array(block, reduction.schema), reduction)
