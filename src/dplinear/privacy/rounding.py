"""Rounding to the private side: every published figure errs towards less privacy claimed."""

import math
from fractions import Fraction

ULP = 2.0**-52


def up(value: float, ulps: int = 4) -> float:
    """Return a float above `value` by `ulps` units in the last place (0 stays 0)."""
    return value + ulps * ULP * abs(value) if math.isfinite(value) else value


def multiple(value: float, times: int) -> float:
    """Return the least float that is not below `times`·`value`."""
    return ceiling(Fraction(value) * times)


def down(value: float, ulps: int = 4) -> float:
    """Return a float below `value` by `ulps` units in the last place (0 stays 0)."""
    return value - ulps * ULP * abs(value) if math.isfinite(value) else value


def ceiling(exact: Fraction) -> float:
    """Return the least float that is not below a fraction."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def root_ceiling(exact: Fraction) -> float:
    """Return the least float whose square is not below a fraction."""
    root = math.nextafter(math.sqrt(float(exact)), math.inf)
    while Fraction(below := math.nextafter(root, 0.0)) ** 2 >= exact:
        root = below
    while Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    return root


def root_quotient(number: int, square: Fraction) -> float:
    """Return a float that is not above `number`/√`square`, by a few units in the last place.

    Requires: a positive `square`, and a number of at least 0.
    """
    return down(number / root_ceiling(square))
