"""Guarantees are frozen values; conversions exist where a theorem gives them, and only there."""

import dataclasses
import math
from fractions import Fraction

import mpmath
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dplinear.arguments import ArgumentTypeError
from dplinear.privacy import (
    GDP,
    MIDP,
    ZCDP,
    ApproxDP,
    Guarantee,
    Neighbours,
    NoConversionError,
    PureDP,
)
from dplinear.privacy.conversions import zcdp_delta, zcdp_epsilon
from refusals import refused

KINDS = (PureDP, ApproxDP, ZCDP, GDP, MIDP)
ALL: list[Guarantee] = [PureDP(1), ApproxDP(1, 1e-6), ZCDP(0.5), GDP(1), MIDP(0.5)]
ARROWS = {
    (PureDP, ApproxDP),
    (PureDP, ZCDP),
    (PureDP, GDP),
    (PureDP, MIDP),
    (ZCDP, ApproxDP),
    (ZCDP, MIDP),
    (GDP, ApproxDP),
    (GDP, ZCDP),
    (GDP, MIDP),
    (MIDP, ApproxDP),
}


def test_guarantees_are_frozen_and_comparable() -> None:
    assert PureDP(1) == PureDP(1.0)
    assert len({GDP(1), GDP(1.0), GDP(2)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        PureDP(1).epsilon = 2  # type: ignore[misc]
    assert str(ApproxDP(1, 1e-6)) == "ε = 1, δ = 1e-06"
    assert [str(each) for each in ALL[::2]] == ["ε = 1", "ρ = 0.5", "0.5 bits"]
    assert str(GDP(2)) == "μ = 2"


@pytest.mark.parametrize("kind", [PureDP, ZCDP, GDP, MIDP])
def test_numbers_of_any_kind_become_floats(kind: type[PureDP]) -> None:
    whole, exact = kind(2), kind(Fraction(1, 4))  # type: ignore[arg-type]
    assert [type(each) for each in (*vars(whole).values(), *vars(exact).values())] == [float] * 2
    assert vars(exact) == vars(kind(0.25))
    both = ApproxDP(Fraction(1, 4), 0)  # type: ignore[arg-type]
    assert [(type(each), each) for each in vars(both).values()] == [(float, 0.25), (float, 0.0)]
    for bad in (0, -1.0):
        with pytest.raises(ValueError, match=kind.__name__):
            kind(bad)


@pytest.mark.parametrize("guarantee", ALL, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_only_theorems_convert(guarantee: Guarantee, kind: type[PureDP]) -> None:
    if type(guarantee) is kind:
        assert guarantee.to(kind) is guarantee
    elif (type(guarantee), kind) in ARROWS:
        assert type(guarantee.to(kind, delta=1e-6)) is kind
    else:
        with pytest.raises(NoConversionError, match=r"No theorem turns .* into .*\n\nHint: "):
            guarantee.to(kind, delta=1e-6)


def test_conversion_to_approximate_needs_a_delta() -> None:
    with refused("delta", "GDP.to", "given"):
        GDP(1).to(ApproxDP)
    with refused("delta", "ZCDP.to", "in (0, 1)"):
        ZCDP(1).to(ApproxDP, delta=0)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 30.0])
def test_pure_implies_the_concentration_of_randomised_response(epsilon: float) -> None:
    rho = PureDP(epsilon).to(ZCDP).rho
    mpmath.mp.dps = 40
    e = mpmath.mpf(epsilon)
    for order in (1.0001, 1.5, 2, 5, 50, 1000):
        a = mpmath.mpf(order)
        renyi = mpmath.log(mpmath.cosh((a - 0.5) * e) / mpmath.cosh(e / 2)) / (a - 1)
        assert rho * a >= renyi
    assert rho <= epsilon**2 / 2
    assert rho == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 30.0])
def test_pure_implies_the_least_gaussian_trade_off(epsilon: float) -> None:
    # The trade-off of randomised response has its corner at 1/(1+e^ε); G_μ must pass below it.
    mu = arb(PureDP(epsilon).to(GDP).mu)
    corner = 1 / (1 + arb(epsilon).exp())

    def fixed_point(m: arb) -> arb:
        return (m / 2 / arb(2).sqrt()).erfc() / 2

    assert fixed_point(mu) <= corner
    assert fixed_point(mu * (1 - 1e-9)) > corner


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_concentrated_to_approximate_is_the_known_infimum(rho: float, delta: float) -> None:
    epsilon = zcdp_epsilon(rho, delta)
    mpmath.mp.dps = 40

    def bound(order: mpmath.mpf) -> mpmath.mpf:
        exponent = (order - 1) * (order * mpmath.mpf(rho) - mpmath.mpf(epsilon))
        return mpmath.exp(exponent) / (order - 1) * (1 - 1 / order) ** order

    orders = [1 + mpmath.mpf(10) ** (mpmath.mpf(i) / 400) for i in range(-1600, 2400)]
    best = min(bound(a) for a in orders)
    assert best <= delta * (1 + 0.02)  # the grid of orders is that coarse
    assert zcdp_delta(rho, epsilon) <= delta * (1 + 1e-9)
    if epsilon > 0:
        assert zcdp_delta(rho, epsilon * 0.99) > delta


def test_gaussian_is_tighter_through_its_own_profile() -> None:
    direct = GDP(0.5).to(ApproxDP, delta=1e-6).epsilon
    through = GDP(0.5).to(ZCDP).to(ApproxDP, delta=1e-6).epsilon
    assert direct < through


@pytest.mark.parametrize("bits", [1e-6, 1e-3, 0.1, 0.5, 0.99])
def test_mutual_information_to_total_variation_is_exact(bits: float) -> None:
    found = MIDP(bits).to(ApproxDP)
    assert found.epsilon == 0
    mpmath.mp.dps = 40

    def information(delta: mpmath.mpf) -> mpmath.mpf:
        p = (1 + delta) / 2
        return 1 + p * mpmath.log(p, 2) + (1 - p) * mpmath.log(1 - p, 2)

    delta = mpmath.mpf(found.delta)
    assert information(delta) >= bits
    assert information(delta * (1 - mpmath.mpf("1e-9"))) < bits
    assert found.delta <= math.sqrt(2 * bits * math.log(2)) * (1 + 1e-12)


def test_a_whole_bit_says_nothing() -> None:
    with refused("bits", "MIDP.to", hint="one bit already tells two values apart"):
        MIDP(1).to(ApproxDP)


def test_information_from_divergence() -> None:
    assert GDP(1).to(MIDP).bits == pytest.approx(0.5 / math.log(2), rel=1e-14)
    assert ZCDP(0.5).to(MIDP).bits == pytest.approx(0.5 / math.log(2), rel=1e-14)
    assert PureDP(1).to(MIDP).bits == pytest.approx(math.tanh(0.5) / math.log(2), rel=1e-14)


def test_groups() -> None:
    assert PureDP(0.5).group(2) == PureDP(1)
    assert ZCDP(0.5).group(3) == ZCDP(4.5)
    assert GDP(0.5).group(2) == GDP(1)
    pair = ApproxDP(0.5, 1e-6).group(2)
    assert pair.epsilon == 1
    assert pair.delta == pytest.approx(1e-6 * (1 + math.exp(0.5)), rel=1e-12)
    assert pair.delta >= 1e-6 * (1 + math.exp(0.5))
    with refused("size", "ApproxDP.group"):
        ApproxDP(10, 0.1).group(5)
    with refused("size", "GDP.group", "an integer of at least 1", kind=ArgumentTypeError):
        GDP(1).group(1.5)  # type: ignore[arg-type]
    for each in ALL[:4]:
        assert each.group(1) == each or isinstance(each, ApproxDP)  # type: ignore[union-attr]
        with pytest.raises(ValueError, match="an integer of at least 1"):
            each.group(0)  # type: ignore[union-attr]


def test_groups_of_losses_beyond_floats() -> None:
    for epsilon in (690.0, 701.0, 1000.0, 1e200):
        assert ApproxDP(epsilon, 0.0).group(3).delta == 0
        with refused("size", "ApproxDP.group"):
            ApproxDP(epsilon, 1e-9).group(3)


@pytest.mark.parametrize("epsilon", [1e-3, 1 / 3, 2.0, 50.0])
def test_the_delta_of_a_group_is_rounded_up_by_a_hair(epsilon: float) -> None:
    with mpmath.workdps(40):
        growth = mpmath.fsum(mpmath.exp(i * mpmath.mpf(epsilon)) for i in range(5))
        found = ApproxDP(epsilon, 1e-99).group(5)
        assert growth * mpmath.mpf(1e-99) <= found.delta
        assert found.delta <= growth * mpmath.mpf(1e-99) * (1 + mpmath.mpf(1e-13))


@given(st.floats(1e-6, 1e3), st.integers(1, 9))
def test_groups_round_up(value: float, size: int) -> None:
    assert Fraction(PureDP(value).group(size).epsilon) >= Fraction(value) * size
    assert Fraction(GDP(value).group(size).mu) >= Fraction(value) * size
    assert Fraction(ZCDP(value).group(size).rho) >= Fraction(value) * size**2


def test_neighbours_are_named() -> None:
    assert Neighbours.parse("replace", "here") is Neighbours.REPLACE
    with refused("neighbours", "here", "one of 'add_rem"):
        Neighbours.parse("swap", "here")


def test_only_guarantees_are_converted_to() -> None:
    with refused("kind", "PureDP.to", "a kind of", kind=ArgumentTypeError):
        PureDP(1).to(int)  # type: ignore[type-var]
