from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dplinear.arguments import ArgumentTypeError, Real
from dplinear.noise import discrete, fixed_point, inversion, simulation
from dplinear.noise.discrete import Integers, Precision
from dplinear.noise.entropy import Entropy, system, words
from refusals import refused

from .laws import (
    FALSE_ALARM,
    Reference,
    bins,
    counts,
    difference,
    gaussian_tail,
    laplace_tail,
    misfit,
)

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

SCALES = [
    Fraction(1, 10),
    Fraction(1, 2),
    Fraction(1),
    Fraction(37, 11),
    Fraction(16),
    Fraction(31),
    Fraction(32),
    Fraction(1000),
    Fraction(12345, 7),
    Fraction(2**20),
    Fraction(2**33 + 1, 3),
    Fraction(2**50),
    Fraction(2**60),
]
COARSE = Precision(guide_bits=3, table_bits=5, slack=2**30)
MIDDLING = Precision(guide_bits=6, table_bits=10, slack=2**26)


def check_law(drawn: Integers, tail: Callable[[int], mpmath.mpf]) -> None:
    edges, masses = bins(tail, drawn.size)
    assert misfit(counts(drawn, edges), masses) > FALSE_ALARM


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_laplace_has_the_exact_law(scale: Fraction) -> None:
    draws = 10**5 if scale > 2**55 else 10**6
    check_law(discrete.laplace(scale, draws), laplace_tail(scale))


@pytest.mark.parametrize("scale", [s for s in SCALES if s <= 2**50], ids=str)
def test_gaussian_has_the_exact_law(scale: Fraction) -> None:
    variance = scale**2
    check_law(discrete.gaussian(variance, 10**6), gaussian_tail(variance))


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(1, 40), Fraction(29, 3), 2 * 10**4])
def test_gaussian_takes_variances_that_are_no_squares(variance: Fraction) -> None:
    check_law(discrete.gaussian(variance, 10**6), gaussian_tail(Fraction(variance)))


@pytest.mark.long
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(37, 11), Fraction(1000), Fraction(2**40)])
def test_laws_hold_in_long_runs(scale: Fraction) -> None:
    def seen(draw: Callable[[], Integers], tail: Callable[[int], mpmath.mpf]) -> float:
        edges, masses = bins(tail, 10**8, most=1000)
        total = np.sum([counts(draw(), edges) for _ in range(100)], axis=0)
        return misfit(total, masses)

    variance = scale**2
    assert seen(lambda: discrete.laplace(scale, 10**6), laplace_tail(scale)) > FALSE_ALARM
    assert seen(lambda: discrete.gaussian(variance, 10**6), gaussian_tail(variance)) > FALSE_ALARM


@pytest.mark.parametrize("precision", [COARSE, MIDDLING], ids=["coarse", "middling"])
@pytest.mark.parametrize(
    "scale", [Fraction(1, 2), Fraction(37, 11), Fraction(100), Fraction(2**60)]
)
def test_the_law_does_not_depend_on_the_precision_of_the_fast_path(
    scale: Fraction, precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = []
    exactly = discrete._exactly

    def counted(
        plan: discrete.Plan, prefix: int, height: int, tail: int, entropy: Entropy
    ) -> int | None:
        decided.append(exactly(plan, prefix, height, tail, entropy))
        return decided[-1]

    monkeypatch.setattr(discrete, "_exactly", counted)
    draws = 20_000
    drawn = discrete._draw(discrete.laplace_plan(scale, precision), (draws,), system())
    check_law(drawn, laplace_tail(scale))
    if scale <= 2**50:
        variance = scale**2
        drawn = discrete._draw(discrete.gaussian_plan(variance, precision), (draws,), system())
        check_law(drawn, gaussian_tail(variance))
    assert len(decided) > draws / 200  # the exact path was really taken


class Scripted:
    """Bits that follow a given number of `length` bits from a given place, then zeros."""

    simulated = True

    def __init__(self, number: int, length: int, place: int) -> None:
        self._number, self._length, self._place = number, length, place

    def bits(self, count: int) -> int:
        self._place += count
        shift = self._length - self._place
        number = self._number >> shift if shift >= 0 else self._number << -shift
        return number & ((1 << count) - 1)

    def fill(self, words: NDArray[np.uint64]) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("known", [1, 8, 32])
@pytest.mark.parametrize("gamma", [Fraction(1, 3), Fraction(1, 10**6), Fraction(5)])
def test_exact_comparisons_decide_at_any_depth(gamma: Fraction, known: int) -> None:
    with mpmath.workprec(600):
        floor = int(mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator) * 2**500)
    for number, expected in ((floor - 1, True), (floor + 1, False)):
        verdict = inversion.below(
            lambda bits: inversion.exponential(gamma, bits),
            number >> (500 - known),
            known,
            Scripted(number, 500, known),
        )
        assert verdict is expected


@pytest.mark.parametrize("known", [5, 64])
@pytest.mark.parametrize(("rate", "power"), [(Fraction(1, 3), 1), (Fraction(2, 7), 2)])
def test_exact_inversions_decide_at_any_depth(rate: Fraction, power: int, known: int) -> None:
    with mpmath.workprec(600):
        ratio = mpmath.mpf(rate.numerator) / rate.denominator
        masses = [mpmath.exp(-ratio * v**power) for v in range(1300)]
        total = mpmath.fsum(masses)
        floors = [int(mpmath.fsum(masses[i + 1 :]) / total * 2**500) for i in range(30)]
    for i, floor in enumerate(floors):
        for number, expected in ((floor - 1, i + 1), (floor + 1, i)):
            if number < 2**400:
                continue
            scripted = Scripted(number, 500, known)
            prefix = number >> (500 - known)
            assert inversion.invert(rate, power, prefix, known, scripted) == expected


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(33), Fraction(50), Fraction(2**30 + 7, 3)])
@pytest.mark.parametrize("power", [1, 2])
def test_the_fast_verdicts_are_true(scale: Fraction, power: int) -> None:
    # Every verdict of the fast path against the numbers themselves, at the 16 and 13 bits it saw.
    make = discrete.laplace_plan if power == 1 else discrete.gaussian_plan
    plan = make(scale**power, discrete.FINE)
    count = 400_000
    halves = words(system(), count // 2).view(np.uint16).reshape(2, -1)
    bucket = halves[0] & np.uint16(2**13 - 1)
    bits = discrete.Bits(
        bucket=bucket,
        minus=np.zeros(count, np.uint16),
        height=halves[1],
        tail=words(system(), count),
        value=plan.guide.take(bucket),
    )
    refused, rest = discrete.settle(plan, bits, system())
    fast = np.ones(count, bool)
    fast[[open_.place for open_ in rest]] = False

    v = bits.value.astype(float)
    survival = plan.thresholds[::-1].astype(float) / 2**64
    survival = np.concatenate([[1.0], survival, [0.0]])
    x = bucket / 2**13
    assert (x < survival[bits.value] + 1e-12)[fast].all()
    assert (x + 2**-13 > survival[bits.value + 1] - 1e-12)[fast].all()

    u = (bits.tail >> np.uint64(64 - plan.shift)) / 2**plan.shift if plan.shift else np.zeros(count)
    chance = np.exp(-float(plan.rate) * u * (2 * v + u if power == 2 else 1))
    height = halves[1] / 2**16
    assert (height < chance + 1e-12)[fast & ~refused].all()
    assert (height + 2**-16 > chance - 1e-12)[fast & refused].all()


@pytest.mark.parametrize("scale", [Fraction(32), Fraction(63, 2), Fraction(2**49 + 1, 3)])
def test_the_tables_of_exponents_bound_them(scale: Fraction) -> None:
    laplace = discrete.laplace_plan(scale, discrete.FINE)
    gaussian = discrete.gaussian_plan(scale**2, discrete.FINE)
    for plan in (laplace, gaussian):
        cell = 1 << plan.shift
        for v in range(0, len(plan.thresholds) + 1, 7):
            for u in {0, cell // 3, cell - 1}:
                gamma = plan.exponent(v, u)
                m = v * cell + u
                power = plan.power
                whole = Fraction(m) / scale if power == 1 else Fraction(m * m) / (2 * scale**2)
                assert whole == plan.rate * v**power + gamma
                if plan.shift:
                    assert gamma * cell <= Fraction(int(plan.steepest[v]), 2**16) * u
                    part = np.array([(u << 32) >> plan.shift], np.uint64)
                    g = fixed_point.exponent(part, plan.linear[v : v + 1], plan.square)
                    assert int(g[0]) <= gamma * 2**32 <= int(g[0]) + 6


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_low_bits_are_uniform_at_large_scales(law: str) -> None:
    drawn = draw(law, 2**40, 2 * 10**5)
    for start in (0, 1, 4, 8, 16, 24):
        seen = np.bincount(drawn >> start & 0xFF, minlength=256)
        assert misfit(seen, [1 / 256] * 256) > FALSE_ALARM


@pytest.mark.parametrize("scale", [1, 20, 1000, 2**40])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_signs_are_fair_and_neighbours_independent(law: str, scale: int) -> None:
    drawn = draw(law, scale, 10**6)
    positive, negative = int((drawn > 0).sum()), int((drawn < 0).sum())
    assert stats.binomtest(positive, positive + negative).pvalue > FALSE_ALARM
    cuts = np.quantile(drawn, [0.1, 0.3, 0.5, 0.7, 0.9], method="nearest")
    cells = np.searchsorted(np.unique(cuts), drawn, side="right")
    for lag in (1, 2, discrete.CHUNK):
        table = np.zeros((6, 6))
        np.add.at(table, (cells[:-lag], cells[lag:]), 1)
        table = table[table.any(axis=1)][:, table.any(axis=0)]
        assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(37, 11), Fraction(50)], ids=str)
def test_agrees_with_the_reference_of_canonne_kamath_and_steinke(scale: Fraction) -> None:
    reference = Reference(system())
    ours = discrete.laplace(scale, 10**5)
    theirs = np.array([reference.laplace(scale) for _ in range(8000)])
    assert difference(integers(ours), theirs) > FALSE_ALARM
    ours = discrete.gaussian(scale**2, 10**5)
    theirs = np.array([reference.gaussian(scale**2) for _ in range(4000)])
    assert difference(integers(ours), theirs) > FALSE_ALARM


@pytest.mark.oracle
@pytest.mark.parametrize("scale", [0.5, 3.75, 1000.0])
def test_agrees_with_opendp(scale: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = dp.m.make_laplace(*space, scale=scale)([0] * 40_000)
    assert difference(integers(discrete.laplace(scale, 10**6)), np.array(theirs)) > FALSE_ALARM
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    theirs = dp.m.make_gaussian(*space, scale=scale)([0] * 40_000)
    ours = discrete.gaussian(Fraction(scale) ** 2, 10**6)
    assert difference(integers(ours), np.array(theirs)) > FALSE_ALARM


def test_wide_draws_keep_every_bit() -> None:
    drawn = discrete.laplace(2**60, 10**5)
    assert drawn.dtype == np.object_
    assert all(type(y) is int for y in drawn)
    assert max(abs(y) for y in drawn) >= 2**63  # misses with probability exp(-33)
    seen = np.bincount([y & 0xFF for y in drawn if abs(y) >= 2**61], minlength=256)
    assert misfit(seen, [1 / 256] * 256) > FALSE_ALARM
    assert discrete.laplace(2**40, 10).dtype == np.int64


@pytest.mark.parametrize(("size", "shape"), [(0, (0,)), (5, (5,)), ((), ()), ((2, 3), (2, 3))])
def test_sizes(size: int | tuple[int, ...], shape: tuple[int, ...]) -> None:
    assert discrete.laplace(2, size).shape == shape
    assert discrete.gaussian(2, size).shape == shape


def test_numbers_stand_for_their_exact_value() -> None:
    def from_seed(scale: Real) -> list[int]:
        return list(discrete.laplace(scale, 1000, entropy=simulation.entropy(3)))

    assert from_seed(2.5) == from_seed(Fraction(5, 2)) == from_seed(np.float64(2.5))
    assert from_seed(7) == from_seed(7.0) == from_seed(int(np.int64(7)))


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 0.001, Fraction(1, 10**30)])
def test_tiny_scales_draw_zeros(scale: float) -> None:
    assert not discrete.laplace(scale, 1000).any()  # misses with probability below exp(-990)
    assert not discrete.gaussian(scale, 1000).any()


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 0.0, -2.5, Fraction(-1, 3)])
def test_scales_out_of_range(scale: float) -> None:
    with refused("scale", "discrete.laplace"):
        discrete.laplace(scale, 3)
    with refused("variance", "discrete.gaussian"):
        discrete.gaussian(scale, 3)


@pytest.mark.parametrize("scale", ["1", None, True, 1j, [1.0], b"1"])
def test_scales_of_the_wrong_type(scale: float) -> None:
    with refused("scale", "discrete.laplace", kind=ArgumentTypeError):
        discrete.laplace(scale, 3)
    with refused("variance", "discrete.gaussian", kind=ArgumentTypeError):
        discrete.gaussian(scale, 3)


def test_scales_beyond_the_limits() -> None:
    with refused("scale", "discrete.laplace", "at most 2^60"):
        discrete.laplace(2**60 + 1, 3)
    with refused("variance", "discrete.gaussian", "at most 2^100"):
        discrete.gaussian(2**100 + 1, 3)
    with pytest.raises(ValueError, match="must be"):
        discrete.gaussian(10**400, 3)


@pytest.mark.parametrize("size", [1.5, "3", True, None, (2, 2.0), [2, 3], (2, True)])
def test_sizes_of_the_wrong_type(size: int) -> None:
    with refused("size", "discrete.laplace", kind=ArgumentTypeError):
        discrete.laplace(1, size)


def test_sizes_out_of_range() -> None:
    with refused("size", "discrete.gaussian"):
        discrete.gaussian(1, (3, -1))


@settings(max_examples=60, deadline=None)
@given(st.fractions(min_value=Fraction(1, 1000), max_value=2**60), st.integers(0, 40))
def test_every_rational_scale_draws(scale: Fraction, size: int) -> None:
    drawn = discrete.laplace(scale, size)
    assert drawn.shape == (size,)
    bound = 60 * scale + 1  # beyond with probability below exp(-60) a draw
    assert all(abs(int(y)) <= bound for y in drawn)
    assert all(
        abs(int(y)) <= bound for y in discrete.gaussian(min(scale**2, Fraction(2**100)), size)
    )


@settings(max_examples=200, deadline=None)
@given(st.fractions(min_value=0, max_value=200), st.integers(1, 300))
def test_enclosures_of_the_exponential_hold(x: Fraction, bits: int) -> None:
    low, high = inversion.exponential(x, bits)
    with mpmath.workprec(bits + 400):
        exact = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
        assert low <= exact <= high
    assert high - low <= 2


@pytest.mark.parametrize("bits", [5, 64, 128])
@pytest.mark.parametrize("rate", [Fraction(1, 31), Fraction(3, 50), Fraction(7, 2), Fraction(80)])
@pytest.mark.parametrize("power", [1, 2])
def test_survival_tables_enclose(rate: Fraction, power: int, bits: int) -> None:
    table = inversion.survival(rate, power, bits)[::-1]
    with mpmath.workprec(bits + 100):
        last = int(mpmath.ceil((3.0 * bits / float(rate)) ** (1 / power))) + 300
        masses = [mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator * v**power)
                  for v in range(last)]  # fmt: skip
        total = mpmath.fsum(masses)
        tail = total
        for i in range(len(table) + 3):
            tail -= masses[i]
            floor = table[i] if i < len(table) else 0
            assert floor <= tail / total * 2**bits + mpmath.mpf(2) ** -40
            assert tail / total * 2**bits <= floor + 2


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 2**64 - 1),
    st.fractions(min_value=0, max_value=Fraction(15, 16)),
    st.fractions(min_value=0, max_value=Fraction(1, 17)),
)
def test_fixed_point_bounds_hold(tail: int, a: Fraction, b: Fraction) -> None:
    x = Fraction(tail, 2**64)
    gamma = a * x + b * x * x
    if gamma >= 1:
        return
    g = fixed_point.exponent(
        np.array([tail >> 32], np.uint64),
        np.array([int(a * 2**32)], np.uint64),
        np.uint64(int(b * 2**32)),
    )
    assert int(g[0]) <= gamma * 2**32 <= int(g[0]) + 6
    p = int(fixed_point.scaled_exponential(g)[0])
    low, high = inversion.exponential(gamma, 100)
    assert (p - 7) << 68 <= low
    assert high <= (p + 3) << 68


def test_the_table_of_exponentials_is_rounded_down_by_less_than_one() -> None:
    for j, entry in enumerate(fixed_point._coarse()):
        exact = mpmath.exp(-mpmath.mpf(j) / 1024) * 2**32
        assert int(entry) <= exact <= int(entry) + 1


@pytest.mark.parametrize("scale", [Fraction(32), Fraction(63), Fraction(64), Fraction(2**60)])
def test_the_exponents_fit_their_words(scale: Fraction) -> None:
    plans = [discrete.laplace_plan(scale, discrete.FINE)]
    if scale < 2**50:
        plans.append(discrete.gaussian_plan(scale**2, discrete.FINE))
    for plan in plans:
        assert plan.steepest.max() < 2**16
        assert plan.linear.max() + plan.square < 2**32
        assert len(plan.thresholds) < int(discrete._OPEN)


def draw(law: str, scale: int, size: int) -> NDArray[np.int64]:
    drawn = discrete.laplace(scale, size) if law == "laplace" else discrete.gaussian(scale**2, size)
    return integers(drawn)


def integers(drawn: Integers) -> NDArray[np.int64]:
    assert drawn.dtype == np.int64
    return np.asarray(drawn, np.int64)


def test_too_few_guard_bits_are_noticed_and_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    rate, exactly, guards = Fraction(3, 7), inversion._survival, []
    wanted = inversion.survival(rate, 2, 64)

    def short(rate: Fraction, power: int, bits: int, guard: int) -> tuple[int, ...] | None:
        guards.append(guard)
        return exactly(rate, power, bits, guard - 46)

    monkeypatch.setattr(inversion, "_survival", short)
    inversion.survival.cache_clear()
    found = inversion.survival(rate, 2, 64)
    inversion.survival.cache_clear()
    assert guards == [47, 94]
    assert len(found) == len(wanted)
    # Two enclosures of the same numbers, each at most 2 wide.
    assert max(abs(a - b) for a, b in zip(found, wanted, strict=True)) <= 2


def test_a_law_too_flat_for_its_precision_has_no_table() -> None:
    assert inversion._survival(Fraction(1, 2**80), 1, 8, 20) is None
