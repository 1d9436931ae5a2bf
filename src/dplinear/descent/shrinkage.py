"""How much of an estimate to keep, so that noise and sampling errors are not taken for a model."""

import numpy as np

from dplinear.adaptive.filter import KalmanFilter
from dplinear.arrays import Floats

_USUAL, _DOUBT = 0.7, 0.5  # of the expected signal, before anything is seen, and its deviation
_VISIBLE = (14, 6)  # rows·μ up to which there is nothing to see, and how many more show all
_COUNTED = 0.5  # of the sampling errors, in what is taken off a line because of them


def signal_share(seen: float, variance: float, most: float = 1.0) -> float:
    """Return how much signal there is, of the expected: the posterior mean after one look at it.

    It is at most `most`.
    """
    doubt = _DOUBT**2
    found = (seen / variance + _USUAL / doubt) / (1 / variance + 1 / doubt)
    return min(max(found, 0.0), most)


def visible_share(rows: float) -> float:
    """Return what to keep where `rows`·μ says that there is next to nothing to see."""
    nothing, more = _VISIBLE
    return min(max((rows - nothing) / more, 0.0), 1.0)


def kept_share(estimate: KalmanFilter, prior: Floats, curvature: Floats, rows: float) -> Floats:
    """Return what to multiply the iterate by, so that noise is not taken for a line.

    All of it where the filter expects to have found a third of the way; otherwise what the iterate
    shows beyond its noise. Nothing where `rows`·μ says that there is next to nothing to see.
    """
    reached, noise = estimate.reached, estimate.noise
    gap = (1 - reached) ** 2 * prior + noise
    found = 1 - float(curvature @ gap) / float(curvature @ prior)
    whole = reached**2 * prior
    total = max(float(curvature @ whole), 1e-300)
    seen = float(curvature @ (estimate.theta**2 - noise)) / total
    signal = signal_share(seen, max(2 * float(curvature**2 @ noise**2) / total**2, 1e-12))
    shrunk = signal * reached * prior / (signal * whole + noise + 1e-300)
    trust = min(max((found - 0.15) / 0.2, 0.0), 1.0)
    return np.asarray(np.maximum(np.minimum(shrunk, 1.0), trust) * visible_share(rows))


def sampling_factor(theta: Floats, sampling: Floats, curvature: Floats) -> float:
    """Return what to multiply the iterate by, because of sampling errors: James and Stein's factor.

    Departs from them: half of the errors are counted, as the filter takes directions of little
    curvature for reached; and the factor is at least a half.
    """
    length = max(float(curvature @ theta**2), 1e-300)
    return 1 - min(_COUNTED * float(curvature @ sampling) / length, 0.5)
