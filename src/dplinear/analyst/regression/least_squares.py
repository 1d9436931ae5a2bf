"""Least squares from second moments, whether or not noise left them positive definite."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from dplinear.arrays import Floats


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients, one column for each right-hand side, and what kind of matrix gave them."""

    coefficients: Floats
    positive_definite: bool


def solve(matrix: Floats, right: Floats) -> Solution:
    """Solve a symmetric system by Cholesky, or by eigenvalues where that fails.

    Promises: never raises. A matrix that is not positive definite is used as it is, as the paper's
    unscaled technique does; a singular one by its pseudo-inverse.
    """
    # Unit diagonals first: what a column is measured in must not decide what counts as singular.
    size = np.abs(np.diag(matrix))
    scale = 1 / np.sqrt(np.where(size > 0, size, 1.0))
    even = matrix * np.outer(scale, scale)
    tolerance = len(matrix) * float(np.finfo(np.float64).eps)
    try:
        factor = np.linalg.cholesky(even)
    except np.linalg.LinAlgError:
        factor = None
    if factor is not None and np.diag(factor).min() ** 2 > tolerance:
        inner = cho_solve((factor, True), scale[:, None] * right)
        return Solution(scale[:, None] * inner, positive_definite=True)
    values, vectors = np.linalg.eigh(even)
    large = np.abs(values) > tolerance * np.abs(values).max()
    inverse = np.where(large, 1 / np.where(large, values, 1.0), 0.0)
    inner = vectors @ (inverse[:, None] * (vectors.T @ (scale[:, None] * right)))
    return Solution(scale[:, None] * inner, positive_definite=False)


def without_first(gram: Floats) -> Floats:
    """Return the moments of what the first coordinate leaves unexplained (a Schur complement)."""
    if gram[0, 0] <= 0:  # noise alone: there is nothing to take out
        return np.zeros_like(gram[1:, 1:])
    return np.asarray(gram[1:, 1:] - np.outer(gram[1:, 0], gram[0, 1:]) / gram[0, 0])
