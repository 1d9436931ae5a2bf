"""One pass over rows in groups: each group's rows add up to what they would as a table alone.

Rounded rows come with one more number each, the index of their group (`Blocks.update_cells`). So
whatever holds rows between passes (memory, a spool of units, an engine's shuffle) holds their group
as well, and a row touches the sums of its own group and no others.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic

import numpy as np

from dplinear.arrays import Floats, Integers
from dplinear.exact.blocks import Blocks, Part, Reduction
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

    def _split(self, rows: Floats) -> Iterator[tuple[Blocks[Part], Floats, Any]]:
        """Return each group that has rows here: its sums, its rows, and which those are."""
        codes = rows[-1].astype(np.int64)
        order = np.argsort(codes, kind="stable")
        sorted_rows = np.take(rows[:-1], order, axis=1)
        ends = np.searchsorted(codes[order], np.arange(len(self._groups) + 1)).tolist()
        for group, start, stop in zip(self._groups, ends[:-1], ends[1:], strict=True):
            if start < stop:
                yield group, sorted_rows[:, start:stop], order[start:stop]

    def add(self, rows: Floats) -> None:
        """Add a block of rounded rows, each to its group."""
        for group, own, _ in self._split(rows):
            group.add(own)

    def add_multiple(self, rows: Floats, times: int) -> None:
        """Add a block of rounded rows, so many times."""
        for group, own, _ in self._split(rows):
            group.add_multiple(own, times)

    def add_weighted(self, rows: Floats, weights: Integers) -> None:
        """Add rounded rows, each as often as its weight says."""
        for group, own, chosen in self._split(rows):
            group.add_weighted(own, weights[chosen])

    def leave(self, rows: Floats) -> None:
        """Let each group take note of its rows that are left out; others are nobody's."""
        for group, own, _ in self._split(rows):
            group.leave(own)

    def result(self) -> GroupParts[Part]:
        """Return the sums of all groups so far."""
        return GroupParts([group.result() for group in self._groups])


class GroupReduction(Reduction[GroupParts[Part]]):
    """A pass that adds up something for each group, such as its second moments.

    Requires: a schema that is split by columns, and a reduction of the schema `of_group` for each
    of its groups.
    """

    def __init__(self, schema: Schema, groups: Iterable[Reduction[Part]]) -> None:
        super().__init__(schema)
        self.groups = tuple(groups)

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
