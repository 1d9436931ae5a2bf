r"""What a row of a CSV file is: one record, as the grammar of RFC 4180 cuts it off.

A record ends at a line feed that stands outside of quotes, with a carriage return before it or not;
by itself, a carriage return is a character like any other. A quotation mark opens quotes where a
cell begins, and nowhere else; within quotes it closes them, unless another one follows at once,
which makes both of them one character. What follows closed quotes belongs to the cell. A record
of more than 64 MiB, or one whose quotes are open at the end of the file, is a row without cells.

Promises: two files that differ in whole records have all other records in common, bytes and places.
So what one record holds adds, removes and changes no other. Every writer that doubles quotation
marks writes whole records; one that escapes them otherwise, or does not quote at all, may not.
"""

import re
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

_CHUNK = 4 * 2**20  # bytes read at a time
_LONGEST = 64 * 2**20  # bytes of a record that is read
_LONGEST_HEADER = 16 * 2**20
_QUOTE, _END, _RETURN = b'"', b"\n", b"\r"
_MARK = b"\xef\xbb\xbf"  # of the order of bytes, which some writers put before a header

Positions = npt.NDArray[np.int64]


class HeaderError(Exception):
    """The first line of a file is no header: it is too long, or ends in no line feed."""


def read_header(file: IO[bytes], mark: bytes) -> tuple[bytes, int]:
    """Return the first record, without a mark of the order of bytes, and where the next begins.

    Raises: `HeaderError` where it ends in a carriage return alone, as all lines of such a file do.
    """
    held = b""
    while chunk := file.read(_CHUNK):
        held += chunk
        start = len(_MARK) if held.startswith(_MARK) else 0
        quotes = _quotes(held[start:], mark) + start
        for found in re.finditer(rb"\r\n|\n|\r(?!\Z)", held):
            if not _is_quoted(quotes, found.start()):
                if found.group() == _RETURN:
                    raise HeaderError
                return held[start : found.start()], found.end()
        if len(held) > _LONGEST_HEADER:
            raise HeaderError
    if held.endswith(_RETURN):
        raise HeaderError
    return held.removeprefix(_MARK), len(held)


def pieces(file: IO[bytes], mark: bytes, broken: bytes) -> Iterator[bytes]:
    """Return a file from a record's beginning on, some whole records at a time.

    Requires: `mark`, the byte between cells; `broken`, a record to stand for one without cells.
    Promises: every record once, in order, ended by a line feed; memory holds a few of the longest.
    """
    held, cut = b"", False
    while chunk := file.read(_CHUNK):
        held += chunk
        quotes = _quotes(held, mark)
        end = _last_end(held, quotes)
        if end:
            piece, held = held[:end], held[end:]
            # Of these records only the first began before this chunk, so no other is as long.
            first = _first_end(piece, quotes) if cut or len(piece) > _LONGEST else 0
            if cut or first > _LONGEST:
                piece = broken + piece[first:]
            cut = False
            yield piece
        elif len(held) > _LONGEST:
            held, cut = _state(held, quotes, mark), True
    if cut or (held and len(_quotes(held, mark)) % 2):
        yield broken
    elif held:
        yield held + _END


def _quotes(data: bytes, mark: bytes) -> Positions:
    """Return where quotes open and close, in turn, in data that begins with a record.

    Two marks for one character close them and open them again.
    """
    if _QUOTE not in data:
        return np.zeros(0, np.int64)
    characters = np.frombuffer(data, np.uint8)
    every = np.flatnonzero(characters == ord(_QUOTE))
    opening, closing = every[::2], every[1::2]
    before = characters[opening - 1]
    regular = (before == ord(mark)) | (before == ord(_END))
    regular[0] |= opening[0] == 0
    regular[1:] |= opening[1:] == closing[: len(opening) - 1] + 1
    if regular.all():
        return every
    return _quotes_one_by_one(data, mark)


def _quotes_one_by_one(data: bytes, mark: bytes) -> Positions:
    """Return the same where some quotation marks are no more than characters."""
    # The mark comes first in the pattern, which is then sought as fast as bytes are.
    quoted = re.compile(rb'"(?<=[\n%s]")[^"]*+(?:""[^"]*+)*+"?' % re.escape(mark))
    data = _END + data
    ends = [found.span() for found in quoted.finditer(data)]
    found = np.array(ends, np.int64).reshape(-1, 2) - [1, 2]
    # Quotes that are still open at the end of the data have no second mark.
    opened = bool(ends) and not _closes(data, *ends[-1])
    return np.asarray(found.ravel()[: found.size - opened], np.int64)


def _closes(data: bytes, start: int, end: int) -> bool:
    """Return whether quotes that span these bytes are closed by the last of them."""
    marks = len(data[start + 1 : end]) - len(data[start + 1 : end].rstrip(_QUOTE))
    return bool(marks % 2)


def _is_quoted(quotes: Positions, position: int) -> bool:
    return bool(np.searchsorted(quotes, position) % 2)


def _last_end(data: bytes, quotes: Positions) -> int:
    """Return the end of the last whole record, or 0."""
    position = data.rfind(_END)
    while position >= 0 and _is_quoted(quotes, position):
        opened = int(quotes[np.searchsorted(quotes, position) - 1])
        position = data.rfind(_END, 0, opened)
    return position + 1


def _first_end(data: bytes, quotes: Positions) -> int:
    """Return the end of the first record, in data that has a whole one."""
    position = data.find(_END)
    while _is_quoted(quotes, position):
        closed = int(quotes[np.searchsorted(quotes, position)])
        position = data.find(_END, closed)
    return position + 1


def _state(data: bytes, quotes: Positions, mark: bytes) -> bytes:
    """Return a few bytes that the rest of a record can follow as it would follow these."""
    if len(quotes) % 2:
        return _QUOTE
    if len(quotes) and quotes[-1] == len(data) - 1:
        return 2 * _QUOTE  # another one may follow, and open them again
    return b"" if data.endswith(mark) else b"x"


def is_plain(piece: bytes) -> bool:
    """Return whether records are text, and all their carriage returns come before line feeds."""
    if _RETURN in piece:
        characters = np.frombuffer(piece, np.uint8)
        following = characters[np.flatnonzero(characters[:-1] == ord(_RETURN)) + 1]
        if (following != ord(_END)).any():
            return False
    if piece.isascii():
        return True
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def widen(piece: bytes) -> bytes:
    """Return well-formed text of one character for each byte, lone carriage returns as others."""
    characters = piece.decode("latin-1")
    return re.sub("\r(?!\n)", "\u0100", characters).encode()


def narrow(cell: Any) -> Any:
    """Return a cell of widened text as the bytes that it was."""
    return None if cell is None else cell.decode().replace("\u0100", "\r").encode("latin-1")
