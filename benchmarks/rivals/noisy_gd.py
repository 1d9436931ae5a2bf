"""Noisy gradient descent: clipped gradients of rows, summed, with Gaussian noise at each step.

The method of Song, Chaudhuri and Sarwate 2013 and Bassily, Smith and Thakurta 2014 on all rows at
each step, with the clipping of Abadi et al. 2016 (arXiv 1607.00133v2), calibrated jointly: a few
percent of μ² buy a count and the largest curvature, the rest is split evenly over the steps.

Sensitivities under add_remove: 1 for the count; B² for λ_max of the Gram matrix of rows of norm at
most B (Weyl); for each step the clip C, as a row adds one clipped vector to the sum.
"""

import math

import numpy as np

from benchmarks.rivals.common import (
    CONSTANT,
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
from dplinear.privacy import Guarantee

COUNT_SHARE = 0.01
CURVATURE_SHARE = 0.04
ROW_CLIP = 2.0  # in typical norms


def noise_scales(guarantee: Guarantee, steps: int) -> tuple[float, float, float]:
    """Return the noise of the count, the curvature and one step, a unit of sensitivity each."""
    mu = mu_of(guarantee)
    rest = 1 - COUNT_SHARE - CURVATURE_SHARE
    shares = COUNT_SHARE, CURVATURE_SHARE, rest / steps
    count, curvature, step = (1 / (mu * math.sqrt(share)) for share in shares)
    return count, curvature, step


def curvature_of(wide: Array, guarantee: Guarantee, steps: int, generator: Generator) -> float:
    """Return a private value of λ_max of the Gram matrix, more likely too large than too small.

    The constant column alone has curvature n/16, so a noisy count gives a floor.
    """
    count_scale, scale, _ = noise_scales(guarantee, steps)
    count = max(len(wide) + count_scale * generator.standard_normal(), 1.0)
    bound = min(ROW_CLIP * TYPICAL * math.sqrt(wide.shape[1]), largest_norm(wide.shape[1] - 1))
    inside = clipped(wide, bound)
    sigma = scale * bound**2
    largest = float(np.linalg.eigvalsh(inside.T @ inside)[-1])
    largest += sigma * (1 + generator.standard_normal())
    return min(max(largest, CONSTANT**2 * count), bound**2 * count)


def fit(  # noqa: PLR0913 - the protocol's four, and the rule's two
    rows: Array,
    target: Array,
    guarantee: Guarantee,
    generator: Generator,
    *,
    steps: int = 40,
    clip: float = 0.6,
) -> Line:
    """Return the average of the later half of the iterates.

    Requires: cells and targets in [-1, 1]. Steps and clip are fixed beforehand, the clip in typical
    gradients (a typical row times a typical target); a step's length is one over the private
    curvature.
    Promises: the guarantee, add_remove: μ² adds along the steps.
    """
    wide = with_constant(rows)
    size = wide.shape[1]
    limit = clip * TYPICAL * math.sqrt(size) * TYPICAL
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    most = limit / lengths  # the constant column keeps lengths above zero
    curvature = curvature_of(wide, guarantee, steps, generator)
    sigma = noise_scales(guarantee, steps)[2] * limit
    found, total = np.zeros(size), np.zeros(size)
    for step in range(steps):
        residuals = np.clip(target - wide @ found, -most, most)
        gradient = wide.T @ residuals + sigma * generator.standard_normal(size)
        found = found + gradient / curvature
        if step >= steps // 2:
            total = total + found
    return line(total / (steps - steps // 2))


def fit_short(rows: Array, target: Array, guarantee: Guarantee, generator: Generator) -> Line:
    """Return what fewer steps with a wider clip find: better where the budget is small."""
    return fit(rows, target, guarantee, generator, steps=12, clip=1.0)
