"""Calibration: the printed oracle values, and the private side at every one of many settings."""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from flint import arb

from dplinear.noise.simulation import generator
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, Neighbours, PureDP, calibrate
from dplinear.privacy.profiles import GridGaussian
from dplinear.privacy.profiles.wishart import best_split

from . import oracles

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

RELATIVE = 1e-9  # how much less noise may at most have done
ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(0.1, "0.0275446502438276"), (1, "0.236704380663436"), (4, "0.837858757089998")],
)
def test_gaussian_oracle_values(epsilon: float, mu: str) -> None:
    sigma = calibrate.gaussian(ApproxDP(epsilon, 1e-6), 1.0)
    assert f"{1 / sigma:.15g}" == mu


@pytest.mark.parametrize(
    ("epsilon", "rows", "neighbours", "ratio", "ridge"),
    [
        (0.1, 80, ADD_REMOVE, ".0036437797921325", "274.440294707"),
        (1, 80, ADD_REMOVE, ".030856241840618", "32.4083537187"),
        (1, 500, ADD_REMOVE, ".013821278134376", "72.3522086943"),
        (2, 40, ADD_REMOVE, ".07699902924007", "12.9871767199"),
        (1, 80, REPLACE, ".02556214465", "39.1203482"),
        (0.1, 80, REPLACE, ".002977610577", "335.839753"),
    ],
)
def test_sketch_oracle_values(
    epsilon: float, rows: int, neighbours: Neighbours, ratio: str, ridge: str
) -> None:
    w2 = calibrate.sketch(ApproxDP(epsilon, 1e-6), rows, 1.0, neighbours)
    assert f"{w2:.{len(ridge) - 1}g}" == ridge
    assert f"{1 / w2:.{len(ratio) - 1}f}".lstrip("0") == ratio
    assert calibrate.inverse_wishart(ApproxDP(epsilon, 1e-6), rows, 1.0, neighbours) == w2


@pytest.mark.parametrize(
    ("epsilon", "dimension", "neighbours", "degrees"),
    [
        (0.1, 40, ADD_REMOVE, 883),
        (0.5, 10, ADD_REMOVE, 95),
        (1, 5, ADD_REMOVE, 47),
        (1, 5, REPLACE, 62),
        (0.5, 10, REPLACE, 162),
    ],
)
def test_additive_wishart_oracle_values(
    epsilon: float, dimension: int, neighbours: Neighbours, degrees: int
) -> None:
    found = calibrate.additive_wishart(ApproxDP(epsilon, 1e-6), dimension, 3.0, neighbours, 3.0)
    assert found == (degrees, 3.0)


def random_guarantees(seed: int, count: int) -> list[tuple[ApproxDP, int]]:
    """Return guarantees over all of ε ∈ [1e-3, 1e6], δ ∈ [1e-12, 0.1], and degrees up to 1e7."""
    draw = generator(seed)
    return [
        (
            ApproxDP(10 ** draw.uniform(-3, 6), 10 ** draw.uniform(-12, -1)),
            int(10 ** draw.uniform(0, 7)),
        )
        for _ in range(count)
    ]


def assert_tight(delta: float, at_noise: Any, with_less: Any) -> None:
    """Never over δ, and over it with less noise."""
    assert at_noise <= arb(delta)
    assert with_less > arb(delta)


def blocks(count: int, *, quick: int) -> list[Any]:
    """Return seeds of blocks; those after the first few are for the long tests."""
    late = [pytest.param(block, marks=pytest.mark.long) for block in range(quick, count)]
    return [*range(quick), *late]


@pytest.mark.heavy
@pytest.mark.parametrize("block", range(10))
def test_gaussian_never_overshoots(block: int) -> None:
    for guarantee, _ in random_guarantees(100 + block, 50):
        epsilon = guarantee.epsilon
        sigma = calibrate.gaussian(guarantee, 1.0)
        mu = 1 / arb(sigma)  # the ratio of the returned float, not a rounding of it
        at = oracles.gaussian(epsilon, mu)
        assert_tight(guarantee.delta, at, oracles.gaussian(epsilon, mu * (1 + RELATIVE)))


@pytest.mark.parametrize("block", range(10))
def test_laplace_never_overshoots(block: int) -> None:
    for guarantee, _ in random_guarantees(200 + block, 50):
        ratio = 1 / arb(calibrate.laplace(guarantee, 1.0))
        at = oracles.laplace(guarantee.epsilon, ratio)
        less = oracles.laplace(guarantee.epsilon, ratio * (1 + RELATIVE))
        assert_tight(guarantee.delta, at, less)


@pytest.mark.heavy
@pytest.mark.parametrize("block", blocks(10, quick=3))
def test_sketch_never_overshoots(block: int) -> None:
    for guarantee, rows in random_guarantees(300 + block, 50):
        ratio = 1 / arb(calibrate.sketch(guarantee, rows, 1.0))
        at = oracles.sketch(guarantee.epsilon, rows, ratio)
        less = oracles.sketch(guarantee.epsilon, rows, ratio * (1 + RELATIVE))
        assert_tight(guarantee.delta, at, less)


@pytest.mark.heavy
@pytest.mark.parametrize("block", blocks(10, quick=3))
def test_additive_wishart_never_overshoots(block: int) -> None:
    for guarantee, degrees in random_guarantees(400 + block, 50):
        k, tau = calibrate.additive_wishart(guarantee, 3, 1.0, most_degrees=degrees + 5)
        assert k == degrees + 5
        ratio = 1 / arb(tau) ** 2
        at = oracles.wishart(guarantee.epsilon, k - 2, ratio)
        less = oracles.wishart(guarantee.epsilon, k - 2, ratio * (1 + RELATIVE))
        assert_tight(guarantee.delta, at, less)


@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 1e6])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 0.5])
@pytest.mark.parametrize("degrees", [3, 40, 10_000_000])
def test_the_ends_of_the_range_are_private_too(epsilon: float, delta: float, degrees: int) -> None:
    guarantee = ApproxDP(epsilon, delta)
    ratio = 1 / arb(calibrate.sketch(guarantee, degrees, 1.0))
    assert oracles.sketch(epsilon, degrees, ratio) <= arb(delta)
    for neighbours in (ADD_REMOVE, REPLACE):
        k, tau = calibrate.additive_wishart(guarantee, 1, 1.0, neighbours, most_degrees=degrees)
        assert oracles.wishart(epsilon, k, 1 / arb(tau) ** 2) <= arb(delta)
    assert calibrate.sketch(guarantee, degrees, 1.0, REPLACE) >= 1 / float(ratio)


@pytest.mark.heavy
@pytest.mark.parametrize("block", range(4))
def test_least_degrees_are_least(block: int) -> None:
    draw = generator(500 + block)
    for _ in range(20):
        guarantee = ApproxDP(10 ** draw.uniform(-2.5, 1), 10 ** draw.uniform(-12, -1))
        scale = 10 ** draw.uniform(-0.4, 0.5)
        k, tau = calibrate.additive_wishart(guarantee, 4, 1.0, scale=scale)
        assert tau == scale
        ratio = 1 / arb(scale) ** 2
        assert oracles.wishart(guarantee.epsilon, k - 3, ratio) <= arb(guarantee.delta)
        if k > 6:
            assert oracles.wishart(guarantee.epsilon, k - 4, ratio) > arb(guarantee.delta)


def check_sketch_replace(seed: int, count: int, most_rows: int) -> None:
    for guarantee, rows in random_guarantees(seed, count):
        if rows > most_rows:
            continue
        ratio = 1 / calibrate.sketch(guarantee, rows, 1.0, REPLACE)
        at = oracles.sketch_replace(guarantee.epsilon, rows, ratio * (1 - 2.0**-52))
        less = oracles.sketch_replace(guarantee.epsilon, rows, ratio * (1 + RELATIVE))
        assert_tight(guarantee.delta, at, less)


def check_wishart_replace(seed: int, count: int, most_degrees: int) -> None:
    for guarantee, degrees in random_guarantees(seed, count):
        if degrees > most_degrees:
            continue
        m, epsilon = degrees + 3, guarantee.epsilon
        largest = calibrate._wishart_ratio(guarantee, m, REPLACE)
        for factor, private in ((1.0, True), (1 + RELATIVE, False)):
            ratio = factor * largest
            t = best_split(epsilon, m / 2, ratio / 2).fraction * min(epsilon, ratio / 2)
            bound = oracles.wishart_replace(epsilon, m, ratio, t)
            assert (bound <= arb(guarantee.delta)) is private


@pytest.mark.heavy
@pytest.mark.parametrize("block", blocks(4, quick=1))
def test_replace_never_overshoots_in_a_sample(block: int) -> None:
    check_sketch_replace(600 + block, 15, 100_000)
    check_wishart_replace(700 + block, 15, 100_000)


@pytest.mark.long
@pytest.mark.parametrize("block", range(50))
def test_replace_never_overshoots(block: int) -> None:
    check_sketch_replace(1000 + block, 10, 10_000_000)
    check_wishart_replace(2000 + block, 10, 10_000_000)


def off_diagonal(guarantee: ApproxDP, neighbours: Neighbours, cap: int) -> float:
    k, tau = calibrate.additive_wishart(guarantee, 10, 1.0, neighbours, most_degrees=cap)
    assert k <= cap
    return tau**2 * math.sqrt(k)


@pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("guarantee", [ApproxDP(0.1, 1e-6), ApproxDP(1, 1e-9), ApproxDP(50, 1e-3)])
def test_a_higher_cap_on_degrees_never_means_more_noise(
    guarantee: ApproxDP, neighbours: Neighbours
) -> None:
    noise = [off_diagonal(guarantee, neighbours, cap) for cap in (12, 20, 50, 200, 1000, 20_000)]
    for before, after in itertools.pairwise(noise):
        assert after <= before * (1 + 1e-6)


def test_many_degrees_approach_gaussian_noise() -> None:
    limit = calibrate.gaussian(ApproxDP(0.1, 1e-6), 1.0) / math.sqrt(2)
    noise = off_diagonal(ApproxDP(0.1, 1e-6), ADD_REMOVE, 10_000_000)
    assert noise == pytest.approx(limit, rel=2e-3)


def test_replace_may_be_best_below_the_cap() -> None:
    guarantee = ApproxDP(50, 1e-3)
    k, tau = calibrate.additive_wishart(guarantee, 10, 1.0, REPLACE, most_degrees=20_000)
    assert k < 20_000
    for other in (k // 2, k - k // 20, k + k // 20, 2 * k):
        ratio = calibrate._wishart_ratio(guarantee, other - 9, REPLACE)
        assert math.sqrt(other) / ratio >= tau**2 * math.sqrt(k) * (1 - 1e-9)


def test_other_guarantees_have_closed_forms() -> None:
    assert calibrate.gaussian(GDP(0.5), 3.0) == pytest.approx(6.0, rel=1e-15)
    assert calibrate.gaussian(ZCDP(0.5), 3.0) == pytest.approx(3.0, rel=1e-15)
    # Cells in [−1, 1] move by 2: σ² = 1/(2^{2ε} − 1).
    assert calibrate.gaussian(MIDP(0.5), 2.0) ** 2 == pytest.approx(1.0, rel=1e-14)
    assert calibrate.laplace(PureDP(0.5), 3.0) == pytest.approx(6.0, rel=1e-15)
    loss = 1 / calibrate.laplace(ZCDP(0.1), 1.0)
    assert loss * math.tanh(loss / 2) == pytest.approx(0.1, rel=1e-12)
    assert calibrate.grid_gaussian(ZCDP(0.5), 100.0, 10) == pytest.approx(1e4, rel=1e-14)


def test_noise_scales_with_the_bound() -> None:
    guarantee = ApproxDP(1, 1e-6)
    assert calibrate.sketch(guarantee, 80, 3.0) == pytest.approx(
        9 * calibrate.sketch(guarantee, 80, 1.0), rel=1e-14
    )
    assert calibrate.additive_wishart(guarantee, 5, 3.0)[1] == pytest.approx(
        3 * calibrate.additive_wishart(guarantee, 5, 1.0)[1], rel=1e-14
    )


def test_grid_gaussian_pays_for_its_grid() -> None:
    guarantee = ApproxDP(1, 1e-6)
    fine = math.sqrt(calibrate.grid_gaussian(guarantee, 2.0**40, 1600)) / 2**40
    coarse = math.sqrt(calibrate.grid_gaussian(guarantee, 2.0**14, 1600)) / 2**14
    continuous = calibrate.gaussian(guarantee, 1.0)
    assert fine == pytest.approx(continuous, rel=1e-9)
    assert coarse > continuous * (1 + 1e-6)
    variance = calibrate.grid_gaussian(guarantee, 2.0**14, 1600)
    assert GridGaussian(2.0**14 / math.sqrt(variance), 1600 / variance).delta(1) <= 1e-6


@pytest.mark.parametrize(
    ("epsilon", "mu"),
    [(0.1, 0.0275446502438276), (1, 0.236704380663436), (4, 0.837858757089998)],
)
def test_chain_oracle_values(epsilon: float, mu: float) -> None:
    """On a grid so fine that it costs nothing, the budget is that of continuous noise."""
    square = calibrate.grid_chain(ApproxDP(epsilon, 1e-6), 1e-30)
    assert mu * (1 - 1e-13) < math.sqrt(square) <= mu * (1 + 2e-15)


@pytest.mark.parametrize("rho", [1e-12, 0.1, 1 / 3, 1e9])
def test_concentrated_chains_are_exact_on_any_grid(rho: float) -> None:
    for inverse in (1e-20, 1e-3):
        assert calibrate.grid_chain(ZCDP(rho), inverse) == 2 * Fraction(rho)


def grid_delta(epsilon: float, mu: Any, inverse: float) -> Any:
    """The lemma's bound, as a ball."""
    cost = (1 + arb(epsilon).exp()) * arb("0.0203") * arb(inverse)
    return oracles.gaussian(epsilon, mu) + cost


@pytest.mark.heavy
@pytest.mark.parametrize("block", range(4))
def test_chains_never_overshoot(block: int) -> None:
    draw = generator(800 + block)
    for _ in range(50):
        guarantee = ApproxDP(10 ** draw.uniform(-3, 1), 10 ** draw.uniform(-12, -1))
        epsilon, delta = guarantee.epsilon, guarantee.delta
        # The grid takes up to a tenth of δ, so that the lemma is the better bound.
        inverse = delta * 10 ** draw.uniform(-8, -1) / (0.0203 * (1 + math.exp(epsilon)))
        mu = Fraction(math.sqrt(calibrate.grid_chain(guarantee, inverse)))
        assert mu**2 == calibrate.grid_chain(guarantee, inverse)
        exact = arb(mu.numerator) / arb(mu.denominator)
        less = grid_delta(epsilon, exact * (1 + RELATIVE), inverse)
        assert_tight(delta, grid_delta(epsilon, exact, inverse), less)


def concentrated_delta(rho: Any, epsilon: float) -> Any:
    """The least of exp((α−1)(αρ−ε))/(α−1)·(1−1/α)^α, by golden section on ln(α−1)."""

    def log_delta(x: Any) -> Any:
        order = 1 + mpmath.exp(x)
        tail = order * mpmath.log1p(-1 / order) - x
        return (order - 1) * (order * rho - epsilon) + tail

    low, high = mpmath.mpf(-20), mpmath.mpf(20)
    golden = (mpmath.sqrt(5) - 1) / 2
    for _ in range(200):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if log_delta(left) < log_delta(right) else (left, high)
    return mpmath.exp(log_delta(low))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (1, 1e-9), (4, 1e-3), (700, 1e-6)])
def test_chains_on_a_coarse_grid_are_concentrated(epsilon: float, delta: float) -> None:
    """Where the grid alone would cost more than δ, the bound is that of zCDP."""
    square = calibrate.grid_chain(ApproxDP(epsilon, delta), 1.0)
    with mpmath.workdps(40):
        rho = mpmath.mpf(square.numerator) / square.denominator / 2
        assert concentrated_delta(rho, epsilon) <= delta * (1 + mpmath.mpf(10) ** -15)
        assert concentrated_delta(rho * (1 + 1e-6), epsilon) > delta


def test_a_chain_of_one_sum_is_that_sum() -> None:
    for guarantee in (ApproxDP(1, 1e-6), ApproxDP(0.01, 1e-9), ZCDP(0.3)):
        variance = calibrate.grid_gaussian(guarantee, 2.0**20, 1600)
        square = calibrate.grid_chain(guarantee, 1600 / variance)
        assert float(square) == pytest.approx(2.0**40 / variance, rel=1e-9)


def test_more_coordinates_never_buy_more() -> None:
    for guarantee in (ApproxDP(1, 1e-6), ApproxDP(8, 1e-3)):
        squares = [calibrate.grid_chain(guarantee, 10.0**power) for power in range(-20, 1)]
        for before, after in itertools.pairwise(squares):
            assert after <= before * (1 + Fraction(1, 10**12))


GOOD = ApproxDP(1, 1e-6)
NAN, INF = math.nan, math.inf


# Arguments of the wrong type on purpose.
anything: Any = lambda value: value  # noqa: E731


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (
            lambda: ApproxDP(NAN, 1e-6),
            ValueError,
            "'epsilon' parameter of ApproxDP must be a finit",
        ),
        (
            lambda: ApproxDP(INF, 1e-6),
            ValueError,
            "'epsilon' parameter of ApproxDP must be a finit",
        ),
        (lambda: ApproxDP(-1, 1e-6), ValueError, "at least 0. Got -1"),
        (lambda: ApproxDP(anything("1"), 1e-6), TypeError, "Got '1' (str)"),
        (lambda: ApproxDP(True, 1e-6), TypeError, "Got True (bool)"),
        (
            lambda: ApproxDP(1, 1),
            ValueError,
            "'delta' parameter of ApproxDP must be in [0, 1). Got 1",
        ),
        (lambda: ApproxDP(1, 2), ValueError, "must be in [0, 1). Got 2."),
        (lambda: ApproxDP(1, NAN), ValueError, "Got nan"),
        (
            lambda: PureDP(0),
            ValueError,
            "'epsilon' parameter of PureDP must be a finite number above",
        ),
        (lambda: PureDP(10**400), ValueError, "'epsilon' parameter of PureDP"),
        (lambda: ZCDP(0), ValueError, "'rho' parameter of ZCDP"),
        (lambda: GDP(-0.5), ValueError, "'mu' parameter of GDP"),
        (lambda: MIDP(anything(None)), TypeError, "'bits' parameter of MIDP"),
        (lambda: calibrate.gaussian(ApproxDP(1, 0), 1.0), ValueError, "with δ above 0"),
        (lambda: calibrate.gaussian(PureDP(1), 1.0), ValueError, "calibrate.laplace"),
        (
            lambda: calibrate.gaussian(anything("1"), 1.0),
            TypeError,
            "'guarantee' parameter of calibrate.gaus",
        ),
        (lambda: calibrate.gaussian(GOOD, 0), ValueError, "'sensitivity' parameter of calibrate.g"),
        (lambda: calibrate.gaussian(GOOD, NAN), ValueError, "Got nan"),
        (lambda: calibrate.gaussian(GOOD, anything("big")), TypeError, "Got 'big' (str)"),
        (lambda: calibrate.gaussian(GOOD, anything(1j)), TypeError, "Got 1j (complex)"),
        (lambda: calibrate.laplace(GDP(1), 1.0), TypeError, "PureDP, ApproxDP or ZCDP"),
        (lambda: calibrate.laplace(GOOD, -1), ValueError, "'sensitivity' parameter of calibrate.l"),
        (
            lambda: calibrate.sketch(GOOD, 0, 1.0),
            ValueError,
            "'rows' parameter of calibrate.sketch",
        ),
        (lambda: calibrate.sketch(GOOD, 2.5, 1.0), TypeError, "an integer in [1, 10000000]"),
        (lambda: calibrate.sketch(GOOD, 10**8, 1.0), ValueError, "an integer in [1, 10000000]"),
        (lambda: calibrate.sketch(GOOD, 80, INF), ValueError, "'bound' parameter"),
        (lambda: calibrate.sketch(GOOD, 80, 1.0, "element"), ValueError, "'add_remove', 'replace'"),
        (lambda: calibrate.sketch(GOOD, 80, 1.0, anything(3)), TypeError, "'neighbours' parameter"),
        (lambda: calibrate.sketch(ZCDP(1), 80, 1.0), TypeError, "ask for ApproxDP"),
        (lambda: calibrate.sketch(ApproxDP(1, 0), 80, 1.0), ValueError, "never pure"),
        (lambda: calibrate.inverse_wishart(GOOD, 0.5, 1.0), ValueError, "'degrees' parameter"),
        (lambda: calibrate.additive_wishart(GOOD, 0, 1.0), ValueError, "'dimension' parameter"),
        (
            lambda: calibrate.additive_wishart(GOOD, anything(3.0), 1.0),
            TypeError,
            "Got 3.0 (float)",
        ),
        (lambda: calibrate.additive_wishart(GOOD, 5, 1.0, scale=0), ValueError, "'scale' param"),
        (
            lambda: calibrate.additive_wishart(GOOD, 5, 1.0, scale=1e-3),
            ValueError,
            "raise the scal",
        ),
        (lambda: calibrate.additive_wishart(GOOD, 5, 1.0, scale=1e-30), ValueError, "Got 1e-30"),
        (lambda: calibrate.additive_wishart(GOOD, 5, 1.0, scale=0.0145), ValueError, "Got 0.0145"),
        (lambda: calibrate.additive_wishart(GOOD, 5, 1.0, scale=1e-300), ValueError, "Got 1e-300"),
        (
            lambda: calibrate.additive_wishart(GOOD, 5, 1.0, most_degrees=6),
            ValueError,
            "an integer in [7, 10000000]",
        ),
        (lambda: calibrate.sketch(ApproxDP(0, 1e-6), 80, 1.0), ValueError, "ε in [0.0001, 1e+06]"),
        (lambda: calibrate.sketch(ApproxDP(1, 0.9), 80, 1.0), ValueError, "δ in [1e-15, 0.5]"),
        (
            lambda: calibrate.additive_wishart(ApproxDP(1, 1e-30), 5, 1.0),
            ValueError,
            "Gaussian and Laplace noise have no such limits",
        ),
        (lambda: calibrate.grid_gaussian(GOOD, 0.1, 10), ValueError, "refine the grid"),
        (lambda: calibrate.grid_gaussian(GDP(1), 100.0, 10), TypeError, "ask for ApproxDP"),
        (lambda: calibrate.grid_chain(GDP(1), 1e-9), TypeError, "ask for ApproxDP"),
        (lambda: calibrate.grid_chain(PureDP(1), 1e-9), ValueError, "never pure"),
        (lambda: calibrate.grid_chain(ApproxDP(1, 0), 1e-9), ValueError, "with δ above 0"),
        (lambda: calibrate.grid_chain(GOOD, 0), ValueError, "'inverse_variance' parameter of cali"),
        (lambda: calibrate.grid_chain(GOOD, NAN), ValueError, "Got nan"),
    ],
)
def test_bad_arguments_get_the_sentence(call: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert sentence in text
    assert text.startswith("The '")
    assert " must be " in text
    assert "Got " in text


@pytest.mark.heavy
def test_laplace_noise_for_zcdp_ends_on_the_private_side() -> None:
    """Whatever ρ, the ε that stands for it must not cost more: ε·tanh(ε/2) ≤ ρ, to 50 digits."""
    with mpmath.workdps(50):
        for rho in (10 ** (step / 40 - 9) for step in range(480)):
            loss = 1 / mpmath.mpf(calibrate.laplace(ZCDP(rho), 1.0))
            cost = loss * mpmath.tanh(loss / 2)
            assert cost <= mpmath.mpf(rho)
            assert cost >= mpmath.mpf(rho) * (1 - mpmath.mpf("1e-12"))
