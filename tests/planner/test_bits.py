"""The table of bits beside μ, (ε, δ) and (0, δ): every figure against its definition."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from dplinear.noise import simulation
from dplinear.planner.bits import SketchMixture, compare_guarantees
from refusals import refused

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

FALSE_ALARM = 1e-6


def normal_delta(epsilon: float, mu: float) -> float:
    with mpmath.workdps(40):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return float(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))


@pytest.mark.parametrize("bits", [0.01, 0.5, 1.5])
def test_additive_noise_is_the_normal_law_it_says(bits: float) -> None:
    found = compare_guarantees(bits, delta=1e-5).additive
    assert found.sigma == pytest.approx((4**bits - 1) ** -0.5)
    assert found.gaussian is not None
    assert found.total is not None
    mu = 2 * math.sqrt(4**bits - 1)
    assert found.gaussian.mu == pytest.approx(mu)
    assert normal_delta(found.approximate.epsilon, mu) == pytest.approx(1e-5, rel=1e-6)
    assert found.total.delta == pytest.approx(normal_delta(0.0, mu))


def test_bits_alone_say_less_and_nothing_from_one_bit_on() -> None:
    found = compare_guarantees(0.5)
    for each in (found.additive, found.sketch):
        assert each.from_bits is not None
        assert each.total is not None
        assert each.total.delta < each.from_bits.delta
        share = (1 + each.from_bits.delta) / 2
        entropy = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
        assert 1 - entropy == pytest.approx(0.5)
    assert compare_guarantees(1.0).sketch.from_bits is None
    assert "no theorem" in str(compare_guarantees(1.0))
    assert compare_guarantees(8.0).sketch.total is None


@pytest.mark.heavy
@pytest.mark.parametrize("rows", [1, 10, 1000])
def test_a_sketch_is_a_mixture_of_normal_laws_that_the_figure_bounds(rows: int) -> None:
    # δ(ε) = E[δ of μ = 2‖s‖/σ], integrated here over the quantiles of ‖s‖² at their middles.
    bits, delta = 0.3, 1e-2
    found = compare_guarantees(bits, delta=delta, rows=rows).sketch
    variance = rows / (4**bits - 1)
    assert found.sigma == pytest.approx(math.sqrt(variance))
    grid = np.linspace(0, 1, 40_001)
    mu = 2 * np.sqrt(stats.chi2(rows).isf((grid[1:] + grid[:-1]) / 2) / variance)
    for epsilon, stated in (
        (found.approximate.epsilon, delta),
        (0.0, found.total.delta if found.total else 1.0),
    ):
        law = stats.norm
        above = law.cdf(mu / 2 - epsilon / mu)
        below = law.cdf(-mu / 2 - epsilon / mu) * math.exp(epsilon)
        exact = float((above - below).mean())
        assert exact <= stated
        assert exact > 0.5 * stated


@pytest.mark.heavy
def test_a_real_sketch_is_told_apart_no_better_than_stated() -> None:
    # The attacker who knows the column s of S and all else, by the likelihood ratio at ε = 0.
    bits, rows, draws = 0.5, 5, 40_000
    stated = compare_guarantees(bits, rows=rows).sketch.total
    assert stated is not None
    source = simulation.generator(1)
    sigma = math.sqrt(rows / (4**bits - 1))
    s = source.standard_normal((draws, rows))
    noise = sigma * source.standard_normal((draws, rows))
    # Cell 1 against −1: s·x + noise leans towards s or away from it.
    right = ((s + noise) * s).sum(axis=1) > 0
    advantage = 2 * right.mean() - 1
    assert advantage < stated.delta + 2 * stats.norm.isf(FALSE_ALARM) * 0.5 / math.sqrt(draws)
    assert advantage > 0.5 * stated.delta


@pytest.mark.parametrize("rows", [1, 50, 10_000])
def test_the_length_of_a_column_is_rounded_up_in_every_step(rows: int) -> None:
    mixture = SketchMixture.of(1.0, rows, 1e-15)
    assert math.fsum((*mixture.weights, mixture.tail)) == pytest.approx(1.0, abs=1e-14)
    for weight, mu in list(zip(mixture.weights, mixture.mus, strict=True))[::7]:
        with mpmath.workdps(40):
            half = (mpmath.mpf(mu) / 2) ** 2 / 2
            beyond = mpmath.gammainc(mpmath.mpf(rows) / 2, half, regularized=True)
        place = mixture.mus.index(mu)
        left = math.fsum((*mixture.weights[place + 1 :], mixture.tail))
        assert left * (1 - 1e-3) < beyond <= left * (1 + 1e-12)
        assert weight > 0


def test_what_is_beyond_the_steps_is_not_protected_at_all() -> None:
    mixture = SketchMixture((0.75,), (0.1,), 0.25)
    assert mixture.delta(0.0) == pytest.approx(0.25 + 0.75 * normal_delta(0.0, 0.1))
    assert mixture.delta(5.0) == pytest.approx(0.25)
    assert mixture.epsilon(0.5) == 0.0


def test_arguments_are_checked() -> None:
    with refused("bits", "compare_guarantees"):
        compare_guarantees(0.0)
    with refused("bits", "compare_guarantees"):
        compare_guarantees(9.0)
    with refused("delta", "compare_guarantees"):
        compare_guarantees(0.5, delta=0.0)
    with refused("rows", "compare_guarantees"):
        compare_guarantees(0.5, rows=0)
    with refused("rows", "compare_guarantees"):
        compare_guarantees(0.5, rows=2**64)
    with refused("delta", "compare_guarantees"):
        compare_guarantees(0.5, delta=1e-305)
    assert compare_guarantees(0.5, delta=1e-290).sketch.approximate.delta == 1e-290


def test_it_prints_as_a_table() -> None:
    shown = str(compare_guarantees(0.5, rows=200))
    for words in ("sketch of 200 rows", "no theorem", "μ = 2", "δ = 0.6827", "(ε, 1e-06)-DP"):
        assert words in shown
