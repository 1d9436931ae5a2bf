"""The mean of rows by CoinPress: a ball that holds it, made smaller step by step.

Biswas, Dong, Kamath, Ullman 2020 (arXiv 2006.06618), MVM; Ediger 2021. docs/theory/coinpress.md,
has the sensitivities.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dplinear.adaptive.noisy_sums import NoisySums, Query
from dplinear.arrays import Floats
from dplinear.coinpress import radii
from dplinear.coinpress.windows import Lens, Views
from dplinear.exact.mapped_sums import MappedSum

BETA = 0.01  # how often a row, or the mean, may be outside what it is taken to be within


@dataclass(frozen=True, eq=False)
class Ball:
    """Where a mean is thought to be: ‖L(mean − centre)‖ ≤ radius, L the `root`.

    In the coordinates L x rows are thought to have a covariance of about the identity.
    """

    centre: Floats
    radius: float
    root: Floats


@dataclass(frozen=True, eq=False)
class MeanEstimate:
    """A released mean in the columns' own units, and the covariance that is due to its noise."""

    values: Floats
    noise: Floats
    ball: Ball


def mean(
    sums: NoisySums, table: Views, rows: float, start: Ball, shares: Sequence[Fraction]
) -> MeanEstimate:
    """Release the mean in as many steps as there are shares of μ².

    Requires: `rows`, the number of rows where it is public, a noisy count otherwise.
    Promises: each step is the sum of the rows' images, clipped to a ball around the last centre;
    a row moves it by its radius at most, another row by twice that, whatever rows hold.
    Departs from the paper: sums are divided by a noisy count where n is private.
    """
    ball, estimate = start, None
    for share in shares:
        estimate = _step(sums, table, rows, ball, share)
        ball = estimate.ball
    assert estimate is not None  # noqa: S101 - there is a share
    return estimate


def _step(sums: NoisySums, table: Views, rows: float, ball: Ball, share: Fraction) -> MeanEstimate:
    size = len(ball.centre)
    clip = radii.reach(ball.radius, radii.tail(size, BETA))
    lens = Lens.of(table, ball.root, ball.centre, clip)
    statistic = MappedSum(lens.view.shape, lens.matrix, clip)
    (total,) = sums.ask([Query(statistic, share)], lens.view)
    seen, sigma = lens.with_matrix(statistic.integers, statistic.scale), total.sigma / rows
    centre = np.clip(seen.point(total.values / rows), table.low, table.high)
    radius = radii.ball(rows, sigma, size, BETA)
    noise = seen.covariance(sigma**2 * np.eye(size))
    return MeanEstimate(centre, noise, Ball(centre, radius, ball.root))
