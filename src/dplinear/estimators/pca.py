"""Private principal components for scikit-learn, from released moments."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dplinear.arguments import integer, rejection
from dplinear.arrays import Array, Floats
from dplinear.estimators.base import PrivateEstimator
from dplinear.estimators.bounds import read_bounds
from dplinear.ledger import AnyLedger
from dplinear.privacy.guarantees import Guarantee


class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]  # as in base
    """Principal components under differential privacy.

    Requires: public `bounds` for the columns (a pair for all, or one for each); values outside are
    clamped, missing ones are the middle. `n_components` is at most the number of columns, which it
    is by default. The guarantee is `epsilon` and `delta`, or a `guarantee` of another kind with
    both set to None, between tables that are `neighbours`. Rows of one person are told by their
    `groups`, and count as at most `rows_per_unit` rows (1 unless given); `unit` names what an id
    stands for. Options:
    docs/estimators.md.
    Promises: what scikit-learn's PCA finds, but for the noise. After `fit`: `components_` (the
    largest entry of each positive), `explained_variance_`, `explained_variance_ratio_`, `mean_`,
    `n_components_`, `moments_`, `certificate_`.
    """

    components_: Floats
    mean_: Floats

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
        mechanism: str = "analyze_gauss",
        guarantee: Guarantee | None = None,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
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

    def fit(self, X: Any, y: object = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release the second moments of X, once, and find their principal components.

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
        features, names = self._features(X)
        count = self._count(features)
        table, asked = self._with_rows(
            features, self._named_bounds(bounds, names), groups, sample_weight
        )
        moments = self._release(table, asked, self.mechanism)
        found = moments.pca(count, names)
        self.n_components_ = count
        self.components_ = found.components
        self.explained_variance_ = found.explained_variance
        self.explained_variance_ratio_ = found.explained_variance_ratio
        self.mean_ = np.array(found.mean.values)
        return self

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
