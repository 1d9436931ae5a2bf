"""AdaSSP: sufficient statistics with a ridge as small as their noise allows.

Wang 2018 (arXiv 1803.02596v2), Algorithm 2. `fit_paper` has the paper's constants and its three
equal shares; `fit` releases λ_min, XᵀX and Xᵀy as one Gaussian vector, which is less noise for the
same guarantee.

Sensitivities under add_remove, for rows of norm at most B and targets within Y: a row x, y adds xxᵀ
to the Gram matrix, of Frobenius norm |x|² ≤ B²; it adds xy to the moments, of norm at most B·Y; and
by Weyl's inequality it moves λ_min by at most |x|² ≤ B².
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
from dplinear.privacy import ApproxDP, Guarantee

FAILURE = 0.05  # the paper's ρ, with which its utility bound may fail


def paper_scale(guarantee: ApproxDP) -> float:
    """Return the paper's noise for a statistic of sensitivity one: √ln(6/δ)/(ε/3).

    The paper gives each statistic (ε/3, δ/3). By the exact profile all three together are
    √3/scale-GDP, which keeps (ε, δ) at the budgets of this benchmark with room to spare.
    """
    return math.sqrt(math.log(6 / guarantee.delta)) / (guarantee.epsilon / 3)


def fit_paper(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return AdaSSP's line with the paper's constants.

    Requires: an (ε, δ) guarantee; cells and targets in [-1, 1], so B² = d + 1/16 and Y = 1.
    Promises: the guarantee, add_remove, wherever √3/paper_scale is at most its μ.
    Departs from the paper: a singular system is solved by least norm.
    """
    if not isinstance(guarantee, ApproxDP):
        raise TypeError("AdaSSP's own constants are for (ε, δ).")
    wide = with_constant(rows)
    size = wide.shape[1]
    bound = largest_norm(rows.shape[1])
    scale, logarithm = paper_scale(guarantee), math.log(6 / guarantee.delta)
    gram = wide.T @ wide
    least = float(np.linalg.eigvalsh(gram)[0])
    least += bound**2 * scale * generator.standard_normal()
    least = max(0.0, least - bound**2 * logarithm / (guarantee.epsilon / 3))
    triangle = np.triu(generator.standard_normal((size, size)))
    gram = gram + bound**2 * scale * (triangle + np.triu(triangle, 1).T)
    moments = wide.T @ target + bound * scale * generator.standard_normal(size)
    target_ridge = math.sqrt(size * logarithm * math.log(2 * size**2 / FAILURE))
    ridge = max(0.0, target_ridge * bound**2 / (guarantee.epsilon / 3) - least)
    return line(np.linalg.lstsq(gram + ridge * np.eye(size), moments, rcond=1e-13)[0])


def joint_scale(guarantee: Guarantee) -> float:
    """Return the noise for a statistic of sensitivity one, when there are three of them: √3/μ."""
    return math.sqrt(3) / mu_of(guarantee)


def fit(
    rows: Array,
    target: Array,
    guarantee: Guarantee,
    generator: Generator,
    *,
    row_clip: float = 2.0,
    target_clip: float = 4.0,
) -> Line:
    """Return AdaSSP's line with joint calibration.

    Requires: cells and targets in [-1, 1]. Rows are clipped at `row_clip` typical norms and
    targets at `target_clip` typical targets; both are fixed beforehand.
    Promises: the guarantee, add_remove: each of the three statistics is μ/√3-GDP.
    Departs from the paper: joint calibration; noise symmetric in law (less of it off the diagonal);
    the ridge is the expected spectral norm of that noise, σ√(2d), less λ_min; no margin on λ_min,
    which privacy does not need; negative eigenvalues are dropped; rows are clipped at a typical
    norm rather than bounded by the longest there could be.
    """
    size = rows.shape[1] + 1
    bound = min(row_clip * TYPICAL * math.sqrt(size), largest_norm(size - 1))
    limit = min(1.0, target_clip * TYPICAL)
    wide = clipped(with_constant(rows), bound)
    scale = joint_scale(guarantee)
    gram = wide.T @ wide
    least = float(np.linalg.eigvalsh(gram)[0]) + scale * bound**2 * generator.standard_normal()
    moments = wide.T @ np.clip(target, -limit, limit)
    moments = moments + scale * bound * limit * generator.standard_normal(size)
    gram = gram + symmetric_noise(size, scale * bound**2, generator)
    ridge = max(0.0, scale * bound**2 * math.sqrt(2 * size) - max(0.0, least))
    return line(ridge_solution(gram, ridge, moments))


def fit_box(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return AdaSSP's line with rows bounded by the box alone: for cells that are often extreme."""
    return fit(rows, target, guarantee, generator, row_clip=math.inf)


def fit_tight(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return AdaSSP's line with closer clips: less noise, more bias."""
    return fit(rows, target, guarantee, generator, row_clip=1.4, target_clip=2.0)
