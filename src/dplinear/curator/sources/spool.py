"""Rounded rows that wait for their weights: in memory while they are few, then in temporary files.

All rows of a unit must be seen before any of them has a weight. So rows are read and rounded once,
kept with the key of their unit, and dealt into buckets by it, so that the rows of a unit are in one
bucket. Buckets are weighed one after the other: memory holds the ids of one bucket, never all.

Temporary files are those of `temporary.py`.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dplinear.curator.sources.temporary import BlockFile, open_temporary

Cells = npt.NDArray[np.float32]  # rounded rows, shape (rows, dimension): integers up to 2^24
Weights = npt.NDArray[np.int32]  # of 1/2^24
Owners = npt.NDArray[np.int32]  # a number for each row, the same for all rows of a unit

BUCKETS = 128
_HELD = 3 * 2**28  # bytes of rows and keys in memory, beyond which they go to files
_CHUNK_CELLS = 2**20  # in a chunk of weighted rows, which one thread works on
_MOST_ROWS = 2**15
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Weighed:
    """The weights of rows, below 0 where one is left out, and whose rows they are.

    `totals` are those of each row's unit, if asked for.
    """

    weights: Weights
    owners: Owners
    totals: Weights | None = None


Rows = list[tuple[Cells, pa.Array]]  # with the keys of their units
Weigh = Callable[[Rows], Weighed]


@dataclass(frozen=True, eq=False)
class Chunk:
    """Weighted rows, in memory or in a file. Owners are numbered over all chunks of a bucket."""

    load: Callable[[], Cells]
    weights: Weights
    owners: Owners
    totals: Weights | None = None
    bucket: int = 0


class Spool:
    """Takes rows with the keys of their units, from any thread; then gives them with weights."""

    def __init__(self, dimension: int, held: int = _HELD) -> None:
        self._dimension, self._limit = dimension, held
        self._lock = threading.Lock()
        self._memory: list[tuple[Cells, pa.Array]] = []
        self._held = 0
        self._files: list[IO[bytes]] | None = None

    def put(self, cells: Cells, keys: pa.Array) -> None:
        """Take rows, and a key for each."""
        with self._lock:
            if self._files is not None:
                self._write(cells, keys)
                return
            self._memory.append((cells, keys))
            self._held += cells.nbytes + keys.nbytes
            if self._held > self._limit:
                self._spill()

    def _spill(self) -> None:
        self._files = [open_temporary(self) for _ in range(BUCKETS)]
        for cells, keys in self._memory:
            self._write(cells, keys)
        self._memory.clear()

    def _write(self, cells: Cells, keys: pa.Array) -> None:
        assert self._files is not None  # noqa: S101 - by the callers
        for bucket, (some, own) in enumerate(deal(cells, keys, BUCKETS)):
            if len(some):
                self._files[bucket].write(pack(some, own))

    def weighed(self, weigh: Weigh) -> list[Chunk]:
        """Return all rows with their weights; the spool is empty then."""
        if self._files is None:
            rows, self._memory = self._memory, []
            return list(chunks_of(rows, weigh, self._dimension))
        files, self._files = self._files, []
        store = BlockFile()
        found: list[Chunk] = []
        for bucket, file in enumerate(files):
            own = chunks_of(unpack(file), weigh, self._dimension, bucket)
            found += [replace(chunk, load=store.put(chunk.load())) for chunk in own]
            file.close()
        return found


def chunks_of(rows: Rows, weigh: Weigh, dimension: int, bucket: int = 0) -> Iterator[Chunk]:
    """Return all rows of some units with their weights, a chunk at a time, where they lie."""
    if not rows:
        return
    found = weigh(rows)
    step = max(1, min(_MOST_ROWS, _CHUNK_CELLS // dimension))
    start = 0
    for cells in _resized([some for some, _ in rows], step):
        stop = start + len(cells)
        own = (found.weights[start:stop], found.owners[start:stop])
        totals = None if found.totals is None else found.totals[start:stop]
        yield Chunk(partial(_same, cells), *own, totals, bucket)
        start = stop


def _resized(blocks: Iterable[Cells], most: int) -> Iterator[Cells]:
    """Return the same rows, in order, in blocks of at most `most`: joined, or cut."""
    small: list[Cells] = []
    for block in blocks:
        is_large = len(block) > most // 2
        if small and (is_large or sum(map(len, small)) + len(block) > most):
            yield np.concatenate(small)
            small = []
        if is_large:
            yield from (block[start : start + most] for start in range(0, len(block), most))
        else:
            small.append(block)
    if small:
        yield np.concatenate(small)


def _same(cells: Cells) -> Cells:
    return cells


def deal(cells: Cells, keys: pa.Array, count: int) -> list[tuple[Cells, pa.Array]]:
    """Return rows dealt into buckets, such that equal keys come into the same one."""
    codes = hashes(keys) % np.uint64(count)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(count + 1, dtype=np.uint64))
    sorted_cells, sorted_keys = cells[order], keys.take(pa.array(order))
    return [(sorted_cells[a:b], sorted_keys[a:b]) for a, b in pairwise(ends)]


def hashes(keys: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a number for each key, equal for equal keys. Others may share it: nothing rests on it.

    A polynomial of the bytes, modulo 2^64.
    """
    keys = pa.concat_arrays([keys])  # its own buffers, from the beginning
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, np.int64, len(keys) + 1)
    found = np.zeros(len(keys), np.uint64)
    if data is None or not len(keys):
        return found
    letters = np.frombuffer(data, np.uint8)[: ends[-1]].astype(np.uint64)
    lengths = np.diff(ends)
    positions = np.arange(len(letters)) - np.repeat(ends[:-1], lengths)
    powers = np.cumprod(np.full(int(lengths.max(initial=1)), _MULTIPLIER))
    filled = np.flatnonzero(lengths)
    terms = (letters + np.uint64(1)) * powers[positions]
    found[filled] = np.add.reduceat(terms, ends[:-1][filled])
    found ^= found >> np.uint64(32)
    return found


def pack(cells: Cells, keys: pa.Array) -> bytes:
    """Return rows and keys as bytes, without pickle. They are private."""
    flat = pa.array(np.ascontiguousarray(cells).ravel(), pa.float32())
    rows = pa.FixedSizeListArray.from_arrays(flat, cells.shape[1])
    batch = pa.record_batch({"key": pa.concat_arrays([keys]), "cells": rows})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpack(file: Any) -> list[tuple[Cells, pa.Array]]:
    """Return all that `pack` made of rows, one behind the other in a file."""
    found: list[tuple[Cells, pa.Array]] = []
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    while file.tell() < size:
        for batch in pa.ipc.open_stream(file):
            cells = batch.column("cells").flatten().to_numpy()
            found.append((cells.reshape(batch.num_rows, -1), batch.column("key")))
    return found
