"""The gate for one linear or logistic model, when only one regression is wanted.

Only the columns of the model are read, so that no other takes part in its bounds.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack, overload

import numpy as np
from scipy.sparse import csr_array

from dplinear.analyst.regression.formula_fit import read_question
from dplinear.analyst.regression.formulas import is_formula
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.constrained import ConstrainedRelease
from dplinear.analyst.releases.groups import Groups
from dplinear.analyst.releases.model import ModelRelease
from dplinear.arguments import choice, rejection, wrong_type
from dplinear.arrays import BigIntegers
from dplinear.convex.learners.contract import ConstrainedMechanism
from dplinear.convex.losses import Loss
from dplinear.convex.sets.given import Constraint
from dplinear.curator.gates.constrained import constrained_through
from dplinear.curator.gates.groups import Grouping
from dplinear.curator.gates.model_forms import check_columns_form, check_rows_form
from dplinear.curator.gates.model_groups import model_groups_through
from dplinear.curator.gates.objects import unfold
from dplinear.curator.gates.one_model import OneModel
from dplinear.curator.gates.options import (
    LearnerOptions,
    ModelOptions,
    for_units,
    own_options,
    reading_options,
)
from dplinear.curator.passage import Passage
from dplinear.curator.passes import Table
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.arrays import check_shape, is_sparse
from dplinear.curator.sources.source import Reader
from dplinear.exact.row_sums import Count, LeftOut, RowSum
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.mechanisms.model import ModelMechanism, Solution
from dplinear.planner.auto import AUTO, Asked, Choice, choose, read_expected
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import MODELS
from dplinear.schema import Schema, SchemaLike
from dplinear.schema.groups import By
from dplinear.schema.sparse_rows import SparseRows

_WHERE = "release_model"


@overload
def release_model(
    data: Any,
    schema: SchemaLike,
    target: str,
    features: Sequence[str] | str | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = ...,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    by: None = None,
    loss: str = ...,
    mechanism: str | ModelMechanism | None = None,
    intercept: bool = True,
    expected_rows: int | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[ModelOptions],
) -> ModelRelease: ...


@overload
def release_model(
    data: Any,
    schema: SchemaLike,
    target: str,
    features: Sequence[str] | str | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = ...,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    by: By,
    loss: str = ...,
    mechanism: str | ModelMechanism | None = None,
    intercept: bool = True,
    expected_rows: int | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[ModelOptions],
) -> Groups[ModelRelease]: ...


@overload
def release_model(
    data: Any,
    *,
    target: Any,
    row_norm: float,
    constraint: Constraint,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = ...,
    groups: Any = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    sample_weight: Any = None,
    weight_bound: float | None = None,
    loss: str | Loss = ...,
    mechanism: str | ConstrainedMechanism | None = None,
    target_bounds: tuple[float, float] | None = None,
    classes: tuple[Any, Any] | None = None,
    intercept: bool = False,
    intercept_scaling: float | None = None,
    projection: Any = "auto",
    projected: bool = False,
    dimension: int | str | None = None,
    seed: int | None = None,
    clip: float | None = None,
    lift: str = "auto",
    expected_rows: float | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[LearnerOptions],
) -> ConstrainedRelease: ...


def release_model(
    data: Any,
    schema: SchemaLike | None = None,
    target: Any = None,
    features: Sequence[str] | str | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    by: By | None = None,
    loss: str | Loss = "squared",
    mechanism: str | ModelMechanism | ConstrainedMechanism | None = None,
    intercept: bool | None = None,
    intercept_scaling: float | None = None,
    expected_rows: float | None = None,
    row_norm: float | None = None,
    constraint: Constraint | None = None,
    target_bounds: tuple[float, float] | None = None,
    classes: tuple[Any, Any] | None = None,
    projection: Any = "auto",
    projected: bool = False,
    dimension: int | str | None = None,
    seed: int | None = None,
    clip: float | None = None,
    lift: str = "auto",
    groups: Any = None,
    sample_weight: Any = None,
    weight_bound: float | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Any,
) -> ModelRelease | Groups[ModelRelease] | ConstrainedRelease:
    """Release one model of one target; the budget buys nothing but its coefficients.

    With a schema: a model of a table's columns.

    Requires: a table and its public schema; the name of the target; `features`, names of features,
    columns or derived terms (None: all but the target's), or a formula as the target, such as
    "charges ~ age + C(smoker)"; `epsilon` and `delta`, or a `guarantee`
    of another kind that the mechanism supports; which tables are `neighbours`. `unit` is the column
    of ids whose rows are protected together, and count as at most `rows_per_unit` rows (1 unless
    given); the schema may name it (docs/schema.md, "Units of privacy"). `by` names
    categories or truth values of the schema: each of their levels has a model of its own, all for
    one price; or lists groups, as for `release_moments` (docs/schema.md, "Groups for one price").
    `loss` is "squared";
    "huber", for targets of which a few are far off; or "logistic": the log-odds that an indicator
    is 1, or that a numeric column is above the middle of its bounds. `mechanism`, for a squared
    loss, is "whitened_descent", the most accurate, which passes over the table some twenty times,
    "adassp", which takes one pass, or "coinpress", which passes over it as
    often and does not mind bounds that are far too wide; the other losses have one each, of passes
    too. `errors="clustered"`, with a unit, gives standard errors that its correlated rows show, for
    a tenth of the budget; otherwise they are upper bounds. "auto" is the one of the least error
    that the planner predicts for `expected_rows`, a public guess, and without one the default. An
    object, such as `AdaSSP(guarantee=…)`, has its own guarantee, neighbours and options. Further
    options go to the mechanism or to the reading (`threads`, `engine`, `progress`).
    Give paths where you can: what another library makes of a row, as it reads a file, may depend on
    other rows (docs/schema.md, "Types that a library guessed").

    Without one: a model of wide or sparse rows, whose coefficients lie in a public convex set.

    Requires: rows, which may be a SciPy sparse matrix, and a label for each as `target`;
    `row_norm`, the public norm that longer rows are scaled down to; a `constraint` on θ, in units
    in which rows have norm at most 1 and labels lie within ±1: an L1 radius, a set, or what makes
    one for a number of dimensions; `target_bounds` for "squared" and "huber" losses, two `classes`
    for "logistic" and "hinge". `projection` is a kind ("gaussian", "rademacher", "sparse",
    "very_sparse"), None, or "auto": then the planner chooses, as it does the `dimension` and the
    `mechanism`. A dimension of "simulate" is the best of a simulation of such tables, which reads
    none and may take half a minute. `seed`, public, names the projection; `clip` is the norm of
    projected rows (None: a little above what they usually have). If rows are `projected` already,
    the projection is the matrix, or the `Projection`, that did it, made without looking at them,
    and `row_norm` that of rows before it. An `intercept` is one more feature, the last of the set's
    coordinates, of value `intercept_scaling`. `expected_rows` is the order of magnitude of their
    number where it is public: it helps to choose, and enters no promise. `groups`, an array with an
    id of any type for each row, protects all rows of an id together, which count as at most
    `rows_per_unit` rows (1 unless given); `unit` is what an id stands for, "groups" unless given.
    `sample_weight`, an array of survey weights, is clamped to [0, `weight_bound`]. `lift` says
    which θ is released: the learner's own ("carried"), or that of the least gauge. Further options
    go to the mechanism.

    Promises: the release satisfies what its certificate says, whatever the rows hold. Arguments,
    columns and types are checked before anything is spent; nothing is read before it is spent.
    """
    with Passage(_WHERE, locals()) as passage:
        rows = constraint is not None
        mechanism, guarantee, neighbours, said = unfold(
            passage, ConstrainedMechanism if rows else ModelMechanism, whole=rows
        )
        relation = Neighbours.parse(neighbours, _WHERE, RELATIONS)
        asked = read_guarantee(_WHERE, epsilon, delta, guarantee)
        if schema is None and constraint is None:
            hint = "a model of rows without a schema needs row_norm=... and constraint=... instead."
            raise wrong_type("schema", _WHERE, "a Schema", schema, hint)
        if constraint is not None:
            check_rows_form(passage.given)
            return constrained_through(passage, asked, relation)
        check_columns_form(passage.given)
        automatic = isinstance(mechanism, str) and mechanism == AUTO
        chosen = _mechanism(loss, None if automatic else mechanism)
        expected = read_expected(expected_rows, _WHERE)
        whole = passage.schema(schema)
        grouping = None if by is None else Grouping.of(passage, whole, by)
        whole = whole if grouping is None else grouping.split
        constant = True if intercept is None else intercept
        if is_formula(whole, target):
            target, features, constant = read_question(whole, target, features, intercept, _WHERE)
        model = OneModel.of(whole, target, features, intercept=constant, loss=str(loss))
        if automatic:
            names = for_units(MODELS[model.loss].own, whole)
            if grouping is not None:
                expected = grouping.share(expected)
                names = grouping.usable(passage, MODELS[model.loss], names, relation)
            found = _auto(model, asked, relation, expected, names)
            chosen, passage.notes = MODELS[model.loss][found.name], (found.note,)
        own = own_options(chosen, said, _WHERE)
        solver = chosen(guarantee=asked, neighbours=relation, **own)
        if solver.by_unit and passage.unit is None:
            rule = "left out without a unit of privacy"
            raise rejection("errors", _WHERE, rule, own.get("errors", "such settings"))
        if grouping is not None:
            reading = _reading(passage, solver)
            opening = partial(_open_part, passage.given["data"], whole, model.schema, **reading)
            return model_groups_through(passage, solver, own, model, grouping, open_part=opening)
        return model_through(passage, solver, own, model, whole)


def model_through(
    passage: Passage,
    solver: ModelMechanism,
    own: Mapping[str, Any],
    model: OneModel,
    schema: Schema,
) -> ModelRelease:
    """Calibrate, check the table, and go through the passage."""
    prepared = solver.prepare(model.design)
    passage.check_rows(solver)
    reading = _reading(passage, solver)
    opened = _open_part(passage.given["data"], schema, model.schema, **reading)
    table: list[_Counted] = []

    def read() -> _Counted:
        table.append(_Counted(opened(), model.schema))
        return table[0]

    def release(solution: Solution, certificate: Certificate) -> ModelRelease:
        known = solver.neighbours.rows_are_public and not schema.is_weighted
        public = table[0].count() if known else None
        return model.release(solution, certificate, public)

    return passage.cross(solver, prepared, read, release, model.public | dict(own))


def _reading(passage: Passage, solver: ModelMechanism) -> dict[str, Any]:
    """Return how the table is to be read."""
    reading = reading_options(passage.given["options"])
    return reading | {"again": solver.passes, "rows_per_unit": passage.rows_per_unit}


def _mechanism(loss: object, mechanism: object) -> type[ModelMechanism]:
    """Return the solver of a loss, by name or by default."""
    known = MODELS[choice(loss, "loss", _WHERE, MODELS)]
    if mechanism is None:
        return next(iter(known.values()))
    named = mechanism if isinstance(mechanism, str) else None
    others = [name for name, methods in MODELS.items() if named in methods]
    hint = f'"{mechanism}" is a mechanism for loss="{others[0]}".' if others else ""
    return known[choice(mechanism, "mechanism", _WHERE, known, hint=hint)]


def _auto(
    model: "OneModel",
    asked: Guarantee,
    relation: Neighbours,
    rows: int | None,
    names: tuple[str, ...],
) -> Choice:
    """Return the planner's choice among methods for the model's loss."""
    own = model.schema
    if len(names) == 1:
        return Choice(names[0], f"'auto' is {names[0]} here, the one method for this loss.")
    size = (len(model.features), own.dimension, own.bound**2)
    return choose("regression", names, Asked(asked, relation, *size), rows)


class _Counted(Table):
    """A table that counts its rows in the first pass over them, those that are left out as well."""

    _rows: int | None = None

    def sums(self, statistics: Sequence[RowSum]) -> list[BigIntegers]:
        """Return exact sums over its rows."""
        if self._rows is not None:
            return super().sums(statistics)
        *found, kept, left = super().sums([*statistics, Count(), LeftOut()])
        self._rows = int(kept[0] + left[0])
        return found

    def count(self) -> int:
        """Return the number of rows of the table, by another pass if there was none."""
        if self._rows is None:
            self.sums([Count()])
        return int(self._rows or 0)


def _open_part(
    data: Any,
    whole: Schema,
    part: Schema,
    **reading: Any,
) -> Callable[[], Reader]:
    """Check a table's columns; return what opens those of a part of its schema.

    Arrays have columns by position. Taking some of them copies, which is reading: so the check is
    of an array without rows.
    """
    thin = is_sparse(data)
    plain = isinstance(data, np.ndarray) and data.dtype.names is None
    if not (plain or thin) or part.read_columns == whole.read_columns:
        reader = open_reader(data, part, **reading)
        return lambda: reader
    check_shape(whole, data.shape)
    indices = [whole.read_columns.index(name) for name in part.read_columns]
    if thin:
        open_reader(csr_array((0, len(indices)), dtype=data.dtype), part, **reading)
        return lambda: open_reader(SparseRows.of(data).select(indices), part, **reading)
    open_reader(data[:0][:, indices], part, **reading)
    return lambda: open_reader(data[:, indices], part, **reading)
