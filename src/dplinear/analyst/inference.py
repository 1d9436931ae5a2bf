"""Standard errors and intervals for a regression on released moments, in closed form.

Two things move a coefficient: which rows happened to be in the table (sampling), and the noise that
was added (privacy). With W the working moments, A = (Wxx + P)⁻¹ and r = [−b, 1], the estimate moves
by A times the x-part of (sampling error + noise)·r; its covariance matrices, and what the noise does
to second order, come from the noise's law (docs/inference.md, "Intervals").
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from dplinear.analyst.laws import Law, Matrix
from dplinear.analyst.problem import Problem
from dplinear.arguments import real

# The largest noise, relative to the features' moments, at which the intervals still cover.
TOLERANCE = 0.5


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates with their intervals, in the order of `names`.

    `standard_errors`² = `sampling` + `privacy`, the variances due to the rows and to the noise.
    `swamped` says in words why there are no intervals, and is None where there are; all numbers but
    the estimates are then NaN. An interval corrects the noise's bias, so it need not be centred on
    its estimate.
    """

    names: tuple[str, ...]
    estimates: Matrix
    standard_errors: Matrix
    low: Matrix
    high: Matrix
    sampling: Matrix
    privacy: Matrix
    level: float
    method: str
    swamped: str | None = None

    @property
    def privacy_share(self) -> Matrix:
        """The part of each variance that is due to privacy, between 0 and 1."""
        return np.asarray(self.privacy / (self.sampling + self.privacy))


@dataclass(frozen=True, eq=False)
class Moments:
    """Estimates from matrices of shape (..., d, d): reported coefficients and their variances."""

    estimates: Matrix
    bias: Matrix
    sampling: Matrix
    privacy: Matrix
    residual: Matrix  # variance of the target given the features

    @property
    def errors(self) -> Matrix:
        """The standard errors."""
        return np.asarray(np.sqrt(self.sampling + self.privacy))


def delta(problem: Problem, level: float = 0.95) -> Intervals:
    """Return intervals by the delta method: normal, with the bias of the noise removed.

    Requires: `problem.whole` unbiased, not repaired. Rows independent, errors of equal variance.
    Promises: no intervals where the noise swamps the features (`swamped`).
    """
    level = real(level, "level", "delta", low=0, high=1, open_low=True, open_high=True)
    found = estimate(problem, problem.whole)
    words = swamped(problem)
    if words is not None:
        return refusal(problem, level, "delta", words)
    reach = float(norm.ppf((1 + level) / 2)) * found.errors
    centre = found.estimates - found.bias
    return intervals(problem, found, (centre - reach, centre + reach), level, "delta")


def intervals(
    problem: Problem, found: Moments, ends: tuple[Matrix, Matrix], level: float, method: str
) -> Intervals:
    """Return what was found, with these ends."""
    return Intervals(
        names=problem.names,
        estimates=found.estimates,
        standard_errors=found.errors,
        low=ends[0],
        high=ends[1],
        sampling=found.sampling,
        privacy=found.privacy,
        level=level,
        method=method,
    )


def refusal(problem: Problem, level: float, method: str, words: str) -> Intervals:
    """Return the estimates without intervals."""
    nothing = np.full(len(problem.names), np.nan)
    estimates = estimate(problem, problem.whole).estimates
    return Intervals(
        problem.names, estimates, nothing, nothing, nothing, nothing, nothing, level, method, words
    )


def estimate(problem: Problem, whole: Matrix) -> Moments:
    """Solve the problem on each matrix of shape (..., d, d), as if it had been released."""
    transform, law = problem.transform, problem.law
    gram = transform @ whole @ transform.T
    features = gram[..., :-1, :-1]
    inverse = np.linalg.inv(features + np.diag(problem.penalty))
    solution = np.einsum("...ij,...j->...i", inverse, gram[..., :-1, -1])
    contrast = np.concatenate([-solution, np.ones((*solution.shape[:-1], 1))], axis=-1)
    cells = contrast @ transform
    noise = _sandwich(problem, law, cells[..., :, None] * cells[..., None, :], whole)
    noise = noise[..., :-1, :-1]
    residual = _residual_variance(gram, contrast, inverse, noise, problem.count)
    readout = problem.readout
    reach = readout @ inverse
    return Moments(
        estimates=problem.offset + np.einsum("ij,...j->...i", readout, solution),
        bias=-np.einsum("...ij,...j->...i", reach, _drift(problem, inverse, contrast, whole)),
        sampling=residual[..., None] * _forms(reach, features),
        privacy=_forms(reach, noise),
        residual=residual,
    )


def _sandwich(problem: Problem, law: Law, middle: Matrix, whole: Matrix) -> Matrix:
    transform = problem.transform
    return np.asarray(transform @ law.sandwich(middle, whole) @ transform.T)


def _forms(reach: Matrix, middle: Matrix) -> Matrix:
    """Return lᵢᵀ·middle·lᵢ for each row of `reach`."""
    return np.asarray(((reach @ middle) * reach).sum(-1))


def _drift(problem: Problem, inverse: Matrix, contrast: Matrix, whole: Matrix) -> Matrix:
    """Return the x-part of E[N A N]·r: noise that meets itself does not average out."""
    rows = problem.transform[:-1]
    middle = rows.T @ inverse @ rows
    return np.asarray(
        np.einsum(
            "...ij,...j->...i",
            _sandwich(problem, problem.law, middle, whole)[..., :-1, :],
            contrast,
        )
    )


def _residual_variance(
    gram: Matrix, contrast: Matrix, inverse: Matrix, noise: Matrix, count: float
) -> Matrix:
    """Return RSS/(n − p), with what fitting takes from the sum of squares put back.

    Fitting lowers the sum by tr(K·(s²Wxx + noise)), K = 2A − A·Wxx·A, which is A without a penalty.
    """
    features = gram[..., :-1, :-1]
    taken = 2 * inverse - inverse @ features @ inverse
    squares = np.einsum("...i,...ij,...j->...", contrast, gram, contrast)
    squares += np.einsum("...ij,...ji->...", taken, noise)
    freedom = count - np.einsum("...ij,...ji->...", taken, features)
    return np.asarray(np.maximum(squares, 0.0) / np.maximum(freedom, 1.0))


def swamped(problem: Problem) -> str | None:
    """Say why the noise is too large for intervals, or return None where it is not."""
    noise, signal = weakest(problem)
    if signal > 0 and noise <= TOLERANCE * signal:
        return None
    held = f"about {signal:.3g}" if signal > 0 else "nothing that can be told from noise"
    return (
        f"The privacy noise (about {noise:.3g}) is too large beside what the table holds in some "
        f"direction of the features ({held}), so standard errors and intervals would mean nothing. "
        "More rows, a larger epsilon, fewer features, tighter bounds or a ridge would help."
    )


def weakest(problem: Problem) -> tuple[float, float]:
    """Return noise and signal, in cells, in the direction where the noise is relatively largest.

    The noise is twice the root mean square, as the edge of the semicircle law is; the signal is
    the moment of the features, penalty included, as estimated.
    """
    features = problem.gram[:-1, :-1] + np.diag(problem.penalty)
    rows = problem.transform[:-1]
    values, vectors = np.linalg.eigh(features)
    if values[0] <= values[-1] * 1e-13:
        direction = vectors[:, 0] @ rows
        size = float(direction @ direction)
        return problem.law.spread(problem.whole), min(float(values[0]) / size, 0.0)
    half = vectors / np.sqrt(values)
    middle = rows.T @ half @ half.T @ rows
    noise = _sandwich(problem, problem.law, middle, problem.whole)[:-1, :-1]
    shares, axes = np.linalg.eigh(half.T @ noise @ half)
    direction = half @ axes[:, -1]
    signal = 1 / float(np.square(direction @ rows).sum())
    return 2 * math.sqrt(max(float(shares[-1]), 0.0)) * signal, signal
