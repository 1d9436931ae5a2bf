"""Private principal components for scikit-learn, from second moments around a released centre."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dplinear.analyst.regression.pca import PrincipalComponents
from dplinear.analyst.releases.location import CovarianceRelease
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arguments import choice, integer, rejection, wrong_type
from dplinear.arrays import Array, Floats
from dplinear.coinpress.centred import CentredCovariance
from dplinear.curator.gates.means import release_covariance
from dplinear.curator.windows import FARTHEST
from dplinear.estimators.base import PrivateEstimator
from dplinear.estimators.bounds import read_bounds
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.moments.analyze_gauss import AnalyzeGauss
from dplinear.privacy.guarantees import Guarantee

_CENTRES = ("auto", "private")


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]  # as in base
    """Principal components under differential privacy.

    Requires: public `bounds` for the columns (a pair for all, or one for each); values outside are
    clamped, missing ones are the middle. `n_components` is at most the number of columns, which it
    is by default. The guarantee is `epsilon` and `delta`, or a `guarantee` of another kind with
    both set to None, between tables that are `neighbours`. Rows of one person are told by their
    `groups`, and count as at most `rows_per_unit` rows (1 unless given); `unit` names what an id
    stands for. `centre`: "private" spends about a fifth of the budget on a mean, and on how far
    rows are from it, and the rest on second moments around it; None releases second moments about
    the middle of the bounds, all at once, by a `mechanism`; "auto" is the first wherever that can
    be: without a `row_norm`, and with the usual mechanism. Options: docs/estimators.md.
    Promises: what scikit-learn's PCA finds, but for the noise. After `fit`: `components_` (the
    largest entry of each positive), `explained_variance_`, `explained_variance_ratio_`, `mean_`,
    `n_components_`, `release_`, `certificate_`; `moments_`, the same release, without a centre.
    """

    components_: Floats
    mean_: Floats
    release_: CovarianceRelease | MomentsRelease

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        bounds: Any = None,
        row_norm: float | None = None,
        neighbours: str = "add_remove",
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        mechanism: str = AnalyzeGauss.name,
        guarantee: Guarantee | None = None,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
        centre: str | None = "auto",
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.row_norm = row_norm
        self.neighbours = neighbours
        self.ledger = ledger
        self.dataset = dataset
        self.mechanism = mechanism
        self.guarantee = guarantee
        self.rows_per_unit = rows_per_unit
        self.unit = unit
        self.weight_bound = weight_bound
        self.centre = centre

    def fit(self, X: Any, y: object = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release second moments of X, around a centre, and find their principal components.

        Requires: `bounds`; without them this raises before it looks at X. `groups`, one id of any
        type for each row: the guarantee is then for all rows of an id. `sample_weight`, survey
        weights, clamped to [0, `weight_bound`], which is public.
        Promises: the guarantee, whatever the cells hold; each call spends it again.
        """
        bounds = read_bounds(self.bounds, self._where)
        if self.n_components is not None:
            integer(self.n_components, "n_components", self._where, low=1)
        self._check_guarantee()
        self._check_rows(groups, sample_weight)
        self._check_centre()
        features, names = self._features(X)
        count = self._count(features)
        named = self._named_bounds(bounds, names)
        table, asked = self._with_rows(features, named, groups, sample_weight)
        if self._centred(named):
            found = self._around_centre(table, asked, count)
        else:
            found = self._release(table, asked, self.mechanism).pca(count, names)
            self.release_ = self.moments_
        self.n_components_ = count
        self.components_ = found.components
        self.explained_variance_ = found.explained_variance
        self.explained_variance_ratio_ = found.explained_variance_ratio
        self.mean_ = np.array(found.mean.values)
        return self

    def _check_centre(self) -> None:
        """Raise over a centre that cannot be looked for."""
        if self.centre is None:
            return
        hint = "centre=None releases second moments about the middle of the bounds."
        rule = 'one of "auto", "private", None'
        if not isinstance(self.centre, str):
            raise wrong_type("centre", self._where, rule, self.centre, hint)
        choice(self.centre, "centre", self._where, _CENTRES)
        if self.centre == "private" and not self._may_be_centred:
            rule = '"auto" or None with a row_norm, or with a mechanism for moments'
            raise rejection("centre", self._where, rule, self.centre, hint)

    @property
    def _may_be_centred(self) -> bool:
        return self.row_norm is None and self.mechanism == AnalyzeGauss.name

    def _centred(self, bounds: dict[str, Any]) -> bool:
        """Return whether a centre is looked for, by public facts alone."""
        if self.centre != "auto":
            return self.centre is not None
        ends = [abs(end) for pair in bounds.values() for end in pair]
        return self._may_be_centred and max(ends) <= FARTHEST

    def _around_centre(
        self, table: Array, asked: dict[str, Any], count: int
    ) -> PrincipalComponents:
        """Cross the wall; return the principal components of what is released."""
        with self._named():
            released: CovarianceRelease = release_covariance(
                table, **asked, mechanism=CentredCovariance.name, metric="euclidean"
            )
        self.__dict__.pop("moments_", None)  # of an earlier fit
        self.release_, self.certificate_ = released, released.certificate
        self._warn_if_hidden(released)
        return released.pca(count)

    def _count(self, features: Array) -> int:
        columns = int(features.shape[1])
        count = columns if self.n_components is None else int(self.n_components)
        if count > columns:
            rule = f"at most {columns}, the number of columns"
            raise rejection("n_components", self._where, rule, count)
        return count

    def transform(self, X: Any) -> Floats:
        """Return the coordinates of rows along the components.

        Missing cells count as the middle of their bounds, as in `fit`; nothing is clamped.
        """
        with np.errstate(all="ignore"):  # infinite cells give what they give, without a word
            return np.asarray((self._numbers(X) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Return the rows that have these coordinates, in the columns' own units."""
        check_is_fitted(self)
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_components_:
            rule = f"a table of {self.n_components_} column(s), one for each component"
            shown = f"{rows.ndim} dimension(s) {rows.shape[1:]}"
            raise rejection("X", f"{self._where}.inverse_transform", rule, shown)
        return np.asarray(rows @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        """How many names scikit-learn makes for what `transform` returns."""
        return int(self.components_.shape[0])
