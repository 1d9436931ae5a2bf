"""Noisy gradient descent: clipped gradients of rows, summed, with Gaussian noise at each step.

The method of Song, Chaudhuri and Sarwate 2013 and Bassily, Smith and Thakurta 2014 on all rows at
each step, with the clipping of Abadi et al. 2016 (arXiv 1607.00133v2), calibrated jointly: a few
percent of μ² buy a count, the rows' size and the largest curvature; the rest is split evenly over
the steps.

Sensitivities under add_remove: 1 for the count; the longest row's squared norm for the sum of
squared norms; B² for λ_max of the Gram matrix of rows of norm at
most B (Weyl); for each step the clip C, as a row adds one clipped vector to the sum.
"""

import math
from dataclasses import dataclass

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
SIZE_SHARE = 0.01
CURVATURE_SHARE = 0.03
ROW_CLIP = 2.0  # in sizes of rows


@dataclass(frozen=True)
class Scales:
    """The noise of each release, a unit of its sensitivity."""

    count: float
    size: float
    curvature: float
    step: float


def noise_scales(guarantee: Guarantee, steps: int) -> Scales:
    """Return the noise by shares of μ²; the steps share evenly what the three others leave."""
    mu = mu_of(guarantee)
    rest = 1 - COUNT_SHARE - SIZE_SHARE - CURVATURE_SHARE
    shares = COUNT_SHARE, SIZE_SHARE, CURVATURE_SHARE, rest / steps
    return Scales(*(1 / (mu * math.sqrt(share)) for share in shares))


def measured(wide: Array, scales: Scales, generator: Generator) -> tuple[float, float]:
    """Return private values of the rows' size (root mean square norm) and of λ_max.

    The size is the typical one of the convention unless the rows are clearly longer: by two
    standard deviations of the noise. λ_max is more likely too large than too small; the constant
    column alone has curvature n/16, so the count gives it a floor.
    """
    typical, longest = TYPICAL * math.sqrt(wide.shape[1]), largest_norm(wide.shape[1] - 1)
    count = max(len(wide) + scales.count * generator.standard_normal(), 1.0)
    sigma = scales.size * longest**2
    squares = float(np.einsum("ij,ij->", wide, wide)) + sigma * generator.standard_normal()
    size = math.sqrt(min(max((squares - 2 * sigma) / count, typical**2), longest**2))
    bound = min(ROW_CLIP * size, longest)
    inside = clipped(wide, bound)
    sigma = scales.curvature * bound**2
    largest = float(np.linalg.eigvalsh(inside.T @ inside)[-1])
    largest += sigma * (1 + generator.standard_normal())
    return size, min(max(largest, CONSTANT**2 * count), bound**2 * count)


def fit(
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
    gradients (the rows' private size times a typical target); a step's length is one over the
    private curvature.
    Promises: the guarantee, add_remove: μ² adds along the steps.
    """
    wide = with_constant(rows)
    size = wide.shape[1]
    scales = noise_scales(guarantee, steps)
    length, curvature = measured(wide, scales, generator)
    limit = clip * length * TYPICAL
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    most = limit / lengths  # the constant column keeps lengths above zero
    sigma = scales.step * limit
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
