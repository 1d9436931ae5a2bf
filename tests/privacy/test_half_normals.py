"""Quantiles of sums of half-normal numbers: true upper bounds, and close ones."""

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from dplinear.noise import simulation
from dplinear.privacy.half_normals import (
    _by_convolution,
    _by_exponentials,
    half_normal_quantile,
)

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

DELTAS = [0.3, 1e-2, 1e-4, 1e-6, 1e-10]


@pytest.mark.parametrize("delta", DELTAS)
def test_one_number_has_the_normal_quantile(delta: float) -> None:
    exact = norm.isf(delta / 2)
    assert exact <= half_normal_quantile(1, delta) <= exact * 1.001 + 0.002


@pytest.mark.parametrize("steps", [700, 1500, 2500])
@pytest.mark.parametrize("part", [-0.5, -1e-3, 0.0, 0.5])
def test_one_number_at_the_ends_of_cells(steps: int, part: float) -> None:
    """δ at, or off by less than what is set aside for rounding: the cell's end will not do."""
    with mpmath.workdps(40):
        delta = float(mpmath.erfc(mpmath.mpf(steps) / 512 / mpmath.sqrt(2)) * (1 + part * 1e-9))
        bound = half_normal_quantile(1, delta)
        assert mpmath.erfc(mpmath.mpf(bound) / mpmath.sqrt(2)) <= delta
        # Nothing beyond the next cell: δ is short by the cut, a ten-thousandth of it.
        assert bound <= (steps + 1.01) / 512


def tail(c: mpmath.mpf) -> mpmath.mpf:
    """P(|g₁| + |g₂| > c): outside a square on its corner, which is a square turned by 45°."""
    side = mpmath.erf(c / 2)  # |g₁ ± g₂| ≤ c, each N(0, 2), independent
    return 1 - side**2


@pytest.mark.parametrize("delta", DELTAS)
def test_two_numbers_in_high_precision(delta: float) -> None:
    with mpmath.workdps(40):
        bound = mpmath.mpf(half_normal_quantile(2, delta))
        assert tail(bound) <= delta
        assert tail(bound * (1 - mpmath.mpf("0.004"))) > delta


@pytest.mark.parametrize("k", [3, 10, 20, 60])
def test_many_numbers_by_counting(k: int) -> None:
    """False-alarm rate 1e-6: hits are binomial, their number bounded by 5 standard deviations."""
    count = 200_000
    sums = np.zeros(count)
    generator = simulation.generator(k)
    for _ in range(k):
        sums += np.abs(generator.standard_normal(count))
    for delta in (0.1, 1e-2, 1e-3):
        bound = half_normal_quantile(k, delta)
        hits = np.count_nonzero(sums > bound)
        assert hits <= count * delta + 5 * math.sqrt(count * delta)
        lower = np.count_nonzero(sums > bound * 0.985)
        assert lower > count * delta - 5 * math.sqrt(count * delta)


@pytest.mark.parametrize("k", [1, 3, 20])
@pytest.mark.parametrize("delta", DELTAS)
def test_both_bounds_agree_on_the_order(k: int, delta: float) -> None:
    convolved, chernoff = _by_convolution(k, delta), _by_exponentials(k, delta)
    assert convolved <= chernoff <= 2.5 * convolved


def test_a_thousand_numbers_are_left_to_the_exponential_bound() -> None:
    assert _by_convolution(1000, 1e-6) == math.inf
    mean, spread = 1000 * math.sqrt(2 / math.pi), math.sqrt(1000 * (1 - 2 / math.pi))
    exact = mean + 4.75 * spread  # by the central limit theorem, to a few parts in 1000
    assert exact * 0.995 < half_normal_quantile(1000, 1e-6) < exact * 1.03


@pytest.mark.parametrize(("k", "delta"), [(0, 0.1), (1, 0.0), (1, 1.0), (2.5, 0.1)])
def test_arguments_are_checked(k: object, delta: object) -> None:
    with pytest.raises((TypeError, ValueError), match="half_normal_quantile"):
        half_normal_quantile(k, delta)  # type: ignore[arg-type]
