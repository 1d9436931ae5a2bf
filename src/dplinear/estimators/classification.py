"""Private logistic regression for scikit-learn."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from dplinear.analyst.regression.classes import likelier, log_probabilities, probabilities
from dplinear.analyst.releases.constrained import ConstrainedRelease
from dplinear.analyst.releases.model import ModelRelease
from dplinear.arguments import choice
from dplinear.arrays import Array, Floats
from dplinear.convex.sets.given import check_constraint
from dplinear.curator.gates.model import release_model
from dplinear.curator.labels import checked_labels, is_second, read_labels
from dplinear.estimators.base import PrivateEstimator, check_flag
from dplinear.estimators.bounded import bounded_release, check_norm
from dplinear.estimators.bounds import read_bounds
from dplinear.estimators.tables import column_of, join_columns, target_names
from dplinear.ledger import AnyLedger
from dplinear.planner.auto import AUTO
from dplinear.privacy.guarantees import Guarantee
from dplinear.registry import CONSTRAINED, MODELS


class PrivateLogisticRegression(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]  # as in base
    """The log-odds of one of two labels, under differential privacy.

    Requires: public `bounds` for the columns of X, as `PrivateLinearRegression` takes them, and
    public `classes`, the two labels, of which the second is explained. Which labels y holds is
    private, so nothing is learnt from it and nothing raises: any other label counts as the first.
    A row of which X lacks a number is left out, unless there is a `constraint`. The guarantee is
    `epsilon` and `delta`, or a `guarantee` of another kind with both set to None, between tables
    that are `neighbours`. Rows of one person are told by their `groups`, and count as at most
    `rows_per_unit` rows (1 unless given). `unit` names what an id stands for.
    Promises: what scikit-learn's LogisticRegression without a penalty finds, but for the noise.
    After `fit`: `coef_`, `intercept_`, `classes_`, `fit_result_`, `certificate_`, `schema_`.

    With a `constraint`, coefficients stay in a set, and pure guarantees can be kept (`delta=None`),
    by `release_model` and its `mechanism`: an L1 radius, a set, or what makes one for a number of
    dimensions, in log-odds to a half-width of each column's bounds (the intercept as one more
    coefficient, the last). `row_norm` is then without the intercept.
    """

    fit_result_: ModelRelease | ConstrainedRelease
    coef_: Floats
    intercept_: Floats
    classes_: Array

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        bounds: Any = None,
        classes: Any = None,
        row_norm: float | None = None,
        neighbours: str = "add_remove",
        fit_intercept: bool = True,
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        guarantee: Guarantee | None = None,
        constraint: Any = None,
        mechanism: str = "auto",
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.row_norm = row_norm
        self.neighbours = neighbours
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.guarantee = guarantee
        self.constraint = constraint
        self.mechanism = mechanism
        self.rows_per_unit = rows_per_unit
        self.unit = unit
        self.weight_bound = weight_bound

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release the model, once.

        Requires: `bounds` and `classes`; without them this raises before it looks at X. `groups`,
        one id of any type for each row: the guarantee is then for all rows of an id.
        `sample_weight`, survey weights, clamped to [0, `weight_bound`], which is public.
        Promises: the guarantee, whatever the cells and the labels; each call spends it again.
        """
        bounds = read_bounds(self.bounds, self._where)
        classes = read_labels(self.classes, self._where)
        check_flag(self.fit_intercept, "fit_intercept", self._where)
        self._check_guarantee()
        self._check_rows(groups, sample_weight)
        features, names = self._features(X, y)
        labels = column_of(y, len(features), self._where, "labels")
        columns = self._named_bounds(bounds, names)
        labels = checked_labels(y, labels, classes[1], self._where)
        (target,) = target_names(names, labels)
        columns |= {target: (0, 1)}
        second = is_second(labels, classes[1])
        if self.constraint is None:
            table, asked = self._with_rows(
                join_columns(features, second), columns, groups, sample_weight
            )
            coefficients, intercept = self._model(table, target, asked)
        else:
            asked = self._gate_arguments(columns)
            asked |= self._of_rows(len(features), columns, groups, sample_weight)
            coefficients, intercept = self._release_constrained(features, second, target, asked)
        self.classes_ = np.array(classes)
        self.certificate_ = self.fit_result_.certificate
        self.coef_, self.intercept_ = np.array(coefficients)[None], np.array([intercept])
        return self

    def _check_guarantee(self) -> None:
        super()._check_guarantee()
        known = MODELS["logistic"] if self.constraint is None else CONSTRAINED
        hint = "with a constraint there are others." if self.constraint is None else ""
        choice(self.mechanism, "mechanism", self._where, (AUTO, *known), hint=hint)
        if self.constraint is not None:
            check_constraint(self.constraint, self._where)
            check_norm(self.row_norm, self._where, intercept=bool(self.fit_intercept))

    def _model(self, table: Array, target: str, asked: dict[str, Any]) -> tuple[Floats, float]:
        """Release log-odds without a constraint."""
        with self._named():
            model = release_model(
                table,
                target=target,
                features=list(asked["schema"].columns[:-1]),
                intercept=bool(self.fit_intercept),
                loss="logistic",
                mechanism=None if self.mechanism == AUTO else self.mechanism,
                **asked,
            )
        self._warn_if_hidden(model)
        self.fit_result_ = model
        return model.coefficients.values, model.intercept

    def _release_constrained(
        self, features: Array, labels: Array, target: str, asked: dict[str, Any]
    ) -> tuple[Floats, float]:
        """Release log-odds in a set."""
        schema = asked.pop("schema")
        with self._named():
            self.fit_result_, coefficients, intercept = bounded_release(
                features,
                labels,
                [column for name, column in schema.declared.items() if name != target],
                constraint=self.constraint,
                row_norm=self.row_norm,
                intercept=bool(self.fit_intercept),
                loss="logistic",
                classes=(0, 1),
                mechanism=self.mechanism,
                **asked,
            )
        return coefficients, intercept

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of the second label, row by row.

        Missing cells count as the middle of their bounds; nothing is clamped.
        """
        cells = self._numbers(X)
        with np.errstate(all="ignore"):  # infinite cells give what they give, without a word
            return np.asarray(cells @ self.coef_[0] + self.intercept_[0])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of both labels, in the order of `classes_`."""
        return probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities."""
        return log_probabilities(self.decision_function(X))

    def predict(self, X: Any) -> Array:
        """Return the likelier label."""
        return likelier(self.decision_function(X), self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # on the small tables that scikit-learn tries
        return tags
