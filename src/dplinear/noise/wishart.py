"""Continuous noise: normal, chi-square, Wishart and inverse-Wishart draws, and Gaussian sketches.

The bits are cryptographic, the arithmetic is float64: what was published in `papers/` is drawn
with it, and keeps the guarantee of an ideal mechanism only. No gate uses it. Matrices given here
may be private, so errors quote their shape and never an entry; that there is an error tells
something too, so pass only matrices that are positive semidefinite for every table.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.noise import sizes
from dplinear.noise.entropy import Entropy, system, words

# Rounding in a Gram matrix of d columns moves an eigenvalue by about d·2^-53 of the largest.
_ROUNDING = 2.0**-40


def standard_normal(size: int | tuple[int, ...], *, entropy: Entropy | None = None) -> Floats:
    """Draw independent N(0, 1) numbers by Box and Muller's transform.

    Promises: uniform numbers of 53 bits or more at every magnitude, so tails reach beyond 13.
    """
    shape = sizes.shape(size, "wishart.standard_normal")
    return _normal(math.prod(shape), entropy or system()).reshape(shape)


def chi_square(
    degrees: float, size: int | tuple[int, ...], *, entropy: Entropy | None = None
) -> Floats:
    """Draw independent chi-square numbers.

    Requires: degrees a real number above 0.
    Departs from Marsaglia and Tsang 2000: the squeeze is left out, as it saves nothing here.
    """
    degrees = arguments.positive(degrees, "degrees", "wishart.chi_square")
    shape = sizes.shape(size, "wishart.chi_square")
    drawn = _chi_square(np.full(math.prod(shape), degrees), entropy or system())
    return drawn.reshape(shape)


def wishart_from_factor(
    factor: ArrayLike, degrees: float, *, entropy: Entropy | None = None
) -> Floats:
    """Draw a d x d Wishart matrix of scale factor @ factor.T, by Bartlett's decomposition.

    Requires: a square factor; degrees a real number above d - 1.
    Promises: exactly symmetric, of mean degrees·scale.
    """
    where = "wishart.wishart_from_factor"
    root = _square(factor, "factor", where)
    degrees = _degrees(degrees, len(root), where)
    half = root @ _bartlett(len(root), degrees, entropy or system())
    return _symmetric(half @ half.T)


def inverse_wishart(psi: ArrayLike, degrees: float, *, entropy: Entropy | None = None) -> Floats:
    """Draw M with M⁻¹ ~ Wishart(psi⁻¹, degrees).

    Requires: psi symmetric and positive definite; degrees a real number above d - 1.
    Promises: exactly symmetric; of mean psi/(degrees - d - 1) where that is positive.
    """
    where = "wishart.inverse_wishart"
    matrix = _check_symmetric(psi, "psi", where)
    degrees = _degrees(degrees, len(matrix), where)
    try:
        factor = linalg.cholesky(matrix, lower=True)
    except linalg.LinAlgError:
        raise _matrix_error("psi", where, "positive definite", matrix) from None
    # With psi = F Fᵀ the inverse is F⁻ᵀ A Aᵀ F⁻¹ ~ Wishart(psi⁻¹), so M = F A⁻ᵀ A⁻¹ Fᵀ.
    triangle = _bartlett(len(matrix), degrees, entropy or system())
    # (BLAS, as LAPACK's dtrtrs starts threads for matrices of any size.)
    half = np.asarray(linalg.blas.dtrsm(1.0, triangle, factor.T, lower=1), np.float64)
    return _symmetric(half.T @ half)


def square_root(
    matrix: ArrayLike, parameter: str = "matrix", where: str = "wishart.square_root"
) -> Floats:
    """Return F with F Fᵀ = matrix: the Cholesky factor, or U·√Λ where the matrix is singular.

    Eigenvalues that are negative by no more than rounding count as zero; others are an error.
    """
    checked = _check_symmetric(matrix, parameter, where)
    try:
        return np.asarray(linalg.cholesky(checked, lower=True), np.float64)
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(checked)
    if values[0] < -_ROUNDING * len(checked) * max(values[-1], 0.0):
        raise _matrix_error(parameter, where, "positive semidefinite", checked)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), np.float64)


def _degrees(degrees: Any, dimension: int, where: str) -> float:
    hint = "a Wishart matrix needs more degrees of freedom than its dimension less one."
    return arguments.real(degrees, "degrees", where, low=dimension - 1, open_low=True, hint=hint)


def _matrix_error(
    parameter: str, where: str, rule: str, matrix: NDArray[Any]
) -> arguments.ArgumentError:
    shape = " x ".join(str(side) for side in matrix.shape) or "0-dimensional"
    hint = "its entries are not shown, as they may be private."
    return arguments.ArgumentError(parameter, where, rule, f"a {shape} array that is not", hint)


def _square(matrix: ArrayLike, parameter: str, where: str) -> Floats:
    rule = "a square matrix of finite numbers"
    try:
        array = np.asarray(matrix, np.float64)
    except (TypeError, ValueError, OverflowError):
        got = f"a {type(matrix).__name__} that is not"
        raise arguments.ArgumentTypeError(parameter, where, rule, got) from None
    if array.ndim != 2 or len(array) == 0 or array.shape[0] != array.shape[1]:
        raise _matrix_error(parameter, where, rule, array)
    if not np.isfinite(array).all():
        raise _matrix_error(parameter, where, rule, array)
    return array


def _check_symmetric(matrix: ArrayLike, parameter: str, where: str) -> Floats:
    array = _square(matrix, parameter, where)
    if np.abs(array - array.T).max() > _ROUNDING * np.abs(array).max():
        raise _matrix_error(parameter, where, "symmetric", array)
    return array


def _symmetric(matrix: Floats) -> Floats:
    return np.tril(matrix) + np.tril(matrix, -1).T


def _uniform(count: int, entropy: Entropy) -> Floats:
    """Return numbers in (0, 1] that keep 53 bits down to 2^-75, and never are zero."""
    high, low = words(entropy, 2 * count).reshape(2, -1).astype(np.float64)
    return np.ldexp(high + np.ldexp(low + 0.5, -64), -64)


def _normal(count: int, entropy: Entropy) -> Floats:
    pairs = -(-count // 2)
    # A uniform number may round to 1, and the logarithm of 1 is 0: no negative square.
    radius = np.sqrt(-2.0 * np.log(_uniform(pairs, entropy)))
    angle = np.ldexp((words(entropy, pairs) >> np.uint64(11)).astype(np.float64), -53)
    angle *= 2.0 * math.pi
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]


def _chi_square(degrees: Floats, entropy: Entropy) -> Floats:
    """Return one number for each of the degrees: Marsaglia and Tsang 2000, Section 4 and 6."""
    # Below shape 1 the method draws at shape + 1 and multiplies by a power of a uniform number.
    half = degrees / 2.0
    d = np.where(half < 1.0, half + 1.0, half) - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    drawn = np.empty(len(degrees))
    missing = np.arange(len(degrees))
    while len(missing):
        x = _normal(len(missing), entropy)
        v = (1.0 + c[missing] * x) ** 3
        positive = v > 0.0
        log_v = np.log(np.where(positive, v, 1.0))
        bound = 0.5 * x * x + d[missing] * (1.0 - v + log_v)
        accepted = positive & (np.log(_uniform(len(missing), entropy)) < bound)
        drawn[missing[accepted]] = (d[missing] * v)[accepted]
        missing = missing[~accepted]
    small = np.flatnonzero(half < 1.0)
    drawn[small] *= _uniform(len(small), entropy) ** (1.0 / half[small])
    return 2.0 * drawn


def _bartlett(dimension: int, degrees: float, entropy: Entropy) -> Floats:
    """Return the lower triangle A with A Aᵀ ~ Wishart(I, degrees)."""
    triangle = np.zeros((dimension, dimension))
    below = np.tril_indices(dimension, -1)
    triangle[below] = _normal(len(below[0]), entropy)
    diagonal = np.sqrt(_chi_square(degrees - np.arange(dimension, dtype=np.float64), entropy))
    triangle[np.diag_indices(dimension)] = diagonal
    return triangle
