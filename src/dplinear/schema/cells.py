"""From the table cells of one column to numbers or level codes, a whole column at a time.

Promises, for every function here: it never raises or warns because of what a cell holds, and the
result for a cell depends on that cell alone. That must hold although readers choose a column's
type by looking at all of it (one bad cell turns a column of integers into text), so all roads end
in what `canonical` says of a single cell, bit for bit: numbers in rounded float64, dates in whole
microseconds, levels by their keys.
"""

import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.arrays import Floats
from dplinear.schema.canonical import (
    FIRST_DAY,
    LAST_DAY,
    MICROSECONDS_PER_DAY,
    canonical,
    day_in,
    days_of_datetimes,
    days_of_microseconds,
    number_in,
    text_in,
    text_of,
)
from dplinear.schema.columns import Category, Numeric
from dplinear.schema.storage import (
    as_binary,
    by_chunk,
    coded,
    is_text,
    spread,
    storage_of,
    whole,
)
from dplinear.schema.unit_spans import is_span, objects_of_spans

Codes = npt.NDArray[np.int64]
Cells = Any  # a pyarrow.Array or ChunkedArray, or a NumPy array of one dimension

# Text that Arrow converts without fail; anything else is looked at cell by cell.
SIMPLE_NUMBER = r"^-?[0-9]{1,25}(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?$"
# Text that may be a number, a date or a time, however it is spelt: all that does not begin with a
# letter, words of truth values and infinities, and identifiers.
MORE_THAN_TEXT = (
    r"^[^A-Za-z]|^(?i:true|false|yes|no|t|f|inf|infinity)([^A-Za-z]|$)|^[A-Fa-f][0-9A-Fa-f]{7}-"
)
_MICROSECONDS = {"s": 1e6, "ms": 1e3}
_FLOAT64 = pa.float64()
_ANY_NUMBER = Numeric("number", Fraction(0), Fraction(1), Fraction(0))


def _floats(values: Iterable[float], count: int) -> Floats:
    return np.fromiter(values, np.float64, count)


def _is_day(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def numbers_of(column: Numeric, cells: Cells) -> Floats:
    """Return the raw numbers of a column's cells, NaN where there is none."""
    if isinstance(cells, np.ndarray):
        return _numbers_of_array(column, cells)
    if isinstance(cells, pa.ChunkedArray):
        return by_chunk(partial(numbers_of, column), cells)
    kind = cells.type
    if kind == _FLOAT64 and column.type == "number" and cells.null_count == 0:
        return np.asarray(whole(cells).to_numpy())  # the common case, without a copy
    if (shared := coded(cells)) is not None:
        return spread(numbers_of(column, shared[0]), shared[1], np.nan)
    cells = storage_of(cells)
    if is_text(cells.type):
        return _numbers_of_text(column, cells)
    return _days_of_arrow(cells) if column.type == "date" else _plain_numbers(cells)


def _plain_numbers(cells: pa.Array) -> Floats:
    """Return the numbers of Arrow cells that are no text; types that have none are missing."""
    kind = whole(cells).type
    if pa.types.is_boolean(kind):
        cells = pc.cast(cells, pa.uint8())
    elif pa.types.is_decimal(kind):  # by its text: Arrow's own conversion is not correctly rounded
        return _numbers_of_text(_ANY_NUMBER, pc.cast(cells, pa.string()))
    elif pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return _endless(cells)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.full(len(cells), np.nan)
    return np.asarray(cells.to_numpy(zero_copy_only=False), dtype=np.float64)


def _endless(cells: pa.Array) -> Floats:
    """Return the infinities of dates and moments, as DuckDB has them for "inf"; NaN for others.

    Its moments are microseconds; of other units the last tick is only a far date.
    """
    short = pa.types.is_date32(cells.type)
    if not short and cells.type.unit != "us":
        return np.full(len(cells), np.nan)
    ticks = np.asarray(pc.fill_null(pc.cast(cells, pa.int32() if short else pa.int64()), 0))
    end = 2**31 - 1 if short else 2**63 - 1
    return np.where(ticks == end, np.inf, np.where(ticks == -end, -np.inf, np.nan))


def _numbers_of_array(column: Numeric, cells: npt.NDArray[Any]) -> Floats:
    if isinstance(cells, np.ma.MaskedArray):
        filled = _numbers_of_array(column, np.asarray(cells.data))
        return np.where(np.ma.getmaskarray(cells), np.nan, filled)
    code = cells.dtype.kind
    if code in "mM":
        days = code == "M" and column.type == "date"
        return days_of_datetimes(cells) if days else np.full(len(cells), np.nan)
    if code in "fiub" and column.type != "date":
        return as_floats(cells)
    read = _reader(column)
    return _floats((read(cell) for cell in objects_of(cells).tolist()), len(cells))


def objects_of(cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return cells as Python's own, masks kept; text with a letter beyond Unicode is missing.

    NumPy looks at no letter before it makes text of them, which raises.
    """
    if isinstance(cells, np.ma.MaskedArray):
        return np.ma.MaskedArray(objects_of(cells.data), mask=np.ma.getmaskarray(cells))
    if cells.dtype.kind != "U" or not cells.dtype.itemsize:
        return cells.astype(object)
    letters = np.ascontiguousarray(cells, cells.dtype.newbyteorder("="))
    points = letters.reshape(-1, 1).view(np.uint32)
    known = (points <= sys.maxunicode).all(axis=1).reshape(cells.shape)
    found = np.full(cells.shape, None, dtype=object)
    found[known] = letters[known].astype(object)
    return found


def as_floats(cells: npt.NDArray[Any]) -> Floats:
    """Return float64, without a word of a signalling NaN or a number that is too long for it."""
    with np.errstate(all="ignore"):
        return cells.astype(np.float64, copy=False)


def _reader(column: Numeric) -> Callable[[Any], float]:
    return day_in if column.type == "date" else number_in


def _numbers_of_text(column: Numeric, cells: pa.Array) -> Floats:
    read = _reader(column)
    binary = as_binary(cells)
    if column.type not in {"number", "integer"}:
        return _by_distinct(read, binary)
    simple = pc.fill_null(pc.match_substring_regex(binary, SIMPLE_NUMBER), fill_value=False)
    # By a filter: in old versions of Arrow `if_else` misreads slices of an array.
    parsed = pc.cast(binary.filter(simple), pa.float64())
    result, chosen = np.empty(len(binary)), np.asarray(simple)
    result[chosen] = parsed.to_numpy(zero_copy_only=False)
    if not chosen.all():
        result[~chosen] = _by_distinct(read, binary.filter(pc.invert(simple)))
    return result


def _by_distinct(read: Callable[[Any], float], binary: pa.Array) -> Floats:
    """Return what a reader of single cells makes of a column, each distinct cell read once."""
    distinct = binary.dictionary_encode()
    values = _floats(map(read, distinct.dictionary.to_pylist()), len(distinct.dictionary))
    return spread(values, distinct.indices, np.nan)


def array_of(cells: Any) -> npt.NDArray[Any]:
    """Return an Arrow column as an array that is read alike, dates as text, lists as missing.

    Spans of time stay what they are, which is no number, but may be an id. Arrow's own conversion
    raises over a broken letter or a far date, and takes a missing word for another one.
    """
    if isinstance(cells, pa.ChunkedArray):
        return by_chunk(array_of, cells)
    cells = storage_of(cells)
    kind = cells.type
    if (shared := coded(cells)) is not None:
        values = array_of(shared[0])
        return spread(values, shared[1], None if values.dtype == object else np.nan)
    if pa.types.is_boolean(kind):
        return array_of(pc.cast(cells, pa.uint8()))  # of numbers, whether some are missing or not
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(whole(cells).to_numpy(zero_copy_only=False))
    if is_span(kind):
        return objects_of_spans(cells)
    array = np.full(len(cells), None, dtype=object)
    if is_text(kind):
        array[:] = [text_in(cell) for cell in as_binary(cells).to_pylist()]
    else:
        for what, values in meanings(cells):
            _put_texts(array, what, values)
    return array


def texts_of_datetimes(cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return NumPy's datetimes as objects that are read alike: texts, or None."""
    array = np.full(len(cells), None, dtype=object)
    _put_texts(array, "day", days_of_datetimes(cells))
    return array


def _put_texts(array: npt.NDArray[Any], kind: str, values: Floats) -> None:
    known = np.flatnonzero(~np.isnan(values))
    array[known] = [text_of(kind, float(value)) for value in values[known]]


def meanings(cells: pa.Array) -> list[tuple[str, Floats]]:
    """Return the keys of Arrow cells that are no text: values of each kind, NaN where none."""
    found = [("number", _plain_numbers(cells))]
    if _is_day(cells.type):
        found.append(("day", _days_of_arrow(cells)))
    if pa.types.is_time(cells.type):
        found.append(("time", _times_of_arrow(cells)))
    return found


def _days_of_arrow(cells: pa.Array) -> Floats:
    if not _is_day(cells.type):
        return np.full(len(cells), np.nan)
    whole(cells)
    if pa.types.is_date32(cells.type):
        days = np.asarray(pc.cast(cells, pa.int32()).to_numpy(zero_copy_only=False), np.float64)
        return np.where((days >= FIRST_DAY) & (days <= LAST_DAY), days, np.nan)
    unit = "ms" if pa.types.is_date64(cells.type) else cells.type.unit
    ticks = pc.cast(cells, pa.int64())
    days = days_of_microseconds(_microseconds_of(np.asarray(pc.fill_null(ticks, 0)), unit))
    return np.where(np.asarray(ticks.is_null()), np.nan, days)


def _times_of_arrow(cells: pa.Array) -> Floats:
    width = pa.int32() if pa.types.is_time32(cells.type) else pa.int64()
    times = _ticks_of(pc.cast(cells, width), cells.type.unit)
    return np.where((times >= 0) & (times <= MICROSECONDS_PER_DAY), times, np.nan)


def _ticks_of(cells: pa.Array, unit: str) -> Floats:
    ticks = pc.cast(cells, pa.int64())
    values = _microseconds_of(np.asarray(pc.fill_null(ticks, 0)), unit)
    return np.where(np.asarray(ticks.is_null()), np.nan, values)


def _microseconds_of(ticks: npt.NDArray[np.int64], unit: str) -> npt.NDArray[Any]:
    """Return whole microseconds: a reader may change the unit, never the bits."""
    if unit in {"us", "ns"}:
        return ticks // (1000 if unit == "ns" else 1)
    return ticks.astype(np.float64) * _MICROSECONDS[unit]


class _Levels:
    """The levels of a category by their keys, and by the text that nearly all cells have."""

    def __init__(self, levels: tuple[str | Fraction, ...]) -> None:
        keys = [canonical(level) for level in levels]
        self.codes = {key: code for code, key in enumerate(keys) if key is not None}
        self._names = [_name(level).encode() for level in levels]
        # Text of another spelling can only be a level that is more than a text.
        self._by_value = any(kind != "text" for kind, _ in self.codes)

    def code(self, cell: Any) -> int:
        """Return the index of a cell's level, -1 for none."""
        return self.codes.get(canonical(cell) or ("", ""), -1)

    def of_values(self, kind: str, values: Floats) -> Codes:
        """Return the index of each key of one kind."""
        known = sorted((key[1], code) for key, code in self.codes.items() if key[0] == kind)
        codes = np.full(len(values), -1, np.int64)
        if known:
            points = np.array([value for value, _ in known], np.float64)
            indices = np.minimum(np.searchsorted(points, values), len(points) - 1)
            same = points[indices] == values
            codes[same] = np.array([code for _, code in known], np.int64)[indices[same]]
        return codes

    def of_text(self, binary: pa.Array) -> Codes:
        """Return the index of each text; of those that are spelt otherwise, each distinct once."""
        names = pa.array(self._names, binary.type)
        found = pc.index_in(binary, value_set=names, skip_nulls=True)
        codes = np.asarray(pc.fill_null(found, -1)).astype(np.int64)
        rest = codes < 0
        if self._by_value and rest.any():
            meant = pc.fill_null(pc.match_substring_regex(binary, MORE_THAN_TEXT), fill_value=False)
            rest &= np.asarray(meant)
            distinct = binary.filter(pa.array(rest)).dictionary_encode()
            values = [self.code(cell) for cell in distinct.dictionary.to_pylist()]
            codes[rest] = spread(np.array(values, np.int64), distinct.indices, -1)
        return codes

    def of_objects(self, cells: list[Any]) -> Codes:
        """Return the index of each cell."""
        seen: dict[str, int] = {}

        def code(cell: Any) -> int:
            if type(cell) is not str:
                return self.code(cell)
            if cell not in seen:
                seen[cell] = self.code(cell)
            return seen[cell]

        return np.fromiter(map(code, cells), np.int64, len(cells))


def _name(level: str | Fraction) -> str:
    """Return the text that a level's cells most often are."""
    if isinstance(level, str):
        return level
    short = level.denominator == 1 and abs(level) < 2**63
    return str(level.numerator) if short else repr(number_in(level))


@lru_cache(maxsize=512)
def _levels_of(levels: tuple[str | Fraction, ...]) -> _Levels:
    return _Levels(levels)


def codes_of(column: Category, cells: Cells) -> Codes:
    """Return the index of each cell's level, -1 where the cell holds none of them."""
    levels = _levels_of(column.levels)
    if isinstance(cells, np.ndarray):
        hidden = np.ma.getmaskarray(cells) if isinstance(cells, np.ma.MaskedArray) else None
        codes = _codes_of_array(levels, np.asarray(cells))
        return codes if hidden is None else np.where(hidden, -1, codes)
    if isinstance(cells, pa.ChunkedArray):
        return by_chunk(partial(codes_of, column), cells)
    if (shared := coded(cells)) is not None:
        return spread(codes_of(column, shared[0]), shared[1], -1)
    cells = storage_of(cells)
    if is_text(cells.type):
        return levels.of_text(as_binary(cells))
    codes = np.full(len(cells), -1, np.int64)
    for kind, values in meanings(cells):
        codes = np.maximum(codes, levels.of_values(kind, values))
    return codes


def _codes_of_array(levels: _Levels, cells: npt.NDArray[Any]) -> Codes:
    kind = cells.dtype.kind
    if kind in "fiub":
        return levels.of_values("number", as_floats(cells))
    if kind == "M":
        return levels.of_values("day", days_of_datetimes(cells))
    if kind == "m":
        return np.full(len(cells), -1, np.int64)
    return levels.of_objects(objects_of(cells).tolist())
