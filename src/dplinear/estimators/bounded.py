"""A model in a constraint set, of columns with public bounds: the set is that of their cells."""

import math
from functools import partial
from numbers import Real
from typing import Any

from dplinear.analyst.releases.constrained import ConstrainedRelease
from dplinear.arguments import positive, real
from dplinear.arrays import Array, Floats
from dplinear.convex.sets import ConvexSet, L1Ball, Moved
from dplinear.convex.sets.given import Constraint
from dplinear.curator.examples import Rules
from dplinear.curator.gates.model import release_model
from dplinear.estimators.tables import centre_columns
from dplinear.schema.columns import Numeric


def bounded_release(
    table: Array,
    labels: Array,
    columns: list[Numeric],
    *,
    constraint: Constraint,
    row_norm: float | None,
    intercept: bool,
    **asked: Any,
) -> tuple[ConstrainedRelease, Floats, float]:
    """Return a model in a set, and its coefficients in the columns' own units.

    Requires: `constraint`, on the coefficients of cells in [−1, 1] and of a constant 1, the last,
    where there is an `intercept`; `row_norm`, for the cells alone (None: what their bounds give).
    """
    cells, middle, half = centre_columns(table, columns)
    norm = math.sqrt(len(columns)) if row_norm is None else row_norm
    value = 1.0 / norm if intercept else 0.0
    rules = Rules(features=len(columns), row_norm=norm, classes=(0, 1), intercept=value)
    # Rounded to a grid, the constant may be a little less than what one cell is: never more.
    reach = 1.0 / max(rules.scale, rules.constant)
    release: ConstrainedRelease = release_model(
        cells,
        target=labels,
        row_norm=norm,
        constraint=partial(stretch_set, constraint, reach),
        intercept=intercept,
        intercept_scaling=value if intercept else None,
        **asked,
    )
    coefficients = release.coefficients / half
    return release, coefficients, release.intercept - float(coefficients @ middle)


def stretch_set(constraint: Constraint, factor: float, dimension: int) -> ConvexSet:
    """Return a set of coefficients, for rows that are shorter by a factor."""
    made: Any = constraint
    if isinstance(made, Real):
        return L1Ball(dimension, factor * float(made))
    return Moved(made if isinstance(made, ConvexSet) else made(dimension), factor)


def check_norm(row_norm: float | None, where: str, *, intercept: bool) -> None:
    """Raise for a norm that is none, or beside which a constant 1 is too long or too short."""
    if row_norm is not None and intercept:
        hint = "bounds in other units make other cells; without an intercept any norm will do."
        real(row_norm, "row_norm", where, low=1e-3, high=1e3, hint=hint)
    elif row_norm is not None:
        positive(row_norm, "row_norm", where)
