"""The benchmark of CoinPress, on a few of its tables."""

import numpy as np
import pytest

from benchmarks.coinpress import distance, errors, population

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize("condition", [1.0, 1e3])
def test_privacy_costs_less_than_sampling_from_absurd_bounds(condition: float) -> None:
    """Fixed seeds, so no false alarms: on four thousand rows, within ±1e9, at ρ = 0.5."""
    mean, sampled, covariance, sample = errors(5, 4000, condition, seed=3)
    assert mean < sampled
    assert covariance < sample / 2


def test_more_rows_cost_less_and_more_columns_more() -> None:
    few, many, wide = (errors(*size, 10.0, seed=4)[2] for size in ((3, 500), (3, 5000), (12, 5000)))
    assert many < few / 4
    assert many < wide


def test_distances_do_not_depend_on_coordinates() -> None:
    root, middle = population(4, 1e4, seed=5)
    truth = root @ root.T
    assert distance(truth, truth) == pytest.approx(0, abs=1e-8)
    assert distance(1.1 * truth, truth) == pytest.approx(0.2)
    np.testing.assert_allclose(middle, 3 * np.sqrt(np.diag(truth)))
