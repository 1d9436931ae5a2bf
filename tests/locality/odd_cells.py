"""Odd cells: what one row of a table may hold although no column was meant to hold it.

The list is public and is what the suite promises to try in every source. A cell is a text, a number
or an object, under a name that a failure prints. `TEXTS` are those that can stand in a file of text
as they are; `OBJECTS` need a holder of Python objects; `NUMBERS` fit arrays of numbers.
"""

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from fuzz.tables import Line
from fuzz.values import (
    Faceless,
    LyingReal,
    Mute,
    Panics,
    Quits,
    RaisingReal,
    Rude,
    RudeBytes,
    RudeCount,
    RudeText,
    Words,
)

_NAIVE = dt.datetime.fromisoformat  # frames hold times without a zone

TEXTS: dict[str, str] = {
    # words and missing words
    "word": "x",
    "empty": "",
    "blank": " ",
    "blanks": "   ",
    "tab": "\t",
    "NA": "NA",
    "N/A": "N/A",
    "NaN text": "NaN",
    "nan text": "nan",
    "null": "null",
    "NULL": "NULL",
    "None text": "None",
    "NaT text": "NaT",
    "<NA>": "<NA>",
    "#N/A": "#N/A",
    "dash": "-",
    "backslash N": "\\N",
    "intercept": "intercept",
    # numbers as text
    "one": "1",
    "leading zero": "02139",
    "zeros": "007",
    "one point": "1.",
    "one point zero": "1.0",
    "point five": ".5",
    "half": "0.5",
    "plus": "+1",
    "minus": "-1",
    "minus zero": "-0",
    "minus zero point": "-0.0",
    "exponent": "1e5",
    "capital exponent": "1E5",
    "negative exponent": "1e-5",
    "too large": "1e400",
    "too small": "1e-400",
    "denormal text": "5e-324",
    "inf": "inf",
    "-inf": "-inf",
    "Infinity": "Infinity",
    "hex": "0x10",
    "octal": "0o17",
    "binary": "0b101",
    "underscores": "1_000",
    "thousands": "1,000",
    "decimal comma": "1,5",
    "apostrophes": "1'000",
    "spaced number": " 42 ",
    "17 digits": "12345678901234567",
    "19 digits": "9223372036854775807",
    "beyond int64": "9223372036854775808",
    "beyond uint64": "18446744073709551616",
    "40 digits": "1234567890123456789012345678901234567890",
    "long decimal": "0.1234567890123456789012345678901234567890",
    "400 digits": "9" * 400,
    "percent": "50%",
    "currency": "$5",
    "fraction": "1/3",
    "complex text": "1+2j",
    "arabic digit": "\u0661",
    "full-width digit": "\uff11",
    # truth
    "true": "true",
    "True": "True",
    "TRUE": "TRUE",
    "false": "false",
    "yes": "yes",
    "no": "no",
    "t": "t",
    "Y": "Y",
    "on": "on",
    # dates and times
    "date": "2020-01-01",
    "basic date": "20200101",
    "time": "08:30:00",
    "date time": "2020-01-01T08:30:00",
    "date space time": "2020-01-01 08:30:00",
    "zone": "2020-01-01T08:30:00+05:00",
    "zulu": "2020-01-01T08:30:00Z",
    "nanoseconds": "2020-01-01T00:00:00.123456789",
    "american date": "01/02/2020",
    "german date": "31.12.2020",
    "year one": "0001-01-01",
    "year 9999": "9999-12-31",
    "year 10000": "10000-01-01",
    "no such day": "2020-02-30",
    "week": "2020-W01-1",
    "duration": "P1D",
    # structure
    "JSON list": "[1, 2]",
    "JSON object": '{"a": 1}',
    "formula": "=1+1",
    "at formula": "@SUM(A1)",
    "comment": "# no",
    "semicolons": "1;2;3",
    "pipes": "1|2",
    "commas": "a,b,c",
    "quote": '"',
    "quotes": '""',
    "quoted": '"a"',
    "inner quote": 'a"b',
    "single quote": "'",
    "backslash": "\\",
    "backslash quote": '\\"',
    "line feed": "a\nb",
    "only line feed": "\n",
    "two lines of cells": "1,1,1\n2,2,2",
    "carriage return": "a\rb",
    "only carriage return": "\r",
    "carriage returns": "\r1,1,1\r2,2,2\r",
    "CRLF": "a\r\nb",
    "only CRLF": "\r\n",
    # bytes and letters
    "NUL": "\x00",
    "inner NUL": "a\x00b",
    "control Z": "\x1a",
    "escape": "\x1b[31m",
    "BOM": "\ufeff",
    "BOM one": "\ufeff1",
    "line separator": "a\u2028b",
    "paragraph separator": "\u2029",
    "next line": "a\x85b",
    "vertical tab": "a\vb",
    "form feed": "\f",
    "file separator": "\x1c",
    "unit separator": "1\x1f",
    "no-break space": "\u00a01",
    "zero-width space": "\u200b",
    "right to left": "\u202e",
    "accent": "é",
    "decomposed accent": "e\u0301",
    "dotless i": "\u0131",
    "dotted capital I": "\u0130",
    "emoji": "\U0001f600",
    "long": "a" * 5_000,
    "very long": "b" * 70_000,
    "injection": "'; DROP TABLE t; --",
    "brace": "{0}",
    "percent s": "%s%n",
}

# Bytes that are no UTF-8, as Python's surrogates carry them; holders of text files write the bytes.
BROKEN: dict[str, str] = {
    "broken byte": "\udcff",
    "broken letter": "a\udcc3",
    "broken BOM": "\udcff\udcfe",
    "overlong": "\udcc0\udc80",
    "encoded surrogate": "\udced\udca0\udc80",
}

NUMBERS: dict[str, float | int] = {
    "nan": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "zero": 0.0,
    "negative zero": -0.0,
    "denormal": 5e-324,
    "small": 1e-310,
    "largest": 1.7976931348623157e308,
    "lowest": -1.7976931348623157e308,
    "1e17": 1e17,
    "2**53": 2.0**53,
    "2**53 + 1": 2**53 + 1,
    "half number": 0.5,
    "a third": 1 / 3,
    "minus one": -1,
    "one number": 1,
    "2**31": 2**31,
    "2**62": 2**62,
    "-2**63": -(2**63),
}

OBJECTS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "truth": lambda: True,
    "falsehood": lambda: False,
    "NumPy truth": lambda: np.bool_(True),
    "2**63": lambda: 2**63,
    "2**64": lambda: 2**64,
    "10**39": lambda: 10**39,
    "10**400": lambda: 10**400,
    "-10**5000": lambda: -(10**5000),
    "decimal": lambda: decimal.Decimal("0.1"),
    "long decimal number": lambda: decimal.Decimal("0." + "1" * 60),
    "decimal NaN": lambda: decimal.Decimal("NaN"),
    "signalling NaN": lambda: decimal.Decimal("sNaN"),
    "decimal 1e9999": lambda: decimal.Decimal("1e9999"),
    "third": lambda: Fraction(1, 3),
    "huge fraction": lambda: Fraction(10**400),
    "imaginary": lambda: 1j,
    "real complex": lambda: complex(2, 0),
    "complex NaN": lambda: complex(math.nan, 0),
    "bytes": lambda: b"1",
    "broken bytes": lambda: b"\xff\xfe",
    "empty bytes": lambda: b"",
    "byte array": lambda: bytearray(b"1"),
    "memory": lambda: memoryview(b"1"),
    "day": lambda: dt.date(2020, 1, 1),
    "moment": lambda: _NAIVE("2020-05-05T08:30:00"),
    "late moment": lambda: _NAIVE("9999-12-31"),
    "early moment": lambda: _NAIVE("0001-01-01"),
    "moment with a zone": lambda: dt.datetime(
        2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))
    ),
    "time of day": lambda: dt.time(8, 30),
    "span": lambda: dt.timedelta(1),
    "NumPy NaT": lambda: np.datetime64("NaT"),
    "NumPy day": lambda: np.datetime64("2020-01-01"),
    "NumPy span": lambda: np.timedelta64(5, "D"),
    "single": lambda: np.float32(0.1),
    "half precision": lambda: np.float16(0.1),
    "long double": lambda: np.longdouble("1e4000"),
    "int8": lambda: np.int8(3),
    "uint64": lambda: np.uint64(2**64 - 1),
    "list": lambda: [1, 2],
    "empty list": list,
    "tuple": lambda: (1,),
    "dict": lambda: {"a": 1},
    "empty dict": dict,
    "set": lambda: {1},
    "array": lambda: np.array([1.0, 2.0]),
    "array of no dimension": lambda: np.array(3.0),
    "range": lambda: range(2),
    "UUID": lambda: uuid.UUID(int=1),
    "Ellipsis": lambda: Ellipsis,
    "function": lambda: len,
    "type": lambda: float,
    "error": lambda: ValueError("x"),
    "plain object": object,
    "rude object": Rude,
    "mute object": Mute,
    "number in name": RaisingReal,
    "lying number": lambda: LyingReal(1.0),
    "faceless": Faceless,
    "text of a class": lambda: Words("1"),
    "rude text": lambda: RudeText("1"),
    "rude bytes": lambda: RudeBytes(b"1"),
    "rude integer": lambda: RudeCount(1),
    "quits": Quits,
    "panics": Panics,
    "surrogate": lambda: "\ud800",
    "masked": lambda: np.ma.masked,
    "NumPy text": lambda: np.str_("1"),
    "NumPy bytes": lambda: np.bytes_(b"1"),
}

# Whole lines of a file, whatever its columns. No unclosed quotation mark: that is not one row of
# garbage, it is all rows that follow.
LINES: dict[str, str] = {
    "one cell": "1",
    "many cells": "1,2,3,4,5,6,7,8",
    "tabs": "1\t2\t3\t4\t5\t6\t7",
    "commas alone": ",,,,,,,,",
    "NUL alone": "\x00",
    "broken line": "\udcff\udcfe,\udcff",
    "long line": "x" * 70_000,
    "semicolons alone": "1;2;3",
    "doubled quotes": '"a""b"',
    "text behind quotes": '"a"b,"c"d',
    "quote within": 'a"b,c"d',
    "apostrophe": "'",
    "end of file": "\x1a",
    "separator": "\u2028",
    "hash": "#",
    "backslashes": "\\",
    "carriage return within": "1\r2",
    "carriage returns within": "1,1\r2,2\r3,3",
}

COUNT = len(TEXTS) + len(BROKEN) + len(NUMBERS) + len(OBJECTS)

_BY_KIND: dict[str, dict[str, Any]] = {
    "text": TEXTS,
    "broken": BROKEN,
    "number": dict(NUMBERS),
    "object": dict(OBJECTS),
    "line": {name: Line(line) for name, line in LINES.items()},
}
# The kinds of odd cells that a holder may ask for; a line stands for a whole row.
KINDS = tuple(_BY_KIND)


def odd_names(kinds: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return (kind, name) of every odd cell of some kinds."""
    return tuple((kind, name) for kind in kinds for name in _BY_KIND[kind])


def odd_cell(kind: str, name: str) -> Any:
    """Return an odd cell, made anew where it is an object."""
    return OBJECTS[name]() if kind == "object" else _BY_KIND[kind][name]
