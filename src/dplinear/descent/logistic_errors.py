"""Sampling errors of a logistic model, from released matrices of curvature and of scores.

Released matrices are weighed against what normal rows would have, by how far the two are apart
beyond the noise (docs/theory/logistic-descent.md).
"""

import math

import numpy as np

from dplinear.adaptive.noisy_sums import Answer
from dplinear.arrays import Floats

_LEAST = 0.02  # of the mean curvature, that any direction is taken to have
_MOST = 0.3  # and what noise may raise that to
_LOW = 0.1  # of the mean of scores that any direction has; and of curvature, by the model


def blend(expected: Floats, found: Answer) -> Floats:
    """Return the mean of an expected matrix and a released one, weighed by what they show.

    Requires: symmetric Gaussian noise, with half the variance off the diagonal.
    Promises: the released one where noise is nothing; the expected one where the two are no
    farther apart than the noise is large.
    """
    gap, size = found.values - expected, len(expected)
    noise = found.sigma**2 * size * (size + 1) / 2
    weight = max(0.0, 1 - noise / max(float((gap**2).sum()), 1e-300))
    return np.asarray(expected + weight * gap)


def sandwich(bread: Floats, meat: Floats, sigma: float, expected: float) -> Floats:
    """Return A⁻¹BA⁻¹, with directions raised whose curvature is lower than is plausible.

    `sigma` is the deviation of the noise of A, and `expected` its mean curvature by the model: the
    released one may be next to nothing, where there is next to no row.
    """
    level = max(float(np.trace(bread)) / len(bread), _LOW * expected)
    least = min(max(_LEAST * level, sigma * math.sqrt(2 * len(bread))), _MOST * level)
    values, vectors = np.linalg.eigh((bread + bread.T) / 2)
    inverse = (vectors / np.maximum(values, least)) @ vectors.T
    values, vectors = np.linalg.eigh((meat + meat.T) / 2)
    floor = _LOW * max(float(values.mean()), 0.0)
    return np.asarray(inverse @ (vectors * np.maximum(values, floor)) @ vectors.T @ inverse)
