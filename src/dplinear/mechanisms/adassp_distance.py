"""How far apart neighbours move what AdaSSP releases: an eigenvalue, XᵀX, Xᵀy and sums beside them.

Proofs: docs/theory/adassp.md, and docs/theory/groups.md where neighbours move several regressions.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from dplinear.analyst.design_effect import LEFT_OUT
from dplinear.exact.design import Design
from dplinear.mechanisms.moments.eigenvalues import ROUNDING, UNITS
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.gaussian import GridGaussian
from dplinear.privacy.rounding import ceiling, root_ceiling, up

_SIDE = 256  # the squared sensitivity of Xᵀy over that of the number of rows left out
_FILLED = 128  # the same of all counts of cells that are filled in


class Parts(NamedTuple):
    """One number for each part of the release: λ_min(XᵀX), XᵀX (its diagonal), Xᵀy."""

    least: Fraction
    gram: Fraction
    cross: Fraction


@dataclass(frozen=True)
class Distance:
    """How far apart neighbours are, on a grid of 2^`step` units; off-diagonals count `halved`.

    The squares of all parts add up, each over its own variance, in all groups that move.
    """

    design: Design
    neighbours: Neighbours
    step: int
    halved: int

    @cached_property
    def left_scale(self) -> int:
        """In parts of how much the number of rows left out is released; 0: it is not.

        It moves by at most so many, and by one more for its rounding.
        """
        if not self.design.leaves_out:
            return 0
        return max(1, math.isqrt(math.floor(self.single.cross / _SIDE)))

    @cached_property
    def filled_scale(self) -> int:
        """In parts of how much counts of filled cells are released; 0: there are none."""
        if not self.design.filled:
            return 0
        most = self.single.cross / (_FILLED * len(self.design.filled))
        return max(1, math.isqrt(math.floor(most)))

    @property
    def side(self) -> tuple[tuple[str, int], ...]:
        """The further sums, by name, each with its scale."""
        left = ((LEFT_OUT, self.left_scale),) if self.left_scale else ()
        return (*left, *((name, self.filled_scale) for name in self.design.filled))

    @property
    def single(self) -> Parts:
        """The squares of what one row more or less moves, before the eigenvalue is rounded."""
        a, c = self.design.feature_square, self.design.target_square
        coarse = 1 << 2 * self.step
        return Parts(Fraction(UNITS) ** 2, Fraction(a * a, coarse), Fraction(a * c, coarse))

    @property
    def squares(self) -> Parts:
        """The squared sensitivity of each part by itself."""
        _, gram, cross = self.single
        if self.neighbours is Neighbours.REPLACE:
            apart = self.design.dimension * self.design.groups > 1
            gram, cross = gram * (2 if apart else 1), cross * 4
        return Parts(self._number_square(UNITS, ROUNDING), gram, cross)

    def _number_square(self, most: int, rounding: int) -> Fraction:
        """Return how far a number of each group moves, squared, over all groups that move.

        A row moves it by `most`, and `rounding` comes on top, and 1 for parts of whole numbers.
        """
        moved, own = self.design.groups, rounding + 1
        twice = 1 + (self.neighbours is Neighbours.REPLACE)
        several = twice * (most**2 + 2 * own * most) + moved * own**2
        return Fraction((most + rounding) ** 2 if moved == 1 else several)

    def squared_distance(self, variances: Parts) -> Fraction:
        """Return the most that Σ Δ²/σ² can be, before the sums are rounded to a coarser grid."""
        least = self.squares.least / variances.least
        numbers = sum(self._number_square(scale, 1) for _, scale in self.side)
        least += numbers / variances.cross
        if self.neighbours is Neighbours.REPLACE and self.design.dimension > 1:
            g = self.single.gram / variances.gram
            h = self.single.cross / variances.cross
            # The worst rows meet at the cosine h/2g: what is gained in one part is lost in another.
            return least + (2 * g + 2 * h + h * h / (2 * g) if h <= 2 * g else 4 * h)
        squares = self.squares  # of one feature, more than either within a group or across two
        return least + squares.gram / variances.gram + squares.cross / variances.cross

    def norm(self, variances: Parts) -> float:
        """Return the root of `squared_distance`; rounding moves each difference by less than 1."""
        exact = root_ceiling(self.squared_distance(variances))
        return up(exact + root_ceiling(self._rounding_cost(variances))) if self.step else exact

    def inverse(self, variances: Parts) -> Fraction:
        """Return Σ 1/σ² over all coordinates."""
        own = 1 / variances.least + len(self.side) / variances.cross
        return self._rounding_cost(variances) + self.design.groups * own

    def _rounding_cost(self, variances: Parts) -> Fraction:
        d = self.design.dimension
        entries = d + self.halved * (d * (d - 1) // 2)
        return self.design.groups * (entries / variances.gram + d / variances.cross)

    def profile(self, variances: Parts) -> GridGaussian:
        """Return the profile of the whole release."""
        inverse = ceiling(self.inverse(variances))
        return GridGaussian(self.norm(variances), inverse, self.neighbours)
