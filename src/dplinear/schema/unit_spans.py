"""Spans of time as ids: whole attoseconds, in whatever unit a library holds them.

Seconds, microseconds and days of NumPy, pandas, Polars, Arrow and Python are one id where they are
as long, exactly. So are DuckDB's intervals, whose months have 30 days, and years 12 months, as
databases compare them. Spans of NumPy's that have no unit are ids of their own.

Promises, for every function here: what becomes of a cell depends on that cell alone, and nothing
raises or warns because of what a cell holds. Spans are no numbers, dates or levels.
"""

import datetime as dt
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dplinear.schema.canonical import discreet
from dplinear.schema.storage import whole

SPAN = b"s"  # the mark of their keys: attoseconds in digits follow
# How one is written in a column of text, where an object of another kind made it one: behind bytes
# that begin no text.
_WRITTEN = b"\xff\xfespan:"
_KIND = pa.large_binary()
_SECOND = 10**18
_DAY = 86_400 * _SECOND
_DAYS_OF_A_MONTH = 30
_ATTOSECONDS = {
    "as": 1,
    "fs": 10**3,
    "ps": 10**6,
    "ns": 10**9,
    "us": 10**12,
    "ms": 10**15,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3_600 * _SECOND,
    "D": _DAY,
    "W": 7 * _DAY,
    "M": _DAYS_OF_A_MONTH * _DAY,
    "Y": 12 * _DAYS_OF_A_MONTH * _DAY,
}
_INTERVAL = struct.Struct("=iiq")  # Arrow's: months, days, nanoseconds
_NAT = np.iinfo(np.int64).min  # the tick that is no span in NumPy
_NO_KEY: bytes | None = None


def is_span(kind: pa.DataType) -> bool:
    """Return whether cells of a type are spans of time."""
    return bool(pa.types.is_duration(kind) or pa.types.is_interval(kind))


def keys_of_spans(cells: npt.NDArray[Any] | pa.Array) -> pa.Array:
    """Return the key of each span of an array, null where it has none."""
    if isinstance(cells, np.ndarray):
        unit, step = np.datetime_data(cells.dtype)
        return _keys_of_ticks(pa.array(cells.astype(np.int64)), unit, step)
    whole(cells)
    if pa.types.is_duration(cells.type):
        return _keys_of_ticks(pc.cast(cells, pa.int64()), cells.type.unit, 1)
    stored = pa.Array.from_buffers(
        pa.binary(_INTERVAL.size), len(cells), cells.buffers(), offset=cells.offset
    )
    distinct = stored.dictionary_encode()
    keys = [_key(_attoseconds(*_INTERVAL.unpack(cell))) for cell in distinct.dictionary.to_pylist()]
    return pa.array(keys, _KIND).take(distinct.indices)


def _keys_of_ticks(ticks: pa.Array, unit: str, step: int) -> pa.Array:
    distinct = ticks.dictionary_encode()
    keys = [_key_of_tick(tick, unit, step) for tick in distinct.dictionary.to_pylist()]
    return pa.array(keys, _KIND).take(distinct.indices)


def _key_of_tick(tick: int, unit: str, step: int) -> bytes | None:
    if tick == _NAT:
        return None
    if unit not in _ATTOSECONDS:  # "generic"
        return SPAN + b"%d of no unit" % (tick * step)
    return _key(tick * step * _ATTOSECONDS[unit])


def _key(attoseconds: int) -> bytes:
    return SPAN + b"%d" % attoseconds


def _attoseconds(months: int, days: int, nanoseconds: int) -> int:
    return (months * _DAYS_OF_A_MONTH + days) * _DAY + nanoseconds * _ATTOSECONDS["ns"]


@discreet(_NO_KEY)
def key_of_span(cell: Any) -> bytes | None:
    """Return the key of one cell, of any type; None where it is no span."""
    if isinstance(cell, np.timedelta64):
        unit, step = np.datetime_data(cell.dtype)
        return _key_of_tick(int(cell.astype(np.int64)), unit, step)
    if isinstance(cell, dt.timedelta):
        seconds = cell.days * 86_400 + cell.seconds
        fine = getattr(cell, "nanoseconds", 0)  # pandas' own
        ticks = (seconds * 10**6 + cell.microseconds) * 1_000 + fine
        return _key(int(ticks) * _ATTOSECONDS["ns"])
    return _key(_attoseconds(*cell)) if isinstance(cell, pa.MonthDayNano) else None


def write_span(cell: Any) -> bytes | None:
    """Return how a span is written in a column of text; None where a cell is none."""
    key = key_of_span(cell)
    return None if key is None else _WRITTEN + key.removeprefix(SPAN)


def key_of_written(cell: Any) -> bytes | None:
    """Return the key of a span that was written; None where a cell is none."""
    if type(cell) is not bytes or not cell.startswith(_WRITTEN):
        return None
    return SPAN + cell.removeprefix(_WRITTEN)


def objects_of_spans(cells: npt.NDArray[Any] | pa.Array) -> npt.NDArray[Any]:
    """Return spans as objects that are read alike: NumPy's own cast makes integers of some."""
    if isinstance(cells, pa.Array):
        if pa.types.is_duration(cells.type):
            ticks = pc.fill_null(pc.cast(whole(cells), pa.int64()), _NAT)
            return objects_of_spans(np.asarray(ticks).view(f"m8[{cells.type.unit}]"))
        flat: list[Any] = whole(cells).to_pylist()
    else:
        flat = list(cells.ravel())
    found = np.empty(len(flat), dtype=object)
    for index, cell in enumerate(flat):
        found[index] = cell
    return found.reshape(cells.shape) if isinstance(cells, np.ndarray) else found
