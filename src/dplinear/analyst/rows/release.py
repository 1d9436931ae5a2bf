"""Released rows: one for each of the table's, in their order, that any algorithm can run on."""

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, overload

import numpy as np
import pyarrow as pa

from dplinear.analyst import notebook
from dplinear.analyst.noise_models.rows import (
    AdditiveRows,
    ProjectedRows,
    RowNoiseModel,
    column_names,
)
from dplinear.analyst.regression.regress import RegressOptions, regress
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.analyst.rows import distances, kernels, row_files
from dplinear.analyst.rows.distance_errors import DistanceErrorModel
from dplinear.analyst.rows.distances import Distances, Nearest
from dplinear.analyst.rows.row_head import Head
from dplinear.analyst.rows.row_reading import HeldRows, Rows
from dplinear.arguments import rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.schema import Schema

if TYPE_CHECKING:
    from dplinear.analyst.regression.fit import Fit, Fits
    from dplinear.analyst.rows.clusters import Clusters


class RowsRelease:
    """Rows of a table, released once: in memory, or in a file that is read when it is needed.

    `noise_model` says how they spread around the true ones; released columns are in their own
    units. The number of rows is public, and so is their order. Everything computed here is free.
    """

    kind: ClassVar[str] = "rows"

    def __init__(self, head: Head, rows: Rows) -> None:
        self._head, self._rows = head, rows

    @property
    def head(self) -> Head:
        """All that is said about the rows."""
        return self._head

    @property
    def schema(self) -> Schema:
        """The public description of the table."""
        return self._head.schema

    @property
    def certificate(self) -> Certificate:
        """What the release guarantees."""
        return self._head.certificate

    @property
    def noise_model(self) -> RowNoiseModel:
        """The law of the noise."""
        return self._head.noise_model

    @property
    def names(self) -> tuple[str, ...]:
        """The released columns."""
        return tuple(self._head.columns.names)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._rows.rows

    def __len__(self) -> int:
        return self._rows.rows

    @property
    def path(self) -> Path | None:
        """The file that holds the rows, or None where memory does."""
        return self._rows.path

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, some at a time: for more of them than memory holds."""
        return self._rows.batches()

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        if isinstance(self._rows, HeldRows):
            return self._rows.table
        return pa.Table.from_batches(self.batches(), self._head.columns)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    @property
    def values(self) -> Floats:
        """The rows as a matrix of float64, one line for each."""
        words = [f.name for f in self._head.columns if f.type == pa.string()]
        if words:
            rule = "made of numbers alone, for a matrix of them"
            hint = "to_arrow() and to_pandas() keep text."
            raise rejection("columns", "values", rule, ", ".join(words), hint)
        matrix = np.empty((self.rows, len(self.names)))
        start = 0
        for batch in self.batches():
            stop = start + batch.num_rows
            for index, column in enumerate(batch.columns):
                matrix[start:stop, index] = column.to_numpy(zero_copy_only=False)
            start = stop
        return matrix

    @cached_property
    def moments(self) -> MomentsRelease:
        """The rows' second moments, for everything that moments allow; one pass over the rows.

        What they are off by is the noise's own second moments, which are known and taken out.
        """
        if not isinstance(self.noise_model, AdditiveRows):
            rule = "released with additive noise, for their second moments to be known"
            hint = "projected rows are for distances, nearest rows, kernels and clusters."
            raise rejection("rows", "RowsRelease", rule, self.noise_model.kind, hint)
        schema = self.schema
        total = np.zeros((schema.dimension, schema.dimension))
        for batch in self.batches():
            cells = np.ones((schema.dimension, batch.num_rows))
            own = [index for index, feature in enumerate(schema.features) if feature.factors]
            for index, column in zip(own, batch.columns, strict=True):
                feature = schema.features[index]
                values = column.to_numpy() - float(feature.centre)
                cells[index] = values / float(feature.half_width)
            total += cells @ cells.T
        matrix = (total + total.T) / 2
        noise_model = self.noise_model.moments(self.rows)
        return MomentsRelease(schema, matrix, noise_model, self.certificate, self.rows)

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
        repair: str = "auto",
    ) -> "Fit | Fits":
        """Fit a linear model to the rows, with the noise's own second moments taken out.

        Takes what `MomentsRelease.regress` takes; `repair="released"` is plain least squares on
        the rows as they are, which noise pulls towards 0.
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

    # What is left of distances after a projection, in the cells' units.

    @cached_property
    def _points(self) -> tuple[Floats, DistanceErrorModel]:
        """The released numbers of rows that went through a projection, and how they spread."""
        noise_model = self.noise_model
        if not isinstance(noise_model, ProjectedRows):
            rule = "released through a projection, for their distances to be known"
            raise rejection("rows", "RowsRelease", rule, noise_model.kind)
        table = self.to_arrow()
        columns = [table[name].to_numpy() for name in column_names(noise_model.k)]
        return np.column_stack(columns), DistanceErrorModel.of(noise_model)

    def distances(self, i: Any, j: Any) -> Distances:
        """Estimate squared distances between rows i and j, with errors and intervals.

        Promises: unbiased over the draws of the projection and the noise, in the cells' units.
        """
        return distances.distances(*self._points, i, j)

    def distance_matrix(self, *, condensed: bool = False) -> Floats:
        """Return all estimated squared distances: a square matrix, or SciPy's condensed form."""
        return distances.distance_matrix(*self._points, condensed=condensed)

    def distance_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Yield the matrix of distances in blocks of whole rows, each with its first row."""
        return distances.distance_blocks(*self._points)

    def nearest(self, i: Any, count: int = 1) -> Nearest:
        """Return the rows that seem nearest to each row i, with their estimated distances."""
        return distances.nearest(*self._points, i, count)

    def kernel(
        self,
        bandwidth: float,
        i: Any = None,
        j: Any = None,
        *,
        method: str = "plug-in",
    ) -> Floats:
        """Estimate exp(−s/2h²) for the squared distances s between rows i and rows j.

        All rows where i or j is None. "plug-in" is biased; "unbiased" is not, over projection and
        noise, but spreads more (`analyst/rows/kernels.py`).
        """
        points, error_model = self._points
        everything = np.arange(len(points))
        pair = [
            everything if given is None else distances.indices_of(given, name, "kernel", len(self))
            for given, name in ((i, "i"), (j, "j"))
        ]
        one, two = (np.atleast_1d(chosen).ravel() for chosen in pair)
        return kernels.kernel(points, error_model, bandwidth, (one, two), method)

    def kmeans(self, clusters: int, *, noise_aware: bool = False, seed: int = 0) -> "Clusters":
        """Return clusters of the rows: k-means or, where it is clearly better, a mixture.

        `noise_aware` tries the mixture, in which the noise's variance is known
        (`analyst/rows/clusters.py`). Equal seeds give equal clusters.
        """
        from dplinear.analyst.rows.clusters import kmeans

        points, error_model = self._points
        return kmeans(points, error_model, clusters, noise_aware=noise_aware, seed=seed)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the rows to a .parquet, .arrow or .csv file, which `dplinear.load` reads again."""
        if not isinstance(path, str | os.PathLike):
            raise wrong_type("path", "save", "the path of a file to write", path)
        row_files.save(self._head, self.batches(), Path(path), overwrite=overwrite)

    def describe(self) -> str:
        """Return in a few lines what was released, and under which guarantee."""
        return "\n".join([self._title(), *self._content_lines(), str(self.certificate)])

    def _title(self) -> str:
        return f"{self.rows:,} rows of {len(self.names):,} numbers each"

    def _content_lines(self) -> list[str]:
        shown = ", ".join(self.names[:12]) + (", ..." if len(self.names) > 12 else "")
        kept = [] if self.path is None else [f"file: {self.path.name}"]
        return [f"numbers: {shown}", *kept]

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        told = notebook.lines(self._content_lines()), self.certificate._repr_html_()
        return notebook.card(self._title(), *told)
