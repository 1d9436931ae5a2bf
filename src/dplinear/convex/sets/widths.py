"""Gaussian widths in one integral: means of the largest of independent variables."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.special import gammainc, gammaincc, gammaln, log_ndtr

from dplinear.arrays import Floats


def largest_magnitude(count: int) -> float:
    """Return E max |gⱼ| of `count` standard normal variables."""
    return largest_norm(np.ones(1), np.array([float(count)]))


def largest_norm(sizes: Floats, counts: Floats) -> float:
    """Return the mean of the largest norm of standard normal vectors, `counts` of each size."""

    def above(level: float) -> float:
        """Return the probability that the largest is above."""
        half = level * level / 2
        beyond = gammaincc(sizes / 2, half)
        # The logarithm of the probability of being below, from whichever side is the smaller.
        within = np.maximum(gammainc(sizes / 2, half), np.finfo(np.float64).tiny)
        logs = np.where(beyond < 0.5, np.log1p(-np.minimum(beyond, 0.5)), np.log(within))
        return -math.expm1(float(counts @ logs))

    top = math.sqrt(float(sizes.max())) + math.sqrt(2 * math.log(float(counts.sum()) + 1))
    return _integral(above, 0.0, top)


def largest(count: int) -> float:
    """Return E max gⱼ of `count` standard normal variables."""

    def above(level: float) -> float:
        return -math.expm1(count * float(log_ndtr(level)))

    def below(level: float) -> float:
        return math.exp(count * float(log_ndtr(-level)))

    top = math.sqrt(2 * math.log(count + 1))
    return _integral(above, 0.0, top) - _integral(below, 0.0, top)


def norm(dimension: int) -> float:
    """Return the mean norm of a standard normal vector."""
    return math.sqrt(2) * math.exp(float(gammaln((dimension + 1) / 2) - gammaln(dimension / 2)))


def _integral(function: Callable[[float], float], low: float, top: float) -> float:
    """Return an integral from `low` to infinity; beyond top + 12 there are no digits left."""
    edges = np.linspace(low, top + 12, 9)
    return math.fsum(
        quad(function, start, end, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
        for start, end in pairwise(edges)
    )
