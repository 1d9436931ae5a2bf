"""Exact normal numbers: their law, their digits, and what their bits mean."""

import math
from bisect import bisect_left
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import stats

import refusals
from dplinear.noise import discrete, inversion, simulation
from dplinear.noise.discrete import FINE, Precision, Undecided
from dplinear.noise.entropy import Words, system
from dplinear.noise.normals import Normals, _candidates, _exactly, normals
from noise.laws import FALSE_ALARM, misfit
from noise.test_replay import Candidate, Written, below, split, tails_of

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

COARSE = Precision(guide_bits=3, table_bits=5, slack=2**30)
MIDDLING = Precision(guide_bits=8, slack=1 << 28)
VARIANCE = Fraction(2**100)


class Silent:
    """Entropy that must not be asked."""

    simulated = True

    def fill(self, words: Words) -> None:
        raise AssertionError(len(words))

    def bits(self, count: int) -> int:
        raise AssertionError(count)


def quantile_misfit(drawn: np.ndarray, cells: int = 200) -> float:
    """Return the p-value of Pearson's test on cells of equal probability."""
    cuts = stats.norm.ppf(np.arange(1, cells) / cells)
    counts = np.bincount(np.searchsorted(cuts, drawn), minlength=cells)
    return misfit(counts, [1 / cells] * cells)


@pytest.mark.parametrize(
    ("precision", "count"),
    [(FINE, 10**6), (MIDDLING, 10**5), (COARSE, 20_000)],
    ids=["fine", "middling", "coarse"],
)
def test_the_law_is_standard_normal(precision: Precision, count: int) -> None:
    drawn = normals(count, precision=precision)
    values = drawn.floats()
    assert quantile_misfit(values) > FALSE_ALARM
    assert stats.kstest(values, "norm").pvalue > FALSE_ALARM
    assert (len(drawn._long) > count / 1000) == (precision is not FINE)
    if precision is FINE:
        edges = [0, 3, 3.5, 4, 4.4]
        masses = [2 * (stats.norm.sf(a) - stats.norm.sf(b)) for a, b in pairwise(edges)]
        counts = np.histogram(np.abs(values), [*edges, math.inf])[0]
        assert misfit(counts, [*masses, 2 * stats.norm.sf(edges[-1])]) > FALSE_ALARM


def test_digits_beyond_the_first_are_fair_and_independent() -> None:
    # Given its first 40 digits a normal number is next to uniform; so are digits 40 to 140.
    drawn = normals(4000)
    digits = drawn.integers(140)
    places = [
        np.bincount([abs(int(k)) >> low & 15 for k in digits], minlength=16)
        for low in range(0, 100, 4)
    ]
    # One comparison for all, with a few degrees of freedom too many.
    assert misfit(np.concatenate(places), [1 / 400] * 400) > FALSE_ALARM


@pytest.mark.parametrize("precision", [FINE, COARSE], ids=["fine", "coarse"])
def test_digits_are_appended_and_never_drawn_again(precision: Precision) -> None:
    drawn = normals(50, precision=precision)
    finest = drawn.integers(400)
    for bits in (0, 3, 4, 5, 63, 64, 68, 69, 132, 133, 255, 399, 400):
        coarser = drawn.integers(bits)
        for index, (k, fine) in enumerate(zip(coarser, finest, strict=True)):
            assert abs(k) == abs(fine) >> (400 - bits)
            assert k * fine >= 0
            assert drawn.integer(index, bits) == k


@pytest.mark.parametrize("precision", [FINE, COARSE], ids=["fine", "coarse"])
def test_the_order_of_questions_changes_no_answer(precision: Precision) -> None:
    rng = simulation.generator(4)
    drawn = normals(8, precision=precision)
    known: dict[int, tuple[int, int]] = {}
    for _ in range(60):
        bits = int(rng.integers(0, 600))
        some = rng.integers(3)
        seen = (
            dict(enumerate(drawn.integers(bits)))
            if some == 0
            else {i: drawn.integer(i, bits) for i in map(int, rng.integers(0, 8, 2))}
        )
        for index, k in seen.items():
            old, at = known.get(index, (k, bits))
            shared = min(at, bits)
            assert abs(old) >> (at - shared) == abs(k) >> (bits - shared)
            if bits >= at:
                known[index] = k, bits


def test_digits_that_are_there_cost_no_bits() -> None:
    drawn = normals(1000, entropy=simulation.entropy(1))
    drawn._entropy = Silent()
    first = drawn.integers(68)
    assert np.array_equal(first, drawn.integers(68))
    assert drawn.integer(3, 68) == first[3]
    with pytest.raises(AssertionError):
        drawn.integer(3, 69)
    with pytest.raises(AssertionError):
        drawn.integers(69)


@pytest.mark.parametrize("precision", [FINE, COARSE], ids=["fine", "coarse"])
def test_floats_are_the_numbers_cut_off(precision: Precision) -> None:
    drawn = normals(3000, precision=precision)
    for f, k in zip(drawn.floats(), drawn.integers(200), strict=True):
        rest = abs(Fraction(int(k), 2**200)) - abs(Fraction(float(f)))
        assert 0 <= rest < Fraction(1, 2**49)
        assert f == 0 or (f > 0) == (k > 0)


def test_numbers_that_are_never_seen_are_right_too() -> None:
    long = {1: ((2**20 << 70) + 5, 70), 2: ((2**1100 << 70) + 1, 70)}
    value, first = np.array([300, 0, 0, 7], np.uint16), np.full(4, 2**63, np.uint64)
    minus = np.array([True, False, False, False])
    drawn = Normals(value, minus, first, long, system())
    floats = drawn.floats()
    assert floats[0] == -300.5 / 16
    assert floats[1] == 2**16
    assert floats[2] == math.inf
    assert floats[3] == 7.5 / 16
    assert drawn.integers(68).tolist() == [-(601 << 63), 2**84, 2**1164, 15 << 63]
    assert drawn.integers(74)[1:3].tolist() == [number for number, _ in long.values()]


def test_none_are_an_empty_list_and_fewer_are_refused() -> None:
    assert normals(0).floats().tolist() == []
    assert normals(0).integers(100).tolist() == []
    with refusals.refused("count", "normals.normals"):
        normals(-1)


def meant(plan: discrete.Plan, candidate: Candidate) -> Fraction | None:
    """Return the magnitude V + x that a candidate's bits stand for, or None: refused."""
    width = plan.precision.table_bits - plan.precision.guide_bits
    prefix = candidate.bucket << width | candidate.rest[0] >> (64 - width)
    bits = plan.precision.table_bits
    v = bisect_left(
        tails_of(plan.rate, 2), True, key=lambda p: not below(prefix, bits, candidate.ones, p)
    )
    x = Fraction(candidate.tail + candidate.ones, 2**64)
    with mpmath.workdps(60):
        gamma = (x * (2 * v + x)) / 512
        chance = mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator)
    height = candidate.height << 16 | candidate.rest[1] >> 48
    return v + x if below(height, 32, candidate.ones, chance) else None


def check(plan: discrete.Plan, candidate: Candidate) -> None:
    halves = np.zeros(8, np.uint16)
    halves[0], halves[4] = candidate.minus << 15 | candidate.bucket, candidate.height
    first = np.concatenate([halves.view(np.uint64), np.array([candidate.tail], np.uint64)])
    entropy = Written(first, candidate.rest, ones=candidate.ones)
    bits, refused, exact = _candidates(plan, 1, entropy)
    number = meant(plan, candidate)
    assert (number is None) == (len(refused) == 1)
    if number is not None:
        long = dict(exact)
        made = Normals(bits.value, bits.minus.astype(bool), bits.tail, long, entropy)
        k = made.integer(0, 300)
        last = Fraction(candidate.ones, 2**296)  # ones without end
        assert Fraction(abs(k), 2**296) + last == number
        assert k == 0 or (k < 0) == bool(candidate.minus)


@pytest.mark.parametrize("precision", [FINE, MIDDLING, COARSE], ids=["fine", "middling", "coarse"])
def test_random_bits_mean_what_they_are_taken_for(precision: Precision) -> None:
    plan = discrete.gaussian_plan(VARIANCE, precision)
    rng = simulation.generator(5)
    for turn in range(150):
        bucket = int(rng.integers(1 << precision.guide_bits)) >> int(rng.integers(9))
        candidate = Candidate(
            bucket=bucket | (turn % 2 == 0),
            minus=int(rng.integers(2)),
            height=int(rng.integers(2**16)) | (0xFF00 if rng.random() < 0.3 else 0),
            tail=int(rng.integers(2**63)) * 2 >> int(rng.integers(4)),
            rest=(int(rng.integers(2**63)) * 2 + 1, int(rng.integers(2**63)) * 2),
            ones=turn % 2 == 1,
        )
        check(plan, candidate)


class Scripted:
    """Entropy that gives the bits of a list, one entry a question."""

    simulated = True

    def __init__(self, script: list[tuple[int, int]]) -> None:
        self.script = script

    def fill(self, words: Words) -> None:
        raise AssertionError(len(words))

    def bits(self, count: int) -> int:
        length, value = self.script.pop(0)
        assert count == length
        return value


@pytest.mark.parametrize("tail", [2**60 + 12345, 2**63 + 2**40 + 1, 3**40])
def test_digits_that_an_acceptance_has_used_are_the_numbers_own(tail: int) -> None:
    plan = discrete.gaussian_plan(VARIANCE, FINE)
    tails = [mpmath.mpf(1), *tails_of(plan.rate, 2)]
    with mpmath.workdps(60):
        prefix = int((tails[1] + tails[2]) * 2**63)  # V = 1
    x = Fraction(tail, 2**64)
    turn = inversion.exponential(x * (2 + x) / 512, 128)[0] >> 64
    used = 0x0123456789ABCDEF
    script = [(64, 0), (32, turn & (2**32 - 1)), (64, used), (64, 0), (6, 0b101101)]
    entropy = Scripted(script)
    digits = _exactly(plan, Undecided(0, prefix, turn >> 32), tail, entropy)
    assert digits == ((1 << 64 | tail) << 64 | used, 128)
    made = Normals(
        np.zeros(1, np.uint16), np.zeros(1, bool), np.zeros(1, np.uint64), {0: digits}, entropy
    )
    assert made.integer(0, 132) == digits[0]
    assert made.integer(0, 138) == digits[0] << 6 | 0b101101
    assert not script


@pytest.mark.parametrize("precision", [FINE, MIDDLING], ids=["fine", "middling"])
def test_acceptance_turns_where_its_chance_does(precision: Precision) -> None:
    plan = discrete.gaussian_plan(VARIANCE, precision)
    assert plan.rate == Fraction(1, 512)
    tails = [mpmath.mpf(1), *tails_of(plan.rate, 2)]
    rng = simulation.generator(6)
    for v in (0, 1, 5, 17, 60, 120):
        with mpmath.workdps(60):
            bucket, word = split(plan, int((tails[v] + tails[v + 1]) * 2**63))
        for tail in {1, int(rng.integers(2**63)) * 2, 2**64 - 1}:
            gamma = Fraction(tail, 2**64) * (2 * v + Fraction(tail, 2**64)) / 512
            turn = inversion.exponential(gamma, 32)[0]
            for height in {max(turn + d, 0) for d in (*range(-9, 10), -70_000, 70_000)}:
                if height < 2**32:
                    rest = word, (height & 0xFFFF) << 48 | 0x3C3C
                    check(plan, Candidate(bucket, 0, height >> 16, tail, rest, bool(v % 2)))
