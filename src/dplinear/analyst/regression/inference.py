"""Standard errors and intervals for a regression on released moments, in closed form.

Two things move a coefficient: which rows happened to be in the table (sampling), and the noise that
was added (privacy). With W the working moments, A = (Wxx + P)⁻¹ and r = [−b, 1], the solution moves
by A times the features' part of (sampling error + noise)·r. Noise also makes A too large on
average, because small eigenvalues become smaller still; the matrix Dyson equation of random matrix
theory says by how much, and `debias_inverse` puts it back (docs/inference.md, "Intervals").
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t as student

from dplinear.analyst.regression.problem import Problem
from dplinear.arguments import real
from dplinear.arrays import Floats

# The largest noise, relative to the features' moments, at which the intervals were seen to cover
# (benchmarks/coverage.py).
TOLERANCE = 0.65
# Below this part of the largest, a number is rounding.
SINGULAR = 1e-13


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Estimates with their intervals, in the order of `names`.

    `standard_errors`² = `sampling` + `privacy`, the variances due to the rows and to the noise.
    `swamped` says in words why there are no intervals, and is None where there are; all numbers
    but the estimates are then NaN. The intervals correct the bias that noise gives the
    estimates, so they need not be centred on them.
    """

    names: tuple[str, ...]
    estimates: Floats
    standard_errors: Floats
    low: Floats
    high: Floats
    sampling: Floats
    privacy: Floats
    level: float
    method: str
    swamped: str | None = None

    @property
    def privacy_share(self) -> Floats:
        """The part of each variance that is due to privacy, between 0 and 1."""
        total = np.maximum(self.sampling + self.privacy, np.finfo(float).tiny)
        return np.asarray(self.privacy / total)

    def __repr__(self) -> str:
        from dplinear.analyst.regression.summary import of_intervals

        return of_intervals(self).text

    def _repr_html_(self) -> str:
        from dplinear.analyst.regression.summary import of_intervals

        return of_intervals(self).html


@dataclass(frozen=True, eq=False)
class Corrected:
    """Coefficients free of the noise's bias, with their variances, in the columns' own units.

    `residual` is the variance of the target that the features leave, in working units.
    """

    coefficients: Floats
    sampling: Floats
    privacy: Floats
    residual: Floats

    @property
    def errors(self) -> Floats:
        """The standard errors."""
        return np.asarray(np.sqrt(self.sampling + self.privacy))


def delta_method(problem: Problem, level: float = 0.95) -> Intervals:
    """Return intervals by the delta method: normal, around coefficients free of the noise's bias.

    Requires: `problem.whole` unbiased, not repaired; rows independent, errors of equal variance.
    Promises: no intervals where the noise swamps the features (`why_no_intervals`).
    """
    level = real(level, "level", "delta", low=0, high=1, open_low=True, open_high=True)
    problem = drop_unused(problem)
    words = why_no_intervals(problem)
    if words is not None:
        return refusal(problem, level, "delta", words)
    found = correct_for_noise(problem, problem.whole)
    reach = student.ppf((1 + level) / 2, freedom(problem, found)) * found.errors
    ends = found.coefficients - reach, found.coefficients + reach
    return intervals(problem, found, ends, level, "delta")


def freedom(problem: Problem, found: Corrected) -> Floats:
    """Return Satterthwaite's degrees of freedom: the sampling part has as many as rows."""
    dimension, features = problem.whole.shape[-1], problem.transform.shape[0] - 1
    rows = max(problem.count - features, 1.0)
    noise = problem.noise_model.pivot(dimension, features).freedom
    total = np.maximum(found.sampling + found.privacy, np.finfo(float).tiny)
    shares = np.stack([found.sampling, found.privacy]) / total
    return np.asarray(1 / np.maximum(np.square(shares).T @ [1 / rows, 1 / noise], SINGULAR))


def intervals(
    problem: Problem, found: Corrected, ends: tuple[Floats, Floats], level: float, method: str
) -> Intervals:
    """Return the problem's estimates with these errors and ends."""
    return Intervals(
        names=problem.names,
        estimates=_reported_coefficients(problem),
        standard_errors=found.errors,
        low=ends[0],
        high=ends[1],
        sampling=found.sampling,
        privacy=found.privacy,
        level=level,
        method=method,
    )


def refusal(problem: Problem, level: float, method: str, words: str) -> Intervals:
    """Return the problem's estimates without intervals."""
    nothing = np.full(len(problem.names), np.nan)
    return Intervals(
        names=problem.names,
        estimates=_reported_coefficients(problem),
        standard_errors=nothing,
        low=nothing,
        high=nothing,
        sampling=nothing,
        privacy=nothing,
        level=level,
        method=method,
        swamped=words,
    )


def _reported_coefficients(problem: Problem) -> Floats:
    gram = problem.gram
    features = gram[:-1, :-1] + np.diag(problem.penalty)
    solution = np.linalg.pinv(features, hermitian=True) @ gram[:-1, -1]
    return np.asarray(problem.offset + problem.readout @ solution)


def drop_unused(problem: Problem) -> Problem:
    """Return the same problem without the cells that it does not use."""
    used = np.flatnonzero(problem.transform.any(axis=0))
    return replace(
        problem,
        whole=problem.whole[np.ix_(used, used)],
        noise_model=problem.noise_model.part(len(problem.whole), used.tolist()),
        transform=problem.transform[:, used],
    )


def debias_inverse(problem: Problem, whole: Floats) -> Floats:
    """Return matrices whose inverse is on average that of G, not only their own mean.

    For W = G + N, E[W⁻¹] = R solves G = R⁻¹ + E[N R N] up to what vanishes in high dimension; with
    W⁻¹ for R, that is W + E[N W⁻¹ N]. Only the features' block is inverted.
    """
    rows = problem.transform[:-1]
    inverse = np.linalg.inv(rows @ whole @ rows.T + np.diag(problem.penalty))
    return np.asarray(whole + problem.noise_model.sandwich(rows.T @ inverse @ rows, whole))


def correct_for_noise(problem: Problem, whole: Floats) -> Corrected:
    """Solve the problem on each matrix of shape (..., d, d), as if it had been released."""
    transform, noise_model = problem.transform, problem.noise_model
    steady = debias_inverse(problem, whole)
    gram = transform @ steady @ transform.T
    features = gram[..., :-1, :-1]
    inverse = np.linalg.inv(features + np.diag(problem.penalty))
    solution = (inverse @ gram[..., :-1, -1:])[..., 0]
    contrast = np.concatenate([-solution, np.ones((*solution.shape[:-1], 1))], axis=-1)
    cells = contrast @ transform
    noise = noise_model.sandwich(cells[..., :, None] * cells[..., None, :], steady)
    noise = transform[:-1] @ noise @ transform[:-1].T
    taken = 2 * inverse - inverse @ features @ inverse
    # Fitting lowers the sum of squares by tr(K·(s²Wxx + noise)), K = 2A − A·Wxx·A (A unpenalised).
    squares = np.einsum("...i,...ij,...j->...", cells, whole, cells) + (taken * noise).sum((-2, -1))
    freedom = problem.count - (taken * features).sum((-2, -1))
    residual = np.maximum(squares, 0.0) / np.maximum(freedom, 1.0)
    reach = problem.readout @ inverse
    return Corrected(
        coefficients=problem.offset + solution @ problem.readout.T,
        sampling=problem.repeats * residual[..., None] * _forms(reach, features),
        privacy=noise_model.pivot(whole.shape[-1], features.shape[-1]).factor
        * _forms(reach, noise),
        residual=residual,
    )


def optimism(problem: Problem, solution: Floats) -> float:
    """Return by how much noisy moments understate what a line leaves that was fitted to them.

    With N the noise, r = [−b, 1] and A the inverse of the features' moments and penalty, b moves by
    A·(N·r)_x, to first order, which takes 2·(N·r)_xᵀ·A·(N·r)_x off the noisy sum of squares of its
    residuals (Mallows 1973; Efron 2004, "covariance penalties"). In cells; coefficients that are 0,
    as in a lasso, do not move.
    """
    moving = np.flatnonzero(solution)
    rows = problem.transform[moving]
    line = np.append(-solution, 1.0) @ problem.transform
    noise = rows @ problem.noise_model.sandwich(np.outer(line, line), problem.whole) @ rows.T
    features = rows @ problem.whole @ rows.T + np.diag(problem.penalty[moving])
    return max(2 * float(np.trace(np.linalg.pinv(features, hermitian=True) @ noise)), 0.0)


def _forms(reach: Floats, middle: Floats) -> Floats:
    """Return lᵀ·middle·l for each row l of `reach`, at least 0 though `middle` be indefinite."""
    return np.asarray(np.maximum(((reach @ middle) * reach).sum(-1), 0.0))


def why_no_intervals(problem: Problem) -> str | None:
    """Say why there can be no intervals, or return None where there can."""
    if not problem.count > len(problem.penalty):
        return (
            "The number of rows is not known, or is lost in the privacy noise, so nothing can be "
            "said about the spread of the rows. Moments released with an intercept, or under "
            "replace neighbours, tell it."
        )
    noise, signal = weakest(problem)
    if signal > 0 and noise <= TOLERANCE * signal:
        return None
    if signal > 0:
        held = f"is {noise / signal:,.0%} of what the release says of the rows"
    else:
        held = "hides all that the release says of the rows"
    return (
        "The privacy noise is too large for standard errors and intervals. In the direction of "
        f"the features where it weighs most, the noise {held}; at most {TOLERANCE:.0%} "
        "would do. More rows, a larger epsilon, fewer features, tighter bounds or a ridge "
        "would help."
    )


def weakest(problem: Problem) -> tuple[float, float]:
    """Return noise and signal in the direction of the features where noise is relatively largest.

    Both are in cells, along a direction of length 1. The noise is twice its root mean square, as
    the edge of the semicircle law is, less what the law's pivot allows for; the signal is the
    steadied moment, penalty included, and 0 where the released ones are not positive definite.
    """
    rows = problem.transform[:-1]
    penalty = np.diag(problem.penalty)
    pivot = problem.noise_model.pivot(problem.whole.shape[-1], len(rows))
    values = np.linalg.eigvalsh(rows @ problem.whole @ rows.T + penalty)
    if pivot.freedom <= 0 or values[0] <= values[-1] * SINGULAR:
        return problem.noise_model.spread(problem.whole), 0.0
    steady = debias_inverse(problem, problem.whole)
    values, vectors = np.linalg.eigh(rows @ steady @ rows.T + penalty)
    half = vectors / np.sqrt(values)
    middle = rows.T @ half @ half.T @ rows
    noise = half.T @ rows @ problem.noise_model.sandwich(middle, steady) @ rows.T @ half
    shares, axes = np.linalg.eigh(noise)
    direction = rows.T @ half @ axes[:, -1]
    signal = 1 / float(direction @ direction)
    share = max(float(shares[-1]) - pivot.harmless, 0.0)
    return 2 * math.sqrt(share) * signal, signal
