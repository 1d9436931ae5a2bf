"""What an Arrow message says of itself, read before any of its columns is.

A message may hold compressed buffers, each with the length it claims to have when it is unpacked.
PyArrow unpacks a whole message at once and does not tell beforehand; these few fields of its header
do (Arrow's Message.fbs: tables of FlatBuffers, little-endian).
"""

import struct
from typing import NamedTuple

import pyarrow as pa

_HEADER, _LENGTH, _BUFFERS, _COMPRESSION = 2, 0, 2, 3  # numbers of fields, in their tables


class Announced(NamedTuple):
    """How many rows a record batch has, and how many bytes unpacking it allocates."""

    rows: int
    unpacked: int


def read_announcement(message: pa.Message) -> Announced:
    """Return what a record batch's message says of itself.

    Requires: any message; one that is not sound raises ValueError.
    Promises: reading it as a record batch allocates at most `unpacked` bytes for its columns: 0
    where nothing is compressed, since columns are then views of the message.
    """
    try:
        found = _Fields(message.metadata.to_pybytes())
        batch = found.table(found.word(0), _HEADER)
        rows = found.number(batch, _LENGTH, 0)
        unpacked = 0
        if found.at(batch, _COMPRESSION):
            body = memoryview(message.body) if message.body is not None else memoryview(b"")
            unpacked = sum(_unpacked_size(body, *pair) for pair in found.pairs(batch, _BUFFERS))
    except struct.error:
        raise ValueError("a message that does not hold what it says") from None
    if rows < 0:
        raise ValueError("a message with a negative number of rows")
    return Announced(rows, unpacked)


def _unpacked_size(body: memoryview, offset: int, length: int) -> int:
    """Return what a compressed buffer unpacks to: the number before it, or itself at -1."""
    if length == 0:
        return 0
    if offset < 0 or length < 8:
        raise ValueError("a buffer outside its message")
    (claimed,) = struct.unpack_from("<q", body, offset)
    if claimed < -1:
        raise ValueError("a buffer of negative length")
    return int(length if claimed == -1 else claimed)


class _Fields:
    """Tables of FlatBuffers; what points outside raises struct.error."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def _read(self, form: str, offset: int) -> tuple[int, ...]:
        if offset < 0:
            raise struct.error("before the message")
        return struct.unpack_from(form, self._content, offset)

    def word(self, offset: int) -> int:
        """Return where an offset leads to."""
        return offset + self._read("<I", offset)[0]

    def at(self, table: int, field: int) -> int:
        """Return where a field of a table stands, or 0 where the table has none."""
        listed = table - self._read("<i", table)[0]
        if 4 + 2 * field >= self._read("<H", listed)[0]:
            return 0
        offset = self._read("<H", listed + 4 + 2 * field)[0]
        return table + offset if offset else 0

    def table(self, table: int, field: int) -> int:
        """Return the table in a field."""
        offset = self.at(table, field)
        if not offset:
            raise struct.error("no such table")
        return self.word(offset)

    def number(self, table: int, field: int, usual: int) -> int:
        """Return the long integer in a field."""
        offset = self.at(table, field)
        return self._read("<q", offset)[0] if offset else usual

    def pairs(self, table: int, field: int) -> list[tuple[int, int]]:
        """Return the pairs of long integers in a field."""
        if not self.at(table, field):
            return []
        start = self.table(table, field)
        (count,) = self._read("<I", start)
        if 16 * count > len(self._content):
            raise struct.error("more pairs than there is room for")
        return [self._read("<qq", start + 4 + 16 * n) for n in range(count)]  # type: ignore[misc]  # two each
