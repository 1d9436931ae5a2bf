"""Arguments that nobody should pass: of every wrong type, size and shape, or with own ideas."""

import datetime as dt
import decimal
import enum
import math
import numbers
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, PureDP
from dplinear.schema import Schema

from .dice import Dice


class Rude:
    """An object that raises whatever is asked of it."""

    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError("rude")

    __str__ = __repr__ = __eq__ = __hash__ = __bool__ = __float__ = __int__ = __len__ = _refuse
    __iter__ = __lt__ = __gt__ = __le__ = __ge__ = __index__ = __array__ = __format__ = _refuse


class Mute:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("mute")


class LyingReal(float):
    """A float that shows and converts as it likes."""

    def __repr__(self) -> str:
        raise RuntimeError("lying")

    __str__ = __repr__


class RaisingReal(numbers.Real):
    """A number in name only."""

    def _refuse(self, *_: object) -> NoReturn:
        raise ArithmeticError("no number")

    __float__ = __trunc__ = __floor__ = __ceil__ = __round__ = __floordiv__ = _refuse  # type: ignore[assignment]
    __rfloordiv__ = __mod__ = __rmod__ = __lt__ = __le__ = __add__ = __radd__ = _refuse
    __neg__ = __pos__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __pow__ = __rpow__ = __abs__ = __eq__ = _refuse
    __hash__ = object.__hash__  # type: ignore[assignment]


class Faceless:
    """An object that does not say what it is."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("faceless")

    @__class__.setter
    def __class__(self, _: object) -> None:
        raise RuntimeError("faceless")


class Quits(Faceless):
    """An object that ends the program, whatever is asked of it."""

    @property
    def __class__(self) -> Any:
        raise SystemExit("quits")

    @__class__.setter
    def __class__(self, _: object) -> None:
        raise SystemExit("quits")


class Panics(Faceless):
    """An object that raises what is no `Exception`, as libraries in Rust do."""

    @property
    def __class__(self) -> Any:
        raise BaseException("panics")  # noqa: TRY002 - as bare as they come

    @__class__.setter
    def __class__(self, _: object) -> None:
        raise BaseException("panics")  # noqa: TRY002


class RudeText(str):
    """A text that raises whatever is asked of it."""

    __slots__ = ()

    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError("rude")

    strip = lower = __str__ = __eq__ = __hash__ = __len__ = __iter__ = _refuse


class RudeBytes(bytes):
    """Bytes that raise whatever is asked of them."""

    __slots__ = ()

    def decode(self, *_: object) -> NoReturn:
        raise RuntimeError("rude")

    __eq__ = __hash__ = __len__ = __iter__ = decode


class RudeCount(int):
    """An integer that raises whatever is asked of it."""

    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError("rude")

    __int__ = __float__ = __index__ = __str__ = __repr__ = __eq__ = __hash__ = _refuse
    __lt__ = __gt__ = __le__ = __ge__ = __trunc__ = __bool__ = _refuse


class Words(str):
    """A text of a class of its own."""

    __slots__ = ()


class Count(int):
    """An integer of a class of its own."""


class Colour(enum.Enum):
    RED = "add_remove"


class Number(enum.IntEnum):
    TWO = 2


def _endless() -> Iterator[int]:
    while True:
        yield 0


PLAIN: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    7,
    100,
    2**31,
    2**53,
    2**63,
    -(2**63),
    10**400,
    -(10**400),
    10**5000,
    0.0,
    -0.0,
    0.5,
    1.0,
    -1.0,
    1.5,
    5e-324,
    1e-300,
    1e-17,
    1e17,
    1e300,
    1.7e308,
    math.nan,
    math.inf,
    -math.inf,
    "",
    " ",
    "x",
    "1",
    "nan",
    "auto",
    "exact",
    "add_remove",
    "replace",
    "element",
    "None",
    "é",
    "\u202e",
    "\x00",
    "\ud800",
    "a" * 1000,
    "a\nb",
    "1e999999",
    b"",
    b"x",
    b"\xff",
    1j,
    (),
    (1,),
    (1, 2),
    (2, 1),
    (0, math.nan),
    (1, 2, 3),
    ("a", "b"),
    frozenset(),
    range(3),
    Ellipsis,
    NotImplemented,
    int,
    object,
    len,
    Colour.RED,
    Number.TWO,
)

MADE: tuple[Callable[[], Any], ...] = (
    list,
    dict,
    set,
    object,
    Rude,
    Mute,
    RaisingReal,
    lambda: LyingReal(0.5),
    _endless,
    lambda: [1, 2],
    lambda: [None],
    lambda: ["a"],
    lambda: [[]],
    lambda: {"a": 1},
    lambda: {1: 2},
    lambda: np.float64(0.3),
    lambda: np.float32(0.5),
    lambda: np.float16(0.5),
    lambda: np.longdouble("0.5"),
    lambda: np.longdouble("1e4000"),
    lambda: np.int64(3),
    lambda: np.uint8(200),
    lambda: np.bool_(True),
    lambda: np.str_("auto"),
    lambda: np.array(1.0),
    lambda: np.array([1.0]),
    lambda: np.array([]),
    lambda: np.zeros((2, 2)),
    lambda: np.float64(math.nan),
    lambda: np.datetime64("NaT"),
    lambda: np.timedelta64(1, "s"),
    lambda: Fraction(1, 3),
    lambda: Fraction(10**400),
    lambda: Fraction(1, 10**400),
    lambda: decimal.Decimal("0.1"),
    lambda: decimal.Decimal("NaN"),
    lambda: decimal.Decimal("sNaN"),
    lambda: decimal.Decimal("1e9999"),
    lambda: dt.date(2020, 1, 1),
    lambda: dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    lambda: dt.timedelta(1),
    lambda: Words("exact"),
    lambda: Count(3),
    lambda: Path("nowhere"),
    lambda: ApproxDP(1.0, 1e-6),
    lambda: PureDP(1.0),
    lambda: ZCDP(0.5),
    lambda: GDP(1.0),
    lambda: MIDP(0.5),
    lambda: ZCDP(5e-324),
    lambda: ZCDP(1e300),
    lambda: PureDP(1e-300),
    lambda: PureDP(1e300),
    lambda: ApproxDP(0.0, 0.5),
    lambda: ApproxDP(1.0, 5e-324),
    lambda: ApproxDP(1.0, 1 - 2**-53),
    lambda: ApproxDP(1e-300, 1e-300),
    lambda: GDP(1e-300),
    lambda: MIDP(1e300),
    lambda: MIDP(5e-324),
    lambda: Schema(x=(0, 1)),
    lambda: ValueError("x"),
    lambda: (yes for yes in "ab"),
    lambda: memoryview(b"abc"),
    lambda: bytearray(b"abc"),
)


def odd(dice: Dice) -> Any:
    """Return an argument of any kind."""
    if dice.chance(0.5):
        return dice.pick(PLAIN)
    return dice.make(MADE)


# Numbers of each size that a real argument may have.
REALS = (
    1e-300,
    1e-30,
    1e-9,
    1e-3,
    0.01,
    0.1,
    0.5,
    0.9,
    1,
    1.0,
    2,
    3.0,
    10,
    50.0,
    1e3,
    1e6,
    1e9,
    1e17,
    1e100,
    1e300,
)
INTEGERS = (0, 1, 2, 3, 4, 5, 8, 16, 50, 100, 1000, 10**4, 10**6, 10**9, 2**31, 2**63, 10**20)


def real(dice: Dice) -> Any:
    """Return a number that a real argument may or may not take."""
    if dice.chance(0.3):
        return odd(dice)
    number = dice.pick(REALS)
    return dice.pick((float, np.float64, Fraction))(number) if dice.chance(0.3) else number


def whole(dice: Dice) -> Any:
    """Return a number that an integer argument may or may not take."""
    return odd(dice) if dice.chance(0.3) else dice.pick(INTEGERS)


def word(dice: Dice, *known: str) -> Any:
    """Return a text that may be among the known ones."""
    if dice.chance(0.5) and known:
        return dice.pick(known)
    return odd(dice)
