"""From the cells of one column to numbers or level codes, one cell at a time.

Promises, for every function here: it never raises or warns because of what a cell holds, and the
result for a cell depends on that cell alone. That must hold although readers choose a column's
type by looking at all of it (one bad cell turns a column of integers into text), so text, integers
and objects that mean the same number give the same bits: all roads end in rounded float64.
"""

import datetime as dt
import decimal
import math
import numbers
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.schema.columns import MICROSECONDS_PER_DAY, Category, Column, Numeric, days

Floats = npt.NDArray[np.float64]
_T = TypeVar("_T")
Cells = Any  # a pyarrow.Array, or a NumPy array of one dimension

# Text that Arrow converts without fail; anything else is looked at cell by cell.
_SIMPLE_NUMBER = r"^-?[0-9]{1,25}(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?$"
_NUMBER = re.compile(
    r"\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|infinity)\s*", re.IGNORECASE
)
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "t": 1.0, "f": 0.0}
_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_NO_TEXT: str | None = None
_FLOAT64 = pa.float64()
_UNITS = (*_MICROSECONDS, "ns")


def _discreet(nothing: _T) -> Callable[[Callable[[Any], _T]], Callable[[Any], _T]]:
    """Let a reader return `nothing` for an object that raises whatever is asked of it."""

    def wrapped(read: Callable[[Any], _T]) -> Callable[[Any], _T]:
        @wraps(read)
        def reader(cell: Any) -> _T:  # noqa: ANN401 - a cell may hold anything
            try:
                return read(_plain(cell))
            except Exception:  # noqa: BLE001 - an error would tell that such a cell is there
                return nothing

        return reader

    return wrapped


def _plain(cell: Any) -> Any:  # noqa: ANN401
    """Return text or bytes of a class with its own ideas as plain ones; anything else as it is."""
    if isinstance(cell, str):
        return str.__str__(cell)
    return bytes.__getitem__(cell, slice(None)) if isinstance(cell, bytes) else cell


@_discreet(math.nan)
def number_in(cell: Any) -> float:  # noqa: ANN401
    """Return the number a cell holds, ±inf if it is too large, NaN if it is no number."""
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if isinstance(cell, str):
        # Some white space of the pattern's is none to float, whose message would quote the cell.
        return _as_float(cell) if _NUMBER.fullmatch(cell) else math.nan
    real = _real_of(cell)
    return (
        _as_float(real) if isinstance(real, numbers.Real | decimal.Decimal | np.bool_) else math.nan
    )


def _real_of(cell: Any) -> Any:  # noqa: ANN401
    """Return a cell, or the number it stands for where a frame wrote it in another type.

    One complex number makes a frame's whole column complex, so 1 + 0j is 1, as it was without that
    neighbour. NumPy counts spans of time among the integers, where frames say they are none.
    """
    if isinstance(cell, complex | np.complexfloating):
        return cell.real if cell.imag == 0 else None
    return None if isinstance(cell, np.timedelta64) else cell


def _as_float(cell: Any) -> float:  # noqa: ANN401
    try:
        return float(cell)
    except OverflowError:
        return -math.inf if cell < 0 else math.inf
    except Exception:  # noqa: BLE001 - a signalling NaN, or a number of a class with its own ideas
        return math.nan


@_discreet(math.nan)
def truth_in(cell: Any) -> float:  # noqa: ANN401
    """Return 1 for true, 0 for false, and whatever number the cell holds otherwise."""
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if isinstance(cell, str) and cell.strip().lower() in _TRUTH:
        return _TRUTH[cell.strip().lower()]
    return number_in(cell)


@_discreet(math.nan)
def day_in(cell: Any) -> float:  # noqa: ANN401
    """Return the days since 1970-01-01 of a date, a time or ISO 8601 text; otherwise NaN."""
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, str):
        cell = dt.datetime.fromisoformat(cell.strip())
    if not isinstance(cell, dt.date):
        return math.nan
    # As `_days_of_ticks` does it, bit for bit: whole microseconds, then one division.
    return float(days(cell) * MICROSECONDS_PER_DAY) / MICROSECONDS_PER_DAY


@_discreet(_NO_TEXT)
def text_in(cell: Any) -> str | None:  # noqa: ANN401, PLR0911 - a type each
    """Return a cell as the text its category is named by; None if it holds nothing."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "surrogateescape")
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    cell = _real_of(cell)
    if isinstance(cell, numbers.Integral):
        return str(int(cell))  # None where that is more digits than Python writes
    if isinstance(cell, numbers.Real | decimal.Decimal):
        number = number_in(cell)
        if not math.isfinite(number):
            return None
        return str(int(number)) if number == int(number) else repr(number)
    return None


_READERS = {"number": number_in, "integer": number_in, "boolean": truth_in, "date": day_in}


def _floats(values: Iterable[float], count: int) -> Floats:
    return np.fromiter(values, np.float64, count)


def readable(column: Column, kind: pa.DataType) -> bool:
    """Return whether cells of an Arrow type mean something in this column (else: missing)."""
    if pa.types.is_dictionary(kind):
        return readable(column, kind.value_type)
    if _is_text(kind) or pa.types.is_null(kind):
        return True
    if isinstance(column, Numeric) and column.type == "date":
        return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(plain or pa.types.is_decimal(kind))


def series_cells(column: Column, series: Any) -> Cells:  # noqa: ANN401 - pandas is not imported here
    """Return the cells of a pandas series.

    Its own Arrow export raises on columns of mixed objects, that is, because of values. It also
    chooses types by looking at values (a column of nothing but None is of floats), so a type that
    means nothing in a column makes its cells missing.
    """
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufO":
        return series.to_numpy()
    levels = getattr(series.dtype, "categories", None)
    if levels is not None and levels.dtype == object and not all(type(a) is str for a in levels):
        return series.to_numpy(dtype=object)  # some mixtures of objects crash Arrow's own reading
    try:
        cells = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        return series.to_numpy(dtype=object)
    return joined(cells) if readable(column, cells.type) else pa.nulls(len(series))


def joined(cells: Any) -> Cells:  # noqa: ANN401 - an array, or chunks of one
    """Return chunks as one array."""
    if not isinstance(cells, pa.ChunkedArray):
        return cells
    if cells.num_chunks == 1:
        return cells.chunk(0)
    whole = cells.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    plain = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(
        plain or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    )


def numbers_of(column: Numeric, cells: Cells) -> Floats:  # noqa: PLR0911 - a type each
    """Return the raw numbers of a column's cells, NaN where there is none."""
    if isinstance(cells, np.ndarray):
        return _numbers_of_array(column, cells)
    kind = cells.type
    if kind == _FLOAT64 and column.type == "number" and cells.null_count == 0:
        return np.asarray(cells.to_numpy())  # the common case, without a copy
    if pa.types.is_null(kind) or not readable(column, kind):
        return np.full(len(cells), np.nan)
    if pa.types.is_dictionary(kind):
        return _by_dictionary(column, cells)
    if _is_text(kind):
        return _numbers_of_text(column, cells)
    if column.type == "date":
        return _days_of_arrow(cells)
    if pa.types.is_boolean(kind):
        cells = pc.cast(cells, pa.uint8())
    elif pa.types.is_decimal(kind):  # by its text: Arrow's own conversion is not correctly rounded
        return _numbers_of_text(column, pc.cast(cells, pa.string()))
    return np.asarray(cells.to_numpy(zero_copy_only=False), dtype=np.float64)


def _numbers_of_array(column: Numeric, cells: npt.NDArray[Any]) -> Floats:
    if isinstance(cells, np.ma.MaskedArray):
        filled = _numbers_of_array(column, np.asarray(cells.data))
        return np.where(np.ma.getmaskarray(cells), np.nan, filled)
    code = cells.dtype.kind
    if code == "M":
        return _days_of_datetimes(cells) if column.type == "date" else np.full(len(cells), np.nan)
    if code in "fiub" and column.type != "date":
        return cells.astype(np.float64, copy=False)
    read = _READERS[column.type]
    return _floats((read(cell) for cell in cells.tolist()), len(cells))


def _by_dictionary(column: Numeric, cells: pa.DictionaryArray) -> Floats:
    values = numbers_of(column, cells.dictionary)
    codes = np.asarray(pc.fill_null(pc.cast(cells.indices, pa.int64()), len(values)))
    return np.asarray(np.append(values, np.nan)[codes])


def _numbers_of_text(column: Numeric, cells: pa.Array) -> Floats:
    if column.type not in {"number", "integer"}:
        distinct = cells.dictionary_encode() if not _is_view(cells.type) else None
        read = _READERS[column.type]
        if distinct is None:
            return _floats((read(cell) for cell in _bytes_of(cells)), len(cells))
        values = _floats(map(read, _bytes_of(distinct.dictionary)), len(distinct.dictionary))
        codes = np.asarray(pc.fill_null(pc.cast(distinct.indices, pa.int64()), len(values)))
        return np.asarray(np.append(values, np.nan)[codes])
    binary = _as_binary(cells)
    if binary is None:
        return _floats((number_in(cell) for cell in _bytes_of(cells)), len(cells))
    simple = pc.fill_null(pc.match_substring_regex(binary, _SIMPLE_NUMBER), fill_value=False)
    # By a filter: in old versions of Arrow `if_else` misreads slices of an array.
    parsed = pc.cast(binary.filter(simple), pa.float64())
    result, chosen = np.empty(len(binary)), np.asarray(simple)
    result[chosen] = parsed.to_numpy(zero_copy_only=False)
    rest = np.flatnonzero(~chosen)
    result[rest] = _floats((number_in(binary[int(i)].as_py()) for i in rest), len(rest))
    return result


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _as_binary(cells: pa.Array) -> pa.Array | None:
    """Return text as bytes (no check of its encoding), or None where this Arrow cannot."""
    kind = pa.types
    large = kind.is_large_string(cells.type) or kind.is_large_binary(cells.type)
    try:
        return pc.cast(cells, pa.large_binary() if large else pa.binary())
    except pa.ArrowNotImplementedError:
        return None


def _bytes_of(cells: pa.Array) -> Iterable[Any]:
    binary = _as_binary(cells)
    cells_or_bytes: list[Any] = (cells if binary is None else binary).to_pylist()
    return cells_or_bytes


def array_of(cells: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - as for `joined`
    """Return an Arrow column as an array that is read alike, times and lists as missing.

    Arrow's own conversion raises over a broken letter, and takes a missing word for another one.
    """
    cells = joined(cells)
    kind = cells.type
    if pa.types.is_dictionary(kind):
        return array_of(cells.dictionary_decode())
    if pa.types.is_boolean(kind):
        return array_of(pc.cast(cells, pa.uint8()))  # of numbers, whether some are missing or not
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(cells.to_numpy(zero_copy_only=False))
    array = np.full(len(cells), None, dtype=object)
    if _is_text(kind):
        array[:] = [text_in(cell) for cell in _bytes_of(cells)]
    elif pa.types.is_decimal(kind):
        array[:] = cells.to_pylist()
    return array


def _days_of_arrow(cells: pa.Array) -> Floats:
    if pa.types.is_date32(cells.type):
        return np.asarray(pc.cast(cells, pa.int32()).to_numpy(zero_copy_only=False), np.float64)
    unit = "ms" if pa.types.is_date64(cells.type) else cells.type.unit
    ticks = pc.cast(cells, pa.int64())
    values = _days_of_ticks(np.asarray(pc.fill_null(ticks, 0)), unit)
    return np.where(np.asarray(ticks.is_null()), np.nan, values)


def _days_of_ticks(ticks: npt.NDArray[np.int64], unit: str) -> Floats:
    """Return days, by way of whole microseconds: a reader may change the unit, never the bits."""
    if unit == "ns":
        return (ticks // 1000).astype(np.float64) / MICROSECONDS_PER_DAY
    return ticks.astype(np.float64) * _MICROSECONDS[unit] / MICROSECONDS_PER_DAY


def _days_of_datetimes(cells: npt.NDArray[Any]) -> Floats:
    unit, step = np.datetime_data(cells.dtype)
    if unit not in _UNITS or step != 1:
        cells, unit = cells.astype("datetime64[s]"), "s"
    return np.where(np.isnat(cells), np.nan, _days_of_ticks(cells.astype(np.int64), unit))


def codes_of(column: Category, cells: Cells) -> npt.NDArray[np.int64]:
    """Return the index of each cell's level, -1 where the cell holds none of them."""
    if isinstance(column.levels[0], Fraction):
        return _codes_of_numbers(column, cells)
    levels = [str(level) for level in column.levels]
    if isinstance(cells, np.ndarray):
        hidden = np.ma.getmaskarray(cells) if isinstance(cells, np.ma.MaskedArray) else None
        codes = _codes_of_objects(levels, np.asarray(cells).tolist())
        return codes if hidden is None else np.where(hidden, -1, codes)
    if not readable(column, cells.type):
        return np.full(len(cells), -1, np.int64)
    if pa.types.is_dictionary(cells.type):
        values = codes_of(column, cells.dictionary)
        indices = np.asarray(pc.fill_null(pc.cast(cells.indices, pa.int64()), len(values)))
        return np.asarray(np.append(values, -1)[indices])
    binary = _as_binary(cells) if _is_text(cells.type) else None
    if binary is None:
        return _codes_of_objects(levels, cells.to_pylist())
    names = pa.array([level.encode() for level in levels], binary.type)
    codes = pc.fill_null(pc.index_in(binary, value_set=names, skip_nulls=True), -1)
    return np.asarray(codes).astype(np.int64)


def _codes_of_objects(levels: list[str], cells: list[Any]) -> npt.NDArray[np.int64]:
    index: dict[str | None, int] = {level: code for code, level in enumerate(levels)}
    return np.fromiter((index.get(text_in(cell), -1) for cell in cells), np.int64, len(cells))


def _codes_of_numbers(column: Category, cells: Cells) -> npt.NDArray[np.int64]:
    stand_in = Numeric("number", Fraction(0), Fraction(1), Fraction(0))
    values = numbers_of(stand_in, cells)
    codes = np.full(len(values), -1, np.int64)
    for code, level in enumerate(column.levels):
        codes[values == float(level)] = code
    return codes
