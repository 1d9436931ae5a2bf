"""Calibration at a few settings each: on the private side, and at the ends of what is taken."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb

from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP, calibrate
from dplinear.privacy.profiles import Laplace, Pure, Selections
from dplinear.privacy.profiles.wishart import AdditiveWishart, one_step_delta
from dplinear.privacy.rounding import up
from refusals import refused

from . import oracles

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

GOOD = ApproxDP(1.0, 1e-6)
LESS = 1 - 1e-9
SETTINGS = [(0.3, 1e-7, 9, 1.7), (2.0, 1e-3, 40, 0.6)]
VALUES = [(0.1, 3.0), (1 / 3, 0.7), (7.7, 1e-5)]


@pytest.mark.parametrize(("budget", "sensitivity"), VALUES)
def test_closed_forms_are_rounded_up_by_a_hair(budget: float, sensitivity: float) -> None:
    exact, square = Fraction(budget), Fraction(sensitivity) ** 2
    hair = 1 + Fraction(1, 10**14)

    def least(found: float, wanted: Fraction) -> None:
        assert wanted <= Fraction(found) <= wanted * hair

    least(calibrate.gaussian(GDP(budget), sensitivity), Fraction(sensitivity) / exact)
    least(calibrate.laplace(PureDP(budget), sensitivity), Fraction(sensitivity) / exact)
    sigma = Fraction(calibrate.gaussian(ZCDP(budget), sensitivity))
    assert square <= 2 * exact * sigma**2 <= square * hair**2
    wide = sensitivity * 1e9
    least(calibrate.grid_gaussian(ZCDP(budget), wide, 3), Fraction(wide) ** 2 / (2 * exact))
    assert calibrate.grid_chain(ZCDP(budget), 0.1) == 2 * exact
    with mpmath.workdps(40):
        deviation = mpmath.mpf(calibrate.gaussian(MIDP(budget), sensitivity))
        told = mpmath.log(1 + (mpmath.mpf(sensitivity) / 2 / deviation) ** 2, 2) / 2
        assert budget * (1 - 1e-13) <= told <= budget


@pytest.mark.parametrize(("epsilon", "delta", "degrees", "bound"), SETTINGS)
def test_ridges_are_private_and_least(
    epsilon: float, delta: float, degrees: int, bound: float
) -> None:
    guarantee = ApproxDP(epsilon, delta)
    for ridge in (
        calibrate.sketch(guarantee, degrees, bound),
        calibrate.inverse_wishart(guarantee, float(degrees), bound),
    ):
        assert oracles.sketch(epsilon, degrees, arb(bound) ** 2 / ridge) <= delta
        assert oracles.sketch(epsilon, degrees, arb(bound) ** 2 / (ridge * LESS)) > delta


@pytest.mark.parametrize(("epsilon", "delta", "dimension", "bound"), SETTINGS)
def test_wishart_noise_is_private_and_least(
    epsilon: float, delta: float, dimension: int, bound: float
) -> None:
    guarantee = ApproxDP(epsilon, delta)
    degrees, scale = calibrate.additive_wishart(guarantee, dimension, bound, most_degrees=200)
    assert degrees == 200
    m = degrees - dimension + 1
    assert oracles.wishart(epsilon, m, (arb(bound) / scale) ** 2) <= delta
    assert oracles.wishart(epsilon, m, (arb(bound) / (scale * LESS)) ** 2) > delta
    fewest, same = calibrate.additive_wishart(guarantee, dimension, bound, scale=scale)
    assert same == scale
    assert fewest == 200
    fewer, _ = calibrate.additive_wishart(guarantee, dimension, bound, scale=3 * scale)
    ratio = (arb(bound) / (3 * scale)) ** 2
    assert oracles.wishart(epsilon, fewer - dimension + 1, ratio) <= delta
    assert fewer == dimension + 2 or oracles.wishart(epsilon, fewer - dimension, ratio) > delta


def test_the_least_degrees_of_all_are_enough_beside_much_noise() -> None:
    for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE):
        degrees, _ = calibrate.additive_wishart(GOOD, 7, 1.0, relation, scale=1e4)
        assert degrees == 9
        assert AdditiveWishart(9, 7, 1e-8, relation).delta(1.0) <= 1e-6


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 2.0])
@pytest.mark.parametrize("scale", [5.0, 30.0, 100.0, 1000.0, 1e4])
def test_few_degrees_are_private_and_least(epsilon: float, scale: float) -> None:
    """Noise so large that few degrees do, or the fewest."""
    for delta in (1e-9, 1e-6, 1e-2):
        degrees, _ = calibrate.additive_wishart(ApproxDP(epsilon, delta), 4, 1.0, scale=scale)
        ratio = 1 / arb(scale) ** 2
        assert oracles.wishart(epsilon, degrees - 3, ratio) <= delta
        assert degrees == 6 or oracles.wishart(epsilon, degrees - 4, ratio) > delta
        both, _ = calibrate.additive_wishart(
            ApproxDP(epsilon, delta), 4, 1.0, Neighbours.REPLACE, scale=scale
        )
        twice = AdditiveWishart(both, 4, up(scale**-2.0), Neighbours.REPLACE)
        assert twice.delta(epsilon) <= delta
        assert both >= degrees


def test_the_profile_has_the_last_word_on_degrees(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = calibrate.additive_wishart(GOOD, 5, 1.0, scale=2.0)
    monkeypatch.setattr(calibrate, "one_step_delta", lambda *at: 0.8 * one_step_delta(*at))
    assert calibrate.additive_wishart(GOOD, 5, 1.0, scale=2.0) == wanted


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_the_ends_of_what_is_taken_are_taken(neighbours: Neighbours) -> None:
    assert calibrate.sketch(GOOD, 1, 1.0, neighbours) > 1
    assert calibrate.inverse_wishart(GOOD, 1.0, 1.0, neighbours) > 1
    degrees, scale = calibrate.additive_wishart(GOOD, 1, 1.0, neighbours, most_degrees=3)
    assert degrees == 3
    assert scale > 1
    assert math.isfinite(scale)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("inverse_wishart(GOOD, 0.99, 1.0)", "'degrees' parameter of calibrate.inverse_wishart"),
        ("inverse_wishart(GOOD, 1.1e7, 1.0)", "'degrees' parameter of calibrate.inverse_wishart"),
        ("grid_gaussian(GOOD, 100.0, 0.9)", "'coordinates' parameter of calibrate.grid_gaussian"),
        ("grid_gaussian(GOOD, 0.0, 1)", "'sensitivity' parameter of calibrate.grid_gaussian"),
        ("grid_gaussian(ZCDP(0.5), 10.999, 1)", "at least eleven grid units"),
        ("additive_wishart(GOOD, 5, 0.0)", "'bound' parameter of calibrate.additive_wishart"),
        ("additive_wishart(PureDP(1), 5, 1.0)", "never pure"),
        ("sketch(GOOD, 80, 0.0)", "'bound' parameter of calibrate.sketch"),
    ],
)
def test_what_is_beyond_the_ends_is_not(call: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        eval(f"calibrate.{call}")


def test_eleven_grid_units_of_noise_are_enough() -> None:
    assert calibrate.grid_gaussian(ZCDP(0.5), 11.0, 1) == pytest.approx(121.0, rel=1e-14)


def test_a_loss_that_cannot_be_reached_has_no_delta() -> None:
    """With the row present the loss stays below ratio/2; without it, it is unbounded."""
    removing, adding = AdditiveWishart(40, 3, 2.0).directions(np.array([0.999, 1.0, 5.0]))
    assert (removing[1:] == 0).all()
    assert (adding > 0).all()
    assert removing[0] > 0


@pytest.mark.parametrize(("m", "ratio"), [(3, 9.0), (5, 20.0), (8, 7.0), (40, 300.0)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_rows_far_larger_than_the_noise(m: int, ratio: float, epsilon: float) -> None:
    removing, adding = AdditiveWishart(m + 2, 3, ratio).directions(np.array([epsilon]))
    for found, exact in (
        (removing[0], oracles.wishart_removing(epsilon, m, ratio)),
        (adding[0], oracles.wishart_adding(epsilon, m, ratio)),
    ):
        assert exact <= arb(float(found)) <= exact * (1 + 1e-10) + 1e-290


def test_pure_losses_end_where_they_are_said_to() -> None:
    for profile in (Laplace(1.0), Pure(1.0)):
        assert profile.epsilon(0.0) == 1.0
        assert profile.delta(0.999) > 0
        assert profile.delta(1.0) == profile.delta(1.5) == profile.delta(40.0) == 0
        with pytest.raises(
            ValueError, match=r"'delta' parameter of \w+\.epsilon must be in \[0, 1\)"
        ):
            profile.epsilon(1.0)


def test_profiles_are_of_losses_above_nothing() -> None:
    for kind in (Laplace, Pure):
        for bad in (0.0, -1.0):
            with pytest.raises(ValueError, match=f"parameter of profiles.{kind.__name__}"):
                kind(bad)
    with refused("anchor", "profiles.Selections"):
        Selections(Fraction(1, 9), 2, anchor=-1.0)


def test_chi_square_profiles_are_used_where_they_were_tried_out_and_no_further() -> None:
    for inside in (ApproxDP(1e-4, 1e-15), ApproxDP(1e6, 0.5)):
        assert calibrate.within_range(inside, "here") is inside
    for pair in ((0.99e-4, 1e-6), (1.01e6, 1e-6), (1.0, 0.99e-15), (1.0, 0.51)):
        with refused("guarantee", "here", "ε in [0.0001, 1e+06] and δ in [1e-15, 0.5]"):
            calibrate.within_range(ApproxDP(*pair), "here")
