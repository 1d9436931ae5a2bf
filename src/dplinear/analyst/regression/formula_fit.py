"""A fit of a formula: least squares on the features that it is made of, told by its own columns.

With Z the features and Z·L the columns of the formula, Z·γ = Z·L·β for β = L⁻¹·γ: the same line in
other coordinates. So β and its covariance follow from those of γ, whatever noise there is in them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.analyst.regression.formula_words import PARAMETER
from dplinear.analyst.regression.formulas import CONSTANT, Formula, read_formula
from dplinear.analyst.regression.model import WHERE, Model, without_empty
from dplinear.analyst.regression.names import own_features
from dplinear.analyst.results import NamedVector
from dplinear.arguments import rejection
from dplinear.schema.factors import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from dplinear.analyst.regression.fit import Fit
    from dplinear.analyst.regression.problem import Problem
    from dplinear.analyst.regression.regress import RegressOptions
    from dplinear.analyst.releases.moments import MomentsRelease
    from dplinear.arrays import Floats
    from dplinear.schema import Schema

_FEATURES = "None beside a formula, which names them"
_INTERCEPT = "left out beside a formula"
_HINT = 'a formula says so itself: "charges ~ 0 + age".'


def read_alone(schema: Schema, text: str, features: object, where: str, **facts: Any) -> Formula:
    """Return a formula, beside which no features and no `intercept` are given."""
    if features is not None:
        raise rejection("features", where, _FEATURES, features)
    return read_formula(schema, text, where, **facts)


def read_question(
    schema: Schema, text: str, features: object, intercept: object, where: str
) -> tuple[str, tuple[str, ...], bool]:
    """Return the target, the features and whether there is an intercept, of a plain formula.

    A model that is released by itself has the schema's own features, and no others.
    """
    if intercept is not None:
        raise rejection("intercept", where, _INTERCEPT, intercept, _HINT)
    formula = read_alone(schema, text, features, where)
    if not formula.is_plain:
        rule = "a formula whose columns are the schema's own features"
        hint = (
            "a released model codes categories as the schema does, with the first level as the "
            "reference. Moments can be told in any coding: release_moments(...).regress(formula)."
        )
        raise rejection(PARAMETER, where, rule, text, hint)
    return formula.target, formula.features, formula.constant


def fit_formula(
    moments: MomentsRelease,
    text: str,
    features: object,
    options: RegressOptions,
    fit: Callable[[str, list[str], RegressOptions], Fit],
) -> Fit:
    """Return the fit of a formula; `fit` fits named features.

    Levels that no row seems to hold are none of the formula's, as they are none of a table's.
    """
    if options["intercept"] is not True:
        raise rejection("intercept", WHERE, _INTERCEPT, options["intercept"], _HINT)
    absent = _absent(moments)
    formula = read_alone(moments.schema, text, features, WHERE, absent=frozenset(absent))
    if (options["ridge"] or options["l1"]) and not formula.is_plain:
        name, value = ("ridge", options["ridge"]) if options["ridge"] else ("l1", options["l1"])
        rule = "0 where a formula codes categories in another way than the schema"
        hint = "penalties are for the schema's own features, whose reference is the first level."
        raise rejection(name, WHERE, rule, value, hint)
    chosen: RegressOptions = {**options, "intercept": formula.constant}
    found = fit(formula.target, list(formula.features), chosen)
    own = {factor.column for factor in _factors(moments.schema, formula.features)}
    left = [name for name in absent if _column(moments.schema, name) in own]
    return _told_by(found, formula, tuple(left))


def _absent(moments: MomentsRelease) -> list[str]:
    """Return the features of levels that cannot be told from ones that no row holds."""
    schema = moments.schema
    if not moments.noise_model.known:
        return []
    levels = tuple(
        index
        for index in own_features(schema)
        if [type(factor) for factor in schema.features[index].factors] == [Level]
    )
    asked = Model(schema, levels, levels, (), schema.has_intercept, 0.0, 0.0)
    kept = without_empty(asked, moments.unbiased_estimate, moments.noise_model).features
    return [schema.names[index] for index in levels if index not in kept]


def _factors(schema: Schema, names: tuple[str, ...]) -> list[Any]:
    return [f for feature in schema.features if feature.name in names for f in feature.factors]


def _column(schema: Schema, name: str) -> str:
    return schema.features[schema.names.index(name)].factors[0].column


def _told_by(fit: Fit, formula: Formula, left: tuple[str, ...]) -> Fit:
    """Return a fit of features as one of the columns of a formula."""
    matrix, names = _coordinates(fit, formula)
    values = matrix @ np.array([fit[name] for name in fit.problem.names])
    told = dict(zip(names, values.tolist(), strict=True))
    columns = tuple(name for name in formula.names if name != CONSTANT)
    coefficients = np.array([told.get(name, 0.0) for name in columns])
    coefficients.flags.writeable = False
    return replace(
        fit,
        coefficients=NamedVector(columns, coefficients),
        intercept=told.get(CONSTANT, 0.0),
        empty=(*left, *fit.empty),
        problem=_recast(fit.problem, matrix, names),
        unrepaired=_recast(fit.unrepaired, matrix, names),
        formula=formula,
    )


def _coordinates(fit: Fit, formula: Formula) -> tuple[Floats, tuple[str, ...]]:
    """Return L⁻¹, and the columns of the formula that are estimated."""
    kept = [
        index
        for index, name in enumerate(formula.features, int(formula.constant))
        if name not in fit.empty
    ]
    kept = [0, *kept] if formula.constant else kept
    part = formula.combination[kept]
    used = np.flatnonzero(part.any(axis=0))
    if len(used) != len(kept):
        rule = "a formula whose combinations of levels are all held by rows"
        hint = f"next to no row is there: {', '.join(fit.empty)}. Keep the schema's own references."
        raise rejection(PARAMETER, WHERE, rule, formula.text, hint)
    return np.asarray(np.linalg.inv(part[:, used])), tuple(formula.names[index] for index in used)


def _recast(problem: Problem, matrix: Floats, names: tuple[str, ...]) -> Problem:
    return replace(
        problem, readout=matrix @ problem.readout, offset=matrix @ problem.offset, names=names
    )
