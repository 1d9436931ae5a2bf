"""DP-Newton with double noise, for labels: noise in the gradient, and in the step it leads to.

Ganesh, Haghifam, Steinke and Thakurta 2023 (arXiv 2305.13209), Algorithm 3. Each step releases the
gradient g with noise, then θ − Ψ(H)⁻¹g with noise; Ψ lifts the eigenvalues of H to λ ("clip") or by
λ ("add"), and a private trace of H chooses λ. H is the Hessian, or the tightest quadratic bound of
the loss (both are in the paper).

Sensitivities under add_remove, of sums over rows of norm at most B, so that the number of rows
stays private. The gradient: B, as |y − p| ≤ 1. The Hessian: a row adds vvᵀ with |v|² ≤ β = B²/4, as
both weights, p(1−p) and tanh(a/2)/(2a), are at most 1/4; its trace moves by at most β. The step,
for a fixed g:

- add: with A = H + λI, Sherman and Morrison give A⁻¹v(vᵀA⁻¹g)/(1 + vᵀA⁻¹v), of norm at most
  |g|·|A⁻¹v|²/(1 + vᵀA⁻¹v). As |A⁻¹v|² ≤ vᵀA⁻¹v/λ, and t/(1+t) grows with t = vᵀA⁻¹v ≤ β/λ, it is
  at most |g|·β/(λ² + βλ), the paper's bound.
- clip: x ↦ 1/max(x, λ) is Lipschitz with 1/λ², and a scalar Lipschitz function of symmetric
  matrices is so in the Frobenius norm, with the same constant. So the step moves by at most
  |g|·β/λ²; the paper's implementation has β/(λ² − βλ), which is more.

All releases are Gaussian with noise by what was released before, so μ² adds up.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np
from scipy.special import expit

from benchmarks.rivals.common import Array, Line, clipped, line, mu_of, with_constant
from dplinear.noise.simulation import Generator
from dplinear.privacy import Guarantee

Lift = Literal["clip", "add"]
Curvature = Literal["hessian", "bound"]


@dataclass(frozen=True)
class Setting:
    """What is fixed beforehand: steps, shares of μ², the paper's factor of the trace, a clip.

    `gradient_share` of μ² is for gradients, `trace_share` of what is left for traces; `row_clip`
    is in units of the bound that `fit` is given.
    """

    lift: Lift = "add"
    curvature: Curvature = "hessian"
    steps: int = 6
    gradient_share: float = 0.8
    trace_share: float = 0.05
    trace_factor: float = 1.0
    row_clip: float = 1.0


@dataclass(frozen=True)
class Scales:
    """The noise of each release of a step, a unit of its sensitivity."""

    gradient: float
    trace: float
    step: float


SETTINGS = tuple(
    Setting(lift, curvature, steps, trace_factor=factor)
    for lift, curvature, steps, factor in product(
        get_args(Lift), get_args(Curvature), (6, 12), (1.0, 3.0)
    )
)


def noise_scales(guarantee: Guarantee, setting: Setting) -> Scales:
    """Return the noise by shares of μ², which the steps split evenly."""
    mu, first, second = mu_of(guarantee), setting.gradient_share, setting.trace_share
    shares = first, (1 - first) * second, (1 - first) * (1 - second)
    return Scales(*(math.sqrt(setting.steps / share) / mu for share in shares))


def step_sensitivity(lift: Lift, least: float, moved: float) -> float:
    """Return how far a row moves Ψ(H)⁻¹g, a unit of |g|; it adds at most `moved` to H's trace."""
    return moved / (least**2 + (moved * least if lift == "add" else 0.0))


def curvatures(curvature: Curvature, odds: Array) -> Array:
    """Return the weight of each row in H: p(1 − p), or tanh(a/2)/(2a), which is 1/4 at 0."""
    if curvature == "hessian":
        return np.asarray(expit(odds) * expit(-odds))
    safe = np.where(np.abs(odds) < 1e-6, 1.0, odds)
    return np.where(np.abs(odds) < 1e-6, 0.25, np.tanh(safe / 2) / (2 * safe))


def lifted_solution(hessian: Array, gradient: Array, least: float, lift: Lift) -> Array:
    """Return Ψ(H)⁻¹g."""
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(values, 0.0)
    lifted = values + least if lift == "add" else np.maximum(values, least)
    return np.asarray(vectors @ ((vectors.T @ gradient) / lifted))


def fit(
    rows: Array,
    labels: Array,
    guarantee: Guarantee,
    generator: Generator,
    *,
    bound: float,
    setting: Setting,
) -> Line:
    """Return the last step's log-odds.

    Requires: labels of 0 and 1; rows, with the constant column, are clipped at `row_clip`·`bound`.
    Promises: the guarantee, add_remove.
    Departs from the paper: it starts at 0, not at a random point; sums for means, so that the
    number of rows is private; calibration by μ; the smaller sensitivity of "clip".
    """
    norm = setting.row_clip * bound
    wide = clipped(with_constant(rows), norm)
    scales, moved = noise_scales(guarantee, setting), norm**2 / 4
    found = np.zeros(wide.shape[1])
    for _ in range(setting.steps):
        odds = wide @ found
        gradient = wide.T @ (labels - expit(odds))
        gradient = gradient + scales.gradient * norm * generator.standard_normal(len(found))
        hessian = (wide.T * curvatures(setting.curvature, odds)) @ wide
        trace = float(np.trace(hessian)) + scales.trace * moved * generator.standard_normal()
        # The paper's choice, in sums: (factor · trace / ρ)^⅓ for rows of norm 1, at least 1; its ρ
        # of the step is 1/(2·scale²).
        share = setting.trace_factor * max(trace, 0.0) / norm**2 * 2 * scales.step**2
        least = norm**2 * max(share ** (1 / 3), 1.0)
        step = lifted_solution(hessian, gradient, least, setting.lift)
        sigma = scales.step * step_sensitivity(setting.lift, least, moved)
        sigma *= float(np.linalg.norm(gradient))
        found = found + step + sigma * generator.standard_normal(len(found))
    return line(found)
