"""Public matrices and clips, in the integers that rows are multiplied and compared with.

docs/exact-pass.md, "Other sums", has the rules and the proofs.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isqrt

import numpy as np
import numpy.typing as npt

from dplinear.arguments import positive, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.exact.integers import EXACT, quantise
from dplinear.exact.row_sums import check_shape
from dplinear.exact.shape import Shape


def rounded_matrix(
    values: npt.ArrayLike, shape: Shape, parameter: str, where: str
) -> tuple[Floats, int]:
    """Return a matrix with a column for each cell as integers·2^−scale, and the scale."""
    check_shape(shape, where)
    return quantise(_public(values, (None, shape.dimension), parameter, where), shape.exponent)


def rounded_weights(
    values: npt.ArrayLike, shape: Shape, parameter: str, where: str
) -> tuple[Floats, int]:
    """Return a number for each cell as integers·2^−scale, a matrix of one row, and the scale."""
    check_shape(shape, where)
    return quantise(_public(values, (shape.dimension,), parameter, where)[None], shape.exponent)


def _public(
    values: npt.ArrayLike, shape: Sequence[int | None], parameter: str, where: str
) -> Floats:
    """Return a public array of finite numbers, not all zero."""
    rule = "finite real numbers, one for each cell, not all zero"
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise wrong_type(parameter, where, rule, type(values)) from None
    fits = array.ndim == len(shape)
    fits = fits and all(want in {None, got} for want, got in zip(shape, array.shape, strict=True))
    if not fits:
        raise rejection(parameter, where, rule, f"an array of shape {array.shape}")
    if not np.isfinite(array).all() or not array.any():
        raise rejection(parameter, where, rule, "other numbers")
    return array


def in_units(
    clip: float, parameter: str, where: str, *, unit: Fraction, reach: int = 1 << EXACT
) -> Fraction:
    """Return a clip in units of `unit`: at least 1, at most `reach`, which no row exceeds."""
    if not (type(clip) is float and 0 < clip < inf):
        clip = positive(clip, parameter, where)
    exact = Fraction(clip) / unit
    # As a float64, which is what rows are compared with.
    return Fraction(float(min(max(exact, Fraction(1)), Fraction(reach))))


def longest(rows: int) -> int:
    """Return a norm that no product with a rounded matrix of so many rows exceeds."""
    return (isqrt(rows - 1) + 1) << EXACT  # no less than the root of `rows`, times 2^53


def power(exponent: int) -> Fraction:
    """Return 2^exponent, exactly."""
    return Fraction(2) ** exponent


def bits(number: Fraction) -> int:
    """Return the least b with number ≤ 2^b, for a number of at least 1."""
    return (-(-number.numerator // number.denominator) - 1).bit_length()
