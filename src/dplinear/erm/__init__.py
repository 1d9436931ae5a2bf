"""Private learning on a stream of bounded rows.

`row_sums` is the contract of an exact sum over rows, with the sums of simple moments;
`mapped_sums` has those of rows under a public linear map, and `residual_sums` those that a descent
asks for, step by step.
"""

from dplinear.erm.mapped_sums import MappedGram, MappedNorms, MappedSum
from dplinear.erm.residual_sums import Bands, Energy, Gradient, Residuals
from dplinear.erm.row_sums import ClippedGram, Count, RowSum, SquaredNorms

__all__ = [
    "Bands",
    "ClippedGram",
    "Count",
    "Energy",
    "Gradient",
    "MappedGram",
    "MappedNorms",
    "MappedSum",
    "Residuals",
    "RowSum",
    "SquaredNorms",
]
