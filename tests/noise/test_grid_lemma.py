"""The lemma of docs/noise.md, "Grid and continuous Gaussian", in high-precision arithmetic."""

from itertools import pairwise

import mpmath
import pytest

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

CONSTANT = 0.0203
SMALLEST_SIGMA = 11


def normal_density(z: mpmath.mpf) -> mpmath.mpf:
    return mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)


def laws(sigma: mpmath.mpf) -> tuple[list[mpmath.mpf], list[mpmath.mpf]]:
    """Return the masses at y = 0, 1, ... of the discrete and of the rounded Gaussian."""
    top = int(13 * sigma) + 6
    masses = [mpmath.exp(-(y**2) / (2 * sigma**2)) for y in range(top)]
    total = 2 * mpmath.fsum(masses) - 1
    tails = [
        mpmath.erfc((y - mpmath.mpf(1) / 2) / (sigma * mpmath.sqrt(2))) / 2 for y in range(top + 1)
    ]
    return [mass / total for mass in masses], [a - b for a, b in pairwise(tails)]


def total_variation(sigma: mpmath.mpf) -> mpmath.mpf:
    grid, rounded = laws(sigma)
    gaps = [abs(a - b) for a, b in zip(grid, rounded, strict=True)]
    return mpmath.fsum(gaps) - gaps[0] / 2


def lemma_bound(sigma: mpmath.mpf) -> mpmath.mpf:
    excess = mpmath.nsum(lambda j: mpmath.exp(-2 * (mpmath.pi * sigma * j) ** 2), [1, 50])
    return normal_density(mpmath.mpf(1)) / 12 / sigma**2 + mpmath.mpf("0.016") / sigma**4 + excess


@pytest.mark.parametrize("sigma", [11, 11.01, 11.3, 11.5, 12, 13.7, 17, 23.456, 31, 40, 64, 100])
def test_the_distance_of_grid_and_rounded_gaussian_is_below_its_bound(sigma: float) -> None:
    assert total_variation(mpmath.mpf(sigma)) <= CONSTANT / mpmath.mpf(sigma) ** 2


def test_the_general_bound_holds_for_small_sigma_too() -> None:
    for step in range(3, 60):
        sigma = mpmath.mpf(step) / 10
        assert total_variation(sigma) <= lemma_bound(sigma)


def test_the_bound_reaches_its_constant_at_the_smallest_sigma() -> None:
    sigma = mpmath.mpf(SMALLEST_SIGMA)
    assert lemma_bound(sigma) <= CONSTANT / sigma**2
    assert lemma_bound(sigma - 1) > CONSTANT / (sigma - 1) ** 2


def test_the_leading_constant_is_sharp() -> None:
    sharp = normal_density(mpmath.mpf(1)) / 12
    with mpmath.workdps(30):
        assert abs(total_variation(mpmath.mpf(200)) * 200**2 - sharp) < 1e-4 * sharp


def test_the_constants_of_the_proof() -> None:
    mean = mpmath.quad(
        lambda z: abs(z**4 - 6 * z**2 + 3) * normal_density(z),
        [0, mpmath.sqrt(3 - mpmath.sqrt(6)), mpmath.sqrt(3 + mpmath.sqrt(6)), 20],
    )
    assert 2 * mean / 256 + normal_density(mpmath.mpf(1)) / 48 < 0.016
    spread = mpmath.quad(lambda z: abs(z**2 - 1) * normal_density(z), [0, 1, 20])
    assert abs(2 * spread / 48 - normal_density(mpmath.mpf(1)) / 12) < 1e-12


@pytest.mark.parametrize("sigma", [11, 15.5, 40])
@pytest.mark.parametrize("shift", [1, 4, 30])
def test_the_grid_profile_is_below_the_continuous_one_and_its_correction(
    sigma: float, shift: int
) -> None:
    sigma = mpmath.mpf(sigma)
    grid, _ = laws(sigma)
    top = len(grid) - 1

    def mass(y: int) -> mpmath.mpf:
        return grid[abs(y)] if abs(y) <= top else mpmath.mpf(0)

    mu = shift / sigma
    for epsilon in (0.0, 0.1, 1.0, 3.0):
        tilt = mpmath.exp(epsilon)
        gaps = (mass(y - shift) - tilt * mass(y) for y in range(-top, top + shift + 1))
        delta = mpmath.fsum(max(gap, mpmath.mpf(0)) for gap in gaps)
        continuous = mpmath.ncdf(mu / 2 - epsilon / mu) - tilt * mpmath.ncdf(-mu / 2 - epsilon / mu)
        assert delta <= continuous + (1 + tilt) * CONSTANT / sigma**2


@pytest.mark.parametrize("sigma", [0.3, 1, 4.5])
@pytest.mark.parametrize("order", [1.5, 2, 7.3])
def test_the_renyi_divergence_needs_no_correction(sigma: float, order: float) -> None:
    for shift in (1, 2, 5):

        def power(y: int, shift: int = shift) -> mpmath.mpf:
            exponent = order * (y - shift) ** 2 + (1 - order) * y**2
            return mpmath.exp(-exponent / (2 * mpmath.mpf(sigma) ** 2))

        reach = int(shift * order + 14 * sigma) + 5
        total = mpmath.fsum(
            mpmath.exp(-(y**2) / (2 * mpmath.mpf(sigma) ** 2)) for y in range(-reach, reach + 1)
        )
        moment = mpmath.fsum(power(y) for y in range(-reach, reach + 1)) / total
        divergence = mpmath.log(moment) / (order - 1)
        assert divergence <= order * shift**2 / (2 * mpmath.mpf(sigma) ** 2) * (
            1 + mpmath.mpf(10) ** -12
        )
