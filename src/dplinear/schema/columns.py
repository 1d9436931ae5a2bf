"""What a column of the table may hold, as its owner declares it in public.

A declaration is `(low, high)`, a list of category names, `"boolean"`, or a mapping with a `type`
and options. Everything here is checked before any row is read.
"""

import datetime as dt
import math
import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dplinear.arguments import choice, rejection, wrong_type
from dplinear.schema.canonical import EPOCH, MICROSECONDS_PER_DAY, canonical, days

WHERE = "Schema"
LEAVE_OUT = "leave_out"
NUMERIC_TYPES = ("number", "integer", "boolean", "date")
TYPES = (*NUMERIC_TYPES, "category")

_LARGEST = Fraction(2) ** 500
_NARROWEST = Fraction(2) ** -500
_RELATIVE_WIDTH = Fraction(1, 2**32)
_LONGEST_NUMBER = 700  # characters; exponents have at most 4 of them, as "1e999999999" fills memory
MOST_FEATURES = 2**13  # 512 MiB of second moments

_OPTIONS = {
    "number": {"low", "high", "missing", "missing_indicator"},
    "integer": {"low", "high", "missing", "missing_indicator"},
    "boolean": {"missing", "missing_indicator"},
    "date": {"low", "high", "missing", "missing_indicator"},
    "category": {"levels", "other", "drop_first"},
}
_DAY_HINT = (
    "write dates as 2020-12-31. Two dates in a list are bounds; as levels of a category, write "
    '{"type": "category", "levels": ["2020-12-31", "2021-12-31"]}.'
)
_DAY = re.compile(r"\s*[0-9]{4}-[0-9]{1,2}(-[0-9]{1,2})?(?![0-9-])")
_READ_BEFORE = ContextVar("read_before", default=False)
_HINT = (
    'write (low, high), a list of category names, "boolean", or a mapping such as '
    '{"type": "integer", "low": 0, "high": 9}.'
)


@dataclass(frozen=True)
class Numeric:
    """A column of bounded numbers: numbers, integers, booleans (0 or 1) or dates (in days).

    `missing` is the public number that stands for a cell without a number in it. With `leave_out`,
    a row with such a cell is left out of sums instead; None: nobody said, or said the middle of the
    bounds, and each release has its own rule.
    """

    type: str
    low: Fraction
    high: Fraction
    missing: Fraction
    missing_indicator: bool = False
    leave_out: bool | None = None


@dataclass(frozen=True)
class Category:
    """A column of named levels. `other` is the level unseen cells join; None gives them their own.

    Levels are all text or all numbers.
    """

    levels: tuple[str | Fraction, ...]
    other: str | Fraction | None = None
    drop_first: bool = True


Column = Numeric | Category


def check_bounds(low: Fraction, high: Fraction, parameter: str, shown: object) -> None:
    """Raise unless [low, high] is an interval that float64 can resolve to 2^-20 of its width."""
    if low >= high:
        rule = "a pair (low, high) with low below high"
        raise rejection(parameter, WHERE, rule, shown)
    largest = max(abs(low), abs(high))
    if largest > _LARGEST or high - low < max(_NARROWEST, largest * _RELATIVE_WIDTH):
        rule = "an interval below 2^500 and not narrower than 2^-32 of its ends"
        hint = "shift or rescale the column so that its interval is wide next to its distance to 0."
        raise rejection(parameter, WHERE, rule, shown, hint)


def check_count(features: int, parameter: str) -> None:
    """Raise, before they are made, if there are more features than a release can hold."""
    if features > MOST_FEATURES:
        rule = f"a description of at most {MOST_FEATURES} features"
        hint = "leave out levels, or products of categories with many levels."
        raise rejection(parameter, WHERE, rule, features, hint)


def exact_number(value: Any, parameter: str, rule: str, shown: object) -> Fraction:
    """Return a finite number (or "1/3", as schema files write fractions) as an exact fraction."""
    if isinstance(value, str):
        exponent = value.strip().lower().partition("e")[2]
        try:
            if len(value) > _LONGEST_NUMBER or len(exponent) > 4:
                raise ValueError  # noqa: TRY301 - one error for all text that is no number here
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise wrong_type(parameter, WHERE, rule, shown, _HINT) from None
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong_type(parameter, WHERE, rule, shown, _HINT)
    try:
        if isinstance(value, numbers.Rational):  # NumPy's integers would stay what they are
            return Fraction(int(value.numerator), int(value.denominator))
        number = float(value)
    except OverflowError:
        raise rejection(parameter, WHERE, rule, shown, _HINT) from None
    except Exception:  # noqa: BLE001 - a number of a class with its own ideas
        raise wrong_type(parameter, WHERE, rule, shown, _HINT) from None
    if not math.isfinite(number):
        raise rejection(parameter, WHERE, rule, shown, _HINT)
    return Fraction(number)


def exact_day(value: Any, parameter: str, rule: str, shown: object) -> Fraction:
    """Return a public date (a date, or ISO 8601 text) in days since 1970-01-01."""
    if isinstance(value, dt.date):
        return days(value)
    if isinstance(value, str):
        try:
            return days(dt.datetime.fromisoformat(value))
        except ValueError:
            raise rejection(parameter, WHERE, rule, shown, _DAY_HINT) from None
    raise wrong_type(parameter, WHERE, rule, shown)


def read_number(column: Column, value: Any, parameter: str, shown: object) -> Fraction:
    """Return a public value in the units of a numeric column."""
    if isinstance(column, Numeric) and column.type == "date":
        return exact_day(value, parameter, "a date", shown)
    return exact_number(value, parameter, "a finite number", shown)


def _flag(options: Mapping[str, Any], key: str, parameter: str, *, default: bool) -> bool:
    value = options.get(key, default)
    if not isinstance(value, bool):
        raise wrong_type(f"{parameter}.{key}", WHERE, "true or false", value)
    return value


def _numeric(kind: str, options: Mapping[str, Any], parameter: str) -> Numeric:
    if kind == "boolean":
        low, high = Fraction(0), Fraction(1)
    else:
        read = exact_day if kind == "date" else exact_number
        rule = "a pair of dates (low, high)" if kind == "date" else "a pair of finite numbers"
        if "low" not in options or "high" not in options:
            hint = (
                "bounds are public knowledge about the column; they are never taken from the data."
            )
            raise rejection(
                parameter, WHERE, "bounded: give both low and high", dict(options), hint
            )
        shown = (options["low"], options["high"])
        low, high = (read(options[end], parameter, rule, shown) for end in ("low", "high"))
        check_bounds(low, high, parameter, shown)
        if kind == "integer" and not (low.denominator == high.denominator == 1):
            raise rejection(parameter, WHERE, "bounded by whole numbers", shown)
    missing, leave_out = (low + high) / 2, None
    indicator = _flag(options, "missing_indicator", parameter, default=False)
    if options.get("missing") == LEAVE_OUT:
        if indicator:
            rule = "left out where rows with missing cells are"
            raise rejection(f"{parameter}.missing_indicator", WHERE, rule, indicator)
        leave_out = True
    elif "missing" in options:
        read = exact_day if kind == "date" else exact_number
        given = options["missing"]
        rule = f"a public number within the column's bounds, or {LEAVE_OUT!r}"
        missing = read(given, f"{parameter}.missing", rule, given)
        if not low <= missing <= high:
            raise rejection(f"{parameter}.missing", WHERE, rule, given)
        # Files write the middle of the bounds where nobody said anything.
        leave_out = None if missing == (low + high) / 2 else False
    return Numeric(kind, low, high, missing, indicator, leave_out)


def _category(options: Mapping[str, Any], parameter: str) -> Category:
    levels = options.get("levels")
    rule = "a list of at least one category, all text or all numbers, none twice"
    if not isinstance(levels, Sequence) or isinstance(levels, str | bytes):
        raise wrong_type(parameter, WHERE, rule, levels)
    check_count(len(levels), parameter)
    texts = tuple(level for level in levels if isinstance(level, str))
    if len(texts) == len(levels):
        chosen: tuple[str | Fraction, ...] = texts
    else:
        chosen = tuple(exact_number(level, parameter, rule, levels) for level in levels)
    if not chosen or len(set(chosen)) < len(chosen):
        raise rejection(parameter, WHERE, rule, list(levels))
    if not all(text.isprintable() for text in texts):
        raise rejection(parameter, WHERE, "a list of printable category names", list(levels))
    if not _READ_BEFORE.get():
        check_levels(chosen, parameter, WHERE)
    other = options.get("other")
    if other is not None:
        known = other if texts else exact_number(other, f"{parameter}.other", "a level", other)
        if known not in chosen:
            raise rejection(f"{parameter}.other", WHERE, "one of the column's levels", other)
        other = known
    return Category(chosen, other, _flag(options, "drop_first", parameter, default=True))


@contextmanager
def read_before() -> Iterator[None]:
    """Take levels as they are: those of a table that a release was made of need no reading."""
    token = _READ_BEFORE.set(True)
    try:
        yield
    finally:
        _READ_BEFORE.reset(token)


def check_levels(levels: Sequence[object], parameter: str, where: str) -> None:
    """Raise unless levels stay apart however a library reads the cells that hold them.

    Cells are compared by `canonical`, so that no other row decides what "02139" is. Levels that it
    cannot tell apart, or that it takes for nothing, would never be found.
    """
    first: dict[object, object] = {}
    for level in levels:
        key = canonical(level)
        if key is None:
            rule = "free of words for missing cells, and of dates that do not begin with the year"
            hint = (
                "some libraries read them as missing cells or as dates, as other cells will have "
                'it. Leave the level out (its cells are then "other"), or rename it in the table; '
                "write dates as 2020-12-31."
            )
            raise rejection(parameter, where, rule, level, hint)
        if key in first:
            rule = "made of levels that are different numbers, truth values, dates or texts"
            hint = (
                "levels are compared by what they mean, since libraries read 02139 as 2139, 1.0 as "
                "1, true, yes and t as 1, and integers beyond 2^53 as the nearest float64."
            )
            raise rejection(parameter, where, rule, [first[key], level], hint)
        first[key] = level


def read_column(name: str, declared: Any) -> Column:
    """Return what a declaration says.

    Requires: any value at all; a wrong one raises the error that names the column.
    Promises: bounds and constants as exact fractions, in the column's own units.
    """
    if isinstance(declared, Mapping):
        options = dict(declared)
    elif declared is bool or (isinstance(declared, str) and declared == "boolean"):
        options = {"type": "boolean"}
    elif isinstance(declared, Sequence) and not isinstance(declared, str | bytes):
        options = _from_sequence(name, declared)
    else:
        raise wrong_type(name, WHERE, "a declaration of a column", declared, _HINT)
    kind = choice(options.pop("type", "number"), f"{name}.type", WHERE, TYPES)
    unknown = sorted(str(key) for key in options if key not in _OPTIONS[kind])
    if unknown:
        rule = "made of the options " + ", ".join(sorted(_OPTIONS[kind]))
        raise rejection(name, WHERE, rule, ", ".join(unknown))
    return _category(options, name) if kind == "category" else _numeric(kind, options, name)


def _from_sequence(name: str, declared: Sequence[Any]) -> dict[str, Any]:
    if len(declared) == 2 and all(map(_is_day, declared)):  # never two levels
        return {"type": "date", "low": declared[0], "high": declared[1]}
    if declared and all(isinstance(entry, str) for entry in declared):
        return {"type": "category", "levels": declared}
    if len(declared) != 2:
        rule = "a pair (low, high) or a list of category names"
        raise rejection(name, WHERE, rule, declared, _HINT)
    low, high = declared
    return {"type": "number", "low": low, "high": high}


def _is_day(value: object) -> bool:
    """Return whether a public value is a date, or text that begins like an ISO 8601 one."""
    if isinstance(value, str):
        return _DAY.match(value) is not None
    return isinstance(value, dt.date)


def write_number(value: Fraction) -> int | float | str:
    """Return a fraction as plain JSON that `exact_number` reads back exactly."""
    if value.denominator == 1:
        return int(value)
    return float(value) if Fraction(float(value)) == value else str(value)


def write_column(column: Column) -> dict[str, Any]:
    """Return the full declaration of a column, as plain JSON that `read_column` reads back."""
    if isinstance(column, Category):
        plain = [
            level if isinstance(level, str) else write_number(level) for level in column.levels
        ]
        declared: dict[str, Any] = {"type": "category", "levels": plain}
        if column.other is not None:
            other = column.other
            declared["other"] = other if isinstance(other, str) else write_number(other)
        return declared | ({} if column.drop_first else {"drop_first": False})
    write = _write_day if column.type == "date" else write_number
    constant = LEAVE_OUT if column.leave_out else write(column.missing)
    declared = {"type": column.type, "missing": constant}
    if column.type != "boolean":
        declared |= {"low": write(column.low), "high": write(column.high)}
    return declared | ({"missing_indicator": True} if column.missing_indicator else {})


def _write_day(value: Fraction) -> str:
    step = dt.timedelta(microseconds=round(value * MICROSECONDS_PER_DAY))
    return (EPOCH + step).isoformat()


def format_day(value: Fraction) -> str:
    """Return a moment as ISO 8601 has it, without the time of day where it is midnight."""
    step = dt.timedelta(microseconds=round(value * MICROSECONDS_PER_DAY))
    moment = EPOCH + step
    whole = value.denominator == 1
    return moment.date().isoformat() if whole else moment.replace(tzinfo=None).isoformat()
