"""Rounding in exact arithmetic: on the private side, and by no more than is said."""

import math
from fractions import Fraction

import pytest

from dplinear.noise.simulation import generator
from dplinear.privacy.rounding import ULP, ceiling, down, multiple, root_ceiling, root_quotient, up

FRACTIONS = [
    Fraction(1, 3),
    Fraction(2),
    Fraction(10**40 + 1, 7),
    Fraction(1, 10**30),
    Fraction(2, 9),
]


@pytest.mark.parametrize("value", [1.0, 1 / 3, 1e-200, -2.5, 7e300])
@pytest.mark.parametrize("ulps", [1, 4, 64])
def test_up_and_down_move_by_units_in_the_last_place(value: float, ulps: int) -> None:
    unit = abs(Fraction(value)) / 2**52
    # One rounding to nearest, of half a unit at the most, comes on top.
    assert abs(Fraction(up(value, ulps)) - Fraction(value) - ulps * unit) <= unit / 2
    assert abs(Fraction(down(value, ulps)) - Fraction(value) + ulps * unit) <= unit / 2


def test_up_and_down_by_four_units_unless_said_otherwise() -> None:
    assert (up(1.0), down(1.0)) == (1 + 4 * ULP, 1 - 4 * ULP)
    assert math.nextafter(1.0, 2.0) == 1 + ULP


@pytest.mark.parametrize("still", [0.0, math.inf, -math.inf])
def test_zero_and_infinity_stay(still: float) -> None:
    assert up(still) == down(still) == still


def test_ceilings_are_the_least() -> None:
    for exact in FRACTIONS:
        found = ceiling(exact)
        assert Fraction(found) >= exact > Fraction(math.nextafter(found, 0.0))
    assert ceiling(Fraction(5, 8)) == 0.625
    assert multiple(0.1, 3) == ceiling(3 * Fraction(0.1))


def test_roots_are_the_least() -> None:
    drawn = [Fraction(float(x)) for x in generator(1).lognormal(0, 30, 200)]
    for exact in [*FRACTIONS, *drawn, *(x * x for x in drawn)]:
        found = root_ceiling(exact)
        assert Fraction(found) ** 2 >= exact > Fraction(math.nextafter(found, 0.0)) ** 2


@pytest.mark.parametrize("away", [1 - 1e-13, 1 + 1e-13])
def test_a_root_that_starts_on_the_wrong_side_is_mended(
    monkeypatch: pytest.MonkeyPatch, away: float
) -> None:
    exactly = math.sqrt
    monkeypatch.setattr(math, "sqrt", lambda value: exactly(value) * away)
    found = root_ceiling(Fraction(2))
    assert Fraction(found) ** 2 >= 2 > Fraction(math.nextafter(found, 0.0)) ** 2


def test_quotients_by_roots_are_below_by_little() -> None:
    for square in FRACTIONS:
        for number in (0, 1, 7, 10**12 + 1):
            found = Fraction(root_quotient(number, square))
            assert found**2 * square <= number**2
            assert (found * (1 + Fraction(8, 2**52))) ** 2 * square >= number**2
