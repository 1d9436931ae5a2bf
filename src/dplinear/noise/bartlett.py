"""Bartlett's triangle, exactly: a lower triangle A with A·Aᵀ of the law Wishart(I, degrees)."""

from fractions import Fraction

import numpy as np

from dplinear import arguments
from dplinear.arrays import BigIntegers
from dplinear.noise.chi import chis
from dplinear.noise.entropy import Entropy, system
from dplinear.noise.normals import normals


class Bartlett:
    """Normal numbers below the diagonal, chi numbers of degrees, degrees − 1, … on it.

    Requires: degrees of at least `dimension`, whole or rational.
    Promises: as `Reals`, in a square.
    """

    def __init__(
        self, dimension: int, degrees: int | Fraction, *, entropy: Entropy | None = None
    ) -> None:
        where = "bartlett.Bartlett"
        self.dimension = arguments.integer(dimension, "dimension", where, low=1)
        self.degrees = arguments.rational(degrees, "degrees", where)
        if self.degrees < dimension:
            raise arguments.rejection("degrees", where, "at least the dimension", degrees)
        bits = entropy or system()
        self._below = np.tril_indices(dimension, -1)
        self._normals = normals(len(self._below[0]), entropy=bits)
        self._chis = chis([self.degrees - i for i in range(dimension)], entropy=bits)

    def integers(self, precision: int) -> BigIntegers:
        """Return K with |A·2^precision − K| ≤ 1 in every cell, and 0 above the diagonal.

        So ‖A·2^precision − K‖_F ≤ dimension.
        """
        triangle = np.zeros((self.dimension, self.dimension), np.object_)
        triangle[self._below] = self._normals.integers(precision)
        triangle[np.diag_indices(self.dimension)] = self._chis.integers(precision)
        return triangle
