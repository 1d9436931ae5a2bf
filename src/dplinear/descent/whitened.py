"""Whitened descent: a few noisy steps towards the least-squares line, in coordinates of equal size.

A noisy Gram matrix gives the coordinates (`whitening.py`); each step releases the gradient of all
rows, their lengths and residuals clipped one by one, and moves as far as its noise deserves. Where
the budget is too small for a Gram matrix the steps are plain descent's, and where it is too small
for those the line is flat (docs/theory.md, "Whitened descent").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear.adaptive.noisy_sums import Answer, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.descent.clips import TAPER, Clip, Clips
from dplinear.descent.common import Descent, PreparedDescent
from dplinear.descent.frame import Frame
from dplinear.descent.secants import Secants
from dplinear.descent.settings import Settings
from dplinear.descent.survey import RowCount, Survey, survey
from dplinear.descent.tails import Watch, edges, scales_within
from dplinear.descent.whitening import Whitening
from dplinear.exact.design import Design
from dplinear.exact.residual_sums import Gradient, ResidualHistogram, Residuals
from dplinear.mechanisms.contract import Account
from dplinear.mechanisms.solver import Solution

_MOST_RESIDUAL = 2.0  # no two targets are farther apart
_LEAST_SCALE = 2.0**-20  # of residuals, in cells
_LEAST_PART = 0.25  # of the root mean square of uneven tails: what a scale is at least
_CLIPPED = 0.28  # root mean square of clipped targets: what is above may be any width
_MISJUDGED = 0.1  # of a step: how far off it may be because curvatures are expected, not known
_COUNTED = 0.5  # of the sampling errors, in what is taken off a line because of them
_UNKNOWN = (
    "The noise hides too much of this table for standard errors: how the features vary together, "
    "or whether there is a line at all. More rows, fewer features, tighter bounds or a larger ε "
    "would show it."
)
_RESTLESS = (
    "The steps had not come to rest, as when few rows lie far from all others, so the coefficients "
    "may be far from the best ones, and no standard errors are given."
)


class PreparedWhitened(PreparedDescent):
    """Whitened descent with a budget, ready to run once."""

    def descend(self, chain: NoisySums) -> Solution:
        """Return where the steps end."""
        return _Run(self.design, chain, self.account, self.settings).solution()


@dataclass(frozen=True, kw_only=True)
class WhitenedDescent(Descent):
    """The least-squares line by noisy descent in whitened coordinates."""

    name: ClassVar[str] = "whitened_descent"
    prepared: ClassVar[type[PreparedDescent]] = PreparedWhitened


@dataclass(frozen=True, eq=False)
class _Path:
    """Where a descent ended, in whitened coordinates.

    `theta` is expected to be `reached` times the best place, plus noise of variance `noise` and
    sampling errors of variance `sampling`, or `stated`, which trusts what successive gradients show
    of a curvature only where it is far from the expected one; `scale` is that of the residuals.
    """

    theta: Floats
    reached: Floats
    noise: Floats
    sampling: Floats
    stated: Floats
    unknown: Floats
    prior: Floats
    scale: float
    clip: Clip


class _Run:
    """One descent."""

    def __init__(
        self, design: Design, chain: NoisySums, account: Account, settings: Settings
    ) -> None:
        self.design, self.chain, self.account = design, chain, account
        self.settings = settings
        self.mu = chain.budget.mu
        self.shape = design.shape

    def solution(self) -> Solution:
        """Release everything in turn."""
        known = survey(self.design, self.chain, self.settings)
        row_count, frame, white = known.row_count, known.frame, known.white
        levels = self._worth_levelling(row_count, known.scale)
        kept_back = self.settings.bands + (self.settings.intercept if levels else 0)
        shares = steps_shares(known.steps, self.chain.left - kept_back)
        path = _Walk(self, known, shares).descend()
        kept = _kept_share(path, white.expected, row_count.released * self.mu)
        if path.scale > _widest(known.scale):
            kept = 0.0 * kept
        if not white.clear:  # so that with little noise the line is that of least squares
            kept = kept * _shrinkage_factor(path, white.expected)
        coefficients = white.matrix @ (path.theta * kept)
        extra = 0.0
        if levels:
            frame, extra = self._levelled(frame, coefficients, row_count, path.scale)
        wide = white.matrix * (kept * np.sqrt(path.noise))
        wider = white.matrix * np.sqrt(path.noise + path.stated + path.unknown)
        silence = _silence(path, kept, white)
        return Solution(
            frame.readout(coefficients),
            self.account,
            self._parameters(path, known),
            noise=self._spread(frame, wide, extra),
            spread=None if silence else self._spread(frame, wider, extra),
            unknown=silence,
            count=row_count.released,
        )

    @staticmethod
    def _spread(frame: Frame, root: Floats, extra: float) -> Floats:
        """Return the covariance of the coefficients.

        `root` is a root of the covariance in the frame, `extra` a variance of the intercept alone.
        """
        covariance = frame.spread(root @ root.T)
        covariance[0, 0] += extra
        return covariance

    def _worth_levelling(self, row_count: RowCount, scale: float) -> bool:
        """Return whether the mean of the residuals would be more than noise."""
        if not self.settings.intercept:
            return False
        noise = 3 * scale / (math.sqrt(self.settings.intercept) * self.mu)
        return self.design.intercept and noise < 0.02 * row_count.rows

    def _levelled(
        self, frame: Frame, coefficients: Floats, row_count: RowCount, scale: float
    ) -> tuple[Frame, float]:
        """Move the intercept to the mean of the residuals, clipped wide: errors may be skewed.

        The clip is so wide that its noise is what sampling errors are; returns its variance, too.
        """
        share = float(self.settings.intercept)
        wide = max(3.0, math.sqrt(share * row_count.rows) * self.mu)
        clip = min(wide * scale, _MOST_RESIDUAL)
        residuals = Residuals(self.shape, frame.residual(coefficients), clip)
        (answer,) = self.chain.ask([Query(residuals, self.settings.intercept)])
        total, noise, n = float(answer.values[0]), answer.sigma, row_count.rows
        doubt = 9 * (noise**2 + n * scale**2)  # three standard deviations
        kept = 1 - doubt / total**2 if total**2 > doubt else 0.0
        return replace(frame, target_mean=frame.target_mean + kept * total / n), (
            kept * noise / n
        ) ** 2

    def _parameters(self, path: _Path, known: Survey) -> dict[str, float]:
        return {
            "mu": self.mu,
            "steps": known.steps,
            "gram_seen": known.white.seen,
            "spent": float(1 - self.chain.left),
            "residual_scale": path.scale,
            "residual_clip": path.clip.residual,
            "gradient_clip": path.clip.product,
        }


class _Walk:
    """The steps: a Kalman filter, for which each gradient is a noisy look at the way left."""

    def __init__(self, run: _Run, known: Survey, shares: Sequence[Fraction]) -> None:
        self.run, self.shares = run, shares
        self.frame, self.row_count, self.white = known.frame, known.row_count, known.white
        self.scale = known.scale
        size, rows = len(self.white.expected), self.row_count.rows
        self.length = math.sqrt(self.white.dimension / rows)
        noise = size / (rows * float(sum(shares)) * run.mu**2)
        self.clips = Clips(size, noise, rows, run.settings.residual_clip)
        self.map = self.white.matrix.T @ self.frame.matrix

    def descend(self) -> _Path:
        """Take the steps."""
        n, expected, scale = self.row_count.rows, self.white.expected, self.scale
        theta, reached, noise = (np.zeros(len(expected)) for _ in range(3))
        prior = self._prior(scale)
        unknown, doubt, watch, skewed = prior, 0.3**2, Watch(), False
        secants = Secants(expected)
        for share in self.shares:
            if watch.tails.skewed and not skewed and self.run.settings.residual_clip is None:
                # Clips open, so there is another way to go than the one that was gone.
                skewed = True
                prior = self._prior(scale * math.sqrt(1 + watch.tails.energy))
                unknown, reached = prior, np.zeros(len(expected))
            clip = self.clips.best(watch.tails)
            gradient, bands = self._ask(theta, scale, clip, share)
            watch.see(bands, n, scale)
            new = self._rescaled(scale, bands, doubt)
            if self.run.settings.residual_clip is None:
                new = max(new, _LEAST_PART * scale * math.sqrt(watch.tails.energy))
            watch.rescale(scale / new)
            clip, scale, doubt = replace(clip, product=clip.product * scale / new), new, 0.1**2
            response = self.clips.response(clip, watch.tails)
            pull, error = gradient.values / response, gradient.sigma / response
            secants.see(pull, error)
            curved = expected * secants.factors
            curve = response * curved
            gain = curve * unknown / (curve**2 * unknown + gradient.sigma**2)
            gain = np.minimum(gain, 1 / (response * np.maximum(self.white.most, curved)))
            moved = theta + gain * gradient.values
            secants.moved(pull, error, moved - theta)
            unknown = unknown * (1 - gain * curve) + (_MISJUDGED * (moved - theta)) ** 2
            reached = reached + gain * curve * (1 - reached)
            noise = noise * (1 - gain * curve) ** 2 + (gain * gradient.sigma) ** 2
            fall = float(expected @ (moved**2 - theta**2)) / n / scale**2
            scale = max(scale * math.sqrt(min(max(1 - fall, 0.5), 1.0)), _LEAST_SCALE)
            theta = moved
        sampling = self.clips.square(clip, watch.tails) * scale**2 / (response**2 * curved)
        # What the last gradient shows of the way left, beyond two deviations of its noise: rows
        # that are all clipped pull on, which the filter does not know.
        shown = np.maximum(gradient.values**2 - 4 * gradient.sigma**2, 0.0) / curve**2
        left = np.maximum(prior * (1 - reached) ** 2, shown)
        trusted = np.where(np.abs(np.log(secants.factors)) > math.log(1.5), 1.0, secants.factors)
        sampling = reached**2 * sampling
        return _Path(theta, reached, noise, sampling, trusted * sampling, left, prior, scale, clip)

    def _prior(self, scale: float) -> Floats:
        """Return what the line is expected to be, by the targets' scale: a variance."""
        variance = self.run.settings.prior * self.row_count.rows * scale**2
        return np.full(len(self.white.expected), variance / self.white.dimension)

    def _ask(
        self, theta: Floats, scale: float, clip: Clip, share: Fraction
    ) -> tuple[Answer, Answer]:
        """Release the gradient at a place, and how many residuals are small and far there."""
        shape, weights = self.run.shape, self.frame.residual(self.white.matrix @ theta)
        leverage = clip.product / clip.residual * self.length
        taper = TAPER * self.length if clip.tapered else None
        gradient = Gradient(shape, self.map, weights, leverage, clip.residual * scale, taper)
        bands = ResidualHistogram(shape, weights, scale, edges(scale, _MOST_RESIDUAL))
        counted = self.run.settings.bands / len(self.shares)
        answers = self.run.chain.ask([Query(gradient, share), Query(bands, counted)])
        return answers[0], answers[1]

    def _rescaled(self, scale: float, bands: Answer, doubt: float) -> float:
        """Move the residuals' scale towards the one that 68% of them are within."""
        n = self.row_count.rows
        share = min(max(float(bands.values[0]) / n, 0.05), 0.97)
        error = (bands.sigma**2 + 0.5 * self.row_count.error**2) / n**2 / 0.48**2 + 0.02**2
        change = -math.log(scales_within(share)) * doubt / (doubt + error)
        return max(scale * math.exp(min(max(change, -1.0), 0.3)), _LEAST_SCALE)


def steps_shares(steps: int, total: Fraction) -> list[Fraction]:
    """Return what each step may spend: later ones more, as residuals are wide at first."""
    weights = [Fraction(math.sqrt(step)) for step in range(1, steps + 1)]
    return [total * weight / sum(weights) for weight in weights]


def _widest(scale: float) -> float:
    """Return how wide the residuals of no line may be; a line that has wider ones is worse.

    68% of them are within no more than their root mean square over √.32. That of the targets is
    clipped at ½, so where it is large enough for as many to be clipped it says nothing.
    """
    return scale / math.sqrt(0.32) if scale < _CLIPPED else _MOST_RESIDUAL


def _silence(path: _Path, kept: Floats, white: Whitening) -> str | None:
    """Return why there are no standard errors, or None."""
    if (kept < 1).any() or not white.clear:
        return _UNKNOWN
    if (path.unknown > 25 * (path.noise + path.sampling)).any():
        return _RESTLESS
    return None


def _shrinkage_factor(path: _Path, expected: Floats) -> float:
    """Return what to multiply the place by, because of sampling errors: James and Stein's factor.

    Departs from them: half of the errors are counted, as the filter takes directions of little
    curvature for reached; and the factor is at least a half.
    """
    length = max(float(expected @ path.theta**2), 1e-300)
    return 1 - min(_COUNTED * float(expected @ path.sampling) / length, 0.5)


def _kept_share(path: _Path, expected: Floats, rows: float) -> Floats:
    """Return what to multiply the place by, so that noise is not taken for a line.

    All of it where the filter expects to have found a third of the way; otherwise what the place
    shows beyond its noise. Nothing where `rows`·μ says that there is next to nothing to see.
    """
    gap = (1 - path.reached) ** 2 * path.prior + path.noise
    found = 1 - float(expected @ gap) / float(expected @ path.prior)
    whole = path.reached**2 * path.prior
    total = max(float(expected @ whole), 1e-300)
    seen = float(expected @ (path.theta**2 - path.noise)) / total
    error = max(2 * float(expected**2 @ path.noise**2) / total**2, 1e-12)
    # Beforehand .7 of what is expected, give or take .5.
    signal = min(max((seen / error + 0.7 / 0.5**2) / (1 / error + 1 / 0.5**2), 0.0), 1.0)
    shrunk = signal * path.reached * path.prior / (signal * whole + path.noise + 1e-300)
    trust = min(max((found - 0.15) / 0.2, 0.0), 1.0)
    enough = min(max((rows - 14) / 6, 0.0), 1.0)
    return np.asarray(np.maximum(np.minimum(shrunk, 1.0), trust) * enough)
