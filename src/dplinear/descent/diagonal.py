"""Coordinates for rows of which few cells are not 0: levels of categories, beside a few numbers.

Each level is a coordinate of its own, and what it holds is released alone: one row moves all of
these numbers by no more than its few cells, however many levels there are, where the noise of a
whole Gram matrix grows with them. Rows have about the same length as they are, so nothing is
rescaled, for that would lengthen rows of rare levels: the noise is that of the longest ones. All
of this is post-processing of released numbers (docs/theory/whitened-descent.md).
"""

import math
from dataclasses import dataclass

import numpy as np

from dplinear.adaptive.noisy_sums import Answer
from dplinear.arrays import Booleans, Floats
from dplinear.descent.whitening import Whitening

_SIZES = 60  # that a coordinate may hold
_SMALLEST = 1 / 64  # of the mean: the least of them but 0
_ROUNDS = 100
_DEVIATIONS = 2.0  # of what a coordinate holds, that it may hold more than expected
_LEAST = 1e-4


@dataclass(frozen=True, eq=False)
class Sizes:
    """What coordinates are expected to hold, and its standard deviation."""

    means: Floats
    deviations: Floats


def expected_sizes(values: Floats, sigma: float) -> Sizes:
    """Return what each coordinate holds, from noisy numbers of many: the posterior means.

    Requires: independent Gaussian noise of standard deviation `sigma`.
    Empirical Bayes without a shape for the prior: its weights on a grid of sizes are those of
    maximum likelihood (Laird 1978), by steps of expectation and maximisation. So levels that are
    all alike are seen to be, and a few that many rows hold stand out of the others.
    """
    most = max(float(values.max()), sigma)
    mean = min(max(float(values.mean()), sigma / len(values)), most)
    grid = np.concatenate(([0.0], np.geomspace(_SMALLEST * mean, most, _SIZES)))
    spans = ((values[:, None] - grid) / max(sigma, 1e-9 * most)) ** 2 / 2
    likelihood = np.exp(spans.min(axis=1, keepdims=True) - spans)
    weights = np.full(len(grid), 1 / len(grid))
    for _ in range(_ROUNDS):
        weights = weights * (likelihood / (likelihood @ weights)[:, None]).mean(axis=0)
    posterior = likelihood * weights
    posterior /= posterior.sum(axis=1, keepdims=True)
    means = posterior @ grid
    variances = np.maximum(posterior @ grid**2 - means**2, 0.0)
    return Sizes(means, np.sqrt(variances))


def diagonal(levels: Sizes, others: Answer, among: Booleans, blocks: float) -> Whitening:
    """Return the coordinates of rows with few cells that are not 0: levels first, then the others.

    Requires: `levels`, what the coordinates at `among` hold; `others`, a noisy Gram matrix of the
    rest, which are turned to its eigenvectors. Within each of so many `blocks`, the rest and the
    levels of each category, nothing varies together.
    So the Gram matrix is at most `blocks` times its diagonal, by Cauchy and Schwarz.
    """
    values, vectors = np.linalg.eigh(others.values)
    norm = others.sigma * math.sqrt(len(values) / 2)
    means = np.append(levels.means, np.maximum(values, norm))
    most = means + _DEVIATIONS * np.append(levels.deviations, np.full(len(values), norm))
    unit = float(most.max())
    turned = np.zeros((len(means), len(means)))
    count = len(levels.means)
    turned[among, :count] = np.eye(count)
    turned[~among, count:] = vectors
    expected = np.maximum(means / unit, _LEAST)
    steepest = blocks * np.maximum(most / unit, expected)
    return Whitening(turned / math.sqrt(unit), expected, steepest, 0.0, 0.0)
