"""Which guarantee implies which: one theorem an arrow, rounded to the private side.

An arrow that is not in the table has no theorem, and asking for it raises. Proofs or sources are
in docs/theory/conversions.md.
"""

import math
from collections.abc import Callable
from typing import Any

from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtri

from dplinear import arguments
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, Kind, PureDP
from dplinear.privacy.rounding import down, up


class NoConversionError(TypeError):
    """No theorem turns one guarantee into the other."""


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return the least known δ of ρ-zCDP at ε, rounded up.

    Canonne, Kamath and Steinke 2020 (arXiv 2004.00010v6), Corollary 13: the infimum over α > 1 of
    e^{(α−1)(αρ−ε)}/(α−1)·(1−1/α)^α. Every α is sound, so an imperfect minimum errs upwards.
    """

    def log_delta(t: float) -> float:
        order = math.exp(t)  # α − 1
        return order * ((order + 1) * rho - epsilon) - t - (order + 1) * math.log1p(1 / order)

    centre = math.log(max((epsilon + rho) / (2 * rho) - 0.5, 1e-3))
    best = minimize_scalar(log_delta, bounds=(centre - 12, centre + 12), method="bounded")
    log_value = float(best.fun)
    terms = math.exp(float(best.x)) * (epsilon + (math.exp(float(best.x)) + 1) * rho)
    return min(1.0, math.exp(min(log_value, 0.0)) * (1 + 1e-15 * (16 + 4 * terms)))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the least known ε of ρ-zCDP at δ, rounded up (the same bound, solved for ε)."""

    def epsilon(t: float) -> float:
        order = math.exp(t)
        gain = (math.log(1 / delta) - math.log1p(order)) / order
        return (order + 1) * rho + gain - math.log1p(1 / order)

    centre = 0.5 * math.log(math.log(1 / delta) / rho)
    best = minimize_scalar(epsilon, bounds=(centre - 12, centre + 12), method="bounded")
    order = math.exp(float(best.x))
    terms = (order + 1) * rho + math.log(1 / delta) / order + 1 / order
    return max(0.0, float(best.fun) + 1e-15 * 8 * terms)


def _gdp_to_approx(guarantee: GDP, delta: float) -> ApproxDP:
    from dplinear.privacy.profiles.gaussian import Gaussian

    return ApproxDP(Gaussian(guarantee.mu).epsilon(delta), delta)


def _midp_to_approx(guarantee: MIDP) -> ApproxDP:
    """Return (0, δ) with 1 − h₂((1+δ)/2) = bits: Pinsker made exact for a binary prior."""
    nats = guarantee.bits * math.log(2)
    if guarantee.bits >= 1:
        hint = "one bit already tells two values apart: no δ below 1 follows"
        rule = "below 1 for a conversion to (0, δ)"
        raise arguments.rejection("bits", "MIDP.to", rule, guarantee.bits, hint)

    def excess(delta: float) -> float:
        # ln 2 − h((1+δ)/2) in nats = ½[(1+δ)ln(1+δ) + (1−δ)ln(1−δ)]; a series where it cancels.
        if delta < 0.05:
            value = math.fsum(delta ** (2 * j) / (2 * j * (2 * j - 1)) for j in range(1, 9))
        else:
            both = (1 + delta) * math.log1p(delta)
            value = 0.5 * (both + ((1 - delta) * math.log1p(-delta) if delta < 1 else 0.0))
        return value - nats

    delta = float(brentq(excess, 0.0, 1.0, xtol=1e-300, rtol=1e-15))
    return ApproxDP(0.0, min(up(delta, 64), math.nextafter(1.0, 0.0)))


# Arrows that need nothing else, and arrows that need a δ.
_Free = Callable[[Any], Guarantee]
_Priced = Callable[[Any, float], ApproxDP]

_FREE: dict[tuple[type, type], _Free] = {
    (PureDP, ApproxDP): lambda g: ApproxDP(g.epsilon, 0.0),
    (PureDP, ZCDP): lambda g: ZCDP(up(g.epsilon * math.tanh(g.epsilon / 2))),
    (PureDP, GDP): lambda g: GDP(
        up(-2 * float(ndtri(down(1 / (1 + math.exp(g.epsilon)), 16))), 64)
    ),
    (PureDP, MIDP): lambda g: MIDP(up(g.epsilon * math.tanh(g.epsilon / 2) / math.log(2), 8)),
    (ZCDP, MIDP): lambda g: MIDP(up(g.rho / math.log(2))),
    (GDP, ZCDP): lambda g: ZCDP(up(g.mu**2 / 2)),
    (GDP, MIDP): lambda g: MIDP(up(g.mu**2 / 2 / math.log(2), 8)),
    (MIDP, ApproxDP): _midp_to_approx,
}
_PRICED: dict[tuple[type, type], _Priced] = {
    (ZCDP, ApproxDP): lambda g, delta: ApproxDP(zcdp_epsilon(g.rho, delta), delta),
    (GDP, ApproxDP): _gdp_to_approx,
}
_HINTS: dict[type, str] = {
    PureDP: "only mechanisms with bounded loss, such as Laplace noise, are pure: calibrate one",
    ApproxDP: "state it as GDP, ZCDP or PureDP and convert from there",
    ZCDP: "one (ε, δ) says nothing of other orders: state the guarantee as GDP, ZCDP or PureDP",
    GDP: "one (ε, δ) or ρ does not bound the whole trade-off: use the mechanism's own profile",
    MIDP: "state it as PureDP, ZCDP or GDP and convert from there",
}


def convert(guarantee: Guarantee, kind: type[Kind], *, delta: float | None = None) -> Kind:
    """Return the guarantee of `kind` that `guarantee` implies, never a stronger one."""
    source = type(guarantee)
    if source is kind:
        return guarantee  # type: ignore[return-value]  # the same kind, as just checked
    where = f"{source.__name__}.to"
    if (source, kind) in _PRICED:
        if delta is None:
            raise arguments.rejection("delta", where, "given for this conversion", None)
        delta = arguments.real(delta, "delta", where, low=0, high=1, open_low=True, open_high=True)
        return _PRICED[source, kind](guarantee, delta)  # type: ignore[return-value]
    if (source, kind) in _FREE:
        return _FREE[source, kind](guarantee)  # type: ignore[return-value]
    if kind not in _HINTS:
        raise arguments.wrong_type("kind", where, "a kind of guarantee", kind)
    raise NoConversionError(
        f"No theorem turns {source.__name__} into {kind.__name__}.\n\nHint: {_HINTS[kind]}"
    )
