"""Iterative Hessian mixing: a few Newton steps, each with a fresh Gaussian sketch for its Hessian.

Lev, Shenfeld, Srinivasan, Ligett and Wilson 2026 (arXiv 2601.07545v1). T rounds take
θ ← θ + H⁻¹(Xᵀ clip(y − Xθ, ±C) + noise), where H = ZᵀZ/k of a sketch Z = SX + wN of k rows, S and N
normal. The sketch needs the ridge γ in all, w² of noise and a private lower bound of λ_min(XᵀX):
where that bound exceeds γ, the sketch is private without noise of its own.

Sensitivities under add_remove, for rows of norm at most B: by Weyl's inequality λ_min moves by at
most B²; a row adds at most B·C to each round's gradient. Given XᵀX, rows of Z are independent draws
of N(0, XᵀX + w²I), so T sketches of k rows are one of T·k, whatever came between them: no sketch
depends on θ. If the bound holds for the smaller neighbour, a row stretches that law by a factor of
at most 1 + B²/γ in one direction, and the profile `Sketch(T·k, B²/γ)` dominates.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainccinv, gammaincinv, log_ndtr, ndtr, ndtri

from benchmarks.rivals.common import (
    TYPICAL,
    Array,
    Line,
    clipped,
    largest_norm,
    line,
    mu_of,
    with_constant,
)
from dplinear.noise.simulation import Generator
from dplinear.privacy import ApproxDP, Guarantee

FAILURE_SHARE = 0.1  # of δ, with which the lower bound of λ_min may be too high
EIGENVALUE_SHARE = 0.05  # of μ², for λ_min
NODES = 2000  # of the quadrature over what a sketch discloses


@dataclass(frozen=True)
class Plan:
    """The noise of λ_min and of gradients, a unit of their sensitivities, and γ for rows of 1."""

    eigenvalue: float
    gradient: float
    ridge: float
    margin: float  # of the lower bound of λ_min, in its own noise


def _gaussian_delta(epsilon: Array, mu: float) -> Array:
    """Return a Gaussian's δ(ε) for any real ε: Balle and Wang 2018, Theorem 8."""
    lost = np.exp(log_ndtr(mu / 2 - epsilon / mu))
    return np.asarray(lost - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def composed_delta(epsilon: float, mu: float, degrees: float, ratio: float) -> float:
    """Return δ(ε) of a μ-GDP mechanism beside `Sketch(degrees, ratio)`, the worse direction.

    δ of a product is the mean, over the first one's loss L, of the second's δ(ε − L). A sketch's
    loss is s·z − a·ln(1+s) or a·ln(1+s) − z·s/(1+s), z ~ Gamma(a), a = degrees/2, s the ratio.
    """
    shape = degrees / 2
    # Substituting z = quantile(Φ(x)) makes the weight normal; the trapezium rule is then accurate
    # far beyond the digits that a benchmark needs. Losses beyond nine deviations weigh 1e-19.
    x = np.linspace(-9.0, 9.0, NODES)
    z = np.where(x < 0, gammaincinv(shape, ndtr(x)), gammainccinv(shape, ndtr(-x)))
    weights = np.exp(-(x**2) / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    drift = shape * math.log1p(ratio)
    losses = ratio * z - drift, drift - z * ratio / (1 + ratio)
    return max(float(weights @ _gaussian_delta(epsilon - loss, mu)) for loss in losses)


@lru_cache(maxsize=64)
def plan(guarantee: ApproxDP, rounds: int, sketch: int, gradient_share: float) -> Plan:
    """Return the noise: shares of μ² for λ_min and the gradients, and what is left for sketches.

    Promises: the sketches' exact profile beside that of the rest is at most (ε, δ·(1 − failure)).
    Departs from the paper: it halves ε, bounds the sketches by Rényi divergences and gives each
    part a δ of its own; this is less noise.
    """
    mu = mu_of(guarantee)
    once, steps = mu * math.sqrt(EIGENVALUE_SHARE), mu * math.sqrt(gradient_share)
    rest = math.hypot(once, steps)
    delta, degrees = guarantee.delta * (1 - FAILURE_SHARE), rounds * sketch

    def excess(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)
        return composed_delta(guarantee.epsilon, rest, degrees, ratio) / delta - 1

    high = math.log(mu / math.sqrt(degrees / 2))
    while excess(high) < 0:
        high += 1.0
    low = high - 1.0
    while excess(low) > 0:
        low -= 1.0
    ratio = math.exp(brentq(excess, low, high, rtol=1e-9)) * (1 - 1e-6)
    margin = -float(ndtri(guarantee.delta * FAILURE_SHARE))
    return Plan(1 / once, math.sqrt(rounds) / steps, 1 / ratio, margin)


def least_eigenvalue(wide: Array, bound: float, scales: Plan, generator: Generator) -> float:
    """Return a private lower bound of λ_min of the smaller neighbour's Gram matrix.

    Promises: it holds but with the probability that `FAILURE_SHARE` allows. B² is taken off since
    the rows may be the larger neighbour's.
    """
    sigma = scales.eigenvalue * bound**2
    found = float(np.linalg.eigvalsh(wide.T @ wide)[0]) + sigma * generator.standard_normal()
    return max(0.0, found - scales.margin * sigma - bound**2)


def fit(
    rows: Array,
    target: Array,
    guarantee: Guarantee,
    generator: Generator,
    *,
    rounds: int = 4,
    degrees_a_column: float = 6.0,
    gradient_share: float = 0.5,
    row_clip: float = 2.0,
    residual_clip: float = 1.2,
) -> Line:
    """Return the last round's line.

    Requires: an (ε, δ) guarantee; cells and targets in [-1, 1]; rounds, sketch rows a column,
    shares and clips (in typical norms and typical targets) are fixed beforehand. A sketch has the
    paper's number of rows, k = 6·max(d, ln(4T/(δ/10))).
    Promises: the guarantee, add_remove.
    Departs from the paper: `plan`; four rounds for three, with which it does better here; rows are
    clipped at a typical norm and residuals at a typical target, where the paper clips at what they
    could be. Z is drawn by its law given XᵀX.
    """
    if not isinstance(guarantee, ApproxDP):
        raise TypeError("Hessian mixing is calibrated for (ε, δ).")
    size = rows.shape[1] + 1
    bound = min(row_clip * TYPICAL * math.sqrt(size), largest_norm(size - 1))
    limit = min(residual_clip * TYPICAL, 1.0)
    wide = clipped(with_constant(rows), bound)
    sketch = math.ceil(degrees_a_column * max(size, math.log(40 * rounds / guarantee.delta)))
    scales = plan(guarantee, rounds, sketch, gradient_share)
    floor = least_eigenvalue(wide, bound, scales, generator)
    noise = max(0.0, scales.ridge * bound**2 - floor)
    values, vectors = np.linalg.eigh(wide.T @ wide)
    root = np.sqrt(np.maximum(values, 0.0) + noise)
    sigma = scales.gradient * bound * limit
    found = np.zeros(size)
    for _ in range(rounds):
        drawn = generator.standard_normal((sketch, size)) * root
        hessian = vectors @ (drawn.T @ drawn / sketch) @ vectors.T
        residuals = np.clip(target - wide @ found, -limit, limit)
        gradient = wide.T @ residuals + sigma * generator.standard_normal(size)
        found = found + np.linalg.lstsq(hessian, gradient, rcond=1e-13)[0]
    return line(found)


def fit_tight(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return the line with closer clips and more rounds: better where the budget is small."""
    return fit(rows, target, guarantee, generator, rounds=6, row_clip=1.4)


def fit_paper(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return the line with the paper's rounds and clips: rows by the box, residuals by |y| ≤ 1."""
    clips = {"row_clip": math.inf, "residual_clip": math.inf}
    return fit(rows, target, guarantee, generator, rounds=3, **clips)
