"""Errors as curves of one number: what privacy adds, against rows·μ for each coefficient.

The excess risk of a method is that of least squares plus what privacy adds, and what privacy adds
depends on the table's size and the budget through one number x, next to nothing else: noise has a
standard deviation in proportion to 1/(rows·μ), and dimensions enter as `abscissa` says. So each
curve is fitted to simulated tables of all sizes at once, falls everywhere, and goes on as 1/x²
beyond the last table in which it can be told from the sampling error: as 1/x where the features are
so correlated that directions come out of the noise one after the other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import gammaincinv

from dplinear.arrays import Floats
from dplinear.coinpress.regression import CoinPressRegression
from dplinear.mechanisms.adassp import AdaSSP
from dplinear.mechanisms.moments.inverse_wishart import InverseWishart
from dplinear.mechanisms.moments.sketch import GaussianSketch
from dplinear.planner.populations import WIDTH

NODES = np.linspace(-2.0, 5.0, 36)  # of the decimal logarithm of x
WHOLE_MATRIX = frozenset({AdaSSP.name, "analyze_gauss", "additive_wishart"})
# Their noise is in proportion to the matrix, so that more rows do not make it vanish.
PROPORTIONAL = frozenset({GaussianSketch.name, InverseWishart.name})
_WIDE = 16.0  # standard deviations: bounds that a descent does not mind
_LOST = 300.0  # of columns·width²/(rows·μ), at which it learns nothing
_SLOPE = -2.0  # of what privacy adds, in logarithms, where it is small
_HIDDEN_SLOPE = -1.0  # while a direction after the other comes out of the noise
_HIDING = 1_000.0  # the condition number from which that lasts throughout
_END = 0.5  # the part of the decimal logarithm, before the last point, that this is fitted to


@dataclass(frozen=True)
class Size:
    """What the abscissa depends on."""

    rows: float
    columns: int
    mu: float
    square: float
    width: float = WIDTH
    sample: float | None = None  # rows of the same sampling error, where those are others


def abscissa(name: str, size: Size) -> float:
    """Return x: rows·μ by the number of coefficients, or by the noise of a whole matrix.

    That noise has a spectral norm of about square·√columns/μ, against eigenvalues of rows/width².
    """
    if name in WHOLE_MATRIX or name in PROPORTIONAL:
        signal = (WIDTH / size.width) ** 2
        return size.rows * size.mu * signal / (size.square * math.sqrt(size.columns + 2))
    return size.rows * size.mu / (size.columns + 1)


def sampling_error(rows: float, columns: int, explained: float, factor: float = 1.0) -> float:
    """Return the median excess risk of least squares of normal rows; 1 where they are too few.

    rows − columns − 2 stands for the mean of an inverse Wishart matrix; the excess is χ² with a
    degree of freedom for each coefficient, whose median is below its mean.
    """
    left = rows - columns - 2
    if left <= 0:
        return 1.0
    return min((1 / explained - 1) * factor * chi_square_median(columns + 1) / left, 1.0)


@cache
def chi_square_median(degrees: int) -> float:
    """Return the median of a chi-square."""
    return float(2 * gammaincinv(degrees / 2, 0.5))


def fit_curve(
    name: str, points: Sequence[tuple[float, float, float]], condition: float = 1.0
) -> Floats:
    """Return the decimal logarithm of what privacy adds, at the nodes.

    Requires: points (x, what privacy added, a weight).
    Promises: falls everywhere; constant before the first point, and after the last ones as 1/x², or
    as 1/x where the condition number is so large that noise hides ever fewer directions.
    """
    nodes, slope = NODES, _SLOPE
    if condition >= _HIDING and name != CoinPressRegression.name:  # which whitens step by step
        slope = _HIDDEN_SLOPE
    ordered = sorted((math.log10(x), math.log10(added), weight) for x, added, weight in points)
    indices, values = falling(ordered)
    found = np.interp(nodes, indices, values)
    if name in PROPORTIONAL:
        return np.asarray(found)
    end = ordered[-1][0] - _END
    late = np.array([point for point in ordered if point[0] >= end])
    height = float(np.average(late[:, 1] - slope * late[:, 0], weights=late[:, 2]))
    beyond = nodes > end
    found[beyond] = height + slope * nodes[beyond]
    return np.minimum.accumulate(found)


def falling(points: Sequence[tuple[float, float, float]]) -> tuple[Floats, Floats]:
    """Return the falling curve nearest to weighted points: blocks that would rise become one.

    Each block stands at its mean place, so that the curve has no steps.
    """
    blocks: list[list[float]] = []  # the weight of its points, and the sums of both coordinates
    for index, value, weight in points:
        blocks.append([weight, weight * index, weight * value])
        while len(blocks) > 1 and _mean(blocks[-1], 2) >= _mean(blocks[-2], 2):
            last = blocks.pop()
            blocks[-1] = [sum(pair) for pair in zip(blocks[-1], last, strict=True)]
    indices = np.array([_mean(block, 1) for block in blocks])
    return indices, np.array([_mean(block, 2) for block in blocks])


def _mean(block: Sequence[float], coordinate: int) -> float:
    return block[coordinate] / block[0]


def far_bounds(size: Size) -> float:
    """Return what a descent loses to bounds that are far too wide: it no longer finds the scale.

    Roughly: the noise of the first sums over their size is columns·width²/(rows·μ), and at some
    hundreds of it nothing is left. Up to sixteen standard deviations nothing is lost.
    """
    lost = [
        (size.columns * width**2 / (size.rows * size.mu * _LOST)) ** 2
        for width in (size.width, min(size.width, _WIDE))
    ]
    return min(lost[0] - lost[1], 1.0)
