"""Inputs of `Schema`: declarations, and the files that hold them."""

import datetime as dt
import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.schema import Schema

from .cases import Case
from .dice import Dice
from .strange import damaged
from .values import odd

if TYPE_CHECKING:
    from collections.abc import Callable

_NAMES = (
    "a",
    "b",
    "c",
    "a*b",
    "a^2",
    "a>=1",
    "intercept",
    "é",
    "a=b",
    "a:missing",
    " a",
    "a" * 300,
    "*",
    "^",
    "",
)
_ENDS = (
    0,
    1,
    -1,
    10,
    0.5,
    1e-9,
    1e150,
    -1e150,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    Fraction(1, 3),
    "1/3",
    "1e9999",
    "x",
    "1/0",
    True,
    None,
    np.float64(2),
    np.int64(3),
    10**400,
    2**499,
    2**500,
    dt.date(2020, 1, 1),
    dt.datetime(9999, 12, 31, tzinfo=dt.UTC),
    dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    "2020-01-01",
)
_LEVELS = (
    "a",
    "b",
    "c",
    "other",
    "",
    "a\n",
    "é",
    1,
    2,
    2.0,
    True,
    None,
    float("nan"),
    "a" * 100,
    10**400,
    Fraction(1, 3),
)
_TYPES = ("number", "integer", "boolean", "date", "category", "float", None)
_TERMS = (
    "a*b",
    "a^2",
    "a^3",
    "a^0",
    "a^-1",
    "a^99",
    "a^9999999999",
    "a^" + "9" * 5000,
    "a*a",
    "a*b*c",
    "a>=1",
    "a<0.5",
    "a>1e9999",
    "a>=2020-01-01",
    "b>x",
    "*",
    "a*",
    "",
    "a",
    "zzz",
    "a^b",
    "a**2",
    "intercept",
    "a>=",
    "a*b^2",
    "a^1.5",
    "a ^ 2",
    "a>1>2",
    "a^²",
    "a^٢",
    "*".join("a" * 500),
    "log(a)",
    "log1p(a)",
    "sqrt(a)*b",
    "log(a)^2",
    "log(a, 2)",
    "log()",
    "log(a",
    "exp(a)",
    "sqrt(" * 500 + "a" + ")" * 500,
    "bins(a)",
    "bins(a, 0.5)",
    "bins(a, 0.25, 0.5, 0.75)*b",
    "bins(a, 1e9999)",
    "bins(a, nan)",
    "bins(a, 0.5, 0.5)",
    "bins(a, 2020-01-01)",
    "bins(a, " + "0," * 5000 + ")",
    "spline(a, 3)",
    "spline(a, 4)*spline(b, 5)",
    "spline(a, [0.5])*log1p(b)",
    "spline(a, [])",
    "spline(a, [0.5",
    "spline(a, 0)",
    "spline(a, -4)",
    "spline(a, 8191)",
    "spline(a, " + "9" * 5000 + ")",
    "spline(a, ٤)",
    "sqrt(a)*sqrt(a)",
    None,
    1,
    b"a",
)


def _declaration(dice: Dice) -> Any:
    match dice.below(8):
        case 0 | 1 | 2:
            return (dice.pick(_ENDS[:9]), dice.pick(_ENDS))
        case 3:
            return [dice.pick(_LEVELS) for _ in range(dice.below(5))]
        case 4:
            return dice.pick(("boolean", bool, "number", ["a", "b"], (0, 1), (-1, 1)))
        case 5 | 6:
            return _mapping(dice)
    return odd(dice)


def _mapping(dice: Dice) -> dict[Any, Any]:
    kind = dice.pick(_TYPES) if dice.chance(0.9) else odd(dice)
    options: dict[Any, Any] = {"type": kind}
    known = kind if isinstance(kind, str) else None
    if known in {"number", "integer", "date", "float", None}:
        ends = ("2000-01-01", "2030-01-01") if known == "date" else (0, 10)
        options |= {"low": ends[0], "high": ends[1]}
    if known == "category":
        options["levels"] = ["a", "b"]
    makers: dict[str, Callable[[], Any]] = {
        "low": lambda: dice.pick(_ENDS),
        "high": lambda: dice.pick(_ENDS),
        "missing": lambda: dice.pick(_ENDS),
        "missing_indicator": lambda: odd(dice),
        "drop_first": lambda: odd(dice),
        "other": lambda: dice.pick(_LEVELS),
        "levels": lambda: [dice.pick(_LEVELS) for _ in range(dice.below(5))],
        "extra": lambda: 1,
    }
    for name in dice.some(list(makers), 2):
        options[name] = makers[name]() if dice.chance(0.85) else odd(dice)
    return options


def schema(dice: Dice) -> Case:
    if dice.chance(0.2):
        return _file(dice)
    declared: Any = {}
    for _ in range(dice.pick((1, 1, 2, 3))):
        name = dice.pick(_NAMES[:3]) if dice.chance(0.7) else dice.pick(_NAMES)
        declared[name] = (
            _declaration(dice)
            if dice.chance(0.5)
            else dice.pick(((0, 1), (-1, 1), ["x", "y"], "boolean"))
        )
    options: dict[str, Any] = {}
    if dice.chance(0.4):
        options["derived"] = (
            [dice.pick(_TERMS) for _ in range(dice.below(4))] if dice.chance(0.9) else odd(dice)
        )
    if dice.chance(0.2):
        options["intercept"] = dice.pick((True, False)) if dice.chance(0.7) else odd(dice)
    if dice.chance(0.2):
        options["row_norm"] = dice.pick(_ENDS) if dice.chance(0.7) else odd(dice)
    if dice.chance(0.05):
        declared = odd(dice)
    return Case(("Schema",), lambda _: _whole(Schema(declared, **options)), releases=False)


def _whole(made: Schema) -> Schema:
    """Use all of a schema that was made: what it says of itself must hold."""
    again = Schema.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert hash(again) == hash(made)
    assert len(made.names) == made.dimension
    assert np.isfinite(made.bound)
    assert str(made)
    return made


_TEXTS = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b'{"columns": {}}',
    b'{"columns": {"a": [0, 1]}}',
    b"[columns]\na = [0, 1]\n",
    b"\xff\xfe",
    b'{"columns": ' + b"[" * 100000,
    b'{"columns": {"a": [0, 1e999]}}',
    b'{"columns": {"a": [0, NaN]}}',
    b"a = 1",
    b"[columns]\na = 1979-05-27\n",
    b"[columns]\na = [0, " + b"9" * 5000 + b"]",
    b'{"columns": {"a": [0, ' + b"9" * 5000 + b"]}}",
    b'{"columns": {"a": [0, 1]}, "extra": 1}',
    b'{"columns": {"a": {"type": "date", "low": "x"}}}',
    b"a = " + b"[" * 100000,
    b'{"columns": {"a": [0, 1], "a": [0, 2]}}',
    b'{"columns": {"\\ud800": [0, 1]}}',
)


def _file(dice: Dice) -> Case:
    where = ("Schema", "Schema.from_file", "Schema.from_dict")
    match dice.below(4):
        case 0:
            given = odd(dice)
            return Case(where, lambda _: Schema.from_file(given), releases=False)
        case 1:
            given = odd(dice)
            return Case(where, lambda _: Schema.from_dict(given), releases=False)
    suffix = dice.pick((".json", ".toml", ".txt"))
    content = dice.pick(_TEXTS)
    if dice.chance(0.5):
        content = damaged(
            dice,
            b'{"columns": {"a": [0, 1], "b": {"type": "category", "levels": ["x", "y"]}}, '
            b'"derived": ["a^2"]}',
        )

    def call(folder: Path) -> Schema:
        file = folder / f"schema{suffix}"
        file.write_bytes(content)
        return _whole(Schema.from_file(file))

    return Case(where, call, releases=False)
