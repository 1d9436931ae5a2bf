"""Roots of monotone functions, returned on the private side.

A root finder that stops within a tolerance stops on either side of the root. Here the last word
is a test of the returned float itself: it is private, and the root is a few units in the last
place away.
"""

import math
from collections.abc import Callable

from scipy.optimize import brentq

from dplinear.privacy.rounding import ULP

_SMALLEST = 1e-300

Delta = Callable[[float], float]


def largest_private(
    delta: Delta, target: float, guess: float, *, to_the_last: bool = False
) -> float:
    """Return the largest x > 0 with delta(x) ≤ target, for a delta that increases with x.

    `delta` must already be rounded up. The result is private itself, and within a relative 1e-14
    of the root, or `to_the_last` unit in the last place if asked.
    """
    root = _solve(delta, target, guess, 1.0, 4 * ULP)
    return _to_the_last(delta, target, root) if to_the_last else root


def smallest_private(
    delta: Delta, target: float, guess: float, *, within: float = 4 * ULP
) -> float:
    """Return the smallest x > 0 with delta(x) ≤ target, for a delta that decreases with x.

    The result is private itself, and about `within` of the root, relatively.
    """
    return _solve(delta, target, guess, -1.0, within)


def _solve(delta: Delta, target: float, guess: float, sign: float, tolerance: float) -> float:
    log_target = math.log(target)
    seen: dict[float, float] = {}

    def excess(log_x: float) -> float:
        if log_x not in seen:
            value = delta(math.exp(log_x))
            # A flat end (δ = 0 or 1) would stall the interpolation, so it is clamped.
            seen[log_x] = min(max(math.log(max(value, _SMALLEST)) - log_target, -100.0), 100.0)
        return seen[log_x]

    inside = outside = math.log(guess)
    # ln δ usually moves ten times as fast as ln x: a first step that just passes the root.
    step = 1e-12 + abs(excess(inside)) / 6
    if excess(inside) <= 0:
        while excess(outside := _further(inside, sign * step)) <= 0:
            inside, step = outside, 4 * step
    else:
        while excess(inside := _further(outside, -sign * step)) > 0:
            outside, step = inside, 4 * step
    low, high = min(inside, outside), max(inside, outside)
    root = math.exp(float(brentq(excess, low, high, xtol=tolerance, rtol=4 * ULP)))
    hair = tolerance
    while delta(root) > target:
        root *= 1 - sign * hair
        hair *= 2
    return root


def _further(log_x: float, step: float) -> float:
    """Return the next logarithm to try, no further than floats reach."""
    if abs(log_x) >= 700:
        raise ArithmeticError("No setting within the range of floats meets the guarantee exactly.")
    return min(max(log_x + step, -700.0), 700.0)


def _to_the_last(delta: Delta, target: float, inside: float) -> float:
    """Return the private float next to a larger one that is not."""
    outside, hair = inside, ULP
    while delta(outside) <= target and hair < 1e-9:
        outside *= 1 + hair
        hair *= 2
    while outside - inside > ULP * inside:
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if delta(middle) <= target else (inside, middle)
    return inside
