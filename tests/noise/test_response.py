"""Randomised response: exact chances, by arithmetic and by counting."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from dplinear.noise import simulation
from dplinear.noise.response import Response, _uniform

FALSE_ALARM = 1e-6
CASES = [(2, 0.1), (2, 1.0), (3, 0.5), (7, 2.0), (100, 4.0), (5, 30.0)]


@pytest.mark.parametrize(("levels", "epsilon"), CASES)
def test_odds_never_exceed_and_reach_what_epsilon_allows(levels: int, epsilon: float) -> None:
    truths = Response(levels, epsilon).truths
    with mpmath.workdps(60):
        odds = mpmath.exp(mpmath.mpf(epsilon))
        wanted = mpmath.mpf(2) ** 64 * odds / (odds + levels - 1)
        assert truths == int(mpmath.floor(wanted))
        others = mpmath.mpf(2**64 - truths) / (levels - 1)
        assert truths / others <= odds
        assert truths / others >= odds * (1 - mpmath.mpf(2) ** -58 * odds)


def test_a_planted_rounding_to_nearest_would_be_seen() -> None:
    """Rounded up, the odds are above e^ε: so the comparison above has teeth."""
    levels, epsilon = 3, 0.5
    truths = Response(levels, epsilon).truths + 1
    with mpmath.workdps(60):
        others = mpmath.mpf(2**64 - truths) / (levels - 1)
        assert truths / others > mpmath.exp(mpmath.mpf(epsilon))


@pytest.mark.parametrize(("levels", "epsilon"), [(2, 1.0), (3, 0.5), (7, 2.0)])
def test_answers_are_counted_as_often_as_they_should(levels: int, epsilon: float) -> None:
    response, count = Response(levels, epsilon), 40_000
    for truth in range(levels):
        codes = np.full(count, truth)
        seen = np.bincount(response.draw(codes, simulation.entropy(truth)), minlength=levels)
        told = math.exp(epsilon) / (math.exp(epsilon) + levels - 1)
        wanted = np.full(levels, count * (1 - told) / (levels - 1))
        wanted[truth] = count * told
        statistic = float(((seen - wanted) ** 2 / wanted).sum())
        assert statistic < chi2.isf(FALSE_ALARM / 12, levels - 1)


def test_one_level_is_always_told() -> None:
    codes = np.zeros(10, np.int64)
    assert (Response(1, 1.0).draw(codes, simulation.entropy(1)) == 0).all()


def test_codes_outside_are_answered_as_level_zero() -> None:
    """Shapes and errors must not depend on what a cell holds."""
    strange = Response(3, Fraction(30)).draw(np.array([-1, 3, 99]), simulation.entropy(1))
    assert strange.tolist() == [0, 0, 0]


def test_uniform_draws_again_what_falls_off_the_end() -> None:
    seen = np.bincount(_uniform(3, 30_000, simulation.entropy(2)), minlength=3)
    assert abs(seen - 10_000).max() < 5.5 * math.sqrt(10_000 * 2 / 3)


@pytest.mark.parametrize("bad", [0, -1, 2.0, True, 1 << 17])
def test_levels_are_checked(bad: object) -> None:
    with pytest.raises((TypeError, ValueError), match="levels"):
        Response(bad, 1.0)  # type: ignore[arg-type]


class Scripted:
    """Entropy that says what it is told to."""

    simulated = True

    def __init__(self, *said: int) -> None:
        self.said = list(said)

    def fill(self, words: np.ndarray) -> None:
        for place in range(len(words)):
            words[place] = self.said.pop(0)

    def bits(self, count: int) -> int:
        return self.said.pop(0) >> (64 - count)


def test_what_falls_off_the_end_is_drawn_again_and_nothing_else() -> None:
    # 2^64 − 1 = 3·k, so three values share 0 … 2^64 − 2 evenly, and the last word is one too many.
    top = 2**64 - 1
    script = Scripted(top, 5, top - 1, top, 7)
    assert _uniform(3, 3, script).tolist() == [7 % 3, 5 % 3, (top - 1) % 3]
    assert not script.said


def test_words_below_the_chance_of_the_truth_tell_it() -> None:
    response = Response(3, 1.0)
    assert response.chance == pytest.approx(math.e / (math.e + 2), rel=1e-15)
    truths = response.truths
    told = response.draw(np.array([2, 2, 2]), Scripted(truths - 1, truths, 0, 0, 0, 1))
    assert told.tolist() == [2, 0, 2]
    assert response.draw(np.array([1, 1]), Scripted(truths, truths, 0, 1)).tolist() == [2, 0]


@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, "1"])
def test_epsilon_is_checked(epsilon: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        Response(3, epsilon)
