"""Tails of errors: laws against integrals, heaviness and unevenness from noisy counts."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dplinear.adaptive.noisy_sums import Answer
from dplinear.descent import tails
from dplinear.descent.tails import BINS, FAR, Tails, Watch, edges, heaviness, scales_within

from .error_laws import WITHIN, inside, square

Seeded = Callable[[int], Any]


@pytest.mark.parametrize("heavy", [0, 1])
def test_laws_of_errors_are_integrals(heavy: int) -> None:
    law = (tails.NORMAL, tails.STUDENT)[heavy]
    assert inside(heavy, 1.0) == pytest.approx(WITHIN, abs=1e-9)
    at = np.array([0.0, 0.05, 0.3, 1.0, 2.5, 7.0])
    assert law.inside(at) == pytest.approx(inside(heavy, at), abs=1e-9)
    assert law.square(at) == pytest.approx(square(heavy, at), rel=1e-4, abs=1e-6)
    nearest = inside(heavy, 7.0) - inside(heavy, FAR)
    assert tails.in_nearest_bin(law, 7.0) == pytest.approx(nearest, abs=1e-9)


def test_tails_are_between_the_two_laws_and_grow_with_what_is_far() -> None:
    for sigma in (0.0, 0.03, 0.3, 3.0, 300.0):
        found = [heaviness(far, sigma) for far in np.linspace(-30, 60, 301)]
        assert all(0 <= value <= 1 for value in found)
        assert all(a <= b for a, b in itertools.pairwise(found))
    for far in (0.0, 0.5, 1.0):
        assert heaviness(far, 0.0) == pytest.approx(far, abs=0.05)
    # A count as doubtful as the guess has half the say.
    assert heaviness(1.0, tails._DOUBT) == pytest.approx((1 + tails._GUESS) / 2, abs=0.02)
    # Where the count is nothing but noise, nothing is learned from it.
    assert heaviness(15.0, 1e6) == pytest.approx(tails._GUESS, abs=1e-6)
    assert 0 <= tails._GUESS <= 1


def test_a_share_is_within_its_scales() -> None:
    assert scales_within(WITHIN) == pytest.approx(1)
    for scales in (0.1, 0.5, 2.0, 3.0):
        assert scales_within(float(inside(0, scales))) == pytest.approx(scales)


def test_bands_begin_at_powers_of_two_but_for_the_first() -> None:
    assert edges(0.1, 2.0) == (0.25, 0.5, 1.0)
    assert edges(0.11, 2.0) == pytest.approx((0.275, 1.0))
    assert edges(5.0, 2.0) == (12.5,)
    for scale in np.geomspace(2.0**-20, 4.0, 200):
        found = np.array(edges(float(scale), 2.0))
        assert len(found) <= BINS
        assert found[0] == FAR * scale
        assert (found[1:] >= 2 * found[0]).all()
        assert (found[1:] < 2.0).all()
        assert (np.diff(found[1:]) == found[1:-1]).all()


def counts(random: Any, errors: Any, sigma: float) -> Answer:
    """What a step releases of errors in scales."""
    limits = np.array([*edges(1.0, 100.0), math.inf])
    above, below = (np.histogram(sign * errors, limits)[0] for sign in (1, -1))
    exact = np.array([np.count_nonzero(np.abs(errors) <= 1), *above, *below], float)
    return Answer(exact + sigma * random.normal(size=len(exact)), sigma)


def watched(random: Any, draw: Callable[[], Any], sigma: float, steps: int = 12) -> Tails:
    watch = Watch()
    for _ in range(steps):
        errors = draw()
        watch.see(counts(random, errors, sigma), len(errors), 1.0)
    return watch.tails


@pytest.mark.parametrize("sigma", [0.0, 30.0])
def test_even_tails_are_light_or_heavy_and_not_skewed(sigma: float, generator: Seeded) -> None:
    """Counts of 50,000 rows, 12 steps: heaviness to .15; skewed by chance in less than 1e-3."""
    random = generator(3)
    light = watched(random, lambda: random.normal(size=50_000), sigma)
    heavy = watched(random, lambda: random.standard_t(4, 50_000) / 1.134, sigma)
    assert light.heavy < 0.15
    assert heavy.heavy > 0.85
    assert not light.skewed
    assert not heavy.skewed
    assert (light.robust, heavy.robust) == (False, True)


@pytest.mark.parametrize("side", [1, -1])
def test_a_tail_on_one_side_shows(side: int, generator: Seeded) -> None:
    """One row in a hundred, 20 scales out: its share to a quarter, as chance is taken off."""
    random = generator(4)

    def draw() -> Any:
        errors = random.normal(0, 0.9, 50_000)
        errors[:500] = side * 25.0
        return errors

    found = watched(random, draw, 20.0)
    assert found.skewed
    assert not found.robust
    assert found.middles.tolist() == pytest.approx([5.6, 11.2, 22.4, 44.8, 89.6])
    assert found.uneven[2] == pytest.approx(0.01, rel=0.25)
    assert found.uneven_square == pytest.approx(0.01 * 22.4**2, rel=0.25)
    # Behind much noise nothing is seen.
    assert not watched(random, draw, 3000.0).skewed


def test_counts_of_one_place_are_added_up_while_the_scale_moves(generator: Seeded) -> None:
    """A label 1.8 cells off in one row of a hundred, too few for a single look."""
    random, watch = generator(6), Watch()
    for scale in np.geomspace(0.1, 0.01, 12):
        limits = np.array([*edges(float(scale), 2.0), math.inf])
        exact = np.zeros(2 * len(limits) - 1)
        exact[len(limits) - 1] = 300.0  # in the last band above
        watch.see(Answer(exact + 70 * random.normal(size=len(exact)), 70.0), 30_000.0, scale)
        if scale == 0.1:
            assert not watch.tails.skewed
    assert watch.tails.skewed
    assert np.argmax(watch.tails.uneven) == len(watch.tails.uneven) - 1
    assert watch.tails.middles[-1] == pytest.approx(1.4 / 0.01)


def test_what_noise_does_is_not_taken_for_a_tail(generator: Seeded) -> None:
    """400 watches of nothing but noise: each band is uneven by chance in less than 1 of 200."""
    random = generator(5)
    shown = sum(
        np.count_nonzero(watched(random, lambda: np.zeros(1000), 40.0, 3).uneven)
        for _ in range(400)
    )
    assert shown <= 400 * 6 / 200
