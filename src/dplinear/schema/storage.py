"""What stores the cells of an Arrow array, undone: chunks, codes, views and extension types.

Promises, for every function here: nothing is joined, cast or followed that could raise, or change
other cells, because of what one cell is.
"""

import json
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.schema.canonical import text_in

_IDENTIFIER = 16  # bytes
_INLINE = 12  # bytes that a view itself has room for


def by_chunk(read: Callable[[Any], npt.NDArray[Any]], cells: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return what a reader makes of each chunk, end to end.

    Arrow never joins them: it would make one dictionary of several, which misreads some types,
    refuses others and runs out of codes, and one text of several, which runs out of offsets.
    Whether it does depends on all cells together.
    """
    parts = [read(chunk) for chunk in cells.chunks or [pa.nulls(0, cells.type)]]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def is_text(kind: pa.DataType) -> bool:
    """Return whether cells are text or bytes."""
    types = pa.types
    plain = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(plain or binary or types.is_fixed_size_binary(kind))


def as_binary(cells: pa.Array) -> pa.Array:
    """Return text as bytes: no check of its encoding.

    Views become large binary: offsets of 32 bits wrap around within one batch, without an error.
    """
    kind = pa.types
    if kind.is_string(cells.type) or kind.is_binary(cells.type):
        return pc.cast(followable(cells, np.dtype(np.int32)), pa.binary())
    if kind.is_large_string(cells.type) or kind.is_large_binary(cells.type):
        return pc.cast(followable(cells, np.dtype(np.int64)), pa.large_binary())
    views = kind.is_string_view(cells.type) or kind.is_binary_view(cells.type)
    return pc.cast(sound(cells) if views else whole(cells), pa.large_binary())


def whole(cells: pa.Array) -> pa.Array:
    """Return cells of a type of one width; raise `ArrowInvalid` unless their buffers hold them.

    Only a table that is damaged as a whole has others, whatever its cells are.
    """
    cells.validate()
    return cells


def _entries(buffer: pa.Buffer | None, dtype: np.dtype[Any], count: int, first: int) -> Any:
    """Return entries of a buffer as an array; raise `ArrowInvalid` if it has not so many."""
    if not count:
        return np.empty(0, dtype)
    if buffer is None or buffer.size < (first + count) * dtype.itemsize:
        raise pa.ArrowInvalid("a buffer is too short")
    return np.frombuffer(buffer, dtype, count, first * dtype.itemsize)


def followable(texts: pa.Array, dtype: np.dtype[Any]) -> pa.Array:
    """Return texts whose offsets can be followed, those that lead outside of the data missing.

    Arrow follows them all and checks the last at most, in files too.
    """
    _, held, data = texts.buffers()
    count = len(texts) + 1 if len(texts) else 0
    offsets = _entries(held, dtype, count, texts.offset)
    first, last, size = offsets[:-1], offsets[1:], 0 if data is None else data.size
    known = (first >= 0) & (first <= last) & (last <= size)
    if known.all():
        return texts
    given = memoryview(data or b"")
    pairs = zip(first.tolist(), last.tolist(), strict=True)
    present = known & ~np.asarray(texts.is_null())
    cells = [
        bytes(given[a:b]) if there else None for (a, b), there in zip(pairs, present, strict=True)
    ]
    return pa.array(cells, pa.large_binary())


def sound(views: pa.Array) -> pa.Array:
    """Return views that can be followed; others are missing, as are those of 2^31 bytes or more.

    Arrow follows them all, those of missing cells too, and checks none. It takes a length of
    Polars', which has one bit more, for a negative one. Nothing of that length is a number, a date
    or a level.
    """
    _, held, *data = views.buffers()
    found = _entries(held, np.dtype("4i4"), len(views), views.offset).reshape(-1, 4)
    missing = np.asarray(views.is_null()) | _astray(found, data)
    if not missing.any():
        return views
    valid = np.packbits(~missing, bitorder="little")
    kept = np.where(missing[:, None], np.int32(0), found)
    buffers = [pa.py_buffer(valid), pa.py_buffer(kept), *data]
    return pa.Array.from_buffers(views.type, len(views), buffers)


def _astray(views: npt.NDArray[np.int32], data: list[pa.Buffer | None]) -> Any:
    """Return which views lead outside of the buffers; those of short texts lead to none."""
    astray = views[:, 0] < 0
    far = np.flatnonzero(views[:, 0] > _INLINE)
    length, _, index, offset = views[far].astype(np.int64).T
    sizes = np.array([0, *(0 if buffer is None else buffer.size for buffer in data)])
    size = sizes[np.where((index >= 0) & (index < len(data)), index + 1, 0)]
    astray[far] = (offset < 0) | (offset + length > size)
    return astray


def storage_of(cells: pa.Array) -> pa.Array:
    """Return cells of an extension type as what they stand for: text, or numbers of Arrow's.

    DuckDB finds JSON, identifiers and long integers where it looks for types, and keeps them so.
    """
    kind = cells.type
    if not isinstance(kind, pa.BaseExtensionType):
        return cells
    if kind.extension_name == "arrow.bool8":
        return cells.storage
    read = _reader_of(kind)
    if read is None:
        return pa.nulls(len(cells))
    distinct = as_binary(cells.storage).dictionary_encode()
    texts = pa.array(map(read, distinct.dictionary.to_pylist()), pa.large_binary())
    return texts.take(distinct.indices)


def has_cells(kind: pa.DataType) -> bool:
    """Return whether cells of a type can be read: no lists, structs or unknown extensions."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.extension_name == "arrow.bool8" or _reader_of(kind) is not None
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return has_cells(kind.value_type)
    return not pa.types.is_nested(kind)


def _reader_of(kind: pa.BaseExtensionType) -> Callable[[bytes | None], bytes | None] | None:
    named = (getattr(kind, "vendor_name", ""), getattr(kind, "type_name", ""))
    read = _READERS.get(named if any(named) else kind.extension_name)
    return read if is_text(kind.storage_type) else None


def _long(cell: bytes | None) -> bytes | None:
    """Return the text of an integer of DuckDB's type BIGNUM.

    Three bytes, of which the first bit says that it is not negative, then its size in bytes that
    begin with the largest; all bits are turned over where it is negative.
    """
    if not cell:
        return None
    if cell[0] & 0x80:
        return _text_of(int.from_bytes(cell[3:], "big"))
    return _text_of(-int.from_bytes(bytes(byte ^ 0xFF for byte in cell[3:]), "big"))


def _json(cell: bytes | None) -> bytes | None:
    """Return the text of a JSON value: a string without its marks, a number or a word as it is.

    Lists and objects, which a column of nothing else has a type for, are missing.
    """
    text = (cell or b"").strip(b" \t\r\n")
    if text[:1] in {b"", b"[", b"{"} or text == b"null":
        return None
    if not text.startswith(b'"'):
        return text
    try:
        return _text_of(json.loads(text.decode(), strict=False))
    except ValueError:  # no JSON, or no UTF-8
        return None


def _identifier(cell: bytes | None) -> bytes | None:
    return _text_of(uuid.UUID(bytes=cell)) if cell and len(cell) == _IDENTIFIER else None


def _text_of(cell: object) -> bytes | None:
    text = text_in(cell)
    return None if text is None else text.encode("utf-8", "surrogatepass")


_READERS: dict[Any, Callable[[bytes | None], bytes | None]] = {
    ("DuckDB", "bignum"): _long,
    "arrow.json": _json,
    "arrow.uuid": _identifier,
}


def coded(cells: pa.Array) -> tuple[pa.Array, pa.Array] | None:
    """Return the values that cells share and the code of each, where they are stored so."""
    if pa.types.is_dictionary(cells.type):
        return cells.dictionary, cells.indices
    if not pa.types.is_run_end_encoded(cells.type):
        return None
    ends = np.asarray(whole(cells).run_ends)
    rows = np.arange(cells.offset, cells.offset + len(cells))
    return cells.values, pa.array(np.searchsorted(ends, rows, side="right"))


def spread(values: npt.NDArray[Any], indices: pa.Array, absent: Any) -> npt.NDArray[Any]:
    """Return each cell's value where values are those of distinct cells.

    Nulls are absent, and so are codes of no value: nobody checks those of an Arrow array.
    """
    codes = np.asarray(pc.fill_null(pc.cast(whole(indices), pa.int64(), safe=False), len(values)))
    known = (codes >= 0) & (codes < len(values))
    return np.asarray(np.append(values, absent)[np.where(known, codes, len(values))])
