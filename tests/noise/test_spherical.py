"""Noise of density ∝ exp(−‖b‖/scale): lengths and directions."""

import numpy as np
import pytest
from scipy import stats

from dplinear.noise import simulation
from dplinear.noise.spherical import spherical_laplace

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

FALSE_ALARM = 1e-6
DRAWS = 1500


@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_lengths_are_gamma_and_directions_uniform(dimension: int) -> None:
    """A squared coordinate of a uniform direction is Beta(1/2, (m − 1)/2)."""
    entropy = simulation.entropy(11)
    drawn = np.array([spherical_laplace(0.3, dimension, entropy=entropy) for _ in range(DRAWS)])
    lengths = np.linalg.norm(drawn, axis=1)
    gamma = stats.gamma(dimension, scale=0.3)
    assert stats.kstest(lengths, gamma.cdf).pvalue > FALSE_ALARM
    assert stats.binomtest(int((drawn[:, 0] > 0).sum()), DRAWS).pvalue > FALSE_ALARM
    if dimension > 1:
        squares = (drawn[:, 0] / lengths) ** 2
        beta = stats.beta(0.5, (dimension - 1) / 2)
        assert stats.kstest(squares, beta.cdf).pvalue > FALSE_ALARM


def test_in_one_dimension_it_is_laplace_noise() -> None:
    entropy = simulation.entropy(12)
    drawn = [float(spherical_laplace(2.0, 1, entropy=entropy)[0]) for _ in range(DRAWS)]
    assert stats.kstest(drawn, stats.laplace(scale=2.0).cdf).pvalue > FALSE_ALARM


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="scale"):
        spherical_laplace(0.0, 3)
    with pytest.raises(ValueError, match="dimension"):
        spherical_laplace(1.0, 0)
