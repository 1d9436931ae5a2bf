"""A private table as counts of levels: how many units, or rows, hold each level of its columns.

A unit of privacy counts once for each of its k most frequent levels of a column, and for no others:
which ones is decided by its own rows alone, ties by the bytes of the levels. So it is 1 in at most
k counts of a column, however many rows it has, and 0 elsewhere (docs/theory/levels.md).
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.curator.sources.level_records import (
    LEVEL,
    ROWS,
    UNIT,
    LevelRecords,
    RecordSpool,
    bucket_codes,
    read_key,
)
from dplinear.curator.sources.source import Reader, failure
from dplinear.mechanisms.levels import LevelCounts
from dplinear.schema import Schema

_COLUMN, _BUCKET = "column", "bucket"


class CountedLevels:
    """The levels of a table's columns, read in one pass when they are asked for.

    Requires: a reader of a schema that names the columns, and no unit; `unit`, the one among them
    that says whose a row is, if there is one, and how many levels of a column each counts for.
    """

    def __init__(
        self, reader: Reader, schema: Schema, unit: str | None, levels_per_unit: int
    ) -> None:
        self._reader, self._schema = reader, schema
        self._unit, self._most = unit, levels_per_unit

    def buckets(self) -> Iterator[LevelCounts]:
        """Return all levels with their counts, a bucket at a time, each in the order of bytes."""
        try:
            for counts in self._counts().whole_keys():
                yield from _dealt(counts)
        except OSError:  # such as of a disk that is full
            raise failure("a temporary file") from None

    def _counts(self) -> RecordSpool:
        """Read the table; return how many units, or rows, hold each level."""
        store = RecordSpool(LEVEL if self._unit is None else UNIT)
        found = self._reader.run(LevelRecords(self._schema, self._unit, store))
        for table in found.tables:
            store.put(table)
        if self._unit is None:
            return store
        counts = RecordSpool(LEVEL)
        for some in store.whole_keys():
            counts.put(count_units(some, self._most))
        return counts


def count_units(records: pa.Table, most: int) -> pa.Table:
    """Return how many units hold each level, of the `most` most frequent ones of each unit.

    Requires: all records of some units, added up. Promises: a unit is 1 in at most `most` counts of
    a column. That is checked on what is counted.
    """
    columns = pc.binary_slice(records.column(LEVEL), 0, 4)
    keys = [(UNIT, "ascending"), (_COLUMN, "ascending"), (ROWS, "descending"), (LEVEL, "ascending")]
    ordered = records.append_column(_COLUMN, columns).sort_by(keys)
    rank, group = _ranks(ordered)
    chosen = rank < most
    if chosen.any() and int(np.bincount(group[chosen]).max()) > most:
        raise AssertionError("A unit counts for more levels than it may.")
    levels = ordered.column(LEVEL).filter(pa.array(chosen))
    ones = pa.array(np.ones(len(levels), np.int64))
    return pa.table({LEVEL: levels, ROWS: ones})


def _ranks(ordered: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return each record's rank among those of its unit and column, and the number of the two.

    Units are equal where the bytes of their keys are.
    """
    codes = [
        np.asarray(ordered.column(name).combine_chunks().dictionary_encode().indices)
        for name in (UNIT, _COLUMN)
    ]
    count = len(codes[0])
    first = np.ones(count, bool)
    first[1:] = (np.diff(codes[0]) != 0) | (np.diff(codes[1]) != 0)
    group = np.cumsum(first) - 1
    starts = np.flatnonzero(first)
    return np.arange(count) - starts[group] if count else np.arange(0), group


def _dealt(counts: pa.Table) -> Iterator[LevelCounts]:
    """Return counts bucket by bucket, so that noise is drawn alike whether they were in files."""
    codes = bucket_codes(counts, LEVEL)
    keyed = counts.append_column(_BUCKET, pa.array(codes))
    ordered = keyed.sort_by([(_BUCKET, "ascending"), (LEVEL, "ascending")])
    pairs = [read_key(key) for key in ordered.column(LEVEL).to_pylist()]
    columns = np.array([column for column, _ in pairs], np.int64)
    rows = ordered.column(ROWS).to_numpy().astype(np.int64)
    ends = np.flatnonzero(np.diff(np.sort(codes))) + 1
    for start, stop in pairwise([0, *ends.tolist(), len(pairs)]):
        levels = [level for _, level in pairs[start:stop]]
        yield LevelCounts(columns[start:stop], levels, rows[start:stop])
