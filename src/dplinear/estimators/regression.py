"""Private linear models for scikit-learn: least squares, ridge and lasso."""

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from dplinear.analyst.regression.fit import Fit, Fits
from dplinear.analyst.releases.constrained import ConstrainedRelease
from dplinear.analyst.releases.model import ModelRelease
from dplinear.arguments import choice, positive, real, rejection
from dplinear.arrays import Array, Floats
from dplinear.curator.gates.model import release_model
from dplinear.estimators.base import PrivateEstimator, check_flag
from dplinear.estimators.bounded import bounded_release, check_norm
from dplinear.estimators.bounds import (
    columns_of,
    for_columns,
    read_bounds,
    read_target_bounds,
)
from dplinear.estimators.tables import column_of, join_columns, target_names, targets_of
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import RELATIONS
from dplinear.planner.auto import AUTO
from dplinear.privacy.guarantees import Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import MODELS, MOMENTS

_SEVERAL = "analyze_gauss"  # what "auto" is for several targets


class _PrivateRegressor(MultiOutputMixin, RegressorMixin, PrivateEstimator):  # type: ignore[misc]  # as in base
    """A linear model of one target or several, made of one release."""

    target_bounds: Any
    fit_intercept: bool
    fit_result_: Fit | Fits | ModelRelease | ConstrainedRelease
    coef_: Floats
    intercept_: Any

    def _penalties(self) -> tuple[float, float]:
        """Return `ridge` and `l1`, as `MomentsRelease.regress` takes them."""
        return 0.0, 0.0

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release what the model takes, once.

        Requires: `bounds` and `target_bounds`; without them this raises before it looks at X.
        `groups`, one id of any type for each row: the guarantee is then for all rows of an id.
        `sample_weight`, survey weights, clamped to [0, `weight_bound`], which is public.
        Promises: the guarantee, whatever the cells hold; each call spends it again.
        """
        bounds = read_bounds(self.bounds, self._where)
        target_bounds = read_target_bounds(self.target_bounds, self._where)
        check_flag(self.fit_intercept, "fit_intercept", self._where)
        self._penalties()
        self._check_guarantee()
        self._check_rows(groups, sample_weight)
        features, names = self._features(X, y)
        targets = self._targets(y, len(features))
        goals = target_names(names, targets)
        columns = self._named_bounds(bounds, names)
        columns |= for_columns(target_bounds, goals, "target_bounds", self._where)
        table, asked = self._with_rows(
            join_columns(features, targets), columns, groups, sample_weight
        )
        self._learn(table, asked, names, goals)
        if targets.ndim == 1:
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
            if isinstance(self.fit_result_, Fits):
                self.fit_result_ = self.fit_result_[goals[0]]
        return self

    def _targets(self, y: Any, rows: int) -> Array:
        """Return one target or several: of a list, as many as there are bounds."""
        bounds = read_target_bounds(self.target_bounds, self._where)
        return targets_of(y, rows, self._where, columns_of(bounds))

    def _learn(
        self, table: Array, asked: dict[str, Any], names: list[str], goals: list[str]
    ) -> None:
        """Release, and keep a row of coefficients for each target: here, of all moments."""
        self._learn_from_moments(table, asked, names, goals, self.mechanism)

    def _learn_from_moments(
        self,
        table: Array,
        asked: dict[str, Any],
        names: list[str],
        goals: list[str],
        mechanism: str,
    ) -> None:
        ridge, l1 = self._penalties()
        moments = self._release(table, asked, mechanism)
        fits = moments.regress(goals, names, ridge=ridge, l1=l1, intercept=bool(self.fit_intercept))
        self.fit_result_ = fits
        self.coef_, self.intercept_ = fits.coefficients, fits.intercepts

    def predict(self, X: Any) -> Floats:
        """Return the predicted targets.

        Missing cells count as the middle of their bounds; nothing is clamped.
        """
        with np.errstate(all="ignore"):  # infinite cells give what they give, without a word
            return np.asarray(self._numbers(X) @ self.coef_.T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on the small tables that scikit-learn tries
        return tags


class PrivateLinearRegression(_PrivateRegressor):
    """Least squares under differential privacy.

    Requires: public `bounds` for the columns of X (a pair for all, or one for each) and
    `target_bounds` for y; values outside are clamped. A row that lacks a number is left out by
    `release_model`'s mechanisms; to `release_moments`' the middle stands for it. The guarantee is
    `epsilon` and `delta`, or a `guarantee` of another kind with both set to None, between tables
    that are `neighbours`. `mechanism` is one of `release_model`'s, for one target; one of
    `release_moments`', whose release has all second moments; or "auto": "analyze_gauss" for several
    targets; for one, what the planner expects to be the most accurate, of the public number of rows
    where neighbours replace each other, or of `expected_rows`, a public guess; without either,
    "whitened_descent". Options: docs/estimators.md. Where X is a list of rows, give a pair of
    bounds for each column: nothing else says how many there are (docs/locality.md). Where one
    person may have several rows, `fit` takes their ids as `groups`, and each counts as at most
    `rows_per_unit` rows (1 unless given). `unit` names what an id stands for.
    Promises: what scikit-learn's LinearRegression finds, but for the noise. After `fit`: `coef_`,
    `intercept_`, `fit_result_`, `certificate_`, `schema_`, and `moments_` if they were released.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        bounds: Any = None,
        target_bounds: Any = None,
        row_norm: float | None = None,
        neighbours: str = "add_remove",
        fit_intercept: bool = True,
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        mechanism: str = "auto",
        guarantee: Guarantee | None = None,
        expected_rows: int | None = None,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.row_norm = row_norm
        self.neighbours = neighbours
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.mechanism = mechanism
        self.guarantee = guarantee
        self.expected_rows = expected_rows
        self.rows_per_unit = rows_per_unit
        self.unit = unit
        self.weight_bound = weight_bound

    def _check_guarantee(self) -> None:
        super()._check_guarantee()
        choice(self.mechanism, "mechanism", self._where, (AUTO, *MODELS["squared"], *MOMENTS))

    def _learn(
        self, table: Array, asked: dict[str, Any], names: list[str], goals: list[str]
    ) -> None:
        mechanism = self.mechanism
        if mechanism == AUTO and len(goals) > 1:
            mechanism = _SEVERAL
        if mechanism in MOMENTS:
            self._learn_from_moments(table, asked, names, goals, mechanism)
            return
        if len(goals) > 1:
            hint = f"several targets are for {', '.join(MOMENTS)}, which release all moments."
            raise rejection("y", self._where, f"one target for {mechanism}", len(goals), hint)
        relation = Neighbours.parse(self.neighbours, self._where, RELATIONS)
        # With units their number is public, and how many rows they have is not.
        known = relation is Neighbours.REPLACE and asked["schema"].unit is None
        public = (len(table) or None) if known else None
        with self._named():
            model = release_model(
                table,
                target=goals[0],
                features=names,
                intercept=bool(self.fit_intercept),
                mechanism=mechanism,
                expected_rows=public if self.expected_rows is None else self.expected_rows,
                **asked,
            )
        self.fit_result_, self.certificate_ = model, model.certificate
        self._warn_if_hidden(model)
        self.coef_ = np.array(model.coefficients.values)[None]
        self.intercept_ = np.array([model.intercept])


class _Penalised(_PrivateRegressor):
    def __init__(
        self,
        alpha: float = 1.0,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        bounds: Any = None,
        target_bounds: Any = None,
        row_norm: float | None = None,
        neighbours: str = "add_remove",
        fit_intercept: bool = True,
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        mechanism: str = "analyze_gauss",
        guarantee: Guarantee | None = None,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.row_norm = row_norm
        self.neighbours = neighbours
        self.fit_intercept = fit_intercept
        self.ledger = ledger
        self.dataset = dataset
        self.mechanism = mechanism
        self.guarantee = guarantee
        self.rows_per_unit = rows_per_unit
        self.unit = unit
        self.weight_bound = weight_bound

    def _alpha(self) -> float:
        return real(self.alpha, "alpha", self._where, low=0)


class PrivateRidge(_Penalised):
    """Least squares with a squared penalty, under differential privacy.

    Minimises ‖y − Xb − b0‖² + alpha·‖b‖², as scikit-learn's Ridge does. All other arguments,
    requirements and promises are those of `PrivateLinearRegression`.
    """

    def _penalties(self) -> tuple[float, float]:
        return self._alpha(), 0.0


class PrivateLasso(_Penalised):
    """Least squares with an absolute penalty, under differential privacy.

    Minimises ‖y − Xb − b0‖²/(2n) + alpha·‖b‖₁, as scikit-learn's Lasso does, n the number of rows
    where that is public and otherwise its private estimate. All other arguments, requirements and
    promises are those of `PrivateLinearRegression`.

    With `pure`, the guarantee is pure `epsilon`, whatever `delta`, for one target:
    instead of the penalty, `constraint` bounds Σ|bⱼ|, where each column, and the target, is counted
    in half-widths of its bounds (the intercept as one more coefficient). `fit_result_` is then a
    `ConstrainedRelease`, of the cells that bounds map to [−1, 1], and `row_norm` is without the
    intercept.
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        bounds: Any = None,
        target_bounds: Any = None,
        row_norm: float | None = None,
        neighbours: str = "add_remove",
        fit_intercept: bool = True,
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        mechanism: str = "analyze_gauss",
        guarantee: Guarantee | None = None,
        pure: bool = False,
        constraint: float = 1.0,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
    ) -> None:
        super().__init__(
            alpha,
            epsilon=epsilon,
            delta=delta,
            bounds=bounds,
            target_bounds=target_bounds,
            row_norm=row_norm,
            neighbours=neighbours,
            fit_intercept=fit_intercept,
            ledger=ledger,
            dataset=dataset,
            mechanism=mechanism,
            guarantee=guarantee,
            rows_per_unit=rows_per_unit,
            unit=unit,
            weight_bound=weight_bound,
        )
        self.pure = pure
        self.constraint = constraint

    def _penalties(self) -> tuple[float, float]:
        return 0.0, self._alpha()

    def _targets(self, y: Any, rows: int) -> Array:
        return column_of(y, rows, self._where) if self.pure else super()._targets(y, rows)

    def _with_rows(
        self, table: Array, columns: dict[str, Any], groups: Any, sample_weight: Any
    ) -> tuple[Array, dict[str, Any]]:
        if not self.pure:
            return super()._with_rows(table, columns, groups, sample_weight)
        told = self._of_rows(len(table), columns, groups, sample_weight)
        return table, self._gate_arguments(columns) | told

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = not self.pure
        return tags

    def _check_guarantee(self) -> None:
        super()._check_guarantee()
        positive(self.constraint, "constraint", self._where)
        if not check_flag(self.pure, "pure", self._where):
            return
        check_norm(self.row_norm, self._where, intercept=bool(self.fit_intercept))
        if self.guarantee is not None and not isinstance(self.guarantee, PureDP):
            rule = "a PureDP one, or None, where pure is true"
            raise rejection("guarantee", self._where, rule, self.guarantee)

    def _learn(
        self, table: Array, asked: dict[str, Any], names: list[str], goals: list[str]
    ) -> None:
        if not self.pure:
            super()._learn(table, asked, names, goals)
            return
        schema = asked.pop("schema")
        declared = list(schema.declared.values())
        with self._named():
            self.fit_result_, coefficients, intercept = bounded_release(
                table[:, :-1],
                table[:, -1],
                declared[:-1],
                constraint=self.constraint,
                row_norm=self.row_norm,
                intercept=bool(self.fit_intercept),
                target_bounds=(float(declared[-1].low), float(declared[-1].high)),
                **asked | {"delta": None},
            )
        self.certificate_ = self.fit_result_.certificate
        self.coef_, self.intercept_ = coefficients[None], np.array([intercept])
