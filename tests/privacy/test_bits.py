"""Bits through noise: the formula on the private side, and no prior that gets more through."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dplinear.noise.simulation import generator
from dplinear.privacy.bits import grid_bits_through, grid_variance_for, variance_for
from refusals import refused

_BITS = st.floats(1e-9, 20)


@given(_BITS, st.floats(1e-3, 1e6), st.integers(1, 30))
def test_noise_lets_no_more_through_than_asked(bits: float, spread: float, freedom: int) -> None:
    variance = variance_for(bits, spread=spread, freedom=freedom)
    with mpmath.workdps(60):
        ratio = mpmath.mpf(spread) / (freedom * mpmath.mpf(variance))
        through = mpmath.mpf(freedom) / 2 * mpmath.log(1 + ratio, 2)
        assert through <= mpmath.mpf(bits)
        assert through >= mpmath.mpf(bits) * (1 - 1e-12)


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
    with refused("bits", "variance_for"):
        variance_for(bits)


def _entropy(masses: np.ndarray) -> float:
    kept = masses[masses > 0]
    return float(-(kept * np.log2(kept)).sum())


def _grid_information(points: np.ndarray, prior: np.ndarray, variance: float) -> float:
    """Return I(point; point + discrete Gaussian noise) in bits for integer points on a line."""
    reach = math.ceil(12 * math.sqrt(variance))
    support = np.arange(-reach, reach + 1)
    noise = np.exp(-(support**2) / (2 * variance))
    noise /= noise.sum()
    mixed = np.zeros(2 * reach + 1 + int(points.max() - points.min()))
    for point, chance in zip(points - points.min(), prior, strict=True):
        mixed[point : point + len(noise)] += chance * noise
    return _entropy(mixed) - _entropy(noise)


@pytest.mark.parametrize("variance", [1.0, 3.0, 40.0, 1000.0])
@pytest.mark.parametrize("reach", [1, 8, 60])
def test_grid_noise_lets_no_more_through_than_is_said(variance: float, reach: int) -> None:
    drawn = generator(5)
    said = grid_bits_through(variance, spread=float(reach**2))
    ends = _grid_information(np.array([-reach, reach]), np.array([0.5, 0.5]), variance)
    assert ends <= said
    for _ in range(10):
        points = np.array([-reach, *drawn.integers(-reach, reach + 1, 3), reach])
        assert _grid_information(points, drawn.dirichlet(np.full(5, 0.5)), variance) <= said
    if reach**2 < variance and variance > 10:  # where a continuous cell is close to its bound
        assert ends > 0.9 * said - 0.1 / variance


@given(st.floats(1.0, 1e9), st.floats(1e-3, 1e6), st.integers(1, 5), st.integers(0, 5))
def test_grid_bits_are_the_formula_rounded_up(
    variance: float, spread: float, freedom: int, more: int
) -> None:
    places = freedom + more
    found = grid_bits_through(variance, spread=spread, freedom=freedom, places=places)
    with mpmath.workdps(60):
        v = mpmath.mpf(variance)
        step, ratio = 1 / (12 * v), mpmath.mpf(spread) / (freedom * v)
        nats = (freedom * mpmath.log(1 + step + ratio) + more * mpmath.log(1 + step)) / 2
        x = 2 * mpmath.pi**2 * v
        exact = (nats + places * 2.02 * x * mpmath.exp(-x)) / mpmath.log(2)
        assert exact <= found <= exact * (1 + 1e-13)


@given(st.floats(1e-6, 8), st.floats(1e-3, 1e6), st.integers(1, 5), st.integers(0, 5))
def test_grid_variance_is_the_least_for_its_bits(
    bits: float, spread: float, freedom: int, more: int
) -> None:
    sizes = {"spread": spread, "freedom": freedom, "places": freedom + more}
    variance = grid_variance_for(bits, **sizes)  # type: ignore[arg-type]
    assert variance >= 1
    assert grid_bits_through(variance, **sizes) <= bits  # type: ignore[arg-type]
    if variance > 1:
        less = max(1.0, variance * (1 - 1e-9))
        assert grid_bits_through(less, **sizes) > bits  # type: ignore[arg-type]


def test_less_noise_than_a_unit_of_the_grid_is_refused() -> None:
    assert grid_variance_for(30.0, spread=1.0) == 1
    one = grid_bits_through(3.0, spread=2.0, freedom=1, places=1)
    assert grid_bits_through(3.0, spread=2.0) == one
    assert grid_bits_through(grid_variance_for(one, spread=2.0), spread=2.0) <= one
    with refused("variance", "grid_bits_through"):
        grid_bits_through(0.999, spread=1.0)
    with refused("bits", "grid_variance_for"):
        grid_variance_for(0.0, spread=1.0)
    for bad in (-1.0, 0.0):
        with refused("spread", "grid_bits_through"):
            grid_bits_through(2.0, spread=bad)
        with refused("spread", "variance_for"):
            variance_for(1.0, spread=bad)
