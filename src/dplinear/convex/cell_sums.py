"""The gradient of a loss by features whose cells are clipped one by one.

A row of norm 1 with fifty equal cells has none above 0.15. Where what one row does to any one
feature matters, and not the norm of it all, that is worth a clip.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dplinear.arguments import positive
from dplinear.arrays import Floats, Integers
from dplinear.convex.example_blocks import CELLS, Features
from dplinear.convex.examples import SlopeSum
from dplinear.exact.row_sums import freeze


@dataclass(frozen=True, eq=False)
class CellSlopeSum(SlopeSum):
    """Σ clip(x)·ℓ'(⟨x, θ⟩; y), each cell of x clipped at ±`cell`; margins are of whole rows.

    Requires: `cell`, above 0 (at least one unit, at most a row's norm); otherwise as `SlopeSum`.
    Promises: what `SlopeSum` does; and no entry of a row's gradient is above `largest`, which is
    cell·slope in units, rounded down.
    """

    cell: float = 1.0
    largest: int = field(init=False)
    _most: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        exact = Fraction(positive(self.cell, "cell", "CellSlopeSum")) * CELLS
        most = min(max(int(exact), 1), self.frame.norm)
        freeze(self, largest=most * self.steepest, _most=float(most))

    def over(self, features: Features, labels: Floats) -> Integers:
        """Return the gradient of a block, exactly."""
        slopes = self.slopes(features, labels)
        return np.asarray(self._clip(features) @ slopes).astype(np.int64)

    def _clip(self, features: Features) -> Features:
        if isinstance(features, np.ndarray):
            return np.clip(features, -self._most, self._most)
        clipped = features.copy()
        clipped.sum_duplicates()  # a cell is what its parts add up to
        np.clip(clipped.data, -self._most, self._most, out=clipped.data)
        return clipped
