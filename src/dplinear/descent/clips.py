"""Where to clip a row's residual and its gradient: what clipping loses, against the noise it saves.

Errors follow a law between two (`tails.py`), and rows' lengths likewise. Residuals are measured in
scales, gradients in scales times the mean length of a whitened row.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import chi2, f

from dplinear.arrays import Floats
from dplinear.descent.tails import DEGREES, NORMAL, STUDENT, ErrorModel, Tails

TAPER = 2.0  # mean lengths, beyond which rows are trusted less and less where tails are heavy
_RESIDUALS = (1.0, 1.2, 1.5, 2.0, 3.0, 4.5, 7.0, 11.0, 18.0, 30.0, 50.0, 80.0)
_PRODUCTS = np.geomspace(0.25, 100.0, 62)
_LENGTHS = 100  # quantiles of a row's length
# With heavy tails long rows lie beyond their bounds, and are wrong about the line, which more rows
# do not mend: what that costs in units of the noise's variance, times n/d, from simulation with
# 5 ≤ d ≤ 100; less where they are tapered.
_BIAS = (3e-5, 3e-6)
_TOLD = 0.5  # of what clips take off an uneven tail, that the features are expected to explain


@dataclass(frozen=True)
class Clip:
    """A pair of clips: of a residual, in scales, and of a gradient, in scales and mean lengths.

    Where it is `tapered`, residuals of rows longer than `TAPER` are clipped sooner still.
    """

    residual: float
    product: float
    tapered: bool = False


@dataclass(frozen=True, eq=False)
class _Table:
    """For each pair of clips: what is left of the curvature, and the mean square of a gradient."""

    response: Floats
    square: Floats


@dataclass(frozen=True, eq=False)
class _Uneven:
    """For residuals of one size and each pair of clips: mean squares of what is held and lost."""

    held: Floats
    lost: Floats


class Clips:
    """The clips for rows of so many dimensions, at so much noise.

    `noise` is the variance of the noise of a gradient clipped at 1, all steps' shares together,
    over the variance of the sum of unclipped gradients; `rows`, about how many there are. With
    `residual` the clip of residuals is that one, whatever tails are, and only the gradients' is
    chosen.
    """

    def __init__(
        self, dimension: int, noise: float, rows: float, residual: float | None = None
    ) -> None:
        self._fixed = residual is not None
        self._residuals = _RESIDUALS if residual is None else (residual,)
        self._dimension, self._noise, self._rows = dimension, noise, rows

    def best(self, tails: Tails) -> Clip:
        """Return the clips with the least expected logarithm of the error."""
        found = [self._least(tails, tapered) for tapered in (False, True)[: 1 + tails.robust]]
        return min(found, key=lambda one: one[0])[1]

    def _least(self, tails: Tails, tapered: bool) -> tuple[float, Clip]:  # noqa: FBT001 - private
        """Return the least error and its pair; what clips lose of uneven tails is added to it."""
        light, heavy = self._tables(tapered)
        noise = self._noise * self._longest(tapered) ** 2
        bias = _BIAS[tapered] * self._rows / max(self._dimension, 5) * _PRODUCTS**2
        errors = (1 - tails.heavy) * np.log((light.square + noise) / light.response**2)
        noise = noise if tails.skewed else noise + bias
        errors += tails.heavy * np.log((heavy.square + noise) / heavy.response**2)
        if tails.skewed and not self._fixed:
            weight = _TOLD * self._rows / self._dimension
            lost = sum(share * one.lost for share, one in self._uneven(tails))
            errors = np.log(np.exp(errors) + weight * lost / light.response**2)
        row, column = np.unravel_index(int(np.argmin(errors)), errors.shape)
        clip = Clip(self._residuals[row], float(_PRODUCTS[column]), tapered)
        return float(errors[row, column]), clip

    def response(self, clip: Clip, tails: Tails) -> float:
        """Return what the clips leave of the curvature."""
        light, heavy = (table.response for table in self._tables(clip.tapered))
        return self._at((1 - tails.heavy) * light + tails.heavy * heavy, clip)

    def square(self, clip: Clip, tails: Tails) -> float:
        """Return the mean square of a clipped gradient, over that of an unclipped one."""
        light, heavy = (table.square for table in self._tables(clip.tapered))
        found = (1 - tails.heavy) * light + tails.heavy * heavy
        if tails.skewed:
            found = found + sum(share * one.held for share, one in self._uneven(tails))
        return self._at(found, clip)

    def _longest(self, tapered: bool) -> Floats:  # noqa: FBT001 - private
        """Return how long a gradient may be, for each pair of clips."""
        residuals = np.array(self._residuals)[:, None]
        return np.minimum(_PRODUCTS, TAPER * residuals if tapered else np.inf)

    def _tables(self, tapered: bool) -> tuple[_Table, _Table]:  # noqa: FBT001 - private
        return _tables(self._dimension, self._residuals, tapered)

    def _uneven(self, tails: Tails) -> list[tuple[float, _Uneven]]:
        """Return the shares of rows in uneven bands, and what clips do to their residuals."""
        return [
            (float(share), _uneven(self._dimension, self._residuals, round(4 * math.log2(middle))))
            for share, middle in zip(tails.uneven, tails.middles, strict=True)
            if share > 0
        ]

    def _at(self, values: Floats, clip: Clip) -> float:
        """Return a value between those at the products of the table."""
        row = self._residuals.index(clip.residual)
        return float(np.interp(clip.product, _PRODUCTS, values[row]))


@lru_cache(maxsize=16)
def _tables(
    dimension: int,
    residuals: tuple[float, ...],
    tapered: bool,  # noqa: FBT001 - private
) -> tuple[_Table, _Table]:
    """Return the tables of the two laws.

    The Gram matrix counts a row's square up to the mean, so squares are in units of what that is.
    """
    heavy = f.ppf(_quantiles(), dimension, DEGREES) / (DEGREES / (DEGREES - 2))
    light = _light(dimension)
    return (
        _table(NORMAL, light, residuals, tapered=tapered),
        _table(STUDENT, _normalise(heavy), residuals, tapered=tapered),
    )


def _table(
    error_model: ErrorModel, squares: Floats, residuals: tuple[float, ...], *, tapered: bool
) -> _Table:
    limits = _limits(squares, residuals)
    if tapered:
        limits = limits * np.minimum(TAPER**2 / squares, 1.0)
    response = (squares * error_model.inside(limits)).mean(2)
    return _Table(response, (squares * error_model.square(limits)).mean(2))


@lru_cache(maxsize=128)
def _uneven(dimension: int, residuals: tuple[float, ...], power: int) -> _Uneven:
    """Return what clips hold and lose of residuals of 2^(power/4) scales."""
    squares, size = _light(dimension), 2.0 ** (power / 4)
    limits = _limits(squares, residuals)
    held = (squares * np.minimum(size, limits) ** 2).mean(2)
    return _Uneven(held, (squares * np.maximum(size - limits, 0.0) ** 2).mean(2))


def _limits(squares: Floats, residuals: tuple[float, ...]) -> Floats:
    """Return where a residual is clipped, for each pair of clips and each length of a row."""
    products = _PRODUCTS[None, :, None] / np.sqrt(squares)
    return np.asarray(np.minimum(np.array(residuals)[:, None, None], products))


def _quantiles() -> Floats:
    return (np.arange(_LENGTHS) + 0.5) / _LENGTHS


def _light(dimension: int) -> Floats:
    return _normalise(np.asarray(chi2.ppf(_quantiles(), dimension) / dimension))


def _normalise(squares: Floats) -> Floats:
    return np.asarray(squares / np.minimum(squares, 1.0).mean())
