"""A fitted linear model: what it says, and what it predicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.analyst.left_out import MOMENTS, side_notes
from dplinear.analyst.regression.bootstrap import bootstrap
from dplinear.analyst.regression.difference import Difference, difference
from dplinear.analyst.regression.formulas import CONSTANT
from dplinear.analyst.regression.inference import Intervals, delta_method, optimism, refusal
from dplinear.analyst.regression.least_squares import without_first
from dplinear.analyst.regression.names import unknown
from dplinear.analyst.regression.prediction import design, formula_design
from dplinear.analyst.regression.repair import best
from dplinear.analyst.regression.summary import METHODS, Summary, SummaryFacts, summary
from dplinear.analyst.results import NamedVector
from dplinear.arguments import choice, listed, rejection
from dplinear.privacy.units import size
from dplinear.schema import INTERCEPT, Schema

if TYPE_CHECKING:
    from dplinear.analyst.regression.formulas import Formula
    from dplinear.analyst.regression.least_squares import Solution
    from dplinear.analyst.regression.model import Model
    from dplinear.analyst.regression.problem import Problem
    from dplinear.analyst.releases.certificate import Certificate
    from dplinear.analyst.releases.moments import MomentsRelease
    from dplinear.arrays import Floats

_ROUNDING = 1e-9
_SPARSE = (
    "A lasso has no intervals here: which coefficients are zero was itself chosen from noisy "
    "moments. For intervals, fit the chosen features again without l1."
)
CLIPPED = (
    "Rows were clipped to a norm, so this is a model of the clipped rows: where clipping was not "
    "rare, coefficients are biased, and no interval knows of it."
)
_SHRUNK = "Intervals are around the coefficients that the ridge shrinks, not around those without."
_FILTERED = "Estimates are shrunk by the noise's known law; intervals are of the moments before."
_REPAIRED = (
    "Intervals are for moments that were not repaired, and this fit used repair={!r}. "
    'With "auto" there are intervals wherever the noise allows them.'
)
_UNKNOWN = (
    "The size of the noise is not public, so nothing can be said about its share of the error."
)


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A linear model of one target, in the columns' own units.

    `coefficients` has a number for each feature; `intercept` is 0 where the model has none. `count`
    is the number of rows, known or estimated (None: neither). `r_squared` and `residual_variance`
    are estimates from the unbiased moments, None where noise makes them meaningless; R² is around
    the mean, as scikit-learn scores. `empty` are levels that too few rows hold to tell them from
    none; their coefficients are 0, and `problem` leaves them out. `repair` is what was done to the
    noisy matrix, and `positive_definite` whether the matrix solved was so in the end. `problem` is
    what was solved, `unrepaired` the same on the unbiased moments, which intervals need. `notes`
    are sentences on columns whose declaration does not fit what they hold. `formula` is what was
    asked for, if it was a formula: then the coefficients are of its columns.
    """

    target: str
    coefficients: NamedVector
    intercept: float
    r_squared: float | None
    residual_variance: float | None
    count: float | None
    empty: tuple[str, ...]
    ridge: float
    l1: float
    repair: str
    positive_definite: bool
    rows_public: bool
    certificate: Certificate = field(repr=False)
    schema: Schema = field(repr=False)
    problem: Problem = field(repr=False)
    unrepaired: Problem = field(repr=False)
    notes: tuple[str, ...] = ()
    formula: Formula | None = field(default=None, repr=False)

    @staticmethod
    def build(
        moments: MomentsRelease,
        model: Model,
        problem: Problem,
        solution: Solution,
        repair: str,
    ) -> Fit:
        """Turn a solution of the working problem into a model in the columns' own units."""
        reported = problem.offset + problem.readout @ solution.coefficients
        first = 1 if model.intercept else 0
        values = dict(zip(model.features, reported[first:].tolist(), strict=True))
        coefficients = np.array([values.get(index, 0.0) for index in model.named])
        coefficients.flags.writeable = False
        names = moments.schema.names
        used = model.used_indices(names.index(problem.target))
        r_squared, variance = _quality(moments, model, problem, solution.coefficients, repair)
        return Fit(
            target=problem.target,
            coefficients=NamedVector(tuple(names[i] for i in model.named), coefficients),
            intercept=float(reported[0]) if first else 0.0,
            r_squared=r_squared,
            residual_variance=variance,
            count=moments.count,
            empty=tuple(names[i] for i in model.named if i not in model.features),
            ridge=model.ridge,
            l1=model.l1,
            repair=repair,
            positive_definite=solution.positive_definite,
            rows_public=moments.rows is not None,
            certificate=moments.certificate,
            schema=moments.schema,
            problem=problem,
            unrepaired=replace(
                problem, whole=best(moments.values, moments.noise_model)[np.ix_(used, used)]
            ),
            notes=_column_notes(moments, used),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What has coefficients, in their order: features, or the columns of a formula."""
        return self.coefficients.names

    @property
    def features(self) -> tuple[str, ...]:
        """The schema's features that explain the target."""
        return self.names if self.formula is None else self.formula.features

    def __getitem__(self, name: str) -> float:
        if name in self.names:
            return self.coefficients[name]
        if name in {INTERCEPT, CONSTANT}:
            return self.intercept
        rule = "one of its features, or the intercept"
        raise unknown(name, (*self.names, INTERCEPT), "name", "a fit", rule)

    def intervals(
        self,
        level: float = 0.95,
        *,
        method: str = "delta",
        draws: int | None = None,
        seed: int | None = None,
    ) -> Intervals:
        """Return standard errors and intervals that cover sampling and privacy noise alike.

        `method` is "delta" (closed form) or "bootstrap" (parametric, of so many `draws`,
        499 unless given, equal for an equal `seed`).
        Promises: `swamped` says in words why there are none, where there are none.
        """
        choice(method, "method", "intervals", METHODS)
        given = {"draws": draws, "seed": seed}
        options = {name: value for name, value in given.items() if value is not None}
        if self.l1 > 0:
            return self._without(level, method, _SPARSE)
        if not self.problem.noise_model.known:
            return self._without(level, method, _UNKNOWN)
        if method == "bootstrap":
            found = bootstrap(self.unrepaired, level, **options)
        elif options:
            raise rejection("options", "intervals", "left out for this method", list(options))
        else:
            found = delta_method(self.unrepaired, level)
        if found.swamped is None and self.repair not in {"none", "shrunk"}:
            return self._without(level, method, _REPAIRED.format(self.repair))
        return replace(found, estimates=self._reported_coefficients())

    def summary(
        self,
        level: float = 0.95,
        *,
        method: str = "delta",
        draws: int | None = None,
        seed: int | None = None,
    ) -> Summary:
        """Return the table of coefficients with their intervals, for a terminal or a notebook."""
        notes = []
        if self.empty:
            notes.append(f"Hardly any row holds {listed(self.empty, 12)}: left out of the model.")
        if self.repair == "shrunk" and self.l1 == 0:
            notes.append(_FILTERED)
        if self.certificate.simulated:
            notes.append("SIMULATED: the noise was seeded, and protects nobody.")
        if self.schema.row_norm is not None:
            notes.append(CLIPPED)
        notes += self.notes
        used = (*self.features, self.target)
        notes += side_notes(self.schema, self.certificate, self.count, MOMENTS, used)
        found = self.intervals(level, method=method, draws=draws, seed=seed)
        if self.ridge > 0 and found.swamped is None:
            notes.append(_SHRUNK)
        facts = SummaryFacts(
            target=self.target,
            intervals=found,
            guarantee=self.certificate.guarantee,
            rows=self.count,
            rows_public=self.rows_public,
            unit=self.certificate.unit,
            weight=self.schema.weight_name,
            r_squared=self.r_squared,
            notes=tuple(notes),
        )
        return summary(facts)

    def difference(self, other: Fit, *, disjoint: bool | None = None) -> Difference:
        """Return how much larger these coefficients are than those of another fit.

        Requires: a fit of the same target on the same features, such as that of another site.
        `disjoint=True` states that no row (with units of privacy: no unit) is behind both; their
        variances then add up, as those of different groups of one release always do. Otherwise
        standard errors add up, which is an upper bound.
        Promises: `intervals()` and `summary()` of the differences, of sampling and privacy alike.
        """
        return difference(self, other, disjoint=disjoint)

    def _reported_coefficients(self) -> Floats:
        """Return the coefficients in the order of the problem's names."""
        return np.array([self[name] for name in self.problem.names])

    def _without(self, level: float, method: str, words: str) -> Intervals:
        return replace(
            refusal(self.unrepaired, level, method, words), estimates=self._reported_coefficients()
        )

    def _repr_html_(self) -> str:
        return self.summary().html

    def predict(self, data: Any) -> Floats:
        """Return the predicted target, row by row.

        Requires: an array (or a list of rows) with the features in the order of `names`, used as
        it is; or a table with the source columns (pandas, Polars, Arrow, a mapping of columns).
        Promises: a table is encoded as the private one was: categories by name, missing cells by
        their public constants, numbers clamped to their bounds.
        """
        if self.formula is None:
            rows = design(self.schema, self.names, data)
        else:
            rows = formula_design(self.schema, self.formula, data)
        return np.asarray(rows @ self.coefficients.values + self.intercept)

    def to_sklearn(self, *, feature_names: bool = True) -> Any:
        """Return a fitted `sklearn.linear_model.LinearRegression` with these coefficients."""
        return linear_regression(
            self.names, self.coefficients.values, self.intercept, feature_names=feature_names
        )

    def __repr__(self) -> str:
        unit, weight = self.certificate.unit, self.schema.weight_name
        rows = "" if self.count is None else f", {size(self.count, unit, weight=weight)}"
        fitted = "" if self.r_squared is None else f", R² about {self.r_squared:.3f}"
        shown = NamedVector(
            (INTERCEPT, *self.names), np.append(self.intercept, self.coefficients.values)
        )
        lines = [f"Fit of {self.target}{rows}{fitted}", repr(shown)]
        if self.empty:
            lines.append(f"too few rows to tell from none: {', '.join(self.empty)}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Fits(Mapping[str, Fit]):
    """Models of several targets on the same features: `fits["charges"]` is one of them."""

    fits: tuple[Fit, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets, in order."""
        return tuple(fit.target for fit in self.fits)

    @property
    def names(self) -> tuple[str, ...]:
        """The features, in the order of the coefficients."""
        return self.fits[0].names

    @property
    def coefficients(self) -> Floats:
        """The coefficients, a row for each target."""
        return np.stack([fit.coefficients.values for fit in self.fits])

    @property
    def intercepts(self) -> Floats:
        """The intercepts, one for each target."""
        return np.array([fit.intercept for fit in self.fits])

    def __getitem__(self, target: str) -> Fit:
        if target not in self.targets:
            raise unknown(target, self.targets, "target", "fits", "one of the targets")
        return self.fits[self.targets.index(target)]

    def __contains__(self, target: object) -> bool:
        return target in self.targets

    def __iter__(self) -> Iterator[str]:
        return iter(self.targets)

    def __len__(self) -> int:
        return len(self.fits)

    def predict(self, data: Any) -> Floats:
        """Return the predicted targets: a row for each row, a column for each target."""
        first = self.fits[0]
        return np.asarray(
            design(first.schema, self.names, data) @ self.coefficients.T + self.intercepts
        )

    def to_sklearn(self, *, feature_names: bool = True) -> Any:
        """Return a fitted `sklearn.linear_model.LinearRegression` of all targets."""
        return linear_regression(
            self.names, self.coefficients, self.intercepts, feature_names=feature_names
        )

    def __repr__(self) -> str:
        return "\n\n".join(repr(fit) for fit in self.fits)

    def _repr_html_(self) -> str:
        return "\n".join(fit.summary().html for fit in self.fits)


def _column_notes(moments: MomentsRelease, used: Sequence[int]) -> tuple[str, ...]:
    """Return what a release says of the columns that features in use are made of."""
    features = (moments.schema.features[index] for index in used)
    named = {factor.column for feature in features for factor in feature.factors}
    return tuple(told for name, told in moments.column_notes.items() if name in named)


def _quality(
    moments: MomentsRelease, model: Model, problem: Problem, b: Floats, repair: str
) -> tuple[float | None, float | None]:
    """Return estimates of R² and of the residual variance, from the unbiased moments.

    A line that was fitted to noisy moments fits their noise, too: they say that it leaves less than
    it does. Lines of shrunk moments follow the noise less.
    """
    if not moments.noise_model.known:
        return None, None
    line = np.append(-b, 1.0) @ problem.transform
    index = moments.schema.names.index(problem.target)
    width = float(moments.schema.features[index].half_width)
    whole = moments.unbiased_estimate
    used = model.used_indices(index)
    left = float(line @ whole[np.ix_(used, used)] @ line)
    if repair == "none":
        left += optimism(problem, b)
    left *= width**2
    total = width**2 * float(whole[index, index])
    if moments.schema.has_intercept:
        corner = np.ix_([0, index], [0, index])
        total = width**2 * float(without_first(whole[corner])[0, 0])
    if total <= 0 or left < -_ROUNDING * total:
        return None, None
    left = max(left, 0.0)
    freedom = problem.count - np.count_nonzero(b)
    enough = math.isfinite(freedom) and freedom > 0
    return 1 - left / total, left / freedom if enough else None


def linear_regression(
    names: tuple[str, ...],
    coefficients: Floats,
    intercept: Floats | float,
    *,
    feature_names: bool,
) -> Any:
    """Return a fitted `sklearn.linear_model.LinearRegression` with these coefficients."""
    try:
        from sklearn.linear_model import LinearRegression
    except ImportError:
        raise ImportError(
            "to_sklearn needs scikit-learn.\n\nHint: pip install scikit-learn"
        ) from None
    model = LinearRegression()
    model.coef_ = np.array(coefficients)
    model.intercept_ = intercept
    return with_feature_names(model, names, feature_names=feature_names)


def with_feature_names(model: Any, names: tuple[str, ...], *, feature_names: bool) -> Any:
    """Return a scikit-learn estimator that knows its features."""
    model.n_features_in_ = len(names)
    if feature_names:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model
