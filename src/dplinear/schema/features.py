"""From declared columns to features: their names, order, exact bounds and exact affine maps.

A feature of raw value x enters the Gram matrix as the cell t = (x − centre) / half_width in
[−1, 1]. Both coefficients are exact rationals, so x = centre + half_width·t undoes the map with
nothing lost, for moments as for single values.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dplinear.arguments import rejection, wrong_type
from dplinear.schema.columns import (
    WHERE,
    Category,
    Column,
    Numeric,
    check_bounds,
    check_count,
    read_number,
)
from dplinear.schema.terms import INTERCEPT, Constant, DerivedTerm, OwnTerm, Term

_COMPARISON = re.compile(r"(.+?)\s*(>=|<=|>|<)\s*(.+)")
_EXPONENT = re.compile(r"[0-9]{1,9}")
_HINT = 'write "age*smoker", "age^2" or "age>=65", with names of declared columns.'


@dataclass(frozen=True)
class Power:
    """The factor x^exponent of a product, x the clamped raw value of a numeric column."""

    column: str
    exponent: int


@dataclass(frozen=True)
class Level:
    """The factor "this cell holds level `code`" (-1: none of the levels), 0 or 1."""

    column: str
    code: int


@dataclass(frozen=True)
class Missing:
    """The factor "this cell holds no number", 0 or 1."""

    column: str


@dataclass(frozen=True)
class Comparison:
    """The factor "the clamped raw value is `operator` `threshold`", 0 or 1."""

    column: str
    operator: str
    threshold: Fraction


Factor = Power | Level | Missing | Comparison


@dataclass(frozen=True)
class Feature:
    """One column of the Gram matrix: a product of factors, mapped affinely to [−1, 1].

    `term` is what it belongs to, by structure; its `name` is a label, and decides nothing. The cell
    t and the raw value x satisfy x = centre + half_width·t exactly.
    """

    name: str
    term: Term
    factors: tuple[Factor, ...]
    low: Fraction
    high: Fraction
    centre: Fraction
    half_width: Fraction

    def cell(self, value: Fraction) -> Fraction:
        """Return the cell of a raw value."""
        return (value - self.centre) / self.half_width

    def value(self, cell: Fraction) -> Fraction:
        """Return the raw value of a cell: the exact inverse of `cell`."""
        return self.centre + self.half_width * cell

    @property
    def is_indicator(self) -> bool:
        """Whether a factor is 0 or 1, so that the feature vanishes for most rows."""
        return any(not isinstance(factor, Power) for factor in self.factors)


def intercept() -> Feature:
    """Return the feature that is 1 in every row."""
    one = Fraction(1)
    return Feature(INTERCEPT, Constant(), (), one, one, Fraction(0), one)


def _feature(
    name: str,
    term: Term,
    factors: tuple[Factor, ...],
    columns: Mapping[str, Column],
    *,
    shift: bool,
) -> Feature:
    low, high = _interval(factors, columns)
    check_bounds(
        low, high, term.label, f"derived bounds ({_format_bound(low)}, {_format_bound(high)})"
    )
    if all(not isinstance(factor, Power) for factor in factors):
        return Feature(name, term, factors, low, high, Fraction(0), Fraction(1))
    # A shift can be undone only by an intercept; and a product with an indicator keeps its zeros,
    # so that the levels of a category stay exclusive and cost the norm of one cell together.
    exclusive = any(not isinstance(factor, Power) for factor in factors)
    if exclusive or not shift:
        return Feature(name, term, factors, low, high, Fraction(0), max(abs(low), abs(high)))
    return Feature(name, term, factors, low, high, (low + high) / 2, (high - low) / 2)


def _format_bound(end: Fraction) -> str:
    """Return a bound as an error shows it; a power of one may be beyond any float."""
    try:
        return f"{float(end):g}"
    except OverflowError:
        return "-inf" if end < 0 else "inf"


def _interval(
    factors: Sequence[Factor], columns: Mapping[str, Column]
) -> tuple[Fraction, Fraction]:
    low = high = Fraction(1)
    for factor in factors:
        ends = (Fraction(0), Fraction(1))
        if isinstance(factor, Power):
            column = columns[factor.column]
            assert isinstance(column, Numeric)  # noqa: S101 - by construction of Power
            ends = _power_interval(column.low, column.high, factor.exponent)
        corners = [a * b for a in (low, high) for b in ends]
        low, high = min(corners), max(corners)
    return low, high


def _power_interval(low: Fraction, high: Fraction, exponent: int) -> tuple[Fraction, Fraction]:
    ends = sorted((low**exponent, high**exponent))
    straddles = exponent % 2 == 0 and low < 0 < high
    return (Fraction(0) if straddles else ends[0]), ends[1]


def column_features(
    name: str, columns: Mapping[str, Column], *, shift: bool
) -> tuple[Feature, ...]:
    """Return a declared column's own features."""
    column = columns[name]
    if isinstance(column, Category):
        own = OwnTerm(name, 1)  # a cell holds one level
        levels = _level_factors(name, column)
        return tuple(_feature(label, own, (f,), columns, shift=shift) for label, f in levels)
    centre = (column.low + column.high) / 2 if shift else Fraction(0)
    # A missing cell is 0 beside its flag where its constant is the centre; 1 at the most elsewhere.
    alone = not column.missing_indicator or column.missing == centre
    own = OwnTerm(name, 1 if alone else 2)
    plain = _feature(name, own, (Power(name, 1),), columns, shift=shift)
    if not column.missing_indicator:
        return (plain,)
    return plain, _feature(f"{name}:missing", own, (Missing(name),), columns, shift=shift)


def _level_factors(name: str, column: Category) -> list[tuple[str, Level]]:
    skipped = 1 if column.drop_first else 0
    labelled = [
        (f"{name}={level}", Level(name, code))
        for code, level in enumerate(column.levels)
        if code >= skipped
    ]
    if column.other is None:
        labelled.append((f"{name}=other", Level(name, -1)))
    return labelled


def derived_features(
    index: int, text: object, columns: Mapping[str, Column], *, shift: bool
) -> tuple[Feature, ...]:
    """Return the features of a term such as "age*smoker", at its index among the derived ones."""
    if not isinstance(text, str):
        raise wrong_type("derived", WHERE, "a list of terms", text, _HINT)
    term = DerivedTerm(index, text)
    comparison = _COMPARISON.fullmatch(text)
    if comparison:
        return (_comparison(term, comparison, columns, shift=shift),)
    options = _factor_options(text, columns)
    check_count(math.prod(map(len, options)), "derived")
    features = []
    for combination in itertools.product(*options):
        name = "*".join(label for label, _ in combination)
        factors = tuple(factor for _, factor in combination)
        features.append(_feature(name, term, factors, columns, shift=shift))
    return tuple(features)


def _comparison(
    term: DerivedTerm, match: re.Match[str], columns: Mapping[str, Column], *, shift: bool
) -> Feature:
    name, operator, bound = match.groups()
    column = columns.get(name)
    if not isinstance(column, Numeric):
        raise rejection("derived", WHERE, "made of declared columns", term.text, _HINT)
    threshold = read_number(column, bound, "derived", term.text)
    if not column.low <= threshold <= column.high:
        rule = "a comparison that some value within the column's bounds can change"
        raise rejection("derived", WHERE, rule, term.text)
    return _feature(term.text, term, (Comparison(name, operator, threshold),), columns, shift=shift)


def _factor_options(
    term: str, columns: Mapping[str, Column]
) -> list[list[tuple[str, Power | Level]]]:
    exponents: dict[str, int] = {}
    for part in term.split("*"):
        name, caret, power = (piece.strip() for piece in part.partition("^"))
        if name not in columns or (caret and not _EXPONENT.fullmatch(power)):
            raise rejection("derived", WHERE, "made of declared columns", term, _HINT)
        exponents[name] = exponents.get(name, 0) + (int(power) if caret else 1)
    options: list[list[tuple[str, Power | Level]]] = []
    for name, exponent in exponents.items():
        column = columns[name]
        if isinstance(column, Category):
            options.append(list(_level_factors(name, column)))
        elif 1 <= exponent <= 16:
            label = name if exponent == 1 else f"{name}^{exponent}"
            options.append([(label, Power(name, exponent))])
        else:
            raise rejection("derived", WHERE, "of powers between 1 and 16", term)
    return options
