"""Functions of a number in derived terms, such as "log(x)", "bins(x, 30, 50)" or "spline(x, 4)"."""

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from dplinear.arguments import rejection
from dplinear.schema.columns import (
    WHERE,
    Column,
    Numeric,
    check_count,
    format_day,
    read_number,
)
from dplinear.schema.factors import Bin, Factor, Logarithm, Root, SplineFunction
from dplinear.schema.splines import DEGREE, even_knots

Options = list[tuple[str, Factor]]

_CALL = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)\s*\((.*)\)", re.DOTALL)
_COUNT = re.compile(r"[0-9]{1,6}")
_SMALLEST = Fraction(1, 2**500)  # as small as bounds may be
_SPLINE = (
    'write "spline(age, 4)", which has 4 features and evenly spaced knots (3 features at least), '
    'or "spline(age, [30, 50, 65])", which names the knots.'
)


def read_transform(part: str, columns: Mapping[str, Column], term: str) -> Options | None:
    """Return what a factor such as "log(age)" stands for: names and factors; None: it is no call.

    Requires: one factor of a derived `term`, any text at all.
    Promises: of bins and splines all but the first, as the others and the intercept imply it.
    """
    called = _CALL.fullmatch(part)
    if called is None or called[1] not in _READERS:
        return None
    name, _, rest = (piece.strip() for piece in called[2].partition(","))
    column = columns.get(name)
    if not isinstance(column, Numeric):
        rule = "made of declared columns, with functions of numbers, truth values or dates"
        hint = f"{called[1]}(...) takes the name of such a column first."
        raise rejection("derived", WHERE, rule, term, hint)
    return _READERS[called[1]](name, column, rest, term)


def _without_arguments(rest: str, term: str) -> None:
    if rest:
        raise rejection("derived", WHERE, "a logarithm or a root of one column", term)


def _logarithm(name: str, column: Numeric, rest: str, term: str) -> Options:
    _without_arguments(rest, term)
    if column.low < _SMALLEST:
        rule = "a logarithm of a column whose lower bound is above 0 (at least 2^-500)"
        hint = (
            f'write "log1p({name})", which is log(1 + {name}), or declare {name!r} with a lower '
            "bound above 0: smaller cells then count as that bound."
        )
        raise rejection("derived", WHERE, rule, term, hint)
    return [(f"log({name})", Logarithm(name, 0))]


def _logarithm_of_successor(name: str, column: Numeric, rest: str, term: str) -> Options:
    _without_arguments(rest, term)
    if column.low < 0:
        rule = "log1p of a column whose lower bound is 0 or more"
        hint = f"declare {name!r} with such a bound: smaller cells then count as that bound."
        raise rejection("derived", WHERE, rule, term, hint)
    return [(f"log1p({name})", Logarithm(name, 1))]


def _root(name: str, column: Numeric, rest: str, term: str) -> Options:
    _without_arguments(rest, term)
    if column.low < 0:
        rule = "a square root of a column whose lower bound is 0 or more"
        hint = f"declare {name!r} with such a bound: smaller cells then count as that bound."
        raise rejection("derived", WHERE, rule, term, hint)
    return [(f"sqrt({name})", Root(name))]


def _bins(name: str, column: Numeric, rest: str, term: str) -> Options:
    edges = _numbers(column, rest, term)
    if not edges:
        hint = 'write "bins(age, 30, 50, 65)": four bins, of which the first is the reference.'
        raise rejection("derived", WHERE, "bins with at least one edge", term, hint)
    _check_rising(column, edges, "edges of bins", term)
    ends = [_format(column, edge) for edge in (*edges, column.high)]
    closing = [")"] * (len(edges) - 1) + ["]"]
    return [
        (f"{name}[{low}, {high}{end}", Bin(name, edges, index))
        for index, ((low, high), end) in enumerate(zip(pairwise(ends), closing, strict=True), 1)
    ]


def _spline(name: str, column: Numeric, rest: str, term: str) -> Options:
    if rest.startswith("[") and rest.endswith("]"):
        inner = _numbers(column, rest[1:-1], term)
        _check_rising(column, inner, "knots", term)
        knots = (column.low, *inner, column.high)
        label = f"spline({name}, [{', '.join(_format(column, knot) for knot in inner)}])"
    elif _COUNT.fullmatch(rest) and int(rest) >= DEGREE:
        check_count(int(rest), "derived")
        knots = even_knots(column.low, column.high, int(rest) + 1)
        label = f"spline({name}, {int(rest)})"
        _check_rising(column, knots[1:-1], "knots", term)
    else:
        raise rejection("derived", WHERE, "a spline with a number of features", term, _SPLINE)
    functions = range(1, len(knots) - 1 + DEGREE)
    return [(f"{label}[{index}]", SplineFunction(name, knots, index)) for index in functions]


def _numbers(column: Numeric, text: str, term: str) -> tuple[Fraction, ...]:
    """Return numbers between commas, or dates, which may stand in quotes."""
    if not text.strip():
        return ()
    parts = text.split(",")
    check_count(len(parts), "derived")
    return tuple(read_number(column, part.strip().strip("'\""), "derived", term) for part in parts)


def _check_rising(column: Numeric, inner: Sequence[Fraction], what: str, term: str) -> None:
    """Raise unless numbers rise, as floats too, from one bound of the column to the other.

    And not in steps so small that one over them is no float: pieces of splines are divided by them.
    """
    exact = (column.low, *inner, column.high)
    # Exactly first: a number beyond the bounds may be beyond all floats.
    falls = any(low >= high for low, high in pairwise(exact))
    least = (column.high - column.low) / 2**32
    close = not falls and any(high - low < least for low, high in pairwise(exact))
    if falls or close or any(low >= high for low, high in pairwise(map(float, exact))):
        rule = f"{what} that rise, between the column's bounds, by 2^-32 of them at the least"
        raise rejection("derived", WHERE, rule, term)


def _format(column: Numeric, number: Fraction) -> str:
    """Return a number of a column as names have it: as short as tells it from its neighbours."""
    if column.type == "date":
        return format_day(number)
    return repr(float(number)).removesuffix(".0")


_READERS: dict[str, Callable[[str, Numeric, str, str], Options]] = {
    "log": _logarithm,
    "log1p": _logarithm_of_successor,
    "sqrt": _root,
    "bins": _bins,
    "spline": _spline,
}
FUNCTIONS = frozenset(_READERS)
