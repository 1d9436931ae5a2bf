"""Bounds from counts: exact coverage by enumeration, and textbook oracles.

Coverage is summed over all outcomes of small experiments, not simulated, so nothing here fails by
chance.
"""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from dplinear.audit.bounds import (
    Counts,
    Event,
    best_event,
    bits_bound,
    epsilon_bound,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    mu_bound,
)
from dplinear.noise import simulation

TRIALS = 30
CHANCES = [(0.9, 0.05), (0.5, 0.3), (0.35, 0.3), (1.0, 0.6), (0.2, 0.01)]


def tail(hits: int, trials: int, p: float) -> Any:
    """P(X ≥ hits), summed."""
    with mpmath.workdps(40):
        exact = mpmath.mpf(p)
        terms = (
            mpmath.binomial(trials, k) * exact**k * (1 - exact) ** (trials - k)
            for k in range(hits, trials + 1)
        )
        return mpmath.fsum(terms)


@pytest.mark.parametrize("hits", [1, 7, 30])
@pytest.mark.parametrize("alarm", [0.05, 1e-6])
def test_the_ends_are_where_the_count_becomes_a_surprise(hits: int, alarm: float) -> None:
    counts = Counts(hits, TRIALS - hits, TRIALS)
    low, high = counts.likely(alarm), counts.unlikely(alarm)
    assert float(tail(hits, TRIALS, low)) == pytest.approx(alarm, rel=1e-8)
    assert high == pytest.approx(1 - low, rel=1e-9)


def test_no_count_proves_nothing() -> None:
    assert Counts(0, TRIALS, TRIALS).likely(0.05) == 0
    assert Counts(0, TRIALS, TRIALS).unlikely(0.05) == 1
    nothing = Counts(0, TRIALS, TRIALS)
    assert epsilon_bound(nothing, 0.0, 0.05) == 0
    assert mu_bound(nothing, 0.05) == 0
    assert bits_bound(nothing, 0.05) == 0


def entropy(p: float) -> float:
    return float(stats.entropy([p, 1 - p], base=2))


def bits(p: float, q: float) -> float:
    return entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2


TRUTHS: dict[str, tuple[Callable[[Counts, float], float], Callable[[float, float], float]]] = {
    "pure": (lambda c, a: epsilon_bound(c, 0.0, a), lambda p, q: math.log(p / q)),
    "approximate": (
        lambda c, a: epsilon_bound(c, 0.1, a),
        lambda p, q: max(math.log((p - 0.1) / q), 0.0),
    ),
    "mu": (mu_bound, lambda p, q: float(stats.norm.ppf(p) - stats.norm.ppf(q))),
    "bits": (bits_bound, bits),
}


@pytest.mark.parametrize("kind", TRUTHS)
@pytest.mark.parametrize("chances", CHANCES)
def test_a_bound_is_above_the_truth_as_rarely_as_stated(
    kind: str, chances: tuple[float, float]
) -> None:
    bound, truth = TRUTHS[kind]
    alarm, most = 0.05, truth(*chances) + 1e-12
    every = np.arange(TRIALS + 1)
    likely, unlikely = (stats.binom.pmf(every, TRIALS, p) for p in chances)
    wrong = math.fsum(
        likely[one] * unlikely[other]
        for one in every
        for other in every
        if bound(Counts(int(one), int(other), TRIALS), alarm) > most
    )
    assert wrong <= alarm


def test_each_side_has_half_of_what_may_go_wrong() -> None:
    counts, alarm = Counts(20, 4, TRIALS), 0.05
    low = stats.beta.ppf(alarm / 2, 20, 11)
    high = stats.beta.ppf(1 - alarm / 2, 5, 26)
    assert epsilon_bound(counts, 0.1, alarm) == pytest.approx(math.log((low - 0.1) / high))
    assert bits_bound(counts, alarm) == pytest.approx(bits(low, high))


def test_right_guesses_of_both_tables_are_added_up() -> None:
    counts, alarm = Counts(20, 4, TRIALS), 0.05
    low = stats.beta.ppf(alarm, 46, 2 * TRIALS - 46 + 1)
    assert mu_bound(counts, alarm) == pytest.approx(2 * stats.norm.ppf(low))
    assert mu_bound(Counts(4, 20, TRIALS), alarm) == 0
    # Bounds of both chances apart are wider.
    ends = stats.beta.ppf(alarm / 2, 20, 11), stats.beta.ppf(1 - alarm / 2, 5, 26)
    assert mu_bound(counts, alarm) > 1.2 * (stats.norm.ppf(ends[0]) - stats.norm.ppf(ends[1]))


def test_many_trials_come_close_to_the_truth() -> None:
    many = 10**9
    counts = Counts(many // 2, many // 5, many)
    assert epsilon_bound(counts, 0.0, 0.05) == pytest.approx(math.log(2.5), abs=1e-3)
    assert epsilon_bound(counts, 0.1, 0.05) == pytest.approx(math.log(2.0), abs=1e-3)
    assert mu_bound(counts, 0.05) == pytest.approx(2 * stats.norm.ppf(0.65), abs=1e-3)
    even = Counts(many // 5 * 4, many // 5, many)
    assert mu_bound(even, 0.05) == pytest.approx(-2 * stats.norm.ppf(0.2), abs=1e-3)
    assert bits_bound(counts, 0.05) == pytest.approx(bits(0.5, 0.2), abs=1e-3)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_delta_of_normal_laws(mu: float, epsilon: float) -> None:
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    assert gaussian_delta(epsilon, mu) == pytest.approx(float(exact), rel=1e-9, abs=1e-16)


def test_the_inverses_of_delta() -> None:
    for epsilon, delta in [(0.5, 1e-6), (1.0, 0.05), (3.0, 1e-4), (20.0, 0.1)]:
        mu = gaussian_mu(epsilon, delta)
        assert gaussian_delta(epsilon, mu) == pytest.approx(delta, rel=1e-6)
        assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-6)
    assert gaussian_epsilon(0.01, 0.1) == 0
    assert gaussian_epsilon(0.0, 0.1) == 0


def test_events_count_what_they_say() -> None:
    one, other = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0])
    assert Event(1.0).count(one, other) == Counts(2, 1, 3)
    assert Event(2.0, back=True).count(one, other) == Counts(2, 1, 3)
    assert Event(-1.0).count(-one, other) == Counts(0, 3, 3)


def test_the_best_event_is_found_on_either_side() -> None:
    draw = simulation.generator(3)
    wide, narrow = draw.normal(size=4000) * 3, draw.normal(size=4000)

    def bound(counts: Counts) -> float:
        return epsilon_bound(counts, 0.0, 0.05)

    event = best_event(wide, narrow, bound)
    assert not event.back
    assert event.threshold > 2
    event = best_event(narrow, wide, bound)
    assert event.back
    assert event.threshold < -2 or event.threshold > 2
    # A value with a mass of its own is on one side.
    coins = (draw.uniform(size=(2, 4000)) < np.array([[0.8], [0.2]])).astype(float)
    assert bound(best_event(coins[0], coins[1], bound).count(*coins)) > 1.2
    endless = np.full(10, np.inf)
    assert best_event(endless, endless, bound) == Event(0.0)
