"""Chains of selections: profiles against exact binomial compositions and mpmath's zCDP bound."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP
from dplinear.privacy.profiles import Concentrated, Selections
from dplinear.privacy.selections import profile, range_of
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions


def binomial_delta(each: float, low: float, count: int, epsilon: float) -> float:
    """Return the exact δ(ε) of `count` choices of two whose losses are `low` and `low` + `each`.

    The chances of such a pair follow from its losses: p·e^−a + (1 − p)·e^−b = 1 for losses a, b.
    """
    a, b = low, low + each
    p = (1 - mpmath.exp(-b)) / (mpmath.exp(-a) - mpmath.exp(-b))
    return float(
        mpmath.fsum(
            mpmath.binomial(count, j)
            * p**j
            * (1 - p) ** (count - j)
            * max(0, 1 - mpmath.exp(epsilon - j * a - (count - j) * b))
            for j in range(count + 1)
        )
    )


@pytest.mark.parametrize("each", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_exact_compositions_of_choices_stay_below_the_profile(each: float, count: int) -> None:
    bound = Selections(Fraction(each), count, anchor=0.4 * count * each)
    for share in (0.02, 0.3, 0.5, 0.7, 0.98):
        low = -share * each
        for epsilon in (0.0, 0.1 * each, each, 0.4 * count * each, 0.9 * count * each):
            assert binomial_delta(each, low, count, epsilon) <= bound.delta(epsilon)


def test_the_profile_is_the_best_known_conversion() -> None:
    for rho, epsilon in [(0.01, 0.3), (0.1, 1.0), (1.0, 0.0), (3.0, 9.0)]:
        orders = np.exp(np.linspace(-8, 8, 4001)) + 1
        logs = (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1)
        best = float(np.exp((logs + orders * np.log1p(-1 / orders)).min()))
        assert Concentrated(rho).delta(epsilon) == pytest.approx(min(best, 1.0), rel=1e-4)
    with refused("delta", "Concentrated.epsilon"):
        Concentrated(0.1).epsilon(0.0)


def test_a_bounded_loss_caps_the_curve() -> None:
    capped = Concentrated(0.5, 1.0)
    assert capped.epsilon(0.0) == 1.0
    assert capped.delta(1.0) == 0.0
    assert capped.delta(0.9) <= (math.e - math.exp(0.9)) / (1 + math.e) * (1 + 1e-12)
    assert Concentrated(1e-4, 1.0).delta(0.2) == Concentrated(1e-4).delta(0.2)


def adaptive(each: float, count: int, epsilon: float, turns: int = 24) -> float:
    """Return δ(ε) of the best of many attackers, who choose each step's pair by what is left.

    They are attainable, so no sound bound is below: a search over two-point steps whose upper loss
    is any of a few parts of `each`, with exact continuations.
    """
    if count == 0:
        return max(0.0, -math.expm1(epsilon))
    best = 0.0
    for turn in range(turns + 1):
        high = each * turn / turns
        low = high - each
        chance = math.expm1(low) / math.expm1(low - high)
        found = chance * adaptive(each, count - 1, epsilon - high, turns)
        found += (1 - chance) * adaptive(each, count - 1, epsilon - low, turns)
        best = max(best, found)
    return best


@pytest.mark.parametrize(("each", "count"), [(0.8, 1), (0.5, 2), (0.3, 3)])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_the_recursion_is_above_attainable_attacks_and_close(
    each: float, count: int, part: float
) -> None:
    epsilon = part * each * count
    attained = adaptive(each, count, epsilon)
    bound = Selections(Fraction(each), count, anchor=epsilon).delta(epsilon)
    assert attained <= bound * (1 + 1e-12)
    assert bound <= attained * 1.25


@pytest.mark.parametrize("anchor", [0.0, 0.3, 1.0, 7.0])
def test_curves_fall_and_are_nowhere_above_what_zcdp_says(anchor: float) -> None:
    bound = Selections(Fraction(1, 5), 12, anchor=anchor)
    epsilons = np.linspace(0, 3, 400)
    curve = bound.curve(epsilons)
    assert (np.diff(curve) <= 0).all()
    assert (curve <= Concentrated(12 / 200, 2.4).curve(epsilons) * (1 + 1e-9)).all()
    sharp = Selections(Fraction(1, 5), 12, anchor=0.7).delta(0.7)
    assert sharp <= bound.delta(0.7) * (1 + 1e-9)


@pytest.mark.parametrize("count", [1, 3, 20, 1000])
@pytest.mark.parametrize("guarantee", [ApproxDP(1, 1e-6), ApproxDP(0.01, 1e-12), ApproxDP(8, 0.1)])
def test_ranges_keep_approximate_guarantees_and_waste_nothing(
    guarantee: ApproxDP, count: int
) -> None:
    each = range_of(guarantee, count)
    assert profile(guarantee, each, count).delta(guarantee.epsilon) <= guarantee.delta
    more = each * (1 + Fraction(1, 10**8))
    assert profile(guarantee, more, count).delta(guarantee.epsilon) > guarantee.delta
    assert each * count >= Fraction(guarantee.epsilon)


@pytest.mark.parametrize("count", [1, 3, 20])
def test_pure_and_concentrated_ranges_add_up_exactly(count: int) -> None:
    for pure in (PureDP(0.7), ApproxDP(0.7, 0.0)):
        assert range_of(pure, count) * count == Fraction(0.7)
    each = range_of(ZCDP(0.3), count)
    assert 0 <= Fraction(0.3) - count * each**2 / 8 <= Fraction(1, 10**14)
    bound = profile(PureDP(0.7), Fraction(0.7) / count, count, Neighbours.REPLACE)
    assert bound.loss == bound.epsilon(0.0) == 0.7
    assert bound.neighbours is Neighbours.REPLACE


@pytest.mark.parametrize("guarantee", [GDP(1), MIDP(1), ApproxDP(0, 0), "pure"])
def test_other_guarantees_are_refused(guarantee: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"of selections\.range_of"):
        range_of(guarantee, 2)
