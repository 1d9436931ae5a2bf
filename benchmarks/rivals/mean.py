"""The private mean of the target: what a method must beat to have said anything."""

import math

import numpy as np

from benchmarks.rivals.common import Array, Line, mu_of
from dplinear.noise.simulation import Generator
from dplinear.privacy import Guarantee


def noise_scale(guarantee: Guarantee) -> float:
    """Return σ for the pair (sum of the target, number of rows).

    One row adds (y, 1) with |y| ≤ 1, of norm at most √2.
    """
    return math.sqrt(2) / mu_of(guarantee)


def fit(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return a flat line at the private mean.

    Requires: targets in [-1, 1].
    Promises: the guarantee, add_remove, the count included.
    """
    sigma = noise_scale(guarantee)
    total = float(target.sum()) + sigma * generator.standard_normal()
    count = len(target) + sigma * generator.standard_normal()
    middle = min(1.0, max(-1.0, total / max(count, 1.0)))
    return Line(middle, np.zeros(rows.shape[1]))
