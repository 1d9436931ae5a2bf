"""From rows to scaled values in [−1, 1]: the one map that every source and engine goes through.

Everything is elementwise, in a fixed order of float64 operations per cell, so a row's cells are a
bitwise function of that row alone. Bad cells become public constants (docs/schema.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.schema.cells import Cells, codes_of, numbers_of
from dplinear.schema.columns import Column, Numeric
from dplinear.schema.factor_values import FactorValues, product_shifts
from dplinear.schema.factors import Factor, Power

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from dplinear.arrays import Floats
    from dplinear.schema.features import Feature
    from dplinear.schema.schema import Schema


def decode(schema: Schema, columns: Mapping[str, Cells]) -> dict[str, Floats]:
    """Return each column as numbers (NaN where there is none) or level codes (-1: unseen).

    So a cell that is to be filled in can be told, whatever stands for it: NaN, or −1.
    """
    with np.errstate(all="ignore"):
        return {name: _decode_column(what, columns[name]) for name, what in schema.declared.items()}


def _decode_column(column: Column, cells: Cells) -> Floats:
    if isinstance(column, Numeric):
        raw = numbers_of(column, cells)
        return raw if column.type in {"number", "date"} else np.rint(raw)
    return codes_of(column, cells).astype(np.float64)


@dataclass(frozen=True)
class _Line:
    """A feature's affine map in float64: (x − centre)·slope. `plain` names a column used as is.

    `shifts`: a product whose factors float64 cannot multiply as they are is multiplied by a power
    of two after each of them, so that no running product overflows (None: nothing can overflow).
    """

    factors: tuple[Factor, ...]
    centre: float
    slope: float
    missing: float
    plain: str | None
    shifts: tuple[int, ...] | None = None


class Encoder:
    """The cells of a schema's features, times a public scale.

    Cells are made in two steps: `array`, `map_values` and `columns` map them affinely; `finish`
    clamps them to [−scale, scale] and replaces those that are no number. (The Gram matrix rounds to
    integers in between, which comes to the same and saves a walk through memory.)
    Promises: shape (dimension, rows); column j is a bitwise function of row j alone; nothing raises
    or warns because of a value.
    """

    def __init__(self, schema: Schema, scale: float = 1.0) -> None:
        self.schema = schema
        self.scale = scale
        self._lines = [self._line(feature) for feature in schema.features]
        self.missing = np.array([[line.missing] for line in self._lines])
        first = 1 if schema.has_intercept else 0
        self._centres = _alike([line.centre for line in self._lines[first:]])
        self._slopes = _alike([line.slope for line in self._lines[first:]])

    def _line(self, feature: Feature) -> _Line:
        factors = feature.factors
        column = self.schema.declared[factors[0].column] if factors else None
        if not isinstance(column, Numeric) or factors != (Power(factors[0].column, 1),):
            # Products are numbers whatever the row holds, so that none is ever missing.
            shifts = product_shifts(factors, self.schema.declared)
            unit = Fraction(2) ** sum(shifts or ())
            slope = float(Fraction(self.scale) / (feature.half_width * unit))
            return _Line(factors, float(feature.centre * unit), slope, 0.0, None, shifts)
        centre = float(feature.centre)
        slope = float(Fraction(self.scale) / feature.half_width)
        cell = (float(column.missing) - centre) * slope
        missing = min(max(cell, -self.scale), self.scale)
        return _Line(factors, centre, slope, missing, factors[0].column)

    def columns(self, columns: Mapping[str, Cells], rows: int) -> Floats:
        """Map columns held as Arrow or NumPy arrays of equal length."""
        return self.map_values(decode(self.schema, columns), rows)

    def map_values(self, table: Mapping[str, Floats], rows: int) -> Floats:
        """Map what `decode` returned, or equal slices of it."""
        cells = np.empty((self.schema.dimension, rows))
        values = FactorValues(self.schema, table)
        with np.errstate(all="ignore"):
            for out, line in zip(cells, self._lines, strict=True):
                if line.plain is not None:
                    _map(table[line.plain], line, out)
                elif not line.factors:
                    out.fill(self.scale)
                else:
                    _map(values.product(line.factors, line.shifts), line, out)
        return cells

    def array(self, block: npt.NDArray[Any], out: Floats | None = None) -> Floats:
        """Map a block of shape (rows, source columns), columns in the schema's order.

        `out`, of shape (rows, dimension), may be used to hold the result.
        """
        fast = self.schema.is_plain and block.dtype.kind in "fiub" and block.dtype.itemsize <= 8
        if not fast or isinstance(block, np.ma.MaskedArray):
            names = enumerate(self.schema.columns)
            return self.columns({name: block[:, index] for index, name in names}, len(block))
        first = 1 if self.schema.has_intercept else 0
        cells = self.room_for(block) if out is None else out
        inner = cells[:, first:]
        with np.errstate(all="ignore"):
            if np.any(self._centres):
                np.subtract(block, self._centres, out=inner, dtype=np.float64)
                np.multiply(inner, self._slopes, out=inner)
            else:
                np.multiply(block, self._slopes, out=inner, dtype=np.float64)
        cells[:, :first] = self.scale
        return cells.T

    def room_for(self, block: npt.NDArray[Any]) -> Floats:
        """Return memory for the cells of a block, laid out as the block is."""
        by_column = block.strides[0] < block.strides[1]
        return np.empty((len(block), self.schema.dimension), order="F" if by_column else "C")

    def finish(self, cells: Floats) -> Floats:
        """Clamp mapped cells to [−scale, scale] and replace those that are no number, in place."""
        np.clip(cells, -self.scale, self.scale, out=cells)
        if cells.size and np.isnan(cells.min()):
            np.copyto(cells, self.missing, where=np.isnan(cells))
        return cells


def _alike(values: list[float]) -> Floats:
    """Return one number where all are the same, which is quicker to multiply by."""
    return np.array(values[0] if len(set(values)) == 1 else values)


def _map(values: Floats, line: _Line, out: Floats) -> None:
    if line.centre:  # x − 0 is x
        np.subtract(values, line.centre, out=out)
        np.multiply(out, line.slope, out=out)
    else:
        np.multiply(values, line.slope, out=out)
