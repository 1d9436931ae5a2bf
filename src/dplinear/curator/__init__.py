"""The only room that opens a table.

`Schema` describes it in public; `second_moments` reads it once, from any source, on any engine;
`SecondMoments` is the exact result, still private. `open_table` is for several passes, each of
which adds up row sums. `release_moments`, `release_sketch`, `release_rows`, `release_model`,
`release_mean`, `release_covariance`, `release_scores`, `suggest_bounds`, `suggest_levels` and
`suggest_rows_per_unit` are the gates: they let out what a mechanism made of it, with a certificate,
and nothing else.
"""

from dplinear.analyst.releases.bounds import SuggestedBounds
from dplinear.analyst.releases.levels import SuggestedLevels
from dplinear.analyst.releases.rows_per_unit import SuggestedRowsPerUnit
from dplinear.curator.gates.bounds import suggest_bounds
from dplinear.curator.gates.levels import suggest_levels
from dplinear.curator.gates.means import release_covariance, release_mean
from dplinear.curator.gates.model import release_model
from dplinear.curator.gates.moments import release_moments
from dplinear.curator.gates.rows import release_rows
from dplinear.curator.gates.rows_per_unit import suggest_rows_per_unit
from dplinear.curator.gates.scores import release_scores
from dplinear.curator.gates.sketch import release_sketch
from dplinear.curator.passes import Table, exact_sums, open_table
from dplinear.curator.sources import SourceError, second_moments
from dplinear.exact.gram import Accumulator, SecondMoments
from dplinear.exact.grid import Grid
from dplinear.schema import Schema

__all__ = [
    "Accumulator",
    "Grid",
    "Schema",
    "SecondMoments",
    "SourceError",
    "SuggestedBounds",
    "SuggestedLevels",
    "SuggestedRowsPerUnit",
    "Table",
    "exact_sums",
    "open_table",
    "release_covariance",
    "release_mean",
    "release_model",
    "release_moments",
    "release_rows",
    "release_scores",
    "release_sketch",
    "second_moments",
    "suggest_bounds",
    "suggest_levels",
    "suggest_rows_per_unit",
]
