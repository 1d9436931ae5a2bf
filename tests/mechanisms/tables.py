"""Small private tables as exact statistics, and exact tests of what is claimed of releases."""

from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms import Measurement, PreparedMoments
from dplinear.noise import simulation
from dplinear.privacy.profiles import Profile

# Every statistical test of this folder and of the contract suite may fail by chance with at most
# this probability: together they make fewer than 400 comparisons, so 1e-6 over all of them.
FALSE_ALARM = 1e-6 / 400

Matrix = NDArray[np.float64]
Rows = list[list[int]]
Loss = Callable[[Measurement, Matrix, Matrix], float]
# B = 1 exactly, on a fine grid.
UNIT = {d: Shape(d, 2**20, 20) for d in (1, 2, 5, 10, 40)}


def shape_of(dimension: int, exponent: int = 8) -> Shape:
    """Return the shape of rows in [−1, 1]^d on a small grid."""
    return Shape(dimension, max(isqrt(4**exponent // dimension), 1), exponent)


def statistic(shape: Shape, rows: Rows, *, known: bool = True) -> Statistic:
    """Return the second moments of integer rows, verified to be within the shape's bound."""
    total = np.zeros((shape.dimension, shape.dimension), object)
    for row in rows:
        assert sum(cell**2 for cell in row) <= shape.sensitivity
        total = total + np.outer(np.array(row, object), np.array(row, object))
    return Statistic(shape, total, len(rows) if known else None)


def axis(shape: Shape, which: int) -> list[int]:
    """Return a row of full norm along one axis."""
    return [(1 << shape.exponent) * (i == which) for i in range(shape.dimension)]


def multiple(shape: Shape, eigenvalue: int) -> Statistic:
    """Return the statistic eigenvalue·I, in integer units."""
    diagonal = np.zeros((shape.dimension, shape.dimension), object)
    for i in range(shape.dimension):
        diagonal[i, i] = eigenvalue
    return Statistic(shape, diagonal, None)


def random_statistic(shape: Shape, count: int, seed: int) -> Statistic:
    """Return the moments of `count` rows of independent uniform cells."""
    generator = simulation.generator(seed)
    cells = generator.integers(
        -shape.steps_per_unit, shape.steps_per_unit + 1, (count, shape.dimension)
    )
    exact = cells.astype(object)
    return Statistic(shape, np.asarray(exact.T @ exact), count)


def released(mechanism: Any, shape: Shape, rows: int | None = None) -> Any:
    """Measure a table of zeros, of which a number of rows may be said."""
    nothing = np.zeros((shape.dimension, shape.dimension), object)
    return mechanism.prepare(shape).run(Statistic(shape, nothing, rows), simulation.entropy(3))


def draws(prepared: PreparedMoments, of: Statistic, count: int, seed: int) -> list[Measurement]:
    """Measure again and again, with seeded entropy."""
    entropy = simulation.entropy(seed)
    return [prepared.run(of, entropy) for _ in range(count)]


def interval(hits: int, count: int) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a probability, exact at the false-alarm rate."""
    half = FALSE_ALARM / 2
    low = float(stats.beta.ppf(half, hits, count - hits + 1)) if hits else 0.0
    high = float(stats.beta.isf(half, hits + 1, count - hits)) if hits < count else 1.0
    return low, high


def replayed(
    prepared: PreparedMoments,
    one: Statistic,
    other: Statistic,
    loss: Loss,
    epsilon: float,
    count: int,
) -> tuple[float, float]:
    """Return an exact confidence interval of δ(ε) from one table to the other.

    δ is the mean of (1 − e^{ε−L})₊ over releases of the first table, L the logarithm of the ratio
    of likelihoods. A coin that lands heads with that probability makes the count binomial.
    """
    released = draws(prepared, one, count, seed=11)
    left, right = one.matrix(), other.matrix()
    losses = np.array([loss(measurement, left, right) for measurement in released])
    gains = -np.expm1(np.minimum(epsilon - losses, 0.0))
    coins = simulation.generator(12).uniform(size=count)
    return interval(int((coins < gains).sum()), count)


def claimed(prepared: PreparedMoments, of: Statistic) -> Profile:
    """Return the profile that a release carries."""
    profile = prepared.run(of, simulation.entropy(1)).account.profile
    assert profile is not None
    return profile
