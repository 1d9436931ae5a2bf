"""One model of a table's columns: what is asked for, its design on the grid, and its release."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dplinear.analyst.design_effect import weight_scale
from dplinear.analyst.filled_in import filled_names
from dplinear.analyst.regression.model import read_model, readout
from dplinear.analyst.regression.names import TARGET
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.model import ModelRelease
from dplinear.analyst.results import NamedVector
from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.exact.design import Design
from dplinear.exact.grid import shape_of
from dplinear.mechanisms.model import Solution
from dplinear.schema import INTERCEPT, Schema
from dplinear.schema.factors import Power
from dplinear.schema.features import Feature

_WHERE = "release_model"


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
        where: str = _WHERE,
        complete: bool = True,
    ) -> "OneModel":
        """Read the arguments of `where`; raise where they name no model.

        `complete`: rows that lack the target or a feature are left out, unless their columns say
        otherwise.
        """
        if not isinstance(target, str):
            hint = "labels go without a schema, beside row_norm=... and constraint=..."
            raise wrong_type("target", where, TARGET.partition(",")[0], type(target), hint)
        model = read_model(schema, target, features, intercept=intercept, where=where)
        target_name = schema.names[model.targets[0]]
        names = schema.names
        chosen = tuple(names[index] for index in model.named)
        own = schema.select((*chosen, target_name), intercept=intercept)
        own = own.leaving_out() if complete else own
        ones = (INTERCEPT,) if intercept else ()
        names = own.names
        indices = tuple(names.index(name) for name in (*ones, *chosen))
        index = names.index(target_name)
        if loss == "logistic":
            _check_label(own.features[index], where, intercept=intercept)
        return cls(own, target_name, chosen, design_of(own, indices, index), loss)

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
        centres = None
        if spread is not None and solution.centre is not None:
            centres = NamedVector(labels, offset + matrix @ solution.centre)
        estimate = solution.count
        if estimate is None and self.schema.row_norm is None:
            estimate = solution.weight
        if estimate is not None:
            estimate *= weight_scale(self.schema, certificate.rows_per_unit)
        return ModelRelease(
            schema=self.schema,
            target=self.target,
            coefficients=NamedVector(self.features, values[1:] if first else values),
            intercept=float(values[0]) if first else 0.0,
            certificate=certificate,
            rows=rows,
            count=estimate if rows is None or self.design.count_varies else float(rows),
            standard_errors=spread,
            privacy_errors=noise,
            centres=centres,
            unknown=solution.unknown if spread is None else None,
            loss=self.loss,
        )


def _check_label(feature: Feature, where: str, *, intercept: bool) -> None:
    """Raise for targets whose cells' signs are not a label: above 0 means yes."""
    numbers = [factor for factor in feature.factors if not factor.binary]
    if not numbers:
        return
    if feature.factors != (Power(numbers[0].column, 1),):
        rule = "an indicator or a numeric column for a logistic loss"
        hint = 'an indicator is a level such as "smoker=yes", or a derived term such as "age>65".'
        raise rejection("target", where, rule, feature.name, hint)
    ends = [float(feature.low), float(feature.high)]
    if not intercept and ends != [0, 1] and sum(ends) != 0:
        rule = "an indicator, or a column with bounds (0, 1), for log-odds without an intercept"
        hint = "without an intercept cells are not shifted, so that no middle of bounds is seen."
        raise rejection("target", where, rule, feature.name, hint)


def design_of(schema: Schema, features: tuple[int, ...], target: int) -> Design:
    """Return the public facts of a regression on a schema's features, on its grid.

    Promises: no rounded row that is encoded as it should be is beyond `feature_square` and
    `target_square`, as no cell is larger than `steps_per_unit` and levels of one category exclude
    each other, before clipping and after it. They are derived; solvers hold every row to them.
    """
    shape, known = shape_of(schema), schema.features
    whole = shape.sensitivity
    most = min(most_squared(schema, features) * shape.steps_per_unit**2, whole)
    return Design(
        shape=shape,
        features=features,
        target=target,
        feature_square=most,
        target_square=min(shape.steps_per_unit**2, whole),
        intercept=schema.has_intercept,
        indicators=tuple(known[index].is_indicator for index in features),
        weighted=schema.is_weighted,
        surveyed=schema.weight is not None,
        survey_alone=schema.weight is not None and schema.unit is None,
        leaves_out=bool(schema.needed_features),
        filled=filled_names(schema),
    )


def most_squared(schema: Schema, indices: Sequence[int]) -> int:
    """Return the most that some features' cells can add up to, squared."""
    chosen = set(indices)
    return sum(
        min(term.square, len(chosen.intersection(own))) for term, own in schema.terms.items()
    )


def _deviations(matrix: Floats, covariance: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(np.diag(matrix @ covariance @ matrix.T), 0.0)))
