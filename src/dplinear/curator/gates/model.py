"""The gate for one linear or logistic model, when only one regression is wanted.

The order is the gate's: check, calibrate, check the table's columns, spend, read, solve, certify.
Only the columns of the model are read, so that no other takes part in its bounds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dplinear.analyst.regression.model import read_model, readout
from dplinear.analyst.regression.names import TARGET
from dplinear.analyst.regression.prediction import narrowed
from dplinear.analyst.releases.certificate import CALIBRATIONS, Certificate
from dplinear.analyst.releases.model import ModelRelease
from dplinear.analyst.results import NamedVector
from dplinear.arguments import choice, mistyped, rejection
from dplinear.arrays import BigIntegers, Floats
from dplinear.coinpress.regression import CoinPressRegression
from dplinear.curator.gates.moments import (
    RELATIONS,
    Passing,
    curve_of,
    own_options,
    reading_options,
)
from dplinear.curator.passes import Table, shape_of
from dplinear.curator.recorded import recorded
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.arrays import check_shape, is_sparse
from dplinear.curator.sources.pool import one_blas_thread
from dplinear.curator.sources.source import Reader
from dplinear.descent.huber import HuberDescent
from dplinear.descent.logistic import LogisticDescent
from dplinear.descent.whitened import WhitenedDescent
from dplinear.exact.design import Design
from dplinear.exact.gram import SecondMoments
from dplinear.exact.row_sums import Count, RowSum
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.adassp import AdaSSP
from dplinear.mechanisms.checks import read_guarantee
from dplinear.mechanisms.solver import Solution, Solver
from dplinear.planner.auto import AUTO, Asked, Choice, choose, read_expected
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import INTERCEPT, Schema
from dplinear.schema.features import Feature, Power
from dplinear.schema.sparse_rows import SparseRows

_WHERE = "release_model"
# The methods for each loss, the default first.
LOSSES: dict[str, dict[str, type[Solver]]] = {
    loss: {kind.name: kind for kind in kinds}
    for loss, kinds in {
        "squared": (WhitenedDescent, AdaSSP, CoinPressRegression),
        "logistic": (LogisticDescent,),
        "huber": (HuberDescent,),
    }.items()
}
SOLVERS = LOSSES["squared"]


@recorded
def release_model(
    data: Any,
    schema: Schema,
    target: str,
    features: Sequence[str] | str | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    loss: str = "squared",
    method: str | None = None,
    calibration: str = "exact",
    intercept: bool = True,
    expected_rows: int | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Any,
) -> ModelRelease:
    """Release one model of one target; the budget buys nothing but its coefficients.

    Requires: a table and its public schema; the name of the target; `features`, names of features,
    columns or derived terms (None: all but the target's); `epsilon` and `delta`, or a `guarantee`
    of another kind that the method supports; which tables are `neighbours`. `loss` is "squared";
    "huber", for targets of which a few are far off; or "logistic": the log-odds that an indicator
    is 1, or that a numeric column is above the middle of its bounds. `method`, for a squared loss,
    is "whitened_descent", the most accurate, which passes over the table some twenty times,
    "adassp", which reads it once and so takes streams, or "coinpress", which passes over it as
    often and does not mind bounds that are far too wide; the other losses have one method each, of
    passes too. "auto" is the one of the least error that the planner predicts for `expected_rows`,
    a public guess, and without one the default. Further options go to the method or to the reading
    (`threads`, `engine`, `progress`).
    Give paths where you can: what another library makes of a row, as it reads a file, may depend on
    other rows (docs/schema.md, "Types that a library guessed").
    Promises: the release satisfies what its certificate says, whatever the rows hold. Arguments,
    columns and types are checked before anything is spent; nothing is read before it is spent.
    """
    automatic = isinstance(method, str) and method == AUTO  # some objects mind being compared
    chosen = _method(loss, None if automatic else method)
    relation = Neighbours.parse(neighbours, _WHERE, RELATIONS)
    asked = read_guarantee(_WHERE, epsilon, delta, guarantee)
    choice(calibration, "calibration", _WHERE, CALIBRATIONS)
    expected = read_expected(expected_rows, _WHERE)
    passing = Passing(_WHERE, schema, ledger, dataset, request)
    model = OneModel.of(schema, target, features, intercept=intercept, loss=loss)
    if automatic:
        found = _auto(model, asked, relation, expected)
        chosen, passing.notes = LOSSES[loss][found.name], (found.note,)
    own = own_options(chosen, options, _WHERE)
    solver = chosen(guarantee=asked, neighbours=relation, calibration=calibration, **own)
    prepared = solver.prepare(model.design)
    curve = curve_of(prepared.account.profile)
    reading = reading_options(options) | {"again": solver.passes}
    opened = _opened(data, schema, model.schema, **reading)
    passing.spend(solver, prepared.account, model.public | own)
    rows = _Counted(opened(), model.schema)
    with one_blas_thread():  # more of them only wait for each other over small matrices
        solution = prepared.solve(rows, passing.entropy)
    certificate = passing.certificate(solver, solution.account, solution.parameters, curve)
    public = rows.count() if relation is Neighbours.REPLACE else None
    return model.release(solution, certificate, public)


@dataclass(frozen=True)
class OneModel:
    """A model to release: the part of the schema it is made of, and its design on the grid."""

    schema: Schema
    target: str
    features: tuple[str, ...]
    design: Design
    loss: str = "squared"

    @classmethod
    def of(
        cls,
        schema: Schema,
        target: object,
        features: Sequence[str] | str | None,
        *,
        intercept: bool,
        loss: str = "squared",
    ) -> "OneModel":
        """Read the arguments; raise where they name no model."""
        if not isinstance(target, str):
            raise mistyped("target", _WHERE, TARGET.partition(",")[0], target)
        model = read_model(schema, target, features, intercept=intercept, where=_WHERE)
        goal = schema.names[model.targets[0]]
        chosen = tuple(schema.names[place] for place in model.named)
        own = part_of(schema, (*chosen, goal), intercept=intercept)
        ones = (INTERCEPT,) if intercept else ()
        places = tuple(own.names.index(name) for name in (*ones, *chosen))
        place = own.names.index(goal)
        if loss == "logistic":
            _check_label(own.features[place], intercept=intercept)
        return cls(own, goal, chosen, design_of(own, places, place), loss)

    @property
    def public(self) -> dict[str, Any]:
        """What a ledger is told of it."""
        return {"target": self.target, "features": list(self.features), "loss": self.loss}

    def release(
        self, solution: Solution, certificate: Certificate, rows: int | None
    ) -> ModelRelease:
        """Return the solution in the columns' own units."""
        used = (*self.design.features, self.design.target)
        first = self.design.intercept
        matrix, offset = readout(self.schema, used, intercept=first, odds=self.loss == "logistic")
        values = offset + matrix @ solution.coefficients
        labels = (INTERCEPT, *self.features) if first else self.features
        noise, spread = (
            None if covariance is None else NamedVector(labels, _deviations(matrix, covariance))
            for covariance in (solution.noise, solution.spread)
        )
        estimate = solution.count
        if estimate is None and self.schema.row_norm is None:
            estimate = solution.weight
        return ModelRelease(
            schema=self.schema,
            target=self.target,
            coefficients=NamedVector(self.features, values[1:] if first else values),
            intercept=float(values[0]) if first else 0.0,
            certificate=certificate,
            rows=rows,
            count=float(rows) if rows is not None else estimate,
            standard_errors=spread,
            privacy_errors=noise,
            unknown=solution.unknown if spread is None else None,
            loss=self.loss,
        )


def _method(loss: object, method: object) -> type[Solver]:
    """Return the solver of a loss, by name or by default."""
    known = LOSSES[choice(loss, "loss", _WHERE, LOSSES)]
    if method is None:
        return next(iter(known.values()))
    named = method if isinstance(method, str) else None
    others = [name for name, methods in LOSSES.items() if named in methods]
    hint = f'"{method}" is a method for loss="{others[0]}".' if others else ""
    return known[choice(method, "method", _WHERE, known, hint=hint)]


def _auto(model: "OneModel", asked: Guarantee, relation: Neighbours, rows: int | None) -> Choice:
    """Return the planner's choice of a method for the model's loss."""
    names, own = tuple(LOSSES[model.loss]), model.schema
    if len(names) == 1:
        return Choice(names[0], f"'auto' is {names[0]} here, the one method for this loss.")
    size = (len(model.features), own.dimension, own.bound**2)
    return choose("regression", names, Asked(asked, relation, *size), rows)


def _check_label(feature: Feature, *, intercept: bool) -> None:
    """Raise for targets whose cells' signs are not a label: above 0 means yes."""
    powers = [factor for factor in feature.factors if isinstance(factor, Power)]
    if not powers:
        return
    if len(feature.factors) > 1 or powers[0].exponent != 1:
        rule = "an indicator or a numeric column for a logistic loss"
        hint = 'an indicator is a level such as "smoker=yes", or a derived term such as "age>65".'
        raise rejection("target", _WHERE, rule, feature.name, hint)
    ends = [float(feature.low), float(feature.high)]
    if not intercept and ends != [0, 1] and sum(ends) != 0:
        rule = "an indicator, or a column with bounds (0, 1), for log-odds without an intercept"
        hint = "without an intercept cells are not shifted, so that no middle of bounds is seen."
        raise rejection("target", _WHERE, rule, feature.name, hint)


def part_of(schema: Schema, names: Sequence[str], *, intercept: bool) -> Schema:
    """Return the part of a schema that some of its features are made from, for reading rows.

    Without an intercept nothing can undo a shift, so cells are then scaled but not centred.
    """
    content = narrowed(schema, names).to_dict() | {"intercept": intercept}
    whole = schema.to_dict()
    if "row_norm" in whole:
        content["row_norm"] = whole["row_norm"]
    return Schema.from_dict(content)


def design_of(schema: Schema, features: tuple[int, ...], target: int) -> Design:
    """Return the public facts of a regression on a schema's features, on its grid.

    Promises: no rounded row that is encoded as it should be is beyond `feature_square` and
    `target_square`, as no cell is larger than `cells` and levels of one category exclude each
    other, before clipping and after it. They are derived; solvers hold every row to them.
    """
    shape = shape_of(schema)
    whole = shape.sensitivity
    most = min(most_squared(schema, features) * shape.cells**2, whole)
    return Design(
        shape=shape,
        features=features,
        target=target,
        feature_square=most,
        target_square=min(shape.cells**2, whole),
        intercept=schema.has_intercept,
        indicators=tuple(schema.features[place].is_indicator for place in features),
    )


def most_squared(schema: Schema, places: Sequence[int]) -> int:
    """Return the most that some features' cells can add up to, squared."""
    chosen = set(places)
    return sum(
        min(term.square, len(chosen.intersection(own))) for term, own in schema.terms.items()
    )


def _deviations(matrix: Floats, covariance: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(np.diag(matrix @ covariance @ matrix.T), 0.0)))


class _Counted(Table):
    """A table that remembers how many rows a pass counted."""

    _rows: int | None = None

    def moments(self) -> SecondMoments:
        """Return the exact second moments of its rows."""
        moments = super().moments()
        self._rows = moments.count
        return moments

    def sums(self, statistics: Sequence[RowSum]) -> list[BigIntegers]:
        """Return exact sums over its rows; remember a count."""
        found = super().sums(statistics)
        for statistic, total in zip(statistics, found, strict=True):
            if isinstance(statistic, Count):
                self._rows = int(total[0])
        return found

    def count(self) -> int:
        """Return the number of rows, by another pass if none has counted them."""
        return int(super().sums([Count()])[0][0]) if self._rows is None else self._rows


def _opened(
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
    if not (plain or thin) or part.columns == whole.columns:
        reader = open_reader(data, part, **reading)
        return lambda: reader
    check_shape(whole, data.shape)
    places = [whole.columns.index(name) for name in part.columns]
    if thin:
        open_reader(csr_array((0, len(places)), dtype=data.dtype), part, **reading)
        return lambda: open_reader(SparseRows.of(data).select(places), part, **reading)
    open_reader(data[:0][:, places], part, **reading)
    return lambda: open_reader(data[:, places], part, **reading)
