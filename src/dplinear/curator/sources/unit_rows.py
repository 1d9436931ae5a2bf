"""Rows that belong to units of privacy, such as people: read once, weighed, then passed over.

A unit of m rows counts as at most k of them: each of its rows has weight min(1, k/m), and in sums a
k-th part of that, min(1/k, 1/m). So the weights of a unit add up to at most 1, and all of its rows
together move a sum by at most what one row moves it by (docs/theory/units.md). They
depend on the unit's own rows alone. A row without an id has weight 0.

Rows with survey weights s have s·min(1/k, 1/Σ s) instead. Where rows may be left out, these are
kept for their weight, which may be released: what they would weigh if none were left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dplinear.arrays import Floats, Integers
from dplinear.curator.sources.pool import run
from dplinear.curator.sources.source import Source, failure
from dplinear.curator.sources.spool import Chunk, Rows, Spool, Weighed
from dplinear.exact.blocks import Blocks, Part, Reduction
from dplinear.exact.filling import pack, unpack, words_of
from dplinear.exact.grid import Gaps
from dplinear.exact.groups import GroupParts, GroupReduction, is_by_unit
from dplinear.exact.sums import ExactSums, SumAccumulator
from dplinear.exact.weights import WHOLE, capped_weights, shared_weights
from dplinear.schema import Schema
from dplinear.schema.cells import Cells
from dplinear.schema.filling import filled_columns
from dplinear.schema.unit_keys import keys_of

_SCORES = 2**23  # numbers in the scores that are held at a time
_ALL = -1  # for the index of a group: rows are in no groups
Put = Callable[[npt.NDArray[np.float32], pa.Array], None]  # takes rounded rows with their keys


class _Gathered:
    """What a pass adds up that only puts rows aside."""

    @staticmethod
    def to_bytes() -> bytes:
        return b""


class Gatherer(Blocks[_Gathered]):
    """Rounds rows, and puts them aside with the keys of their units.

    A row without a key has weight 0, and is not kept. Behind its cells stand the gaps that were
    filled in, as bits of a few numbers. Where rows have weights of their own, or may
    be left out, one more cell says how much each weighs: below 0 if it is left out.
    """

    def __init__(self, schema: Schema, put: Put) -> None:
        super().__init__(schema)
        self._aside = put
        self._stop = 0
        self._start(0)

    def update_columns(self, columns: Mapping[str, Cells], rows: int) -> None:
        """Put rows aside whose columns are Arrow or NumPy arrays of equal length."""
        assert self.schema.unit is not None  # noqa: S101 - what it is made for
        keys = keys_of(columns[self.schema.unit])
        self._start(rows)
        super().update_columns(columns, rows)
        self._put(keys)

    def update_array(self, block: npt.NDArray[Any]) -> None:
        """Put rows of a NumPy array aside, whose columns are the schema's, the unit's last."""
        names = self.schema.read_columns
        assert self.schema.unit is not None  # noqa: S101 - as above
        keys = keys_of(block[:, names.index(self.schema.unit)])
        self._start(len(block))
        super().update_array(block)
        self._put(keys)

    def add(self, rows: Floats) -> None:
        """Take note of rounded rows."""
        self.add_present(rows, None, None)

    def add_present(
        self,
        rows: Floats,
        present: npt.NDArray[np.bool_] | None,
        weights: Integers | None,
        gaps: Gaps | None = None,
    ) -> None:
        """Take note of rounded rows, of their weights and gaps, and of which are left out."""
        start = self._stop
        self._stop = start + rows.shape[1]
        room = self._rounded[start : self._stop]
        first, last = gap_columns(self.schema)
        room[:, :first] = rows.T
        room[:, first:last] = 0 if gaps is None else pack(gaps)
        if keeps_weights(self.schema):
            room[:, -1] = WHOLE if weights is None else weights  # exact: up to 2^24, of 12 bits
            if present is not None:
                room[~present, -1] *= -1
            if self.schema.by:
                room[rows[-1] < 0, -1] = 0  # in no group: a weight of 0, and so none is put aside

    def _start(self, rows: int) -> None:
        """Make room for so many rows."""
        self._rounded = np.empty((rows, width_of(self.schema)), np.float32)
        self._stop = 0

    def _put(self, keys: pa.Array) -> None:
        rows, known = self._rounded, np.asarray(keys.is_valid())
        self._start(0)
        if keeps_weights(self.schema):
            known = known & (rows[:, -1] != 0)
        if known.all():
            self._aside(rows, keys)
        elif known.any():
            self._aside(rows[known], keys.filter(pa.array(known)))

    def result(self) -> _Gathered:
        """Return nothing: the rows are put aside."""
        return _Gathered()


class _Gathering(Reduction[_Gathered]):
    """The pass that puts rows into a spool."""

    def __init__(self, schema: Schema, spool: Spool) -> None:
        super().__init__(schema)
        self._spool = spool

    def accumulator(self) -> Gatherer:
        return Gatherer(self.schema, self._spool.put)

    def merge(self, parts: Iterable[_Gathered]) -> _Gathered:
        return _Gathered()

    def read(self, data: bytes) -> _Gathered:
        return _Gathered()


def keeps_weights(schema: Schema) -> bool:
    """Return whether rows are put aside with weights of their own, in one more cell.

    They have such, or may be left out, or weigh nothing, as rows do that are in no group.
    """
    return schema.weight is not None or bool(schema.needed_features or schema.by)


def width_of(schema: Schema) -> int:
    """Return how many numbers a row has that is put aside: its cells, its gaps, its weight."""
    return gap_columns(schema)[1] + keeps_weights(schema)


def gap_columns(schema: Schema) -> tuple[int, int]:
    """Return from where to where the gaps of a row stand that is put aside."""
    return schema.row_size, schema.row_size + words_of(schema)


def weigh(rows: Rows, *, schema: Schema, rows_per_unit: int) -> Weighed:
    """Return the weights of rows, given with the keys of units of which all rows are there.

    Those of rows that are left out are below 0: of as much as they would weigh if none were.
    Keys are equal where their bytes are: a hash only finds those to compare.
    """
    keys = pa.concat_arrays([own for _, own in rows])
    encoded = keys.dictionary_encode()
    codes, units = np.asarray(encoded.indices), len(encoded.dictionary)
    counts = np.bincount(codes, minlength=len(encoded.dictionary))
    if not keeps_weights(schema):
        weights = shared_weights(np.maximum(counts, 1), rows_per_unit)
        return Weighed(weights.astype(np.int32)[codes], codes)  # at most 2^24
    signed = np.concatenate([cells[:, -1] for cells, _ in rows]).astype(np.int64)
    every, _ = capped_weights(np.abs(signed), codes, units, rows_per_unit)
    left = np.where(signed < 0, every, 0)
    kept, totals = capped_weights(np.maximum(signed, 0), codes, units, rows_per_unit)
    told = totals.astype(np.int32) if schema.weight is not None else None
    return Weighed((kept - left).astype(np.int32), codes, told)


class UnitReader:
    """Passes over the weighted rows of a table that this process reads itself, once."""

    def __init__(
        self,
        source: Source,
        schema: Schema,
        rows_per_unit: int,
        *,
        threads: int,
        progress: bool | None,
    ) -> None:
        self._source, self._schema, self._rows_per_unit = source, schema, rows_per_unit
        self._threads, self._progress = threads, progress
        self._chunks: list[Chunk] | None = None

    def run(self, reduction: Reduction[Part]) -> Part:
        """Run a pass; the first one reads the table."""
        if self._chunks is None:
            self._chunks = self._gather(Spool(width_of(self._schema)))
            self._source = Source([])
        if is_by_unit(reduction):
            return cast("Part", add_by_unit(self._chunks, reduction))
        tasks = [partial(add_chunk, chunk) for chunk in self._chunks]
        return run(Source(tasks), reduction, threads=self._threads, progress=False)

    def _gather(self, spool: Spool) -> list[Chunk]:
        """Read the table, and weigh its rows."""
        gathering = _Gathering(self._schema, spool)
        try:
            run(self._source, gathering, threads=self._threads, progress=self._progress)
            rows = self._rows_per_unit
            return spool.weighed(partial(weigh, schema=self._schema, rows_per_unit=rows))
        except OSError:  # such as of a disk that is full
            raise failure("a temporary file") from None


def add_chunk(chunk: Chunk, accumulator: Blocks[Any]) -> Iterator[int]:
    """Add weighted rows."""
    cells = load_cells(chunk)
    order = np.argsort(chunk.weights, kind="stable")  # rows of one weight are then a run
    weights = chunk.weights[order].astype(np.int64)
    schema = accumulator.schema
    rows = np.ascontiguousarray(cells[order, : schema.row_size].T, np.float64)
    left = int(np.searchsorted(weights, 0))
    if left:
        accumulator.leave(rows[:, :left], -weights[:left])
    first, last = gap_columns(schema)
    gaps = unpack(cells[order[left:], first:last], len(filled_columns(schema)))
    if gaps is not None:
        accumulator.fill(rows[:, left:], gaps, weights[left:])
    totals = None if chunk.totals is None else chunk.totals[order[left:]].astype(np.int64)
    accumulator.add_weighted(rows[:, left:], weights[left:], totals)
    yield len(order)


def add_by_unit(chunks: Sequence[Chunk], reduction: Reduction[Any]) -> Any:
    """Return the sums over units, given all rows of each, in any order.

    Requires: sums over units; or groups, of which some ask for such, and others for sums over rows.
    """
    if not isinstance(reduction, GroupReduction):
        return _add_scores(chunks, {_ALL: reduction})[_ALL]
    accumulator = reduction.of_rows().accumulator()
    for chunk in chunks:
        for _ in add_chunk(chunk, accumulator):
            pass
    found = dict(enumerate(accumulator.result().parts))
    found |= _add_scores(chunks, reduction.of_units())
    return GroupParts([found[index] for index in range(len(found))])


def _add_scores(chunks: Sequence[Chunk], asked: Mapping[int, Any]) -> dict[int, ExactSums]:
    """Return the sums over units of each group that asks for some, by its index.

    Scores wait until all rows of their units have come: those of so many units at a time as take
    little memory.
    """
    accumulators = {group: reduction.accumulator() for group, reduction in asked.items()}
    numbers = sum(reduction.schema.dimension for reduction in asked.values())
    for _, own in groupby(chunks, lambda chunk: chunk.bucket):
        bucket = list(own)
        units = 1 + max(int(chunk.owners.max(initial=-1)) for chunk in bucket)
        step = max(1, _SCORES // numbers)
        for first in range(0, units, step):
            _add_units(bucket, range(first, min(first + step, units)), accumulators)
    return {group: accumulator.result() for group, accumulator in accumulators.items()}


def _add_units(
    chunks: Sequence[Chunk], units: range, accumulators: Mapping[int, SumAccumulator]
) -> None:
    """Add the scores of some units to all sums, a unit's rows of each group by themselves."""
    totals = {group: each.unit_totals(len(units)) for group, each in accumulators.items()}
    held = np.zeros(len(units), np.int64)
    for chunk in chunks:
        own = (chunk.owners >= units.start) & (chunk.owners < units.stop)
        chosen = np.flatnonzero(own & (chunk.weights > 0))  # the others are left out
        if not len(chosen):
            continue
        cells = load_cells(chunk)[chosen]
        owners = chunk.owners[chosen].astype(np.intp) - units.start
        weights = chunk.weights[chosen].astype(np.int64)
        np.add.at(held, owners, weights)
        for group, accumulator in accumulators.items():
            size = accumulator.schema.dimension
            some = slice(None) if group == _ALL else np.flatnonzero(cells[:, size] == group)
            rows = np.ascontiguousarray(cells[some, :size].T, np.float64)
            for total in totals[group]:
                total.add(rows, weights[some], owners[some])
    if (held > WHOLE).any():
        raise ArithmeticError("The weights of a unit add up to more than 1 over all groups.")
    for group, accumulator in accumulators.items():
        accumulator.add_units(totals[group])


def load_cells(chunk: Chunk) -> npt.NDArray[np.float32]:
    """Return the rounded rows of a chunk."""
    try:
        return chunk.load()
    except OSError:
        raise failure("a temporary file") from None
