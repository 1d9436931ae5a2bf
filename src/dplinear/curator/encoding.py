"""From rows to cells in [−1, 1]: the one map that every source and engine goes through.

Everything is elementwise, in a fixed order of float64 operations per cell, so a row's cells are a
bitwise function of that row alone. Bad cells become public constants (docs/schema.md).
"""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dplinear.curator.cells import Cells, Floats, codes_of, numbers_of
from dplinear.curator.columns import Category, Numeric
from dplinear.curator.features import Comparison, Factor, Feature, Level, Missing, Power

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dplinear.curator.schema import Schema

_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def _slope(feature: Feature, scale: float) -> float:
    return float(Fraction(scale) / feature.half_width)


def _missing_cell(column: Numeric, feature: Feature, scale: float) -> float:
    cell = (float(column.missing) - float(feature.centre)) * _slope(feature, scale)
    return min(max(cell, -scale), scale)


def encode_array(schema: Schema, block: Floats, scale: float) -> Floats:
    """Encode plain float64 columns all at once, to the same bits as `encode_columns`."""
    first = 1 if schema.has_intercept else 0
    features = schema.features[first:]
    slopes = np.array([_slope(feature, scale) for feature in features])
    centres = np.array([float(feature.centre) for feature in features])
    cells = np.empty((len(block), schema.dimension))
    inner = cells[:, first:]
    with np.errstate(all="ignore"):
        np.subtract(block, centres, out=inner)
        np.multiply(inner, slopes, out=inner)
    np.clip(inner, -scale, scale, out=inner)
    if inner.size and np.isnan(inner.min()):
        replace = [
            _missing_cell(column, feature, scale)
            for column, feature in zip(schema.declared.values(), features, strict=True)
            if isinstance(column, Numeric)
        ]
        np.copyto(inner, np.array(replace), where=np.isnan(inner))
    cells[:, :first] = scale
    return cells.T


def encode_columns(schema: Schema, columns: Mapping[str, Cells], rows: int, scale: float) -> Floats:
    """Return the cells of all features, feature by feature: shape (dimension, rows)."""
    result = np.empty((schema.dimension, rows))
    with np.errstate(all="ignore"):
        table = _Table(schema, columns)
        for row, feature in zip(result, schema.features, strict=True):
            table.write(feature, row, scale)
    return result


class _Table:
    """The decoded columns of one batch, each decoded once."""

    def __init__(self, schema: Schema, columns: Mapping[str, Cells]) -> None:
        self._declared = schema.declared
        self._columns = columns
        self._raw: dict[str, Floats] = {}
        self._clamped: dict[str, Floats] = {}
        self._codes: dict[str, Floats] = {}

    def write(self, feature: Feature, out: Floats, scale: float) -> None:
        """Write the feature's cells, times scale."""
        if not feature.factors:
            out.fill(scale)
            return
        first = feature.factors[0]
        column = self._declared[first.column]
        if feature.factors == (Power(first.column, 1),) and isinstance(column, Numeric):
            np.subtract(self._numbers(first.column), float(feature.centre), out=out)
            np.multiply(out, _slope(feature, scale), out=out)
            np.clip(out, -scale, scale, out=out)
            if out.size and np.isnan(out.min()):
                np.copyto(out, _missing_cell(column, feature, scale), where=np.isnan(out))
            return
        np.copyto(out, self._factor(first))
        for factor in feature.factors[1:]:
            np.multiply(out, self._factor(factor), out=out)
        np.subtract(out, float(feature.centre), out=out)
        np.multiply(out, _slope(feature, scale), out=out)
        np.clip(out, -scale, scale, out=out)

    def _factor(self, factor: Factor) -> Floats:
        name = factor.column
        if isinstance(factor, Level):
            return np.asarray(self._levels(name) == factor.code, dtype=np.float64)
        if isinstance(factor, Missing):
            return np.asarray(np.isnan(self._numbers(name)), dtype=np.float64)
        if isinstance(factor, Comparison):
            holds = _COMPARE[factor.operator](self._values(name), float(factor.threshold))
            return np.asarray(holds, dtype=np.float64)
        base = self._values(name)
        power = base.copy()
        for _ in range(factor.exponent - 1):
            power *= base
        return power

    def _numbers(self, name: str) -> Floats:
        """The raw numbers of a column, NaN where a cell holds none; integers rounded."""
        if name not in self._raw:
            column = self._declared[name]
            assert isinstance(column, Numeric)  # noqa: S101 - by construction of the features
            raw = numbers_of(column, self._columns[name])
            self._raw[name] = np.rint(raw) if column.type in {"integer", "boolean"} else raw
        return self._raw[name]

    def _values(self, name: str) -> Floats:
        """The raw numbers of a column, clamped, the missing ones replaced."""
        if name not in self._clamped:
            column = self._declared[name]
            assert isinstance(column, Numeric)  # noqa: S101 - as above
            raw = self._numbers(name)
            filled = np.where(np.isnan(raw), float(column.missing), raw)
            low, high = float(column.low), float(column.high)
            self._clamped[name] = np.asarray(np.clip(filled, low, high), dtype=np.float64)
        return self._clamped[name]

    def _levels(self, name: str) -> Floats:
        """The codes of a category column, unseen cells joining their public level."""
        if name not in self._codes:
            column = self._declared[name]
            assert isinstance(column, Category)  # noqa: S101 - as above
            codes = codes_of(column, self._columns[name])
            if column.other is not None:
                codes = np.where(codes < 0, list(column.levels).index(column.other), codes)
            self._codes[name] = codes.astype(np.float64)
        return self._codes[name]
