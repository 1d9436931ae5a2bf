"""The only room that opens a table.

`Schema` describes it in public; `second_moments` reads it once, from any source, on any engine;
`SecondMoments` is the exact result, still private. `release_moments` and `release_sketch` are the
gate: they let out what a mechanism made of it, with a certificate, and nothing else.
"""

from dplinear.curator.gate import release_moments, release_sketch
from dplinear.curator.gram import Accumulator, SecondMoments
from dplinear.curator.grid import Grid
from dplinear.curator.sources import SourceError, second_moments
from dplinear.schema import Schema

__all__ = [
    "Accumulator",
    "Grid",
    "Schema",
    "SecondMoments",
    "SourceError",
    "release_moments",
    "release_sketch",
    "second_moments",
]
