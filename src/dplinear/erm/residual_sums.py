"""The sums of a whitened descent: the energy of residuals, and their clipped, whitened gradient.

Public matrices are rounded to so few bits that their products with a row are exact integers
whatever BLAS does; from there on, each row is treated by elementwise IEEE operations alone
(docs/exact-pass.md, "Other sums").
"""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt

from dplinear.arguments import mistyped, positive, rejection
from dplinear.erm.integers import EXACT, bounded, quantised, scratch, squared_lengths
from dplinear.erm.row_sums import Integers, RowSum, check_shape, freeze
from dplinear.mechanisms.contract import Shape
from dplinear.schema.cells import Floats

_RESIDUAL_BITS = 25  # of a clipped residual, so that 4096 of its squares stay within 2^62
_GRADIENT_BITS = 26  # of a row's gradient, so that its squared norm is exact


@dataclass(frozen=True, eq=False)
class Energy(RowSum):
    """Σ min(r², residual²), r = weights · cells of a row.

    Requires: `weights`, a number for each cell (1 for the target, −u for the features of a
    regression, 0 elsewhere); `residual`, above 0, in the cells' units.
    Promises: weights are rounded to `integers`·2^−`scale`; with these, r is exact, or within 2⁻²⁵
    of the clip. `bound` is the square of the clip in units, rounded down.
    """

    shape: Shape
    weights: InitVar[npt.ArrayLike]
    residual: float
    size: int = field(default=1, init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    integers: Floats = field(init=False, repr=False)
    scale: int = field(init=False)
    _step: float = field(init=False, repr=False)
    _clip: float = field(init=False, repr=False)

    def __post_init__(self, weights: npt.ArrayLike) -> None:
        where = "Energy"
        check_shape(self.shape, where)
        exact = _public(weights, (self.shape.dimension,), "weights", where)
        integers, scale = quantised(exact[None, :], self.shape.exponent)
        reach = _in_units(self.residual, "residual", where, self.shape.cells, scale)
        shift = max(_bits(reach) - _RESIDUAL_BITS, 0)
        clip = int(reach / 2**shift)
        freeze(self, integers=integers, scale=scale, bound=clip**2)
        freeze(self, unit=(_power(shift - scale) / self.shape.cells) ** 2)
        freeze(self, _step=2.0**-shift, _clip=float(clip))

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the clipped squares."""
        residuals = np.rint((self.integers @ rows) * self._step)
        np.clip(residuals, -self._clip, self._clip, out=residuals)
        return np.array([np.square(residuals).astype(np.int64).sum()])


@dataclass(frozen=True, eq=False)
class Gradient(RowSum):
    """Σ clip(W x)·clip(r): per row, a whitened vector shortened to `leverage`, times a residual.

    Requires: `whitening`, a matrix with a column for each cell (0 for those that take no part);
    `weights` and `residual` as for `Energy`; `leverage`, above 0: the norm that W x is shortened to
    (the clips count as at least one unit, and at most what a row can reach).
    Promises: W is rounded to `integers[:-1]`·2^−`scales[0]`, the weights to
    `integers[-1]`·2^−`scales[1]`; each row's gradient to integers of norm at most `bound` ≤ 2^26,
    which is leverage·residual in units, rounded down.
    """

    shape: Shape
    whitening: InitVar[npt.ArrayLike]
    weights: InitVar[npt.ArrayLike]
    leverage: float
    residual: float
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    integers: Floats = field(init=False, repr=False)
    scales: tuple[int, int] = field(init=False)
    _clips: tuple[float, float] = field(init=False, repr=False)
    _step: float = field(init=False, repr=False)

    def __post_init__(self, whitening: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        where = "Gradient"
        check_shape(self.shape, where)
        d, cells, exponent = self.shape.dimension, self.shape.cells, self.shape.exponent
        matrix, first = quantised(_public(whitening, (None, d), "whitening", where), exponent)
        exact = _public(weights, (d,), "weights", where)
        row, second = quantised(exact[None, :], exponent)
        lever = _in_units(self.leverage, "leverage", where, cells, first, len(matrix))
        residual = _in_units(self.residual, "residual", where, cells, second)
        product = lever * residual
        shift = _bits(product) - _GRADIENT_BITS
        integers = np.concatenate((matrix, row))
        integers.flags.writeable = False
        freeze(self, size=len(matrix), integers=integers, scales=(first, second))
        freeze(self, bound=int(product / _power(shift)))
        freeze(self, unit=_power(shift - first - second) / cells**2)
        freeze(self, _clips=(float(lever), float(residual)), _step=2.0**-shift)

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the clipped gradients."""
        leverage, residual = self._clips
        room = scratch("products", (len(self.integers), rows.shape[1]))
        products = np.matmul(self.integers, rows, out=room)
        whitened = products[:-1]
        factor = np.clip(products[-1], -residual, residual) * self._step
        lengths = np.sqrt(squared_lengths(whitened))
        factor *= leverage / np.maximum(lengths, leverage)
        terms = np.multiply(whitened, factor, out=whitened)
        bounded(np.rint(terms, out=terms), self.bound**2)
        return np.asarray(terms.sum(axis=1), np.int64)


def _public(
    values: npt.ArrayLike, shape: Sequence[int | None], parameter: str, where: str
) -> Floats:
    """Return a public array of finite numbers, not all zero."""
    rule = "finite real numbers, one for each cell, not all zero"
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise mistyped(parameter, where, rule, type(values)) from None
    fits = array.ndim == len(shape)
    fits = fits and all(want in {None, got} for want, got in zip(shape, array.shape, strict=True))
    if not fits:
        raise rejection(parameter, where, rule, f"an array of shape {array.shape}")
    if not np.isfinite(array).all() or not array.any():
        raise rejection(parameter, where, rule, "other numbers")
    return array


def _in_units(  # noqa: PLR0913, PLR0917 - what it is, and what it is made of
    clip: float, parameter: str, where: str, cells: int, scale: int, rows: int = 1
) -> Fraction:
    """Return a clip in units of an integer product: at least 1, at most what rows can reach."""
    exact = Fraction(positive(clip, parameter, where)) * cells * _power(scale)
    reach = (isqrt(rows - 1) + 1) * 2**EXACT  # no less than the root of `rows`, times 2^53
    # As a float64, which is what rows are compared with.
    return Fraction(float(min(max(exact, 1), reach)))


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def _bits(number: Fraction) -> int:
    """Return the least b with number ≤ 2^b, for a number of at least 1."""
    return (-(-number.numerator // number.denominator) - 1).bit_length()
