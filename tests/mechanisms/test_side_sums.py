"""Sums that are released beside second moments, as further coordinates of the same noise."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.exact.design import Design
from dplinear.exact.grid import plain_shape
from dplinear.exact.shape import Statistic
from dplinear.mechanisms import AnalyzeGauss
from dplinear.mechanisms.adassp import AdaSSP
from dplinear.mechanisms.moments.analyze_gauss import Difference
from dplinear.noise import simulation
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours

NAMES = ("rows_left_out", "squared_weights")
SHAPE = plain_shape(4)


def gauss(neighbours: str = "add_remove", epsilon: float = 1.0) -> AnalyzeGauss:
    return AnalyzeGauss(
        guarantee=ApproxDP(epsilon, 1e-6), neighbours=Neighbours.parse(neighbours, "test")
    )


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("count", [1, 2])
def test_the_noise_is_for_the_matrix_and_all_sums_together(
    neighbours: str, epsilon: float, count: int
) -> None:
    method = gauss(neighbours, epsilon)
    ready = method.prepare_with(SHAPE, NAMES[:count])
    alone = Difference.of(SHAPE, ready.step, method.neighbours, ready.weight)
    moved = Fraction(alone.norm) ** 2 + count * (ready.side_scale + 1) ** 2
    profile: Any = ready.account.profile
    assert Fraction(profile.mu) ** 2 >= moved / Fraction(ready.variance)
    assert profile.keeps(method.guarantee)
    plain = method.prepare(SHAPE)
    wider = ready.variance * 4.0**ready.step / (plain.variance * 4.0**plain.step)
    assert 1 <= wider < 1.006


def test_the_sums_have_the_noise_that_is_told() -> None:
    """Five deviations of the mean and of the variance: a false alarm in 400,000 runs of the two."""
    ready, entropy = gauss().prepare_with(SHAPE, NAMES), simulation.entropy(3)
    whole = np.zeros((4, 4), object)
    exact = Statistic(SHAPE, whole, side=(Fraction(10**6), Fraction(10**6, 3)))
    runs = [ready.run(exact, entropy).parameters for _ in range(400)]
    for name, value in zip(NAMES, exact.side, strict=True):
        errors = np.array([said[name] - float(value) for said in runs]) / runs[0][f"{name}_noise"]
        assert abs(errors.mean()) < 5 / math.sqrt(len(runs))
        assert abs(np.square(errors).mean() - 1) < 5 * math.sqrt(2 / len(runs))


def test_without_further_sums_nothing_changes() -> None:
    exact = Statistic(SHAPE, np.eye(4, dtype=int).astype(object) * SHAPE.unit)
    one, other = (
        ready.run(exact, simulation.entropy(5))
        for ready in (gauss().prepare(SHAPE), gauss().prepare_with(SHAPE, ()))
    )
    assert (one.values == other.values).all()
    assert dict(one.parameters) == dict(other.parameters)


@pytest.mark.parametrize("neighbours", list(map(Neighbours, ("add_remove", "replace"))))
def test_adassp_pays_for_the_number_of_rows_left_out(neighbours: Neighbours) -> None:
    square = SHAPE.steps_per_unit**2
    facts: dict[str, Any] = {"intercept": False, "indicators": (False,) * 3}
    designs = [
        Design(SHAPE, (0, 1, 2), 3, 3 * square, square, leaves_out=leaves, **facts)
        for leaves in (False, True)
    ]
    method = AdaSSP(guarantee=ApproxDP(1.0, 1e-6), neighbours=neighbours)
    without, ready = (method.prepare(design) for design in designs)
    apart, variances = ready.distance, ready.variances
    moved = without.distance.squared_distance(variances)
    assert apart.squared_distance(variances) == moved + Fraction(
        (apart.left_scale + 1) ** 2
    ) / Fraction(variances.cross)
    profile: Any = ready.account.profile
    assert Fraction(profile.mu) ** 2 >= apart.squared_distance(variances)
    assert 1 <= float(variances.cross / without.variances.cross) < 1.01
