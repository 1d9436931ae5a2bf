"""Linear models from released second moments: least squares, ridge, lasso, elastic net.

The objective is ‖y − Xb − b0‖²/(2n) + ridge·‖b‖²/(2n) + l1·‖b‖₁ in the columns' own units, the
intercept unpenalised: `ridge` is scikit-learn's alpha for Ridge, `l1` its alpha for Lasso.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from dplinear.analyst.regression.fit import Fit, Fits
from dplinear.analyst.regression.formula_fit import fit_formula
from dplinear.analyst.regression.formulas import is_formula
from dplinear.analyst.regression.inference import why_no_intervals
from dplinear.analyst.regression.lasso import elastic_net
from dplinear.analyst.regression.least_squares import Solution, solve, without_first
from dplinear.analyst.regression.model import (
    WHERE,
    Model,
    read_model,
    readout,
    scales,
    without_empty,
)
from dplinear.analyst.regression.problem import Problem
from dplinear.analyst.regression.repair import (
    OPTIONS,
    block_of,
    choose_repair,
    fallback,
    floor_eigenvalues,
)
from dplinear.analyst.regression.shrinkage import noise_scale, shrunken_coefficients
from dplinear.analyst.releases.joined_certificate import most_tables
from dplinear.arguments import choice, rejection

if TYPE_CHECKING:
    from dplinear.analyst.noise_models.matrices import NoiseModel
    from dplinear.analyst.regression.repair import Repaired
    from dplinear.analyst.releases.moments import MomentsRelease
    from dplinear.arrays import Floats

_INDEFINITE = -1e-12


class RegressOptions(TypedDict, total=False):
    """What a regression on any release takes by name: `MomentsRelease.regress` says what it is."""

    ridge: float
    l1: float
    intercept: bool
    repair: str


def regress(
    moments: MomentsRelease,
    target: object,
    features: object,
    *,
    ridge: float,
    l1: float,
    intercept: bool,
    repair: str,
) -> Fit | Fits:
    """Fit one target, or several that share their features (`MomentsRelease.regress`)."""
    options: RegressOptions = {"ridge": ridge, "l1": l1, "intercept": intercept, "repair": repair}
    if isinstance(target, str) and is_formula(moments.schema, target):
        return fit_formula(moments, target, features, options, partial(_fit, moments))
    found = _fit_all(moments, target, features, **options)
    return found[0] if isinstance(target, str) else Fits(tuple(found))


def _fit(moments: MomentsRelease, target: str, features: object, options: RegressOptions) -> Fit:
    return _fit_all(moments, target, features, **options)[0]


def _fit_all(
    moments: MomentsRelease,
    target: object,
    features: object,
    *,
    ridge: float = 0.0,
    l1: float = 0.0,
    intercept: bool = True,
    repair: str = "auto",
) -> list[Fit]:
    model = read_model(moments.schema, target, features, ridge=ridge, l1=l1, intercept=intercept)
    choice(repair, "repair", WHERE, OPTIONS)
    if moments.noise_model.known:
        model = without_empty(model, moments.unbiased_estimate, moments.noise_model)
    else:
        repair = "released" if repair == "auto" else repair
    used = model.base + model.features + model.targets
    method = _choose_repair(moments, model) if repair == "auto" else repair
    estimate = moments.repaired(method, used=used, where=WHERE)
    estimate = _semidefinite(estimate, model, repair) if model.l1 else estimate
    problems = [problem_for(moments, model, each, estimate.matrix) for each in model.targets]
    solutions = _solve_all(model, problems, estimate)
    return [
        Fit.build(moments, model, problem, solution, estimate.method)
        for problem, solution in zip(problems, solutions, strict=True)
    ]


def _choose_repair(moments: MomentsRelease, model: Model) -> str:
    """Return what "auto" stands for: no repair where noise leaves the features clear.

    Clear is where intervals can be put on the answer and additive noise is below half of the
    features' least moment; only they are divided by, so the target does not count.
    """
    noise_model = moments.noise_model
    plain = problem_for(moments, model, model.targets[0], moments.unbiased_estimate)
    if why_no_intervals(plain) is not None:
        return fallback(noise_model)
    if noise_scale(noise_model) is None:
        return "none"
    return choose_repair(block_of(moments.values, noise_model, model.base + model.features))


def problem_for(moments: MomentsRelease, model: Model, target: int, whole: Floats) -> Problem:
    """Return the linear algebra of one target, on the block of the moments that it uses.

    With an intercept the working coordinates are the cells t themselves, x = centre + width·t.
    Without one they are x/width = t + (centre/width)·1, so that the line passes through the origin
    of the columns' own units. A penalty α·b² on a coefficient is (α/width²)·β² on its cell's.
    """
    used = model.used_indices(target)
    indices = used if model.intercept else used[len(model.base) :]
    centre, width = scales(model.schema, indices)
    transform = np.eye(len(used))[-len(indices) :]
    matrix, offset = readout(model.schema, indices, intercept=model.intercept)
    if not model.intercept and model.base:
        transform[:, 0] += centre / width
    penalty = model.ridge / width[:-1] ** 2
    if model.intercept:
        penalty[0] = 0.0
    names = [model.schema.features[index].name for index in indices]
    return Problem(
        whole=whole[np.ix_(used, used)],
        noise_model=moments.noise_model.part(len(whole), used),
        transform=transform,
        penalty=penalty,
        readout=matrix,
        offset=offset,
        names=tuple(names[:-1]),
        target=names[-1],
        count=moments.weight,
        repeats=_repeats(moments),
    )


def _repeats(moments: MomentsRelease) -> int:
    """Return how many rows may be of one person in joined tables, a row in each at the most.

    Units of privacy need no such factor: their weights add up to at most 1 in all tables together.
    """
    return 1 if moments.certificate.unit is not None else most_tables(moments.certificate)


def _solve_all(model: Model, problems: list[Problem], estimate: Repaired) -> list[Solution]:
    """Solve for all targets: the features' moments are the same, so they are factorised once."""
    if model.l1:
        return [_sparse(model, problem) for problem in problems]
    if estimate.method == "shrunk" and noise_scale(problems[0].noise_model) and _isotropic(model):
        return _solve_by_shrinkage(model, problems[0].noise_model, estimate.unbiased_estimate)
    right = np.stack([problem.gram[:-1, -1] for problem in problems], axis=1)
    found = solve(problems[0].gram[:-1, :-1] + np.diag(problems[0].penalty), right)
    return [Solution(column, found.positive_definite) for column in found.coefficients.T]


def _isotropic(model: Model) -> bool:
    """Whether the working coordinates are cells, in which noise is even, without a penalty."""
    return model.ridge == 0 and (model.intercept or not model.base)


def _solve_by_shrinkage(model: Model, noise_model: NoiseModel, unbiased: Floats) -> list[Solution]:
    """Weigh directions by what the noise leaves of them; the intercept is taken out first."""
    sigma = noise_scale(noise_model)
    assert sigma is not None  # noqa: S101 - "shrunk" is for laws that have one
    indices = [*model.features, *model.targets]
    moments = unbiased[np.ix_(indices, indices)]
    if model.intercept:
        with_ones = [0, *indices]
        moments = without_first(unbiased[np.ix_(with_ones, with_ones)])
    slopes = shrunken_coefficients(moments, sigma, len(model.features))
    if not model.intercept:
        return [Solution(column, positive_definite=True) for column in slopes.T]
    rows = max(float(unbiased[0, 0]), sigma)
    sums = unbiased[0]
    levels = (sums[list(model.targets)] - sums[list(model.features)] @ slopes) / rows
    whole = np.vstack([levels, slopes])
    return [Solution(column, positive_definite=True) for column in whole.T]


def _sparse(model: Model, problem: Problem) -> Solution:
    """Solve the elastic net, the intercept taken out beforehand and put back afterwards."""
    count = _count_or_guess(problem)
    gram = problem.gram
    first = 1 if model.intercept else 0
    centred = without_first(gram) if model.intercept else gram
    _, width = scales(model.schema, model.features)
    # |b| in the columns' own units, with the loss divided by the target's squared width.
    _, reach = scales(model.schema, [model.schema.names.index(problem.target)])
    weights = count * model.l1 / (reach * width)
    matrix = centred[:-1, :-1] + np.diag(problem.penalty[first:])
    found = elastic_net(matrix, centred[:-1, -1], float(centred[-1, -1]), weights)
    b = found.coefficients
    if model.intercept:
        level = (gram[0, -1] - gram[0, 1:-1] @ b) / gram[0, 0]
        b = np.append(level, b)
    return Solution(b, positive_definite=True)


def _count_or_guess(problem: Problem) -> float:
    if math.isfinite(problem.count) and problem.count > 0:
        return problem.count
    hint = (
        "the penalty is weighed against the number of rows, which these moments do not tell; "
        "release them with an intercept, or under replace neighbours."
    )
    raise rejection("l1", WHERE, "0 where the number of rows is unknown", "another number", hint)


def _semidefinite(estimate: Repaired, model: Model, repair: str) -> Repaired:
    """Return an estimate that the lasso can use, since its search has no end on any other."""
    used = list(model.base + model.features + model.targets)
    corner = np.ix_(used, used)
    values = np.linalg.eigvalsh(estimate.matrix[corner])
    if values[0] >= _INDEFINITE * abs(values[-1]):
        return estimate
    if repair != "auto":
        hint = 'noise made the matrix indefinite; pass repair="auto" or "clipped".'
        raise rejection("repair", WHERE, "one that leaves no negative eigenvalue", repair, hint)
    matrix = estimate.matrix.copy()
    matrix[corner] = floor_eigenvalues(matrix[corner], 0.0)
    return replace(estimate, matrix=matrix, method="clipped", positive_definite=False)
