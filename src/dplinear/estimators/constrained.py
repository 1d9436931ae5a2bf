"""Private linear models in a constraint set, for scikit-learn: many features, sparse tables."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from dplinear.analyst.regression.classes import (
    LOGISTIC,
    likelier,
    log_probabilities,
    probabilities,
)
from dplinear.analyst.releases.constrained import ConstrainedRelease
from dplinear.arguments import choice, positive
from dplinear.arrays import Array, Floats
from dplinear.curator.gates.constrained_terms import Terms, read_projection
from dplinear.curator.gates.model import release_model
from dplinear.curator.labels import checked_labels
from dplinear.estimators.base import PrivateEstimator, check_flag
from dplinear.estimators.tables import column_of, plain_numbers, rows_of
from dplinear.ledger import AnyLedger
from dplinear.planner.auto import AUTO
from dplinear.privacy.guarantees import Guarantee
from dplinear.registry import CONSTRAINED


class ConstrainedEstimator(PrivateEstimator):
    """A linear model in a constraint set, of one release by `release_model`.

    `fit_result_` is that release. Subclasses take, in their own constructors, the arguments named
    here, and `target_bounds` or `classes`.
    """

    constraint: Any
    loss: str
    projection: str | None
    dimension: int | str | None
    expected_rows: float | None
    fit_intercept: bool
    fit_result_: ConstrainedRelease
    coef_: Floats
    intercept_: Any

    def _labels_asked(self) -> dict[str, Any]:
        """Return what the gate is told about labels."""
        raise NotImplementedError

    def _constraint(self) -> Any:
        return self.constraint

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release the model, once.

        Requires: `row_norm`, and `classes` or `target_bounds`; without them this raises before it
        looks at X. `groups`, one id of any type for each row: the guarantee is then for all rows of
        an id. `sample_weight`, survey weights, clamped to [0, `weight_bound`], which is public.
        Promises: the guarantee, whatever the cells and the labels; each call spends it again. A
        sparse X stays sparse.
        """
        choice(self.mechanism, "mechanism", self._where, (AUTO, *CONSTRAINED))
        if self.expected_rows is not None:
            positive(self.expected_rows, "expected_rows", self._where)
        asked = {
            "loss": self.loss,
            "constraint": self._constraint(),
            "row_norm": self.row_norm,
            "target_bounds": None,
            "classes": None,
            **self._labels_asked(),
            "mechanism": self.mechanism,
            "expected_rows": self.expected_rows,
        }
        terms = Terms.of(self._where, **asked)
        read_projection(self.projection, self.dimension, self._where)
        intercept = check_flag(self.fit_intercept, "fit_intercept", self._where)
        self._check_guarantee()
        self._check_rows(groups, sample_weight)
        table = rows_of(X, self._where)
        validate_data(self, X if hasattr(X, "shape") else table, y, skip_check_array=True)
        labels = column_of(y, table.shape[0], self._where)
        if terms.classes is not None:
            labels = checked_labels(y, labels, terms.classes[1], self._where)
        names = getattr(self, "feature_names_in_", ())
        asked |= self._of_rows(table.shape[0], list(names), groups, sample_weight)
        with self._named():
            release: ConstrainedRelease = release_model(
                table,
                target=labels,
                **asked,
                epsilon=self.epsilon,
                delta=self.delta,
                guarantee=self.guarantee,
                neighbours=self.neighbours,
                projection=self.projection,
                dimension=self.dimension,
                intercept=intercept,
                ledger=self.ledger,
                dataset=self.dataset,
            )
        self.fit_result_, self.certificate_ = release, release.certificate
        return self

    def _decision(self, X: Any) -> Floats:
        """Return the linear score of rows; cells without a number count as 0, as in `fit`."""
        check_is_fitted(self)
        table = rows_of(X, self._where)
        validate_data(self, X if hasattr(X, "shape") else table, reset=False, skip_check_array=True)
        return self.fit_result_.decision_function(plain_numbers(table))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ConstrainedClassifier(ClassifierMixin, ConstrainedEstimator):  # type: ignore[misc]  # as in base
    """A linear classifier of two public `classes`."""

    classes: Any
    classes_: Array

    def _labels_asked(self) -> dict[str, Any]:
        return {"classes": self.classes}

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release the model, once; requires and promises as `ConstrainedEstimator.fit` does."""
        super().fit(X, y, groups, sample_weight)
        release = self.fit_result_
        self.classes_ = np.array(release.units.classes)
        self.coef_, self.intercept_ = release.coefficients[None], np.array([release.intercept])
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the linear score, row by row: above 0 means the second class."""
        return self._decision(X)

    def predict(self, X: Any) -> Array:
        """Return the likelier label."""
        return likelier(self._decision(X), self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # on the small tables that scikit-learn tries
        return tags


def _has_probabilities(estimator: Any) -> bool:
    return bool(estimator.loss == LOGISTIC)


class PrivateConstrainedClassifier(ConstrainedClassifier):
    """A linear classifier whose coefficients lie in a public convex set, for many features.

    Requires: `row_norm`, the public norm that longer rows are scaled down to, in the columns' own
    units; two public `classes`, of which the second is explained, any other label counting as the
    first; `constraint`, an L1 radius, a set or what makes one for a number of dimensions, on the
    coefficients of rows of norm 1; `loss`, "logistic" or "hinge"; `projection`, `dimension`,
    `mechanism` and `expected_rows` as `release_model` takes them. The guarantee is `epsilon` and
    `delta`, or a `guarantee` of another kind with both None, between tables that are `neighbours`.
    Rows of one person are told by their `groups`, and count as at most `rows_per_unit` rows (1
    unless given); `unit` names what an id stands for. Survey weights are clamped to `weight_bound`.
    Promises: sparse tables stay sparse. After `fit`: `coef_`, `intercept_`, `classes_`,
    `fit_result_`, `certificate_`.
    """

    def __init__(
        self,
        constraint: Any = 1.0,
        *,
        loss: str = "logistic",
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        row_norm: float | None = None,
        classes: Any = None,
        projection: str | None = "auto",
        dimension: int | str | None = None,
        mechanism: str = "auto",
        expected_rows: float | None = None,
        neighbours: str = "add_remove",
        fit_intercept: bool = True,
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        guarantee: Guarantee | None = None,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
    ) -> None:
        self.constraint = constraint
        self.loss = loss
        self.epsilon = epsilon
        self.delta = delta
        self.row_norm = row_norm
        self.classes = classes
        self.projection = projection
        self.dimension = dimension
        self.mechanism = mechanism
        self.expected_rows = expected_rows
        self.neighbours = neighbours
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.guarantee = guarantee
        self.rows_per_unit = rows_per_unit
        self.unit = unit
        self.weight_bound = weight_bound

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # as in base
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both labels, in the order of `classes_`: logistic losses."""
        return probabilities(self._decision(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # as in base
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities."""
        return log_probabilities(self._decision(X))


class PrivateConstrainedRegressor(RegressorMixin, ConstrainedEstimator):  # type: ignore[misc]  # as in base
    """A linear regression whose coefficients lie in a public convex set, for many features.

    Requires: `target_bounds` for y, between which it is clamped; `loss`, "squared" or "huber"; all
    else as `PrivateConstrainedClassifier` does.
    Promises: sparse tables stay sparse. After `fit`: `coef_`, `intercept_`, `fit_result_`,
    `certificate_`.
    """

    def __init__(
        self,
        constraint: Any = 1.0,
        *,
        loss: str = "squared",
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        row_norm: float | None = None,
        target_bounds: Any = None,
        projection: str | None = "auto",
        dimension: int | str | None = None,
        mechanism: str = "auto",
        expected_rows: float | None = None,
        neighbours: str = "add_remove",
        fit_intercept: bool = True,
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        guarantee: Guarantee | None = None,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
    ) -> None:
        self.constraint = constraint
        self.loss = loss
        self.epsilon = epsilon
        self.delta = delta
        self.row_norm = row_norm
        self.target_bounds = target_bounds
        self.projection = projection
        self.dimension = dimension
        self.mechanism = mechanism
        self.expected_rows = expected_rows
        self.neighbours = neighbours
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.guarantee = guarantee
        self.rows_per_unit = rows_per_unit
        self.unit = unit
        self.weight_bound = weight_bound

    def _labels_asked(self) -> dict[str, Any]:
        return {"target_bounds": self.target_bounds}

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release the model, once; requires and promises as `ConstrainedEstimator.fit` does."""
        super().fit(X, y, groups, sample_weight)
        self.coef_, self.intercept_ = self.fit_result_.coefficients, self.fit_result_.intercept
        return self

    def predict(self, X: Any) -> Floats:
        """Return the predicted targets; nothing is clamped."""
        return self._decision(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on the small tables that scikit-learn tries
        return tags
