"""Counts of rows by what a model makes of them: a row is a single 1."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dplinear.arrays import Floats, Integers
from dplinear.exact.row_sums import RowSum, freeze
from dplinear.exact.shape import Shape
from dplinear.scores.predictions import Predictor


@dataclass(frozen=True, eq=False)
class ResidualSizes(RowSum):
    """How many rows have a residual within ±edges[0], within the next edges, and beyond the last.

    Requires: public `edges`, ascending, in half-ranges of the target.
    Promises: a row counts once, so `bound` is 1. Each row's place is a function of it alone.
    """

    shape: Shape
    predictor: Predictor
    target: int
    edges: Sequence[float]
    size: int = field(init=False)
    bound: int = field(default=1, init=False)
    unit: Fraction = field(default=Fraction(1), init=False)
    replaced: ClassVar[int] = 2

    def __post_init__(self) -> None:
        freeze(self, edges=tuple(self.edges), size=len(self.edges) + 1)

    def sum(self, rows: Floats) -> Integers:
        """Return the counts."""
        values = rows[self.target] * (1.0 / self.shape.steps_per_unit)
        sizes = np.abs(values - self.predictor.of_rows(rows))
        return _counts(np.searchsorted(self.edges, sizes), self.size)


@dataclass(frozen=True, eq=False)
class LabelledScores(RowSum):
    """How many rows of each label have log-odds in each bin: of label 0 first, from low to high.

    Requires: public `edges`, ascending: a bin lies between two of them, the outer ones are open.
    Promises: a row counts once, so `bound` is 1. Each row's place is a function of it alone.
    """

    shape: Shape
    predictor: Predictor
    target: int
    edges: Sequence[float]
    size: int = field(init=False)
    bound: int = field(default=1, init=False)
    unit: Fraction = field(default=Fraction(1), init=False)
    replaced: ClassVar[int] = 2

    def __post_init__(self) -> None:
        freeze(self, edges=tuple(self.edges), size=2 * (len(self.edges) + 1))

    def sum(self, rows: Floats) -> Integers:
        """Return the counts."""
        bins = np.searchsorted(self.edges, self.predictor.of_rows(rows))
        return _counts(bins + (rows[self.target] > 0) * (len(self.edges) + 1), self.size)


def _counts(places: Integers, size: int) -> Integers:
    return np.bincount(places, minlength=size).astype(np.int64)
