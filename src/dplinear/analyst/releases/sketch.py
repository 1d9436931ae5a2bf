"""A released Gaussian sketch: rows with the table's second moments, plus ridges."""

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dplinear.analyst import notebook
from dplinear.analyst.noise_models.matrices import ProjectionLaw, SketchLaw
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arrays import Floats
from dplinear.schema import Schema

if TYPE_CHECKING:
    from dplinear.analyst.regression.fit import Fit


@dataclass(frozen=True, eq=False)
class SketchRelease:
    """Rows drawn from N(0, G + ridges), released once.

    `values` has one row for each row of the sketch and one column for each feature of the schema,
    in the cells' units. `rows` is the number of rows of the table, where that is public. The law
    has one ridge for all features, or one for each; where it says of none (a reproduction whose
    noise is itself private), there is least squares on the rows as they are and nothing more.
    """

    schema: Schema
    values: Floats = field(repr=False)
    law: SketchLaw | ProjectionLaw
    certificate: Certificate
    rows: int | None = None

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    @cached_property
    def moments(self) -> MomentsRelease:
        """The sketch's second moments, for everything that moments allow."""
        matrix = self.values.T @ self.values / len(self.values)
        return MomentsRelease(self.schema, matrix, self.law, self.certificate, self.rows)

    def regress(self, target: str, features: Any = None, **options: Any) -> "Fit":
        """Return least squares on the rows of the sketch, as they are: the private ridge stays in.

        Takes what `MomentsRelease.regress` takes; `repair="none"` takes the ridge out again.
        """
        options.setdefault("repair", "released")
        return self.moments.regress(target, features, **options)

    def _repr_html_(self) -> str:
        title = f"A sketch of {len(self.values):,} rows of {self.schema.dimension} features"
        return notebook.card(title, self.certificate._repr_html_())

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to one file that `dplinear.load` reads anywhere."""
        files.save(self, path, overwrite=overwrite)


files.register(files.MatrixKind("sketch", SketchRelease, laws=(SketchLaw, ProjectionLaw)))
