"""The model that is scored: what it predicts, of which columns, and how rows are put to it."""

import hashlib
import math
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dplinear.analyst.regression.fit import Fit
from dplinear.analyst.regression.model import scales
from dplinear.analyst.regression.names import indices_of, single
from dplinear.analyst.releases.files import load
from dplinear.analyst.releases.model import ModelRelease
from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.exact.grid import shape_of
from dplinear.exact.shape import Shape
from dplinear.schema import Schema
from dplinear.schema.columns import Category
from dplinear.schema.features import Level
from dplinear.scores.predictions import CalledPredictor, LinearPredictor, Predictor

_WHERE = "release_scores"
_RULE = "a model of dplinear's, the path of one, or an object with `predict`"
_WHOLE = ("integer", "boolean")  # columns whose cells are whole numbers


@dataclass(frozen=True, eq=False)
class ScoredModel:
    """A public model, as far as scores need it.

    `schema` is of the columns that are read; `public` is what a request is told of the model.
    `coefficients` and `intercept` are those of a linear one, in the columns' own units, by feature;
    `call` is any other, a function of a table of one row.
    """

    schema: Schema
    target: str
    labels: bool
    public: Mapping[str, Any]
    coefficients: Mapping[str, float] | None = None
    intercept: float = 0.0
    call: Callable[[Any], float] | None = None
    given: tuple[str, ...] = ()
    by_column: bool = False

    @staticmethod
    def shape_of(schema: Schema) -> Shape:
        """Return the shape of the schema's rows."""
        return shape_of(schema)

    def predictor(self, schema: Schema) -> Predictor:
        """Return the model as rounded rows of a schema see it."""
        target = single(schema, self.target, _WHERE)
        (centre,), (width,) = scales(schema, [target])
        if self.coefficients is not None:
            return self._linear(schema, float(centre), float(width))
        assert self.call is not None  # noqa: S101 - one or the other
        rows = _OneRow(schema, self.given, by_column=self.by_column)
        if self.labels:
            centre, width = 0.0, 1.0
        function = _Called(self.call, rows, float(centre), float(width))
        return CalledPredictor(function, shape_of(schema).steps_per_unit)

    def _linear(self, schema: Schema, centre: float, width: float) -> LinearPredictor:
        """Return Σ b·x + a as weights of cells: x = centre + half-width · cell."""
        assert self.coefficients is not None  # noqa: S101 - as above
        names = schema.names
        indices = [names.index(name) for name in self.coefficients]
        centres, widths = scales(schema, indices)
        slopes = np.array(list(self.coefficients.values()))
        weights = np.zeros(schema.dimension)
        weights[indices] = slopes * widths
        constant = self.intercept + math.fsum((slopes * centres).tolist())
        if not self.labels:
            weights /= width
            constant = (constant - centre) / width
        weights[0] += constant
        return LinearPredictor(shape_of(schema), weights)


def read_model(model: Any, schema: Any, target: Any, features: Any) -> ScoredModel:
    """Return what a gate is given as a model; raise where it cannot be scored."""
    if isinstance(model, str | os.PathLike):
        model = load(model, kind="model")
    if isinstance(model, ModelRelease | Fit):
        return _own_model(model, schema, target, features)
    if not callable(getattr(model, "predict", None)):
        raise wrong_type("model", _WHERE, _RULE, type(model))
    return _called_model(model, schema, target, features)


def _own_model(model: ModelRelease | Fit, schema: Any, target: Any, features: Any) -> ScoredModel:
    if features is not None:
        rule = "left out: a model of dplinear's has its own"
        raise rejection("features", _WHERE, rule, features)
    if target is not None and target != model.target:
        raise rejection("target", _WHERE, "left out, or the model's own", target)
    whole = model.schema if schema is None else Schema.of(schema, _WHERE)
    missing = [name for name in (*model.names, model.target) if name not in whole.names]
    if missing:
        rule = "one that has the model's target and features"
        raise rejection("schema", _WHERE, rule, f"one without {', '.join(missing)}")
    labels = isinstance(model, ModelRelease) and model.classes is not None
    coefficients = model.coefficients.to_dict()
    public = {"intercept": model.intercept, **coefficients}
    return ScoredModel(
        schema=_part(whole, (*model.names, model.target)),
        target=model.target,
        labels=labels,
        public={"model": public, "target": model.target},
        coefficients=coefficients,
        intercept=model.intercept,
    )


def _called_model(model: Any, schema: Any, target: Any, features: Any) -> ScoredModel:
    if schema is None:
        rule = "given: bounds of the columns are not known otherwise"
        raise wrong_type("schema", _WHERE, rule, None)
    if not isinstance(target, str):
        raise wrong_type("target", _WHERE, "the name of a feature", type(target))
    whole = Schema.of(schema, _WHERE)
    index = single(whole, target, _WHERE)
    name = whole.names[index]
    fitted = [str(each) for each in getattr(model, "feature_names_in_", ())]
    by_column = features is None and bool(fitted)
    asked: Any = fitted if by_column else features
    if asked is None:
        own = {whole.features[index].term}
        asked = [each.name for each in whole.features[1:] if each.term not in own]
    listed = [asked] if isinstance(asked, str) else asked
    if not isinstance(listed, Sequence) or not all(isinstance(each, str) for each in listed):
        raise wrong_type("features", _WHERE, "names of features or columns", type(features))
    by_column = by_column and all(each in whole.columns for each in listed)
    used = indices_of(whole, listed, "features", _WHERE)
    chosen = [whole.names[each] for each in used]
    if name in chosen:
        raise rejection("features", _WHERE, "free of the target", name)
    _check_types(whole, listed)
    call = _probabilities(model) if _is_classifier(model) else _values(model)
    return ScoredModel(
        schema=_part(whole, (*chosen, name)),
        target=name,
        labels=_is_classifier(model),
        public={"model": _digest(model), "target": name, "features": list(listed)},
        call=call,
        given=tuple(listed) if by_column else tuple(chosen),
        by_column=by_column,
    )


def _part(schema: Schema, names: Sequence[str]) -> Schema:
    """Return the part of a schema that is read: whole rows, of which those with gaps are left out.

    Scores are of rows as they are: none is shortened to a norm.
    """
    return schema.select(names, intercept=True, clip=False).leaving_out()


def _check_types(schema: Schema, names: Sequence[str]) -> None:
    for name in names:
        column = schema.declared.get(name)
        if column is not None and getattr(column, "type", "") == "date":
            raise rejection("features", _WHERE, "free of dates, for a model of others'", name)


def _is_classifier(model: Any) -> bool:
    return hasattr(model, "classes_") or hasattr(model, "predict_proba")


def _values(model: Any) -> Callable[[Any], float]:
    return lambda row: float(np.asarray(model.predict(row)).ravel()[0])


def _probabilities(model: Any) -> Callable[[Any], float]:
    """Return the log-odds of a model's second class."""
    classes = getattr(model, "classes_", (0, 1))
    if len(classes) != 2:
        raise rejection("model", _WHERE, "one of two classes", len(classes))
    if callable(getattr(model, "predict_proba", None)):
        return lambda row: _odds(float(np.asarray(model.predict_proba(row))[0, 1]))
    if callable(getattr(model, "decision_function", None)):
        return lambda row: float(np.asarray(model.decision_function(row)).ravel()[0])
    rule = "one with `predict_proba` or `decision_function`, for labels"
    raise wrong_type("model", _WHERE, rule, type(model))


def _odds(probability: float) -> float:
    """Return log-odds; of a certain model the most that counts."""
    inside = min(max(probability, 1e-15), 1 - 1e-15)
    return math.log(inside) - math.log1p(-inside)


def _digest(model: Any) -> Any:
    """Return what a request is told of somebody's model; one that is new each time if need be."""
    try:
        return hashlib.sha256(pickle.dumps(model)).hexdigest()
    except Exception:  # noqa: BLE001 - of anybody's class
        return object()


@dataclass(frozen=True, eq=False)
class _Called:
    """A model as a function of cells: what it predicts of one row, as a cell of the target."""

    call: Callable[[Any], float]
    rows: "_OneRow"
    centre: float
    width: float

    def __call__(self, cells: Floats) -> float:
        return (self.call(self.rows.table(cells)) - self.centre) / self.width


class _OneRow:
    """A row as a model is given it: an array of features, or a data frame of columns."""

    def __init__(self, schema: Schema, names: Sequence[str], *, by_column: bool) -> None:
        self._schema, self._names, self._by_column = schema, tuple(names), by_column
        self._centres, self._widths = scales(schema, range(schema.dimension))
        self._whole = [
            getattr(schema.declared.get(name), "type", "") in _WHOLE for name in schema.names
        ]
        self._indices = None if by_column else [schema.names.index(name) for name in names]

    def table(self, cells: Floats) -> Any:
        """Return the row, in the columns' own units."""
        raw = self._centres + self._widths * cells
        values = np.where(self._whole, np.rint(raw), raw)
        if self._indices is not None:
            return values[self._indices][None, :]
        import pandas as pd

        return pd.DataFrame({name: [self._cell(name, values)] for name in self._names})

    def _cell(self, name: str, values: Floats) -> Any:
        column = self._schema.declared[name]
        own = self._schema.own_features(name)
        if not isinstance(column, Category):
            value = float(values[own[0]])
            return int(value) if column.type in _WHOLE else value
        levels = column.levels
        seen: Any = levels[0] if column.drop_first else None
        for index in own:
            factor = self._schema.features[index].factors[0]
            if isinstance(factor, Level) and values[index] > 0.5:
                seen = levels[factor.code] if factor.code >= 0 else None
        return seen if isinstance(seen, str) or seen is None else float(seen)
