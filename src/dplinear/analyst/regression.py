"""Linear models from released second moments: least squares, ridge, lasso, elastic net.

The objective is ‖y − Xb − b0‖²/(2n) + ridge·‖b‖²/(2n) + l1·‖b‖₁ in the columns' own units, the
intercept unpenalised: `ridge` is scikit-learn's alpha for Ridge, `l1` its alpha for Lasso.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dplinear.analyst import names as naming
from dplinear.analyst.fit import Fit, Fits
from dplinear.analyst.lasso import elastic_net
from dplinear.analyst.problem import Problem
from dplinear.analyst.repair import floored
from dplinear.analyst.solver import Solution, solve, without_first
from dplinear.arguments import mistyped, real, rejection
from dplinear.schema import INTERCEPT, Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dplinear.analyst.laws import Matrix
    from dplinear.analyst.moments import MomentsRelease
    from dplinear.analyst.repair import Repaired

WHERE = "regress"
_INDEFINITE = -1e-12


@dataclass(frozen=True)
class Model:
    """Which features explain which targets, by their places in the schema."""

    schema: Schema
    features: tuple[int, ...]
    targets: tuple[int, ...]
    intercept: bool
    ridge: float
    l1: float

    @property
    def base(self) -> tuple[int, ...]:
        """The place of the constant, where the model needs it."""
        shifted = any(self.schema.features[i].centre for i in self.features + self.targets)
        return (0,) if self.intercept or shifted else ()


def regress(  # noqa: PLR0913 - the model is what the caller says it is
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
    model = read_model(moments.schema, target, features, ridge=ridge, l1=l1, intercept=intercept)
    decisive = model.base + model.features
    estimate = moments.repaired(
        repair, used=decisive + model.targets, decisive=decisive, where=WHERE
    )
    estimate = _semidefinite(estimate, model, repair) if model.l1 else estimate
    problems = [problem_for(moments, model, goal, estimate.matrix) for goal in model.targets]
    solutions = _solved(model, problems)
    fits = [
        Fit.build(
            moments,
            problem,
            solution,
            estimate.method,
            intercept=model.intercept,
            ridge=model.ridge,
            l1=model.l1,
        )
        for problem, solution in zip(problems, solutions, strict=True)
    ]
    return fits[0] if isinstance(target, str) else Fits(tuple(fits))


def read_model(  # noqa: PLR0913 - likewise
    schema: Schema, target: object, features: object, *, ridge: float, l1: float, intercept: bool
) -> Model:
    """Return the model that the arguments describe, or raise."""
    goals = (
        [naming.single(schema, target, WHERE)]
        if isinstance(target, str)
        else naming.targets(schema, target, WHERE)
    )
    if not isinstance(intercept, bool):
        raise mistyped("intercept", WHERE, "True or False", intercept)
    if intercept and not schema.has_intercept:
        hint = "the moments were released without a column of ones; pass intercept=False."
        raise rejection("intercept", WHERE, "False for this schema", intercept, hint)
    if features is None:
        groups = {schema.features[goal].group for goal in goals}
        own = naming.own_features(schema)
        chosen = [place for place in own if schema.features[place].group not in groups]
        if not chosen:
            rule = "a target that leaves features to explain it"
            raise rejection("target", WHERE, rule, target)
    else:
        chosen = naming.places(schema, features, "features", WHERE)
    both = ", ".join(schema.names[place] for place in chosen if place in goals)
    if both:
        raise rejection("features", WHERE, "free of the target", both)
    ridge = real(ridge, "ridge", WHERE, low=0)
    l1 = real(l1, "l1", WHERE, low=0)
    return Model(schema, tuple(chosen), tuple(goals), intercept, ridge, l1)


def problem_for(moments: MomentsRelease, model: Model, target: int, whole: Matrix) -> Problem:
    """Return the linear algebra of one target.

    With an intercept the working coordinates are the cells t themselves, x = centre + width·t.
    Without one they are x/width = t + (centre/width)·1, so that the line passes through the origin
    of the columns' own units. A penalty α·b² on a coefficient is (α/width²)·β² on its cell's.
    """
    schema = model.schema
    places = (*((0,) if model.intercept else ()), *model.features, target)
    centre, width = scales(schema, places)
    transform = np.eye(schema.dimension)[list(places)]
    size = len(places) - 1
    readout = np.diag(width[-1] / width[:-1])
    offset = np.zeros(size)
    if model.intercept:
        readout[0] -= width[-1] * centre[:-1] / width[:-1]
        offset[0] = centre[-1]
    elif centre.any():
        transform[:, 0] += centre / width
    penalty = model.ridge / width[:-1] ** 2
    if model.intercept:
        penalty[0] = 0.0
    labels = tuple(schema.names[place] for place in places[:-1])
    return Problem(
        whole=whole,
        law=moments.law,
        transform=transform,
        penalty=penalty,
        readout=readout,
        offset=offset,
        names=(INTERCEPT, *labels[1:]) if model.intercept else labels,
        target=schema.names[target],
        count=moments.weight,
    )


def scales(schema: Schema, places: Sequence[int]) -> tuple[Matrix, Matrix]:
    """Return the centres and half-widths of features, as floats."""
    chosen = [schema.features[place] for place in places]
    centre = np.array([float(feature.centre) for feature in chosen])
    return centre, np.array([float(feature.half_width) for feature in chosen])


def _solved(model: Model, problems: list[Problem]) -> list[Solution]:
    """Solve for all targets: the features' moments are the same, so they are factorised once."""
    if model.l1:
        return [_sparse(model, problem) for problem in problems]
    grams = [problem.gram for problem in problems]
    right = np.stack([gram[:-1, -1] for gram in grams], axis=1)
    found = solve(grams[0][:-1, :-1] + np.diag(problems[0].penalty), right)
    return [Solution(column, found.positive_definite) for column in found.coefficients.T]


def _sparse(model: Model, problem: Problem) -> Solution:
    """Solve the elastic net, the intercept taken out beforehand and put back afterwards."""
    count = _counted(problem)
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


def _counted(problem: Problem) -> float:
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
    matrix[corner] = floored(matrix[corner], 0.0)
    return type(estimate)(matrix, "clipped", positive_definite=False)
