"""What derived features are products of: functions of one column's cell, with exact bounds.

A row's cell enters as the clamped raw value x, or as the code of its level. `vanishes` says that a
factor is 0 in most rows, so that a product with it keeps its zeros; `binary`, that it is 0 or 1.

Factors that come in sets, such as the levels of a category, the bins of a number or the functions
of a spline, are never negative and sum to at most 1 in every row. So do products over two sets, as
Σᵢⱼ aᵢ·bⱼ = Σ aᵢ · Σ bⱼ; hence their squares sum to at most 1 too, and a derived term of cells in
[−1, 1] adds at most 1 to the squared norm of a row, however many features it has.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import ClassVar

from dplinear.schema.columns import Column, Numeric
from dplinear.schema.logarithms import log_bounds

_UNIT = 2**64
Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class _OneOfSet:
    """A factor between 0 and 1, whose set sums to at most 1."""

    vanishes: ClassVar[bool] = True
    binary: ClassVar[bool] = True

    def interval(self, column: Column) -> Interval:
        """Return bounds of the factor."""
        return Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Level(_OneOfSet):
    """The factor "this cell holds level `code`" (-1: none of the levels), 0 or 1."""

    column: str
    code: int


@dataclass(frozen=True)
class Missing(_OneOfSet):
    """The factor "this cell holds no number", 0 or 1."""

    column: str


@dataclass(frozen=True)
class Comparison(_OneOfSet):
    """The factor "the clamped raw value is `operator` `threshold`", 0 or 1."""

    column: str
    operator: str
    threshold: Fraction


@dataclass(frozen=True)
class Bin(_OneOfSet):
    """The factor "x is in bin `index`", 0 or 1.

    Bin 0 is below the first of the `edges`; any other begins with an edge and ends below the next.
    """

    column: str
    edges: tuple[Fraction, ...]
    index: int


@dataclass(frozen=True)
class SplineFunction(_OneOfSet):
    """The factor Bᵢ(x), i the `index`: one of the cubic B-splines of `knots`, ends included."""

    binary: ClassVar[bool] = False

    column: str
    knots: tuple[Fraction, ...]
    index: int


@dataclass(frozen=True)
class _Smooth:
    """A factor of any size, which no set bounds."""

    vanishes: ClassVar[bool] = False
    binary: ClassVar[bool] = False


@dataclass(frozen=True)
class Power(_Smooth):
    """The factor x^exponent of a product, x the clamped raw value of a numeric column."""

    column: str
    exponent: int

    def interval(self, column: Column) -> Interval:
        """Return the exact bounds of the power."""
        low, high = _ends(column)
        ends = sorted((low**self.exponent, high**self.exponent))
        straddles = self.exponent % 2 == 0 and low < 0 < high
        return (Fraction(0) if straddles else ends[0]), ends[1]


@dataclass(frozen=True)
class Logarithm(_Smooth):
    """The factor log(x + shift), `shift` 0 or 1, of a column whose x + shift is above 0."""

    column: str
    shift: int

    def interval(self, column: Column) -> Interval:
        """Return rational bounds around the irrational ones: log increases."""
        low, high = _ends(column)
        return log_bounds(low + self.shift)[0], log_bounds(high + self.shift)[1]


@dataclass(frozen=True)
class Root(_Smooth):
    """The factor √x of a column without negative values."""

    column: str

    def interval(self, column: Column) -> Interval:
        """Return rational bounds, within 2^-64 of the exact ones: the root increases."""
        low, high = _ends(column)
        return _root_floor(low), _root_ceiling(high)


Factor = Power | Logarithm | Root | Level | Missing | Comparison | Bin | SplineFunction


def _ends(column: Column) -> Interval:
    assert isinstance(column, Numeric)  # noqa: S101 - by construction of the factors
    return column.low, column.high


def _root_floor(number: Fraction) -> Fraction:
    # √(n/d) = √(n·d)/d, so that what is rounded away is small next to the root.
    square = number.numerator * number.denominator * _UNIT**2
    return Fraction(isqrt(square), number.denominator * _UNIT)


def _root_ceiling(number: Fraction) -> Fraction:
    square = number.numerator * number.denominator * _UNIT**2
    root = isqrt(square)
    return Fraction(root + (root * root < square), number.denominator * _UNIT)
