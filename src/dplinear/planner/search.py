"""The least budget, or the fewest rows, that bring a predicted error down to a goal."""

import math
from collections.abc import Callable

from scipy.optimize import brentq

_STEPS = 100
_CLOSE = 1e-7


def least_reaching(
    function: Callable[[float], float], wanted: float, low: float, high: float
) -> float | None:
    """Return the least place at which a falling function is at most `wanted`; None if nowhere."""
    if function(high) > wanted:
        return None
    if function(low) <= wanted:
        return low

    def above(logarithm: float) -> float:
        return math.log(function(math.exp(logarithm)) / wanted)

    found = math.exp(brentq(above, math.log(low), math.log(high), xtol=_CLOSE, rtol=_CLOSE))
    for _ in range(_STEPS):  # to the side on which the goal is reached
        if function(found) <= wanted:
            break
        found *= 1 + _CLOSE
    return min(found, high)
