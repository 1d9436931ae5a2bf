"""Theorems 3.1, 3.2 and 4.2 as calculators: what to expect before a budget is spent.

Sheffet 2015 (arXiv 1507.00056v1). They take public numbers, such as a planner's guesses, and never
a statistic of the table. Where a theorem does not hold as printed, the proved version stands here
and the printed one beside it (docs/errata.md).
"""

import math

from dplinear import arguments
from dplinear.mechanisms import checks
from dplinear.papers import accounts, constants
from dplinear.privacy.guarantees import ApproxDP


def sketch_ridge(guarantee: ApproxDP, rows: int, bound: float, dimension: int) -> float:
    """Return w² of Theorem 3.1: that ridge makes a sketch of `rows` rows private.

    Requires: δ < 1/e; more rows than the `dimension`; data rows of norm at most `bound`.
    """
    where = "theorems.sketch_ridge"
    asked = accounts.check_delta(checks.approximate(guarantee, where, "a Gaussian sketch"), where)
    dimension = arguments.integer(dimension, "dimension", where, low=1)
    hint = "the theorem needs more rows than columns."
    rows = arguments.integer(rows, "rows", where, low=dimension + 1, hint=hint)
    return constants.sketch(asked, rows, arguments.positive(bound, "bound", where)).value


def sketch_rows(
    guarantee: ApproxDP, least_eigenvalue: float, bound: float, dimension: int
) -> int | None:
    """Return the most rows for which Theorem 3.1 needs no more than `least_eigenvalue`.

    Requires: δ < 1/e; a lower bound on the least eigenvalue of AᵀA + ridge·I that holds for the
    table *and* each neighbour, and that is public or paid for.
    Promises: None where the theorem allows no more rows than the `dimension`.
    """
    where = "theorems.sketch_rows"
    asked = accounts.check_delta(checks.approximate(guarantee, where, "a Gaussian sketch"), where)
    floor = arguments.real(least_eigenvalue, "least_eigenvalue", where, low=0)
    square = arguments.positive(bound, "bound", where) ** 2
    dimension = arguments.integer(dimension, "dimension", where, low=1)
    rows = most_rows(asked, floor, square)
    return rows if rows > dimension else None


def most_rows(guarantee: ApproxDP, floor: float, square: float) -> int:
    """Return the largest r ≥ 0 with 4B²(√(2r·ln(4/δ)) + ln(4/δ))/ε ≤ floor, B² = `square`."""
    log = math.log(4 / guarantee.delta)
    root = floor * guarantee.epsilon / (4 * square) - log
    return math.floor(root * root / (2 * log)) if root > 0 else 0


def sketch_rows_for_error(
    error: float, failure: float, dimension: int, constant: float = 1.0
) -> int:
    """Return the rows of Theorem 3.2: constant·d·ln(d)·ln(1/ν)/η², rounded up.

    Requires: η = `error` > 0; ν = `failure` in (0, 1/2). The theorem says O(…) and never says which
    `constant`: with 1.0 the figure shows how rows grow, and is no bound.
    """
    where = "theorems.sketch_rows_for_error"
    error = arguments.positive(error, "error", where)
    failure = _half(failure, where)
    dimension = arguments.integer(dimension, "dimension", where, low=2)
    constant = arguments.positive(constant, "constant", where)
    needed = constant * dimension * math.log(dimension) * math.log(1 / failure) / error**2
    return max(math.ceil(needed), dimension + 1)


def sketch_error(error: float, ridge: float, least_eigenvalue: float, residual: float) -> float:
    """Return the distance η·√f/√(w² + λ) of Theorem 3.2 between sketched and true ridge solutions.

    `residual` is f, the least value of ‖y − Xb‖² + w²(‖b‖² + 1), and λ the least eigenvalue of AᵀA.
    Departs from the paper: it prints f where √f is meant, as in the theorem it cites. (Twice the
    units of y double both solutions, but make f four times as large.)
    """
    where = "theorems.sketch_error"
    error = arguments.positive(error, "error", where)
    ridge = arguments.real(ridge, "ridge", where, low=0)
    least = arguments.real(least_eigenvalue, "least_eigenvalue", where, low=0)
    residual = arguments.real(residual, "residual", where, low=0)
    total = arguments.positive(ridge + least, "ridge", where)
    return error * math.sqrt(residual / total)


def wishart_error(
    coefficients: float,
    least_eigenvalue: float,
    *,
    degrees: int,
    scale: float,
    features: int,
    failure: float,
    printed: bool = False,
) -> float:
    """Return a bound on ‖b̃ − b̂‖ that holds with probability 1 − `failure` (Theorem 4.2).

    b̂ solves least squares on XᵀX, b̃ after Wishart(scale²·I, degrees) noise, whose mean is not
    removed. `coefficients` is ‖b̂‖, `least_eigenvalue` that of XᵀX, `features` its size p.
    Requires: least_eigenvalue ≥ 2·scale²·(√k + √p + √(2·ln(4/ν)))²; ν = `failure` in (0, 1/2).
    Departs from the paper: ‖b̂‖/C + ‖n‖/λ, from b̃ − b̂ = (XᵀX + N)⁻¹(n − Nb̂) with N positive
    semidefinite. The `printed` bound has a factor (C − 2)/(C − 1), with which its second term
    vanishes at C = 2; for b̂ = 0 it then says 0, which is false.
    """
    where = "theorems.wishart_error"
    coefficients = arguments.real(coefficients, "coefficients", where, low=0)
    k = arguments.integer(degrees, "degrees", where, low=1)
    p = arguments.integer(features, "features", where, low=1)
    variance = arguments.positive(scale, "scale", where) ** 2
    failure = _half(failure, where)
    tail = math.sqrt(2 * math.log(4 / failure))
    edge = (math.sqrt(k) + math.sqrt(p) + tail) ** 2
    hint = "below this the noise may swamp the answer, and the theorem says nothing."
    least = arguments.real(
        least_eigenvalue, "least_eigenvalue", where, low=2 * variance * edge, hint=hint
    )
    ratio = least / (variance * edge)  # the theorem's C
    union = math.sqrt(2 * p * math.log(4 * p / failure))
    if printed:
        cross = min(2 * math.sqrt(k) * union, edge)
        share = (ratio - 2) / (ratio - 1)
        return coefficients / (ratio - 1) + variance * share * cross / least
    cross = (math.sqrt(k) + tail) * min(union, math.sqrt(edge))
    return coefficients / ratio + variance * cross / least


def _half(failure: float, where: str) -> float:
    return arguments.real(failure, "failure", where, low=0, high=0.5, open_low=True, open_high=True)
