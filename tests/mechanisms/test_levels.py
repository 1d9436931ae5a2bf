"""The threshold of suggested levels: its δ by formulas of its own, and by counting releases."""

from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from dplinear.mechanisms.levels import VARIANCE, LevelCounts, Levels
from dplinear.noise import simulation
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.neighbours import Neighbours

CASES = [
    (1, 1, 1.0, 1e-6),
    (3, 1, 1.0, 1e-6),
    (3, 4, 0.2, 1e-9),
    (50, 10, 3.0, 1e-5),
    (1, 2, 8.0, 1e-3),
    (2, 3, 0.5, 0.3),
]


def normal_tail(x: Any) -> Any:
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def gaussian_delta(epsilon: Any, mu: Any) -> Any:
    """Return δ(ε) of normal noise at distance μ, by the formula of Balle and Wang 2018."""
    if mu == 0:
        return mpmath.mpf(0) if epsilon >= 0 else 1 - mpmath.exp(epsilon)
    first = normal_tail(epsilon / mu - mu / 2)
    return first - mpmath.exp(epsilon) * normal_tail(epsilon / mu + mu / 2)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_delta_counts_every_level_that_one_unit_alone_holds(case: Any, relation: str) -> None:
    """The worst over how many of a unit's levels nobody else holds, in both directions."""
    columns, own, epsilon, delta = case
    prepared = method(epsilon, delta, relation).prepare(columns, own)
    mpmath.mp.dps = 40
    most = columns * own
    sigma = mpmath.sqrt(VARIANCE.numerator) / prepared.step
    # One step of the grid is 2^-30 deviations: the tail from the next lower one is above all sums.
    passed = normal_tail((mpmath.mpf(prepared.threshold - 1) / prepared.step - 1) / sigma)
    worst = mpmath.mpf(0)
    numbers = sorted({0, 1, 2, 3, most // 2, most - 1, most} & set(range(most + 1)))
    for gone in numbers if relation == "replace" else [0]:
        before = (1 - passed) ** gone  # nothing that only the first table's unit holds is released
        for new in numbers:
            after = (1 - passed) ** new
            moved = (2 * most if relation == "replace" else most) - new - gone
            mu = mpmath.sqrt(moved) / sigma
            shift = mpmath.log(before / after)
            worst = max(worst, 1 - after + after * gaussian_delta(epsilon + shift, mu))
            worst = max(worst, 1 - before + before * gaussian_delta(epsilon - shift, mu))
    assert worst <= delta
    assert worst >= 0.4 * delta  # half of δ is the threshold's, and half the noise's


def method(epsilon: float, delta: float, relation: str = "add_remove") -> Levels:
    return Levels(guarantee=ApproxDP(epsilon, delta), neighbours=Neighbours(relation))


class Table:
    """Levels of one column, all with the same count."""

    def __init__(self, count: int, levels: int) -> None:
        self.count, self.levels = count, levels

    def buckets(self) -> Iterator[LevelCounts]:
        names = [f"level {index}" for index in range(self.levels)]
        zeros = np.zeros(self.levels, np.int64)
        yield LevelCounts(zeros, names, zeros + self.count)


def test_a_level_of_one_unit_is_released_as_seldom_as_is_declared() -> None:
    """False alarms: 1e-6, by the binomial distribution of 200,000 levels at the declared bound."""
    levels, failure = 200_000, 0.05
    prepared = method(1.0, 2 * failure).prepare(1, 2)
    found = prepared.run(Table(1, levels), simulation.entropy(7)).found
    declared = failure / (1 + failure) / 2
    assert len(found) <= binom.isf(1e-6, levels, declared)
    assert len(found) >= binom.ppf(1e-6, levels, 0.7 * declared)  # and the bound is no waste


def test_noisy_counts_have_the_declared_noise() -> None:
    """Mean and variance of 20,000 counts, far above the threshold; false alarms below 1e-6."""
    prepared = method(1.0, 1e-6).prepare(3, 1)
    made = prepared.run(Table(1000, 20_000), simulation.entropy(3))
    counts = np.array([count for *_, count in made.found])
    sigma = made.parameters["sigma"]
    assert len(counts) == 20_000
    assert abs(counts.mean() - 1000) < 5 * sigma / np.sqrt(20_000)
    assert abs(counts.var() / sigma**2 - 1) < 5 * np.sqrt(2 / 20_000)


def test_counts_of_any_size_are_exact() -> None:
    prepared = method(1.0, 1e-6).prepare(1, 1)
    huge = 2**50
    made = prepared.run(Table(huge, 3), simulation.entropy(3))
    assert all(abs(count - huge) < 1000 for *_, count in made.found)
    assert len(made.found) == 3


def test_the_profile_is_that_of_the_certificate() -> None:
    for columns, own, epsilon, delta in CASES:
        account = method(epsilon, delta).prepare(columns, own).account
        assert account.profile is not None
        assert account.profile.delta(epsilon) <= delta
        assert account.profile.delta(1e3) >= delta / 2  # the threshold's part never goes away
