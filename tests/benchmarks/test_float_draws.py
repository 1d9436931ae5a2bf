"""Float draws that exact ones are compared with: they have the laws that they are named after."""

import numpy as np
import pytest
from scipy import stats

from benchmarks import float_draws
from dplinear.noise import simulation

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

FALSE_ALARM = 1e-6 / 10  # fewer than 10 comparisons
SCALE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])
FACTOR = np.linalg.cholesky(SCALE)
DIRECTION = np.array([0.3, -1.0, 2.0])


@pytest.mark.parametrize("degrees", [3, 40.5])
def test_quadratic_forms_are_chi_squares(degrees: float) -> None:
    turned = FACTOR @ np.linalg.qr(simulation.generator(1).standard_normal((3, 3)))[0]
    for factor in (FACTOR, turned):
        draws = np.array([float_draws.wishart(factor, degrees) for _ in range(3000)])
        forms = np.einsum("i,nij,j->n", DIRECTION, draws, DIRECTION)
        law = stats.chi2(degrees, scale=DIRECTION @ SCALE @ DIRECTION)
        assert stats.kstest(forms, law.cdf).pvalue > FALSE_ALARM
    draws = np.array([float_draws.inverse_wishart(FACTOR, degrees) for _ in range(3000)])
    forms = np.einsum("i,nij,j->n", DIRECTION, np.linalg.inv(draws), DIRECTION)
    law = stats.chi2(degrees, scale=DIRECTION @ np.linalg.inv(SCALE) @ DIRECTION)
    assert stats.kstest(forms, law.cdf).pvalue > FALSE_ALARM


def test_determinants_are_products_of_chi_squares() -> None:
    generator = simulation.generator(2)
    expected = np.prod(generator.chisquare([6, 5, 4], (4000, 3)), axis=1)
    draws = np.array([float_draws.wishart(np.eye(3), 6) for _ in range(4000)])
    assert stats.ks_2samp(np.linalg.det(draws), expected).pvalue > FALSE_ALARM


def test_draws_are_symmetric_and_follow_their_entropy() -> None:
    for draw in (float_draws.wishart, float_draws.inverse_wishart):
        one, same, other = (draw(FACTOR, 9, entropy=simulation.entropy(s)) for s in (5, 5, 6))
        assert np.array_equal(one, one.T)
        assert np.array_equal(one, same)
        assert not np.array_equal(one, other)
