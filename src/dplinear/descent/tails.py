"""What counts of far residuals say of the errors: how heavy their tails are, and how uneven.

Errors are taken to follow a law between the normal one and Student's t with 4 degrees of freedom;
the share of residuals in the nearest bands of far ones says where between them. Even tails are
noise, and cheap to clip. A tail on one side is often what a table is about (a rare class, a few
dear houses): a line that clips it is not that of least squares. Residuals are measured in scales, a
scale being what 68% of them are within. All of this is post-processing of released numbers.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import t

from dplinear.adaptive.noisy_sums import Answer
from dplinear.arrays import Floats

FAR = 2.5  # scales: residuals beyond are counted, to tell heavy tails from light ones
BINS = 10  # on each side
DEGREES = 4
_WITHIN = float(2 * ndtr(1.0) - 1)
_AT = np.linspace(0.0, 12.0, 2401)
_GUESS, _DOUBT = 0.3, 0.5  # how heavy tails are before anything is seen, and its standard deviation
_MODEL_ERROR = 0.08  # of what counts say of it, as no error follows either law
_FADED = 0.8  # what counts of the step before weigh beside this one's
_LOWEST, _POWERS = -24, 48  # where bands may begin: powers of two
_DEVIATIONS = 4.5  # standard deviations by which a band must differ from the one across
_EVEN = 0.05  # squared scales: uneven tails of less energy are let pass
_HEAVY = 0.5


@dataclass(frozen=True, eq=False)
class ErrorModel:
    """P(|z| < x) and E min(z², x²) for an error z in scales."""

    _inside: Floats
    _square: Floats

    @classmethod
    def of(cls, inside: Floats) -> "ErrorModel":
        """Return the law with these probabilities at `_AT`."""
        slope = 2 * _AT * (1 - inside)  # of E min(z², x²)
        areas = (slope[1:] + slope[:-1]) / 2 * _AT[1]
        return cls(inside, np.concatenate([[0.0], np.cumsum(areas)]))

    def inside(self, limits: Floats) -> Floats:
        """Return P(|z| < x)."""
        return np.interp(limits, _AT, self._inside)

    def square(self, limits: Floats) -> Floats:
        """Return E min(z², x²)."""
        return np.interp(limits, _AT, self._square)


NORMAL = ErrorModel.of(np.asarray(2 * ndtr(_AT) - 1))
STUDENT = ErrorModel.of(2 * t.cdf(_AT * t.ppf((1 + _WITHIN) / 2, DEGREES), DEGREES) - 1)


@dataclass(frozen=True, eq=False)
class Tails:
    """How heavy tails are, from 0 to 1, and how uneven.

    `uneven` is the share of rows in a band beyond that in the band across, where it is more than
    chance and noise; `middles`, about how many scales out such a band is.
    """

    heavy: float
    uneven: Floats
    middles: Floats

    @property
    def uneven_square(self) -> float:
        """The mean square, in scales, that the uneven part holds."""
        return float(self.uneven @ self.middles**2)

    @property
    def skewed(self) -> bool:
        """Whether one tail holds more than the other, in a measure that matters."""
        return self.uneven_square > _EVEN

    @property
    def robust(self) -> bool:
        """Whether errors look heavy and even: then long rows are better trusted less."""
        return self.heavy > _HEAVY and not self.skewed


def _second(scale: float) -> int:
    """Return the power of two at which the second band begins, twice as far as the first or more.

    Bands but the first begin at powers of two, so that counts of different steps can be added up.
    """
    return math.ceil(math.log2(2 * FAR * scale))


def edges(scale: float, most: float) -> tuple[float, ...]:
    """Return where bands begin, from `FAR` scales up to `most`, which no residual is beyond."""
    first = _second(scale)
    powers = (2.0**power for power in range(first, first + BINS - 1))
    return (FAR * scale, *(power for power in powers if power < most))


class Watch:
    """Tails, as counts of far residuals come in from step to step.

    Heaviness is a mean of all steps. Unevenness leans on the last ones.
    """

    def __init__(self) -> None:
        self._found: list[float] = []
        self._counts = np.zeros((2, _POWERS))
        self._weights, self._variances = np.zeros(_POWERS), np.zeros(_POWERS)
        self.tails = Tails(_GUESS, np.zeros(1), np.ones(1))

    def see(self, histogram: Answer, rows: float, scale: float) -> None:
        """Weigh the counts of one more step: all but the first are of bands, above and below."""
        sides = histogram.values[1:].reshape(2, -1)
        second = _second(scale)
        nearest = float(sides[:, 0].sum()) / rows
        light, heavy = (
            in_nearest_bin(error_model, 2.0**second / scale) for error_model in (NORMAL, STUDENT)
        )
        self._found.append((nearest - light) / (heavy - light))
        error = histogram.sigma * math.sqrt(2 / len(self._found)) / rows / (heavy - light)
        start = second - 1 - _LOWEST
        indices = slice(start, start + sides.shape[1])
        self._counts *= _FADED
        self._weights *= _FADED
        self._variances *= _FADED**2
        self._counts[:, indices] += sides
        self._weights[indices] += 1
        self._variances[indices] += histogram.sigma**2
        weights = np.maximum(self._weights[indices], 1e-9)
        above, below = self._counts[:, indices] / weights
        noise = 2 * self._variances[indices] / weights**2
        deviation = np.sqrt(noise + np.maximum(above + below, 0.0))
        uneven = np.maximum(np.abs(above - below) - _DEVIATIONS * deviation, 0.0) / rows
        middles = np.asarray(1.4 * 2.0 ** (second - 1.0 + np.arange(len(uneven))) / scale, float)
        self.tails = Tails(heaviness(float(np.mean(self._found)), error), uneven, middles)

    def rescale(self, factor: float) -> None:
        """Measure the bands in scales of another size: this many of them are one of before."""
        self.tails = replace(self.tails, middles=self.tails.middles * factor)


def in_nearest_bin(error_model: ErrorModel, end: float) -> float:
    """Return the share of errors between `FAR` scales and the end of that band."""
    near, far = error_model.inside(np.array([FAR, end]))
    return float(far - near)


def heaviness(found: float, error: float) -> float:
    """Return how heavy tails are, from a mean of what counts say of it, and its error."""
    precision = 1 / (error**2 + _MODEL_ERROR**2)
    guess = 1 / _DOUBT**2
    return min(max((found * precision + _GUESS * guess) / (precision + guess), 0.0), 1.0)


def scales_within(share: float) -> float:
    """Return how many scales a share of normal errors is within."""
    return float(ndtri((1 + share) / 2))
