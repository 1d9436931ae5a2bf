"""The rounds of a regression by CoinPress: each estimates what the last one left over.

The mean of x·y is estimated by noise and clips as large as y; that of x·(y − x·β̂), by those of the
residuals. So a first estimate is pressed into better ones, and the last rounds see errors alone.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.special import ndtr

from dplinear.adaptive.filter import KalmanFilter
from dplinear.adaptive.noisy_sums import NoisySums, Query, growing_shares
from dplinear.arrays import Floats
from dplinear.coinpress import radii
from dplinear.coinpress.local_frame import LocalFrame, Shares
from dplinear.coinpress.products import Products
from dplinear.coinpress.wide_clips import WIDER, Correction, by_gradient, by_mean
from dplinear.descent.secants import Secants
from dplinear.exact.residual_sums import Residuals, SumOfSquares
from dplinear.privacy.neighbours import Neighbours

RADII = ("planned", "gaussian", "subexponential")
_BETA = 0.01  # how often a normal row may be clipped, by the two radii that have a formula
_TRIED = tuple(0.6 * 1.05**step for step in range(40))  # radii, in scales of residuals
_CHEAP = 0.0005  # of sampling errors, as variances: noise for which nothing is clipped
_FAR = 4.0  # scales: where residuals are clipped to measure their scale
_LEAST = 1 / 20  # of that: no scale is taken to be smaller at once
_SMALLEST = 2.0**-24  # of a scale, in scaled values
_MISJUDGED = 0.3  # of a round's move: how far off it may be, as clips and curvatures are expected
_DEVIATIONS = 2.5  # of noise, on both sides, that a mean square must be worse by to be worse
_FILLED = 0.25  # of a clip's square: a mean square above it is that of a clip, not of residuals
_STEEPER = 2.0  # times what curvatures were thought to be at the most, after such a round
_MOST_RESIDUAL = 2.0  # scaled values: no two targets are farther apart
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

    return max(min(_TRIED, key=error), math.sqrt(_CHEAP * rows * square / size))


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
    scales. `offset` is added to the intercept, with noise of variance `offset_noise`. `skewed` says
    that clips had moved the line, and that it was moved back: `sampling` does not hold.
    """

    theta: Floats
    noise: Floats
    sampling: Floats
    unknown: Floats
    scale: float
    radius: float
    offset: float
    offset_noise: float
    skewed: bool


def run_rounds(
    sums: NoisySums, around: LocalFrame, *, steps: int, shares: Shares, radius: str
) -> Ending:
    """Run the rounds, for all that is left of a chain's budget.

    Promises: each round releases the mean square of clipped residuals, and the mean of clipped
    products of whitened features and residuals; a Kalman filter weighs it by its noise. A line
    whose released loss is clearly worse than an earlier one's is never returned. A last sum, with a
    wide clip, moves it where the clips of skewed residuals were in its way (`wide_clips.py`).
    """
    return _Rounds(sums, around, steps, shares, radius).run()


@dataclass(frozen=True, eq=False)
class _Measured:
    """An iterate, the scale of its residuals, and the most that their mean square may well be."""

    estimate: KalmanFilter
    scale: float
    most: float


class _Rounds:
    """The rounds: each releases a gradient of the loss, which the filter weighs."""

    def __init__(
        self, sums: NoisySums, around: LocalFrame, steps: int, shares: Shares, radius: str
    ) -> None:
        self.sums, self.around = sums, around
        self.scale_share = shares.squares / (steps + 1)
        self.wide_share = shares.wide_clips
        left = sums.remaining - shares.squares - self.wide_share
        self.shares = growing_shares(steps, left)
        self.size, self.rows = len(around.curvature), around.rows
        replaced = sums.budget.neighbours is Neighbours.REPLACE
        square = sums.budget.square / (Products.replaced if replaced else 1)
        spent = float(sum(self.shares) * square)
        self.radius = chosen_radius(radius, self.size, self.rows, spent)
        # Noise of a clip at so many scales is what sampling errors are, of one number.
        self.wide = math.sqrt(float(self.wide_share * square) * self.rows)
        self.response = within(self.radius)
        self.steepest, self.secants = around.most, Secants(around.curvature)

    def run(self) -> Ending:
        """Run the rounds, one for each share; go back where one clearly made the loss worse."""
        now, _ = self._measure(KalmanFilter.start(np.zeros(self.size)), self.around.target_scale)
        prior = np.full(self.size, _PRIOR * now.scale**2 / math.sqrt(self.size))
        now = best = replace(now, estimate=KalmanFilter.start(prior))
        for share in self.shares:
            estimate = self._step(now.estimate, now.scale, share, prior)
            now, least = self._measure(estimate, now.scale)
            if least > best.most:
                # Rows are longer somewhere than second moments of clipped ones say.
                now, self.steepest = best, _STEEPER * self.steepest
                self.secants.forget_move()
            elif now.most <= best.most:
                best = now
        return self._ending(now)

    def _ending(self, last: "_Measured") -> Ending:
        square = clipped_square(self.radius) / self.response**2 * last.scale**2
        sampling = square / (self.rows * self.around.curvature)
        found, correction = last.estimate, self._release_correction(last, sampling)
        return Ending(
            theta=found.theta + correction.move,
            noise=found.noise + correction.noise,
            sampling=sampling,
            unknown=found.variance + correction.unknown,
            scale=last.scale,
            radius=self.radius,
            offset=correction.offset,
            offset_noise=correction.offset_noise,
            skewed=correction.skewed,
        )

    def _release_correction(self, last: "_Measured", sampling: Floats) -> Correction:
        """Release what wider clips show: of all products, or of the residuals' mean alone.

        The first where all of them can be wider for as little noise, or where no mean has to be 0.
        """
        found, design = last.estimate, self.around.frame.design
        wide = self.wide / math.sqrt(self.size)
        if wide > WIDER * self.radius or not design.intercept:
            gradient, sigma = self._release_gradient(
                found.theta, last.scale, self.wide_share, max(wide, self.radius)
            )
            steepest = self.steepest * np.maximum(self.secants.factors, 1.0)
            known = found.noise + found.variance
            return by_gradient(gradient, sigma, known=known, sampling=sampling, curvature=steepest)
        clip = min(max(self.wide, _FAR) * last.scale, _MOST_RESIDUAL)
        residuals = Residuals(design.shape, self.around.residual(found.theta), clip)
        (answer,) = self.sums.ask([Query(residuals, self.wide_share)])
        mean, sigma = float(answer.values[0]) / self.rows, answer.sigma / self.rows
        return by_mean(mean, sigma, variance=last.scale**2 / self.rows, size=self.size)

    def _step(
        self, estimate: KalmanFilter, scale: float, share: Fraction, prior: Floats
    ) -> KalmanFilter:
        """Move the iterate by one more gradient, as far as its noise deserves."""
        gradient, sigma = self._release_gradient(estimate.theta, scale, share, self.radius)
        self.secants.see(gradient, sigma)
        curvature = self.around.curvature * self.secants.factors
        steepest = self.steepest * np.maximum(self.secants.factors, 1.0)
        gain = estimate.gain(curvature, sigma, steepest)
        move = gain * gradient
        self.secants.note_move(gradient, sigma, move)
        misjudged = _MISJUDGED**2 * float(move @ move) / self.size
        return estimate.update(gradient, curvature, sigma, gain).inflate(misjudged, most=prior)

    def _measure(self, estimate: KalmanFilter, scale: float) -> tuple["_Measured", float]:
        """Release the mean square of residuals; return it, and the least that it clearly is.

        Squares are clipped: where many seem to be, their mean says nothing of what is above.
        """
        clip = _FAR * scale
        weights = self.around.residual(estimate.theta)
        squares = SumOfSquares(self.around.frame.design.shape, weights, clip)
        (answer,) = self.sums.ask([Query(squares, self.scale_share)])
        square, doubt = float(answer.values[0]) / self.rows, _DEVIATIONS * answer.sigma / self.rows
        root = max(math.sqrt(max(square, (_LEAST * clip) ** 2)), _SMALLEST)
        most = square + doubt if square < _FILLED * clip**2 else math.inf
        return _Measured(estimate, root, most), square - doubt

    def _release_gradient(
        self, theta: Floats, scale: float, share: Fraction, radius: float
    ) -> tuple[Floats, float]:
        """Release the mean of the clipped products; return it and its noise, as if unclipped."""
        shape, centre = self.around.frame.design.shape, np.zeros(self.size)
        clip = radius * math.sqrt(self.size) * scale
        products = Products(shape, self.around.map, self.around.residual(theta), centre, clip)
        (answer,) = self.sums.ask([Query(products, share)])
        gradient, sigma = answer.values / self.rows, answer.sigma / self.rows
        response = within(radius)  # what the clip leaves of the curvature
        return gradient / response, sigma / response
