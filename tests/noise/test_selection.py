"""Selection: its law against exact probabilities, its verdicts against mpmath on the same bits."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dplinear.noise import selection, simulation
from dplinear.noise.selection import draw

from .laws import FALSE_ALARM, misfit

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

LISTS: list[tuple[Any, Any]] = [
    ([0, 1], Fraction(1, 3)),
    ([5, 5, 5], 1),
    ([3, -2, 0, 7, 7], 0.25),
    ([-(2**62), 2**62, 2**62 - 2**60], Fraction(3, 2**61)),
    (np.array([10**40, 10**40 - 10**39, 0], object), Fraction(7, 10**40)),
    ([0, 1, 2], 40),  # all but certain
    (list(range(-30, 30)), Fraction(1, 7)),
    (np.arange(40, dtype=np.uint8), Fraction(1, 40)),
]


def probabilities(qualities: Any, unit: Any) -> list[float]:
    exact = [int(quality) for quality in qualities]
    step = mpmath.mpf(Fraction(unit).numerator) / Fraction(unit).denominator
    with mpmath.workdps(60):
        masses = [mpmath.exp(step * (quality - max(exact))) for quality in exact]
        return [float(mass / mpmath.fsum(masses)) for mass in masses]


@pytest.mark.parametrize(("qualities", "unit"), LISTS)
def test_the_law_is_the_exact_one(qualities: Any, unit: Any) -> None:
    draws = 2000
    counts = np.bincount([draw(qualities, unit) for _ in range(draws)], minlength=len(qualities))
    masses = np.array(probabilities(qualities, unit))
    rare = masses < 40 / draws
    assert not counts[masses < 1e-12].any()
    pooled = [*counts[~rare], counts[rare].sum()]
    expected = [*masses[~rare], masses[rare].sum()]
    if expected[-1] < 40 / draws:
        pooled[-2:], expected[-2:] = [sum(pooled[-2:])], [sum(expected[-2:])]
    if len(pooled) > 1:
        assert misfit(np.array(pooled), expected) > FALSE_ALARM


class _Recorder:
    """Entropy that remembers what it gave."""

    simulated = True

    def __init__(self, seed: int) -> None:
        self.source = simulation.entropy(seed)
        self.given: list[tuple[int, int]] = []

    def fill(self, _words: Any) -> None:
        raise AssertionError("Selection reads single numbers.")

    def bits(self, count: int) -> int:
        value = self.source.bits(count)
        self.given.append((value, count))
        return value


def slow(qualities: list[int], unit: Fraction, given: list[tuple[int, int]]) -> int:
    """Return what the recorded bits mean, by 80 digits: proposal, then acceptance, until one."""
    stream = iter(given)
    shortfalls = [max(qualities) - quality for quality in qualities]
    weights = [int(w) for w in selection._weights(np.array(shortfalls, object), unit)]
    total = sum(weights)
    with mpmath.workdps(80):
        while True:
            target, _ = next(stream)
            if target >= total:
                continue
            place = 0
            while target >= weights[place]:
                target -= weights[place]
                place += 1
            head, first = next(stream)
            tail, more = next(stream)
            height = mpmath.mpf((head << more) + tail) / mpmath.mpf(2) ** (first + more)
            step = mpmath.mpf(unit.numerator) / unit.denominator
            if height < mpmath.exp(-step * shortfalls[place]) * 2**40 / weights[place]:
                return place


def test_verdicts_are_those_of_a_slow_oracle_on_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Steps of one in place of 1024 to a unit: proposals are refused often.
    monkeypatch.setattr(selection, "_STEPS", 1)
    selection._bounds.cache_clear()
    try:
        rng = simulation.generator(5)
        for seed in range(300):
            qualities = [int(q) for q in rng.integers(-50, 50, 12)]
            unit = Fraction(int(rng.integers(1, 9)), int(rng.integers(9, 60)))
            entropy = _Recorder(seed)
            assert draw(qualities, unit, entropy=entropy) == slow(qualities, unit, entropy.given)
    finally:
        selection._bounds.cache_clear()


class _Given:
    """Entropy that has been written down."""

    simulated = True

    def __init__(self, *values: int) -> None:
        self.values = list(values)

    def fill(self, _words: Any) -> None:
        raise AssertionError("Selection reads single numbers.")

    def bits(self, _count: int) -> int:
        return self.values.pop(0)


@pytest.mark.parametrize(
    ("target", "place"), [(0, 0), (2**40 - 1, 0), (2**40, 1), (2**41, 2), (3 * 2**40 - 1, 2)]
)
def test_intervals_of_proposals_have_the_right_ends(target: int, place: int) -> None:
    # Three equal weights of 2^40; the first number is too large and drawn again.
    assert draw([4, 4, 4], 1, entropy=_Given(3 * 2**40, target, 0, 0)) == place


@pytest.mark.parametrize("unit", [Fraction(1, 3), Fraction(2**70, 3), Fraction(1, 2**80), 1e-290])
def test_weights_are_upper_bounds_and_tight(unit: Any) -> None:
    worth = Fraction(unit)
    rng = simulation.generator(2)
    exponents = [*np.linspace(0, 30, 400), *rng.uniform(0, 1e-3, 50), 100.0, 1e9]
    short = np.array([int(Fraction(float(x)) / worth) for x in exponents], object)
    weights = selection._weights(short, worth)
    for shortfall, weight in zip(short, weights, strict=True):
        exponent = shortfall * worth
        exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        assert weight >= exact * 2**40
        assert weight <= exact * 2**40 * 1.00098 + 1
    if max(short) < 2**63:
        assert (selection._weights(short.astype(np.int64), worth) == weights).all()


def test_long_lists_are_drawn_from() -> None:
    qualities = np.zeros(200_000, np.int64)
    qualities[123_456] = 30  # e^30 against 2e5: missed once in 5e7
    assert draw(qualities, 1) == 123_456


@pytest.mark.parametrize("bad", [[], [[1]], [0.5], np.array([1, 0.5], object), ["a"]])
def test_qualities_that_are_no_integers_are_refused(bad: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"'qualities' parameter of selection\.draw"):
        draw(bad, 1)


@pytest.mark.parametrize("bad", [0, -1, Fraction(1, 2**1001), float("inf"), "1"])
def test_units_that_are_no_rates_are_refused(bad: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"'unit' parameter of selection\.draw"):
        draw([1], bad)
