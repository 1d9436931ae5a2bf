"""The elastic net from second moments: coordinate descent that never sees a row.

Minimises ½bᵀQb − cᵀb + Σ wⱼ|bⱼ|, where Q and c are moments of the features and of the features
with the target. Coordinate descent with covariance updates (Friedman, Hastie and Tibshirani 2010,
section 2.2) finds the support; a Newton step on the support, cut where a sign would change, gives
the digits (Lee, Battle, Raina and Ng 2006, the feature-sign search).
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dplinear.arrays import Floats, Indices

TOLERANCE = 1e-10
_ROUNDS = 2_000
_SWEEPS = 10


@dataclass(frozen=True, eq=False)
class Sparse:
    """A solution, and how far it is from the best one.

    `gap` bounds how far the objective is above its least value, as a share of the target's moment;
    `violation` is the largest breach of the optimality conditions, as a share of the largest |c|
    (both for features scaled to unit moments).
    """

    coefficients: Floats
    gap: float
    violation: float

    @property
    def converged(self) -> bool:
        """Whether the optimality conditions hold to the tolerance."""
        return self.gap <= TOLERANCE and self.violation <= TOLERANCE


def elastic_net(matrix: Floats, right: Floats, square: float, weights: Floats) -> Sparse:
    """Minimise ½bᵀQb − cᵀb + Σ wⱼ|bⱼ|.

    Requires: Q = `matrix` positive semidefinite, a ridge penalty already on its diagonal; c =
    `right`; `square` the target's own moment; w = `weights`, all above 0.
    Promises: the minimiser to `TOLERANCE` in `gap` and `violation`. A feature that is zero in every
    row gets 0.
    """
    diagonal = np.diag(matrix)
    empty = diagonal <= 0
    size = np.sqrt(np.where(empty, 1.0, diagonal))
    even = matrix / np.outer(size, size)
    inner = np.where(empty, 0.0, right / size)
    cost = weights / size
    found = _descend(even, inner, square, cost)
    return Sparse(found.coefficients / size, found.gap, found.violation)


def _descend(matrix: Floats, right: Floats, square: float, weights: Floats) -> Sparse:
    """Minimise for features of unit moments."""
    b = np.zeros(len(right))
    gradient = right.copy()  # c − Qb, kept up to date
    everything = np.arange(len(right))
    for _ in range(_ROUNDS):
        _sweep(matrix, weights, b, gradient, everything)
        for _ in range(_SWEEPS):
            if not _sweep(matrix, weights, b, gradient, np.flatnonzero(b)):
                break
        b = _polish(matrix, right, weights, b)
        gradient = right - matrix @ b
        found = _certify(b, gradient, right, square, weights)
        if found.converged:
            break
    return found


def _sweep(matrix: Floats, weights: Floats, b: Floats, gradient: Floats, indices: Indices) -> bool:
    """Minimise over one coordinate after another, in place; return whether any moved."""
    moved = False
    for j in indices:
        old = b[j]
        wish = old + gradient[j]
        new = np.sign(wish) * max(abs(wish) - weights[j], 0.0)
        if new != old:
            b[j] = new
            gradient -= matrix[j] * (new - old)
            moved = True
    return moved


def _polish(matrix: Floats, right: Floats, weights: Floats, b: Floats) -> Floats:
    """Return the minimiser with the signs of b, or the best point on the way where one vanishes."""
    b = b.copy()
    while True:
        support = np.flatnonzero(b)
        if not len(support):
            return b
        here = b[support]
        downhill = (right - matrix @ b)[support] - weights[support] * np.sign(here)
        step, whole = _newton(matrix[np.ix_(support, support)], downhill)
        # How far each coefficient can go before it vanishes, where it is on its way to zero.
        shrinking = step * np.sign(here) < 0
        reach = np.full(len(here), np.inf)
        reach[shrinking] = -here[shrinking] / step[shrinking]
        nearest = reach.min()
        if nearest >= 1 and whole:
            b[support] = np.where(reach == 1, 0.0, here + step)
            return b
        if not np.isfinite(nearest):
            return b
        b[support] = np.where(reach == nearest, 0.0, here + nearest * step)


def _newton(matrix: Floats, downhill: Floats) -> tuple[Floats, bool]:
    """Return the step to the minimum of a quadratic, and whether it ends there.

    Where the quadratic is flat and the slope is not, the step is that way and has no end.
    """
    try:
        return np.asarray(cho_solve(cho_factor(matrix, lower=True), downhill)), True
    except LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
    flat = values <= len(matrix) * np.finfo(np.float64).eps * values[-1]
    inner = vectors.T @ downhill
    if np.abs(inner[flat]).max(initial=0.0) > TOLERANCE * np.abs(downhill).max():
        return np.asarray(vectors[:, flat] @ inner[flat]), False
    inverse = np.where(flat, 0.0, 1 / np.where(flat, 1.0, values))
    return np.asarray(vectors @ (inverse * inner)), True


def _certify(b: Floats, gradient: Floats, right: Floats, square: float, weights: Floats) -> Sparse:
    """Return b with its duality gap and its breach of the optimality conditions."""
    zero = b == 0
    breach = np.where(
        zero, np.maximum(np.abs(gradient) - weights, 0.0), np.abs(gradient - weights * np.sign(b))
    )
    largest = float(np.abs(right).max()) or 1.0
    # The residual r, shrunk until it is feasible for the dual, bounds the least value from below.
    fitted = float(right @ b)
    residual = square - fitted - float(gradient @ b)
    shrink = min(1.0, float((weights / np.maximum(np.abs(gradient), weights)).min()))
    primal = residual / 2 + float(weights @ np.abs(b))
    dual = shrink * (square - fitted) - shrink**2 * residual / 2
    scale = square if square > 0 else 1.0
    return Sparse(b, abs(primal - dual) / scale, float(breach.max()) / largest)
