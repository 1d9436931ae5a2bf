"""How large |g₁| + … + |g_k| can be, g normal: upper bounds on its quantiles.

A row's change v, fixed before a matrix of independent N(0, 1) entries is drawn, is mapped to ‖v‖·g.
docs/theory/projected-rows.md has the proofs.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erfc, log_ndtr

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.privacy.rounding import up

_WHERE = "half_normal_quantile"
_POINTS = 1 << 14  # of the widest convolution
_FEWEST_STEPS = 16  # to a standard deviation; with fewer the exponential bound is as good
_ROUNDING = 1e-9  # outweighs what float64 sums of positive terms lose, relatively


def half_normal_quantile(k: int, delta: float) -> float:
    """Return c with P(|g₁| + … + |g_k| > c) ≤ δ, above the least such c by a few parts in 1000.

    Requires: k of at least 1; δ in (0, 1).
    Promises: a true upper bound: the better of two.
    """
    k = arguments.integer(k, "k", _WHERE, low=1)
    delta = arguments.real(delta, "delta", _WHERE, low=0, high=1, open_low=True, open_high=True)
    return min(_by_exponentials(k, delta), _by_convolution(k, delta))


def _by_exponentials(k: int, delta: float) -> float:
    """Return the best of Chernoff's bounds.

    E e^{t|g|} = 2·Φ(t)·e^{t²/2}, so P(Σ|g| > c) ≤ (2Φ(t))^k·e^{kt²/2 − tc} for every t > 0: solved
    for c at δ. Each t gives a valid c, so how well the best is found only matters for the size.
    """

    def bound(log_t: float) -> float:
        t = math.exp(log_t)
        logarithm = k * (math.log(2) + float(log_ndtr(t)) + t * t / 2) - math.log(delta)
        return logarithm / t

    best = minimize_scalar(bound, bounds=(-5.0, 5.0), method="bounded")
    return up(bound(float(best.x)), 64)


def _by_convolution(k: int, delta: float) -> float:
    """Return a quantile of the sum of |g| rounded upwards to a grid, cut off far out.

    What is beyond the cut, k·P(|g| > reach), is taken from δ. All terms are positive, so float64
    loses a relative _ROUNDING at most, which is taken from δ as well.
    """
    reach = math.sqrt(2 * math.log(1e4 * k / delta))
    steps = min(512, _POINTS / (k * reach))
    if steps < _FEWEST_STEPS:
        return math.inf
    ends = np.arange(math.ceil(reach * steps) + 1) / steps
    tails = erfc(ends / math.sqrt(2))
    masses = np.concatenate(([0.0], -np.diff(tails)))  # of ((m − 1)/steps, m/steps], at m
    total = _power(masses, k)
    beyond = np.cumsum(total[::-1])[::-1]  # P(sum ≥ m)
    left = delta - up(k * float(tails[-1]), 64)
    inside = np.flatnonzero(beyond * (1 + _ROUNDING) <= left)
    # The sum is a multiple of the grid's step: P(sum > m − 1) = P(sum ≥ m).
    place = int(inside[0]) - 1 if len(inside) else len(total) - 1
    return up(place / steps, 8)


def _power(masses: Floats, k: int) -> Floats:
    """Return the k-fold convolution; directly, as Fourier transforms would drown the tails."""
    result = np.ones(1)
    while k:
        if k & 1:
            result = np.convolve(result, masses)
        k >>= 1
        if k:
            masses = np.convolve(masses, masses)
    return np.asarray(result)
