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
from dplinear.schema.factors import Comparison, Factor, Interval, Level, Missing, Power
from dplinear.schema.terms import INTERCEPT, Constant, DerivedTerm, OwnTerm, Term
from dplinear.schema.transforms import Options, read_transform

_COMPARISON = re.compile(r"(.+?)\s*(>=|<=|>|<)\s*(.+)")
_EXPONENT = re.compile(r"[0-9]{1,9}")
_HINT = (
    'write "age*smoker", "age^2", "age>=65", "log(age)", "log1p(age)", "sqrt(age)", '
    '"bins(age, 30, 50)" or "spline(age, 4)", with names of declared columns.'
)


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
        """Whether the feature vanishes for most rows: a factor is 0 or 1, or of a spline."""
        return any(factor.vanishes for factor in self.factors)


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
    # A shift can be undone only by an intercept; and a product with an indicator keeps its zeros,
    # so that the levels of a category stay exclusive and cost the norm of one cell together.
    if not shift or any(factor.vanishes for factor in factors):
        return Feature(name, term, factors, low, high, Fraction(0), max(abs(low), abs(high)))
    return Feature(name, term, factors, low, high, (low + high) / 2, (high - low) / 2)


def _format_bound(end: Fraction) -> str:
    """Return a bound as an error shows it; a power of one may be beyond any float."""
    try:
        return f"{float(end):g}"
    except OverflowError:
        return "-inf" if end < 0 else "inf"


def _interval(factors: Sequence[Factor], columns: Mapping[str, Column]) -> Interval:
    low = high = Fraction(1)
    for factor in factors:
        ends = factor.interval(columns[factor.column])
        corners = [a * b for a in (low, high) for b in ends]
        low, high = min(corners), max(corners)
    return low, high


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


def _factor_options(term: str, columns: Mapping[str, Column]) -> list[Options]:
    """Return what each factor of a term may be: a set of names and factors each."""
    found: dict[str | Factor, Options] = {}  # a column may be named like a function of another
    exponents: dict[str, int] = {}
    for part in map(str.strip, term.split("*")):
        options = None if part in columns else read_transform(part, columns, term)
        if options is None:
            name, exponent = _read_power(part, columns, term)
            exponents[name] = exponents.get(name, 0) + exponent
            found[name] = _column_options(name, exponents[name], columns[name], term)
        elif options[0][1] in found:
            raise rejection("derived", WHERE, "free of a function that is named twice", term)
        else:
            found[options[0][1]] = options
    return list(found.values())


def _read_power(part: str, columns: Mapping[str, Column], term: str) -> tuple[str, int]:
    name, caret, power = (piece.strip() for piece in part.partition("^"))
    if name not in columns or (caret and not _EXPONENT.fullmatch(power)):
        raise rejection("derived", WHERE, "made of declared columns", term, _HINT)
    return name, int(power) if caret else 1


def _column_options(name: str, exponent: int, column: Column, term: str) -> Options:
    if isinstance(column, Category):
        return [(label, factor) for label, factor in _level_factors(name, column)]
    if not 1 <= exponent <= 16:
        raise rejection("derived", WHERE, "of powers between 1 and 16", term)
    return [(name if exponent == 1 else f"{name}^{exponent}", Power(name, exponent))]
