"""Normal noise rounded to integers, exactly: what is added to an integer is then a rounded sum."""

from fractions import Fraction

import numpy as np

from dplinear import arguments
from dplinear.arrays import BigIntegers
from dplinear.noise.entropy import Entropy
from dplinear.noise.normals import normals
from dplinear.noise.reals import Reals, round_enclosure

_GUARD = 56  # bits beyond the unit of the result: fewer than one number in 10^16 needs more


def rounded_normals(
    scale: arguments.Real, count: int, *, entropy: Entropy | None = None
) -> BigIntegers:
    """Draw independent numbers ⌊scale·z + 1/2⌋ with z standard normal: exactly.

    Requires: scale a rational above 0; a float stands for its exact binary value.
    Promises: for an integer k, k plus such a number is ⌊k + scale·z + 1/2⌋, the rounding of normal
    noise about k. So it has the whole profile of normal noise, without any cost of a grid.
    """
    exact = arguments.rational(scale, "scale", "rounded_normals.rounded_normals")
    return rounded_normals_of(normals(count, entropy=entropy), exact)


def rounded_normals_of(draws: Reals, scale: Fraction) -> BigIntegers:
    """Return ⌊scale·z + 1/2⌋ for numbers z that are drawn already."""
    precision = int(scale).bit_length() + _GUARD
    while True:
        found, undecided = round_enclosure(
            draws.integers(precision), np.ones(len(draws), object), scale / (1 << precision)
        )
        if not undecided.any():
            return found
        precision *= 2
