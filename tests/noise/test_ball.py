"""Normal laws cut off at a ball: against truncated laws in closed form and by quadrature."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dplinear.arrays import Floats
from dplinear.noise import ball, simulation
from dplinear.noise.wishart import standard_normal

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

FALSE_ALARM = 1e-6
DRAWS = 500


def draws(curvatures: list[float], slopes: list[float], radius: float, seed: int) -> Floats:
    entropy = simulation.entropy(seed)
    numbers = np.array(curvatures), np.array(slopes)
    return np.array(
        [ball.truncated_normal(*numbers, radius, entropy=entropy) for _ in range(DRAWS)]
    )


@pytest.mark.parametrize(
    ("curvature", "slope"), [(0.4, 0.1), (2.0, 6.0), (0.0, 3.0), (50.0, -10.0)]
)
def test_in_one_dimension_it_is_the_truncated_law(curvature: float, slope: float) -> None:
    radius = 1.5
    drawn = draws([curvature], [slope], radius, 21)[:, 0]
    axis = np.linspace(-radius, radius, 200_001)
    exponent = -(curvature * axis**2 - 2 * slope * axis)
    mass = np.cumsum(np.exp(exponent - exponent.max()))
    assert np.abs(drawn).max() <= radius
    found = stats.kstest(drawn, partial(np.interp, xp=axis, fp=mass / mass[-1]))
    assert found.pvalue > FALSE_ALARM


@pytest.mark.parametrize("curvature", [0.0, 1.0, 40.0])
def test_lengths_of_an_even_law_are_right_in_many_dimensions(curvature: float) -> None:
    """Then ‖u‖² is a gamma number below radius², or a power of a uniform one."""
    dimension, radius = 30, 0.8
    lengths = np.linalg.norm(draws([curvature] * dimension, [0.0] * dimension, radius, 22), axis=1)
    if curvature:
        squares = stats.gamma(dimension / 2, scale=1 / curvature)
        part = squares.cdf(lengths**2) / squares.cdf(radius**2)
    else:
        part = (lengths / radius) ** dimension
    assert stats.kstest(part, "uniform").pvalue > FALSE_ALARM


def test_an_uneven_law_off_centre_is_right() -> None:
    radius, curvatures, slopes = 1.0, np.array([6.0, 0.5]), np.array([4.0, 2.0])
    drawn = draws(list(curvatures), list(slopes), radius, 23)
    axis = np.linspace(-radius, radius, 1501)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    exponent = 2 * (slopes[0] * x + slopes[1] * y) - curvatures[0] * x**2 - curvatures[1] * y**2
    density = np.where(x**2 + y**2 <= radius**2, np.exp(exponent - 6), 0.0)
    for coordinate in (0, 1):
        mass = np.cumsum(density.sum(axis=1 - coordinate))
        law = mass / mass[-1]
        found = stats.kstest(drawn[:, coordinate], partial(np.interp, xp=axis, fp=law))
        assert found.pvalue > FALSE_ALARM


def test_tries_are_few_even_where_the_law_without_the_ball_is_far_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred dimensions, the middle at a hundred radii: a plain rejection would never end."""
    batches = []

    def counted(size: tuple[int, int], **keywords: Any) -> Floats:
        batches.append(size[0])
        return standard_normal(size, **keywords)

    monkeypatch.setattr(ball, "standard_normal", counted)
    curvatures, slopes = np.geomspace(1e-3, 1e3, 100), np.full(100, 1e4)
    entropy = simulation.entropy(24)
    for _ in range(20):
        assert np.linalg.norm(ball.truncated_normal(curvatures, slopes, 1.0, entropy=entropy)) <= 1
    assert sum(batches) <= 20 * 64 * 20
    assert math.isfinite(ball._tilt(curvatures, slopes, 1.0))


@pytest.mark.parametrize("radius", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("reach", [0.1, 3.0, 1e4])
def test_proposals_are_as_long_as_the_ball_is_wide_or_shorter(radius: float, reach: float) -> None:
    """The tilt that is promised: E‖u‖² = radius², or 0 where it is less without any."""
    rng = simulation.generator(25)
    for curvatures in (rng.uniform(0.0, 2.0, 6), np.zeros(6), np.full(1, 1e-3)):
        slopes = reach * rng.standard_normal(len(curvatures))

        def length(tilt: float, c: Floats = curvatures, s: Floats = slopes) -> float:
            return float((0.5 / (c + tilt) + (s / (c + tilt)) ** 2).sum())

        tilt = ball._tilt(curvatures, slopes, radius)
        if tilt == 0:
            assert length(0.0) <= radius**2
        else:
            assert length(tilt) == pytest.approx(radius**2, rel=1e-4)
    wide = ball._tilt(np.array([40.0, 90.0]), np.array([1.0, 2.0]), 50.0)
    assert wide == 0
