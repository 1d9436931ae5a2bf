"""How curved the likelihood of a logistic model is, from released numbers alone.

A row counts w(σ)·σ(1 − σ) at its log-odds η; rows are taken to be normal in whitened coordinates,
so η is normal too, and its mean and variance say how curved the sum is in each direction. What
successive gradients say beside that is added (docs/theory/logistic-descent.md).
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import expit
from scipy.stats import chi2

from dplinear.arrays import Floats

MOST_VARIANCE = 30.0  # of log-odds
_POINTS = np.linspace(-6.0, 6.0, 241)  # equal steps, as scores have a kink
_WEIGHTS = np.exp(-(_POINTS**2) / 2) / np.exp(-(_POINTS**2) / 2).sum()
_SCORES = np.linspace(0.5, 1.0, 26)
_LEVERAGES = (0.85, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0)  # in root mean squares of a whitened length
_FREE = 0.01  # of the sampling variance: what noise may cost so that long rows are not clipped
_LENGTHS = (np.arange(200) + 0.5) / 200  # quantiles
_LEAST_LEVEL = 0.01
_LEAST = 0.3  # of the mean curvature, that any direction is taken to have
_SECANTS = (0.2, 5.0)  # what a change of the gradient may be, of the expected one
_SECANT_ERROR = 0.05  # of that, at which half of it is believed


@dataclass(frozen=True)
class Curve:
    """Means of curvature times 1, z and z², z the standardised log-odds; of squared scores."""

    level: float
    tilt: float
    bend: float
    square: float


def curve(mean: float, variance: float, score: float) -> Curve:
    """Return the means for normal log-odds and scores of at most `score`."""
    probability = expit(mean + math.sqrt(variance) * _POINTS)
    weight = np.minimum(1.0, score / np.maximum(probability, 1 - probability))
    each = weight * probability * (1 - probability)
    powers = (each, each * _POINTS, each * _POINTS**2, each * weight)
    return Curve(*(float(_WEIGHTS @ power) for power in powers))


@dataclass(frozen=True)
class Clips:
    """Where scores and lengths are clipped, and what the second leaves of curvature.

    A row u that is clipped to c adds c·uᵀ to curvature: `stretch` times c·cᵀ, on average.
    """

    score: float
    leverage: float
    response: float = 1.0
    stretch: float = 1.0


def best_clips(
    mean: float, variance: float, price: float, dimension: int, longest: float = math.inf
) -> Clips:
    """Return the clips with the least error, for normal log-odds and normal rows.

    `price` is the variance of the noise of gradients clipped at 1, over that of their lengths. The
    Gram matrix counts a row's square up to the mean, so a response is in units of what that is.
    Rows of rare levels are longer than any normal one, so that lengths are clipped no sooner than
    where the noise is next to nothing beside the sampling error, or no row is longer (`longest`).
    """
    squares = chi2.ppf(_LENGTHS, dimension) / dimension
    curves = [(float(score), curve(mean, variance, float(score))) for score in _SCORES]
    best, least = Clips(1.0, 1.0), math.inf
    for leverage in _LEVERAGES:
        left, mean_square = _shorten(squares, leverage)
        for score, found in curves:
            noise = price * (leverage * score) ** 2
            error = (found.square * mean_square + noise) / (found.level * left) ** 2
            if error < least:
                free = min(math.sqrt(_FREE * found.square / price) / score, longest)
                best, least = Clips(score, max(leverage, free)), error
    left, mean_square = _shorten(squares, best.leverage)
    counted = float(np.minimum(squares, 1.0).mean())
    return replace(best, response=left / counted, stretch=left / mean_square)


def _shorten(squares: Floats, leverage: float) -> tuple[float, float]:
    """Return what a clip leaves of the mean square of lengths, and the mean square it leaves."""
    shortened = np.minimum(np.sqrt(squares), leverage)
    return float((np.sqrt(squares) * shortened).mean()), float((shortened**2).mean())


@dataclass(frozen=True, eq=False)
class Hessian:
    """The curvature that is expected of a descent: Σ uuᵀ has the diagonal `expected`.

    `middle` is the mean of u, `start` the log-odds at its origin, `rows` their number.
    """

    expected: Floats
    middle: Floats
    start: float
    rows: float
    score: float

    def odds(self, theta: Floats) -> tuple[float, Floats]:
        """Return the mean of log-odds at an iterate, and their covariance with u."""
        mean = float(self.middle @ theta)
        return self.start + mean, self.expected * theta / self.rows - self.middle * mean

    def odds_variance(self, theta: Floats) -> float:
        """Return the variance of log-odds at an iterate."""
        return max(float(theta @ self.odds(theta)[1]), 0.0)

    def curve(self, theta: Floats) -> Curve:
        """Return the means at an iterate."""
        mean, along = self.odds(theta)
        return curve(mean, min(max(float(theta @ along), 0.0), MOST_VARIANCE), self.score)

    def at(self, theta: Floats, further: float, factor: float) -> tuple[Floats, float]:
        """Return the matrix of curvatures, and their mean.

        `further` is the variance of log-odds that is still to be found, in no known direction;
        `factor`, what is left of curvature by measurement and by clips.
        """
        mean, along = self.odds(theta)
        now = max(float(theta @ along), 0.0)
        ahead = min(now + further, MOST_VARIANCE)
        found = curve(mean, ahead, self.score)
        level = max(factor * found.level, _LEAST_LEVEL)
        matrix = np.diag(level * self.expected)
        if now <= 1e-9:
            return matrix, level
        along, known = along / math.sqrt(now), min(1.0, now / ahead)
        cross = np.outer(self.middle, along)
        tilt = math.sqrt(known) * factor * found.tilt * (cross + cross.T)
        bend = known * (factor * found.bend - level) * np.outer(along, along)
        return self.bound_below(matrix + self.rows * (tilt + bend), level), level

    def bound_below(self, matrix: Floats, level: float) -> Floats:
        """Return a matrix with no direction less curved than a part of the mean."""
        root = np.sqrt(self.expected)
        values, vectors = np.linalg.eigh(matrix / np.outer(root, root))
        raised = (vectors * np.maximum(values, _LEAST * level)) @ vectors.T
        return np.asarray(root[:, None] * raised * root)


@dataclass(frozen=True, eq=False)
class Secants:
    """What the changes of gradients say of curvature beside the expected one: `matrix`, added up.

    `last` is the last step: how far, from which gradient, with which curvature and gain.
    """

    matrix: Floats
    last: tuple[Floats, Floats, Floats, Floats] | None = field(default=None)

    def update(self, gradient: Floats, sigma: float) -> "Secants":
        """Return what is known after a new gradient; a change below two deviations tells nothing.

        A step follows its own gradient's noise, which would show as curvature, and is taken off.
        """
        if self.last is None:
            return self
        move, before, curvature, gain = self.last
        along = curvature @ move
        size = float(move @ along)
        if size <= 0:
            return self
        change = float(move @ (before - gradient)) - sigma**2 * float(np.trace(gain))
        error = 2 * sigma**2 * float(move @ move) + 2 * sigma**4 * float((gain * gain).sum())
        error /= size**2
        beyond = min(max(change / size, _SECANTS[0]), _SECANTS[1]) - 1
        trust = max(0.0, 1 - 4 * error / max(beyond**2, 1e-12)) / (1 + error / _SECANT_ERROR**2)
        return replace(self, matrix=self.matrix + beyond * trust * np.outer(along, along) / size)
