"""Columns and the ordinary cells that stand in them, by the type that a reader finds for them.

A pool is a list of cells of one type: a column whose cells all come from one pool is what a reader
that infers types takes for integers, numbers, dates, truth values or text. Pools of texts are what
stands in files. The levels of a category differ as numbers, as dates and as words.
"""

import datetime as dt
import decimal
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dplinear.schema import Schema
from fuzz.dice import Dice

Pool = tuple[Any, ...]


@dataclass(frozen=True)
class Column:
    """A column: its declaration (None: not in the schema), and pools of ordinary cells."""

    name: str
    declared: Any
    pools: Mapping[str, Pool]


_DAYS = (dt.date(2020, 1, 1), dt.date(2021, 6, 15), dt.date(2019, 12, 31))
_MOMENTS = tuple(dt.datetime(day.year, day.month, day.day, 8, 30) for day in _DAYS)
_IDS = ("3afa2856-a3da-4c33-bb7f-3ead6b5bce79", "dd447fb9-3d70-4d2b-b5a9-e72be278837c")
_UUIDS = tuple(map(uuid.UUID, _IDS))
_NUMBERS: dict[str, Pool] = {
    "integers": (3, 41, 67, 99, 0),
    "floats": (0.1, 2.25, 99.9, -3.5),
    "decimals": tuple(map(decimal.Decimal, ("0.10", "2.25", "99.90"))),
    "integer texts": ("3", "41", "67"),
    "padded texts": ("003", "041", "067"),
    "float texts": ("0.1", "2.25", "99.9"),
    "exponent texts": ("1e1", "2.5e1", "9e-1"),
    "truth": (True, False),
    "truth texts": ("true", "false"),
    "Truth texts": ("True", "False"),
    "with nothing": (3, None, 67),
    "texts with nothing": ("3", "", "67"),
    "nothing": (None,),
    "days": _DAYS,
    "date texts": ("2020-01-01", "2021-06-15"),
}
_BIG = (12345678901234568, 22345678901234568, 90071992547409931)


def _texts(*texts: str, **others: Pool) -> dict[str, Pool]:
    return {"texts": texts, **others}


COLUMNS = {
    column.name: column
    for column in (
        Column("number", (0, 100), _NUMBERS),
        Column("integer", {"type": "integer", "low": 0, "high": 99}, _NUMBERS),
        Column(
            "indicated",
            {"type": "number", "low": 0, "high": 9, "missing_indicator": True},
            _NUMBERS,
        ),
        Column(
            "big",
            (0, 10**17),
            {"integers": _BIG, "texts": tuple(map(str, _BIG)), "with nothing": (_BIG[0], None)},
        ),
        Column(
            "huge",
            (0, 10**40),
            {"texts": ("1" + "0" * 38 + "7", "2" + "0" * 38), "integers": (10**39 + 7, 10**38)},
        ),
        Column(
            "truth",
            "boolean",
            {
                "truth": (True, False),
                "words": ("true", "false"),
                "Words": ("True", "False"),
                "yes": ("yes", "no"),
                "integers": (0, 1),
                "integer texts": ("0", "1"),
                "floats": (0.0, 1.0),
                "with nothing": (True, None, False),
            },
        ),
        Column(
            "day",
            {"type": "date", "low": "2019-01-01", "high": "2023-01-01"},
            {
                "days": _DAYS,
                "moments": _MOMENTS,
                "texts": ("2020-01-01", "2021-06-15"),
                "moment texts": ("2020-01-01T08:30:00", "2021-06-15T12:00:00.123456"),
                "spaced texts": ("2020-01-01 08:30:00", "2021-06-15 00:00:00"),
                "zoned texts": ("2020-01-01T08:30:00Z", "2021-06-15T08:30:00+05:00"),
                "basic texts": ("20200101", "20210615"),
                "with nothing": (_DAYS[0], None),
            },
        ),
        Column("word", ["a", "b", "c"], {"texts": ("a", "b", "c"), "unseen": ("d", "e")}),
        Column("zip", ["02139", "10001", "60601"], _texts("02139", "10001", "60601")),
        Column(
            "code",
            ["1", "2", "10"],
            {
                "texts": ("1", "2", "10"),
                "integers": (1, 2, 10),
                "floats": (1.0, 2.0, 10.0),
                "float texts": ("1.0", "2.0", "10.0"),
                "with nothing": ("1", "", "2"),
            },
        ),
        Column("price", ["1.50", "2.25", "3"], _texts("1.50", "2.25", "3", floats=(1.5, 2.25))),
        Column("power", ["1e5", "2e5", "x"], _texts("1e5", "2e5")),
        Column("hex", ["0x10", "0x1F", "x"], _texts("0x10", "0x1F")),
        Column("sign", ["+1", "-1", "x"], _texts("+1", "-1")),
        Column("group", ["1,000", "2,000", "x"], _texts("1,000", "2,000")),
        Column(
            "account",
            ["12345678901234568", "22345678901234568"],
            _texts("12345678901234568", "22345678901234568", integers=_BIG[:2]),
        ),
        Column("long id", ["1" + "0" * 39, "2" + "0" * 39], _texts("1" + "0" * 39, "2" + "0" * 39)),
        Column("yes", ["yes", "no"], _texts("yes", "no", truth=(True, False))),
        Column("True", ["True", "False"], _texts("True", "False", truth=(True, False))),
        Column("false", ["true", "false"], _texts("true", "false", truth=(True, False))),
        Column("t", ["t", "f"], _texts("t", "f")),
        Column(
            "visit",
            ["2020-01-01", "2021-06-15"],
            _texts("2020-01-01", "2021-06-15", days=_DAYS, moments=_MOMENTS),
        ),
        Column(
            "moment",
            ["2020-01-01 08:30:00", "2021-06-15 12:00:00"],
            _texts("2020-01-01 08:30:00", "2021-06-15 12:00:00"),
        ),
        Column("clock", ["08:30:00", "17:00:00"], _texts("08:30:00", "17:00:00")),
        Column("id", [_IDS[0].upper(), _IDS[1]], _texts(*_IDS, _IDS[0].upper(), ids=_UUIDS)),
        Column("inf", ["inf", "-inf", "x"], _texts("inf", "-inf")),
        # Words that some readers take for missing cells, and others for text.
        Column("NA", ["EU", "US"], _texts("NA", "EU", "US")),
        Column(
            "none",
            {"type": "category", "levels": ["x", "rest"], "other": "rest"},
            _texts("None", "null", "x"),
        ),
        Column("json", ["[1, 2]", '{"a": 1}'], _texts("[1, 2]", '{"a": 1}')),
        Column("blank", [" a", "a ", "a"], _texts(" a", "a ", "a")),
        Column(
            "grade",
            {"type": "category", "levels": [1, 2, 3]},
            {
                "integers": (1, 2, 3),
                "floats": (1.0, 2.0),
                "texts": ("1", "2", "3"),
                "padded texts": ("01", "02"),
                "with nothing": (1, None, 2),
                "truth": (True, False),
            },
        ),
        Column(
            "other",
            {"type": "category", "levels": ["7", "8", "rest"], "other": "rest"},
            {"texts": ("7", "8"), "integers": (7, 8), "unseen": ("9", "07")},
        ),
        # Not declared: a cell in it may change nothing at all.
        Column("note", None, {"texts": ("p", "q"), "integers": (1, 2), "floats": (0.5, 1.5)}),
    )
}
DERIVED = (
    "number*integer",
    "number^2",
    "integer>=18",
    "number*code",
    "word*truth",
    "day>=2020-06-01",
    "log1p(number)",
    "sqrt(huge)",
    "log1p(big)*word",
    "bins(number, 2.25, 67)",
    "bins(day, 2020-01-01, 2021-06-15)*integer",
    "spline(integer, 4)",
    "spline(indicated, [3])",
    "spline(a, 3)",
    "sqrt(b)*log1p(c)",
    "bins(c, 3, 6)*e",
)
_CALL = re.compile(r"\w+\(([^,)]+)[^)]*\)")
# Columns of numbers alone, for holders that have one type of number for all.
PLAIN = {
    "a": Column("a", (-1, 1), {"floats": (0.1, -0.25, 0.7, 1 / 3), "integers": (0, 1, -1)}),
    "b": Column("b", (0, 100), {"floats": (0.1, 50.5, 99.9), "integers": (3, 41, 67)}),
    "c": Column("c", {"type": "integer", "low": 0, "high": 9}, {"integers": (0, 3, 9)}),
    "d": Column("d", "boolean", {"integers": (0, 1)}),
    "e": Column("e", {"type": "category", "levels": [1, 2, 3]}, {"integers": (1, 2, 3)}),
}


def chosen(dice: Dice, *, plain: bool, named: bool) -> tuple[tuple[Column, ...], Schema]:
    """Throw a table's columns and its schema; `named`: columns may stand there undeclared."""
    among = PLAIN if plain else COLUMNS
    names = [name for name in among if name != "note"]
    picked = dict.fromkeys(dice.pick(names) for _ in range(dice.pick((1, 2, 3, 3))))
    if not plain and dice.chance(0.3):
        picked |= dict.fromkeys(dice.pick((("number", "integer"), ("number", "code"))))
    columns = [among[name] for name in picked]
    if named and not plain and dice.chance(0.3):
        columns.insert(dice.below(len(columns) + 1), COLUMNS["note"])
    declared = {column.name: column.declared for column in columns if column.declared is not None}
    derived = [term for term in DERIVED if dice.chance(0.5) and _holds(term, declared)]
    return tuple(columns), Schema(declared, derived=derived)


def _holds(term: str, declared: Mapping[str, Any]) -> bool:
    names = _CALL.sub(r"\1", term).replace("^2", "").partition(">=")[0].split("*")
    return all(name in declared for name in names)
