"""The filter, against what is known of normal distributions, and against its own linearity."""

from typing import Any

import numpy as np
import pytest

from dplinear.adaptive.filter import KalmanFilter
from dplinear.noise import simulation

PRIOR = np.array([4.0, 1.0, 0.25])
MINIMUM = np.array([1.5, -2.0, 0.5])
STEPS = [(np.array([1.0, 0.5, 2.0]), 0.7), (np.array([0.9, 0.6, 1.5]), 0.3), (np.ones(3), 0.1)]
STEEPEST = 1e-9  # so flat that no step is shortened


def run(noise: Any = (0.0, 0.0, 0.0), steepest: float = STEEPEST) -> KalmanFilter:
    """Gradients of quadratic losses with one minimum, each with its curvature and noise."""
    state = KalmanFilter.start(PRIOR)
    for (curvature, sigma), error in zip(STEPS, noise, strict=True):
        gradient = curvature * (MINIMUM - state.theta) + sigma * error
        gain = state.gain(curvature, sigma, steepest)
        state = state.update(gradient, curvature, sigma, gain)
    return state


def test_the_iterate_is_the_posterior_mean_of_normal_distributions() -> None:
    """All at once: measurements of the minimum itself, weighed by their precisions."""
    noise = simulation.generator(1).normal(size=(3, 3))
    state, precision, weighted = run(noise), 1 / PRIOR, np.zeros(3)
    for (curvature, sigma), error in zip(STEPS, noise, strict=True):
        precision = precision + (curvature / sigma) ** 2
        weighted = weighted + (curvature / sigma) ** 2 * (MINIMUM + sigma * error / curvature)
    assert state.variance == pytest.approx(1 / precision, rel=1e-12)
    assert state.theta == pytest.approx(weighted / precision, rel=1e-12)


@pytest.mark.parametrize("steepest", [STEEPEST, 3.0])
def test_the_iterate_is_what_is_reached_of_the_minimum_and_noise(steepest: float) -> None:
    """The iterate is linear in the minimum and in each gradient's noise."""
    quiet = run(steepest=steepest)
    assert quiet.theta == pytest.approx(quiet.reached * MINIMUM, rel=1e-12)
    parts = [run(noise, steepest).theta - quiet.theta for noise in np.eye(3)]
    assert quiet.noise == pytest.approx(sum(part**2 for part in parts), rel=1e-12)


def test_no_step_is_longer_than_the_steepest_curvature_allows() -> None:
    state = KalmanFilter.start(PRIOR)
    assert state.gain(np.ones(3), 1e-9, 2.0) == pytest.approx(np.full(3, 0.5), rel=1e-12)
    steepest = np.array([1.0, 4.0, 1e-9])
    gain = state.gain(np.ones(3), 0.5, steepest)
    assert gain == pytest.approx([4 / 4.25, 1 / 4, 0.25 / 0.5], rel=1e-12)


def test_variance_is_inflated_up_to_a_bound() -> None:
    state = KalmanFilter.start(PRIOR).inflate(1.0)
    assert state.variance.tolist() == [5.0, 2.0, 1.25]
    assert state.inflate(np.ones(3), most=PRIOR).variance.tolist() == PRIOR.tolist()


def test_another_minimum_is_sought_from_the_same_iterate() -> None:
    state = run(np.ones(3))
    again = state.restart(2 * PRIOR)
    assert (again.theta is state.theta, again.noise is state.noise) == (True, True)
    assert (again.variance.tolist(), again.reached.tolist()) == ((2 * PRIOR).tolist(), [0.0] * 3)
