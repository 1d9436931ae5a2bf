"""Dask: its workers read row groups of Parquet paths, or their own partitions, and send sums.

Dask retries what a lost worker had in hand. A task's sum is a function of its rows, so a retry is
the same sum, and each task counts once.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
from dask.base import get_scheduler

from dplinear.arguments import mistyped
from dplinear.curator.blocks import Part, Reduction
from dplinear.curator.sources.arrays import check_dtype, check_shape, from_array
from dplinear.curator.sources.arrow import from_pandas
from dplinear.curator.sources.paths import is_paths
from dplinear.curator.sources.pool import available_cores
from dplinear.curator.sources.source import (
    WHERE,
    Source,
    SourceError,
    Task,
    check_names,
    failure,
)
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


def partitions(data: Any, schema: Schema) -> Source:  # noqa: ANN401 - checked
    """Return the rows of a collection, in order: its partitions come here, one after the other."""
    read, parts = _parts(data, schema)
    opening = from_pandas if read is _read_frame else from_array
    return Source(_Partitions(parts, opening, schema), once=True)


class _Partitions:
    """The tasks of partitions, of which at most one is computed while another is worked on."""

    def __init__(self, parts: list[Any], opening: Callable[..., Source], schema: Schema) -> None:
        self._parts, self._opening, self._schema = parts, opening, schema

    def __iter__(self) -> Iterator[Task]:
        with ThreadPoolExecutor(1, thread_name_prefix="dplinear-dask") as pool:
            coming = pool.submit(_computed, self._parts[0]) if self._parts else None
            for following in [*self._parts[1:], None]:
                if coming is None:
                    return
                held = coming.result()
                coming = None if following is None else pool.submit(_computed, following)
                yield from self._opening(held, self._schema).tasks


def _computed(part: Any) -> Any:  # noqa: ANN401 - a partition
    try:
        return dask.compute(part)[0]
    except Exception as error:  # noqa: BLE001 - whatever an engine raises once retries are spent
        raise failure("the table on Dask", error) from None


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
