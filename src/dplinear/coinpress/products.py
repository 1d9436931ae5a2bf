"""The sum that a regression by CoinPress is made of: products of a row's features and residual."""

from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Floats, Integers
from dplinear.exact.integers import clamp, product, shorten
from dplinear.exact.public_maps import (
    bits,
    in_units,
    longest,
    power,
    rounded_matrix,
    rounded_weights,
)
from dplinear.exact.row_sums import RowSum, freeze
from dplinear.exact.shape import Shape

_BITS = 26  # of a row's product, so that its squared norm is exact
_LONGEST_PRODUCT = 53


@dataclass(frozen=True, eq=False)
class Products(RowSum):
    """Σ clip(M z·r − c), r = weights · z, z the cells of a row, clipped to norm at most `norm`.

    Requires: `matrix`, M, and `weights`, with a column for each cell, neither all zero; `centre`,
    c, a finite number for each row of M; `norm`, above 0, in the cells' units squared (at least
    one unit, at most what a row can reach).
    Promises: M is rounded to `integers[:-1]`·2^−`scales[0]`, the weights to
    `integers[-1]`·2^−`scales[1]`, c to `units`·`unit`; each row's vector to integers of norm at
    most `bound` ≤ 2^26, which is the norm in units, rounded down.
    """

    shape: Shape
    matrix: InitVar[npt.ArrayLike]
    weights: InitVar[npt.ArrayLike]
    centre: InitVar[npt.ArrayLike]
    norm: float
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 4
    integers: Floats = field(init=False, repr=False)
    scales: tuple[int, int] = field(init=False)
    units: Floats = field(init=False, repr=False)
    _step: float = field(init=False, repr=False)

    def __post_init__(
        self, matrix: npt.ArrayLike, weights: npt.ArrayLike, centre: npt.ArrayLike
    ) -> None:
        where = "Products"
        rows, first = rounded_matrix(matrix, self.shape, "matrix", where)
        row, second = rounded_weights(weights, self.shape, "weights", where)
        product_unit = power(-first - second) / self.shape.unit
        reach = 2 * longest(len(rows)) << _LONGEST_PRODUCT
        norm = in_units(self.norm, "norm", where, unit=product_unit, reach=reach)
        shift = bits(norm) - _BITS
        unit = product_unit * power(shift)
        integers = np.concatenate((rows, row))
        units = _in_units(centre, len(rows), unit)
        for array in (integers, units):
            array.flags.writeable = False
        freeze(self, size=len(rows), integers=integers, scales=(first, second), units=units)
        freeze(self, bound=int(norm / power(shift)), unit=unit, _step=2.0**-shift)

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the clipped products."""
        products = product(self.integers, rows)
        terms = products[:-1]
        # Elementwise, so that a row's vector is a bitwise function of that row alone.
        np.multiply(terms, products[-1] * self._step, out=terms)
        np.subtract(terms, self.units, out=terms)
        return np.asarray(shorten(clamp(terms), self.bound).sum(axis=1), np.int64)


def _in_units(centre: npt.ArrayLike, size: int, unit: Fraction) -> Floats:
    """Return the centre as a column of whole units."""
    rule = "a finite number for each row of the matrix"
    try:
        array = np.array(centre, np.float64)
    except (TypeError, ValueError):
        raise wrong_type("centre", "Products", rule, type(centre)) from None
    if array.shape != (size,) or not np.isfinite(array).all():
        raise rejection("centre", "Products", rule, f"an array of shape {array.shape}")
    whole = [float(round(Fraction(number) / unit)) for number in array.tolist()]
    return clamp(np.array(whole)[:, None])
