"""Logarithms of likelihood ratios of releases, from textbook densities and the released law."""

import numpy as np

from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.mechanisms import Measurement

from .tables import Matrix


def _logdet(matrix: Matrix) -> float:
    sign, value = np.linalg.slogdet(matrix)
    return float(value) if sign > 0 else -np.inf


def _ridged(gram: Matrix, ridge: float) -> Matrix:
    return np.asarray(gram + ridge * np.eye(len(gram)))


def gaussian(measurement: Measurement, one: Matrix, other: Matrix) -> float:
    """Compare on the upper triangle; the discrete law has the density's ratios exactly."""
    law = measurement.noise_model
    assert isinstance(law, SymmetricGaussian)
    upper = np.triu_indices(len(one))
    variance = np.where(upper[0] == upper[1], law.diagonal, law.off_diagonal)
    y, a, b = measurement.values[upper], one[upper], other[upper]
    return float((((y - b) ** 2 - (y - a) ** 2) / (2 * variance)).sum())


def wishart(measurement: Measurement, one: Matrix, other: Matrix) -> float:
    law = measurement.noise_model
    assert isinstance(law, WishartNoise)

    def density(noise: Matrix) -> float:
        if np.linalg.eigvalsh(noise)[0] <= 0:
            return -np.inf
        power = (law.degrees - len(noise) - 1) / 2
        return power * _logdet(noise) - float(np.trace(noise)) / (2 * law.scale)

    return density(measurement.values - one) - density(measurement.values - other)


def sketch(measurement: Measurement, one: Matrix, other: Matrix) -> float:
    law = measurement.noise_model
    assert isinstance(law, SketchNoise)
    drawn = measurement.values
    moments = drawn.T @ drawn if drawn.shape[0] == law.rows else drawn * law.rows

    def density(gram: Matrix) -> float:
        spread = _ridged(gram, law.ridge)
        trace = float(np.trace(np.linalg.solve(spread, moments)))
        return -law.rows / 2 * _logdet(spread) - trace / 2

    return density(one) - density(other)


def inverse(measurement: Measurement, one: Matrix, other: Matrix) -> float:
    law = measurement.noise_model
    assert isinstance(law, InverseWishartNoise)

    def density(gram: Matrix) -> float:
        spread = _ridged(gram, law.ridge)
        trace = float(np.trace(np.linalg.solve(measurement.values, spread)))
        return law.degrees / 2 * _logdet(spread) - trace / 2

    return density(one) - density(other)
