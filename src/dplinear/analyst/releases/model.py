"""One model, released for one question: its coefficients, and nothing else of the table."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from dplinear.analyst.left_out import side_notes
from dplinear.analyst.regression.classes import LOGISTIC, check_logistic, likelier, probabilities
from dplinear.analyst.regression.difference import Difference, difference
from dplinear.analyst.regression.fit import CLIPPED, linear_regression, with_feature_names
from dplinear.analyst.regression.inference import Intervals
from dplinear.analyst.regression.names import indices_of, single, unknown
from dplinear.analyst.regression.prediction import design
from dplinear.analyst.regression.summary import Summary, SummaryFacts, number, summary
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.results import NamedVector
from dplinear.arguments import choice, integer, listed, real, rejection, wrong_type
from dplinear.arrays import Array, Floats
from dplinear.privacy.units import size
from dplinear.schema import INTERCEPT, Schema

_KIND = "model"
_FACTS = ["certificate", "schema", "target", "features", "rows", "count", "unknown"]
LOSSES = ("squared", "huber", "logistic")
_LOG_ODDS = (
    "Coefficients are log-odds: one unit of a feature multiplies the odds of the label by the "
    "exponential of its coefficient."
)
_CENTRES = "centres"
_APART = (
    "Intervals need not lie around the estimates: they rest on a last step that clips hardly a "
    "row. For inference use the intervals."
)
_VECTORS = ("standard_errors", "privacy_errors", _CENTRES)
_MOST_SHOWN = 12
_LONGEST = 2_000


@dataclass(frozen=True, eq=False, repr=False)
class ModelRelease:
    """A linear model of one target, released under the guarantee on its certificate.

    `coefficients` has a number for each feature, in the columns' own units; `intercept` is 0 where
    the model has none. `standard_errors` are those of rows and noise together, the intercept first
    if there is one, or None: then `unknown` says why. `privacy_errors` are the part of them that is
    due to the noise. Intervals lie around the `centres`, where there are some: estimates that clip
    hardly a row, for more noise. `rows` is the number of rows where it is public, `count` what is
    known of it, at least an estimate; both may be None. `schema` describes the columns that were
    read. Where rows were clipped to a norm, the model is of the clipped rows. `loss` is what
    the model makes small: "squared", "huber", or "logistic": then coefficients are log-odds of the
    label, which is yes where the target is above the middle of its bounds.
    """

    schema: Schema
    target: str
    coefficients: NamedVector
    intercept: float
    certificate: Certificate = field(repr=False)
    rows: int | None = None
    count: float | None = None
    standard_errors: NamedVector | None = None
    privacy_errors: NamedVector | None = None
    centres: NamedVector | None = None
    unknown: str | None = None
    loss: str = "squared"
    kind: ClassVar[str] = _KIND

    def __post_init__(self) -> None:
        for vector in (self.coefficients, *(getattr(self, name) for name in _VECTORS)):
            if vector is not None:
                vector.values.flags.writeable = False

    @property
    def names(self) -> tuple[str, ...]:
        """The features, in the order of the coefficients."""
        return self.coefficients.names

    @property
    def has_intercept(self) -> bool:
        """Whether the model has an intercept: it has one if its schema does."""
        return self.schema.has_intercept

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of all estimates: the intercept, if there is one, and the features."""
        return (INTERCEPT, *self.names) if self.has_intercept else self.names

    @property
    def empty(self) -> tuple[str, ...]:
        """The levels that no row seems to hold: coefficients of 0, for want of any other."""
        if self.privacy_errors is None or not self.privacy_errors.values.any():
            return ()
        silent = [name for name in self.names if self.privacy_errors[name] == 0]
        return tuple(name for name in silent if self.coefficients[name] == 0)

    def __getitem__(self, name: str) -> float:
        if name in self.names:
            return self.coefficients[name]
        if name == INTERCEPT:
            return self.intercept
        rule = "one of its features, or the intercept"
        raise unknown(name, (*self.names, INTERCEPT), "name", "a model", rule)

    @property
    def classes(self) -> tuple[int, int] | None:
        """What `predict` chooses from: the labels 0 and 1 of a logistic model; otherwise None."""
        return (0, 1) if self.loss == LOGISTIC else None

    def predict(self, data: Any) -> Array:
        """Return what the target is expected to be, row by row: a value or, of labels, 0 or 1.

        Requires: an array (or a list of rows) with the features in the order of `names`, used as
        it is; or a table with the source columns (pandas, Polars, Arrow, a mapping of columns).
        Promises: a table is encoded as the private one was: categories by name, missing cells by
        their public constants, numbers clamped to their bounds.
        """
        found = self.decision_function(data)
        return found if self.classes is None else likelier(found, self.classes)

    def predict_proba(self, data: Any) -> Floats:
        """Return the probabilities of the labels 0 and 1, a column for each: logistic models only.

        Requires and promises what `predict` does.
        """
        check_logistic(self.loss)
        return probabilities(self.decision_function(data))

    def decision_function(self, data: Any) -> Floats:
        """Return the linear score, row by row: values, or the log-odds of a logistic model.

        Requires and promises what `predict` does.
        """
        rows = design(self.schema, self.names, data)
        return np.asarray(rows @ self.coefficients.values + self.intercept)

    def to_sklearn(self, *, feature_names: bool = True) -> Any:
        """Return a fitted `sklearn.linear_model.LinearRegression` with these coefficients.

        For log-odds it is a `LogisticRegression` with the classes 0 and 1.
        """
        if self.loss == LOGISTIC:
            return _logistic_regression(self, feature_names=feature_names)
        return linear_regression(
            self.names, self.coefficients.values, self.intercept, feature_names=feature_names
        )

    def intervals(self, level: float = 0.95) -> Intervals:
        """Return normal intervals, where the method gives standard errors.

        Promises: they lie around the `centres`, or else around the coefficients, and are widened to
        hold those where they do not. `swamped` says in words why there are none, if so.
        """
        level = real(level, "level", "intervals", low=0, high=1, open_low=True, open_high=True)
        estimates = self._estimates()
        nothing = np.full(len(estimates), math.nan)
        privacy = nothing if self.privacy_errors is None else self.privacy_errors.values**2
        if self.standard_errors is None:
            words = self.unknown or "This method gives no standard errors."
            ends = nothing, nothing, nothing, nothing, privacy
            return Intervals(self.labels, estimates, *ends, level, "normal", words)
        errors = self.standard_errors.values.copy()
        errors[[self.labels.index(name) for name in self.empty]] = math.nan
        reach = float(ndtri((1 + level) / 2)) * errors
        centres = estimates if self.centres is None else self.centres.values
        return Intervals(
            names=self.labels,
            estimates=estimates,
            standard_errors=errors,
            low=np.minimum(centres - reach, estimates),
            high=np.maximum(centres + reach, estimates),
            sampling=np.maximum(errors**2 - privacy, 0.0),
            privacy=privacy,
            level=level,
            method="normal",
        )

    def difference(self, other: "ModelRelease", *, disjoint: bool | None = None) -> Difference:
        """Return how much larger these coefficients are than those of another model.

        `disjoint` and what is promised are those of a fit's `difference`.
        """
        return difference(self, other, disjoint=disjoint)

    def summary(self, level: float = 0.95) -> Summary:
        """Return the table of coefficients, for a terminal or a notebook."""
        facts = SummaryFacts(
            target=self.target,
            intervals=self.intervals(level),
            guarantee=self.certificate.guarantee,
            rows=self.count,
            rows_public=self.rows is not None and self.rows == self.count,
            unit=self.certificate.unit,
            weight=self.schema.weight_name,
            kind=self._adjective,
            notes=tuple(self._notes()),
        )
        return summary(facts)

    @property
    def _adjective(self) -> str:
        return "Logistic" if self.loss == LOGISTIC else "Linear"

    def _notes(self) -> list[str]:
        notes = [_LOG_ODDS] if self.loss == LOGISTIC else []
        if self.standard_errors is None and self.privacy_errors is not None:
            errors = zip(self.labels, self.privacy_errors.values.tolist(), strict=True)
            shown = [f"{name} {number(error, error)}" for name, error in errors]
            more = "; ..." if len(shown) > _MOST_SHOWN else ""
            first = "; ".join(shown[:_MOST_SHOWN]) + more
            notes.append(f"Standard deviations that are due to the noise alone: {first}.")
        if self.centres is not None:
            notes.append(_APART)
        notes += side_notes(self.schema, self.certificate, self.count)
        if self.empty:
            notes.append(f"No row seems to hold {listed(self.empty, 12)}: left out of the model.")
        if self.certificate.simulated:
            notes.append("SIMULATED: the noise was seeded, and protects nobody.")
        if self.schema.row_norm is not None:
            notes.append(CLIPPED)
        return notes

    def _estimates(self) -> Floats:
        return np.array([self[name] for name in self.labels])

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to one file that `dplinear.load` reads anywhere."""
        files.save(self, path, overwrite=overwrite)

    def _repr_html_(self) -> str:
        return f"{self.summary().html}\n{self.certificate._repr_html_()}"

    def __repr__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """Return in a few lines the model, of how many rows, and under which guarantee."""
        unit, weight = self.certificate.unit, self.schema.weight_name
        rows = "" if self.count is None else f", {size(self.count, unit, weight=weight)}"
        if self.rows is not None:
            rows = f", {self.rows:,} rows"
        start = "Logistic model" if self.loss == LOGISTIC else "Model"
        shown = NamedVector(self.labels, self._estimates())
        return "\n".join([f"{start} of {self.target}{rows}", repr(shown), str(self.certificate)])


class ModelKind:
    """Released models in files: one row of numbers for each of estimates and errors."""

    name = _KIND
    release = ModelRelease

    def to_parts(self, release: ModelRelease) -> files.Parts:
        """Take a release apart."""
        facts = {
            "certificate": release.certificate.to_dict(),
            "schema": release.schema.to_dict(),
            "target": release.target,
            "features": list(release.names),
            "rows": release.rows,
            "count": release.count,
            "unknown": release.unknown,
        }
        if release.loss != LOSSES[0]:  # so that files of before this key stay as they are
            facts["loss"] = release.loss
        arrays = {"estimates": release._estimates()[None, :]}  # noqa: SLF001 - its own class
        for name in _VECTORS:
            vector: NamedVector | None = getattr(release, name)
            if vector is not None:
                arrays[name] = vector.values[None, :]
        return files.Parts(self.name, facts, arrays)

    def from_parts(self, parts: files.Parts) -> ModelRelease:
        """Put a release together, or raise."""
        where = "a release of model"
        arrays = list(parts.arrays)
        if list(parts.facts) not in (_FACTS, [*_FACTS, "loss"]) or arrays != _array_names(arrays):
            found = ", ".join([*parts.facts, *arrays])
            raise rejection("keys", where, ", ".join([*_FACTS, "estimates", *_VECTORS]), found)
        facts = parts.facts
        schema = Schema.from_release(facts["schema"])
        features, first = _features(schema, facts, where), schema.has_intercept
        labels = (INTERCEPT, *features) if first else features
        vectors = {name: _vector(parts.arrays[name], labels, name, where) for name in arrays}
        estimates = vectors.pop("estimates").values
        return ModelRelease(
            schema=schema,
            target=facts["target"],
            coefficients=NamedVector(features, estimates[1:] if first else estimates),
            intercept=float(estimates[0]) if first else 0.0,
            certificate=Certificate.from_dict(facts["certificate"]),
            rows=None if facts["rows"] is None else integer(facts["rows"], "rows", where, low=0),
            count=None if facts["count"] is None else real(facts["count"], "count", where, low=0),
            unknown=_sentence(facts["unknown"], where),
            loss=choice(facts["loss"], "loss", where, LOSSES[1:]) if "loss" in facts else LOSSES[0],
            **vectors,
        )


def _logistic_regression(model: ModelRelease, *, feature_names: bool) -> Any:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise ImportError(
            "to_sklearn needs scikit-learn.\n\nHint: pip install scikit-learn"
        ) from None
    fitted = LogisticRegression()
    fitted.coef_ = np.array(model.coefficients.values)[None]
    fitted.intercept_ = np.array([model.intercept])
    fitted.classes_ = np.array(model.classes)
    return with_feature_names(fitted, model.names, feature_names=feature_names)


def _array_names(arrays: list[str]) -> list[str]:
    """Return the arrays that a file may have, of those it has."""
    return ["estimates", *(name for name in _VECTORS if name in arrays)]


def _features(schema: Schema, facts: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the features of a model, if its schema has them and its target."""
    target = single(schema, facts["target"], where)
    chosen = indices_of(schema, facts["features"], "features", where)
    features = tuple(schema.names[index] for index in chosen)
    if list(features) != list(facts["features"]) or schema.names[target] != facts["target"]:
        raise rejection("features", where, "the names of single features", facts["features"])
    if target in chosen:
        raise rejection("features", where, "free of the target", facts["target"])
    return features


def _vector(array: Floats, labels: tuple[str, ...], name: str, where: str) -> NamedVector:
    if array.shape != (1, len(labels)):
        rule = f"of shape (1, {len(labels)}), as its features say"
        raise rejection(name, where, rule, array.shape)
    if name not in {"estimates", _CENTRES} and (array < 0).any():
        raise rejection(name, where, "at least 0", "negative numbers")
    return NamedVector(labels, array[0].copy())


def _sentence(value: object, where: str) -> str | None:
    if value is None:
        return None
    rule = f"printable text of at most {_LONGEST} characters"
    if not isinstance(value, str):
        raise wrong_type("unknown", where, rule, value)
    if len(value) > _LONGEST or not value.isprintable():
        raise rejection("unknown", where, rule, value)
    return value


files.register(ModelKind())
