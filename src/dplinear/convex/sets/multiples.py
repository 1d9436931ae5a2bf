"""Gauges of moved sets: the least τ ≥ 0 with point ∈ τ·set, in one dimension."""

import math
from collections.abc import Callable

import numpy as np

from dplinear.arrays import Floats

# Points this near to a set, for its size, are in it: rounding moves them as far.
SLACK = 1e-12
_HALVINGS = 200
_FAR = 1e4
_GOLDEN = (math.sqrt(5) - 1) / 2


def least_linear(slopes: Floats, values: Floats) -> float:
    """Return the least τ ≥ 0 with values ≤ τ·slopes, coordinate by coordinate; infinite if none."""
    slack = SLACK * float(np.abs(values).max(initial=0.0))
    flat = slopes == 0
    if (values[flat] > slack).any():
        return math.inf
    rising, falling = slopes > 0, slopes < 0
    least = float((values[rising] / slopes[rising]).max(initial=0.0))
    most = float((values[falling] / slopes[falling]).min(initial=math.inf))
    return least if least <= most + SLACK * max(abs(most), abs(least)) else math.inf


def least_moved(gauge: Callable[[Floats], float], point: Floats, shift: Floats) -> float:
    """Return the least τ ≥ 0 with gauge(point − τ·shift) ≤ τ; infinite if there is none.

    Requires: a finite gauge of a set with the origin inside. The excess gauge(point − τ·shift) − τ
    is then convex in τ, so that one search finds its lowest place and another where it gets there.
    Where the origin is on the rim of the moved set, multiples above 10⁴ count as infinite.
    """

    def excess(tau: float) -> float:
        return gauge(point - tau * shift) - tau

    if not point.any():
        return 0.0
    if not shift.any():
        return gauge(point)
    growth = gauge(-shift) - 1  # how the excess grows in the end
    size = gauge(point) + gauge(-point)
    if growth < -SLACK:
        reach = size / -growth
    elif growth > SLACK:
        reach = _lowest(excess, size / growth)
    else:
        # The origin is on the rim: the excess falls for ever, perhaps to nothing.
        reach = size * _FAR
    slack = SLACK * max(reach, size)
    return _first(excess, reach, slack) if excess(reach) <= slack else math.inf


def _lowest(excess: Callable[[float], float], high: float) -> float:
    """Return where a convex function on [0, high] is lowest, by golden sections."""
    low = 0.0
    left, right = high - _GOLDEN * high, _GOLDEN * high
    at_left, at_right = excess(left), excess(right)
    for _ in range(_HALVINGS):
        if high - low <= 2.0**-50 * high:
            break
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = excess(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = excess(right)
    return left if at_left <= at_right else right


def _first(excess: Callable[[float], float], high: float, slack: float) -> float:
    """Return where a convex function that is at most `slack` at `high` gets there, by halving."""
    low = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if high - low <= 2.0**-50 * high:
            break
        if excess(middle) <= slack:
            high = middle
        else:
            low = middle
    return high
