"""Logistic descent: a few noisy steps towards the likeliest log-odds, in whitened coordinates.

The coordinates are `survey.py`'s. Each step releases the sum of the rows' scores, shortened one by
one, and how curved the likelihood is; a filter moves as far as the noise deserves. Scores are
weighted by a function of the model's own chance, so that the noise can be halved without a bias
(docs/theory/logistic-descent.md).
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear.adaptive.noisy_sums import Answer, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.descent.common import Descent, PreparedDescent
from dplinear.descent.covariance_filter import CovarianceFilter
from dplinear.descent.logistic_curvature import MOST_VARIANCE, Hessian, Secants, best_clips
from dplinear.descent.logistic_errors import blend, sandwich
from dplinear.descent.settings import Settings
from dplinear.descent.shrinkage import signal_share, visible_share
from dplinear.descent.survey import SUM_CLIP, Survey, survey
from dplinear.exact.logistic_grams import LogisticGram
from dplinear.exact.logistic_sums import Curvatures, LogisticGradient
from dplinear.mechanisms.model import Solution

_SLACK = 0.87  # of the curvature that clips leave: long steps cost less than short ones
_MOST_SIGNAL = 15.0  # times the expected variance of log-odds: classes that hardly overlap
_SURE = 0.97  # of the iterate, that is kept: with less there are no standard errors
# Where standard errors are too small, by simulation: labels rarer than this, if their number times
# μ is below `_FEW` for each coefficient; and of real tables any label that is rarer than `_RAREST`.
_UNUSUAL = 0.2
_FEW = 60.0
_RAREST = 0.05
_SEPARATE = 10.0  # variance of log-odds, from which classes hardly overlap
_SHORTENED = 0.25  # mean square of a cell, from which means are of rows that were shortened
_SHRUNK = (
    "The noise leaves too little of this table for standard errors: the coefficients were shrunk "
    "towards 0. More rows, fewer features or a larger ε give both."
)
_RARE = (
    "Few rows have one of the two labels, hold one of the levels, or may be far from the mean of a "
    "column: there the standard errors of this method are known to be too small, so it gives none. "
    "Merge rare levels, narrow the bounds of columns whose values are nearly all at one end, or "
    "ask for a larger ε; where fewer than one row in twenty has a label, use predictions alone."
)
_UNPAID = "No part of the budget is for standard errors: in the settings, `matrices` is 0."
_SEPARABLE = (
    "The labels hardly overlap: log-odds that separate them have no upper end, so there are no "
    "standard errors. Leave out the features that give the label away, or use predictions alone."
)


def _settings() -> Settings:
    return Settings(
        count=Fraction(50, 1000),
        count_first=Fraction(50, 1000),
        gram_first=Fraction(200, 1000),  # all of it: curvatures are modelled on the whole matrix
        feature_sums=Fraction(18, 1000),
        target_sum=Fraction(12, 1000),
        squares=Fraction(75, 10_000),
        bands=Fraction(10, 1000),
        intercept=Fraction(0),
        wide_most=Fraction(0),
        matrices=Fraction(20, 1000),
        plain_steps=20,
        gram_from=18.0,
        prior=2.0,
    )


class PreparedLogistic(PreparedDescent):
    """Logistic descent with a budget, ready to run once."""

    def descend(self, sums: NoisySums) -> Solution:
        """Return where the steps end."""
        known = survey(self.design, sums, self.settings, target=False)
        rate = _rate(known, sums, self.settings)
        steps = _Steps(known, sums, self.settings, rate)
        unknown = _rare(known, rate, self.budget.mu, steps.clips.leverage)
        unknown = unknown or (None if self.settings.matrices else _UNPAID)
        matrices = Fraction(0) if unknown else self.settings.matrices
        state = steps.run((sums.remaining - matrices - self.settings.bands) / steps.steps)
        kept = _kept_share(state, steps.prior, known, self.budget.mu)
        sampling = steps.sampling(state.theta, matrices / 2) if matrices else 0 * state.noise
        state = replace(state, theta=state.theta * kept)
        weights = steps.weights(state.theta)
        if steps.model.odds_variance(state.theta) > _SEPARATE:
            unknown = _SEPARABLE
        unknown = _SHRUNK if kept < _SURE else unknown
        own = known.white.matrix
        effect = known.row_count.design_effect
        spread = effect * sampling + state.cautious
        return Solution(
            weights[list(self.design.features)],
            self.account,
            {
                "mu": self.budget.mu,
                "steps": known.steps,
                "gram_seen": known.white.seen,
                "spent": float(1 - sums.remaining),
                "label_rate": rate,
                "score_clip": steps.clips.score,
                "leverage_clip": steps.clips.leverage,
                "kept": kept,
                **known.row_count.parameters,
            },
            noise=known.frame.spread(own @ state.noise @ own.T),
            spread=known.frame.spread(own @ spread @ own.T) if unknown is None else None,
            unknown=unknown,
            count=known.row_count.released,
        )


@dataclass(frozen=True, kw_only=True)
class LogisticDescent(Descent):
    """The likeliest log-odds of a label, by noisy descent in whitened coordinates.

    Requires: rows whose target is a label: yes where its value is above 0. In `settings`, `bands`
    is the share of the curvatures, `prior` the variance of log-odds that is expected, and
    `intercept` is not used.
    """

    settings: Settings = field(default_factory=_settings)
    name: ClassVar[str] = "logistic_descent"
    loss: ClassVar[str] = "logistic"
    prepared: ClassVar[type[PreparedDescent]] = PreparedLogistic
    matrices: ClassVar[int] = 2  # for standard errors


def _rate(known: Survey, noisy_sums: NoisySums, settings: Settings) -> float:
    """Release how many labels are yes, as the sum of y − 1/2; return their share, within reason."""
    design, rows = known.frame.design, known.row_count.rows
    if not design.intercept:
        return 0.5
    ones = np.zeros(design.shape.dimension)
    ones[design.features[0]] = 1.0
    sums = LogisticGradient(design.shape, ones[None], 0 * ones, design.target, 1.0, 0.5)
    (answer,) = noisy_sums.ask([Query(sums, settings.target_sum)])
    total, noise = float(answer.values[0]), answer.sigma
    if noise >= 0.1 * rows:
        return 0.5
    beyond = total * max(0.0, 1 - 2 * (noise / total) ** 2) if total else 0.0
    least = max(2 * noise / rows, 0.001)
    return min(max(0.5 + beyond / rows, least), 1 - least)


class _Steps:
    """The steps: each gradient is a noisy measurement of the way left, which a filter weighs."""

    def __init__(self, known: Survey, sums: NoisySums, settings: Settings, rate: float) -> None:
        self.known, self.sums = known, sums
        self.steps = known.steps
        self.counted = settings.bands / self.steps
        self.share = (sums.remaining - settings.bands) / self.steps
        self.white, self.frame, self.rows = known.white, known.frame, known.row_count.rows
        self.map = self.white.matrix.T @ self.frame.matrix
        start, size = math.log(rate / (1 - rate)), len(self.white.expected)
        spent = float(self.share) * self.steps * sums.budget.mu**2
        price = self.white.dimension / (self.rows * spent)
        # The squares of whitened lengths add up to the dimension, and none is above 1.
        longest = math.sqrt(self.rows / self.white.dimension)
        self.clips = best_clips(start, settings.prior, price, size, longest)
        self.length = self.clips.leverage * math.sqrt(self.white.dimension / self.rows)
        self.model = Hessian(
            self.white.expected, self._middle(), start, self.rows, self.clips.score
        )
        self.prior = settings.prior * self.rows / self.white.dimension * np.eye(size)
        self.ratio, self.doubt = 1.0, 0.15**2  # of curvature, measured over expected
        self.secants = Secants(np.zeros((size, size)))

    def _middle(self) -> Floats:
        """Return the mean of whitened rows: the Gram matrix has it in its first row."""
        matrix = self.white.matrix
        if not self.frame.design.intercept:
            return np.zeros(matrix.shape[1])
        held = self.white.expected / (matrix**2).sum(axis=0)
        return np.asarray(held * matrix[0] / (self.rows * self.frame.constant))

    def weights(self, theta: Floats) -> Floats:
        """Return what log-odds are made of, column by column."""
        weights = theta @ self.map
        if self.frame.design.intercept:
            weights[self.frame.design.features[0]] += self.model.start
        return np.asarray(weights)

    def run(self, share: Fraction) -> CovarianceFilter:
        """Take the steps, each for this share of the budget."""
        self.share = share
        expected, most = self.white.expected, self.white.most
        raised = np.sqrt(most / expected)
        lowered = np.sqrt(np.clip(1.5 - 0.5 * most / expected, _least_part(self.white.seen), 1.0))
        one = np.eye(len(expected))
        state = CovarianceFilter.start(self.prior)
        for _ in range(self.steps):
            gradient, curvature = self._measure(state)
            variance = gradient.sigma**2
            gain = state.gain(curvature, variance, curvature * np.outer(raised, raised))
            step = gain @ gradient.values
            least_left = one - gain @ (curvature * np.outer(lowered, lowered))
            state = state.update(step, one - gain @ curvature, least_left, variance * gain @ gain.T)
            before = state.theta - step
            state = replace(state, theta=self._shorten(state.theta))
            last = state.theta - before, gradient.values, curvature, gain
            self.secants = replace(self.secants, last=last)
        return state

    def _measure(self, state: CovarianceFilter) -> tuple[Answer, Floats]:
        """Release the gradient and the curvature at the iterate; return them as they are seen."""
        design, model = self.frame.design, self.model
        weights = self.weights(state.theta)
        gradient, total = self.sums.ask(
            [
                Query(
                    LogisticGradient(
                        design.shape, self.map, weights, design.target, self.length, model.score
                    ),
                    self.share,
                ),
                Query(Curvatures(design.shape, weights, model.score), self.counted),
            ]
        )
        self._correct_ratio(total, model.curve(state.theta).level)
        further = 0.5 * float(self.white.expected @ np.diag(state.covariance)) / self.rows
        curvature, level = model.at(state.theta, further, self.ratio * _SLACK * self.clips.response)
        self.secants = self.secants.update(gradient.values, gradient.sigma)
        return gradient, model.bound_below(curvature + self.secants.matrix, level)

    def _correct_ratio(self, total: Answer, expected: float) -> None:
        """Weigh what curvature was expected against what was released."""
        found = float(total.values[0]) / self.rows / expected
        errors = (total.sigma / expected, self.known.row_count.error)
        error = (math.hypot(*errors) / self.rows) ** 2 + 0.02**2
        weight = self.doubt / (self.doubt + error)
        self.ratio = min(max(self.ratio + weight * (found - self.ratio), 0.3), 1.5)
        self.doubt = weight * error + 0.03**2

    def _shorten(self, theta: Floats) -> Floats:
        """Return an iterate whose log-odds vary no more than is plausible."""
        variance = float(self.white.expected @ theta**2) / self.rows
        return theta * min(1.0, math.sqrt(MOST_VARIANCE / max(variance, 1e-9)))

    def sampling(self, theta: Floats, share: Fraction) -> Floats:
        """Return the covariance of the iterate that is due to the rows being a sample.

        The matrices of curvature and of scores are released for this share each.
        """
        design, score, clips = self.frame.design, self.model.score, self.clips
        facts = design.shape, self.map, self.weights(theta), self.length, score
        curvature, scores = self.sums.ask(
            [
                Query(LogisticGram(*facts), share),
                Query(LogisticGram(*facts, label=design.target), share),
            ]
        )
        matrix, level = self.model.at(theta, 0.0, self.ratio)
        matrix = self.model.bound_below(matrix + self.secants.matrix / clips.response, level)
        counted = clips.response / clips.stretch
        square = self.ratio * self.model.curve(theta).square
        bread = clips.stretch * blend(counted * matrix, curvature)
        meat = blend(counted * np.diag(square * self.white.expected), scores)
        expected = clips.response * float(np.trace(matrix)) / len(matrix)
        return sandwich(bread, meat, clips.stretch * curvature.sigma, expected)


def _least_part(seen: float) -> float:
    """Return how low curvature may be, of the expected: anything, where no Gram matrix is seen."""
    return 0.0 if seen else 0.1


def _kept_share(state: CovarianceFilter, prior: Floats, known: Survey, mu: float) -> float:
    """Return what to multiply the iterate by, so that noise is not taken for a model.

    The iterate shows how much there is beyond its noise. Nothing is kept where rows times μ say
    that there is next to nothing to see.
    """
    root = np.sqrt(known.white.expected)
    reached = np.eye(len(root)) - state.missed
    noise = state.noise * np.outer(root, root)
    whole = max(float(root**2 @ np.diag(reached @ prior @ reached.T)), 1e-300)
    spent = float(np.trace(noise))
    seen = (float(root**2 @ state.theta**2) - spent) / whole
    signal = signal_share(seen, max(2 * float((noise**2).sum()) / whole**2, 1e-12), _MOST_SIGNAL)
    visible = visible_share(known.row_count.released * mu)
    return visible * signal * whole / (signal * whole + spent + 1e-300)


def _rare(known: Survey, rate: float, mu: float, leverage: float) -> str | None:
    """Return why there are no standard errors, where few rows say anything of a coefficient.

    Labels: where one is rare, or unusual and its rows times μ are few for each coefficient. Levels:
    where rows that hold one are longer than their clip by that cell alone.
    """
    fewer = min(rate, 1 - rate)
    few = known.row_count.released * fewer * mu < _FEW * known.frame.design.dimension
    if fewer < _RAREST or (fewer < _UNUSUAL and few):
        return _RARE
    shares = _shares_of_levels(known)
    short = 1 - shares > leverage**2 * known.white.dimension * shares
    return _RARE if short.any() else None


def _shares_of_levels(known: Survey) -> Floats:
    """Return the share of rows that hold each level, or the rarer one of two values of a column.

    Whether a column has only two values is not known; but where its mean is near one of its bounds
    few rows can be near the other. Levels that no row seems to hold have no part in the model.
    """
    design, matrix = known.frame.design, known.white.matrix
    first = int(design.intercept)
    sizes = (matrix**2).sum(axis=0)  # the Gram matrix is Σ expected/size²·wwᵀ over the columns w
    squares = (matrix**2 @ (known.white.expected / sizes**2))[first:] / known.row_count.rows
    middle = np.abs(known.frame.middle)
    indicators = np.array(design.indicators[first:], bool)
    raw = squares + middle**2
    reach = SUM_CLIP if raw.mean() > _SHORTENED else 1.0
    shares = np.where(indicators, raw, (1 - middle / reach) / 2)
    return np.asarray(np.clip(shares[matrix[first:].any(axis=1)], 0.0, 1.0))
