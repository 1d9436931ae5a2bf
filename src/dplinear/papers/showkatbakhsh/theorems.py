"""How much worse least squares gets when cells are protected in bits: the theorems, as calculators.

Showkatbakhsh, Karakus and Diggavi 2018, "Privacy-utility trade-off of linear regression under
random projections and additive noise": Theorems 1 and 2, Remark 1, Corollaries 2 and 3. They bound
η = ‖Xθ̂ − y‖²/‖Xθ* − y‖², θ* least squares on the table and θ̂ on what was released, where y carries
no noise of its own. They take public numbers or simulated tables, never statistics of a private
one. Where a sharper bound has a short proof it stands beside the printed one.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import f as fisher

from dplinear import arguments
from dplinear.privacy.bits import variance_for

_VACUOUS = "holds with no positive probability"


def relative_error(features: ArrayLike, target: ArrayLike, coefficients: ArrayLike) -> float:
    """Return η of coefficients on a simulated table: 1 is least squares. Private on a private one.

    Infinite where least squares leaves nothing and the coefficients leave something.
    """
    X, y = np.asarray(features, np.float64), np.asarray(target, np.float64)
    own = X @ np.linalg.lstsq(X, y, rcond=None)[0] - y
    left = X @ np.asarray(coefficients, np.float64) - y
    least = float(own @ own)
    return max(1.0, float(left @ left) / least) if least else math.inf if left.any() else 1.0


@dataclass(frozen=True)
class Problem:
    """A least-squares problem as the theorems see it.

    `rows` is n; `singular_values` those of X, all positive; `ratio` is r(y) = ‖Xθ*‖/‖Xθ* − y‖.
    """

    rows: int
    singular_values: tuple[float, ...]
    ratio: float

    def __post_init__(self) -> None:
        where = "Problem"
        values = [arguments.positive(v, "singular_values", where) for v in self.singular_values]
        if not values:
            rule = "the singular values of X, at least one"
            raise arguments.rejection("singular_values", where, rule, self.singular_values)
        object.__setattr__(self, "singular_values", tuple(sorted(values, reverse=True)))
        hint = "the theorems are about tables with at least as many rows as columns."
        rows = arguments.integer(self.rows, "rows", where, low=len(values), hint=hint)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "ratio", arguments.real(self.ratio, "ratio", where, low=0))

    @classmethod
    def of(cls, features: ArrayLike, target: ArrayLike) -> "Problem":
        """Return the problem of a simulated table. A private table's numbers are private."""
        X, y = np.asarray(features, np.float64), np.asarray(target, np.float64)
        left, values, _ = np.linalg.svd(X, full_matrices=False)
        fitted = left @ (left.T @ y)
        ratio = np.linalg.norm(fitted) / np.linalg.norm(y - fitted)
        return cls(len(X), tuple(values.tolist()), float(ratio))

    @property
    def dimension(self) -> int:
        """The number of columns, d."""
        return len(self.singular_values)

    @property
    def condition(self) -> float:
        """κ(X), the largest singular value over the least."""
        return self.singular_values[0] / self.singular_values[-1]


@dataclass(frozen=True)
class ErrorBound:
    """What a theorem says of η: at most `bound`, with at least this `probability`.

    `bound` is None where the theorem says nothing, and `probability` is then 0. `conditions` are
    what it asks for, `notes` what to know before relying on it.
    """

    bound: float | None
    probability: float
    conditions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.bound is None:
            said = "no bound"
        else:
            said = f"η ≤ {self.bound:.4g} with probability at least {self.probability:.4g}"
        return "; ".join([said, *self.notes])


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The constants c₀, c₁, c₂ of Theorem 2, which neither it nor its source gives.

    Whoever fills them in makes an assumption, and the bound is no better than that.
    """

    c0: float
    c1: float
    c2: float

    def __post_init__(self) -> None:
        for name in ("c0", "c1", "c2"):
            value = arguments.positive(getattr(self, name), name, "Constants")
            object.__setattr__(self, name, value)


def additive_noise_spread(problem: Problem, bits: float) -> float:
    """Return Δ(X, ε) = σ(√n + √d)/σ_max of Theorem 1, with σ² = 1/(2^{2ε} − 1)."""
    sigma = math.sqrt(variance_for(bits))
    roots = math.sqrt(problem.rows) + math.sqrt(problem.dimension)
    return sigma * roots / problem.singular_values[0]


def additive_noise_slack(problem: Problem, bits: float, failure: float) -> float:
    """Return the δ at which Theorem 1 holds with probability 1 − `failure`."""
    where = "bits_theorems.additive_noise_slack"
    sigma = math.sqrt(variance_for(bits))
    return (
        sigma / problem.singular_values[0] * math.sqrt(2 * math.log(2 / _failure(failure, where)))
    )


def additive_noise_error(
    problem: Problem, bits: float, slack: float, *, printed: bool = False
) -> ErrorBound:
    """Return Theorem 1's bound on η for X + σN, y as it is, and the theorem's δ = `slack`.

    Requires: κ(Δ + δ) < 1, which leaves 0 < δ < 1/κ − Δ, and nothing at all where κΔ ≥ 1.
    Promises: probability 1 − 2·exp(−δ²σ_max²/(2σ²)), from the largest singular value of N.
    Departs from the paper: with q = κ(Δ + δ), it prints (1 + q/(1−q)·(κ + r))². The difference
    X(θ̂ − θ*) = XZ⁺(r − Eθ*), Z = X + E, is orthogonal to the residual r, ‖XZ⁺‖ ≤ 1/(1−q), and r
    reaches the columns of Z by no more than q‖r‖, so η ≤ 1 + (q/(1−q))²·(1 + r(y))².
    """
    where = "bits_theorems.additive_noise_error"
    slack = arguments.positive(slack, "slack", where)
    kappa, spread = problem.condition, additive_noise_spread(problem, bits)
    conditions = (f"κ(Δ + δ) < 1: it is {kappa * (spread + slack):.4g}",)
    most = 1 / kappa - spread
    if kappa * (spread + slack) >= 1:
        room = f"δ must be below {most:.4g}" if most > 0 else "no δ will do, as κΔ ≥ 1"
        return ErrorBound(None, 0.0, conditions, (f"Theorem 1 says nothing: {room}",))
    tail = (slack * problem.singular_values[0]) ** 2 / (2 * variance_for(bits))
    probability = 1 - 2 * math.exp(-tail)
    if probability <= 0:
        return ErrorBound(None, 0.0, conditions, (f"δ is so small that the bound {_VACUOUS}",))
    grown = kappa * (spread + slack) / (1 - kappa * (spread + slack))
    bound = 1 + (grown * (1 + problem.ratio)) ** 2
    if printed:
        bound = (1 + grown * (kappa + problem.ratio)) ** 2
    return ErrorBound(bound, probability, conditions, ("y is public and carries no noise",))


def ridge_terms(problem: Problem, variance: float) -> tuple[float, float]:
    """Return l₁ and l₂ of Theorem 2: what noise of this variance costs as a ridge."""
    noise = arguments.real(variance, "variance", "bits_theorems.ridge_terms", low=0)
    l1 = noise * ridge_norm(problem, noise) ** 2
    l2 = noise / (problem.singular_values[-1] ** 2 + noise) * problem.ratio
    return l1, l2


def ridge_norm(problem: Problem, variance: float) -> float:
    """Return Corollary 3's bound on the ridge solution's norm, where that of the residual is 1.

    max σᵢ/(σᵢ² + λ)·‖Xθ*‖, as proved and used; the statement misprints ‖Xθ* − y‖ for ‖Xθ*‖.
    """
    noise = arguments.real(variance, "variance", "bits_theorems.ridge_norm", low=0)
    return max(s / (s * s + noise) for s in problem.singular_values) * problem.ratio


def projection_error(
    problem: Problem, variance: float, sketch_rows: int, slack: float, constants: Constants
) -> ErrorBound:
    """Return Theorem 2's bound on η, as printed, for SX + σN and Sy with σ² = `variance`.

    Requires: n' = `sketch_rows` < n; δ = `slack` of at least √(c₀d/n') (Proposition 4 misprints n).
    Promises: (1+δ)²(1+l₁)(1+l₂)² with probability 1 − c₁·exp(−c₂n'δ²), for the caller's constants.
    """
    where = "bits_theorems.projection_error"
    m = arguments.integer(sketch_rows, "sketch_rows", where, low=1)
    slack = arguments.positive(slack, "slack", where)
    least = math.sqrt(constants.c0 * problem.dimension / m)
    conditions = (f"n' < n: {m} < {problem.rows}", f"δ ≥ √(c₀d/n') = {least:.4g}")
    assumed = "c₀, c₁, c₂ are assumed: the paper does not give them"
    if m >= problem.rows or slack < least:
        return ErrorBound(None, 0.0, conditions, ("Theorem 2 says nothing here", assumed))
    probability = 1 - constants.c1 * math.exp(-constants.c2 * m * slack**2)
    if probability <= 0:
        return ErrorBound(None, 0.0, conditions, (f"the bound {_VACUOUS}", assumed))
    l1, l2 = ridge_terms(problem, variance)
    bound = (1 + slack) ** 2 * (1 + l1) * (1 + l2) ** 2
    return ErrorBound(bound, probability, conditions, (assumed, "Sy carries no noise"))


def projection_error_exact(
    problem: Problem, variance: float, sketch_rows: int, failure: float
) -> ErrorBound:
    """Return Theorem 2 without unknown constants: (1 + q)(1 + l₁)(1 + l₂²), q = `sketch_excess`.

    Requires: n' = `sketch_rows` ≥ d; n' may exceed n. Promises: probability 1 − `failure`.
    Departs from the paper: the law of a Gaussian sketch's least squares is known, and the ridge's
    bias is orthogonal to the residual, so it enters as 1 + l₂², not (1 + l₂)².
    """
    where = "bits_theorems.projection_error_exact"
    failure = _failure(failure, where)
    m = arguments.integer(sketch_rows, "sketch_rows", where, low=1)
    conditions = (f"n' ≥ d: {m} ≥ {problem.dimension}",)
    if m < problem.dimension:
        note = "a sketch of fewer rows than columns has no unique solution"
        return ErrorBound(None, 0.0, conditions, (note,))
    l1, l2 = ridge_terms(problem, variance)
    excess = sketch_excess(m, problem.dimension, failure)
    bound = (1 + excess) * (1 + l1) * (1 + l2 * l2)
    return ErrorBound(bound, 1 - failure, conditions, ("Sy carries no noise",))


def sketch_excess(sketch_rows: int, dimension: int, failure: float) -> float:
    """Return what η − 1 of a Gaussian sketch without noise exceeds with probability `failure`.

    Whatever X and y are, η − 1 is χ²_d/χ²_{n'−d+1} (two independent numbers): SQ and Sr are
    independent for Q a basis of X's columns and r the residual, and the solution moves by
    (SQ)⁺Sr. Requires: n' = `sketch_rows` ≥ d = `dimension`.
    """
    where = "bits_theorems.sketch_excess"
    d = arguments.integer(dimension, "dimension", where, low=1)
    m = arguments.integer(sketch_rows, "sketch_rows", where, low=d)
    left = m - d + 1
    return float(fisher.isf(_failure(failure, where), d, left)) * d / left


def projection_limit(slack: float) -> float:
    """Return Corollary 2's limit of Theorem 2, (1 + δ)².

    Requires: f² grows like n and n' slower, so that σ² becomes 0, while δ stays: n' ≥ c₀d/δ².
    It speaks of the paper's noise n'/(2^{2ε} − 1) − f², which does not protect cells. Noise that
    does has σ² = n'/(2^{2ε} − 1), never 0; l₁ and l₂ still vanish where σ_min² grows like n.
    """
    return (1 + arguments.positive(slack, "slack", "bits_theorems.projection_limit")) ** 2


def coherent_bits(sketch_rows: int, variance: float) -> float:
    """Return ½·log₂(1 + n'/v) of (23): bits of a cell in n' sketched rows, its column of S known.

    v = `variance` is what of the cell's column the rest of the output leaves unknown, the noise
    included. σ² is always right; the paper's σ² + f²(X) is not, as other columns share S.
    """
    rows, noise = _channel(sketch_rows, variance, "bits_theorems.coherent_bits")
    return 0.5 * math.log1p(rows / noise) / math.log(2)


def noncoherent_bits(sketch_rows: int, variance: float) -> float:
    """Return n'/2·log₂(1 + 1/v), the bound (16) for an S that stays secret.

    It is never below `coherent_bits`, and meets it as v grows: secrecy of S buys nothing here.
    """
    rows, noise = _channel(sketch_rows, variance, "bits_theorems.noncoherent_bits")
    return rows / 2 * math.log1p(1 / noise) / math.log(2)


def least_sum_of_squares(features: ArrayLike) -> float:
    """Return f²(X), the least over columns of Σx² − max x².

    The paper prints X_ij with i the column and j the row; X_ji is meant, as (22) shows.
    """
    squares = np.asarray(features, np.float64) ** 2
    return float((squares.sum(axis=0) - squares.max(axis=0)).min())


def printed_variance(sum_of_squares: float, bits: float, sketch_rows: int) -> float:
    """Return the paper's (13), (n'/(2^{2ε} − 1) − f²)₊, for f² = `sum_of_squares`: for figures.

    Lemma 2 misprints 2ε for 2^{2ε} − 1. Noise of this variance carries no guarantee: it depends on
    the table, and a column that nearly repeats another is laid bare by their difference.
    """
    where = "bits_theorems.printed_variance"
    sum_of_squares = arguments.real(sum_of_squares, "sum_of_squares", where, low=0)
    rows = arguments.integer(sketch_rows, "sketch_rows", where, low=1)
    return max(rows * variance_for(bits) - sum_of_squares, 0.0)


def _channel(sketch_rows: int, variance: float, where: str) -> tuple[int, float]:
    rows = arguments.integer(sketch_rows, "sketch_rows", where, low=1)
    return rows, arguments.positive(variance, "variance", where)


def _failure(failure: float, where: str) -> float:
    return arguments.real(failure, "failure", where, low=0, high=1, open_low=True, open_high=True)
