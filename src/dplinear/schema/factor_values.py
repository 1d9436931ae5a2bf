"""The factors of derived features, row by row, and their products.

As all of the encoding, they are elementwise, in a fixed order of float64 operations per cell.
"""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dplinear.schema.columns import Category, Column
from dplinear.schema.factors import (
    Bin,
    Comparison,
    Factor,
    Level,
    Logarithm,
    Missing,
    Power,
    Root,
    SplineFunction,
)
from dplinear.schema.logarithms import log, log1p
from dplinear.schema.splines import basis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dplinear.arrays import Booleans, Floats, Indices
    from dplinear.schema.schema import Schema

_FAR = 2**900  # products of factors that stay within it, and above its inverse, are numbers
_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def level_codes(column: Category, codes: Floats) -> Floats:
    """Return what `decode` made of levels; cells without one join the level that is declared."""
    if column.other is None:
        return codes
    return np.where(codes < 0, float(column.levels.index(column.other)), codes)


class FactorValues:
    """The factors of derived features, from the clamped raw values of one block of rows."""

    def __init__(self, schema: Schema, table: Mapping[str, Floats]) -> None:
        self._declared = schema.declared
        self._table = table
        self._clamped: dict[str, Floats] = {}
        self._levels: dict[str, Floats] = {}
        self._splines: dict[tuple[str, tuple[Fraction, ...]], tuple[Floats, Indices]] = {}

    def product(self, factors: Sequence[Factor], shifts: Sequence[int] | None) -> Floats:
        """Return the product of factors, times 2^Σshifts if there are shifts.

        Promises: a number in every row, and 0 wherever an indicator is 0, whatever else the row
        holds: no running product is beyond 2^900 in size, or, with shifts, beyond 1.
        """
        if shifts is None:
            product = self.factor(factors[0])
            for factor in factors[1:]:
                product = np.multiply(product, self.factor(factor))
            return product
        left, product = iter(shifts), np.ones(())
        for factor in factors:
            if factor.vanishes:
                product = product * self.factor(factor)
                continue
            base, times = _steps(factor)
            values = self.factor(base)
            for _ in range(times):
                product = product * np.ldexp(values, next(left))
        return product

    def factor(self, factor: Factor) -> Floats:
        """Return a factor's values, row by row."""
        if isinstance(factor, Level):
            return _truth(self._codes(factor.column) == factor.code)
        if isinstance(factor, Missing):
            return _truth(np.isnan(self._table[factor.column]))
        base = self._values(factor.column)
        if isinstance(factor, SplineFunction):
            return self._spline_function(factor, base)
        return _of_number(factor, base)

    def _spline_function(self, factor: SplineFunction, base: Floats) -> Floats:
        key = factor.column, factor.knots
        if key not in self._splines:
            self._splines[key] = basis(base, factor.knots)
        found, first = self._splines[key]
        at = factor.index - first
        there = (at >= 0) & (at < len(found))
        return np.where(there, np.take_along_axis(found, np.where(there, at, 0)[None], 0)[0], 0.0)

    def _codes(self, name: str) -> Floats:
        """Return the codes of levels; cells without a level join the one that is declared."""
        if name not in self._levels:
            column = self._declared[name]
            assert isinstance(column, Category)  # noqa: S101 - by construction of features
            self._levels[name] = level_codes(column, self._table[name])
        return self._levels[name]

    def _values(self, name: str) -> Floats:
        if name not in self._clamped:
            column = self._declared[name]
            assert not isinstance(column, Category)  # noqa: S101 - by construction of features
            raw = self._table[name]
            filled = np.where(np.isnan(raw), float(column.missing), raw)
            low, high = float(column.low), float(column.high)
            self._clamped[name] = np.asarray(np.clip(filled, low, high), dtype=np.float64)
        return self._clamped[name]


def _truth(holds: Booleans) -> Floats:
    return np.asarray(holds, dtype=np.float64)


def _of_number(factor: Power | Comparison | Bin | Logarithm | Root, base: Floats) -> Floats:
    """Return a function of clamped raw values."""
    if isinstance(factor, Comparison):
        return _truth(_COMPARE[factor.operator](base, float(factor.threshold)))
    if isinstance(factor, Bin):
        edges = [float(edge) for edge in factor.edges]
        return _truth(np.searchsorted(edges, base, "right") == factor.index)
    if isinstance(factor, Logarithm):
        return log1p(base) if factor.shift else log(base)
    if isinstance(factor, Root):
        return np.asarray(np.sqrt(base))  # which IEEE 754 rounds in one way only
    power = base.copy()
    for _ in range(factor.exponent - 1):
        power *= base
    return power


def product_shifts(
    factors: Sequence[Factor], declared: Mapping[str, Column]
) -> tuple[int, ...] | None:
    """Return the powers of two that keep running products within ±1; None where none is needed.

    One for each power, logarithm or root, and one more for each time that a power is multiplied by
    itself. Public: the columns' bounds alone decide. They are exact, so that a product is as if
    float64 had no largest number.
    """
    shifts: list[int] = []
    running, safe = Fraction(1), True
    for factor in factors:
        if factor.vanishes:
            continue
        base, times = _steps(factor)
        largest = max(map(abs, base.interval(declared[factor.column])))
        for exponent in range(1, times + 1):
            running *= largest
            safe = safe and _is_safe(running) and _is_safe(largest**exponent)
            # After the shift the largest running product is from 1/4 to 1 in size.
            size = running.numerator.bit_length() - running.denominator.bit_length() + 1
            shifts.append(-size - sum(shifts))
    return None if safe else tuple(shifts)


def _steps(factor: Factor) -> tuple[Factor, int]:
    """Return what a product is multiplied by, and how often: a power is its column, repeated."""
    if isinstance(factor, Power):
        return Power(factor.column, 1), factor.exponent
    return factor, 1


def _is_safe(number: Fraction) -> bool:
    return Fraction(1, _FAR) <= number <= _FAR
