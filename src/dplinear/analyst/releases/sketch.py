"""A released Gaussian sketch: rows with the table's second moments, plus ridges."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Unpack, overload

from dplinear.analyst import notebook
from dplinear.analyst.noise_models.matrices import ProjectionNoise, SketchNoise
from dplinear.analyst.regression.regress import RegressOptions, regress
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arrays import Floats
from dplinear.schema import Schema

if TYPE_CHECKING:
    from dplinear.analyst.regression.fit import Fit, Fits


@dataclass(frozen=True, eq=False, repr=False)
class SketchRelease:
    """Rows drawn from N(0, G + ridges), released once.

    `values` has one row for each row of the sketch and one column for each feature of the schema,
    in the cells' units. `rows` is the number of rows of the table, where that is public. The law
    has one ridge for all features, or one for each; where it says of none (a reproduction whose
    noise is itself private), there is least squares on the rows as they are and nothing more.
    """

    schema: Schema
    values: Floats = field(repr=False)
    noise_model: SketchNoise | ProjectionNoise
    certificate: Certificate
    rows: int | None = None
    kind: ClassVar[str] = "sketch"

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    @cached_property
    def moments(self) -> MomentsRelease:
        """The sketch's second moments, for everything that moments allow."""
        matrix = self.values.T @ self.values / len(self.values)
        return MomentsRelease(self.schema, matrix, self.noise_model, self.certificate, self.rows)

    @property
    def column_notes(self) -> Mapping[str, str]:
        """What to look at in a column's declaration, as `MomentsRelease` has it."""
        return self.moments.column_notes

    @overload
    def regress(
        self,
        target: str,
        features: Sequence[str] | str | None = ...,
        **options: Unpack[RegressOptions],
    ) -> "Fit": ...

    @overload
    def regress(
        self,
        target: list[str] | tuple[str, ...],
        features: Sequence[str] | str | None = ...,
        **options: Unpack[RegressOptions],
    ) -> "Fits": ...

    def regress(
        self,
        target: str | list[str] | tuple[str, ...],
        features: Sequence[str] | str | None = None,
        *,
        ridge: float = 0.0,
        l1: float = 0.0,
        intercept: bool = True,
        repair: str = "released",
    ) -> "Fit | Fits":
        """Return least squares on the rows of the sketch, as they are: the private ridge stays in.

        Takes what `MomentsRelease.regress` takes; `repair="none"` takes the ridge out again.
        """
        return regress(
            self.moments,
            target,
            features,
            ridge=ridge,
            l1=l1,
            intercept=intercept,
            repair=repair,
        )

    def describe(self) -> str:
        """Return in a few lines what was released, and under which guarantee."""
        return "\n".join([self._title(), *self.column_notes.values(), str(self.certificate)])

    def _title(self) -> str:
        return f"{len(self.values):,} rows of a sketch of {self.schema.dimension} features"

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        return notebook.card(self._title(), self.certificate._repr_html_())

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to one file that `dplinear.load` reads anywhere."""
        files.save(self, path, overwrite=overwrite)


files.register(
    files.MatrixKind(
        SketchRelease.kind,
        SketchRelease,
        noise_models=(SketchNoise, ProjectionNoise),
        squared=True,
    )
)
