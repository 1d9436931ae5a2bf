"""The only room that opens a table.

`Schema` describes it in public; `second_moments` reads it once, from any source, on any engine;
`SecondMoments` is the exact result, still private. `open_table` is for several passes, each of
which adds up row sums. `release_moments`, `release_sketch`, `release_rows`, `release_model`,
`release_mean`, `release_covariance`, `suggest_bounds`, `std_erm` and `proj_erm` are the gate: they
let out what a mechanism made of it, with a certificate, and nothing else.
"""

from dplinear.analyst.suggested import SuggestedBounds
from dplinear.curator.bounds_gate import suggest_bounds
from dplinear.curator.coinpress_gate import release_covariance, release_mean
from dplinear.curator.compressed_gate import proj_erm, std_erm
from dplinear.curator.gate import release_moments
from dplinear.curator.gram import Accumulator, SecondMoments
from dplinear.curator.grid import Grid
from dplinear.curator.model_gate import release_model
from dplinear.curator.passes import Table, exact_sums, open_table
from dplinear.curator.rows_gate import release_rows
from dplinear.curator.sketch_gate import release_sketch
from dplinear.curator.sources import SourceError, second_moments
from dplinear.schema import Schema

__all__ = [
    "Accumulator",
    "Grid",
    "Schema",
    "SecondMoments",
    "SourceError",
    "SuggestedBounds",
    "Table",
    "exact_sums",
    "open_table",
    "proj_erm",
    "release_covariance",
    "release_mean",
    "release_model",
    "release_moments",
    "release_rows",
    "release_sketch",
    "second_moments",
    "std_erm",
    "suggest_bounds",
]
