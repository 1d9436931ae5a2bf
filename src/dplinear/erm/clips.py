"""Where to clip a row's residual and its gradient: what clipping loses, against the noise it saves.

Errors are taken to follow a law between the normal one and Student's t with 4 degrees of freedom,
and rows' lengths likewise; a released count of far residuals says where between them. Residuals are
measured in scales, a scale being what 68% of them are within; gradients in scales times the
mean length of a whitened row.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import chi2, f, t

from dplinear.analyst.laws import Matrix

FAR = 2.5  # scales: residuals beyond are counted, to tell heavy tails from light ones
_WITHIN = float(2 * ndtr(1.0) - 1)
_DEGREES = 4
_AT = np.linspace(0.0, 12.0, 2401)
_RESIDUALS = (1.0, 1.2, 1.5, 2.0, 3.0, 4.5, 7.0)
_PRODUCTS = np.geomspace(0.25, 20.0, 46)
_LENGTHS = 100  # quantiles of a row's length
_GUESS, _DOUBT = 0.3, 0.5  # how heavy tails are before anything is seen, and its standard deviation
_MODEL_ERROR = 0.003  # of a share of far residuals, as no error follows either law
# With heavy tails long rows lie beyond their bounds, and are wrong about the line, which more rows
# do not mend: what that costs in units of the noise's variance, times √n, from simulation.
_BIAS = 1e-3


@dataclass(frozen=True, eq=False)
class _Law:
    """P(|z| < x) and E min(z², x²) at `_AT`, for an error z in scales."""

    inside: Matrix
    square: Matrix

    @classmethod
    def of(cls, inside: Matrix) -> "_Law":
        slope = 2 * _AT * (1 - inside)  # of E min(z², x²)
        areas = (slope[1:] + slope[:-1]) / 2 * _AT[1]
        return cls(inside, np.concatenate([[0.0], np.cumsum(areas)]))


_LIGHT = _Law.of(np.asarray(2 * ndtr(_AT) - 1))
_HEAVY = _Law.of(2 * t.cdf(_AT * t.ppf((1 + _WITHIN) / 2, _DEGREES), _DEGREES) - 1)
_TAILS = tuple(1 - float(np.interp(FAR, _AT, law.inside)) for law in (_LIGHT, _HEAVY))


@dataclass(frozen=True)
class Clip:
    """A pair of clips: of a residual, in scales, and of a gradient, in scales and mean lengths."""

    residual: float
    product: float


@dataclass(frozen=True, eq=False)
class _Table:
    """For each pair of clips: what is left of the curvature, and the mean square of a gradient."""

    residuals: tuple[float, ...]
    response: Matrix
    square: Matrix

    def at(self, values: Matrix, clip: Clip) -> float:
        """Return a value between those at the products of the table."""
        row = self.residuals.index(clip.residual)
        return float(np.interp(clip.product, _PRODUCTS, values[row]))


class Clips:
    """The clips for rows of so many dimensions, at so much noise.

    `noise` is the variance of the noise of a gradient clipped at 1, all steps' shares together,
    over the variance of the sum of unclipped gradients; `rows`, about how many there are. With
    `residual` the clip of residuals is that one, and only the gradients' is chosen.
    """

    def __init__(
        self, dimension: int, noise: float, rows: float, residual: float | None = None
    ) -> None:
        self._residuals = _RESIDUALS if residual is None else (residual,)
        self._light, self._heavy = _tables(dimension, self._residuals)
        squares, bias = _PRODUCTS**2, _BIAS * math.sqrt(rows)
        self._errors = (
            np.log((self._light.square + noise * squares) / self._light.response**2),
            np.log((self._heavy.square + (noise + bias) * squares) / self._heavy.response**2),
        )

    def best(self, heavy: float) -> Clip:
        """Return the pair with the least expected logarithm of the error; `heavy` from 0 to 1."""
        light_errors, heavy_errors = self._errors
        errors = (1 - heavy) * light_errors + heavy * heavy_errors
        row, column = np.unravel_index(int(np.argmin(errors)), errors.shape)
        return Clip(self._residuals[row], float(_PRODUCTS[column]))

    def response(self, clip: Clip, heavy: float) -> float:
        """Return what the clips leave of the curvature."""
        light, other = self._light, self._heavy
        mixed = (1 - heavy) * light.at(light.response, clip) + heavy * other.at(
            other.response, clip
        )
        return float(mixed)

    def square(self, clip: Clip, heavy: float) -> float:
        """Return the mean square of a clipped gradient, over that of an unclipped one."""
        light, other = self._light, self._heavy
        mixed = (1 - heavy) * light.at(light.square, clip) + heavy * other.at(other.square, clip)
        return float(mixed)


@lru_cache(maxsize=16)
def _tables(dimension: int, residuals: tuple[float, ...]) -> tuple[_Table, _Table]:
    """Return the tables of the two laws.

    The Gram matrix counts a row's square up to the mean, so squares are in units of what that is.
    """
    at = (np.arange(_LENGTHS) + 0.5) / _LENGTHS
    light = chi2.ppf(at, dimension) / dimension
    heavy = f.ppf(at, dimension, _DEGREES) / (_DEGREES / (_DEGREES - 2))
    return _table(_LIGHT, light, residuals), _table(_HEAVY, heavy, residuals)


def _table(law: _Law, squares: Matrix, residuals: tuple[float, ...]) -> _Table:
    squares = squares / np.minimum(squares, 1.0).mean()
    products = _PRODUCTS[None, :, None] / np.sqrt(squares)
    limits = np.minimum(np.array(residuals)[:, None, None], products)
    response = (squares * np.interp(limits, _AT, law.inside)).mean(2)
    return _Table(residuals, response, (squares * np.interp(limits, _AT, law.square)).mean(2))


def heaviness(far: float, error: float) -> float:
    """Return how heavy tails are, from a mean share of far residuals and its error."""
    light, heavy = _TAILS
    gap = heavy - light
    precision = gap**2 / (error**2 + _MODEL_ERROR**2)
    guess = 1 / _DOUBT**2
    found = ((far - light) / gap * precision + _GUESS * guess) / (precision + guess)
    return min(max(found, 0.0), 1.0)


def before() -> float:
    """Return how heavy tails are taken to be before anything is seen."""
    return _GUESS


def scales_within(share: float) -> float:
    """Return how many scales a share of normal errors is within."""
    return float(ndtri((1 + share) / 2))
