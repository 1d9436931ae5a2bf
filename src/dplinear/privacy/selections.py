"""Calibration of exponential mechanisms that are run one after the other.

Each of them has log-likelihood ratios that lie within ε of each other, so that it is ε-DP, and
ε²/8-zCDP (Rogers and Steinke 2021, "A better privacy analysis of the exponential mechanism").
"""

import math
from fractions import Fraction

from dplinear import arguments
from dplinear.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.selections import Selections
from dplinear.privacy.roots import largest_private
from dplinear.privacy.rounding import down

_WHERE = "selections.range_of"


def profile(
    guarantee: Guarantee,
    epsilon: Fraction,
    count: int,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Selections:
    """Return the profile of so many selections, calibrated for a guarantee."""
    anchor = guarantee.epsilon if isinstance(guarantee, ApproxDP) else float(count * epsilon) / 2
    return Selections(epsilon, count, neighbours, anchor)


def range_of(guarantee: Guarantee, count: int) -> Fraction:
    """Return the most ε that each of `count` selections may have.

    Promises: `PureDP` and `ZCDP` exactly; `ApproxDP` by the best bound on what they add up to.
    """
    count = arguments.integer(count, "count", _WHERE, low=1)
    match guarantee:
        case PureDP() | ApproxDP(delta=0):
            epsilon = arguments.positive(guarantee.epsilon, "guarantee.epsilon", _WHERE)
            return Fraction(epsilon) / count
        case ZCDP():
            return Fraction(down(math.sqrt(8 * guarantee.rho / count)))
        case ApproxDP():
            target, delta = guarantee.epsilon, guarantee.delta
            far = math.sqrt(2 * math.log(1 / delta))
            guess = 2 * max(target, delta) / (far + math.sqrt(target)) / math.sqrt(count)

            def delta_at(each: float) -> float:
                return Selections(Fraction(each), count, anchor=target).delta(target)

            return Fraction(largest_private(delta_at, delta, guess))
        case _:
            hint = "no theorem gives selections a guarantee of another kind."
            rule = "a PureDP, ApproxDP or ZCDP guarantee"
            raise arguments.wrong_type("guarantee", _WHERE, rule, guarantee, hint)
