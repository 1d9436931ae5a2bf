"""From the rows of any table to blocks of rounded integer rows, and what may be done with them.

A `Reduction` says what to add up over a table; it goes to every thread or worker, each of which
fills an accumulator of its own. What they send back adds up in any order.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dplinear.arrays import Floats, Integers
from dplinear.exact.filling import hold_relief, relief
from dplinear.exact.grid import Gaps, Grid, round_with_gaps
from dplinear.exact.integers import scratch
from dplinear.exact.row_sums import BLOCK_ROWS, take_columns
from dplinear.exact.weights import parts, survey_weights
from dplinear.schema import Schema
from dplinear.schema.cells import Cells
from dplinear.schema.encoding import Encoder, decode
from dplinear.schema.filling import filled_features, levels_filled
from dplinear.schema.groups import GroupEncoder, group_codes

_Present = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Kept:
    """A block of rounded rows that waits for the next pass, with its weights if it has any."""

    rows: npt.NDArray[np.float32]
    weights: Integers | None


class Keeper(Protocol):
    """Takes blocks of rounded rows, from any thread, for the passes that follow."""

    def append(self, block: Kept) -> None:
        """Keep a block."""


class _Part(Protocol):
    def to_bytes(self) -> bytes: ...


Part = TypeVar("Part", bound=_Part)


class Blocks(ABC, Generic[Part]):
    """Rounds rows to the grid, block by block, and adds them up.

    `keep`, if set, collects the rounded blocks, which float32 holds exactly: a cell is below 2^21.
    """

    def __init__(self, schema: Schema, grid: Grid | None = None) -> None:
        self.schema = schema
        self.keep: Keeper | None = None
        self._grid = Grid.of(schema) if grid is None else grid

    @cached_property
    def _encoder(self) -> Encoder:
        """What maps cells: made when it is needed, as blocks that were kept need none."""
        return Encoder(self.schema, float(self._grid.steps_per_unit))

    @cached_property
    def _group_encoder(self) -> GroupEncoder | None:
        """What maps the cells of groups, each of which is seen through a schema of its own."""
        if not self.schema.group_schemas:
            return None
        return GroupEncoder(self.schema, float(self._grid.steps_per_unit))

    @cached_property
    def _gap_features(self) -> tuple[int, ...]:
        """The features whose missing cells are filled in."""
        return filled_features(self.schema)

    @cached_property
    def _filled_levels(self) -> tuple[str, ...]:
        """The categories whose cells without a level join a declared one."""
        return levels_filled(self.schema)

    @cached_property
    def _relief(self) -> Integers:
        """How much shorter rows with gaps are, if they are so at all: not in groups."""
        shorter = relief(self.schema, self._grid)
        return np.zeros_like(shorter) if self.schema.by else shorter

    @abstractmethod
    def add(self, rows: Floats) -> None:
        """Add a block of at most 4096 rounded rows, shape (dimension, rows); leave it as it is."""

    def add_multiple(self, rows: Floats, times: int) -> None:
        """Add a block of which every row counts so many times, if sums of rows are added up."""
        raise TypeError(f"Rows of {type(self).__name__} carry no weights.")

    def add_weighted(self, rows: Floats, weights: Integers, totals: Integers | None = None) -> None:
        """Add rounded rows, any number of them, each as often as its weight is units of 1/2^24.

        `totals` are those of the weights of each row's unit; None: every row is a unit of its own.
        """
        if self.schema.weight is not None:
            self.weigh(weights, weights if totals is None else totals)
        for times, chosen in parts(weights):
            first, last = int(chosen[0]), int(chosen[-1])
            is_run = last - first + 1 == len(chosen)
            some = rows[:, first : last + 1] if is_run else np.take(rows, chosen, axis=1)
            for start in range(0, some.shape[1], BLOCK_ROWS):
                self.add_multiple(some[:, start : start + BLOCK_ROWS], times)

    @abstractmethod
    def result(self) -> Part:
        """Return the sum of all rows so far."""

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of an Arrow batch that has the schema's columns."""
        columns = {name: batch.column(name) for name in self.schema.read_columns}
        self.update_columns(columns, batch.num_rows)

    def update_columns(self, columns: Mapping[str, Cells], rows: int) -> None:
        """Add rows whose columns are Arrow or NumPy arrays of equal length."""
        self._add_columns(columns, rows)

    def _add_columns(self, columns: Mapping[str, Cells], rows: int) -> None:
        table, survey = decode(self.schema, columns), self.schema.weight
        weights = None if survey is None else survey_weights(survey.shares(columns[survey.column]))
        for start in range(0, rows, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, rows)
            block = {name: values[start:stop] for name, values in table.items()}
            codes = group_codes(self.schema, block) if self.schema.by else None
            own = None if weights is None else weights[start:stop]
            if codes is not None and self._group_encoder is not None:
                scaled = self._group_encoder.map_values(block, codes)
            else:
                scaled = self._encoder.map_values(block, stop - start)
            unseen = [block[name] < 0 for name in self._filled_levels]
            self.update_cells(scaled, codes, own, np.array(unseen) if unseen else None)

    def update_array(self, block: npt.NDArray[Any]) -> None:
        """Add rows of a NumPy array whose columns are those that the schema reads, in order."""
        if self.schema.by or self._filled_levels:
            names = enumerate(self.schema.read_columns)
            self._add_columns({name: block[:, index] for index, name in names}, len(block))
            return
        survey = self.schema.weight
        weights = None
        if survey is not None:
            index = self.schema.read_columns.index(survey.column)
            weights = survey_weights(survey.shares(block[:, index]))
        block = block[:, : len(self.schema.columns)]
        room = self._encoder.room_for(block[:BLOCK_ROWS])
        for start in range(0, len(block), BLOCK_ROWS):
            rows = block[start : start + BLOCK_ROWS]
            own = None if weights is None else weights[start : start + BLOCK_ROWS]
            self.update_cells(self._encoder.array(rows, room[: len(rows)]), None, own)

    def update_cells(
        self,
        scaled: Floats,
        codes: Floats | None = None,
        weights: Integers | None = None,
        unseen: Gaps | None = None,
    ) -> None:
        """Add rows of cells times `grid.cells`, shape (dimension, rows). Overwrites them.

        `codes` are the groups that rows are in, where there are some: below 0, none, so that the
        row is left out. They go with the rounded rows from here on, as one more number of each.
        `unseen` says which cells of categories join a declared level for want of their own.
        Promises: exact, whatever the number of rows; bad cells never raise.
        """
        for start in range(0, scaled.shape[1], BLOCK_ROWS):
            block = scaled[:, start : start + BLOCK_ROWS]
            other_gaps = None if unseen is None else unseen[:, start : start + BLOCK_ROWS]
            present = self._present(block)
            heavy = None if weights is None else weights[start : start + BLOCK_ROWS]
            if codes is None:
                missing = self._encoder.missing
                rows, gaps = round_with_gaps(self._grid, block, missing, self._gap_features)
                gaps = self._join_gaps(gaps, other_gaps)
                if gaps is not None and self._relief.any():
                    hold_relief(self._grid, rows, gaps, self._relief)
            else:
                own = codes[start : start + BLOCK_ROWS]
                other = self._group_encoder
                missing = self._encoder.missing if other is None else other.missing(own)
                rows = scratch("rows in groups", (len(block) + 1, len(own)))
                rounded, gaps = round_with_gaps(self._grid, block, missing, self._gap_features)
                rows[:-1], rows[-1] = rounded, own
                gaps = self._join_gaps(gaps, other_gaps)
                if own.min(initial=0) < 0:
                    present = own >= 0 if present is None else present & (own >= 0)
            self.add_present(rows, present, heavy, gaps)

    def _join_gaps(self, gaps: Gaps | None, unseen: Gaps | None) -> Gaps | None:
        """Return the gaps of all columns that may have some; None where there are none."""
        if unseen is None or (gaps is None and not unseen.any()):
            return gaps
        if gaps is None:
            gaps = np.zeros((len(self._gap_features), unseen.shape[1]), np.bool_)
        return np.concatenate((gaps, unseen))

    def _present(self, scaled: Floats) -> _Present | None:
        """Return which rows have all the numbers that they need; None: all of them do.

        A number is missing exactly where its scaled value is NaN.
        """
        needed = self.schema.needed_features
        if not needed:
            return None
        some = take_columns(scaled, needed)
        if not some.size or not np.isnan(some.min()):
            return None
        return np.asarray(~np.isnan(some).any(axis=0))

    def leave(self, rows: Floats, weights: Integers | None = None) -> None:
        """Take note of rows that are left out, with their weights if they have any."""

    def fill(self, rows: Floats, gaps: Gaps, weights: Integers | None = None) -> None:
        """Take note of which cells of rows that count were filled in."""

    def weigh(self, weights: Integers, totals: Integers) -> None:
        """Take note of survey weights of rows, and of the total of each row's unit."""

    def add_present(
        self,
        rows: Floats,
        present: _Present | None,
        weights: Integers | None,
        gaps: Gaps | None = None,
    ) -> None:
        """Add a block of rounded rows, but for those that are left out."""
        if present is not None:
            gone = None if weights is None else weights[~present]
            self.leave(rows[:, ~present], gone)
            rows = rows[:, present]
            weights = None if weights is None else weights[present]
            gaps = None if gaps is None else gaps[:, present]
        if gaps is not None:
            self.fill(rows, gaps, weights)
        self._add(rows, weights)
        if self.keep is not None:
            self.keep.append(Kept(rows.astype(np.float32), weights))

    def _add(self, rows: Floats, weights: Integers | None) -> None:
        if weights is None:
            self.add(rows)
        else:
            self.add_weighted(rows, weights)

    def add_kept(self, block: Kept) -> None:
        """Add a block that an earlier pass kept."""
        by_row = block.rows.flags.c_contiguous
        room = scratch("rows", block.rows.shape if by_row else block.rows.shape[::-1])
        rows = room if by_row else room.T
        np.copyto(rows, block.rows)
        self._add(rows, block.weights)


class Reduction(ABC, Generic[Part]):
    """What one pass adds up. Frozen, and can be sent to workers."""

    def __init__(self, schema: Schema, grid: Grid | None = None) -> None:
        self.schema = schema
        self.grid = Grid.of(schema) if grid is None else grid

    @abstractmethod
    def accumulator(self) -> Blocks[Part]:
        """Return an empty accumulator, for one thread or worker."""

    @abstractmethod
    def merge(self, parts: Iterable[Part]) -> Part:
        """Return the sum of what accumulators came to, in any order and number."""

    @abstractmethod
    def read(self, data: bytes) -> Part:
        """Return what a worker sent as bytes."""
