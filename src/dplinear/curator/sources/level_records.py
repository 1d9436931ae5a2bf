"""Which levels rows hold, and whose rows they are: the records that counts of levels are made of.

A record is a level of a column (its key), the key of a unit where there are units, and in how many
rows they come together. Records are dealt into buckets by one of the keys, so that all of one key
are in one bucket. In memory they are while they are few; then they wait in temporary files, as
rounded rows do (`spool.py`), so that memory holds one bucket and not all distinct levels.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dplinear.curator.sources import spool
from dplinear.curator.sources.temporary import open_temporary
from dplinear.exact.blocks import Blocks, Reduction
from dplinear.schema import Schema
from dplinear.schema.cells import Cells
from dplinear.schema.levels import levels_of
from dplinear.schema.unit_keys import keys_of

LEVEL, UNIT, ROWS = "level", "unit", "rows"
_KEY = pa.large_binary()
_HELD = 2**28  # bytes of records in memory, beyond which they go to files
_FLUSH = 2**24  # bytes that one thread gathers before it hands them over
_PREFIX = 4  # bytes of the index of a column, before its level


def level_key(column: int, level: str) -> bytes:
    """Return the key of a level of a column."""
    return column.to_bytes(_PREFIX, "big") + level.encode()


def read_key(key: bytes) -> tuple[int, str]:
    """Return the column and the level of a key."""
    return int.from_bytes(key[:_PREFIX], "big"), key[_PREFIX:].decode()


def add_up(records: pa.Table) -> pa.Table:
    """Return records with their rows added up: one for each level, or each level of each unit."""
    names = [name for name in (UNIT, LEVEL) if name in records.column_names]
    grouped = records.group_by(names, use_threads=False).aggregate([(ROWS, "sum")])
    return grouped.rename_columns(
        [ROWS if name == f"{ROWS}_sum" else name for name in grouped.column_names]
    ).select([*names, ROWS])


class RecordSpool:
    """Takes records, from any thread; then gives them back, added up."""

    def __init__(self, by: str, held: int = _HELD) -> None:
        self._by, self._limit = by, held
        self._lock = threading.Lock()
        self._memory: list[pa.Table] = []
        self._held = 0
        self._files: list[IO[bytes]] | None = None

    def put(self, records: pa.Table) -> None:
        """Take records."""
        with self._lock:
            if self._files is None:
                self._memory.append(records)
                self._held += records.nbytes
                if self._held > self._limit:
                    self._compact()
                return
            self._write(records)

    def _compact(self) -> None:
        """Add up what is in memory; put it into files if it is still much."""
        whole = add_up(pa.concat_tables(self._memory))
        self._memory, self._held = [whole], whole.nbytes
        if self._held > self._limit // 2:
            self._files = [open_temporary(self) for _ in range(spool.BUCKETS)]
            self._memory = []
            self._write(whole)

    def _write(self, records: pa.Table) -> None:
        assert self._files is not None  # noqa: S101 - by the callers
        for file, some in zip(self._files, _deal(records, self._by), strict=True):
            if some.num_rows:
                file.write(to_bytes(some))

    def whole_keys(self) -> Iterator[pa.Table]:
        """Return all records, added up, those of one key in one table: bucket by bucket, or all."""
        if self._files is None:
            if self._memory:
                yield add_up(pa.concat_tables(self._memory))
            return
        for file in self._files:
            tables = list(_read_all(file))
            if tables:
                yield add_up(pa.concat_tables(tables))
            file.close()


def bucket_codes(records: pa.Table, by: str) -> npt.NDArray[np.int64]:
    """Return the number of the bucket that each record is in: its key alone decides."""
    column = records.column(by)
    keys = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], _KEY)
    return (spool.hashes(keys) % np.uint64(spool.BUCKETS)).astype(np.int64)


def _deal(records: pa.Table, by: str) -> list[pa.Table]:
    codes = bucket_codes(records, by)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(spool.BUCKETS + 1))
    dealt = records.take(pa.array(order))
    return [dealt.slice(a, b - a) for a, b in pairwise(ends)]


def to_bytes(records: pa.Table) -> bytes:
    """Return records as bytes, without pickle. They are private."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as writer:
        writer.write_table(records)
    return bytes(sink.getvalue())


def _read_all(file: IO[bytes]) -> Iterator[pa.Table]:
    size = file.seek(0, 2)
    file.seek(0)
    while file.tell() < size:
        yield pa.ipc.open_stream(file).read_all()


class Records:
    """The records of a part of a table. Private."""

    def __init__(self, tables: list[pa.Table]) -> None:
        self.tables = tables

    def to_bytes(self) -> bytes:
        """Return them as bytes."""
        return to_bytes(add_up(pa.concat_tables(self.tables))) if self.tables else b""


class LevelRecords(Reduction[Records]):
    """The pass that finds which levels rows hold.

    Requires: a schema that names the columns, and no unit; `unit` is one of its columns then.
    `store`, if given, takes the records as they come: on an engine's workers there is none, and
    they send what they have found.
    """

    def __init__(self, schema: Schema, unit: str | None, store: RecordSpool | None = None) -> None:
        super().__init__(schema)
        self._unit, self._store = unit, store

    def __reduce__(self) -> tuple[Any, ...]:
        return LevelRecords, (self.schema, self._unit)

    def accumulator(self) -> "_Recorder":
        """Return an empty accumulator."""
        return _Recorder(self.schema, self._unit, self._store)

    def merge(self, parts: Iterable[Records]) -> Records:
        """Return all records."""
        return Records([table for part in parts for table in part.tables])

    def read(self, data: bytes) -> Records:
        """Return what a worker sent."""
        return Records([pa.ipc.open_stream(data).read_all()] if data else [])


class _Recorder(Blocks[Records]):
    """Finds the levels of rows, and the keys of their units."""

    def __init__(self, schema: Schema, unit: str | None, store: RecordSpool | None) -> None:
        super().__init__(schema)
        self._unit, self._store = unit, store
        self._names = [name for name in schema.columns if name != unit]
        self._tables: list[pa.Table] = []
        self._held = 0

    def update_columns(self, columns: Mapping[str, Cells], rows: int) -> None:
        """Add rows whose columns are Arrow or NumPy arrays of equal length."""
        units = None if self._unit is None else keys_of(columns[self._unit])
        for index, name in enumerate(self._names):
            self._record(index, levels_of(columns[name]), units)

    def update_array(self, block: npt.NDArray[Any]) -> None:
        """Add rows of a NumPy array whose columns are the schema's, in order."""
        columns = {name: block[:, index] for index, name in enumerate(self.schema.columns)}
        self.update_columns(columns, len(block))

    def _record(self, index: int, levels: pa.Array, units: pa.Array | None) -> None:
        known = np.asarray(levels.is_valid())
        if units is not None:
            known &= np.asarray(units.is_valid())
        chosen = pa.array(known)
        encoded = levels.filter(chosen).dictionary_encode()
        keys = [level_key(index, level) for level in encoded.dictionary.to_pylist()]
        own = pa.array(keys, _KEY).take(encoded.indices)
        facts = {} if units is None else {UNIT: units.filter(chosen)}
        ones = pa.array(np.ones(len(own), np.int64))
        self._keep(add_up(pa.table({**facts, LEVEL: own, ROWS: ones})))

    def _keep(self, records: pa.Table) -> None:
        self._tables.append(records)
        self._held += records.nbytes
        if self._held > _FLUSH:
            whole = add_up(pa.concat_tables(self._tables))
            self._tables = [whole]
            self._held = 0
            if self._store is not None:
                self._store.put(whole)
                self._tables = []

    def add(self, rows: Any) -> None:
        """Refuse rounded rows, which hold no levels."""
        raise TypeError("Levels are found in columns, not in rounded rows.")

    def result(self) -> Records:
        """Return the records so far, unless they are in the store."""
        found, self._tables = self._tables, []
        if self._store is None:
            return Records(found)
        for table in found:
            self._store.put(table)
        return Records([])
