"""The tables of samplers against their definitions, in exact integers."""

import math
from bisect import bisect_right
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dplinear.noise import discrete, inversion, selection, simulation
from dplinear.noise.discrete import FINE, Precision
from dplinear.noise.selection import draw
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

SCALES = [Fraction(s) for s in ("1/3", "1", "31", "32", "63", "64", "100/3", 2**40 + 1, 2**60)]


def plans(scale: Fraction) -> list[discrete.Plan]:
    made = [discrete.laplace_plan(scale, FINE)]
    return made + ([discrete.gaussian_plan(scale**2, FINE)] if scale <= 2**50 else [])


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_plans_hold_the_numbers_of_their_law(scale: Fraction) -> None:
    for plan in plans(scale):
        cell, power = 1 << plan.shift, plan.power
        # Of the integers below 16 each has a cell of its own, and then 16 to 32 cells make a scale.
        assert cell == 1 if scale < 32 else 16 * cell <= scale < 32 * cell
        assert plan.rate == Fraction(cell) ** power / (scale if power == 1 else 2 * scale**2)
        values = range(len(plan.thresholds) + 1)
        moving = plan.shift > 0
        slopes = [plan.rate * (2 * v + 1 if power == 2 else 1) * moving for v in values]
        linear = [plan.rate * (2 * v if power == 2 else 1) * moving for v in values]
        assert plan.steepest.tolist() == [*(math.ceil(s * 2**16) for s in slopes), 0]
        assert plan.linear.tolist() == [math.floor(s * 2**32) for s in linear]
        assert int(plan.square) == (math.floor(plan.rate * 2**32) if power == 2 and moving else 0)
        assert plan.limit == min(2 ** (63 - plan.shift), 2**16 - 1)
        assert plan.thresholds.tolist() == list(inversion.survival(plan.rate, power, 64))
        settled = plan.guide[plan.guide != discrete._OPEN].astype(int)
        assert ((settled + 1) * cell <= 2**63).all()


def settled_by_counting(table: list[int], prefix: int) -> int | None:
    """Return V if no number that begins so can have another, by t ≤ P(V > i)·2^bits ≤ t + 2."""
    surely = sum(t > prefix for t in table)  # t ≥ prefix + 1
    perhaps = sum(t + 2 > prefix for t in table)
    return surely if surely == perhaps and prefix >= 2 else None


@pytest.mark.parametrize("guide_bits", [2, 3, 5])
def test_guides_settle_exactly_what_can_be_settled(guide_bits: int) -> None:
    rng = simulation.generator(7)
    precision = Precision(guide_bits=guide_bits, table_bits=6)
    width = 6 - guide_bits
    for count in (1, 2, 3, 6) * 5:
        table = sorted(int(t) for t in rng.choice(60, count, replace=False))
        thresholds = np.array(table, np.uint64)
        verdicts = [settled_by_counting(table, prefix) for prefix in range(64)]
        values, settled = discrete._counts(thresholds, np.arange(64, dtype=np.uint64))
        found = [int(v) if ok else None for v, ok in zip(values, settled, strict=True)]
        assert found == verdicts
        for limit in (1, 2, 1000):
            guide = discrete._guide(thresholds, limit, precision)
            for bucket, entry in enumerate(guide.tolist()):
                inside = set(verdicts[bucket << width : (bucket + 1) << width])
                value = inside.pop() if len(inside) == 1 else None
                known = value is not None and value < limit
                assert entry == (value if known else int(discrete._OPEN))


def test_products_of_enclosures_are_the_least_that_hold() -> None:
    for a in ((0, 1), (5, 9), (60, 64), (64, 64), (33, 47)):
        for b in ((0, 0), (7, 8), (31, 50), (64, 64)):
            low, high = inversion._product(a, b, 6)
            assert low == math.floor(Fraction(a[0] * b[0], 64))
            assert high == math.ceil(Fraction(a[1] * b[1], 64))


def test_inversion_counts_the_tails_above_a_number() -> None:
    """At every prefix of ten bits, further bits being zeros or ones."""
    rate, power = Fraction(1, 2), 1
    table = inversion.survival(rate, power, 80)[::-1]

    class Same:
        simulated = True

        def __init__(self, bit: int) -> None:
            self.bit = bit

        def bits(self, count: int) -> int:
            return ((1 << count) - 1) * self.bit

        def fill(self, words: Any) -> None:
            raise NotImplementedError

    for prefix in range(1, 1024, 3):
        for bit in (0, 1):
            number = (prefix << 70) + ((1 << 70) - 1) * bit
            exact = len(table) - bisect_right(table[::-1], number)
            assert inversion.invert(rate, power, prefix, 10, Same(bit)) == exact


def test_bounds_of_weights_are_the_least_integers_above() -> None:
    table = selection._bounds.__wrapped__()
    assert len(table) == 28 * 1024 + 1
    with mpmath.workdps(40):
        ratio = mpmath.exp(-mpmath.mpf(1) / 1024)
        value = mpmath.mpf(2) ** 40
        for entry in table:
            assert int(entry) == mpmath.ceil(value)
            value *= ratio


def test_places_in_the_table_are_never_beyond_the_exact_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Shortfalls whose exact place is a hair below an integer, where one rounding is too many."""
    monkeypatch.setattr(selection, "_bounds", lambda: np.arange(28 * 1024 + 1, dtype=np.uint64))
    rng = simulation.generator(8)
    for _ in range(300):
        place = int(rng.integers(1, 28 * 1024))
        shortfall = int(rng.integers(1, 2 ** int(rng.integers(1, 62))))
        unit = (place - Fraction(1, 10**40)) / (1024 * shortfall)
        for short in (np.array([shortfall]), np.array([shortfall], object)):
            assert selection._weights(short, unit).tolist() == [place - 1]
        above = (place + Fraction(1, 10**9)) / (1024 * shortfall)
        assert selection._weights(np.array([shortfall]), above).tolist() == [place]


def test_one_candidate_is_drawn_and_none_is_refused() -> None:
    assert draw([-3], 1) == 0
    for empty in (np.array([], np.int64), np.array([], object)):
        with refused("qualities", "selection.draw", "a list of 1 to 4194304 integers"):
            draw(empty, 1)
    with refused("qualities", "selection.draw", "a list of 1 to 4194304 integers"):
        draw(np.zeros(2**22 + 1, np.int8), 1)


@pytest.mark.parametrize("unit", [Fraction(1, 2**1000), 2.0**-1000])
def test_the_least_unit_is_taken(unit: Any) -> None:
    assert draw([0, -(10**400)], unit) == 0
