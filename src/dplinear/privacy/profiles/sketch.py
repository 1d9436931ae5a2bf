"""Gaussian sketch and inverse-Wishart: `degrees` copies of N(0, 1) against N(0, 1 + ratio).

Sheffet 2015 (arXiv 1507.00056v1), Algorithms 1 and 3, bounds this pair by concentration
inequalities; here its profile is computed. Worst case: the law of the output depends on the
matrices G + w²I of the two neighbours only through the eigenvalues of one relative to the other,
and N(0, 1) against N(0, λ) is a noisy rescaling of N(0, 1) against N(0, λ') for λ' > λ > 1, so the
largest ratio dominates at every ε, and products of dominating pairs dominate products.
"""

import math
from dataclasses import dataclass

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.privacy.hockey_stick import (
    Threshold,
    essential_rule,
    exp_minus_linear,
    gamma_lower,
    gamma_upper,
    log1p_minus_linear,
    log_gamma_scale,
    threshold,
)
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Directions, Profile
from dplinear.privacy.rounding import ULP

SUPPORTED = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)


@dataclass(frozen=True)
class Sketch(Profile):
    """The output of a Gaussian sketch with `degrees` rows, or an inverse-Wishart draw.

    Requires: `ratio` ≥ B²/(w² + λ), B the bound on the rows' norm, w² (or ψ) the ridge and λ a
    public lower bound on the least eigenvalue of the *smaller* neighbour's Gram matrix (for
    replace: of the rows common to both; 0 is always right). `degrees` is public. `inverse` for an
    inverse-Wishart draw, whose spread *shrinks* with a further row: the directions change places.
    Promises: the exact δ(ε) of the worst pair, for each direction.
    """

    degrees: float
    ratio: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    inverse: bool = False

    def __post_init__(self) -> None:
        where = "profiles.Sketch"
        arguments.real(self.degrees, "degrees", where, low=1)
        arguments.positive(self.ratio, "ratio", where)
        relation = Neighbours.parse(self.neighbours, where, SUPPORTED)
        object.__setattr__(self, "neighbours", relation)

    @property
    def slow(self) -> bool:
        """Return True for replace, which takes milliseconds a point."""
        return self.neighbours is Neighbours.REPLACE

    def directions(self, epsilon: Floats) -> Directions:
        """Return both curves; under replace they coincide."""
        shape, s = self.degrees / 2, self.ratio
        if self.neighbours is Neighbours.REPLACE:
            delta = _replace(epsilon, shape, s)
            return Directions(delta, delta)
        falling, rising = _wide_to_narrow(epsilon, shape, s), _narrow_to_wide(epsilon, shape, s)
        return Directions(rising, falling) if self.inverse else Directions(falling, rising)


def _wide_to_narrow(epsilon: Floats, shape: float, s: float) -> Floats:
    """Return δ from N(0, 1+s) to N(0, 1): the loss s·z − shape·ln(1+s) is large in the upper tail.

    z = |x|²/(2(1+s)) is Gamma(shape); the threshold is z₀ = (ε + shape·ln(1+s))/s.
    """
    drift = epsilon / (shape * s)
    mean = drift + math.log1p(s) / s
    at = threshold(mean, drift, -log1p_minus_linear(s) / s)
    z0 = shape * mean[:, None]
    return gamma_upper(shape, at, lambda y, _: s * z0 * np.expm1(y)).upper()


def _narrow_to_wide(epsilon: Floats, shape: float, s: float) -> Floats:
    """Return δ from N(0, 1) to N(0, 1+s): the loss shape·ln(1+s) − z·s/(1+s) is large near zero.

    z = |x|²/2 is Gamma(shape); the threshold is z₁ = (shape·ln(1+s) − ε)(1+s)/s.
    """
    share = s / (1 + s)
    reachable = epsilon < shape * math.log1p(s)  # beyond this bound the loss never goes
    drift = np.where(reachable, epsilon, 0.0) / (shape * share)
    whole = math.log1p(s) / share
    mean = whole - drift
    reachable &= mean > 0
    mean = np.where(reachable, mean, whole)
    at = threshold(mean, -log1p_minus_linear(-share) / share, drift, doubt=(whole + drift) / mean)
    z1 = shape * mean[:, None]
    integral = gamma_lower(shape, at, lambda y, _: share * z1 * -np.expm1(-y))
    return np.where(reachable, integral.upper(), 0.0)


def _replace(epsilon: Floats, shape: float, s: float) -> Floats:
    """Return δ for a row exchanged for an orthogonal one: a wide and a narrow pair at once.

    With independent z₁, z₂ ~ Gamma(shape) the loss is s·(z₁ − z₂/(1+s)): for each z₂ a tail of z₁
    above ε/s + z₂/(1+s), integrated over z₂ by the trapezium rule (exponentially accurate for an
    integrand that is analytic and vanishes at both ends).
    """
    return np.concatenate([_replace_at(float(e), shape, s) for e in epsilon])


def _replace_at(epsilon: float, shape: float, s: float) -> Floats:
    drift = epsilon / (shape * s)

    def above(zeta: Floats) -> tuple[Threshold, Floats]:
        rise = np.expm1(zeta) / (1 + s)
        plus, minus = drift + np.maximum(rise, 0.0), s / (1 + s) - np.minimum(rise, 0.0)
        mean = drift + np.exp(zeta) / (1 + s)
        return threshold(mean, plus, minus), mean

    def exponent(zeta: Floats) -> Floats:
        base = np.maximum(above(zeta)[0].xi, 0.0)
        return shape * (exp_minus_linear(zeta) + exp_minus_linear(base))

    # At its least, the exponent is not above its value at 0, and e^-w - 1 + w >= w²/(2 + w).
    cap = float(exponent(np.zeros(1))[0]) / shape
    lowest = -0.5 * (cap + math.sqrt(cap * cap + 8 * cap))
    zeta, weights = essential_rule(exponent, lowest, min(0.2, 0.3 / math.sqrt(shape)))
    at, mean = above(zeta)
    z0 = shape * mean[:, None]
    inner = gamma_upper(shape, at, lambda y, _: s * z0 * np.expm1(y))
    log_outer = inner.log_scale - shape * exp_minus_linear(zeta)
    weighted = weights * inner.value * np.exp(log_outer - log_outer.max())
    total = float(weighted.sum())
    # On average over z₂: the inner error, and the rounding of the outer exponent.
    error = float(weighted @ (inner.error + 4 * ULP * exponent(zeta))) / total + 24 * ULP
    log_scale = log_gamma_scale(shape) + float(log_outer.max())
    return np.array([min(1.0, max(total * math.exp(log_scale) * (1 + error), 1e-300))])
