"""Running a source's tasks: threads with one BLAS thread each, progress, and a clean way out."""

import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Generic

from threadpoolctl import ThreadpoolController

from dplinear.curator.sources.row_cache import RowCache
from dplinear.curator.sources.source import Source, failure
from dplinear.exact.blocks import Part, Reduction

PATIENCE = 1.0  # seconds of work before a progress bar appears by itself


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _OneBlasThread:
    """Holds BLAS at one thread while any pass runs; the last one out gives back what was."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._controller: Any = None
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                # Looking for BLAS libraries takes longer than a small table; NumPy's is there.
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
                self._limit.__enter__()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._limit.__exit__(None, None, None)


one_blas_thread = _OneBlasThread()


class _Work(Generic[Part]):
    """The tasks of one pass, handed out one by one, and how far each worker has come."""

    def __init__(
        self, source: Source, reduction: Reduction[Part], workers: int, cache: RowCache | None
    ) -> None:
        self._tasks = iter(source.tasks)
        self._lock = threading.Lock()
        self._done = [0] * workers
        self.stop = threading.Event()
        self.accumulators = [reduction.accumulator() for _ in range(workers)]
        for accumulator in self.accumulators:
            accumulator.keep = cache

    @property
    def rows(self) -> int:
        return sum(self._done)

    def run(self, worker: int) -> None:
        accumulator = self.accumulators[worker]
        try:
            while not self.stop.is_set():
                with self._lock:
                    task = next(self._tasks, None)
                if task is None:
                    return
                for rows in task(accumulator):
                    self._done[worker] += rows
                    if self.stop.is_set():
                        return
        except BaseException:
            self.stop.set()
            raise


def run(
    source: Source,
    reduction: Reduction[Part],
    *,
    threads: int,
    progress: bool | None,
    cache: RowCache | None = None,
) -> Part:
    """Run all tasks and add up what they added; put their rounded blocks into `cache`, if given.

    Promises: the sum over every row, or an exception and nothing else; no thread outlives the
    call, on Ctrl-C either.
    """
    if isinstance(source.tasks, list):
        threads = max(1, min(threads, len(source.tasks)))
    work = _Work(source, reduction, threads, cache)
    shown = sys.stderr.isatty() if progress is None else progress
    with one_blas_thread():
        if threads == 1 and not shown:
            work.run(0)
        else:
            with ThreadPoolExecutor(threads, thread_name_prefix="dplinear") as pool:
                try:
                    futures = _started(pool, work, threads)
                    if shown and (progress or wait(futures, PATIENCE, FIRST_EXCEPTION).not_done):
                        _show(futures, work, source.rows)
                    for future in futures:
                        future.result()
                finally:
                    work.stop.set()
    parts = [accumulator.result() for accumulator in work.accumulators]
    return parts[0] if len(parts) == 1 else reduction.merge(parts)


def _started(pool: ThreadPoolExecutor, work: _Work[Any], threads: int) -> list[Future[None]]:
    """Start workers, as many as the system has threads for; the caller's does all if it has none.

    By now the budget is spent, so that a lack of threads must not end the pass.
    """
    futures: list[Future[None]] = []
    try:
        for worker in range(threads):
            futures.append(pool.submit(work.run, worker))  # noqa: PERF401 - those before a failure
    except RuntimeError:
        if not futures:
            work.run(0)
    return futures


class LocalReader:
    """Passes over a table that this process reads itself.

    With `again`, the first pass keeps the rounded rows for the others, which then read no table.
    Where there is no room for them, it is read again in each; a stream cannot be, and ends there.
    """

    def __init__(self, source: Source, *, threads: int, progress: bool | None, again: bool) -> None:
        self._source, self._threads, self._progress = source, threads, progress
        self._again = again

    def run(self, reduction: Reduction[Part]) -> Part:
        """Run a pass."""
        cache = RowCache(spill=not self._source.in_memory) if self._again else None
        result = run(
            self._source, reduction, threads=self._threads, progress=self._progress, cache=cache
        )
        self._again = False
        tasks = None if cache is None else cache.tasks()
        if tasks is not None:
            self._source = Source(tasks, self._source.rows)
        elif cache is not None and self._source.once:
            raise failure("a temporary file")
        return result


def _show(futures: list[Future[None]], work: _Work[Any], total: int | None) -> None:
    with bar(total) as advance:
        while wait(futures, 0.1, FIRST_EXCEPTION).not_done and not work.stop.is_set():
            advance(work.rows)
        wait(futures)
        advance(work.rows)


@contextmanager
def bar(total: int | None) -> Iterator[Any]:
    """Show a bar on stderr; what this gives is to be called with the number of rows done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    # No number of rows: it may be private, and logs keep what a terminal shows.
    columns = (
        TextColumn("Reading rows"),
        BarColumn(),
        TextColumn("" if total is None else "{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=console.is_terminal) as bar:
        # A table without rows ends like any other: at the end of the bar.
        whole = None if total is None else max(total, 1)
        task = bar.add_task("", total=whole)

        def advance(rows: int) -> None:
            bar.update(task, completed=rows)

        yield advance
        bar.update(task, completed=whole)
