"""Candidates on bits that were written down, against what those bits mean in exact arithmetic.

Statistics cannot see a law that is wrong in its fortieth bit. Here every comparison that a sampler
makes is put to numbers a few units from where it turns.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pytest

from dplinear.noise import discrete, simulation
from dplinear.noise.discrete import FINE, Precision
from dplinear.noise.entropy import Words

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

DIGITS = 60
COARSE = Precision(guide_bits=3, table_bits=5, slack=2**30)
LAWS = [
    (power, Fraction(scale))
    for scale in ("1/2", "1", "31", "32", "63/2", "1000", "5726623064/3", 2**49 + 1, 2**50)
    for power in (1, 2)
] + [(1, Fraction(2**58 + 1, 3)), (1, Fraction(2**60))]


@lru_cache(maxsize=64)
def plan_of(power: int, scale: Fraction, precision: Precision = FINE) -> discrete.Plan:
    made = discrete.laplace_plan if power == 1 else discrete.gaussian_plan
    return made(scale**power, precision)


@dataclass(frozen=True)
class Candidate:
    """All the bits of one candidate; those after the last are all 0, or all 1."""

    bucket: int
    minus: int
    height: int
    tail: int
    rest: tuple[int, int]  # the words that are drawn if these do not settle it
    ones: bool = False


class Written:
    """Entropy of one candidate after the other, whose further words are the same for all."""

    simulated = True

    def __init__(self, first: Words, rest: tuple[int, int], *, ones: bool) -> None:
        self.first: Words | None = first
        self.rest, self.ones = rest, ones

    def fill(self, words: Words) -> None:
        if self.first is not None:
            words[:], self.first = self.first, None
        else:
            words.reshape(2, -1)[:] = np.array(self.rest, np.uint64)[:, None]

    def bits(self, count: int) -> int:
        return (1 << count) - 1 if self.ones else 0


def drawn(plan: discrete.Plan, candidates: list[Candidate]) -> list[int | None]:
    """Return what the sampler makes of candidates with the same further words; None: refused."""
    count = len(candidates)
    quarter = -(-count // 4)
    halves = np.zeros(8 * quarter, np.uint16)
    # Between the sign and the bucket lie bits that nothing may hang on.
    idle = (0x7FFF >> plan.precision.guide_bits) << plan.precision.guide_bits
    halves[:count] = [c.minus << 15 | idle | c.bucket for c in candidates]
    halves[4 * quarter : 4 * quarter + count] = [c.height for c in candidates]
    tails = np.array([c.tail for c in candidates] if plan.shift else [], np.uint64)
    first = np.concatenate([halves.view(np.uint64), tails])
    target = np.empty(count, np.int64)
    entropy = Written(first, candidates[0].rest, ones=candidates[0].ones)
    refused, long = discrete._candidates(plan, target, entropy)
    found: list[int | None] = [int(y) for y in target]
    for place, value in long:
        assert abs(value) >= 2**63
        found[place] = value
    for place in refused:
        found[place] = None
    return found


@lru_cache(maxsize=64)
def tails_of(rate: Fraction, power: int) -> list[mpmath.mpf]:
    """Return P(V > i) for i = 0, 1, ..., by summation."""
    with mpmath.workdps(DIGITS):
        step = mpmath.mpf(rate.numerator) / rate.denominator
        most = int((50 * math.log(10) / float(rate)) ** (1 / power)) + 3
        masses = [mpmath.exp(-step * v**power) for v in range(most)]
        sums = [mpmath.mpf(0)]
        for mass in reversed(masses):
            sums.append(sums[-1] + mass)
        return [tail / sums[-1] for tail in reversed(sums[:-1])]


def chance_of(plan: discrete.Plan, v: int, u: int) -> mpmath.mpf:
    """Return exp(-γ), from the law: the exponent at V·2^k + U, less that at V·2^k."""
    cell = 1 << plan.shift
    rate = plan.rate / cell**plan.power
    gamma = rate * ((v * cell + u) ** plan.power - (v * cell) ** plan.power)
    with mpmath.workdps(DIGITS):
        return mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator)


def below(number: int, bits: int, ones: bool, bound: mpmath.mpf) -> bool:
    """Return whether the number that begins so, and goes on with zeros or ones, is below."""
    with mpmath.workdps(DIGITS):
        scaled = bound * mpmath.mpf(2) ** bits
        return bool(number + 1 <= scaled if ones else number < scaled)


def meant(plan: discrete.Plan, candidate: Candidate) -> int | None:
    """Return the draw that a candidate's bits stand for."""
    width = plan.precision.table_bits - plan.precision.guide_bits
    prefix = candidate.bucket << width | candidate.rest[0] >> (64 - width)
    tails = tails_of(plan.rate, plan.power)
    v = bisect_left(
        tails, True, key=lambda p: not below(prefix, plan.precision.table_bits, candidate.ones, p)
    )
    u = candidate.tail >> (64 - plan.shift) if plan.shift else 0
    height = candidate.height << 16 | candidate.rest[1] >> 48
    magnitude = (v << plan.shift) + u
    if not below(height, 32, candidate.ones, chance_of(plan, v, u)):
        return None
    if magnitude == 0 and candidate.minus:
        return None
    return -magnitude if candidate.minus else magnitude


def check(plan: discrete.Plan, candidates: list[Candidate]) -> None:
    assert drawn(plan, candidates) == [meant(plan, candidate) for candidate in candidates]


def split(plan: discrete.Plan, prefix: int) -> tuple[int, int]:
    """Return the bucket that a number begins with, and the word that goes on with it."""
    width = plan.precision.table_bits - plan.precision.guide_bits
    return prefix >> width, (prefix & ((1 << width) - 1)) << (64 - width) | 0x5A5


@pytest.mark.parametrize("precision", [FINE, COARSE], ids=["fine", "coarse"])
@pytest.mark.parametrize(("power", "scale"), LAWS)
def test_random_bits_mean_what_they_are_taken_for(
    power: int, scale: Fraction, precision: Precision
) -> None:
    plan = plan_of(power, scale, precision)
    rng = simulation.generator(1)
    for count, ones in ((1, False), (6, True), (61, False), (64, True)):
        rest = int(rng.integers(2**63)) * 2 + 1, int(rng.integers(2**63)) * 2
        check(
            plan,
            [
                Candidate(
                    bucket=(int(rng.integers(1 << precision.guide_bits)) >> int(rng.integers(9)))
                    | (not ones),  # zeros without end would be no number that is ever drawn
                    minus=int(rng.integers(2)),
                    height=int(rng.integers(2**16)) | (0xFF00 if rng.random() < 0.3 else 0),
                    tail=int(rng.integers(2**63)) * 2 >> int(rng.integers(4)),
                    rest=rest,
                    ones=ones,
                )
                for _ in range(count)
            ],
        )


@pytest.mark.parametrize(("power", "scale"), LAWS)
def test_v_turns_where_its_tail_does(power: int, scale: Fraction) -> None:
    plan = plan_of(power, scale)
    tails = tails_of(plan.rate, power)
    rng = simulation.generator(2)
    chosen = {0, 1, 2, *(int(i) for i in rng.integers(0, len(plan.thresholds), 8))}
    with mpmath.workdps(DIGITS):
        floors = [int(tails[i] * 2**64) for i in chosen if i < len(tails)]
    prefixes = {floor + d for floor in floors for d in (-3, -2, -1, 0, 1, 2, 3)} | {0, 1, 2, 3, 4}
    prefixes |= {2**64 - 1, 2**51 - 1, 2**51}
    for prefix in prefixes:
        if 0 <= prefix < 2**64:
            bucket, word = split(plan, prefix)
            for ones in (False, True) if prefix else (True,):
                tail = int(rng.integers(2**63)) * 2
                check(plan, [Candidate(bucket, 1, 0, tail, (word, 2**63), ones)])


@pytest.mark.parametrize(("power", "scale"), [(p, s) for p, s in LAWS if s >= 32])
def test_acceptance_turns_where_its_chance_does(power: int, scale: Fraction) -> None:
    plan = plan_of(power, scale)
    tails = [mpmath.mpf(1), *tails_of(plan.rate, power)]
    rng = simulation.generator(3)
    for v in (0, 1, 5, 17, 130 if scale > 2**55 else 30):
        with mpmath.workdps(DIGITS):
            bucket, word = split(plan, int((tails[v] + tails[v + 1]) * 2**63))
        for u in {1, int(rng.integers(1 << plan.shift)), (1 << plan.shift) - 1}:
            with mpmath.workdps(DIGITS):
                turn = min(int(chance_of(plan, v, u) * 2**32), 2**32 - 1)
            for height in {max(turn + d, 0) for d in (*range(-9, 10), -70_000, 70_000, -(2**31))}:
                if height < 2**32:
                    rest = word, (height & 0xFFFF) << 48 | 0x3C3C
                    tail = u << (64 - plan.shift) | (1 << (64 - plan.shift)) - 1
                    check(plan, [Candidate(bucket, 0, height >> 16, tail, rest, bool(v % 2))])
