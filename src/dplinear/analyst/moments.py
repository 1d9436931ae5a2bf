"""A released second-moment matrix: every regression on the table, without another look at it."""

import os
from dataclasses import dataclass, field
from functools import cached_property

from dplinear.analyst import files
from dplinear.analyst.certificate import Certificate
from dplinear.analyst.laws import Law, Matrix
from dplinear.schema import Schema


@dataclass(frozen=True, eq=False)
class MomentsRelease:
    """Second moments of a table's encoded rows, released once.

    `values` is the matrix as the mechanism released it, in the cells' units (features mapped to
    [−1, 1], in the schema's order); `law` says how it spreads around the true one. `rows` is the
    number of rows where that is public (replace neighbours), otherwise None.
    """

    schema: Schema
    values: Matrix = field(repr=False)
    law: Law
    certificate: Certificate
    rows: int | None = None

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    @cached_property
    def unbiased(self) -> Matrix:
        """The estimate of the second moments whose mean is right; not always positive definite."""
        return self.law.unbiased(self.values)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to one file that `dplinear.load` reads anywhere."""
        files.save(self, path, overwrite=overwrite)


files.register(files.MatrixKind("moments", MomentsRelease, symmetric=True))
