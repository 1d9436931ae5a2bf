"""The only room that opens a table.

`Schema` describes it in public; `second_moments` reads it once, from any source, on any engine;
`SecondMoments` is the exact result, still private, from which mechanisms make releases.
"""

from dplinear.curator.gram import Accumulator, SecondMoments
from dplinear.curator.grid import Grid
from dplinear.curator.sources import SourceError, second_moments
from dplinear.schema import Schema

__all__ = ["Accumulator", "Grid", "Schema", "SecondMoments", "SourceError", "second_moments"]
