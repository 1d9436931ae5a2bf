"""A private table as mechanisms see it: exact sums over its bounded rows."""

from collections.abc import Sequence
from typing import Any, Protocol

from dplinear.arrays import BigIntegers
from dplinear.exact.design import Design


class Sums(Protocol):
    """The exact second moments of rows. Private."""

    @property
    def integers(self) -> BigIntegers:
        """The matrix."""


class Rows(Protocol):
    """A private table, as solvers see it: exact sums over its rows, as often as they ask."""

    def moments(self) -> Sums:
        """Return the exact second moments."""

    def bounded_moments(self, design: Design) -> BigIntegers:
        """Return the exact second moments of a design's features and target, 0 elsewhere.

        Promises: in every row the features' squared norm is at most the design's `feature_square`
        and the target's square at most `target_square`, verified on the integers that are added.
        """

    @property
    def denominator(self) -> int:
        """How many units of weight a row of weight 1 has."""

    def sums(self, statistics: Sequence[Any]) -> list[BigIntegers]:
        """Return several exact sums over rows, in one pass."""
