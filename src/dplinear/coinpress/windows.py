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

from dplinear.arrays import BigIntegers, Floats
from dplinear.exact.shape import Shape

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
    def middle(self) -> Floats:
        """The middle of each column's interval, in its own units."""

    @property
    def half(self) -> Floats:
        """Half the width of each."""

    @property
    def denominator(self) -> int:
        """How many units of weight a row of weight 1 has."""

    def sums(self, statistics: Sequence[Any]) -> list[BigIntegers]:
        """Return several exact sums over its rows, in one pass."""


class Views(Protocol):
    """A private table that can be looked at through windows."""

    @property
    def low(self) -> Floats:
        """The lower bound of each column: no window reaches beyond."""

    @property
    def high(self) -> Floats:
        """The upper bound of each column."""

    def through(self, low: Floats, high: Floats) -> View:
        """Return the table through a window: an interval for each column, inside its bounds."""


@dataclass(frozen=True, eq=False)
class Lens:
    """The map w = L(x − c) of a table's rows, on the cells of a view that is made for it.

    `matrix` is what cells are multiplied with. Sums round it; `with_matrix` says how they see it.
    """

    view: View
    matrix: Floats

    @classmethod
    def of(cls, table: Views, root: Floats, centre: Floats, radius: float) -> "Lens":
        """Return L = `root` around c = `centre`, in a window that holds ‖w‖ ≤ `radius`.

        Requires: an invertible `root`. Where the window would leave the bounds it ends there.
        """
        inverse = pseudo_inverse(root)
        reach = radius * _SLACK * np.sqrt(np.einsum("ij,ij->i", inverse, inverse))
        view = table.through(*window(table, centre, reach))
        return cls(view, placement_matrix(view, root, centre))

    def with_matrix(self, integers: Floats, scale: int) -> "Lens":
        """Return the lens with the matrix as a sum has rounded it, integers·2^−scale."""
        return Lens(self.view, np.ldexp(integers, -scale))

    @property
    def _inverse(self) -> Floats:
        return pseudo_inverse(self.matrix[:, 1:])

    def point(self, image: Floats) -> Floats:
        """Return the x whose image is w."""
        return self.view.middle + self.view.half * (self._inverse @ (image - self.matrix[:, 0]))

    def covariance(self, image: Floats) -> Floats:
        """Return the covariance of x, for a covariance of w."""
        back = self.view.half[:, None] * self._inverse
        return np.asarray(back @ image @ back.T)


def pseudo_inverse(matrix: Floats) -> Floats:
    """Return the inverse; on the directions it has, where noise and rounding left no more."""
    try:
        return np.asarray(np.linalg.inv(matrix))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrix))


def placement_matrix(view: View, root: Floats, centre: Floats) -> Floats:
    """Return the matrix that makes L(x − c) of a view's cells."""
    constant = root @ (view.middle - centre)
    return np.column_stack((constant, root * view.half))


def window(table: Views, centre: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """Return the intervals centre ± reach, as far as they are within a table's bounds."""
    middle = np.clip(centre, table.low, table.high)
    ends = np.maximum(np.abs(table.low), np.abs(table.high))
    reach = np.where(np.isfinite(reach), reach, 2 * ends)
    wide = np.maximum(reach, np.maximum(_RELATIVE * np.abs(middle), _NARROWEST))
    low, high = np.maximum(middle - wide, table.low), np.minimum(middle + wide, table.high)
    return low, high
