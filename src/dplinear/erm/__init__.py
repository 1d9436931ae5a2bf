"""Private learning on a stream of bounded rows.

`row_sums` is the contract of an exact sum over rows, with the sums of simple moments;
`residual_sums` has those that a descent asks for, step by step.
"""

from dplinear.erm.residual_sums import Energy, Gradient
from dplinear.erm.row_sums import ClippedGram, Count, RowSum, SquaredNorms

__all__ = ["ClippedGram", "Count", "Energy", "Gradient", "RowSum", "SquaredNorms"]
