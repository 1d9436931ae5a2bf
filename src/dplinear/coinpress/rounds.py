"""The rounds of a regression by CoinPress: each estimates what the last one left over.

The mean of x·y is estimated by noise and clips as large as y; that of x·(y − x·β̂), by those of the
residuals. So a first estimate is pressed into better ones, and the last rounds see errors alone.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtr

from dplinear.adaptive.filter import KalmanFilter
from dplinear.adaptive.noisy_sums import NoisySums, Query, growing_shares
from dplinear.arrays import Floats
from dplinear.coinpress import radii
from dplinear.coinpress.local_frame import LocalFrame
from dplinear.coinpress.products import Products
from dplinear.exact.residual_sums import SumOfSquares
from dplinear.privacy.neighbours import Neighbours

RADII = ("planned", "gaussian", "subexponential")
_BETA = 0.01  # how often a normal row may be clipped, by the two radii that have a formula
_TRIED = tuple(0.6 * 1.05**step for step in range(40))  # radii, in scales of residuals
_FAR = 4.0  # scales: where residuals are clipped to measure their scale
_LEAST = 1 / 20  # of that: no scale is taken to be smaller at once
_SMALLEST = 2.0**-24  # of a scale, in scaled values
_MISJUDGED = 0.3  # of a round's move: how far off it may be, as clips and curvatures are expected
_WORSE = 2.0  # times the mean square around no line, and some noise: rounds went too far
_DEVIATIONS = 4.0
_PRIOR = 2.0  # times the target's variance, that the features may explain


def within(radius: float) -> float:
    """Return how much of a normal residual's pull a clip at so many scales leaves."""
    return float(2 * ndtr(radius) - 1)


def clipped_square(radius: float) -> float:
    """Return E min(e², radius²) of a standard normal e."""
    density = math.exp(-radius * radius / 2) / math.sqrt(2 * math.pi)
    return within(radius) - 2 * radius * density + 2 * radius**2 * float(ndtr(-radius))


def planned_radius(size: int, rows: float, square: float) -> float:
    """Return the clip, in scales of residuals and units of √p, of the least expected error.

    `square` is μ² over the squared sensitivity of a norm of 1: what the rounds may spend.
    """

    def error(radius: float) -> float:
        noise = radius**2 * size / (rows * square)
        return (clipped_square(radius) + noise) / within(radius) ** 2

    return min(_TRIED, key=error)


def chosen_radius(kind: str, size: int, rows: float, square: float) -> float:
    """Return the clip of a product, in scales of residuals and units of √p.

    "gaussian" is the paper's: z is taken for a normal vector whose covariance is at most twice the
    mean square of residuals. "subexponential" has room for a long row with a large residual.
    """
    if kind == "planned":
        return planned_radius(size, rows, square)
    length = radii.tail(size, _BETA) / math.sqrt(size)
    return length * (math.sqrt(2) if kind == "gaussian" else radii.tail(1, _BETA))


@dataclass(frozen=True, eq=False)
class Ending:
    """Where the rounds ended, in whitened coordinates.

    `noise`, `sampling` and `unknown` are variances: of what privacy added, of the sample, and of
    what later rounds would still have moved. `scale` is that of the residuals, `radius` the clip in
    scales.
    """

    theta: Floats
    noise: Floats
    sampling: Floats
    unknown: Floats
    scale: float
    radius: float


def run_rounds(
    sums: NoisySums, around: LocalFrame, *, steps: int, squares: Fraction, radius: str
) -> Ending:
    """Run the rounds, for all that is left of a chain's budget; `squares` of it for scales.

    Promises: each round releases the mean square of clipped residuals, and the mean of clipped
    products of whitened features and residuals; a Kalman filter weighs it by its noise.
    """
    return _Rounds(sums, around, steps, squares, radius).run()


class _Rounds:
    """The rounds: each releases a gradient of the loss, which the filter weighs."""

    def __init__(
        self, sums: NoisySums, around: LocalFrame, steps: int, squares: Fraction, radius: str
    ) -> None:
        self.sums, self.around = sums, around
        self.scale_share = squares / steps
        self.shares = growing_shares(steps, sums.remaining - squares)
        self.size, self.rows = len(around.curvature), around.rows
        replaced = sums.budget.neighbours is Neighbours.REPLACE
        spent = float(sum(self.shares) * sums.budget.square) / (
            Products.replaced if replaced else 1
        )
        self.radius = chosen_radius(radius, self.size, self.rows, spent)
        self.response = within(self.radius)  # what the clip leaves of the curvature
        self.steepest = around.most

    def run(self) -> Ending:
        """Run the rounds, one for each share."""
        around, first = self.around, np.zeros(self.size)
        scale, _ = self._release_scale(first, around.target_scale)
        prior = np.full(self.size, _PRIOR * scale**2 / math.sqrt(self.size))
        estimate = KalmanFilter.start(prior)
        flat = max(scale, around.target_scale)
        for index, share in enumerate(self.shares):
            if index:
                scale, error = self._release_scale(estimate.theta, scale)
                if around.assumed and scale**2 > _WORSE * flat**2 + _DEVIATIONS * error:
                    # Worse than no line: features are longer somewhere than is assumed.
                    estimate, self.steepest = KalmanFilter.start(prior), 2 * self.steepest
                    scale = flat = min(scale, math.sqrt(_WORSE) * flat)
            estimate = self._step(estimate, scale, share, prior)
        square = clipped_square(self.radius) / self.response**2 * scale**2
        sampling = square / (self.rows * around.curvature)
        return Ending(
            estimate.theta, estimate.noise, sampling, estimate.variance, scale, self.radius
        )

    def _step(
        self, estimate: KalmanFilter, scale: float, share: Fraction, prior: Floats
    ) -> KalmanFilter:
        """Move the iterate by one more gradient, as far as its noise deserves."""
        curvature = self.around.curvature
        gradient, sigma = self._release_gradient(estimate.theta, scale, share)
        gain = estimate.gain(curvature, sigma, self.steepest)
        move = gain * gradient
        misjudged = _MISJUDGED**2 * float(move @ move) / self.size
        return estimate.update(gradient, curvature, sigma, gain).inflate(misjudged, most=prior)

    def _release_scale(self, theta: Floats, scale: float) -> tuple[float, float]:
        """Release the mean square of residuals; return its root, and the noise of the square."""
        clip = _FAR * scale
        weights = self.around.residual(theta)
        squares = SumOfSquares(self.around.frame.design.shape, weights, clip)
        (answer,) = self.sums.ask([Query(squares, self.scale_share)])
        square = float(answer.values[0]) / self.rows
        root = max(math.sqrt(max(square, (_LEAST * clip) ** 2)), _SMALLEST)
        return root, answer.sigma / self.rows

    def _release_gradient(
        self, theta: Floats, scale: float, share: Fraction
    ) -> tuple[Floats, float]:
        """Release the mean of the clipped products; return it and its noise, as if unclipped."""
        shape, centre = self.around.frame.design.shape, np.zeros(self.size)
        clip = self.radius * math.sqrt(self.size) * scale
        products = Products(shape, self.around.map, self.around.residual(theta), centre, clip)
        (answer,) = self.sums.ask([Query(products, share)])
        gradient, sigma = answer.values / self.rows, answer.sigma / self.rows
        return gradient / self.response, sigma / self.response
