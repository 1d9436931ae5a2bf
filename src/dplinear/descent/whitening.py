"""Coordinates in which rows are about as long in one direction as in any other.

A noisy Gram matrix is cleaned of what its noise is known to do, and inverted: so a descent sees no
condition number, and where the noise hides the matrix, its steps are those of plain descent. All of
this is post-processing of released numbers (docs/theory/whitened-descent.md).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from dplinear.analyst.regression.shrinkage import clean_eigenvalues
from dplinear.arrays import Floats, Indices

RIDGE = 0.5  # of the noise's spectral norm, where the matrix is seen at all
MOST_CURVATURE = 6.0  # of the expected one, that a direction may turn out to have
_LEAST_CURVATURE = 0.3
_TRACE_ERROR = 0.15  # of what rows at their clip would add up to: how far off the trace may be
_LEAST_TRACE = 0.2
_SEEN = 3.0
_CLEAR = 2.0
_LEAST = 1e-4


@dataclass(frozen=True, eq=False)
class Whitening:
    """The map u = Wᵀa, W = `matrix`.

    Σ uuᵀ is expected to be diagonal with entries `expected`, at most 1, and no more than `most`.
    `seen` says how much of the Gram matrix's shape stood out from its noise, from 0 to 1; `least`,
    how many times the noise's norm it holds in every direction.
    """

    matrix: Floats
    expected: Floats
    most: Floats
    seen: float
    least: float

    @property
    def clear(self) -> bool:
        """Whether the matrix holds more than twice the noise's norm in every direction."""
        return self.least > _CLEAR

    @property
    def dimension(self) -> float:
        """The effective number of directions."""
        return float(self.expected.sum())

    def among(self, kept: Indices, size: int) -> "Whitening":
        """Return the map from `size` coordinates of which only those at `kept` take part."""
        matrix = np.zeros((size, self.matrix.shape[1]))
        matrix[kept] = self.matrix
        return replace(self, matrix=matrix)


def plain(size: int, mean: float) -> Whitening:
    """Return the scaling of `size` directions that are expected to hold `mean` each."""
    one = np.ones(size)
    return Whitening(np.eye(size) / math.sqrt(mean), one, MOST_CURVATURE * one, 0.0, 0.0)


def whitening(gram: Floats, sigma: float, trace: float, count_error: float) -> Whitening:
    """Return the coordinates that a noisy Gram matrix gives.

    Requires: symmetric Gaussian noise of standard deviation `sigma` on the diagonal; `trace`, what
    rows at their clip would add up to by the released count, and `count_error`, how far off that
    may be because of the count.
    """
    size = len(gram)
    norm = sigma * math.sqrt(size / 2)
    values, vectors = np.linalg.eigh(gram)
    trace = _trace(values, sigma, trace, count_error)
    mean = trace / size
    seen = _excess_spread(values, sigma, mean)
    pushed, _ = clean_eigenvalues(values, sigma)
    held = _lower(np.maximum.accumulate(pushed), trace)
    held = seen * held + (1 - seen) * mean
    ridged = held + seen * min(RIDGE * norm, mean)
    most = np.clip(np.minimum(held + norm, trace) / ridged, _LEAST_CURVATURE, MOST_CURVATURE)
    return Whitening(
        matrix=np.asarray(vectors / np.sqrt(ridged)),
        expected=np.maximum(held / ridged, _LEAST),
        most=most,
        seen=seen,
        least=float(held.min()) / norm if norm else math.inf,
    )


def _trace(values: Floats, sigma: float, expected: float, count_error: float) -> float:
    """Return the trace, from the count and from the noisy matrix, weighed by their precision."""
    by_count = 1 / ((_TRACE_ERROR * expected) ** 2 + count_error**2)
    by_matrix = 1 / (sigma**2 * len(values))
    found = (expected * by_count + float(values.sum()) * by_matrix) / (by_count + by_matrix)
    return max(found, _LEAST_TRACE * expected)


def _excess_spread(values: Floats, sigma: float, mean: float) -> float:
    """Return how far the eigenvalues are spread beyond what the noise alone would do."""
    size = len(values)
    noise = sigma**2 / 2 * size * (size + 1) * (1 + 3 / size)
    spread = float(((values - mean) ** 2).sum())
    return min(1.0, _SEEN * (1 - noise / spread)) if spread > noise else 0.0


def _lower(values: Floats, total: float) -> Floats:
    """Return max(values − t, 0), with the t that makes the sum `total`; `values` ascend."""
    descending = values[::-1]
    shifts = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    kept = max(int(np.count_nonzero(descending > shifts)) - 1, 0)
    return np.asarray(np.maximum(values - shifts[kept], 0.0))
