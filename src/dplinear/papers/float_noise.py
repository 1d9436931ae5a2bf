"""Normal numbers and matrix roots in float64, for schemes that promise nothing.

The bits are cryptographic, the arithmetic is not exact: which numbers can arise may tell the table
(docs/explanation/exact-noise.md). Mechanisms that promise something draw from `dplinear.noise`.
"""

import math

import numpy as np
from scipy import linalg

from dplinear.arrays import Floats
from dplinear.noise import sizes
from dplinear.noise.entropy import Entropy, system, words


def standard_normal(size: int | tuple[int, ...], *, entropy: Entropy | None = None) -> Floats:
    """Draw independent N(0, 1) numbers by Box and Muller's transform.

    Promises: uniform numbers of 53 bits or more at every magnitude, so tails reach beyond 13.
    """
    shape = sizes.shape(size, "float_noise.standard_normal")
    count, bits = math.prod(shape), entropy or system()
    pairs = -(-count // 2)
    # A uniform number may round to 1, and the logarithm of 1 is 0: no negative square.
    radius = np.sqrt(-2.0 * np.log(_uniform(pairs, bits)))
    angle = np.ldexp((words(bits, pairs) >> np.uint64(11)).astype(np.float64), -53)
    angle *= 2.0 * math.pi
    drawn = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    return drawn[:count].reshape(shape)


def square_root(matrix: Floats) -> Floats:
    """Return F with F·Fᵀ = matrix: the Cholesky factor, or U·√Λ where the matrix is singular.

    Requires: symmetric, and positive semi-definite but for rounding: eigenvalues below 0 count as
    0, and nothing raises.
    """
    try:
        return np.asarray(linalg.cholesky(matrix, lower=True), np.float64)
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), np.float64)


def _uniform(count: int, entropy: Entropy) -> Floats:
    """Return numbers in (0, 1] that keep 53 bits down to 2^-75, and never are zero."""
    high, low = words(entropy, 2 * count).reshape(2, -1).astype(np.float64)
    return np.ldexp(high + np.ldexp(low + 0.5, -64), -64)
