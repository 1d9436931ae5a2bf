"""What a schema says of each column, in a few words: for dry runs and for pages about a release."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dplinear.schema.columns import Category, Column, Numeric, format_day
from dplinear.schema.schema import Schema

DERIVED = "derived"
OTHER = "other"


@dataclass(frozen=True)
class ColumnFacts:
    """A column or a derived term: its type, what it may hold, what becomes of missing cells."""

    name: str
    type: str
    allowed: str
    missing: str
    features: tuple[str, ...]


def describe_columns(schema: Schema, most: int = 8) -> tuple[ColumnFacts, ...]:
    """Return the facts of each declared column, in order, then those of the derived terms.

    `most` is how many levels are named; of more, their number is told.
    """
    found = [
        ColumnFacts(
            name,
            "category" if isinstance(column, Category) else column.type,
            _allowed(column, most),
            _missing(name, column),
            tuple(schema.names[index] for index in schema.own_features(name)),
        )
        for name, column in schema.declared.items()
    ]
    for term in schema.derived_terms:
        features = [schema.features[index] for index in schema.terms[term]]
        low, high = min(each.low for each in features), max(each.high for each in features)
        names = tuple(each.name for each in features)
        allowed = f"{_number(low)} to {_number(high)}"
        found.append(ColumnFacts(term.label, DERIVED, allowed, "", names))
    return tuple(found)


def shorten(names: Sequence[str], most: int) -> str:
    """Return names one after the other, and of many the first few and how many more there are."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1:,} more"


def _allowed(column: Column, most: int) -> str:
    if isinstance(column, Category):
        return shorten([_level(level) for level in column.levels], most)
    if column.type == "boolean":
        return "0 or 1"
    return f"{describe_value(column, column.low)} to {describe_value(column, column.high)}"


def _missing(name: str, column: Column) -> str:
    """Return what becomes of a cell that holds no number, or of one that holds no level."""
    if isinstance(column, Category):
        return f"{name}=other" if column.other is None else f"count as {describe_filling(column)}"
    if column.leave_out:
        return "row left out"
    filled = describe_filling(column)
    return f"{filled}; {name}:missing is 1" if column.missing_indicator else filled


def describe_filling(column: Column) -> str:
    """Return what stands for a cell that holds no number, or no level."""
    if isinstance(column, Category):
        return OTHER if column.other is None else _level(column.other)
    middle = column.missing == (column.low + column.high) / 2
    return describe_value(column, column.missing) + (", the middle" if middle else "")


def describe_value(column: Numeric, value: Fraction) -> str:
    """Return a number of a column in its own units, dates as dates."""
    return format_day(value) if column.type == "date" else _number(value)


def _level(level: str | Fraction) -> str:
    return level if isinstance(level, str) else str(level)  # as features are named


def _number(value: Fraction) -> str:
    try:
        return f"{float(value):,.10g}"
    except OverflowError:  # of a power that is no float64
        return "-inf" if value < 0 else "inf"
