"""Boosted AdaSSP: rounds of AdaSSP on clipped residuals, with one Gram matrix for all of them.

Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu 2023 (arXiv 2303.03451v1). The Gram matrix and
λ_min are released once, the moments of the residuals T times: T + 2 statistics, so each gets
μ/√(T+2), that is noise σ = √(T+2)/μ a unit of sensitivity. A public implementation that sets σ = μ
has the relation upside down; what it returns is not private at the budget it is given.

Sensitivities under add_remove, rows of norm at most B, residuals clipped to ±C: B² for the Gram
matrix (Frobenius) and for λ_min (Weyl), B·C for each round's moments, as residuals of the other
rows depend on earlier releases only.
"""

import math

import numpy as np

from benchmarks.rivals.common import (
    TYPICAL,
    Array,
    Line,
    clipped,
    largest_norm,
    line,
    mu_of,
    ridge_solution,
    symmetric_noise,
    with_constant,
)
from dplinear.noise.simulation import Generator
from dplinear.privacy import Guarantee


def noise_scale(guarantee: Guarantee, rounds: int) -> float:
    """Return the noise of each of T + 2 statistics a unit of its sensitivity: √(T+2)/μ."""
    return math.sqrt(rounds + 2) / mu_of(guarantee)


def fit(
    rows: Array,
    target: Array,
    guarantee: Guarantee,
    generator: Generator,
    *,
    rounds: int = 5,
    row_clip: float = 2.0,
    residual_clip: float = 1.2,
) -> Line:
    """Return the sum of the rounds' lines.

    Requires: cells and targets in [-1, 1]; rounds and clips (in typical norms and typical targets)
    are fixed beforehand.
    Promises: the guarantee, add_remove: μ² adds along the rounds.
    Departs from the paper: noise symmetric in law; the ridge is the noise's expected spectral norm
    less λ_min; negative eigenvalues are dropped.
    """
    size = rows.shape[1] + 1
    bound = min(row_clip * TYPICAL * math.sqrt(size), largest_norm(size - 1))
    limit = residual_clip * TYPICAL
    wide = clipped(with_constant(rows), bound)
    scale = noise_scale(guarantee, rounds)
    gram = wide.T @ wide
    least = float(np.linalg.eigvalsh(gram)[0]) + scale * bound**2 * generator.standard_normal()
    gram = gram + symmetric_noise(size, scale * bound**2, generator)
    ridge = max(0.0, scale * bound**2 * math.sqrt(2 * size) - max(0.0, least))
    found = np.zeros(size)
    for _ in range(rounds):
        residuals = np.clip(target - wide @ found, -limit, limit)
        moments = wide.T @ residuals + scale * bound * limit * generator.standard_normal(size)
        found = found + ridge_solution(gram, ridge, moments)
    return line(found)


def fit_box(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return the line with rows bounded by the box alone: for cells that are often extreme."""
    return fit(rows, target, guarantee, generator, row_clip=math.inf, residual_clip=2.0)
