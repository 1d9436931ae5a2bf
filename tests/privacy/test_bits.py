"""Bits through noise: the formula on the private side, and no prior that gets more through."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplinear.noise.simulation import generator
from dplinear.privacy.bits import bits_through, variance_for

_BITS = st.floats(1e-9, 20)


@given(_BITS, st.floats(1e-3, 1e6), st.integers(1, 30))
def test_noise_lets_no_more_through_than_asked(bits: float, spread: float, freedom: int) -> None:
    variance = variance_for(bits, spread=spread, freedom=freedom)
    with mpmath.workdps(60):
        ratio = mpmath.mpf(spread) / (freedom * mpmath.mpf(variance))
        through = mpmath.mpf(freedom) / 2 * mpmath.log(1 + ratio, 2)
        assert through <= mpmath.mpf(bits)
        assert through >= mpmath.mpf(bits) * (1 - 1e-12)
        assert bits_through(variance, spread=spread, freedom=freedom) >= through


def test_a_cell_of_unit_range_needs_the_published_noise() -> None:
    assert variance_for(0.5) == pytest.approx(1.0, rel=1e-12)
    assert variance_for(0.2) == pytest.approx(1 / (2**0.4 - 1), rel=1e-12)


def _information(points: np.ndarray, prior: np.ndarray, sigma: float) -> float:
    """Return I(point; point + noise) in bits for points on a line, by quadrature."""
    grid = np.linspace(points.min() - 10 * sigma, points.max() + 10 * sigma, 20_001)
    density = np.exp(-((grid - points[:, None]) ** 2) / (2 * sigma**2))
    density /= sigma * math.sqrt(2 * math.pi)
    mixed = prior @ density
    safe = np.where(density > 0, density, 1.0)
    loss = density * (np.log2(safe) - np.log2(np.where(mixed > 0, mixed, 1.0)))
    return float(prior @ loss.sum(axis=1) * (grid[1] - grid[0]))


@pytest.mark.parametrize("bits", [0.05, 0.5, 1.5])
def test_no_prior_on_the_range_says_more(bits: float) -> None:
    sigma = math.sqrt(variance_for(bits))
    drawn = generator(11)
    best = 0.0
    for _ in range(30):
        count = int(drawn.integers(2, 6))
        points = np.concatenate([[-1.0, 1.0], drawn.uniform(-1, 1, count - 2)])
        prior = drawn.dirichlet(np.full(count, 0.5))
        best = max(best, _information(points, prior, sigma))
    best = max(best, _information(np.array([-1.0, 1.0]), np.array([0.5, 0.5]), sigma))
    assert best <= bits
    if bits < 1:  # two points come close; for more bits no law on a bounded range does
        assert best > 0.95 * bits


@pytest.mark.parametrize("bits", [0, -1, 65, math.nan])
def test_bits_that_mean_nothing_are_refused(bits: float) -> None:
    with pytest.raises(ValueError, match="bits"):
        variance_for(bits)
