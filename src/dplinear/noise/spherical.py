"""Noise in all directions alike, of density proportional to exp(−‖b‖/scale): idealised numerics."""

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.noise.entropy import Entropy
from dplinear.noise.wishart import chi_square, standard_normal


def spherical_laplace(scale: float, dimension: int, *, entropy: Entropy | None = None) -> Floats:
    """Draw one vector: a uniform direction, and a length that is gamma with shape `dimension`.

    Shells of radius r have a volume of order r^(dimension − 1), which makes the length's law gamma.
    """
    where = "spherical.spherical_laplace"
    scale = arguments.positive(scale, "scale", where)
    dimension = arguments.integer(dimension, "dimension", where, low=1)
    direction = standard_normal(dimension, entropy=entropy)
    length = chi_square(2.0 * dimension, 1, entropy=entropy)[0] / 2.0
    return np.asarray(direction * (scale * length / np.linalg.norm(direction)))
