"""What one table cell means, in one form, whatever type a library gave its column.

pandas, Polars, DuckDB, Dask and Arrow choose a column's type by looking at all of its cells, so one
row decides whether another row's "02139" comes as text or as the integer 2139, "True" as text or as
a truth value, "2020-01-01" as text, a date or a time. What a row is read as must not depend on that
choice. So every cell is first brought to a key, and only keys are compared.

Requires: a cell of any type at all.
Promises: for each text t and each value v that one of those libraries makes of t,
`canonical(t) == canonical(v)`; nothing raises or warns because of what a cell holds. That holds
for numbers (also hexadecimal and binary ones, which DuckDB reads), words of truth values,
infinities, identifiers (UUID) in either case, dates and times that begin with a year of four
digits, with an offset or without, and times of day. It does not hold for moments with the name of
a zone whose clocks change, which DuckDB reads by rules of its own (docs/schema.md). Any other way
to write a date is read by some library, day or month first as other rows will have it, so such a
text has no key at all, nor has a word that Arrow's reader takes for a missing cell.
"""

import datetime as dt
import decimal
import math
import numbers
import re
import uuid
from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECONDS_PER_DAY = 86_400_000_000
_FIRST = EPOCH.toordinal()
FIRST_DAY = dt.date.min.toordinal() - _FIRST
LAST_DAY = dt.date.max.toordinal() - _FIRST
# In microseconds: the first moment of year 1, and that of year 10000. Before it come moments that
# are no float64 number of days, and are rounded to the latest that is.
_FIRST_MOMENT, _END = FIRST_DAY * MICROSECONDS_PER_DAY, (LAST_DAY + 1) * MICROSECONDS_PER_DAY
_LATEST = math.nextafter(LAST_DAY + 1.0, 0.0)
_BESIDE = 64  # microseconds: floats of days are at most 41 of them apart

# What kind of thing a cell means, and which: numbers by their float64, dates in days since
# 1970-01-01, times of day in microseconds, anything else by its text.
Key = tuple[str, float | str]
_T = TypeVar("_T")

# NumPy's units of time: those of a calendar, those of less than a millisecond, and all others in
# microseconds. Years and months are counted from 1970; so many are far beyond 9999.
_CALENDAR, _FAR = ("Y", "M"), 200_000
_FINER = {"us": 1, "ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
_COARSER = {"ms": 1e3, "s": 1e6, "m": 6e7, "h": 3.6e9, "D": 8.64e10, "W": 6.048e11}

# Runs never give back what they took: a long cell that is no number takes one walk through it.
_NUMBER = re.compile(
    r"\s*+[+-]?(([0-9]++(\.[0-9]*+)?|\.[0-9]++)([eE][+-]?[0-9]++)?|inf|infinity)\s*+",
    re.IGNORECASE,
)
_LITERAL = re.compile(r"0x[0-9a-f]{1,400}|0b[01]{1,1600}", re.IGNORECASE)
_LONGEST_LITERAL = 1602
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "t": 1.0, "f": 0.0}
# Arrow's reader takes these for missing cells of a column of numbers, and for words beside text.
_INDEFINITE = frozenset({"-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN"})
_MISSING = _INDEFINITE | {"", "#N/A", "#N/A N/A", "#NA", "N/A", "NA", "NULL", "n/a", "null"}
_DIGIT_FIRST = re.compile(r"\s*+[0-9]")
_NO_NUMBER = re.compile(r"\s*+[+-]?nan\s*+", re.IGNORECASE)
_CLOCK = (
    r"(?P<h>[0-9]{1,2}):(?P<m>[0-9]{1,2})(:(?P<s>[0-9]{1,2})([.,](?P<f>[0-9]+))?)?"
    r"|(?P<H>[0-9]{2})((?P<M>[0-9]{2})((?P<S>[0-9]{2})([.,](?P<F>[0-9]+))?)?)?"
)
_DATE = re.compile(
    r"\s*(?P<year>[0-9]{4})(?P<dash>[-/. ])(?P<month>[0-9]{1,2})(?P=dash)(?P<day>[0-9]{1,2})"
    rf"((\s*T|\s+)({_CLOCK})"
    r"\s*(?P<zone>Z|(Etc/)?(UTC|GMT|UCT)|Zulu|Universal|Greenwich|(?P<sign>[+-])(?P<zh>[0-9]{2})(:?(?P<zm>[0-9]{2}))?)?)?\s*",
    re.IGNORECASE,
)
_TIME = re.compile(r"\s*+([0-9]{1,2}):([0-9]{1,2})(:([0-9]{1,2})([.,]([0-9]++))?)?\s*+")
_LIKE_A_DATE = re.compile(
    r"\s*[+-]?[0-9]{1,7}\s*([-/.]|\s)\s*[0-9]{1,2}\s*([-/.]|\s)\s*[0-9]{1,7}([\sTZ(+].*)?"
    r"|\s*epoch\s*",
    re.DOTALL | re.IGNORECASE,
)
# As DuckDB knows them among texts: a type that has no capital letters.
_IDENTIFIER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_IDENTIFIER_LENGTH = 36
_EPOCH = "epoch"  # a word of DuckDB's for the first of January 1970
_LONGEST_DATE = 100  # characters: patterns with runs of white space are slow on longer ones
_NO_KEY: Key | None = None
_NO_TEXT: str | None = None


def days(value: dt.date) -> Fraction:
    """Return a date or time as days since 1970-01-01 (times without a zone are taken as UTC)."""
    if not isinstance(value, dt.datetime):
        return Fraction(value.toordinal() - EPOCH.toordinal())
    moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return Fraction((moment - EPOCH) // dt.timedelta(microseconds=1), MICROSECONDS_PER_DAY)


def discreet(nothing: _T) -> Callable[[Callable[[Any], _T]], Callable[[Any], _T]]:
    """Let a reader return `nothing` for an object that raises whatever is asked of it.

    Promises: nothing that a cell raises gets out, whatever it is; a signal that ends the program
    while a cell is read does.
    """

    def wrap(read: Callable[[Any], _T]) -> Callable[[Any], _T]:
        @wraps(read)
        def reader(cell: Any) -> _T:
            try:
                return read(_plain(cell))
            except Exception:  # noqa: BLE001 - an error would tell that such a cell is there
                return nothing
            except BaseException:
                if _raises(read, cell):
                    return nothing
                raise

        return reader

    return wrap


def _raises(read: Callable[[Any], Any], cell: Any) -> bool:
    """Return whether a cell raises again: what the handler of a signal raises comes once."""
    try:
        read(_plain(cell))
    except BaseException:  # noqa: BLE001 - as above
        return True
    return False


def _plain(cell: Any) -> Any:
    """Return text or bytes, also of a class with its own ideas, as plain text; others as is."""
    if isinstance(cell, str):
        return str.__str__(cell)
    if isinstance(cell, bytes):
        return bytes.__getitem__(cell, slice(None)).decode("utf-8", "surrogateescape")
    return cell


@discreet(math.nan)
def number_in(cell: Any) -> float:
    """Return the number a cell holds, ±inf if it is too large, NaN if it is no number.

    Truth values and their words are 1 and 0.
    """
    if isinstance(cell, str):
        return _number_of_text(cell)
    real = _real_of(cell)
    return (
        _as_float(real) if isinstance(real, numbers.Real | decimal.Decimal | np.bool_) else math.nan
    )


def _number_of_text(text: str) -> float:
    if _NUMBER.fullmatch(text):
        # Some white space of the pattern's is none to float, whose message would quote the cell.
        return _as_float(text)
    word = text.strip()
    if len(word) > _LONGEST_LITERAL:
        return math.nan
    word = word.lower()
    if word in _TRUTH:
        return _TRUTH[word]
    return _as_float(int(word, 0)) if _LITERAL.fullmatch(word) else math.nan


def _real_of(cell: Any) -> Any:
    """Return a cell, or the number it stands for where a frame wrote it in another type.

    One complex number makes a frame's whole column complex, so 1 + 0j is 1, as it was without that
    neighbour. NumPy counts spans of time among the integers, where frames say they are none.
    """
    if isinstance(cell, complex | np.complexfloating):
        return cell.real if cell.imag == 0 else None
    return None if isinstance(cell, np.timedelta64) else cell


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return -math.inf if cell < 0 else math.inf
    except Exception:  # noqa: BLE001 - a signalling NaN, or a number of a class with its own ideas
        return math.nan


@discreet(math.nan)
def day_in(cell: Any) -> float:
    """Return the days since 1970-01-01 of a date, a time or ISO 8601 text; otherwise NaN.

    Text that is a number is none: "20200101" comes as an integer beside other such cells.
    """
    if isinstance(cell, str):
        dashed = cell[4:5] == cell[7:8] == "-"  # no number, and what nearly all dates are
        return _day_of_text(cell) if dashed or math.isnan(_number_of_text(cell)) else math.nan
    if isinstance(cell, np.datetime64):
        return float(days_of_datetimes(np.array([cell]))[0])
    return _as_days(days(cell)) if isinstance(cell, dt.date) else math.nan


def _as_days(exact: Fraction) -> float:
    """Return days as the readers of whole columns do: whole microseconds, then one division."""
    microseconds = exact * MICROSECONDS_PER_DAY
    if not _FIRST_MOMENT <= microseconds < _END:
        return math.nan
    return min(float(microseconds) / MICROSECONDS_PER_DAY, _LATEST)


def days_of_microseconds(microseconds: npt.NDArray[Any]) -> Floats:
    """Return days since 1970-01-01; NaN for years that not all libraries know, but 1 to 9999.

    Requires: integers, or floats that are whole microseconds wherever such a year is meant.
    """
    within = (microseconds >= _FIRST_MOMENT) & (microseconds < _END)
    found = microseconds.astype(np.float64) / MICROSECONDS_PER_DAY
    return np.where(np.asarray(within, bool), np.minimum(found, _LATEST), np.nan)


def days_of_datetimes(cells: npt.NDArray[Any]) -> Floats:
    """Return the days of NumPy's datetimes of any unit; NaN where there is none.

    NumPy's own conversions wrap around where a year is far away, so ticks are converted here.
    """
    unit, step = np.datetime_data(cells.dtype)
    missing, ticks = np.isnat(cells), cells.astype(np.int64)
    if unit in _CALENDAR:
        missing |= np.abs(ticks) > _FAR // step
        near = np.where(missing, 0, ticks) * step
        ticks, unit, step = near.astype(f"M8[{unit}]").astype("M8[D]").astype(np.int64), "D", 1
    exact = ticks if step == 1 else ticks.astype(object) * step  # Python's own integers
    if unit in _FINER:
        microseconds = exact // _FINER[unit]
    else:
        microseconds = exact.astype(np.float64) * _COARSER.get(unit, np.nan)
    return np.where(missing, np.nan, days_of_microseconds(microseconds))


@discreet(math.nan)
def _day_of_text(text: str) -> float:
    if len(text) > _LONGEST_DATE:
        return math.nan
    if text.strip().lower() == _EPOCH:
        return 0.0
    found = _DATE.fullmatch(text)
    if found is None:
        return _as_days(days(dt.datetime.fromisoformat(text.strip())))
    if found["h"] is found["H"] is None:
        day = dt.date(int(found["year"]), int(found["month"]), int(found["day"]))
        return float(day.toordinal() - _FIRST)
    part = found.groupdict(default="0")
    whole = days(dt.date(int(part["year"]), int(part["month"]), int(part["day"])))
    clock = _microseconds(*(part[low] if found[low] else part[low.upper()] for low in "hmsf"))
    offset = _microseconds(part["zh"], part["zm"], "0", "0")
    shift = clock + (offset if part["sign"] == "-" else -offset)
    return _as_days(whole + Fraction(shift, MICROSECONDS_PER_DAY))


def _microseconds(hours: str, minutes: str, seconds: str, fraction: str) -> int:
    """Return a time of day, 24:00 and leap seconds included, what is below them cut off."""
    h, m, s = int(hours), int(minutes), int(seconds)
    if h > 24 or m > 59 or s > 60 or (h == 24 and (m or s)):
        raise ValueError
    return ((h * 60 + m) * 60 + s) * 1_000_000 + int(fraction[:6].ljust(6, "0"))


@discreet(math.nan)
def time_in(cell: Any) -> float:
    """Return the microseconds since midnight of a time of day, or of its text; otherwise NaN."""
    if isinstance(cell, str):
        found = _TIME.fullmatch(cell)
        h, m, s, f = found.group(1, 2, 4, 6) if found else (None,) * 4
        return math.nan if h is None else float(_microseconds(h, m or "0", s or "0", f or "0"))
    if not isinstance(cell, dt.time):
        return math.nan
    seconds = (cell.hour * 60 + cell.minute) * 60 + cell.second
    return float(seconds * 1_000_000 + cell.microsecond)


@discreet(_NO_KEY)
def canonical(cell: Any) -> Key | None:
    """Return what a cell means, as levels of categories are compared; None where it is nothing."""
    number = number_in(cell)
    if number == number:  # noqa: PLR0124 - a NaN is not what it is
        return "number", number
    if isinstance(cell, uuid.UUID):
        cell = str(cell)
    if isinstance(cell, str) and len(cell) == _IDENTIFIER_LENGTH and _IDENTIFIER.fullmatch(cell):
        return "identifier", cell.lower()
    if isinstance(cell, str) and not _DIGIT_FIRST.match(cell):
        nothing = cell in _MISSING or _NO_NUMBER.fullmatch(cell) or _is_like_a_date(cell)
        return None if nothing else ("text", cell)
    for kind, read in (("day", day_in), ("time", time_in)):
        value = read(cell)
        if value == value:  # noqa: PLR0124 - as above
            return kind, value
    nothing = not isinstance(cell, str) or cell in _MISSING or _is_like_a_date(cell)
    return None if nothing else ("text", cell)


def _is_like_a_date(text: str) -> bool:
    return len(text) <= _LONGEST_DATE and _LIKE_A_DATE.fullmatch(text) is not None


@discreet(_NO_TEXT)
def text_in(cell: Any) -> str | None:
    """Return text of the same key as a cell; None if it holds nothing."""
    if isinstance(cell, str):
        return cell
    key = canonical(cell)
    return None if key is None else text_of(*key)


def text_of(kind: str, value: float | str) -> str:
    """Return text that has a key."""
    if isinstance(value, str):
        return value
    if kind == "number":
        return repr(value)
    if kind == "time" and value >= MICROSECONDS_PER_DAY:
        return "24:00:00"  # which is a moment of the next day to Python
    moment = EPOCH + dt.timedelta(microseconds=_tick_of(value) if kind == "day" else round(value))
    return moment.isoformat() if kind == "day" else moment.time().isoformat()


def _tick_of(day: float) -> int:
    """Return a microsecond that `_as_days` makes these days of.

    The nearest one may be none: both its own rounding and the division's come in between.
    """
    nearest = round(Fraction(day) * MICROSECONDS_PER_DAY)
    shifts = sorted(range(-_BESIDE, _BESIDE + 1), key=abs)
    near = (nearest + shift for shift in shifts)
    found = (tick for tick in near if _as_days(Fraction(tick, MICROSECONDS_PER_DAY)) == day)
    return next(found, nearest)
