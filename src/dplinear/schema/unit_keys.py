"""The ids of a column that says whom a row belongs to, as keys: equal where ids mean the same.

Ids are read as levels are (`canonical`): 7, 7.0 and "007" are one id, since which of them a library
shows may depend on other rows; so are 1, "true", "yes" and "T"; "a" and "A" are two. Keys are
compared byte by byte, never by a hash alone. Unlike levels, decimal numbers of any length are told
apart (float64 would make one person of two, whom nothing then hides from each other), and so are
texts such as "123-45-6789", which are like dates of no known order: leading zeros say nothing.
Spans of time, which are no levels, are told apart exactly (`unit_spans`).

Promises, for every function here: the key of a cell depends on that cell alone, and nothing raises
or warns because of what a cell holds. A cell that means nothing has no key. Of a column of floats
it depends on what they are: ids beyond 2^53 were rounded before they came here.
"""

import decimal
import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.arrays import Floats
from dplinear.schema.canonical import canonical, days_of_datetimes, discreet
from dplinear.schema.cells import (
    MORE_THAN_TEXT,
    SIMPLE_NUMBER,
    Cells,
    as_floats,
    meanings,
    objects_of,
)
from dplinear.schema.storage import as_binary, coded, is_text, storage_of, whole
from dplinear.schema.unit_spans import (
    is_span,
    key_of_span,
    key_of_written,
    keys_of_spans,
)

_KIND = pa.large_binary()
_MARKS = {"number": b"n", "day": b"d", "time": b"c", "text": b"t", "identifier": b"u"}
_WORDS = r"^(?i:nan|na|n/a|null|epoch)|^$"  # that may mean nothing, and begin with no digit
_WIDTH = 9  # bytes of a number's key
_LONG = b"i"  # the mark of a whole number that may be no float64: its digits follow
_EXACT = 2.0**53  # from here on
_DIGITS = r"^-?[1-9][0-9]{16,24}$"  # all of them are beyond, and are digits of a key already
_MOST_DIGITS = 400  # of a key; longer numbers may be short texts
_TOLD_APART = 15  # digits: float64 tells any two decimal numbers of so many apart
_FINE = r"^-?[0-9.]{17}|^-?[0-9]{16,}[eE]"  # what may have more of them
_DECIMAL = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*+)(\.(?P<part>[0-9]*+))?(e(?P<shift>[+-]?[0-9]{1,18}))?",
    re.IGNORECASE,
)
_THREE = re.compile(r"\s*+([0-9]{1,7})([-/. ])([0-9]{1,2})([-/. ])([0-9]{1,7})\s*+")
_NO_BYTES: bytes | None = None


def keys_of(cells: Cells) -> pa.Array:
    """Return the key of each cell as bytes, null where it has none."""
    if isinstance(cells, np.ndarray):
        return _keys_of_array(cells)
    if isinstance(cells, pa.ChunkedArray):
        return _join([keys_of(chunk) for chunk in cells.chunks])
    if (shared := coded(cells)) is not None:
        return _taken(keys_of(shared[0]), shared[1])
    cells = storage_of(cells)
    if is_text(cells.type):
        return _keys_of_text(as_binary(cells))
    if is_span(cells.type):
        return keys_of_spans(cells)
    found = pa.nulls(len(cells), _KIND)
    for kind, values in meanings(cells):
        number = kind == "number"
        keys = _keys_of_numbers(cells, values) if number else _keys_of_values(kind, values)
        found = pc.coalesce(found, keys)
    return found


def _keys_of_array(cells: npt.NDArray[Any]) -> pa.Array:
    if isinstance(cells, np.ma.MaskedArray):
        keys, hidden = _keys_of_array(np.asarray(cells.data)), np.ma.getmaskarray(cells)
        return _choose(keys, np.where(hidden, -1, np.arange(len(cells))))
    kind = cells.dtype.kind
    if kind in "fiub":
        return _keys_of_numbers(cells, as_floats(cells))
    if kind == "M":
        return _keys_of_values("day", days_of_datetimes(cells))
    if kind == "m":
        return keys_of_spans(cells)
    return _keys_of_objects(objects_of(cells).tolist())


def _keys_of_objects(cells: list[Any]) -> pa.Array:
    seen: dict[str, bytes | None] = {}

    def key(cell: Any) -> bytes | None:
        if type(cell) is not str:
            return key_of_written(cell) or _key(cell)
        if cell not in seen:
            seen[cell] = _key(cell)
        return seen[cell]

    return pa.array(map(key, cells), _KIND)


@discreet(_NO_BYTES)
def _key(cell: Any) -> bytes | None:
    """Return the key of one cell, of any type."""
    span = key_of_span(cell)
    if span is not None:
        return span
    found = canonical(cell)
    if found is None:
        parts = _THREE.fullmatch(cell) if isinstance(cell, str) else None
        if parts is None:
            return None
        found = "text", "".join(part.lstrip("0") or part[-1] for part in parts.groups())
    kind, value = found
    if isinstance(value, str):
        return _MARKS[kind] + value.encode("utf-8", "surrogatepass")
    digits = _digits_of(cell, value) if kind == "number" else None
    if digits is None:
        return _MARKS[kind] + np.float64(value + 0.0).tobytes()  # −0 is 0
    return _LONG + digits.encode()


def _read_decimal(text: str) -> str | None:
    """Return the digits of a decimal number that is whole, without what says nothing."""
    found = _DECIMAL.fullmatch(text.strip())
    if found is None:
        return None
    part = (found["part"] or "").rstrip("0")
    zeros = int(found["shift"] or 0) - len(part)
    digits = (found["whole"] + part).lstrip("0")
    if zeros < 0:
        digits, cut = digits[:zeros], digits[zeros:]
        if cut.strip("0"):
            return None
        zeros = 0
    sign = "-" if found["sign"] == "-" else ""
    if len(digits) + zeros <= _MOST_DIGITS:
        return sign + digits + "0" * zeros
    short = digits.rstrip("0")
    return f"{sign}{short}e{zeros + len(digits) - len(short)}"


def _read_fine(text: str, value: float) -> str | None:
    """Return the digits of a decimal number that others may share a float64 with; None elsewhere.

    A text that is how libraries write that float64 is the float64.
    """
    found = _DECIMAL.fullmatch(text.strip())
    if found is None:
        return None
    digits = (found["whole"] + (found["part"] or "")).lstrip("0")
    short = digits.rstrip("0")
    if len(short) <= _TOLD_APART:
        return None
    shift = int(found["shift"] or 0) - len(found["part"] or "") + len(digits) - len(short)
    own = f"{'-' if found['sign'] == '-' else ''}{short}e{shift}"
    return None if own == _read_shortest(value) else own


def _read_shortest(value: float) -> str:
    """Return the fewest digits that say a float64, as `_read_fine` writes them."""
    sign, digits, shift = decimal.Decimal(repr(value)).normalize().as_tuple()
    return f"{'-' if sign else ''}{''.join(map(str, digits))}e{shift}"


def _digits_of(cell: Any, value: float) -> str | None:
    """Return the digits of a number that its float64 does not tell from others; None elsewhere.

    They are the cell's own, exactly, if it is a decimal number; otherwise those of its float64.
    """
    if isinstance(cell, np.longdouble) and np.isfinite(cell) and cell != np.longdouble(value):
        above, below = cell.as_integer_ratio()
        return _read_decimal(_decimal_of(above)) if below == 1 else f"{above}/{below}"
    if abs(value) < _EXACT:
        is_decimal = isinstance(cell, str | decimal.Decimal)
        return _read_fine(str(cell), value) if is_decimal else None
    own = None
    if isinstance(cell, str):
        own = _read_decimal(cell)
        if own is None and cell.strip()[:2].lower() in {"0x", "0b"}:
            own = _read_decimal(_decimal_of(int(cell.strip(), 0)))  # as `canonical` reads it
    elif isinstance(cell, decimal.Decimal):
        own = _read_decimal(str(cell))
    elif isinstance(cell, int | np.integer) or (
        isinstance(cell, np.longdouble) and np.isfinite(cell) and cell == np.rint(cell)
    ):
        own = _read_decimal(_decimal_of(int(cell)))
    if own is None and isinstance(cell, str | decimal.Decimal):
        own = _read_fine(str(cell), value)  # no whole number
    if own is None and math.isfinite(value):
        own = _decimal_of(int(value))
    return own


def _decimal_of(whole: int) -> str:
    """Return a whole number's digits; Python itself refuses to print many."""
    return str(decimal.Decimal(whole))


def _keys_of_numbers(cells: Any, values: Floats) -> pa.Array:
    """Return the keys of numbers in an Arrow or NumPy array, whose nearest float64 are `values`."""
    keys = _keys_of_values("number", values)
    far = np.abs(values) >= _exact_below(cells)
    if isinstance(cells, pa.Array):
        far &= np.isfinite(values)  # no finite cell of Arrow's is beyond float64; endless days are
    elif cells.dtype.char == "g":
        far |= np.isfinite(cells) & (values != cells)
    long = np.flatnonzero(far)
    if not len(long):
        return keys
    own = cells[long] if isinstance(cells, np.ndarray) else cells.take(pa.array(long))
    if isinstance(own, np.ndarray) and own.dtype.kind in "iu":
        own = pa.array(own.astype(own.dtype.newbyteorder("=")))  # Arrow raises over the other order
    whole_numbers = isinstance(own, pa.Array) and pa.types.is_integer(own.type)
    exact = _marked(_LONG, pc.cast(own, pa.string())) if whole_numbers else _long_keys(own)
    indices = np.arange(len(values))
    indices[long] = len(values) + np.arange(len(long))
    return _choose(_join([keys, exact]), indices)


def _exact_below(cells: Any) -> float:
    """Return below which numbers of an array of this type have a float64 of their own."""
    if not isinstance(cells, pa.Array) or not pa.types.is_decimal(cells.type):
        return _EXACT
    return float(min(_EXACT, 10.0 ** (_TOLD_APART - cells.type.scale)))


def _long_keys(cells: Any) -> pa.Array:
    """Return the keys of long numbers, one after the other."""
    return _keys_of_objects(cells.to_pylist() if isinstance(cells, pa.Array) else list(cells))


def _marked(mark: bytes, texts: pa.Array) -> pa.Array:
    """Return texts behind a mark, as keys."""
    empty = pa.scalar(b"", _KIND)
    return pc.binary_join_element_wise(pa.scalar(mark, _KIND), pc.cast(texts, _KIND), empty)


def _keys_of_values(kind: str, values: Floats) -> pa.Array:
    """Return the keys of float64 numbers of one kind, null for NaN."""
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

    The pieces stand one behind the other; `indices` says where each row's key is among them.
    """
    binary = pc.cast(binary, _KIND)
    odd = _matches(binary, MORE_THAN_TEXT) | _matches(binary, _WORDS)
    long, number = _matches(binary, _DIGITS), _matches(binary, SIMPLE_NUMBER)
    number &= ~long
    numbers = binary.filter(pa.array(number))
    parsed = pc.cast(numbers, pa.float64()).to_numpy(zero_copy_only=False)
    small = (np.abs(parsed) < _EXACT) & ~_matches(numbers, _FINE)
    number[number] = small
    rest = odd & ~number & ~long
    plain = ~odd & ~np.asarray(binary.is_null())
    distinct = binary.filter(pa.array(rest)).dictionary_encode()
    pieces = [
        _marked(_MARKS["text"], binary.filter(pa.array(plain))),
        _marked(_LONG, binary.filter(pa.array(long))),
        _keys_of_values("number", parsed[small]),
        _taken(_keys_of_objects(_texts(distinct.dictionary)), distinct.indices),
    ]
    indices = np.full(len(binary), -1)
    for chosen, start in zip((plain, long, number, rest), _starts(pieces), strict=True):
        indices[chosen] = start + np.arange(np.count_nonzero(chosen))
    return _choose(_join(pieces), indices)


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


def _choose(keys: pa.Array, indices: npt.NDArray[Any]) -> pa.Array:
    """Return the keys at places, null where a place is negative."""
    return keys.take(pa.array(np.maximum(indices, 0), pa.int64(), mask=indices < 0))


def _taken(keys: pa.Array, indices: pa.Array) -> pa.Array:
    """Return the keys that codes stand for; of codes of no value nobody has checked, null."""
    codes = np.asarray(pc.fill_null(pc.cast(whole(indices), pa.int64(), safe=False), -1))
    return _choose(keys, np.where((codes >= 0) & (codes < len(keys)), codes, -1))
