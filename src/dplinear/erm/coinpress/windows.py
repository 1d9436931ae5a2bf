"""A table looked at through windows: the same rows on ever finer grids.

Where bounds are far wider than the rows, the grid that they make is too coarse to see them. A
window is a narrower interval for each column, made from what was released before; cells are clamped
to it, each by itself, and rounded to its finer grid. So a row of a view is a bitwise function of
one row of the table, and sums over a view have the sensitivities of any others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dplinear.analyst.laws import Matrix
from dplinear.mechanisms.contract import Shape
from dplinear.mechanisms.solver import Integers

_SLACK = 2.0  # of a window, so that few rows outside a ball change their direction
# Schemas want intervals of a certain width beside their ends, and so does float64.
_RELATIVE = 2.0**-29
_NARROWEST = 2.0**-480


class View(Protocol):
    """Rows of cells: a constant of 1 first, then (x − `middle`)/`half` of every column, clamped."""

    @property
    def shape(self) -> Shape:
        """What is public about its rows."""

    @property
    def middle(self) -> Matrix:
        """The middle of each column's interval, in its own units."""

    @property
    def half(self) -> Matrix:
        """Half the width of each."""

    def sums(self, statistics: Sequence[Any]) -> list[Integers]:
        """Return several exact sums over its rows, in one pass."""


class Views(Protocol):
    """A private table that can be looked at through windows."""

    @property
    def low(self) -> Matrix:
        """The lower bound of each column: no window reaches beyond."""

    @property
    def high(self) -> Matrix:
        """The upper bound of each column."""

    def through(self, low: Matrix, high: Matrix) -> View:
        """Return the table through a window: an interval for each column, inside its bounds."""


@dataclass(frozen=True, eq=False)
class Lens:
    """The map w = L(x − c) of a table's rows, on the cells of a view that is made for it.

    `matrix` is what cells are multiplied with. Sums round it; `seen` says how they see it.
    """

    view: View
    matrix: Matrix

    @classmethod
    def of(cls, table: Views, root: Matrix, centre: Matrix, radius: float) -> "Lens":
        """Return L = `root` around c = `centre`, in a window that holds ‖w‖ ≤ `radius`.

        Requires: an invertible `root`. Where the window would leave the bounds it ends there.
        """
        inverse = inverted(root)
        reach = radius * _SLACK * np.sqrt(np.einsum("ij,ij->i", inverse, inverse))
        view = table.through(*window(table, centre, reach))
        return cls(view, placed(view, root, centre))

    def seen(self, integers: Matrix, scale: int) -> "Lens":
        """Return the lens with the matrix as a sum has rounded it, integers·2^−scale."""
        return Lens(self.view, np.ldexp(integers, -scale))

    @property
    def _inverse(self) -> Matrix:
        return inverted(self.matrix[:, 1:])

    def point(self, image: Matrix) -> Matrix:
        """Return the x whose image is w."""
        return self.view.middle + self.view.half * (self._inverse @ (image - self.matrix[:, 0]))

    def covariance(self, image: Matrix) -> Matrix:
        """Return the covariance of x, for a covariance of w."""
        back = self.view.half[:, None] * self._inverse
        return np.asarray(back @ image @ back.T)


def inverted(matrix: Matrix) -> Matrix:
    """Return the inverse; on the directions it has, where noise and rounding left no more."""
    try:
        return np.asarray(np.linalg.inv(matrix))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrix))


def placed(view: View, root: Matrix, centre: Matrix) -> Matrix:
    """Return the matrix that makes L(x − c) of a view's cells."""
    constant = root @ (view.middle - centre)
    return np.column_stack((constant, root * view.half))


def window(table: Views, centre: Matrix, reach: Matrix) -> tuple[Matrix, Matrix]:
    """Return the intervals centre ± reach, as far as they are within a table's bounds."""
    middle = np.clip(centre, table.low, table.high)
    ends = np.maximum(np.abs(table.low), np.abs(table.high))
    reach = np.where(np.isfinite(reach), reach, 2 * ends)
    wide = np.maximum(reach, np.maximum(_RELATIVE * np.abs(middle), _NARROWEST))
    low, high = np.maximum(middle - wide, table.low), np.minimum(middle + wide, table.high)
    return low, high
