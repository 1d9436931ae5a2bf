"""The gate for bounds: a private way to a schema, for those who cannot name one."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Unpack

from dplinear.analyst.releases.bounds import SuggestedBounds
from dplinear.analyst.releases.certificate import Certificate
from dplinear.arguments import rejection, wrong_type
from dplinear.coinpress.bounds import Bounds, Ranges
from dplinear.coinpress.methods import CoinPressOutcome
from dplinear.curator.gates.options import ReadingOptions, own_options, reading_options
from dplinear.curator.passage import Passage
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.source import Reader
from dplinear.curator.sources.types import DATES, types_without_numbers
from dplinear.curator.windows import Windowed, check_plain
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.columns import LEAVE_OUT, Category, Numeric, write_column

_WHERE = "suggest_bounds"
_DIGITS = 2  # digits of a width that bounds are rounded to, outwards
_TYPES = ("number", "integer")
_FAR = 4  # times: the ends of a column that is not near 0 differ by no more
_SMALLEST = 1e-100
_NARROW = Fraction(1, 2**30)
_NUMBERS = "bounds of numbers or integers"
_LEVELS = (
    "leave such columns out: a category has levels, which you declare or suggest_levels finds, and "
    "not bounds. Nothing was spent."
)
_DATES = (
    'leave such columns out, and declare their bounds yourself: ("2020-01-01", "2026-01-01"). '
    "Nothing was spent."
)
WITHIN = (-1e9, 1e9)


def suggest_bounds(
    data: Any,
    columns: Sequence[str],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    rho: float | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    weight: Sequence[Any] | None = None,
    within: Any = WITHIN,
    public_types: bool = False,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[ReadingOptions],
) -> SuggestedBounds:
    """Release bounds for numeric columns whose scale is not known, and pay for them.

    Requires: the names of `columns` (of an array, all of them, in order); `epsilon` and `delta`, a
    `guarantee`, or `rho`; which tables are `neighbours`; the `unit` of privacy, a column of ids,
    each of which counts as at most `rows_per_unit` rows, if there is one; the `weight` of rows, a
    column with its bounds, if they have any (docs/schema.md). `within` is a pair that surely holds
    all that counts, however wide, or such a pair for each column, by name. Missing cells, and all
    that is no number, count as 0, or as the middle of bounds that are far from it, unless a
    column's declaration in `within` says "leave_out" of them: then their rows count for nothing.
    Columns of text or dates have no bounds to be found: with `public_types`, where the table's
    types were declared and not guessed from its cells, they are refused. Further options go to the
    reading (`threads`, `engine`, `progress`).
    Give paths where you can: what another library makes of a row, as it reads a file, may depend on
    other rows (docs/schema.md, "Types that a library guessed").
    Promises: the bounds together satisfy what the certificate says, whatever the rows hold.
    Arguments, columns and types are checked before anything is spent; nothing is read before it is
    spent; then the table is passed over four times. Bounds hold all but about one row in 5,000 of a
    normal column, given 250·√(k/ρ) rows for k columns; with a tenth of them, now and then only
    half of a column that seems to be found (docs/schema.md).
    """
    with Passage(_WHERE, locals()) as passage:
        relation = Neighbours.parse(neighbours, _WHERE, RELATIONS)
        asked = read_guarantee(_WHERE, epsilon, delta, guarantee, rho=rho)
        own_options(Bounds, options, _WHERE)
        schema = passage.with_unit(_declare_schema(columns, within, weight))
        wide = _around_zero(schema)
        method = Bounds(guarantee=asked, neighbours=relation)
        prepared = method.prepare(len(schema.columns), count_varies=schema.count_varies)
        reading: dict[str, Any] = reading_options(options)

        def open_part(part: Schema) -> Reader:
            rows = passage.rows_per_unit
            return open_reader(data, part, anew=True, rows_per_unit=rows, **reading)

        open_part(wide)
        _check_types(data, schema, public=public_types)

        def release(found: CoinPressOutcome[Ranges], certificate: Certificate) -> SuggestedBounds:
            ranges = found.estimate
            seen = dict(zip(schema.columns, ranges.found.tolist(), strict=True))
            return SuggestedBounds(_schema(schema, ranges), seen, certificate)

        public = {"columns": list(schema.columns)}
        return passage.cross(method, prepared, lambda: Windowed(open_part, wide), release, public)


def _declare_schema(columns: Any, within: Any, weight: Any) -> Schema:
    """Return the schema of the given bounds."""
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise wrong_type("columns", _WHERE, "a list of names of numeric columns", columns)
    names = list(columns)
    if not all(isinstance(name, str) for name in names):
        raise wrong_type("columns", _WHERE, "a list of names of numeric columns", columns)
    if len(set(map(str, names))) < len(names):
        raise rejection("columns", _WHERE, "free of names given twice", columns)
    if isinstance(within, Mapping):
        strange = sorted(str(name) for name in within if name not in names)
        if strange:
            raise rejection("within", _WHERE, "keyed by names of `columns`", strange)
        declared = {name: within.get(name, WITHIN) for name in names}
    else:
        declared = dict.fromkeys(names, within)
    schema = Schema(declared, weight=weight)
    _check_declared(schema)
    odd = [name for name, each in check_plain(schema, _WHERE).items() if each.type not in _TYPES]
    if odd:
        raise rejection("within", _WHERE, "bounds of numbers or integers", ", ".join(odd))
    small = [
        name
        for name, each in check_plain(schema, _WHERE).items()
        if max(abs(each.low), abs(each.high)) < _SMALLEST
    ]
    if small:
        rule = f"bounds of at least {_SMALLEST:g} on one side"
        raise rejection("within", _WHERE, rule, ", ".join(small))
    return schema


def _check_declared(schema: Schema) -> None:
    """Raise for columns that are declared to be categories or dates."""
    levels = [name for name, each in schema.declared.items() if isinstance(each, Category)]
    if levels:
        raise rejection("within", _WHERE, _NUMBERS, ", ".join(levels), _LEVELS)
    dates = [name for name, each in check_plain(schema, _WHERE).items() if each.type == "date"]
    if dates:
        raise rejection("within", _WHERE, _NUMBERS, ", ".join(dates), _DATES)


def _check_types(data: Any, schema: Schema, *, public: bool) -> None:
    """Raise for columns whose type holds no numbers, if types are public; nothing is read."""
    if not isinstance(public, bool):
        raise wrong_type("public_types", _WHERE, "True or False", public)
    if not public:
        return
    odd = types_without_numbers(data, schema.columns)
    if odd is None:
        rule = "left out for a table whose columns have no types of their own"
        raise rejection("public_types", _WHERE, rule, public)
    if odd:
        told = ", ".join(f"{name} ({kind})" for name, kind in odd.items())
        hint = _DATES if DATES in odd.values() else _LEVELS
        raise rejection("columns", _WHERE, "names of columns of numbers", told, hint)


def _around_zero(given: Schema) -> Schema:
    """Return bounds as far on one side of 0 as on the other, unless a column is far from it.

    Octaves are counted from the middle, and what is not known to be elsewhere may be near 0.
    """
    wide: dict[str, Any] = {}
    for name, column in check_plain(given, _WHERE).items():
        ends = sorted((abs(column.low), abs(column.high)))
        if column.low <= 0 <= column.high or _FAR * ends[0] < ends[1]:
            wide[name] = _declared(column, -ends[1], ends[1])
        else:
            wide[name] = write_column(column)
    return Schema(wide, unit=given.unit, weight=given.weight)


def _schema(given: Schema, found: Ranges) -> Schema:
    """Return the schema of the suggested bounds, rounded outwards but never beyond those given."""
    declared = check_plain(given, _WHERE)
    ends = zip(found.low.tolist(), found.high.tolist(), found.found.tolist(), strict=True)
    suggested: dict[str, Any] = {}
    for (name, column), (low, high, seen) in zip(declared.items(), ends, strict=True):
        step = Fraction(10) ** (math.floor(math.log10(high - low)) - _DIGITS + 1)
        step = max(step, Fraction(1)) if column.type == "integer" else step
        least = max(math.floor(Fraction(low) / step) * step, column.low)
        most = min(math.ceil(Fraction(high) / step) * step, column.high)
        narrow = max(abs(least), abs(most)) * _NARROW  # no schema has such bounds
        if most - least <= narrow or not seen:  # all of it is beyond what was given, or nowhere
            least, most = column.low, column.high
        suggested[name] = _declared(column, least, most)
    return Schema(suggested, unit=given.unit, weight=given.weight)


def _declared(column: Numeric, low: Fraction, high: Fraction) -> dict[str, Any]:
    """Return a column with other bounds; rows that lack its number are left out where they were."""
    missing = {"missing": LEAVE_OUT} if column.leave_out else {}
    return {"type": column.type, "low": low, "high": high} | missing
