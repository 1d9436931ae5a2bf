"""The covariance of rows by CoinPress: coordinates made rounder step by step.

Biswas, Dong, Kamath, Ullman 2020 (arXiv 2006.06618), MVC; Ediger 2021. docs/theory/coinpress.md,
has the sensitivities and the order in which whitenings are multiplied.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dplinear.adaptive.noisy_sums import NoisySums, Query
from dplinear.arrays import Floats
from dplinear.coinpress import radii
from dplinear.coinpress.windows import Lens, Views
from dplinear.exact.mapped_sums import MappedGram, MappedSum
from dplinear.privacy.neighbours import Neighbours

CENTRING = Fraction(1, 8)  # of a step's share: errors of the mean are of second order


@dataclass(frozen=True, eq=False)
class Whitener:
    """What is thought of rows before a step: L(x − centre) has about the identity for covariance.

    `root` is L, the transpose of the paper's A. Where the centre is `known` it is not looked for.
    """

    centre: Floats
    root: Floats
    known: bool = False


@dataclass(frozen=True, eq=False)
class CovarianceEstimate:
    """A released covariance in the columns' own units.

    `image` is that of the whitened rows, before it is taken back; it has symmetric noise of `sigma`
    on its diagonal, and `errors` are the standard deviations that this gives `values`. `next` is
    what a further step would start from, and whitens rows like these.
    """

    mean: Floats
    values: Floats
    image: Floats
    errors: Floats
    next: Whitener


def covariance(
    sums: NoisySums,
    table: Views,
    rows: float,
    start: Whitener,
    shares: Sequence[Fraction],
) -> CovarianceEstimate:
    """Release the covariance in as many steps as there are shares of μ².

    Requires: `rows`, the number of rows where it is public, a noisy count otherwise.
    Promises: each step is the Gram matrix of the whitened rows, clipped to a length γ, and their
    sum, unless the centre is known; a row moves them by γ² and γ, whatever it holds. Without noise
    the last step is the covariance of the rows that are then within γ, with those beyond clipped.
    Departs from the paper: eigenvalues below 0 become 0, not their absolute value; L becomes
    U^(−1/2) L, so that it whitens the table's own rows after any number of steps; γ, which is
    g(d, .1) there, grows with the number of rows; U leaves out what noise adds above 1; means are
    released with second moments, and taken off; no direction is taken to be wider than the bounds
    allow.
    """
    now, estimate = start, None
    for share in shares:
        estimate = _step(sums, table, rows, now, share)
        now = estimate.next
    assert estimate is not None  # noqa: S101 - there is a share
    return estimate


def _step(
    sums: NoisySums, table: Views, rows: float, now: Whitener, share: Fraction
) -> CovarianceEstimate:
    size = len(now.centre)
    spared = Fraction(0) if now.known else share * CENTRING
    clip = _length(sums, rows, size, share - spared)
    lens = Lens.of(table, now.root, now.centre, clip)
    gram = MappedGram(lens.view.shape, lens.matrix, clip)
    queries = [Query(gram, share - spared)]
    if not now.known:
        queries.append(Query(MappedSum(lens.view.shape, lens.matrix, clip), spared))
    second, *first = sums.ask(queries, lens.view)
    seen = lens.with_matrix(gram.integers, gram.scale)
    offset, error = np.zeros(size), 0.0
    if first:
        offset, error = first[0].values / rows, first[0].sigma / rows
    sigma = second.sigma / rows
    # The noise of the offset adds its variance to the square, which is taken off again.
    raw = second.values / rows - np.outer(offset, offset) + error**2 * np.eye(size)
    image = positive(raw)
    centre = seen.point(offset) if first else now.centre
    noise = radii.noise_norm(sigma, size)
    root = rounder(image, noise, radii.sampling(size, rows)) @ now.root
    root = within_bounds(root, (table.high - table.low) / 2)
    following = Whitener(np.clip(centre, table.low, table.high), root, now.known)
    values, errors = seen.covariance(image), _errors(seen.covariance(np.eye(size)), sigma)
    return CovarianceEstimate(following.centre, values, image, errors, following)


def _length(sums: NoisySums, rows: float, size: int, share: Fraction) -> float:
    """Return the best length to clip rows to, for what a matrix may cost."""
    replaced = sums.budget.neighbours is Neighbours.REPLACE
    moved = math.sqrt(MappedGram.replaced if replaced else 1)
    return radii.length(size, moved / (rows * sums.budget.mu * math.sqrt(share)))


def _errors(back: Floats, sigma: float) -> Floats:
    """Return the standard deviations of B N Bᵀ, N symmetric noise of `sigma`, for B Bᵀ.

    N has covariance σ²/2 (δ_km δ_ln + δ_kn δ_lm), whether on its diagonal or off it.
    """
    root = np.sqrt(np.diag(back))
    alike = back / root[:, None] / root  # so that no fourth power of a bound is taken
    return np.asarray(sigma * np.sqrt((1 + alike**2) / 2) * root * root[:, None])


def positive(matrix: Floats) -> Floats:
    """Return the nearest matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def rounder(image: Floats, noise: float, ridge: float) -> Floats:
    """Return U^(−1/2), U the covariance of whitened rows and a ridge.

    What is above 1 by no more than the noise's norm counts as 1: else noise would widen the next
    step, and that would have more of it.
    """
    values, vectors = np.linalg.eigh(image)
    kept = np.maximum(np.minimum(values, 1.0), values - noise)
    return np.asarray((vectors / np.sqrt(np.maximum(kept, 0.0) + ridge)) @ vectors.T)


def within_bounds(root: Floats, half: Floats) -> Floats:
    """Return a whitening that takes no direction to be wider than cells in [−1, 1] can be.

    Their covariance is at most d in every direction. Else noise, where it is most of what is seen,
    widens one direction step after step, until L has no inverse.
    """
    left, values, right = np.linalg.svd(root * half)
    least = 1 / math.sqrt(len(values))
    if values[-1] >= least:
        return root
    return np.asarray((left * np.maximum(values, least)) @ right / half)
