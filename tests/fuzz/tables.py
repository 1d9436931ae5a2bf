"""Private tables of any kind: cells, rows, and their neighbours."""

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .dice import Dice
from .values import (
    Count,
    Faceless,
    LyingReal,
    Mute,
    RaisingReal,
    Rude,
    RudeBytes,
    RudeCount,
    RudeText,
    Words,
)

Rows = list[list[Any]]

_FLOATS = (math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1e-310, 0.0, -0.0, 1e17, 2.0**53)
_TEXTS = (
    "",
    " ",
    "x",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "1e-999",
    "0x10",
    "1_000",
    "١",
    "é",
    "\u202e",
    "\x00",
    "true",
    "2020-01-01",
    "a" * 2000,
    "1,5",
    '"',
    "\n",
    "\t1",
    "9" * 400,
    "\ufeff1",
    "NaT",
    "1/3",
    "null",
    "None",
    "intercept",
)
_BYTES = (b"", b"\xff\xfe", b"1", b"\x00", b"\xc3", b"9" * 400, b"x" * 1000)
_INTEGERS = (0, 1, -1, 2**62, -(2**62), 7)
_NAIVE = dt.datetime.fromisoformat  # frames hold times without a zone
_TIMES = tuple(map(_NAIVE, ("0001-01-01", "9999-12-31", "1970-01-01", "2020-05-05")))
EARLY, LATE = _NAIVE("1700-01-01"), _NAIVE("2200-01-01")
_DECIMALS = tuple(decimal.Decimal(text) for text in ("0", "0.1", "-99999.99", "12345.678"))
_OBJECTS: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: 10**400,
    lambda: -(10**5000),
    lambda: 1j,
    lambda: complex(math.nan, 0),
    lambda: decimal.Decimal("NaN"),
    lambda: decimal.Decimal("sNaN"),
    lambda: decimal.Decimal("1e9999"),
    lambda: Fraction(10**400),
    lambda: Fraction(1, 3),
    lambda: dt.date(2020, 1, 1),
    lambda: dt.time(1),
    lambda: LATE,
    lambda: dt.timedelta(1),
    lambda: [1, 2],
    list,
    lambda: {"a": 1},
    tuple,
    lambda: (1,),
    set,
    lambda: {1},
    object,
    Rude,
    Mute,
    RaisingReal,
    lambda: LyingReal(1.0),
    lambda: Words("1"),
    lambda: RudeText("1"),
    lambda: RudeBytes(b"1"),
    lambda: RudeCount(1),
    Faceless,
    lambda: Count(3),
    lambda: np.float32("nan"),
    lambda: np.int8(3),
    lambda: np.datetime64("NaT"),
    lambda: np.datetime64("2020-01-01"),
    lambda: np.timedelta64(5, "D"),
    lambda: np.array([1.0, 2.0]),
    lambda: np.array(3.0),
    lambda: np.array([]),
    lambda: np.bool_(True),
    lambda: True,
    lambda: uuid.UUID(int=0),
    lambda: len,
    lambda: "\ud800",
    lambda: ValueError("x"),
    lambda: np.str_("1"),
    lambda: np.bytes_(b"1"),
    lambda: memoryview(b"1"),
    lambda: bytearray(b"1"),
    lambda: np.ma.masked,
    lambda: Ellipsis,
    lambda: np.longdouble("1e4000"),
    lambda: range(2),
    lambda: dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))),
    lambda: float,
)

FLAVOURS = ("float", "integer", "text", "bytes", "boolean", "time", "decimal", "mixed")


def cell(dice: Dice, flavour: str, odds: float) -> Any:  # noqa: PLR0911 - one for each flavour
    """Return a cell of a flavour; a strange one with these odds."""
    if flavour == "mixed":
        return (
            dice.make(_OBJECTS) if dice.chance(odds) else cell(dice, dice.pick(FLAVOURS[:3]), odds)
        )
    strange = dice.chance(odds)
    match flavour:
        case "float":
            return dice.pick(_FLOATS) if strange else dice.uniform(-3, 3)
        case "integer":
            return dice.pick(_INTEGERS) if strange else dice.below(10)
        case "text":
            return dice.pick(_TEXTS) if strange else dice.pick(("a", "b", "1", "2.5", "-1"))
        case "bytes":
            return dice.pick(_BYTES) if strange else b"1.5"
        case "boolean":
            return dice.chance(0.5)
        case "time":
            return dice.pick(_TIMES)
    return dice.pick(_DECIMALS)


class Line(str):
    """A whole line of a file, as it stands there."""

    __slots__ = ()


# No unclosed quotation mark: that is not one row of garbage, it is all rows that follow.
_LINES = (
    "1",
    "1,2,3,4,5,6",
    "1\t2\t3\t4\t5",
    ",,,,,,,,",
    " ",
    "\x00",
    "\udcff\udcfe,\udcff",
    "x" * 70_000,
    "1;2;3",
    '"a""b"',
    "'",
    "\x1a",
    "\u2028",
    "#",
    "NULL",
    "\\",
)


@dataclass(frozen=True)
class Private:
    """Rows of cells, column by column of one flavour, named or not."""

    names: tuple[str, ...]
    flavours: tuple[str, ...]
    rows: Rows

    @classmethod
    def thrown(
        cls, dice: Dice, names: Sequence[str], flavours: Sequence[str] = FLAVOURS
    ) -> "Private":
        kinds = tuple(dice.pick(flavours) for _ in names)
        if dice.chance(0.4):
            kinds = ("float",) * len(names) if "float" in flavours else kinds
        odds = dice.pick((0.0, 0.05, 0.5))
        count = dice.pick((0, 1, 2, 3, 8, 20))
        rows = [[cell(dice, kind, odds) for kind in kinds] for _ in range(count)]
        return cls(tuple(names), kinds, rows)

    def neighbour(self, dice: Dice, *, replace: bool, lines: bool = False) -> "Private":
        """Return the same table but for one row, which may hold anything of the same flavours.

        Or, where the table is a file of `lines`, it is any line at all.
        """
        new = [cell(dice, kind, dice.pick((0.0, 1.0))) for kind in self.flavours]
        if lines and dice.chance(0.5):
            new = [Line(dice.pick(_LINES))]
        rows = list(self.rows)
        place = dice.below(len(rows) + 1)
        if replace:
            rows[place : place + 1] = [new] if place < len(rows) else []
        elif rows and dice.chance(0.5):
            del rows[min(place, len(rows) - 1)]
        else:
            rows.insert(place, new)
        return Private(self.names, self.flavours, rows)

    def column(self, place: int) -> list[Any]:
        return [row[place] for row in self.rows]


def objects(values: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Return an array that holds exactly these objects, whatever they say they are."""
    array = np.empty(len(values), object)
    for place, value in enumerate(values):
        array[place] = value
    return array.reshape(shape)
