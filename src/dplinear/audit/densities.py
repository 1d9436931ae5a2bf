"""Logarithms of likelihood ratios of many releases at once, from textbook densities.

Each takes releases of shape (trials, d, d), the second moments of both tables and the noise's law,
and returns ln p_one/p_other for every release. Nothing is shared with the profiles in `privacy/`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.arrays import Floats


def normal(values: Floats, one: Floats, other: Floats, variance: Floats) -> Floats:
    """Compare means of independent normal numbers, the last axis; discrete laws have this ratio."""
    ratio = (one - other) * (2 * values - one - other) / (2 * variance)
    return np.asarray(ratio.sum(axis=-1))


def laplace(values: Floats, one: Floats, other: Floats, scale: float) -> Floats:
    """Compare means of independent Laplace numbers, the last axis."""
    return np.asarray((np.abs(values - other) - np.abs(values - one)).sum(axis=-1) / scale)


def symmetric_gaussian(
    values: Floats, one: Floats, other: Floats, noise_model: SymmetricGaussian
) -> Floats:
    """Compare on the upper triangle."""
    rows, columns = np.triu_indices(one.shape[0])
    variance = np.where(rows == columns, noise_model.diagonal, noise_model.off_diagonal)
    at = (rows, columns)
    return normal(values[:, *at], one[at], other[at], variance)


def wishart_noise(values: Floats, one: Floats, other: Floats, noise_model: WishartNoise) -> Floats:
    """Compare |N|^((k−d−1)/2)·exp(−tr N/2τ²), which is 0 unless N is positive definite."""

    def log_density(noise: Floats) -> Floats:
        eigenvalues = np.linalg.eigvalsh(noise)
        inside = eigenvalues[:, 0] > 0
        power = (noise_model.degrees - noise.shape[-1] - 1) / 2
        logs = np.log(np.where(inside[:, None], eigenvalues, 1.0))
        log = power * logs.sum(axis=1) - eigenvalues.sum(axis=1) / (2 * noise_model.scale)
        return np.where(inside, log, -np.inf)

    first, second = log_density(values - one), log_density(values - other)
    impossible = np.isneginf(first) & np.isneginf(second)
    return np.where(impossible, 0.0, first - np.where(impossible, 0.0, second))


def sketch(values: Floats, one: Floats, other: Floats, noise_model: SketchNoise) -> Floats:
    """Compare k rows of N(0, H), H = G + ridge·I, from their moments SᵀS/k."""
    precisions, logs = _ridge_spreads(one, other, noise_model.ridge)
    traces = noise_model.rows * np.einsum("nij,ji->n", values, precisions[0] - precisions[1])
    return np.asarray(-(noise_model.rows * (logs[0] - logs[1]) + traces) / 2)


def inverse_wishart(
    values: Floats, one: Floats, other: Floats, noise_model: InverseWishartNoise
) -> Floats:
    """Compare |H|^(ν/2)·exp(−tr(H M⁻¹)/2), H = G + ridge·I."""
    _, logs = _ridge_spreads(one, other, noise_model.ridge)
    traces = np.einsum("nij,ji->n", np.linalg.inv(values), one - other)
    return np.asarray((noise_model.degrees * (logs[0] - logs[1]) - traces) / 2)


def _ridge_spreads(one: Floats, other: Floats, ridge: float) -> tuple[list[Floats], list[float]]:
    spreads = [gram + ridge * np.eye(len(gram)) for gram in (one, other)]
    logs = [float(np.linalg.slogdet(spread)[1]) for spread in spreads]
    return [np.asarray(np.linalg.inv(spread), np.float64) for spread in spreads], logs


# By the noise model that a release carries.
BY_NOISE_MODEL: dict[type, Callable[[Floats, Floats, Floats, Any], Floats]] = {
    SymmetricGaussian: symmetric_gaussian,
    WishartNoise: wishart_noise,
    SketchNoise: sketch,
    InverseWishartNoise: inverse_wishart,
}
