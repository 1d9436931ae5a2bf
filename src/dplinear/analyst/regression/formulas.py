"""Formulas as statisticians write them, "charges ~ age + C(smoker) * bmi", of a release's features.

The formula library reads the text and codes categories. A column of its design matrix is a function
of one row, and so is a feature; which combination of features it is follows from both on made-up
rows, where every level and every piece of a feature occurs. No private row is needed for that.

Requires: a schema, and a formula whose columns span the same functions as some of the features.
Promises: the matrix L with (columns of the formula) = (features)·L, exact but for rounding. Where
there is none, an error says which column the release lacks, and what to declare for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.analyst.regression.formula_declarations import declaration
from dplinear.analyst.regression.formula_rows import MadeUpRows
from dplinear.analyst.regression.formula_words import PARAMETER, check_size, jumps_in, names_in
from dplinear.arguments import rejection
from dplinear.schema.factors import Level

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dplinear.arrays import Floats
    from dplinear.schema import Schema

CONSTANT = "Intercept"  # as formulas name it
_MARK = "~"
_TOLERANCE = 1e-8
_WRONG = (TypeError, ValueError)
_MOST = 2_000
_FORM = 'a formula of one target and its features, such as "charges ~ age + C(smoker)"'
_MISSING = "Formulas need formulaic.\n\nHint: pip install formulaic."


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula, in terms of a schema's features.

    `names` are its columns; `features` are what these are made of, and the constant before them
    where `constant` says so. Rows of `combination` are for the latter, its columns for `names`: L.
    """

    text: str
    target: str
    names: tuple[str, ...]
    features: tuple[str, ...]
    constant: bool
    combination: Floats

    @property
    def is_plain(self) -> bool:
        """Whether its columns are the features themselves, in their order."""
        return bool(np.array_equal(self.combination, np.eye(len(self.combination))))


def is_formula(schema: Schema, target: object) -> bool:
    """Return whether a target is a formula, and no name that has a tilde in it."""
    named = (*schema.names, *schema.columns)
    return isinstance(target, str) and _MARK in target and target not in named


def read_formula(
    schema: Schema, text: str, where: str, absent: Collection[str] = frozenset()
) -> Formula:
    """Return what a formula means; `absent` are features of levels that it leaves out."""
    parsed = _parse(text, where)
    rows = _made_up(schema, parsed, text, where, absent)
    left, matrix, names, owners = _design(parsed, rows, text, where)
    if CONSTANT in names and not schema.has_intercept:
        hint = 'the schema has no column of ones; write "charges ~ 0 + age".'
        raise rejection(PARAMETER, where, "without an intercept for this schema", text, hint)
    weights = _solve(rows, matrix)
    for column, name, owner in zip(weights.T, names, owners, strict=True):
        if np.isnan(column).any():
            hint = "no sum over rows holds it. " + declaration(owner, schema)
            raise rejection(PARAMETER, where, "a formula of what was released", name, hint.strip())
    target = _target(rows, left, where, parsed.lhs[0])
    own = _in_own_units(rows, weights)
    held = np.abs(own).max(axis=1) > 0
    constant = bool(schema.has_intercept and held[0])
    chosen = [int(index) for index in np.flatnonzero(held) if rows.candidates[index].factors]
    features = tuple(rows.candidates[index].name for index in chosen)
    combination = own[[0, *chosen] if constant else chosen]
    needed = [declaration(owners[place], schema) for place in _mixtures(own)]
    hint = next(filter(None, needed), "")
    _check_span(combination, names, features, text=text, where=where, hint=hint)
    if _permutes(combination):  # then in the formula's own order
        order = combination.argmax(axis=0)
        combination = combination[order]
        features = tuple(features[index - constant] for index in order[int(constant) :])
    return Formula(text, target, tuple(names), features, constant, combination)


def _made_up(
    schema: Schema, parsed: Any, text: str, where: str, absent: Collection[str]
) -> MadeUpRows:
    """Return rows for the features that are made of no other columns than the formula is."""
    factors = [factor for term in (*parsed.lhs, *parsed.rhs) for factor in term.factors]
    named = {name for factor in factors for name in names_in(factor, schema, where)}
    behind = [feature for feature in schema.features if feature.name in named]
    columns = named & set(schema.declared)
    columns |= {factor.column for feature in behind for factor in feature.factors}
    candidates = [
        feature
        for feature in schema.features
        if {factor.column for factor in feature.factors} <= columns and feature.name not in absent
    ]
    if len(candidates) > _MOST:
        rule = f"a formula of columns with at most {_MOST} features"
        raise rejection(PARAMETER, where, rule, text, "name target and features instead.")
    left_out = {
        (factor.column, factor.code)
        for feature in schema.features
        if feature.name in absent
        for factor in feature.factors
        if isinstance(factor, Level)
    }
    return MadeUpRows(
        schema,
        candidates,
        sorted(columns),
        left_out=left_out,
        named=named - columns,
        jumps={jump for factor in factors for jump in jumps_in(factor)},
    )


def _parse(text: str, where: str) -> Any:
    try:
        from formulaic import Formula as Parsed
        from formulaic.errors import FormulaicError
    except ImportError:
        raise ImportError(_MISSING) from None
    check_size(text, where)
    hint = 'write "charges ~ age", or name target and features: regress("charges", ["age"]).'
    try:
        parsed = Parsed(text)
        whole = (
            hasattr(parsed, "lhs")
            and len(parsed.lhs) == 1
            and all(hasattr(term, "factors") for term in [*parsed.lhs, *parsed.rhs])
        )
    except (FormulaicError, AttributeError, TypeError, ValueError, SyntaxError, RecursionError):
        whole = False
    if not whole:
        raise rejection(PARAMETER, where, _FORM, text, hint)
    return parsed


def _design(
    parsed: Any, rows: MadeUpRows, text: str, where: str
) -> tuple[Floats, Floats, list[str], list[Any]]:
    """Return target and design matrix on made-up rows, its columns' names, and their terms."""
    from formulaic import model_matrix
    from formulaic.errors import FormulaicError

    try:
        with np.errstate(all="ignore"):
            made = model_matrix(
                parsed, rows.frame(), context=rows.functions(where), na_action="ignore"
            )
            left, right = (np.asarray(part, dtype=np.float64) for part in (made.lhs, made.rhs))
    except (FormulaicError, ArithmeticError, AttributeError, LookupError, *_WRONG) as error:
        rule = f"a formula that can be evaluated ({type(error).__name__})"
        raise rejection(PARAMETER, where, rule, text) from None
    names = [str(name) for name in made.rhs.columns]
    if not names:
        mean = "for the mean of a column, see means()."
        raise rejection(PARAMETER, where, "a formula with at least one feature", text, mean)
    owner = {name: term for term, own in made.rhs.model_spec.term_indices.items() for name in own}
    return left, right, names, [owner[index] for index in range(len(names))]


def _solve(rows: MadeUpRows, matrix: Floats) -> Floats:
    """Return each column as a combination of scaled features; NaN where it is none."""
    cells = rows.cells
    kept = _independent(cells)
    found = np.zeros((cells.shape[1], matrix.shape[1]))
    for index, column in enumerate(matrix.T):
        size = np.abs(column).max(initial=0.0)
        if not np.isfinite(size) or size == 0:
            found[:, index] = np.nan if size else 0.0
            continue
        weights = np.linalg.lstsq(cells[:, kept], column / size, rcond=None)[0]
        weights[np.abs(weights) < _TOLERANCE] = 0.0
        left = np.abs(cells[:, kept] @ weights - column / size).max()
        found[kept, index] = size * weights if left < _TOLERANCE else np.nan
    return found


def _independent(cells: Floats) -> list[int]:
    """Return columns of which none is a combination of those before it."""
    scaled = cells / np.maximum(np.sqrt(np.square(cells).sum(axis=0)), 1e-300)
    corner = np.linalg.qr(scaled, mode="r")
    return [int(index) for index in np.flatnonzero(np.abs(np.diag(corner)) > _TOLERANCE)]


def _target(rows: MadeUpRows, left: Floats, where: str, term: Any) -> str:
    """Return the feature that the left-hand side is."""
    found, shown = _in_own_units(rows, _solve(rows, left)), str(term)
    if left.shape[1] != 1 or np.isnan(found).any():
        hint = declaration(term, rows.schema)
        hint = hint or 'a level is a feature of its own: "`smoker=yes` ~ age".'
        raise rejection(PARAMETER, where, "a formula of a target that was released", shown, hint)
    held = np.flatnonzero(found[:, 0])
    if len(held) != 1 or found[held[0], 0] != 1 or not rows.candidates[held[0]].factors:
        hint = "fit the feature itself; coefficients of a multiple of it are multiples of them."
        raise rejection(PARAMETER, where, "a formula of one feature as target", shown, hint)
    return rows.candidates[int(held[0])].name


def _in_own_units(rows: MadeUpRows, weights: Floats) -> Floats:
    """Return combinations of features in their own units, made of those of scaled features."""
    centre = np.array([float(feature.centre) for feature in rows.candidates])
    width = np.array([float(feature.half_width) for feature in rows.candidates])
    found = weights / width[:, None]
    if rows.schema.has_intercept:
        found[0] -= centre @ found
    # What was rounded away: whole numbers are meant to be whole, and nothing to be 0.
    terms = np.abs(weights).max(axis=0) + np.abs(centre @ np.abs(found))
    found[0] = np.where(np.abs(found[0]) < _TOLERANCE * terms, 0.0, found[0])
    whole = np.rint(found)
    near = np.abs(found - whole) < _TOLERANCE * np.maximum(np.abs(whole), 1e-3)
    return np.asarray(np.where(near, whole, found))


def _mixtures(own: Floats) -> list[int]:
    """Return the columns that are made of several features at once."""
    return [int(index) for index in np.flatnonzero(np.count_nonzero(own[1:], axis=0) > 1)]


def _check_span(
    combination: Floats,
    names: Sequence[str],
    features: Sequence[str],
    *,
    text: str,
    where: str,
    hint: str,
) -> None:
    """Raise unless the columns of a formula are as many as what they are made of, and span it."""
    size = len(combination)
    if not features:
        mean = "for the mean of a column, see means()."
        raise rejection(PARAMETER, where, "a formula with at least one feature", text, mean)
    if np.linalg.matrix_rank(combination) < len(names):
        double = "leave out those that follow from others, as I(2 * age) follows from age."
        raise rejection(PARAMETER, where, "a formula of independent columns", text, double)
    if size > len(names):
        needed = ", ".join(features)
        ties = f"it ties the coefficients of some of these together: {needed}."
        rule = "a formula with a coefficient for each feature"
        raise rejection(PARAMETER, where, rule, text, f"{ties} {hint or 'Name each by itself.'}")


def _permutes(matrix: Floats) -> bool:
    """Return whether the columns are the features in another order, the constant first."""
    ones = bool((np.count_nonzero(matrix, axis=0) == 1).all() and (matrix.max(axis=0) == 1).all())
    return ones and bool((np.count_nonzero(matrix, axis=1) == 1).all())
