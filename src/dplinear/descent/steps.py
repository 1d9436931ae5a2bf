"""The steps of whitened descent: gradients of clipped rows, weighed by a Kalman filter.

Each step measures the gradient at the iterate, and how far its residuals are spread. The scale of
residuals and their tails set the clips of the next one; successive gradients correct the curvature
(docs/theory/whitened-descent.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dplinear.adaptive.filter import KalmanFilter
from dplinear.adaptive.noisy_sums import Answer, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.descent.clips import TAPER, Clip, Clips
from dplinear.descent.secants import Secants
from dplinear.descent.settings import Settings
from dplinear.descent.survey import Survey
from dplinear.descent.tails import Watch, edges, scales_within
from dplinear.exact.residual_sums import Gradient, ResidualHistogram

MOST_RESIDUAL = 2.0  # no two targets are farther apart
_LEAST_SCALE = 2.0**-20  # of residuals, in scaled values
_LEAST_PART = 0.25  # of the root mean square of uneven tails: what a scale is at least
_SCALE_VARIANCE = (0.3**2, 0.1**2)  # of a scale's logarithm: before the first step, and later
_MISJUDGED = 0.1  # of a step: how far off it may be because curvatures are expected, not known


@dataclass(frozen=True, eq=False)
class Ending:
    """Where a descent ended, in whitened coordinates.

    `estimate` started with the variance `prior`. `sampling` is the variance of its sampling errors,
    if those of rows have one variance; `unknown`, that of the way left. `scale` is that of the
    residuals.
    """

    estimate: KalmanFilter
    prior: Floats
    sampling: Floats
    unknown: Floats
    scale: float
    clip: Clip


@dataclass(frozen=True, eq=False)
class _Measurement:
    """A released gradient of clipped rows: `response`·`curvature`·(minimum − iterate) + noise.

    `curvature` is that of the loss; `response`, what the clips leave of it.
    """

    gradient: Answer
    clip: Clip
    response: float
    curvature: Floats

    @property
    def clipped_curvature(self) -> Floats:
        """The curvature that the gradient shows."""
        return self.response * self.curvature

    @property
    def loss_gradient(self) -> tuple[Floats, float]:
        """The gradient of the loss itself, and its noise."""
        return self.gradient.values / self.response, self.gradient.sigma / self.response


class Steps:
    """The steps of one descent, each of which may spend its share of the budget.

    `scale` is that within which 68% of the residuals are; `filter` holds the iterate.
    """

    def __init__(
        self, sums: NoisySums, settings: Settings, known: Survey, shares: Sequence[Fraction]
    ) -> None:
        self.sums, self.settings, self.shares = sums, settings, shares
        self.frame, self.row_count, self.white = known.frame, known.row_count, known.white
        size, rows = len(self.white.expected), self.row_count.rows
        self.length = math.sqrt(self.white.dimension / rows)
        noise = size / (rows * float(sum(shares)) * sums.budget.mu**2)
        self.clips = Clips(size, noise, rows, settings.residual_clip)
        self.map = self.white.matrix.T @ self.frame.matrix
        self.scale, self.scale_variance = known.scale, _SCALE_VARIANCE[0]
        self.watch, self.skewed = Watch(), False
        self.secants = Secants(self.white.expected)
        self.prior = self._prior(self.scale)
        self.filter = KalmanFilter.start(self.prior)

    def run(self) -> Ending:
        """Take the steps."""
        for share in self.shares:
            if self._opens_clips and self.watch.tails.skewed and not self.skewed:
                # Clips open, so there is another minimum than the one that was sought.
                self.skewed = True
                self.prior = self._prior(self.scale * math.sqrt(1 + self.watch.tails.uneven_square))
                self.filter = self.filter.restart(self.prior)
            measured = self._measure(share)
            self._step(measured)
        return self._end(measured)

    def run_further(self, share: Fraction) -> Ending:
        """Take one more step for a share that was kept back for something else."""
        measured = self._measure(share - self._counted)
        self._step(measured)
        return self._end(measured)

    @property
    def _counted(self) -> Fraction:
        """The share of a step's counts of residuals."""
        return self.settings.bands / len(self.shares)

    @property
    def _opens_clips(self) -> bool:
        """Whether residuals are clipped as their tails are, not all at one public bound."""
        return self.settings.residual_clip is None

    def _prior(self, scale: float) -> Floats:
        """Return the variance of the line that is expected beforehand, by the targets' scale."""
        variance = self.settings.prior * self.row_count.rows * scale**2
        return np.full(len(self.white.expected), variance / self.white.dimension)

    def _measure(self, share: Fraction) -> _Measurement:
        """Release the gradient at the iterate; bring scale, tails and curvature up to date."""
        clip, before = self.clips.best(self.watch.tails), self.scale
        gradient, histogram = self._ask(clip, share)
        self.watch.see(histogram, self.row_count.rows, before)
        self.scale, self.scale_variance = self._updated_scale(histogram), _SCALE_VARIANCE[1]
        self.watch.rescale(before / self.scale)
        clip = replace(clip, product=clip.product * before / self.scale)
        response = self.clips.response(clip, self.watch.tails)
        self.secants.see(gradient.values / response, gradient.sigma / response)
        return _Measurement(gradient, clip, response, self.white.expected * self.secants.factors)

    def _ask(self, clip: Clip, share: Fraction) -> tuple[Answer, Answer]:
        """Release the gradient at the iterate, and how many residuals are small and far there."""
        histogram = ResidualHistogram(
            self.frame.design.shape,
            self.residual_weights(),
            self.scale,
            edges(self.scale, MOST_RESIDUAL),
        )
        queries = [Query(self._gradient(clip), share), Query(histogram, self._counted)]
        answers = self.sums.ask(queries)
        return answers[0], answers[1]

    def residual_weights(self) -> Floats:
        """Return the weights of a row's cells that give its residual at the iterate."""
        return self.frame.residual(self.white.matrix @ self.filter.theta)

    def _gradient(self, clip: Clip) -> Gradient:
        leverage = clip.product / clip.residual * self.length
        taper = TAPER * self.length if clip.tapered else None
        bound = clip.residual * self.scale
        shape = self.frame.design.shape
        return Gradient(shape, self.map, self.residual_weights(), leverage, bound, taper)

    def _updated_scale(self, histogram: Answer) -> float:
        """Return a scale nearer to the one that 68% of the residuals are within."""
        n = self.row_count.rows
        share = min(max(float(histogram.values[0]) / n, 0.05), 0.97)
        error = (histogram.sigma**2 + 0.5 * self.row_count.error**2) / n**2 / 0.48**2 + 0.02**2
        innovation, variance = -math.log(scales_within(share)), self.scale_variance
        change = innovation * variance / (variance + error)
        scale = max(self.scale * math.exp(min(max(change, -1.0), 0.3)), _LEAST_SCALE)
        if self._opens_clips:
            scale = max(scale, _LEAST_PART * self.scale * math.sqrt(self.watch.tails.uneven_square))
        return scale

    def _step(self, measured: _Measurement) -> None:
        """Move the iterate by the gradient, as far as its noise deserves."""
        before, curvature = self.filter, measured.clipped_curvature
        values, sigma = measured.gradient.values, measured.gradient.sigma
        steepest = measured.response * np.maximum(self.white.most, measured.curvature)
        gain = before.gain(curvature, sigma, steepest)
        after = before.update(values, curvature, sigma, gain)
        move = after.theta - before.theta
        self.secants.note_move(*measured.loss_gradient, move)
        self.filter = after.inflate((_MISJUDGED * move) ** 2)
        explained = float(self.white.expected @ (after.theta**2 - before.theta**2))
        fall = explained / self.row_count.rows / self.scale**2
        self.scale = max(self.scale * math.sqrt(min(max(1 - fall, 0.5), 1.0)), _LEAST_SCALE)

    def _end(self, last: _Measurement) -> Ending:
        """Return where the steps ended, and how that may be wrong."""
        reached = self.filter.reached
        square = self.clips.square(last.clip, self.watch.tails) * self.scale**2
        sampling = reached**2 * (square / (last.response**2 * last.curvature))
        # What the last gradient shows of the way left, beyond two deviations of its noise: rows
        # that are all clipped pull on, which the filter does not know.
        beyond = np.maximum(last.gradient.values**2 - 4 * last.gradient.sigma**2, 0.0)
        shown = beyond / last.clipped_curvature**2
        unknown = np.maximum(self.prior * (1 - reached) ** 2, shown)
        return Ending(self.filter, self.prior, sampling, unknown, self.scale, last.clip)
