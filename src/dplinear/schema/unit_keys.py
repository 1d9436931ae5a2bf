"""The ids of a column that says whom a row belongs to, as keys: equal where ids mean the same.

Ids are read as levels are (`canonical`): 7, 7.0 and "007" are one id, since which of them a library
shows may depend on other rows; "a" and "A" are two. Keys are compared byte by byte, never by a hash
alone. Integers beyond 2^53 are the nearest float64, as they are elsewhere in a schema.

Promises, for every function here: the key of a cell depends on that cell alone, and nothing raises
or warns because of what a cell holds. A cell that means nothing has no key.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.arrays import Floats
from dplinear.schema.canonical import Key, canonical, days_of_datetimes
from dplinear.schema.cells import (
    MORE_THAN_TEXT,
    SIMPLE_NUMBER,
    Cells,
    as_floats,
    meanings,
    objects_of,
)
from dplinear.schema.storage import as_binary, is_text, storage_of, whole

_KIND = pa.large_binary()
_MARKS = {"number": b"n", "day": b"d", "time": b"c", "text": b"t", "identifier": b"u"}
_WORDS = r"^(?i:nan|na|n/a|null|epoch)|^$"  # that may mean nothing, and begin with no digit
_WIDTH = 9  # bytes of a number's key


def keys_of(cells: Cells) -> pa.Array:
    """Return the key of each cell as bytes, null where it has none."""
    if isinstance(cells, np.ndarray):
        return _keys_of_array(cells)
    if isinstance(cells, pa.ChunkedArray):
        return _join([keys_of(chunk) for chunk in cells.chunks])
    if pa.types.is_dictionary(cells.type):
        return _taken(keys_of(cells.dictionary), cells.indices)
    cells = storage_of(cells)
    if is_text(cells.type):
        return _keys_of_text(as_binary(cells))
    found = pa.nulls(len(cells), _KIND)
    for kind, values in meanings(cells):
        found = pc.coalesce(found, _keys_of_values(kind, values))
    return found


def _keys_of_array(cells: npt.NDArray[Any]) -> pa.Array:
    if isinstance(cells, np.ma.MaskedArray):
        keys, hidden = _keys_of_array(np.asarray(cells.data)), np.ma.getmaskarray(cells)
        return _choose(keys, np.where(hidden, -1, np.arange(len(cells))))
    kind = cells.dtype.kind
    if kind in "fiub":
        return _keys_of_values("number", as_floats(cells))
    if kind == "M":
        return _keys_of_values("day", days_of_datetimes(cells))
    if kind == "m":
        return pa.nulls(len(cells), _KIND)
    return _keys_of_objects(objects_of(cells).tolist())


def _keys_of_objects(cells: list[Any]) -> pa.Array:
    seen: dict[str, bytes | None] = {}

    def key(cell: Any) -> bytes | None:
        if type(cell) is not str:
            return _write(canonical(cell))
        if cell not in seen:
            seen[cell] = _write(canonical(cell))
        return seen[cell]

    return pa.array(map(key, cells), _KIND)


def _write(key: Key | None) -> bytes | None:
    if key is None:
        return None
    kind, value = key
    if isinstance(value, str):
        return _MARKS[kind] + value.encode("utf-8", "surrogatepass")
    return _MARKS[kind] + np.float64(value + 0.0).tobytes()  # −0 is 0


def _keys_of_values(kind: str, values: Floats) -> pa.Array:
    """Return the keys of numbers of one kind, null for NaN."""
    count = len(values)
    data = np.empty((count, _WIDTH), np.uint8)
    data[:, 0] = _MARKS[kind][0]
    data[:, 1:] = (np.asarray(values, np.float64) + 0.0).reshape(-1, 1).view(np.uint8)
    known = np.packbits(~np.isnan(values), bitorder="little")
    offsets = np.arange(count + 1, dtype=np.int64) * _WIDTH
    buffers = [pa.py_buffer(known), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(_KIND, count, buffers)


def _keys_of_text(binary: pa.Array) -> pa.Array:
    """Return the keys of texts: plain words at once, numbers by Arrow, each other text by itself.

    The pieces stand one behind the other; `places` says where each row's key is among them.
    """
    binary = pc.cast(binary, _KIND)
    odd = _matches(binary, MORE_THAN_TEXT) | _matches(binary, _WORDS)
    number = _matches(binary, SIMPLE_NUMBER)
    rest = odd & ~number
    absent = np.asarray(binary.is_null())
    plain = ~odd & ~absent
    words = binary.filter(pa.array(plain))
    values = pc.cast(binary.filter(pa.array(number)), pa.float64())
    distinct = binary.filter(pa.array(rest)).dictionary_encode()
    pieces = [
        pc.binary_join_element_wise(pa.scalar(_MARKS["text"], _KIND), words, pa.scalar(b"", _KIND)),
        _keys_of_values("number", values.to_numpy(zero_copy_only=False)),
        _taken(_keys_of_objects(_texts(distinct.dictionary)), distinct.indices),
    ]
    places = np.full(len(binary), -1)
    for chosen, start in zip((plain, number, rest), _starts(pieces), strict=True):
        places[chosen] = start + np.arange(np.count_nonzero(chosen))
    return _choose(_join(pieces), places)


def _texts(cells: pa.Array) -> list[Any]:
    """Return bytes as they are: `canonical` reads them as text of any letters."""
    return list(cells.to_pylist())


def _starts(pieces: list[pa.Array]) -> list[int]:
    return [0, *np.cumsum([len(piece) for piece in pieces])[:-1].tolist()]


def _matches(binary: pa.Array, pattern: str) -> npt.NDArray[np.bool_]:
    found = pc.fill_null(pc.match_substring_regex(binary, pattern), fill_value=False)
    return np.asarray(found, bool)


def _join(pieces: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays(pieces) if pieces else pa.nulls(0, _KIND)


def _choose(keys: pa.Array, places: npt.NDArray[Any]) -> pa.Array:
    """Return the keys at places, null where a place is negative."""
    return keys.take(pa.array(np.maximum(places, 0), pa.int64(), mask=places < 0))


def _taken(keys: pa.Array, indices: pa.Array) -> pa.Array:
    """Return the keys that codes stand for; of codes of no value nobody has checked, null."""
    codes = np.asarray(pc.fill_null(pc.cast(whole(indices), pa.int64(), safe=False), -1))
    return _choose(keys, np.where((codes >= 0) & (codes < len(keys)), codes, -1))
