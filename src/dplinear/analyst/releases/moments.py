"""A released second-moment matrix: every regression on the table, without another look at it."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Unpack, overload

import numpy as np
import pyarrow as pa

from dplinear.analyst import notebook
from dplinear.analyst.design_effect import released_effect, weight_scale
from dplinear.analyst.noise_models.grouped import GroupedGaussian
from dplinear.analyst.noise_models.matrices import NoiseModel, SymmetricGaussian
from dplinear.analyst.regression import names as naming
from dplinear.analyst.regression.column_notes import column_notes
from dplinear.analyst.regression.fit import Fit, Fits
from dplinear.analyst.regression.least_squares import without_first
from dplinear.analyst.regression.model import scales
from dplinear.analyst.regression.pca import PrincipalComponents, principal_components
from dplinear.analyst.regression.regress import RegressOptions, regress
from dplinear.analyst.regression.repair import DELTA, Repaired, floor_eigenvalues, repair_matrix
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.results import NamedMatrix, NamedVector
from dplinear.arguments import integer, real, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.noise.entropy import system
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.units import size
from dplinear.schema import Schema

_SCALABLE = (SymmetricGaussian, GroupedGaussian)  # noise that a number times the matrix has


@dataclass(frozen=True, eq=False, repr=False)
class MomentsRelease:
    """Second moments of a table's encoded rows, released once.

    `values` is the matrix as the mechanism released it, in the cells' units (features mapped to
    [−1, 1], in the schema's order); `noise_model` says how it spreads around the true one. `rows`
    is the number of rows where that is public (replace and element neighbours), otherwise None.

    Everything computed here is free: it looks at the release alone. Results are in the columns' own
    units, but for `values`, `unbiased_estimate` and `gram`. Where rows were clipped to a norm, all
    are of the clipped rows: a row weighs less the more was clipped.
    """

    schema: Schema
    values: Floats = field(repr=False)
    noise_model: NoiseModel
    certificate: Certificate
    rows: int | None = None
    kind: ClassVar[str] = "moments"

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    @property
    def names(self) -> tuple[str, ...]:
        """The features, in the order of the matrix."""
        return self.schema.names

    @property
    def dimension(self) -> int:
        """The number of features, the intercept included."""
        return self.schema.dimension

    @cached_property
    def unbiased_estimate(self) -> Floats:
        """The estimate of the second moments whose mean is right; not always positive definite."""
        return self.noise_model.unbiased_estimate(self.values)

    @property
    def count(self) -> float | None:
        """The number of rows: public, or estimated from the intercept; None where neither is.

        Where rows have survey weights it is the sum of these.
        """
        if self.rows is not None:
            return float(self.rows)
        if not self.schema.has_intercept or self.schema.row_norm is not None:
            return None
        return self.weight * self._weight_scale

    @property
    def weight(self) -> float:
        """What sums over rows are divided by: the count, or the clipped rows' weight (or NaN).

        Survey weights are parts of the largest one here.
        """
        if self.rows is not None:
            return float(self.rows)
        if not self.schema.has_intercept:
            return math.nan
        total = float(self.unbiased_estimate[0, 0])
        return total if self.schema.row_norm is not None else max(total, 0.0)

    @property
    def design_effect(self) -> float:
        """What unequal survey weights multiply sampling variances by: 1 without any."""
        scalable = isinstance(self.noise_model, _SCALABLE)
        return released_effect(self.certificate.parameters, self.weight) if scalable else 1.0

    @property
    def _weight_scale(self) -> float:
        return weight_scale(self.schema, self.certificate.rows_per_unit)

    @cached_property
    def column_notes(self) -> Mapping[str, str]:
        """What to look at in a column's declaration: most rows hold no level, or lie at a bound.

        Only what noise cannot explain is told; where nothing is, nothing is proved.
        """
        return column_notes(self)

    def repaired(
        self,
        repair: str = "auto",
        *,
        used: Sequence[int] | None = None,
        where: str = "gram",
    ) -> Repaired:
        """Return the matrix to analyse, repaired on the features in use, and how that was done."""
        asked = self.certificate.asked
        delta = asked.delta if isinstance(asked, ApproxDP) else DELTA
        return repair_matrix(
            self.values,
            self.noise_model,
            repair,
            used=used,
            delta=delta,
            where=where,
        )

    def gram(self, repair: str = "auto") -> Floats:
        """Return the matrix of second moments to analyse, in the cells' units.

        `repair`: "none" (unbiased), "released", "scaled", "clipped", "floor", or "auto".
        """
        return self.repaired(repair).matrix

    def mean(self, features: object = None) -> NamedVector:
        """Return the means of features, in their own units, within their bounds."""
        indices = self._own(features, "mean")
        return NamedVector(self._labels(indices), self._mean(indices, "mean"))

    def covariance(self, features: object = None, *, repair: str = "auto") -> NamedMatrix:
        """Return the covariance of features in their own units (with n − 1, as np.cov).

        Promises: positive semidefinite, unless `repair` is "none": then unbiased noise and all.
        """
        indices = self._own(features, "covariance")
        values = self._covariance(indices, "covariance", repair)
        return NamedMatrix(self._labels(indices), values)

    def correlation(self, features: object = None, *, repair: str = "auto") -> NamedMatrix:
        """Return the correlations of features; NaN for those without variance."""
        indices = self._own(features, "correlation")
        values, _ = _standardise(self._covariance(indices, "correlation", repair))
        return NamedMatrix(self._labels(indices), values)

    def pca(
        self,
        k: int,
        features: object = None,
        *,
        scaled: bool = False,
        repair: str = "auto",
    ) -> PrincipalComponents:
        """Return the first k principal components, of the correlations if `scaled`."""
        indices = self._own(features, "pca")
        k = integer(k, "k", "pca", low=1, high=len(indices))
        if not isinstance(scaled, bool):
            raise wrong_type("scaled", "pca", "True or False", scaled)
        matrix = self._covariance(indices, "pca", repair)
        scale = np.ones(len(indices))
        if scaled:
            matrix, scale = _standardise(matrix)
            matrix = np.nan_to_num(matrix)
        mean = NamedVector(self._labels(indices), self._mean(indices, "pca"))
        return principal_components(matrix, mean, scale, k)

    def sample(self, n: int, *, seed: int | None = None, repair: str = "auto") -> pa.Table:
        """Return n synthetic normal rows with the released means and covariances.

        Promises: a column for each feature but the intercept, in its own units. Only means and
        covariances are those of the table: values may leave the bounds, and indicators are not 0
        or 1. Equal seeds give equal rows.
        """
        n = integer(n, "n", "sample", low=0)
        indices = self._own(None, "sample")
        values, vectors = np.linalg.eigh(self._covariance(indices, "sample", repair))
        half = vectors * np.sqrt(np.maximum(values, 0.0))
        generator = simulation.generator(system().bits(128) if seed is None else seed)
        rows = generator.standard_normal((n, len(indices))) @ half.T + self._mean(indices, "sample")
        return pa.table(dict(zip(self._labels(indices), rows.T, strict=True)))

    @overload
    def regress(
        self,
        target: str,
        features: Sequence[str] | str | None = ...,
        **options: Unpack[RegressOptions],
    ) -> Fit: ...

    @overload
    def regress(
        self,
        target: list[str] | tuple[str, ...],
        features: Sequence[str] | str | None = ...,
        **options: Unpack[RegressOptions],
    ) -> Fits: ...

    def regress(
        self,
        target: str | list[str] | tuple[str, ...],
        features: Sequence[str] | str | None = None,
        *,
        ridge: float = 0.0,
        l1: float = 0.0,
        intercept: bool = True,
        repair: str = "auto",
    ) -> Fit | Fits:
        """Fit a linear model of a target, or of each of a list of targets, in their own units.

        Minimises ‖y − Xb − b0‖²/(2n) + ridge·‖b‖²/(2n) + l1·‖b‖₁, the intercept b0 unpenalised:
        `ridge` is scikit-learn's alpha for Ridge, `l1` its alpha for Lasso. `features` are names of
        features, or of declared columns or derived terms, which stand for all their features; None
        is all but the targets'. Without an intercept the model passes through the origin. A target
        may be a formula, "charges ~ age * C(smoker)", which says all of that (docs/releases.md).
        """
        effect = self.design_effect
        if self.schema.weight is None:
            return regress(
                self, target, features, ridge=ridge, l1=l1, intercept=intercept, repair=repair
            )
        # A penalty is meant beside sums in the weights' own scale, as scikit-learn takes it.
        own = real(ridge, "ridge", "regress", low=0) / self._weight_scale / effect
        whole = self._effective(effect)
        found = regress(
            whole, target, features, ridge=own, l1=l1, intercept=intercept, repair=repair
        )
        facts: dict[str, Any] = {"count": self.count, "ridge": ridge}
        if isinstance(found, Fit):
            return replace(found, **facts)
        return Fits(tuple(replace(fit, **facts) for fit in found.fits))

    def _effective(self, effect: float) -> "MomentsRelease":
        """Return moments as of rows of equal weight, so many that they are as informative.

        All sums are divided by the design effect; so sampling variances are multiplied by it.
        """
        noise_model = self.noise_model
        if isinstance(noise_model, _SCALABLE):
            noise_model = noise_model.scaled(1 / effect)
        return replace(self, values=self.values / effect, noise_model=noise_model)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to one file that `dplinear.load` reads anywhere."""
        files.save(self, path, overwrite=overwrite)

    def describe(self) -> str:
        """Return in a few lines what was released, of how many rows, and under which guarantee."""
        return "\n".join([*self._facts(), str(self.certificate)])

    def _facts(self) -> list[str]:
        if self.rows is not None:
            rows = f"{self.rows:,} rows"
        elif self.count is None:
            rows = "a number of rows that was not released"
        else:
            rows = size(self.count, self.certificate.unit, weight=self.schema.weight_name)
        shown = ", ".join(self.names[:12]) + (", ..." if self.dimension > 12 else "")
        title = f"Second moments of {self.dimension} features, from {rows}"
        return [title, f"features: {shown}", *self.column_notes.values()]

    def _repr_html_(self) -> str:
        title, *facts = self._facts()
        return notebook.card(title, notebook.lines(facts), self.certificate._repr_html_())

    def __repr__(self) -> str:
        return self.describe()

    def _labels(self, indices: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.schema.features[index].name for index in indices)

    def _own(self, features: Any, where: str) -> list[int]:
        """Return the places of the features asked for, once it is sure that they have a mean."""
        if not self.schema.has_intercept:
            hint = "without a column of ones there are only moments about zero: see gram()."
            raise rejection("intercept", where, "in the schema", "a schema without it", hint)
        if features is None:
            return naming.own_features(self.schema)
        return naming.indices_of(self.schema, features, "features", where)

    def _divisor(self, where: str) -> float:
        """Return the number of rows as the released sums count them, or raise if noise hid it."""
        public = self.rows is not None and self.schema.row_norm is None
        total = self.weight if public else float(self.unbiased_estimate[0, 0])
        if total > 1:
            return total
        hint = "the noise is larger than the table; release with a larger budget, or more rows."
        raise rejection("rows", where, "estimated at more than 1", f"{total:g}", hint)

    def _mean(self, indices: list[int], where: str) -> Floats:
        centre, width = scales(self.schema, indices)
        means = centre + width * self.unbiased_estimate[0, indices] / self._divisor(where)
        features = [self.schema.features[index] for index in indices]
        low = [float(feature.low) for feature in features]
        high = [float(feature.high) for feature in features]
        return np.clip(means, low, high)

    def _covariance(self, indices: list[int], where: str, repair: str) -> Floats:
        used = [0, *indices]
        matrix = self.repaired(repair, used=used, where=where).matrix[np.ix_(used, used)]
        centred = without_first(matrix)
        # In cells, where the noise is the same in every direction.
        centred = centred if repair == "none" else floor_eigenvalues(centred, 0.0)
        _, width = scales(self.schema, indices)
        return np.asarray(
            centred * np.outer(width, width) / (self._divisor(where) - self.design_effect)
        )


def _standardise(covariance: Floats) -> tuple[Floats, Floats]:
    """Return correlations (NaN without variance), and the standard deviations (1 without)."""
    variance = np.diag(covariance)
    spread = np.sqrt(np.where(variance > 0, variance, 1.0))
    matrix = covariance / np.outer(spread, spread)
    matrix[variance <= 0] = np.nan
    matrix[:, variance <= 0] = np.nan
    known = np.flatnonzero(variance > 0)
    matrix[known, known] = 1.0
    return matrix, spread


files.register(files.MatrixKind(MomentsRelease.kind, MomentsRelease, symmetric=True))
