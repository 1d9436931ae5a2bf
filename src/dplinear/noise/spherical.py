"""Noise in all directions alike, of density proportional to exp(−‖b‖/scale)."""

import numpy as np

from dplinear import arguments
from dplinear.arrays import BigIntegers
from dplinear.noise.chi import chis
from dplinear.noise.entropy import Entropy, system
from dplinear.noise.normals import normals
from dplinear.noise.reals import round_enclosure

_GUARD = 56  # bits beyond those of the result: fewer than one vector in 10^14 needs more


def spherical_laplace_integers(
    scale: arguments.Real, dimension: int, *, entropy: Entropy | None = None
) -> BigIntegers:
    """Draw one vector b of density ∝ exp(−‖b‖/scale), rounded to integers: exactly.

    Requires: scale a rational above 0; a float stands for its exact binary value.
    Promises: ⌊b + 1/2⌋ in each coordinate. b = scale·y·z with y a chi of dimension + 1 degrees and
    z standard normal has that density (docs/noise.md, "Exact reals").
    """
    where = "spherical.spherical_laplace_integers"
    exact = arguments.rational(scale, "scale", where)
    dimension = arguments.integer(dimension, "dimension", where, low=1)
    bits = entropy or system()
    length, direction = chis([dimension + 1], entropy=bits), normals(dimension, entropy=bits)
    precision = int(exact).bit_length() + 2 * dimension.bit_length() + _GUARD
    while True:
        y, z = length.integer(0, precision), direction.integers(precision)
        # y and each z are off by at most 1, so their product by at most this.
        error = np.abs(z) + (abs(y) + 1)
        rounded, undecided = round_enclosure(y * z, error, exact / (1 << 2 * precision))
        if not undecided.any():
            return rounded
        precision *= 2
