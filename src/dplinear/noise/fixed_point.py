"""exp(-γ) in 64-bit fixed point, with proven error (docs/noise.md, "The acceptance test")."""

from fractions import Fraction
from functools import lru_cache

import numpy as np

from dplinear.noise.entropy import Words
from dplinear.noise.inversion import exponential

ERROR = 8  # bounds the error of `scaled_exponential` on either side

_MASK = np.uint64(2**22 - 1)
_ONE = np.uint64(2**32)


def exponent(u: Words, linear: Words, square: np.uint64) -> Words:
    """Return g with g ≤ γ·2^32 ≤ g + 6, for γ = (a·x + b·x²) < 1 with x in [0, 1).

    Requires: u the floor of x·2^32, `linear` that of a·2^32 < 2^32, `square` that of b·2^32.
    """
    high = np.uint64(32)
    return (linear * u >> high) + (square * (u * u >> high) >> high)


def scaled_exponential(g: Words) -> Words:
    """Return p with p - 7 ≤ exp(-γ)·2^32 ≤ p + 3, for g as `exponent` returns it."""
    rest = g & _MASK
    tail = _ONE - rest + (rest * rest >> np.uint64(33))
    return _coarse().take((g >> np.uint64(22)).astype(np.intp)) * tail >> np.uint64(32)


@lru_cache(maxsize=1)
def _coarse() -> Words:
    """Return e with e ≤ exp(-j/1024)·2^32 ≤ e + 1 for j = 0, ..., 1023."""
    # The largest is one short of 2^32, so that the product above stays below 2^64.
    floors = [exponential(Fraction(j, 1024), 64)[0] >> 32 for j in range(1024)]
    return np.array([min(floor, 2**32 - 1) for floor in floors], np.uint64)
