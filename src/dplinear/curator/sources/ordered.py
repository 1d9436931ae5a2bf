"""Rows in the table's order: read by one thread, worked on by several, handed over in order.

The thread that asks for rows reads them. It cuts them into blocks of a size that the schema alone
decides, so that no source shows in what becomes of them, and takes back the oldest block before it
reads on too far: memory holds a few blocks, however large a table or its parts are.
"""

import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Generic, TypeVar

import numpy as np

from dplinear.arguments import integer, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.curator.sources import local_source
from dplinear.curator.sources.pool import PATIENCE, available_cores, bar, one_blas_thread
from dplinear.curator.sources.source import Source, SourceError
from dplinear.curator.sources.warm import warm
from dplinear.exact.blocks import Blocks
from dplinear.schema import Schema
from dplinear.schema.libraries import library_of, unwrap

_VALUES = 2**18  # in a block: 2 MiB
_MOST_ROWS = 2**15

_Made = TypeVar("_Made")


class _Nothing:
    """What a pass adds up that adds nothing up."""

    @staticmethod
    def to_bytes() -> bytes:
        return b""


class _Cutter(Blocks[_Nothing]):
    """Cuts rounded rows into blocks of one size; the last may be shorter."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self._most = max(1, min(_MOST_ROWS, _VALUES // schema.dimension))
        self._block, self._filled = self._room(), 0
        self.ready: deque[Floats] = deque()

    def _room(self) -> Floats:
        return np.empty((self.schema.dimension, self._most))

    def add(self, rows: Floats) -> None:
        start = 0
        while start < rows.shape[1]:
            count = min(rows.shape[1] - start, self._most - self._filled)
            stop = self._filled + count
            self._block[:, self._filled : stop] = rows[:, start : start + count]
            start, self._filled = start + count, stop
            if self._filled == self._most:
                self.ready.append(self._block)
                self._block, self._filled = self._room(), 0

    def add_present(self, rows: Floats, present: Any, weights: Any, gaps: Any = None) -> None:
        """Hand over every row: released rows are as many as the table's."""
        self.add(rows)

    def finish(self) -> None:
        """Hand over the rows of a block that no more rows will fill."""
        if self._filled:
            self.ready.append(np.ascontiguousarray(self._block[:, : self._filled]))
            self._filled = 0

    def result(self) -> _Nothing:
        return _Nothing()


class OrderedRows:
    """A table whose columns and types are checked, to be read once, in order."""

    def __init__(
        self, source: Source, schema: Schema, *, threads: int, progress: bool | None
    ) -> None:
        self._source, self._schema = source, schema
        self._threads, self._progress = threads, progress

    @contextmanager
    def through(self, work: Callable[[Floats], _Made]) -> Iterator[Iterator[_Made]]:
        """Give what `work` makes of each block of rows, in order, one after the other.

        Requires: `work` may be called from several threads at once, and keeps nothing.
        Promises: every row once, or `SourceError` and none of the source's own words; no thread
        outlives the context, however it ends.
        """
        with closing(self._make(work)) as made:
            yield made

    def _make(self, work: Callable[[Floats], _Made]) -> Generator[_Made, None, None]:
        shown = sys.stderr.isatty() if self._progress is None else self._progress
        with ExitStack() as stack:
            stack.enter_context(one_blas_thread())
            line = _Line(work, self._threads, stack)
            watch = _Watch(stack, self._source.rows, shown=shown, at_once=bool(self._progress))
            blocks = self._blocks()
            while True:
                try:
                    block = next(blocks, None)
                except SourceError as error:
                    error.__context__ = None  # a reader's own words may quote rows
                    raise
                if block is None:
                    break
                line.put(block)
                while line.full:
                    yield line.take()
                watch.advance(block.shape[1])
            while line.waiting:
                yield line.take()

    def _blocks(self) -> Iterator[Floats]:
        cutter = _Cutter(self._schema)
        for task in self._source.tasks:
            for _ in task(cutter):
                while cutter.ready:
                    yield cutter.ready.popleft()
        cutter.finish()
        while cutter.ready:
            yield cutter.ready.popleft()


class _Line(Generic[_Made]):
    """Blocks being worked on, oldest first. With one thread, they are worked on as they come."""

    def __init__(self, work: Callable[[Floats], _Made], threads: int, stack: ExitStack) -> None:
        self._work, self._most = work, 2 * threads
        self.waiting: deque[Future[_Made]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        if threads > 1:
            self._pool = ThreadPoolExecutor(threads, thread_name_prefix="dplinear")
            stack.callback(self._pool.shutdown, wait=True, cancel_futures=True)

    def put(self, block: Floats) -> None:
        if self._pool is not None:
            self.waiting.append(self._pool.submit(self._work, block))
            return
        done: Future[_Made] = Future()
        done.set_result(self._work(block))
        self.waiting.append(done)

    @property
    def full(self) -> bool:
        return len(self.waiting) > (self._most if self._pool is not None else 0)

    def take(self) -> _Made:
        return self.waiting.popleft().result()


class _Watch:
    """A progress bar, once the work turns out to be long."""

    def __init__(self, stack: ExitStack, total: int | None, *, shown: bool, at_once: bool) -> None:
        self._stack, self._total, self._shown = stack, total, shown
        self._start = time.monotonic() - (PATIENCE if at_once else 0.0)
        self._advance: Callable[[int], None] | None = None
        self._rows = 0

    def advance(self, rows: int) -> None:
        self._rows += rows
        if self._advance is None and self._shown and time.monotonic() >= self._start + PATIENCE:
            self._advance = self._stack.enter_context(bar(self._total))
        if self._advance is not None:
            self._advance(self._rows)


def open_rows(
    data: Any,
    schema: Schema,
    where: str,
    *,
    threads: int | None = None,
    engine: str | None = None,
    progress: bool | None = None,
) -> OrderedRows:
    """Check all that can be checked before a row is read."""
    refuse_units(schema, where)
    if engine is not None:
        hint = "leave it out; a Dask or Spark collection is taken as it is, partition by partition."
        rule = "left out where rows are released: this process writes the file itself"
        raise rejection("engine", where, rule, engine, hint)
    workers = available_cores()
    if threads is not None:
        workers = integer(threads, "threads", where, low=1, high=1024)
    if progress is not None and not isinstance(progress, bool):
        raise wrong_type("progress", where, "True, False or None", progress)
    schema.check_levels()
    try:
        source = _source(data, schema)
    except SourceError as error:
        error.__context__ = None
        raise
    warm(progress=progress)  # released columns are made by PyArrow, whatever the table is
    return OrderedRows(source, schema, threads=workers, progress=progress)


def refuse_units(schema: Schema, where: str) -> None:
    """Raise for rows that carry weights; how many a unit has is seen, whatever their noise."""
    if schema.unit is not None:
        rule = (
            "left out where rows are released: one for each of the table's tells how many rows a "
            "unit has"
        )
        hint = "release_moments, release_model and release_mean protect all rows of a unit."
        raise rejection("unit", where, rule, schema.unit, hint)
    if schema.weight is not None:
        rule = "free of survey weights where rows are released: each of them stands for itself"
        raise rejection("schema", where, rule, schema.weight.column)


def _source(data: Any, schema: Schema) -> Source:
    data = unwrap(data)
    library = library_of(data)
    if library == "dask":
        from dplinear.curator.sources.dask import partitions

        return partitions(data, schema)
    if library == "pyspark":
        from dplinear.curator.sources.spark import partitions

        return partitions(data, schema)
    return local_source(data, schema)
