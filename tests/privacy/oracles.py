"""Profiles in interval arithmetic (Arb) and in mpmath, from their textbook formulas.

They share no code with the library: differences of tail probabilities, at a precision that
survives the cancellation. Every Arb result is a ball that contains the true value.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from flint import arb, ctx
from scipy.special import roots_legendre

from dplinear.arrays import Floats
from dplinear.privacy.hockey_stick import exp_minus_linear, log_gamma_scale

BITS = 420
ctx.prec = BITS
Ball = Any


def precisely(function: Callable[..., Ball]) -> Callable[..., Ball]:
    """Run at BITS of precision, and double it until the ball is relatively narrow."""

    def wrapped(*values: float | Ball) -> Ball:
        for bits in (BITS, 2 * BITS, 4 * BITS, 8 * BITS, 16 * BITS):
            ctx.prec = bits
            ball = function(*(v if isinstance(v, arb) else arb(v) for v in values))
            if ball.rel_accuracy_bits() > 80:
                return ball
        return ball

    return wrapped


def chi_square_sf(x: Ball, degrees: Ball) -> Ball:
    if not x > 0:
        return arb(1)
    return (x / 2).gamma_upper(degrees / 2, 1)


def chi_square_cdf(x: Ball, degrees: Ball) -> Ball:
    """Return the lower tail: by z^a e^{−z}/Γ(a+1)·Σ z^n/((a+1)…(a+n)) where that is the short way.

    (Arb's own lower incomplete gamma function does not converge at a million degrees.)
    """
    z, a = x / 2, degrees / 2
    if not z < a:
        return 1 - chi_square_sf(x, degrees)
    term, total, n = arb(1), arb(1), 0
    while not term < total * arb(2) ** -300:
        n += 1
        term = term * z / (a + n)
        total += term
    ratio = z / (a + n + 1)
    total += (term * ratio / (1 - ratio)).union(arb(0))
    return (a * z.log() - z - (a + 1).lgamma()).exp() * total


def normal_sf(x: Ball) -> Ball:
    return (x / arb(2).sqrt()).erfc() / 2


@precisely
def laplace(epsilon: Ball, ratio: Ball) -> Ball:
    return 1 - ((epsilon - ratio) / 2).exp()


@precisely
def gaussian(epsilon: Ball, mu: Ball) -> Ball:
    return normal_sf(epsilon / mu - mu / 2) - epsilon.exp() * normal_sf(epsilon / mu + mu / 2)


@precisely
def sketch_removing(epsilon: Ball, r: Ball, s: Ball) -> Ball:
    t = (epsilon + r / 2 * (1 + s).log()) * 2 * (1 + s) / s
    return chi_square_sf(t / (1 + s), r) - epsilon.exp() * chi_square_sf(t, r)


@precisely
def sketch_adding(epsilon: Ball, r: Ball, s: Ball) -> Ball:
    u = (r / 2 * (1 + s).log() - epsilon) * 2 * (1 + s) / s
    if not u > 0:
        return arb(0)
    return chi_square_cdf(u, r) - epsilon.exp() * chi_square_cdf(u / (1 + s), r)


def sketch(epsilon: float, r: float, s: float) -> Ball:
    return larger(sketch_removing(epsilon, r, s), sketch_adding(epsilon, r, s))


@precisely
def wishart_adding(epsilon: Ball, m: Ball, b: Ball) -> Ball:
    c = b / (1 - (-2 * (epsilon + b / 2) / (m - 2)).exp())
    rest = c - b
    covered = epsilon.exp() * chi_square_cdf(rest, m) if rest > 0 else arb(0)
    return chi_square_cdf(c, m) - covered


@precisely
def wishart_removing(epsilon: Ball, m: Ball, b: Ball) -> Ball:
    if not epsilon < b / 2:
        return arb(0)
    c = b / (1 - (-2 * (b / 2 - epsilon) / (m - 2)).exp())
    return chi_square_sf(c - b, m) - epsilon.exp() * chi_square_sf(c, m)


def wishart(epsilon: float, m: float, b: float) -> Ball:
    return larger(wishart_adding(epsilon, m, b), wishart_removing(epsilon, m, b))


def wishart_replace(epsilon: float, m: float, b: float, t: float) -> Ball:
    """Return the lesser of the two routes when the removal may lose t."""
    s, u = wishart_removing(t, m, b), wishart_adding(float(epsilon - t), m, b)
    ctx.prec = BITS
    first, second = s + arb(t).exp() * u, u + (arb(epsilon) - arb(t)).exp() * s
    return min(second, first)


def sketch_replace(epsilon: float, r: float, s: float) -> Ball:
    """Return δ as the integral over q₂ of p₂·P(q₁ > q₂ + D) − e^ε·(the same under the other law).

    The trapezium rule in ln q₂: the integrand is analytic and vanishes doubly exponentially, so at
    this step its error is far below the 1e-20 that is asked of it.
    """
    half = r / 2
    left = 100 / half + math.sqrt(200 / half)
    right = math.log1p(left + math.sqrt(200 / half))
    step = min(0.15, 0.2 / math.sqrt(half))
    ctx.prec = BITS
    a, e, wide = arb(half), arb(epsilon), 1 + arb(s)
    far = e * wide / arb(s)

    def density(z: Ball) -> Ball:
        return (a * z.log() - z - a.lgamma()).exp()

    total = arb(0)
    for i in range(math.ceil((left + right) / step)):
        z = a * arb(-left + i * step).exp()
        total += density(z) * ((z + far) / wide).gamma_upper(a, 1)
        total -= e.exp() * density(z / wide) * (z + far).gamma_upper(a, 1)
    return total * arb(step)


def larger(x: Ball, y: Ball) -> Ball:
    return max(y, x)


def orthogonal_delta(epsilon: float, degrees: int, ratio: float) -> float:
    """Return δ for orthogonal rows u, v of norm B: only the 2x2 Schur complement C matters.

    C/τ² ~ Wishart₂(I, degrees) = [[p, ·], [·, q + n²]] by Bartlett, det C = pq, and the loss is
    −h·ln[(pq + b(n² + q − p − b))/(pq)], h = (degrees − 3)/2. It exceeds ε where
    n² < (pq·e^{−ε/h} − pq)/b + p + b − q, so the inner integral over n is smooth; the outer two
    are over the logarithms of the chi-square variables p and q.
    """
    h = (degrees - 3) / 2
    nodes, weights = roots_legendre(48)
    shape_p, shape_q = degrees / 2, (degrees - 1) / 2

    def axis(shape: float) -> tuple[Floats, Floats]:
        span = 9.5 / math.sqrt(shape)
        xi = np.linspace(-span - 46 / shape / 2, span, 161)
        density = np.exp(log_gamma_scale(shape) - shape * exp_minus_linear(xi))
        return 2 * shape * np.exp(xi), density * (xi[1] - xi[0])

    p, weight_p = axis(shape_p)
    q, weight_q = axis(shape_q)
    P, Q = p[:, None], q[None, :]
    # The loss is infinite where C loses its positive definiteness: below `dead` in n².
    shared = P - Q + ratio
    limit = np.maximum(P * Q * math.expm1(-epsilon / h) / ratio + shared, 0.0)
    dead = np.minimum(np.maximum(shared - P * Q / ratio, 0.0), limit)
    inner = np.zeros_like(limit)
    for low, high in ((np.zeros_like(dead), np.sqrt(dead)), (np.sqrt(dead), np.sqrt(limit))):
        half, middle = (high - low) / 2, (high + low) / 2
        for node, weight in zip(nodes, weights, strict=True):
            n = middle + half * node
            argument = 1 + ratio * (n * n - shared) / (P * Q)
            gain = -np.expm1(h * np.log(np.maximum(argument, 0.0) + 1e-300) + epsilon)
            density = np.exp(-0.5 * n * n) * (2 / math.sqrt(2 * math.pi))
            inner += weight * half * density * np.clip(gain, 0.0, 1.0)
    return float(weight_p @ inner @ weight_q)
