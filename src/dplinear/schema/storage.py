"""What stores the cells of an Arrow array, undone: chunks, codes, views and extension types.

Promises, for every function here: nothing is joined, cast or followed that could raise, or change
other cells, because of what one cell is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.schema.canonical import text_in


def by_chunk(read: Callable[[Any], npt.NDArray[Any]], cells: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return what a reader makes of each chunk, end to end.

    Arrow never joins them: it would make one dictionary of several, which misreads some types,
    refuses others and runs out of codes, and one text of several, which runs out of offsets.
    Whether it does depends on all cells together.
    """
    parts = [read(chunk) for chunk in cells.chunks or [pa.nulls(0, cells.type)]]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def is_text(kind: pa.DataType) -> bool:
    """Return whether cells are text or bytes of any length."""
    types = pa.types
    plain = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(
        plain or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    )


def as_binary(cells: pa.Array) -> pa.Array:
    """Return text as bytes: no check of its encoding.

    Views become large binary: offsets of 32 bits wrap around within one batch, without an error.
    """
    kind = pa.types
    if kind.is_string(cells.type) or kind.is_binary(cells.type):
        return pc.cast(cells, pa.binary())
    views = kind.is_string_view(cells.type) or kind.is_binary_view(cells.type)
    return pc.cast(sound(cells) if views else cells, pa.large_binary())


def sound(views: pa.Array) -> pa.Array:
    """Return views that can be followed, those of missing cells and of 2^31 bytes or more empty.

    Arrow follows them all and checks none, and takes a length of Polars', which has one bit more,
    for a negative one. Nothing of that length is a number, a date or a level.
    """
    _, held, *data = views.buffers()
    found = np.frombuffer(held or b"", np.int32, 4 * len(views), 16 * views.offset).reshape(-1, 4)
    missing = np.asarray(views.is_null()) | (found[:, 0] < 0)
    if not missing.any():
        return views
    valid = np.packbits(~missing, bitorder="little")
    kept = np.where(missing[:, None], np.int32(0), found)
    buffers = [pa.py_buffer(valid), pa.py_buffer(kept), *data]
    return pa.Array.from_buffers(views.type, len(views), buffers)


def storage_of(cells: pa.Array) -> pa.Array:
    """Return cells of an extension type as what stores them, DuckDB's long integers as text."""
    kind = cells.type
    if not isinstance(kind, pa.BaseExtensionType):
        return cells
    named = (getattr(kind, "vendor_name", ""), getattr(kind, "type_name", ""))
    if named == ("DuckDB", "bignum") and is_text(kind.storage_type):
        long = map(_long, as_binary(cells.storage).to_pylist())
        return pa.array(map(text_in, long), pa.large_string())
    plain = kind.extension_name in {"arrow.json", "arrow.bool8"}
    return cells.storage if plain else pa.nulls(len(cells))


def _long(cell: bytes | None) -> int | None:
    """Return an integer of DuckDB's type BIGNUM.

    Three bytes, of which the first bit says that it is not negative, then its size in bytes that
    begin with the largest; all bits are turned over where it is negative.
    """
    if not cell:
        return None
    if cell[0] & 0x80:
        return int.from_bytes(cell[3:], "big")
    return -int.from_bytes(bytes(byte ^ 0xFF for byte in cell[3:]), "big")


def spread(values: npt.NDArray[Any], indices: pa.Array, absent: Any) -> npt.NDArray[Any]:
    """Return each cell's value where values are those of distinct cells.

    Nulls are absent, and so are codes of no value: nobody checks those of an Arrow array.
    """
    codes = np.asarray(pc.fill_null(pc.cast(indices, pa.int64(), safe=False), len(values)))
    known = (codes >= 0) & (codes < len(values))
    return np.asarray(np.append(values, absent)[np.where(known, codes, len(values))])
