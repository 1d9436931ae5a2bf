"""Dask: its workers read row groups of Parquet paths, or their own partitions, and send sums.

Dask retries what a lost worker had in hand. A task's sum is a function of its rows, so a retry is
the same sum, and each task counts once.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, TypeVar

import dask
from dask.base import get_scheduler

from dplinear.arguments import wrong_type
from dplinear.curator.sources.arrays import check_dtype, check_shape, from_array
from dplinear.curator.sources.arrow import from_pandas
from dplinear.curator.sources.paths import is_paths
from dplinear.curator.sources.pool import available_cores
from dplinear.curator.sources.quiet import fall_silent, quiet, speak_again
from dplinear.curator.sources.source import (
    WHERE,
    Source,
    SourceError,
    Task,
    check_names,
    withheld,
)
from dplinear.curator.sources.unit_shares import Weighed, check_whole, deal_rows, weigh_buckets
from dplinear.curator.sources.workers import collect, encode_result, from_share, shares
from dplinear.exact.blocks import Part, Reduction
from dplinear.schema import Schema

_SHARES_PER_CORE = 4
_TABLE = "the table on Dask"
_CONVERTS = "pyarrow_strings_enabled"  # what Dask calls the conversion of objects to text

_Opening = Callable[[Any, Schema], Source]
_T = TypeVar("_T")


class DaskReader:
    """Passes over a Dask data frame, a Dask array or Parquet paths, checked when it is made."""

    def __init__(self, data: Any, schema: Schema, rows_per_unit: int) -> None:
        self._schema, self._rows_per_unit = schema, rows_per_unit
        self._opening, self._parts = _parts(data, schema)

    def run(self, reduction: Reduction[Part]) -> Part:
        """Run a pass."""
        plan = self._sums if self._schema.unit is None else self._weighted_sums
        try:
            with withheld(_TABLE), _quiet_everywhere():
                results = check_whole(dask.compute(*plan(reduction)))
        except SourceError as error:
            raise SourceError(str(error)) from None
        return collect(reduction, results)

    def _sums(self, reduction: Reduction[Any]) -> list[Any]:
        task = dask.delayed(_read, pure=False)
        return [task(self._opening, part, reduction) for part in self._parts]

    def _weighted_sums(self, reduction: Reduction[Any]) -> list[Any]:
        """Return tasks that add up a bucket each, of what tasks before them dealt."""
        count = max(1, min(len(self._parts), _SHARES_PER_CORE * _cores()))
        first, second = (dask.delayed(task, pure=False) for task in (_deal, _weigh))
        dealt = [first(self._opening, part, self._schema, count) for part in self._parts]
        return [
            second(reduction, self._rows_per_unit, bucket, [some[bucket] for some in dealt])
            for bucket in range(count)
        ]


def _read(opening: _Opening, part: Any, reduction: Reduction[Any]) -> Weighed:
    return [], encode_result(opening(part, reduction.schema), reduction)


def _deal(opening: _Opening, part: Any, schema: Schema, count: int) -> list[list[bytes]]:
    """Return the pieces of each bucket."""
    found: list[list[bytes]] = [[] for _ in range(count)]
    for bucket, piece in deal_rows(opening(part, schema), schema, count):
        found[bucket].append(piece)
    return found


def _weigh(
    reduction: Reduction[Any], rows_per_unit: int, bucket: int, dealt: list[list[bytes]]
) -> Weighed:
    return weigh_buckets(reduction, rows_per_unit, [(bucket, chain.from_iterable(dealt))])


def _parts(data: Any, schema: Schema) -> tuple[_Opening, list[Any]]:
    """Return what makes a source of a share of the rows, and the shares."""
    if is_paths(data):
        return from_share, shares(data, schema, _SHARES_PER_CORE * _cores())
    known = set(dir(type(data)))  # of the class: an attribute of a frame may compute, and raise
    if {"to_delayed", "columns"} <= known:
        check_names(schema, _ask_dask(lambda: list(data.columns)), "the Dask data frame")
        return from_pandas, _ask_dask(
            lambda: list(_without_conversion(data)[list(schema.read_columns)].to_delayed())
        )
    if {"to_delayed", "chunks"} <= known:
        check_shape(schema, data.shape)
        check_dtype(data.dtype, "the Dask array")
        return from_array, _ask_dask(lambda: list(data.rechunk({1: -1}).to_delayed().ravel()))
    raise wrong_type("data", WHERE, "a Dask data frame or a Dask array", type(data))


def _ask_dask(question: Callable[[], _T]) -> _T:
    """Ask Dask for something that may compute, or convert cells, and so raise because of one."""
    with withheld(_TABLE), quiet():
        return question()


def _without_conversion(data: Any) -> Any:
    """Return a frame made from pandas' without the conversion of its objects to text.

    Dask converts them, those of columns that nobody asked for too, when it is asked for its
    partitions; and one cell that is no text in UTF-8 raises.
    """
    expression: Any = getattr(data, "expr", None)
    while type(expression).__name__ == "Projection":
        expression = expression.frame
    if not type(expression).__name__.startswith("FromPandas"):
        return data
    names = expression._parameters  # noqa: SLF001 - Dask has no other way to say it
    if _CONVERTS not in names or len(names) != len(expression.operands):
        return data
    pairs = zip(names, expression.operands, strict=True)
    operands = [False if name == _CONVERTS else operand for name, operand in pairs]
    return type(data)(type(expression)(*operands))


def partitions(data: Any, schema: Schema) -> Source:
    """Return the rows of a collection, in order: its partitions come here, one after the other."""
    opening, parts = _parts(data, schema)
    return Source(_Partitions(parts, opening, schema), once=True)


class _Partitions:
    """The tasks of partitions, of which at most one is computed while another is worked on."""

    def __init__(self, parts: list[Any], opening: _Opening, schema: Schema) -> None:
        self._parts, self._opening, self._schema = parts, opening, schema

    def __iter__(self) -> Iterator[Task]:
        with (
            _quiet_everywhere(),
            ThreadPoolExecutor(1, thread_name_prefix="dplinear-dask") as pool,
        ):
            coming = pool.submit(_compute, self._parts[0]) if self._parts else None
            for following in [*self._parts[1:], None]:
                if coming is None:
                    return
                held = coming.result()
                coming = None if following is None else pool.submit(_compute, following)
                yield from self._opening(held, self._schema).tasks


def _compute(part: Any) -> Any:
    with withheld(_TABLE):
        return dask.compute(part)[0]


def _client() -> Any:
    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "ncores") else None


def _cores() -> int:
    """Return the number of cores that will work: the cluster's, if there is one."""
    client = _client()
    if client is None:
        return available_cores()
    return max(1, int(sum(client.ncores().values())))


@contextmanager
def _quiet_everywhere() -> Iterator[None]:
    """Hold back what Dask warns of and logs, here and on the workers that there are.

    A worker logs the error of a task, with its message: that of a table's own plan may quote cells.
    """
    client = _client()
    with quiet():
        _tell(client, fall_silent)
        try:
            yield
        finally:
            _tell(client, speak_again)


def _tell(client: Any, what: Callable[[], None]) -> None:
    if client is not None:
        with suppress(Exception):  # a worker that is lost says nothing more either
            client.run(what, on_error="ignore")
