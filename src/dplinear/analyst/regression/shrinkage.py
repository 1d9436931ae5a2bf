"""Shrinkage where noise swamps the matrix, by what its known distribution says.

The noise is rotation invariant (a diagonal variance σ², half of it off the diagonal), so it pushes
eigenvalues apart by a known amount and turns eigenvectors by a known amount. `clean_eigenvalues`
undoes the first; `shrunken_coefficients` weighs each direction of a regression by how much of it
can be signal. `benchmarks/repairs.py` measures both against the alternatives.
"""

import numpy as np

from dplinear.analyst.noise_models.matrices import NoiseModel, SymmetricGaussian, WishartNoise
from dplinear.arrays import Floats

# Prior variances of the coefficients: their total, from next to nothing to next to anything, and
# how it falls to the directions in which the features vary much or little.
_TOTALS = np.logspace(-8, 8, 49)
_TILTS = (-1.0, -0.5, 0.0, 0.5, 1.0)
_FLOOR = 0.25  # of σ: the least eigenvalue left in a cleaned matrix
_LEAST_LEFT = 0.02


def noise_scale(noise_model: NoiseModel) -> float | None:
    """Return σ of noise that is rotation invariant and does not depend on the table, or None."""
    if isinstance(noise_model, SymmetricGaussian):
        return float(np.sqrt(2 * noise_model.off_diagonal))
    if isinstance(noise_model, WishartNoise):
        return float(noise_model.scale * np.sqrt(2 * noise_model.degrees))
    return None


def clean_eigenvalues(values: Floats, sigma: float) -> tuple[Floats, float]:
    """Return eigenvalues with the noise's repulsion undone, and the share of noise that is left.

    Bun, Allez, Bouchaud and Potters 2016 (arXiv 1502.06736), additive Gaussian noise; here for few
    eigenvalues, with the Hilbert transform smoothed on the scale σ.
    """
    gaps = values[:, None] - values[None, :]
    pushed = sigma**2 * (gaps / (gaps**2 + sigma**2)).sum(1)
    size = len(values)
    left = 1 - float(pushed @ pushed) / (sigma**2 * size * (size + 1) / 2)
    return values - pushed, min(max(left, _LEAST_LEFT), 1.0)


def cleaned_matrix(matrix: Floats, sigma: float, floor: float = _FLOOR) -> tuple[Floats, float]:
    """Return the matrix with cleaned eigenvalues, none below floor·σ, and the noise left in it."""
    values, vectors = np.linalg.eigh(matrix)
    values, left = clean_eigenvalues(values, sigma)
    product = (vectors * np.maximum(values, floor * sigma)) @ vectors.T
    return np.asarray((product + product.T) / 2), left


def shrunken_coefficients(moments: Floats, sigma: float, features: int) -> Floats:
    """Return coefficients of the last coordinates on the first `features`, one column for each.

    Empirical Bayes in the eigenbasis of the features: coefficients with a normal prior, averaged
    over the prior's total and tilt by marginal likelihood. As σ goes to 0 this is least squares.
    """
    whole, left = cleaned_matrix(moments, sigma, 0.0)
    values, vectors = np.linalg.eigh(whole[:features, :features])
    values, further = clean_eigenvalues(values, sigma * np.sqrt(left))
    values = np.maximum(values, 0.0)
    if values.max() <= 0:
        return np.zeros((features, len(moments) - features))
    turned = vectors.T @ whole[:features, features:]
    prior = _priors(values)
    # Of a direction's covariance with the target: the signal's variance, and the noise's.
    noise = sigma**2 / 2 * (left + left * further * prior.sum(-1, keepdims=True))
    spread = prior * values**2 + noise
    gains = prior * values / spread
    columns = [_average_gains(spread, gains, column) * column for column in turned.T]
    return np.asarray(vectors @ np.stack(columns, axis=1))


def _priors(values: Floats) -> Floats:
    """Return prior variances of the coefficients, a row for each total and tilt."""
    relative = np.maximum(values / values.max(), 1e-3)
    shapes = np.stack([relative**tilt for tilt in _TILTS])
    shapes /= shapes.sum(-1, keepdims=True)
    return np.asarray((_TOTALS[:, None, None] * shapes).reshape(-1, len(values)))


def _average_gains(spread: Floats, gains: Floats, column: Floats) -> Floats:
    """Return the gains, averaged by the marginal likelihood of each prior."""
    log_likelihood = -0.5 * (np.log(spread) + column**2 / spread).sum(-1)
    weights = np.exp(log_likelihood - log_likelihood.max())
    return np.asarray(weights @ gains / weights.sum())
