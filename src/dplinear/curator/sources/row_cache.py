"""Rounded rows that later passes need: kept by the first pass, so that a table is read once.

They are in memory up to a limit, and beyond it in a temporary file without a name
(`temporary.py`), but for tables that are in memory themselves: what was on no disk is written to
none, and is rounded anew in each pass. Rows are rounded one by one, so a pass over kept rows adds
up the same integers as a pass over the table.
"""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dplinear.curator.sources.source import Task, failure
from dplinear.curator.sources.temporary import BlockFile
from dplinear.exact.blocks import Blocks, Kept

MEMORY = 2**29  # bytes of rounded rows held between passes, beyond which they go to a file

Load = Callable[[], Kept]


class RowCache:
    """Takes blocks of rounded rows from any thread; then hands them to every pass.

    `spill`: what memory has no room for goes to a file.
    Promises: `tasks` is None where there was no room for all of them, and nothing is raised: how
    much they take depends on the number of rows, and on no value in them.
    """

    def __init__(self, memory: int = MEMORY, *, spill: bool = True) -> None:
        self._limit, self._spill, self._lock = memory, spill, threading.Lock()
        self._loads: list[Load] | None = []
        self._held = 0
        self._file: BlockFile | None = None

    def append(self, block: Kept) -> None:
        """Keep a block, in memory or in the file."""
        size = block.rows.nbytes + (0 if block.weights is None else block.weights.nbytes)
        with self._lock:
            self._held += size
            if self._held > self._limit and not self._spill:
                self._loads = None
            if self._loads is None:
                return
            if self._held > self._limit and self._file is None:
                self._file = BlockFile()
            file = self._file
        load: Load | None
        try:
            load = partial(_same, block) if file is None else _put(file, block)
        except OSError:  # such as of a disk that is full
            load = None
        with self._lock:
            if load is None:
                self._loads = self._file = None
            elif self._loads is not None:
                self._loads.append(load)

    def tasks(self) -> list[Task] | None:
        """Return what adds all blocks to an accumulator; None if they could not all be kept."""
        if self._loads is None:
            return None
        return [partial(_add_kept, load) for load in self._loads]


def _same(block: Kept) -> Kept:
    return block


def _put(file: BlockFile, block: Kept) -> Load:
    """Write a block to the file, in the order that its rows have in memory."""
    by_row = block.rows.flags.c_contiguous
    rows = file.put(block.rows if by_row else block.rows.T)
    weights = None if block.weights is None else file.put(block.weights)

    def load() -> Kept:
        found = rows()
        return Kept(found if by_row else found.T, None if weights is None else weights())

    return load


def _add_kept(load: Load, accumulator: Blocks[Any]) -> Iterator[int]:
    try:
        block = load()
    except OSError:
        raise failure("a temporary file") from None
    accumulator.add_kept(block)
    yield block.rows.shape[1]
