"""From a noisy matrix to one that can be solved: what to do when noise made it indefinite.

Sheffet 2015 (arXiv 1507.00056v1), section 6: techniques 1 and 4 for Gaussian noise, 3 and 6 for
Wishart noise, and the alternatives of its footnote 6; and shrinkage by the noise's known law. All
are free post-processing. `benchmarks/repairs.py` measures them against each other.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dplinear.analyst.noise_models.matrices import NoiseModel, SymmetricGaussian, WishartNoise
from dplinear.analyst.regression.shrinkage import cleaned_matrix, noise_scale
from dplinear.arguments import choice
from dplinear.arrays import Floats

DELTA = 1e-6


@dataclass(frozen=True, eq=False)
class Block:
    """What a repair may use: a square block of a release, twice, and the law of its noise.

    `unbiased_estimate` and `positive` are the law's two views of the block; `delta` is the chance
    that the paper's high-probability bounds are allowed to fail with.
    """

    unbiased_estimate: Floats
    positive: Floats
    noise_model: NoiseModel
    delta: float = DELTA

    @property
    def spread(self) -> float:
        """The expected spectral norm of the noise."""
        return self.noise_model.spread(self.unbiased_estimate)


def is_positive_definite(matrix: Floats) -> bool:
    """Return whether a symmetric matrix has a Cholesky factor."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def none(block: Block) -> Floats:
    """Return the matrix whose mean is right, as it is (technique 1)."""
    return block.unbiased_estimate


def released_matrix(block: Block) -> Floats:
    """Return the matrix as released, the mean of the noise still in it (techniques 2, 3, 5)."""
    return block.positive


def scale_matrix(block: Block) -> Floats:
    """Return the paper's scaled version, by the kind of noise (techniques 4 and 6)."""
    if isinstance(block.noise_model, SymmetricGaussian):
        return raise_diagonal(block.unbiased_estimate, block.spread)
    if isinstance(block.noise_model, WishartNoise):
        return subtract_noise_mean(block.positive, block.noise_model, block.delta)
    return block.positive


def raise_diagonal(matrix: Floats, amount: float) -> Floats:
    """Return the matrix if it is positive definite, otherwise with `amount` on its diagonal."""
    if is_positive_definite(matrix):
        return matrix
    return np.asarray(matrix + amount * np.eye(len(matrix)))


def subtract_noise_mean(matrix: Floats, noise_model: WishartNoise, delta: float) -> Floats:
    """Return the matrix less as much of the noise's mean as leaves it positive definite.

    Departs from the paper: where its second choice is not positive definite either, the matrix is
    returned as released; and √k − √d − √(2 ln(4/δ)) counts as 0 where it is negative, since
    its square would subtract what the noise never added.
    """
    edge = (
        math.sqrt(noise_model.degrees) - math.sqrt(len(matrix)) - math.sqrt(2 * math.log(4 / delta))
    )
    for amount in (
        noise_model.degrees * noise_model.scale,
        noise_model.scale * max(0.0, edge) ** 2,
    ):
        candidate = np.asarray(matrix - amount * np.eye(len(matrix)))
        if is_positive_definite(candidate):
            return candidate
    return matrix


def clip_eigenvalues(block: Block) -> Floats:
    """Return the nearest positive semidefinite matrix (footnote 6: eigenvalues to zero)."""
    return floor_eigenvalues(block.unbiased_estimate, 0.0)


def floor_eigenvalues(matrix: Floats, floor: float) -> Floats:
    """Return the matrix with its negative eigenvalues set to `floor` (footnote 6: 0 or 1)."""
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= 0:
        return matrix
    values = np.where(values < 0, floor, values)
    product = (vectors * values) @ vectors.T
    return np.asarray((product + product.T) / 2)


def shrink_eigenvalues(block: Block) -> Floats:
    """Return the matrix with its eigenvalues cleaned of noise, where the law allows that."""
    sigma = noise_scale(block.noise_model)
    return block.positive if sigma is None else cleaned_matrix(block.unbiased_estimate, sigma)[0]


def choose_repair(block: Block) -> str:
    """Return the repair that "auto" stands for: none unless noise swamps some direction."""
    least = float(np.linalg.eigvalsh(block.unbiased_estimate)[0])
    return "none" if least > 2 * block.spread else fallback(block.noise_model)


def fallback(noise_model: NoiseModel) -> str:
    """Return the repair of a swamped matrix: shrinkage, where the noise is the same everywhere."""
    return "released" if noise_scale(noise_model) is None else "shrunk"


METHODS: dict[str, Callable[[Block], Floats]] = {
    "none": none,
    "released": released_matrix,
    "scaled": scale_matrix,
    "clipped": clip_eigenvalues,
    "shrunk": shrink_eigenvalues,
    "floor": lambda block: floor_eigenvalues(block.unbiased_estimate, 1.0),
}
OPTIONS = ("auto", *METHODS)


@dataclass(frozen=True, eq=False)
class Repaired:
    """A matrix that was repaired on the rows and columns in use, and how."""

    matrix: Floats
    method: str
    positive_definite: bool
    unbiased_estimate: Floats


def repair_matrix(
    values: Floats,
    noise_model: NoiseModel,
    method: str = "auto",
    *,
    used: Sequence[int] | None = None,
    delta: float = DELTA,
    where: str = "gram",
) -> Repaired:
    """Return the estimate of G from a released matrix.

    Requires: the whole released matrix; `used_indices`, the places whose rows and columns matter
    (all).
    Promises: d x d; the used block is repaired by itself, so that features outside a regression
    cannot change it; the rest is unbiased. `method` is the one that "auto" chose.
    """
    hint = "" if noise_model.known else "the size of the noise is not public."
    choice(method, "repair", where, OPTIONS if noise_model.known else ("released",), hint=hint)
    indices = range(len(values)) if used is None else used
    if method == "auto":
        method = choose_repair(block_of(values, noise_model, indices, delta))
    unbiased = best(values, noise_model)
    whole = np.array(unbiased)
    corner = np.ix_(indices, indices)
    whole[corner] = METHODS[method](block_of(values, noise_model, indices, delta))
    return Repaired(whole, method, is_positive_definite(whole[corner]), unbiased)


def best(values: Floats, noise_model: NoiseModel) -> Floats:
    """Return the estimate of G whose mean is right or, where that is not known, as released."""
    return (
        noise_model.unbiased_estimate(values) if noise_model.known else noise_model.positive(values)
    )


def block_of(
    values: Floats, noise_model: NoiseModel, indices: Sequence[int], delta: float = DELTA
) -> Block:
    """Return a principal block of a released matrix, with the law of that block."""
    corner = np.ix_(indices, indices)
    own = noise_model.part(len(values), indices)
    unbiased = best(values, noise_model)
    return Block(unbiased[corner], noise_model.positive(values)[corner], own, delta)
