"""Private means and covariances for scikit-learn, of columns whose bounds may be far too wide."""

from typing import Any, Self

import numpy as np
from scipy.linalg import pinvh
from sklearn.covariance import log_likelihood

from dplinear.analyst.releases.location import CovarianceRelease, MeanRelease
from dplinear.arguments import choice, integer, rejection
from dplinear.arrays import Array, Floats
from dplinear.coinpress.methods import MOST_STEPS, scales
from dplinear.curator.gates.means import release_covariance, release_mean
from dplinear.estimators.base import PrivateEstimator, check_flag
from dplinear.estimators.bounds import read_bounds
from dplinear.ledger import AnyLedger
from dplinear.ledger.address import check_shown
from dplinear.mechanisms.checks import read_guarantee
from dplinear.privacy.guarantees import ZCDP, Guarantee


class _CoinPress(PrivateEstimator):
    """What both estimators share: `rho` for zCDP, and the way through their gates."""

    rho: float | None
    steps: int
    scale: Any
    row_norm = None

    @property
    def _promise(self) -> Guarantee | None:
        """The guarantee, where it is of another kind than `epsilon` and `delta`."""
        if self.rho is None:
            return self.guarantee
        if self.guarantee is not None:
            rule = "left out where rho is given"
            raise rejection("guarantee", self._where, rule, self.guarantee)
        return ZCDP(self.rho)

    def _gate_arguments(
        self, columns: dict[str, Any], unit: str | None = None, weight: Any = None
    ) -> dict[str, Any]:
        own = {"guarantee": self._promise, "steps": self.steps, "scale": self.scale}
        return super()._gate_arguments(columns, unit, weight) | own

    def _table(self, X: Any, groups: Any, sample_weight: Any) -> tuple[Array, dict[str, Any]]:
        """Check what is public; return the table and what its gate is asked."""
        bounds = read_bounds(self.bounds, self._where)
        check_shown(self.ledger, self._where)
        read_guarantee(self._where, self.epsilon, self.delta, self._promise)
        integer(self.steps, "steps", self._where, low=1, high=MOST_STEPS)
        if self.scale is not None:
            scales(self.scale, None, self._where)
        self._check_rows(groups, sample_weight)
        features, names = self._features(X)
        return self._with_rows(features, self._named_bounds(bounds, names), groups, sample_weight)

    def _keep(self, release: MeanRelease | CovarianceRelease) -> None:
        """Remember what the release says of itself."""
        self.certificate_ = release.certificate
        self._warn_if_hidden(release)


class PrivateMean(_CoinPress):
    """The mean of each column under differential privacy, by CoinPress.

    Requires: public `bounds` for the columns (a pair for all, or one for each), which may be far
    too wide: what is outside is clamped, what is missing is the middle. `scale`, public standard
    deviations of the columns, where they are known. The guarantee is `epsilon` and `delta`; or
    `rho`, for zCDP, or a `guarantee`, with both set to None. Between tables that are `neighbours`.
    Rows of one person are told by their `groups`, and count as at most `rows_per_unit` rows.
    `unit` names what an id stands for.
    Promises: after `fit`, `mean_`, `privacy_errors_` (standard deviations that are due to the noise
    alone), `release_`, `certificate_`.
    """

    mean_: Floats
    release_: MeanRelease

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        rho: float | None = None,
        bounds: Any = None,
        steps: int = 2,
        scale: Any = None,
        neighbours: str = "add_remove",
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        guarantee: Guarantee | None = None,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.steps = steps
        self.scale = scale
        self.neighbours = neighbours
        self.ledger = ledger
        self.dataset = dataset
        self.guarantee = guarantee
        self.rows_per_unit = rows_per_unit
        self.unit = unit
        self.weight_bound = weight_bound

    def fit(self, X: Any, y: object = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release the means of X.

        Requires: `bounds`; without them this raises before it looks at X. `groups`, one id of any
        type for each row: the guarantee is then for all rows of an id. `sample_weight`, survey
        weights, clamped to [0, `weight_bound`], which is public.
        Promises: the guarantee, whatever the cells hold; each call spends it again.
        """
        table, asked = self._table(X, groups, sample_weight)
        with self._named():
            self.release_ = release_mean(table, **asked)
        self._keep(self.release_)
        self.mean_ = np.array(self.release_.mean.values)
        self.privacy_errors_ = np.array(self.release_.privacy_errors.values)
        return self


class PrivateCovariance(_CoinPress):
    """The covariance of all columns under differential privacy, by CoinPress.

    Requires: what `PrivateMean` does. `assume_centered` says that all columns have a mean of 0.
    Promises: scikit-learn's interface for covariances. After `fit`: `covariance_`, without negative
    eigenvalues, `location_`, `precision_` (unless `store_precision` is False), `privacy_errors_`
    (standard deviations of the entries that are due to the last step's noise alone), `release_`,
    `certificate_`.
    """

    covariance_: Floats
    location_: Floats
    precision_: Floats | None
    release_: CovarianceRelease

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float | None = 1e-6,
        rho: float | None = None,
        bounds: Any = None,
        steps: int = 5,
        scale: Any = None,
        neighbours: str = "add_remove",
        ledger: AnyLedger | None = None,
        dataset: str | None = None,
        guarantee: Guarantee | None = None,
        store_precision: bool = True,
        assume_centered: bool = False,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        weight_bound: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.steps = steps
        self.scale = scale
        self.neighbours = neighbours
        self.ledger = ledger
        self.dataset = dataset
        self.guarantee = guarantee
        self.store_precision = store_precision
        self.assume_centered = assume_centered
        self.rows_per_unit = rows_per_unit
        self.unit = unit
        self.weight_bound = weight_bound

    def fit(self, X: Any, y: object = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Release the covariance of X.

        Requires: `bounds`; without them this raises before it looks at X. `groups`, one id of any
        type for each row: the guarantee is then for all rows of an id. `sample_weight`, survey
        weights, clamped to [0, `weight_bound`], which is public.
        Promises: the guarantee, whatever the cells hold; each call spends it again.
        """
        kept = check_flag(self.store_precision, "store_precision", self._where)
        centred = check_flag(self.assume_centered, "assume_centered", self._where)
        table, asked = self._table(X, groups, sample_weight)
        with self._named():
            self.release_ = release_covariance(table, **asked, centred=centred)
        self._keep(self.release_)
        self.covariance_ = np.array(self.release_.covariance.values)
        self.location_ = np.array(self.release_.mean.values)
        self.privacy_errors_ = np.array(self.release_.privacy_errors.values)
        self.precision_ = inverse(self.covariance_) if kept else None
        return self

    def get_precision(self) -> Floats:
        """Return the inverse of the covariance, on the directions it has."""
        return inverse(self.covariance_) if self.precision_ is None else self.precision_

    def score(self, X_test: Any, y: object = None) -> float:
        """Return the mean log-likelihood of rows under a normal law of this mean and covariance."""
        rows = self._numbers(X_test) - self.location_
        return float(log_likelihood(rows.T @ rows / len(rows), self.get_precision()))

    def error_norm(
        self,
        comp_cov: Any,
        norm: str = "frobenius",
        *,
        scaling: bool = True,
        squared: bool = True,
    ) -> float:
        """Return the distance to another covariance: Frobenius or "spectral", per column."""
        choice(norm, "norm", f"{self._where}.error_norm", ("frobenius", "spectral"))
        error = np.asarray(comp_cov, float) - self.covariance_
        square = float((error**2).sum())
        if norm == "spectral":
            square = float(np.linalg.norm(error, 2)) ** 2
        square /= len(error) if scaling else 1
        return square if squared else float(np.sqrt(square))

    def mahalanobis(self, X: Any) -> Floats:
        """Return the squared Mahalanobis distance of each row."""
        rows = self._numbers(X) - self.location_
        return np.asarray(np.einsum("ij,jk,ik->i", rows, self.get_precision(), rows))


def inverse(covariance: Floats) -> Floats:
    """Return the pseudo-inverse of a covariance, whatever the units of its columns are."""
    scale = np.sqrt(np.diag(covariance))
    scale = np.where(scale > 0, scale, 1.0)
    return np.asarray(pinvh(covariance / scale[:, None] / scale) / scale[:, None] / scale)
