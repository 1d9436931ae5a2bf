"""Private logistic regression for scikit-learn."""

import math
import numbers
import warnings
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.exceptions import DataConversionWarning

from dplinear.analyst.laws import Matrix
from dplinear.analyst.model_release import ModelRelease
from dplinear.arguments import mistyped, rejection
from dplinear.curator.model_gate import release_model
from dplinear.estimators.base import FEWEST, PrivateEstimator, check_flag
from dplinear.estimators.bounds import for_columns, read_bounds
from dplinear.estimators.tables import Array, joined, target_names, targets_of
from dplinear.ledger import Ledger
from dplinear.privacy.guarantees import Guarantee


class PrivateLogisticRegression(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]  # as in base
    """The log-odds of one of two labels, under differential privacy.

    Requires: public `bounds` for the columns of X, as `PrivateLinearRegression` takes them, and
    public `classes`, the two labels, of which the second is explained. Which labels y holds is
    private, so nothing is learnt from it and nothing raises: any other label counts as the first.
    The guarantee is `epsilon` and `delta`, or a `guarantee` of another kind with both set to None,
    between tables that are `neighbours`.
    Promises: what scikit-learn's LogisticRegression without a penalty finds, but for the noise.
    After `fit`: `coef_`, `intercept_`, `classes_`, `fit_result_`, `certificate_`, `schema_`.
    """

    fit_result_: ModelRelease
    coef_: Matrix
    intercept_: Matrix
    classes_: Array

    def __init__(  # noqa: PLR0913 - scikit-learn finds arguments by their names
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        bounds: Any = None,  # noqa: ANN401
        classes: Any = (0, 1),  # noqa: ANN401
        row_norm: float | None = None,
        neighbours: str = "add_remove",
        fit_intercept: bool = True,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        guarantee: Guarantee | None = None,
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

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ANN401 - any table scikit-learn takes
        """Release the model, once.

        Requires: `bounds`; without them this raises before it looks at X.
        Promises: the guarantee, whatever the cells and the labels; each call spends it again.
        """
        bounds = read_bounds(self.bounds, "bounds", self._where)
        classes = _pair(self.classes, self._where)
        check_flag(self.fit_intercept, "fit_intercept", self._where)
        self._check_guarantee()
        features, names = self._features(X, y)
        labels = self._labels(y, len(features))
        (goal,) = target_names(names, labels)
        columns = for_columns(bounds, names, "bounds", self._where)
        model = release_model(
            joined(features, is_second(labels, classes, self._where)),
            target=goal,
            features=names,
            intercept=bool(self.fit_intercept),
            loss="logistic",
            **self._asked(columns | {goal: (0, 1)}),
        )
        if model.rows is None and model.count is not None and model.count < FEWEST:
            self._warn()
        self.classes_ = np.array(classes)
        self.fit_result_, self.certificate_ = model, model.certificate
        self.coef_ = np.array(model.coefficients.values)[None]
        self.intercept_ = np.array([model.intercept])
        return self

    def _labels(self, y: Any, rows: int) -> Array:  # noqa: ANN401
        labels = targets_of(y, rows, self._where)
        if labels.ndim == 1:
            return labels
        if labels.shape[1] > 1:
            raise rejection("y", self._where, "of one column of labels", labels.shape[1])
        words = "A column-vector y was passed when a 1d array was expected."
        warnings.warn(words, DataConversionWarning, stacklevel=3)
        return np.asanyarray(labels[:, 0])

    def decision_function(self, X: Any) -> Matrix:  # noqa: ANN401
        """Return the log-odds of the second label, row by row.

        Missing cells count as the middle of their bounds, as in `fit`; nothing is clamped.
        """
        cells = self._numbers(X)
        with np.errstate(all="ignore"):  # infinite cells give what they give, without a word
            return np.asarray(cells @ self.coef_[0] + self.intercept_[0])

    def predict_proba(self, X: Any) -> Matrix:  # noqa: ANN401
        """Return the chances of both labels, in the order of `classes_`."""
        odds = self.decision_function(X)
        return np.column_stack((expit(-odds), expit(odds)))

    def predict_log_proba(self, X: Any) -> Matrix:  # noqa: ANN401
        """Return the logarithms of the chances."""
        odds = self.decision_function(X)
        return -np.column_stack((np.logaddexp(0, odds), np.logaddexp(0, -odds)))

    def predict(self, X: Any) -> Array:  # noqa: ANN401
        """Return the likelier label."""
        odds = self.decision_function(X)
        return np.asarray(self.classes_[(odds > 0).astype(int)])

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # on the small tables that scikit-learn tries
        return tags


def _pair(classes: Any, where: str) -> list[Any]:  # noqa: ANN401
    """Return the two labels, if they are two different numbers, or two different texts."""
    rule = "a pair of different labels, both numbers or both texts"
    hint = (
        "write classes=(no, yes), the second one being explained. Labels are public: they come "
        "from what y means, never from what it holds."
    )
    listed = classes.tolist() if isinstance(classes, np.ndarray) else classes
    if not isinstance(listed, list | tuple) or len(listed) != 2:
        raise mistyped("classes", where, rule, classes, hint)
    alike = any(all(isinstance(label, kind) for label in listed) for kind in (str, numbers.Real))
    finite = isinstance(listed[0], str) or (alike and all(map(math.isfinite, listed)))
    if not alike or not finite or listed[0] == listed[1]:
        raise rejection("classes", where, rule, classes, hint)
    return list(listed)


def is_second(labels: Array, classes: list[Any], where: str) -> Matrix:
    """Return 1 where a label is the second class and 0 elsewhere.

    Promises: raises only for arrays whose dtype, a public fact, can hold neither class.
    """
    second, kind = classes[1], labels.dtype.kind
    if isinstance(labels, np.ma.MaskedArray):
        labels, kind = np.ma.filled(labels.astype(object), None), "O"
    if kind == "O":
        return np.array([_same(label, second) for label in labels.tolist()], float).reshape(-1)
    if (kind in "SU") != isinstance(second, str):
        rule = f"of labels such as {second!r}"
        hint = "say which two labels y has: classes=(no, yes), the second one being explained."
        raise rejection("y", where, rule, f"dtype {labels.dtype}", hint)
    wanted = second.encode() if kind == "S" else second
    return np.asarray(labels == wanted, float)


def _same(label: Any, second: Any) -> bool:  # noqa: ANN401 - any object may be in a table
    try:
        return bool(label == second)
    except Exception:  # noqa: BLE001 - an error would tell what a row holds
        return False
