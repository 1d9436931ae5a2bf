"""Enclosures and roundings that exact real numbers rest on."""

from fractions import Fraction
from math import floor

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplinear.noise import inversion
from dplinear.noise.reals import round_enclosure

big = st.integers(-(2**80), 2**80)
scales = st.fractions(min_value=Fraction(1, 2**40), max_value=2**10, max_denominator=2**50)


@given(big, st.integers(0, 2**70), scales)
def test_a_rounding_is_settled_if_it_is_the_same_all_over(
    middle: int, error: int, scale: Fraction
) -> None:
    half = Fraction(1, 2)
    low, high = (floor(scale * end + half) for end in (middle - error, middle + error))
    (rounded,), (undecided,) = round_enclosure(
        np.array([middle], object), np.array([error], object), scale
    )
    assert undecided == (low != high)
    assert rounded == low


def test_halves_are_rounded_up() -> None:
    middle, none = np.array([-3, -1, 1, 3], object), np.zeros(4, object)
    rounded, undecided = round_enclosure(middle, none, Fraction(1, 2))
    assert rounded.tolist() == [-1, 0, 1, 2]
    assert not undecided.any()


@pytest.mark.parametrize("bits", [1, 30, 64, 200])
@given(st.integers(1, 2**90), st.integers(1, 2**90))
def test_logarithms_are_enclosed(bits: int, numerator: int, denominator: int) -> None:
    low, high = inversion.logarithm(numerator, denominator, bits)
    with mpmath.workdps(120):
        scaled = mpmath.log(mpmath.mpf(numerator) / denominator) * mpmath.mpf(2) ** bits
        assert low <= scaled <= high
    assert high - low <= 2


@pytest.mark.parametrize(
    ("numerator", "denominator"), [(1, 1), (4, 3), (2, 3), (3, 2), (1, 2**300)]
)
def test_logarithms_are_enclosed_at_the_ends_of_their_series(
    numerator: int, denominator: int
) -> None:
    for bits in range(1, 400, 7):
        low, high = inversion.logarithm(numerator, denominator, bits)
        with mpmath.workdps(200):
            scaled = mpmath.log(mpmath.mpf(numerator) / denominator) * mpmath.mpf(2) ** bits
            assert low <= scaled <= high
        assert high - low <= 2
