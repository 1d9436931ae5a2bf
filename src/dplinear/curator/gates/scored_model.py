"""The model that is scored: what it predicts, of which columns, and how rows are put to it."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
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
from dplinear.schema import Schema
from dplinear.schema.columns import Category
from dplinear.schema.factors import Level
from dplinear.schema.features import Feature
from dplinear.schema.libraries import library_of
from dplinear.scores.predictions import CalledPredictor, LinearPredictor, Predictor

_WHERE = "release_scores"
_RULE = "a model of dplinear's, the path of one, or an object with `predict`"
_ENGINES = ("dask", "pyspark")
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

    @property
    def reading(self) -> Mapping[str, Any]:
        """How the table is to be read: a model of others' is called by one thread."""
        return {} if self.call is None else {"threads": 1}

    def check_shipping(self, predictor: Predictor, data: Any, reading: Mapping[str, Any]) -> None:
        """Raise for a model that cannot be sent to the workers of an engine."""
        away = reading.get("engine") is not None or library_of(data) in _ENGINES
        if self.call is None or not away:
            return
        try:
            import_module("cloudpickle").dumps(predictor)
        except Exception as error:
            rule = "one that can be pickled, as workers need it"
            raise wrong_type("model", _WHERE, rule, type(error)) from error

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
        _try(function, schema)
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


def _try(function: "_Called", schema: Schema) -> None:
    """Have a model predict a made-up row: all of its numbers in the middle of their bounds."""
    cells = np.zeros(schema.dimension)
    cells[0] = 1.0
    try:
        found = function(cells)
    except Exception as error:
        rule = "one that predicts a number for one row of its features"
        hint = f"a made-up row, in the middle of all bounds, raised {type(error).__name__}."
        raise rejection("model", _WHERE, rule, "another", hint) from error
    if not math.isfinite(found):
        raise rejection("model", _WHERE, "one whose predictions are finite", found)


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
    fitted = _fitted_names(model)
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
    call = _log_odds(model, whole.features[index]) if _is_classifier(model) else _values(model)
    return ScoredModel(
        schema=_part(whole, (*chosen, name)),
        target=name,
        labels=_is_classifier(model),
        # What its class does is in no digest: a request with it is never taken for an earlier one.
        public={"model": object(), "target": name, "features": list(listed)},
        call=call,
        given=tuple(listed) if by_column else tuple(chosen),
        by_column=by_column,
    )


def _fitted_names(model: Any) -> list[str]:
    """Return the names of the columns that a model says it was fitted to, if it does."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return []
    try:
        return [str(each) for each in names]
    except TypeError:
        rule = "one whose feature_names_in_ is a list of names"
        raise wrong_type("model", _WHERE, rule, type(names)) from None


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
    return lambda row: _single(model.predict(row))


def _log_odds(model: Any, feature: Feature) -> Callable[[Any], float]:
    """Return the log-odds that a model gives to the label 1 of a target."""
    first = _place(model, feature)
    if callable(getattr(model, "predict_proba", None)):
        return lambda row: _odds(
            _single(np.asarray(model.predict_proba(row)).reshape(1, 2)[:, first])
        )
    if callable(getattr(model, "decision_function", None)):
        sign = 1.0 if first == 1 else -1.0
        return lambda row: sign * _single(model.decision_function(row))
    rule = "one with `predict_proba` or `decision_function`, for labels"
    raise wrong_type("model", _WHERE, rule, type(model))


def _place(model: Any, feature: Feature) -> int:
    """Return which of a model's two classes is the label 1 of a target: a level, or what is true.

    Raises where the target is no label: above 0 means 1 among cells.
    """
    if not feature.is_indicator and [float(feature.low), float(feature.high)] != [0, 1]:
        rule = "an indicator, or a column of 0 and 1, for a model of labels"
        raise rejection("target", _WHERE, rule, feature.name)
    held = getattr(model, "classes_", None)
    classes = [str(each) for each in ((0, 1) if held is None else np.ravel(held))]
    if len(classes) != 2:
        raise rejection("model", _WHERE, "one of two classes", len(classes))
    level = feature.name.rpartition("=")[2] if feature.is_indicator else ""
    names = [name for name in (level, "1", "True", "1.0", "yes") if name in classes]
    if not names:
        rule = f"one whose classes hold the label 1 of {feature.name!r}"
        raise rejection("model", _WHERE, rule, ", ".join(classes))
    return classes.index(names[0])


def _single(predicted: Any) -> float:
    """Return the one number that is predicted for one row."""
    return float(np.asarray(predicted).reshape(()))


def _odds(probability: float) -> float:
    """Return log-odds; of a certain model the most that counts."""
    inside = min(max(probability, 1e-15), 1 - 1e-15)
    return math.log(inside) - math.log1p(-inside)


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
