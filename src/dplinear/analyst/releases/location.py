"""Released means and covariances of columns, in their own units."""

import os
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dplinear.analyst import notebook
from dplinear.analyst.regression import names as naming
from dplinear.analyst.regression.pca import PrincipalComponents, principal_components
from dplinear.analyst.regression.summary import number
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.results import NamedMatrix, NamedVector
from dplinear.arguments import integer, real, rejection, wrong_type
from dplinear.privacy.units import size
from dplinear.schema import Schema

_FACTS = ["certificate", "schema", "rows", "count"]


@dataclass(frozen=True, eq=False, repr=False)
class MeanRelease:
    """The mean of each column, released under the guarantee on its certificate.

    `noise` is the covariance of the means that is due to privacy alone. `rows` is the number of
    rows where it is public, `count` what is known of it.
    """

    schema: Schema
    mean: NamedVector
    noise: NamedMatrix
    certificate: Certificate = field(repr=False)
    rows: int | None
    count: float
    kind: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        _freeze(self.mean, self.noise)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.mean.names

    @property
    def privacy_errors(self) -> NamedVector:
        """The standard deviation of each mean that is due to the noise."""
        return NamedVector(self.names, np.sqrt(np.maximum(np.diag(self.noise.values), 0.0)))

    def __getitem__(self, name: str) -> float:
        return self.mean[name]

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to one file that `dplinear.load` reads anywhere."""
        files.save(self, path, overwrite=overwrite)

    def describe(self) -> str:
        """Return in a few lines the means, of how many rows, and under which guarantee."""
        return "\n".join([f"Means, {_rows(self)}", repr(self.mean), str(self.certificate)])

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        errors = self.privacy_errors
        rows = [
            [name, number(self[name], errors[name]), number(errors[name], errors[name])]
            for name in self.names
        ]
        means = notebook.table(["column", "mean", "std. deviation of the noise"], rows)
        return notebook.card(f"Means, {_rows(self)}", means, self.certificate._repr_html_())


@dataclass(frozen=True, eq=False, repr=False)
class CovarianceRelease:
    """The covariance of all columns, released under the guarantee on its certificate.

    `privacy_errors` has the standard deviation of each entry that is due to the last step's noise;
    `mean` is what the covariance is about. The matrix has no negative eigenvalue. `rows` is the
    number of rows where it is public, `count` what is known of it.
    """

    schema: Schema
    mean: NamedVector
    covariance: NamedMatrix
    privacy_errors: NamedMatrix
    certificate: Certificate = field(repr=False)
    rows: int | None
    count: float
    kind: ClassVar[str] = "covariance"

    def __post_init__(self) -> None:
        _freeze(self.mean, self.covariance, self.privacy_errors)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.mean.names

    @property
    def correlation(self) -> NamedMatrix:
        """The correlations; 0 beside a column that seems to be constant, and 1 with itself."""
        values = self.covariance.values
        scale = np.sqrt(np.diag(values))
        scale = np.where(scale > 0, scale, 1.0)
        found = np.clip(values / scale[:, None] / scale, -1.0, 1.0)
        np.fill_diagonal(found, 1.0)
        return NamedMatrix(self.names, found)

    def pca(self, k: int, features: object = None, *, scaled: bool = False) -> PrincipalComponents:
        """Return the first k principal components, of the correlations if `scaled`.

        `features` are names of columns; None is all of them.
        """
        indices = naming.own_features(self.schema)
        if features is not None:
            indices = naming.indices_of(self.schema, features, "features", "pca")
        k = integer(k, "k", "pca", low=1, high=len(indices))
        if not isinstance(scaled, bool):
            raise wrong_type("scaled", "pca", "True or False", scaled)
        chosen = [index - 1 for index in indices]  # the schema's features begin with the constant
        matrix, scale = self.covariance.values[np.ix_(chosen, chosen)], np.ones(len(chosen))
        if scaled:
            deviations = np.sqrt(np.diag(matrix))
            scale = np.where(deviations > 0, deviations, 1.0)
            matrix = matrix / scale[:, None] / scale
        names = tuple(self.names[index] for index in chosen)
        mean = NamedVector(names, self.mean.values[chosen])
        return principal_components(matrix, mean, scale, k)

    def __getitem__(self, pair: tuple[str, str]) -> float:
        return self.covariance[pair]

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to one file that `dplinear.load` reads anywhere."""
        files.save(self, path, overwrite=overwrite)

    def describe(self) -> str:
        """Return in a few lines the covariance, of how many rows, and under which guarantee."""
        lines = [f"Covariance, {_rows(self)}", repr(self.covariance), str(self.certificate)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        parts = self.covariance._repr_html_(), self.certificate._repr_html_()
        return notebook.card(f"Covariance, {_rows(self)}", *parts)


def _freeze(*results: NamedVector | NamedMatrix) -> None:
    for result in results:
        result.values.flags.writeable = False


def _rows(release: MeanRelease | CovarianceRelease) -> str:
    if release.rows is not None:
        return f"{release.rows:,} rows"
    return size(release.count, release.certificate.unit, weight=release.schema.weight_name)


class _Kind:
    """Releases in files: the mean as a row, the other arrays as matrices."""

    name: str
    release: type[Any]
    arrays: tuple[str, ...]

    def to_parts(self, release: Any) -> files.Parts:
        """Take a release apart."""
        facts = {
            "certificate": release.certificate.to_dict(),
            "schema": release.schema.to_dict(),
            "rows": release.rows,
            "count": release.count,
        }
        arrays = {name: np.atleast_2d(getattr(release, name).values) for name in self.arrays}
        return files.Parts(self.name, facts, arrays)

    def from_parts(self, parts: files.Parts) -> Any:
        """Put a release together, or raise."""
        where = f"a release of {self.name}"
        if list(parts.facts) != _FACTS or list(parts.arrays) != list(self.arrays):
            found = ", ".join([*parts.facts, *parts.arrays])
            raise rejection("keys", where, ", ".join([*_FACTS, *self.arrays]), found)
        facts = parts.facts
        schema = Schema.from_release(facts["schema"])
        names = schema.columns
        size = len(names)
        mean, *matrices = (parts.arrays[name] for name in self.arrays)
        if mean.shape != (1, size) or any(each.shape != (size, size) for each in matrices):
            raise rejection("arrays", where, "of the shapes that its schema says", mean.shape)
        if any(not np.array_equal(each, each.T) for each in matrices):
            raise rejection("arrays", where, "symmetric matrices", "asymmetric ones")
        return self.release(
            schema,
            NamedVector(names, mean[0].copy()),
            *(NamedMatrix(names, each.copy()) for each in matrices),
            Certificate.from_dict(facts["certificate"]),
            None if facts["rows"] is None else integer(facts["rows"], "rows", where, low=0),
            real(facts["count"], "count", where, low=0),
        )


class MeanKind(_Kind):
    """Released means in files."""

    name = MeanRelease.kind
    release = MeanRelease
    arrays = ("mean", "noise")


class CovarianceKind(_Kind):
    """Released covariances in files."""

    name = CovarianceRelease.kind
    release = CovarianceRelease
    arrays = ("mean", "covariance", "privacy_errors")


files.register(MeanKind())
files.register(CovarianceKind())
