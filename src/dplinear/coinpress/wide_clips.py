"""The last release of a regression by CoinPress: what its clips hid, as clips of another size show.

Clipped residuals balance where their mean is 0. If they are skewed that is not where the mean of
all residuals is, whatever the number of rows. A last sum with a clip so wide that its noise is as
large as sampling errors says how far off the line is, and moves it back where that is clear.
"""

import math
from dataclasses import dataclass

import numpy as np

from dplinear.arrays import Floats

SKEWED = 3.0  # deviations of noise and sample, that a mean must be off by to be followed
WIDER = 2.0  # times the clip of the rounds, that a wide one must be for all products
_DIFFERENT = 0.25  # of sampling variances: by which means and clipped ones differ by chance


@dataclass(frozen=True, eq=False)
class Correction:
    """A move of the iterate, with the variance of its noise, and of the intercept alone.

    `unknown` is a variance of every coordinate that was seen, but not clearly. `skewed` says that
    the line was moved; how far it still is from where it should be is then not known.
    """

    move: Floats
    noise: Floats
    offset: float
    offset_noise: float
    unknown: Floats
    skewed: bool


def by_gradient(
    gradient: Floats, sigma: float, *, known: Floats, sampling: Floats, curvature: Floats
) -> Correction:
    """Follow the gradient of products that are hardly clipped, shrunk by its doubt.

    `known` is the variance of the iterate that is accounted for, `sampling` that of the sample;
    `curvature`, no less than what the loss has.
    """
    deviation = math.sqrt(2 / len(gradient))  # of a mean of so many squares
    expected = sigma**2 + curvature**2 * known
    seen, mean = float(gradient @ gradient) / len(gradient), float(np.mean(expected))
    chance = mean + _DIFFERENT * float(np.mean(curvature**2 * sampling))
    kept = _kept(seen, (1 + SKEWED * deviation) * chance)
    # All of it may be in one coordinate, as skewed residuals move the intercept most.
    beyond = len(gradient) * max(seen - (1 + deviation) * mean, 0.0)
    gain = kept / curvature
    return Correction(
        move=gain * gradient,
        noise=(gain * sigma) ** 2,
        offset=0.0,
        offset_noise=0.0,
        unknown=beyond / curvature**2,
        skewed=kept > 0,
    )


def by_mean(mean: float, sigma: float, *, variance: float, size: int) -> Correction:
    """Move the intercept to the mean of residuals that are hardly clipped, shrunk by its doubt.

    `variance` is that of the sample's mean.
    """
    kept = _kept(mean**2, SKEWED**2 * (sigma**2 + variance))
    none = np.zeros(size)
    return Correction(none, none, kept * mean, (kept * sigma) ** 2, none, kept > 0)


def _kept(square: float, doubt: float) -> float:
    return 1 - doubt / square if square > doubt else 0.0
