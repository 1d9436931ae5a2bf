import numpy as np
import pytest
from scipy import stats

from dplinear.noise import simulation
from dplinear.noise.integers import uniform_below
from refusals import refused


@pytest.mark.parametrize("total", [1, 2, 7, 8])
def test_every_integer_is_as_likely(total: int) -> None:
    entropy = simulation.entropy(1)
    drawn = [uniform_below(total, entropy) for _ in range(4000)]
    counts = np.bincount(drawn, minlength=total)
    assert len(counts) == total
    assert total == 1 or stats.chisquare(counts).pvalue > 1e-6 / 4  # the false-alarm rate of all


def test_large_integers_are_drawn_and_none_below_nothing() -> None:
    entropy = simulation.entropy(2)
    drawn = [uniform_below(10**30, entropy) for _ in range(200)]
    assert 0 <= min(drawn) < 2 * 10**29 < 8 * 10**29 < max(drawn) < 10**30
    with refused("total", "uniform_below"):
        uniform_below(0, entropy)
