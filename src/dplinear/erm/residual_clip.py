"""How far to clip residuals: what clipping loses of normal errors, against the noise it saves."""

import numpy as np
from scipy.special import ndtr, ndtri

from dplinear.analyst.laws import Matrix

_CLIPS = np.geomspace(0.03, 3.5, 120)  # in standard deviations


def inside(clip: Matrix | float) -> Matrix:
    """Return P(|z| < clip) for a normal z: what clipping leaves of the curvature."""
    return np.asarray(2 * ndtr(clip) - 1)


def scale_of(share: float) -> float:
    """Return the clip that a share of normal errors is within."""
    return float(ndtri((1 + share) / 2))


def energy(clip: Matrix | float) -> Matrix:
    """Return E min(z², clip²) for a normal z: what clipping leaves of the errors' variance."""
    density = np.exp(-np.square(clip) / 2) / np.sqrt(2 * np.pi)
    within = inside(clip)
    return np.asarray(within - 2 * clip * density + np.square(clip) * (1 - within))


def best(noise: float) -> float:
    """Return the clip of least error; `noise` is the noise's variance at a clip of 1.

    Noise and variance are in units of the variance of unclipped residuals' sum.
    """
    return float(_CLIPS[np.argmin((energy(_CLIPS) + noise * _CLIPS**2) / inside(_CLIPS) ** 2)])
