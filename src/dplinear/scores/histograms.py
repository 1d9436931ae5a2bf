"""Counts of rows by what a model makes of them: a row is a single 1."""

from abc import abstractmethod
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
class _Places(RowSum):
    """How many rows are in each place, of which there are `kinds` for each bin between edges.

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
    kinds: ClassVar[int] = 1

    def __post_init__(self) -> None:
        freeze(self, edges=tuple(self.edges), size=self.kinds * (len(self.edges) + 1))

    def sum(self, rows: Floats) -> Integers:
        """Return the counts."""
        places = self._places(rows, self.predictor.of_rows(rows))
        return np.bincount(places, minlength=self.size).astype(np.int64)

    @abstractmethod
    def _places(self, rows: Floats, predicted: Floats) -> Integers:
        """Return the place of each row; elementwise."""


class ResidualSizes(_Places):
    """How many rows have a residual within ±edges[0], within the next edges, and beyond the last.

    Requires: edges in half-ranges of the target.
    """

    def _places(self, rows: Floats, predicted: Floats) -> Integers:
        values = rows[self.target] * (1.0 / self.shape.steps_per_unit)
        return np.asarray(np.searchsorted(self.edges, np.abs(values - predicted)), np.int64)


class LabelledScores(_Places):
    """How many rows of each label have log-odds in each bin: of label 0 first, from low to high."""

    kinds: ClassVar[int] = 2

    def _places(self, rows: Floats, predicted: Floats) -> Integers:
        bins = np.searchsorted(self.edges, predicted)
        return np.asarray(bins + (rows[self.target] > 0) * (len(self.edges) + 1), np.int64)
