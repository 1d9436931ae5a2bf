"""Upper bounds on norms of public matrices, rounding included."""

import math

import numpy as np

from dplinear.arrays import Floats
from dplinear.privacy.rounding import up


def longest_column(matrix: Floats) -> float:
    """Return an upper bound on the norm of any column."""
    # A sum of m rounded squares is off by at most m + 1 roundings, its root by half and one more.
    squares = np.einsum("ij,ij->j", matrix, matrix)
    return up(math.sqrt(float(squares.max(initial=0.0))), matrix.shape[0] + 4)


def operator(matrix: Floats) -> float:
    """Return an upper bound on the largest singular value.

    A singular value is found to within a small multiple of the rounding unit times the Frobenius
    norm and the smaller side, whichever the order of the sums; ten times that is added.
    """
    small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    sides = sum(matrix.shape)
    frobenius = float(np.einsum("ij,ij->", matrix, matrix))
    largest = float(np.linalg.eigvalsh(small)[-1]) if small.size else 0.0
    return up(math.sqrt(max(largest, 0.0) + 10 * sides * 2.0**-52 * frobenius))


def product(first: float, second: float) -> float:
    """Return an upper bound on a product of bounds."""
    return up(first * second)


def longest_image(matrix: Floats, columns: Floats) -> float:
    """Return an upper bound on the norm of matrix·column, for any column."""
    # Rounding of a sum of terms: at most a unit for each of them, in all their sizes.
    error = (len(columns) + 4) * 2.0**-52 * longest_column(np.abs(matrix) @ np.abs(columns))
    return up(longest_column(matrix @ columns) + error)


def image(matrix: Floats, point: Floats) -> float:
    """Return an upper bound on the norm of matrix·point."""
    return longest_image(matrix, point[:, None])
