"""One pass over rows in groups: each group's rows add up to what they would as a table alone.

Rounded rows come with one more number each, the index of their group (`Blocks.update_cells`). So
whatever holds rows between passes (memory, a spool of units, an engine's shuffle) holds their group
as well, and a row touches the sums of its own group and no others.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats, Integers
from dplinear.exact.blocks import Blocks, Kept, Part, Reduction
from dplinear.exact.grid import Gaps
from dplinear.exact.integers import scratch
from dplinear.exact.row_sums import BLOCK_ROWS
from dplinear.exact.sums import Sums
from dplinear.schema import Schema

_LENGTH = struct.Struct("<Q")


class GroupParts(Generic[Part]):
    """What a pass added up for each group, in their order. Private: not a release."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)

    def __repr__(self) -> str:
        return f"GroupParts({len(self.parts)} groups, private)"

    def to_bytes(self) -> bytes:
        """Return the parts one behind the other, each after its length. They are private."""
        contents = [part.to_bytes() for part in self.parts]
        return b"".join(_LENGTH.pack(len(content)) + content for content in contents)


class GroupBlocks(Blocks[GroupParts[Part]]):
    """Adds each row to the sums of its group. One per thread or worker."""

    def __init__(self, schema: Schema, groups: Sequence[Blocks[Part]]) -> None:
        super().__init__(schema)
        self._groups = groups
        self._held: list[list[Kept]] = [[] for _ in groups]

    def _split(self, rows: Floats) -> Iterator[tuple[int, Floats, Any]]:
        """Return each group that has rows here: its index, its rows, and which those are."""
        codes = rows[-1].astype(np.int16)  # few enough, and sorted in a time that is linear
        if len(codes) and codes[0] == codes.max() == codes.min() >= 0:  # as rows are kept
            yield int(codes[0]), rows[:-1], slice(None)
            return
        order = np.argsort(codes, kind="stable")
        sorted_rows = scratch("sorted rows", (len(rows) - 1, len(codes)))
        np.take(rows[:-1], order, axis=1, out=sorted_rows, mode="clip")
        ends = np.searchsorted(codes[order], np.arange(len(self._groups) + 1)).tolist()
        for group, (start, stop) in enumerate(pairwise(ends)):
            if start < stop:
                yield group, sorted_rows[:, start:stop], order[start:stop]

    def add(self, rows: Floats) -> None:
        """Add a block of rounded rows, each to its group."""
        for group, own, _ in self._split(rows):
            self._groups[group].add(own)

    def add_multiple(self, rows: Floats, times: int) -> None:
        """Add a block of rounded rows, so many times."""
        for group, own, _ in self._split(rows):
            self._groups[group].add_multiple(own, times)

    def add_weighted(self, rows: Floats, weights: Integers, totals: Integers | None = None) -> None:
        """Add rounded rows, each as often as its weight says."""
        for group, own, chosen in self._split(rows):
            some = None if totals is None else totals[chosen]
            self._groups[group].add_weighted(own, weights[chosen], some)

    def leave(self, rows: Floats, weights: Integers | None = None) -> None:
        """Let each group take note of its rows that are left out; others are nobody's."""
        for group, own, chosen in self._split(rows):
            self._groups[group].leave(own, None if weights is None else weights[chosen])

    def fill(self, rows: Floats, gaps: Gaps, weights: Integers | None = None) -> None:
        """Let each group take note of which cells of its rows were filled in."""
        for group, own, chosen in self._split(rows):
            some = None if weights is None else weights[chosen]
            self._groups[group].fill(own, gaps[:, chosen], some)

    def add_present(
        self,
        rows: Floats,
        present: npt.NDArray[np.bool_] | None,
        weights: Integers | None,
        gaps: Gaps | None = None,
    ) -> None:
        """Add a block of rounded rows, but for those that are left out; keep each group's apart.

        So that later passes over them need not split them again. `weights` are those of a survey;
        those of units come with `add_weighted`.
        """
        if present is not None:
            self.leave(rows[:, ~present], None if weights is None else weights[~present])
            rows = rows[:, present]
            weights = None if weights is None else weights[present]
            gaps = None if gaps is None else gaps[:, present]
        if gaps is not None:
            self.fill(rows, gaps, weights)
        for group, own, chosen in self._split(rows):
            some = None if weights is None else weights[chosen]
            self._groups[group].add_present(own, None, some)
            if self.keep is not None:
                self._hold(group, Kept(own.astype(np.float32), some))

    def _hold(self, group: int, rows: Kept) -> None:
        held = self._held[group]
        held.append(rows)
        if sum(some.rows.shape[1] for some in held) >= BLOCK_ROWS:
            self._keep_group(group)

    def _keep_group(self, group: int) -> None:
        """Keep what is held of a group, in blocks of its rows alone."""
        held, self._held[group] = self._held[group], []
        if self.keep is None or not held:
            return
        rows = np.concatenate([some.rows for some in held], axis=1)
        heavy = [some.weights for some in held if some.weights is not None]
        weights = np.concatenate(heavy) if heavy else None
        for start in range(0, rows.shape[1], BLOCK_ROWS):
            some = rows[:, start : start + BLOCK_ROWS]
            codes = np.full((1, some.shape[1]), group, np.float32)
            own = None if weights is None else weights[start : start + BLOCK_ROWS]
            self.keep.append(Kept(np.concatenate((some, codes)), own))

    def result(self) -> GroupParts[Part]:
        """Return the sums of all groups so far."""
        for group in range(len(self._groups)):
            self._keep_group(group)
        return GroupParts([group.result() for group in self._groups])


class _NoSum:
    """What a group comes to that asks for nothing."""

    @staticmethod
    def to_bytes() -> bytes:
        return b""


class _Idle(Blocks[_NoSum]):
    def add(self, rows: Floats) -> None:
        """Add nothing."""

    def add_weighted(self, rows: Floats, weights: Any, totals: Any = None) -> None:
        """Add nothing."""

    def result(self) -> _NoSum:
        return _NoSum()


class Nothing(Reduction[_NoSum]):
    """The pass of a group that asks for nothing."""

    def accumulator(self) -> _Idle:
        """Return what adds up nothing."""
        return _Idle(self.schema)

    def merge(self, parts: Iterable[_NoSum]) -> _NoSum:
        """Return nothing."""
        return _NoSum()

    def read(self, data: bytes) -> _NoSum:
        """Return nothing."""
        return _NoSum()


def is_by_unit(reduction: Reduction[Any]) -> bool:
    """Return whether a pass adds up anything over units, and not over rows alone."""
    if isinstance(reduction, GroupReduction):
        return any(map(is_by_unit, reduction.groups))
    return isinstance(reduction, Sums) and reduction.by_unit


class GroupReduction(Reduction[GroupParts[Part]]):
    """A pass that adds up something for each group, such as its second moments.

    Requires: a schema that is split by columns, and a reduction of the schema `of_group` for each
    of its groups.
    """

    def __init__(self, schema: Schema, groups: Iterable[Reduction[Part]]) -> None:
        super().__init__(schema)
        self.groups = tuple(groups)

    def of_rows(self) -> "GroupReduction[Any]":
        """Return the same pass, without the groups that ask for sums over units."""
        idle = [Nothing(group.schema) if is_by_unit(group) else group for group in self.groups]
        return GroupReduction(self.schema, idle)

    def of_units(self) -> dict[int, Sums]:
        """Return the groups that ask for sums over units, by their index."""
        return {
            index: group
            for index, group in enumerate(self.groups)
            if isinstance(group, Sums) and group.by_unit
        }

    def accumulator(self) -> GroupBlocks[Part]:
        """Return an accumulator of all groups."""
        return GroupBlocks(self.schema, [group.accumulator() for group in self.groups])

    def merge(self, parts: Iterable[GroupParts[Part]]) -> GroupParts[Part]:
        """Return the sum of what accumulators came to, group by group."""
        held = list(parts)
        return GroupParts(
            [
                group.merge(part.parts[index] for part in held)
                for index, group in enumerate(self.groups)
            ]
        )

    def read(self, data: bytes) -> GroupParts[Part]:
        """Return what a worker sent."""
        found, start = [], 0
        for group in self.groups:
            (length,) = _LENGTH.unpack_from(data, start)
            start += _LENGTH.size
            found.append(group.read(data[start : start + length]))
            start += length
        return GroupParts(found)
