"""Figures 3 and 4: what is left of distances, and how noise grows with k."""

import math
from dataclasses import dataclass

import numpy as np

from dplinear.analyst.rows.distance_errors import DistanceErrorModel, Quadratic
from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.noise.simulation import Generator
from dplinear.papers.dhaliwal.design import ROWS, blobs
from dplinear.papers.dhaliwal.techniques import Technique

_BLOCK = 20  # pairs at once


@dataclass(frozen=True, eq=False)
class Recovery:
    """Errors D − s of recovered distances, of shape (pairs, releases).

    `squared` has the true s of each pair; `variance` the noise's, of each release, and `scattered`
    |aP|², what the projection alone makes of s.
    """

    error_model: DistanceErrorModel
    squared: Floats
    errors: Floats
    variance: Floats
    scattered: Floats


def recover(
    technique: Technique,
    dimension: int,
    k: int,
    seed: int,
    *,
    pairs: int = 1000,
    releases: int = 1000,
) -> Recovery:
    """Release pairs of rows, each many times, with a fresh projection and fresh noise each time.

    Requires: a technique with noise after a normal projection.
    """
    generator = simulation.generator(seed)
    table = blobs(ROWS, dimension, generator).rows
    one, two = generator.integers(0, ROWS, (2, pairs))
    apart = table[one] - table[np.where(one == two, (two + 1) % ROWS, two)]
    errors = np.empty((pairs, releases))
    variance, scattered = np.empty_like(errors), np.empty_like(errors)
    for start in range(0, pairs, _BLOCK):
        block = slice(start, start + _BLOCK)
        found = _release_pairs(technique, apart[block], k, releases, generator)
        errors[block], variance[block], scattered[block] = found
    squared = np.asarray((apart**2).sum(1))
    errors -= squared[:, None]
    error_model = DistanceErrorModel(
        technique.noise, k, dimension, float(variance.mean()), "gaussian"
    )
    return Recovery(error_model, squared, errors, variance, scattered)


def _release_pairs(
    technique: Technique, apart: Floats, k: int, releases: int, generator: Generator
) -> tuple[Floats, Floats, Floats]:
    """Return D, the variance of the noise and |aP|², for each of several pairs and releases."""
    pairs, dimension = apart.shape
    shape = (pairs, releases, dimension, k)
    projections = generator.standard_normal(shape) / math.sqrt(k)
    images = np.einsum("pd,prdk->prk", apart, projections)
    scales = technique.scales(projections)
    if technique.noise == "laplace":
        drawn = generator.laplace(0, 1, (2, pairs, releases, k))
        variance = 2 * scales**2
    else:
        drawn = generator.standard_normal((2, pairs, releases, k))
        variance = scales**2
    differences = images + scales[..., None] * (drawn[0] - drawn[1])
    noisy = (differences**2).sum(-1)
    return noisy - 2 * k * variance, variance, (images**2).sum(-1)


def paper_variances(k: int, variance: float) -> Quadratic:
    """Return Claim 7 as it is printed: (2/k)s² + 2k(7σ⁴ − σ²) + 4σ²s."""
    return Quadratic(2 / k, 4 * variance, 2 * k * (7 * variance**2 - variance))


def deviations(technique: Technique, dimension: int, k: int, seed: int, draws: int = 400) -> float:
    """Return √(1 + σ²), σ² the mean variance of the noise: the paper's Figure 4."""
    generator = simulation.generator(seed)
    projections = generator.standard_normal((draws, dimension, k)) / math.sqrt(k)
    return math.sqrt(1 + float((2 * technique.scales(projections) ** 2).mean()))
