"""Every arrow between guarantees in high precision: never too strong, and weaker by a hair only."""

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
from flint import arb, ctx

from dplinear.noise.simulation import generator
from dplinear.privacy import GDP, MIDP, ZCDP, ApproxDP, PureDP
from dplinear.privacy.conversions import zcdp_delta, zcdp_epsilon

HAIR = 1e-13
VALUES = [*(float(x) for x in 10 ** generator(4).uniform(-4, 1.3, 60)), 1e-3, 1 / 3, 1.0, 30.0]


def tanh_loss(epsilon: mpmath.mpf) -> mpmath.mpf:
    return epsilon * mpmath.tanh(epsilon / 2)


CLOSED: list[tuple[Any, Any, str, Callable[[mpmath.mpf], mpmath.mpf]]] = [
    (PureDP, ZCDP, "rho", tanh_loss),
    (PureDP, MIDP, "bits", lambda e: tanh_loss(e) / mpmath.log(2)),
    (ZCDP, MIDP, "bits", lambda rho: rho / mpmath.log(2)),
    (GDP, ZCDP, "rho", lambda mu: mu**2 / 2),
    (GDP, MIDP, "bits", lambda mu: mu**2 / 2 / mpmath.log(2)),
]


@pytest.mark.parametrize(("source", "kind", "name", "exact"), CLOSED)
def test_closed_forms_are_rounded_up(
    source: Any, kind: Any, name: str, exact: Callable[[mpmath.mpf], mpmath.mpf]
) -> None:
    with mpmath.workdps(40):
        for value in VALUES:
            wanted = exact(mpmath.mpf(value))
            assert wanted <= getattr(source(value).to(kind), name) <= wanted * (1 + HAIR)


def test_a_pure_loss_is_an_approximate_one() -> None:
    assert PureDP(0.3).to(ApproxDP) == ApproxDP(0.3, 0.0)


def test_the_gaussian_trade_off_passes_below_the_corner() -> None:
    ctx.prec = 400
    for epsilon in VALUES:
        mu = arb(PureDP(epsilon).to(GDP).mu)
        corner = 1 / (1 + arb(epsilon).exp())

        def at_corner(m: Any) -> Any:
            return (m / 2 / arb(2).sqrt()).erfc() / 2

        assert at_corner(mu) <= corner
        # The corner itself is rounded down by 16 units, which is 9e-15 in μ.
        assert at_corner(mu * (1 - HAIR) - 2e-14) > corner


@pytest.mark.parametrize("bits", [1e-9, 1e-4, 3e-3, 0.02, 0.3, 0.7, 0.999, 1 - 1e-9, 1 - 2**-52])
def test_bits_as_total_variation(bits: float) -> None:
    delta = MIDP(bits).to(ApproxDP).delta
    assert 0 < delta < 1
    with mpmath.workdps(60):

        def information(d: mpmath.mpf) -> mpmath.mpf:
            return ((1 + d) * mpmath.log(1 + d, 2) + (1 - d) * mpmath.log(1 - d, 2)) / 2

        assert information(mpmath.mpf(delta)) >= bits or delta == 1 - 2**-53
        assert information(mpmath.mpf(delta) * (1 - mpmath.mpf(1e-12))) < bits


def known_bound(rho: mpmath.mpf, epsilon: mpmath.mpf, log_order: mpmath.mpf) -> mpmath.mpf:
    """Return ln of e^{(α−1)(αρ−ε)}/(α−1)·(1−1/α)^α, α − 1 given by its logarithm."""
    less = mpmath.exp(log_order)
    order = 1 + less
    return less * (order * rho - epsilon) - log_order + order * mpmath.log(less / order)


def least(curve: Callable[[mpmath.mpf], mpmath.mpf]) -> mpmath.mpf:
    """Return the least value of a curve with one valley, by golden section."""
    low, high, golden = mpmath.mpf(-25), mpmath.mpf(25), (mpmath.sqrt(5) - 1) / 2
    for _ in range(130):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if curve(left) < curve(right) else (left, high)
    return curve((low + high) / 2)


@pytest.mark.parametrize("rho", [1e-6, 0.003, 0.4, 25.0])
def test_concentrated_losses_are_never_claimed_smaller(rho: float) -> None:
    with mpmath.workdps(40):
        exact = mpmath.mpf(rho)
        for part, target in itertools.product((0.3, 1.0, 4.0), (1e-14, 1e-6, 0.2)):
            epsilon = rho + part * rho**0.5
            wanted = min(mpmath.exp(least(lambda x, e=epsilon: known_bound(exact, e, x))), 1)  # type: ignore[misc]
            assert wanted <= zcdp_delta(rho, epsilon) <= wanted * (1 + 1e-9)
            bound = mpmath.mpf(zcdp_epsilon(rho, target))
            assert least(lambda x, e=bound: known_bound(exact, e, x)) <= mpmath.log(target)  # type: ignore[misc]
            if bound > 0:
                less = bound * (1 - mpmath.mpf(1e-9))
                assert least(lambda x, e=less: known_bound(exact, e, x)) > mpmath.log(target)  # type: ignore[misc]
