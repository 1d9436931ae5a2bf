"""Wishart and inverse-Wishart draws in float64, as the papers' algorithms are in NumPy.

For comparison with exact draws only: they protect nobody (`python -m dplinear.audit.precision`).
"""

import numpy as np
from scipy import linalg

from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.noise.entropy import Entropy, system
from dplinear.papers.float_noise import standard_normal


def wishart(factor: Floats, degrees: float, *, entropy: Entropy | None = None) -> Floats:
    """Draw a Wishart matrix of scale factor·factorᵀ, exactly symmetric.

    Requires: a square factor; degrees above its size less one.
    """
    half = factor @ bartlett(len(factor), degrees, entropy or system())
    return _symmetric(half @ half.T)


def inverse_wishart(factor: Floats, degrees: float, *, entropy: Entropy | None = None) -> Floats:
    """Draw M with M⁻¹ ~ Wishart((factor·factorᵀ)⁻¹, degrees): F·A⁻ᵀ·A⁻¹·Fᵀ."""
    triangle = bartlett(len(factor), degrees, entropy or system())
    # (BLAS, as LAPACK's dtrtrs starts threads for matrices of any size.)
    half = np.asarray(linalg.blas.dtrsm(1.0, triangle, factor.T, lower=1), np.float64)
    return _symmetric(half.T @ half)


def bartlett(dimension: int, degrees: float, entropy: Entropy) -> Floats:
    """Return the lower triangle A with A·Aᵀ ~ Wishart(I, degrees)."""
    triangle = np.zeros((dimension, dimension))
    below = np.tril_indices(dimension, -1)
    triangle[below] = standard_normal(len(below[0]), entropy=entropy)
    # Few beside the normal numbers, so NumPy's chi-squares take none of the time.
    squares = simulation.generator(entropy.bits(128)).chisquare(degrees - np.arange(dimension))
    triangle[np.diag_indices(dimension)] = np.sqrt(squares)
    return triangle


def _symmetric(matrix: Floats) -> Floats:
    return np.asarray(np.tril(matrix) + np.tril(matrix, -1).T)
