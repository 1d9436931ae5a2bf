"""The only room that opens a table.

`Schema` describes it in public; `second_moments` reads it once, from any source, on any engine;
`SecondMoments` is the exact result, still private. `open_table` is for several passes, each of
which adds up row sums. `release_moments`, `release_sketch`, `release_model`, `std_erm` and
`proj_erm` are the gate: they let out what a mechanism made of it, with a certificate, and nothing
else.
"""

from dplinear.curator.compressed_gate import proj_erm, std_erm
from dplinear.curator.gate import release_moments, release_sketch
from dplinear.curator.gram import Accumulator, SecondMoments
from dplinear.curator.grid import Grid
from dplinear.curator.model_gate import release_model
from dplinear.curator.passes import Table, exact_sums, open_table
from dplinear.curator.sources import SourceError, second_moments
from dplinear.schema import Schema

__all__ = [
    "Accumulator",
    "Grid",
    "Schema",
    "SecondMoments",
    "SourceError",
    "Table",
    "exact_sums",
    "open_table",
    "proj_erm",
    "release_model",
    "release_moments",
    "release_sketch",
    "second_moments",
    "std_erm",
]
