"""Exact sums over bounded integer rows: the contract, and the sums of simple moments.

A row is what the exact pass makes of one line of a table: integers of norm at most 2^exponent, each
a bitwise function of that line alone. A row sum adds up a bounded integer vector for each row, so
one row more or less changes it by at most `bound`, exactly (docs/exact-pass.md, "Other sums").
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from dplinear.arguments import integer, positive, rejection, wrong_type
from dplinear.arrays import Floats, Integers
from dplinear.exact.integers import EXACT, shrink
from dplinear.exact.shape import Shape
from dplinear.exact.weights import WHOLE
from dplinear.privacy.neighbours import Neighbours

BLOCK_ROWS = 4096  # the most rows that `sum` is handed at once
_RELATIONS = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
WORD = 62  # and the most bits of what it returns
_LARGEST_EXPONENT = 26
_Cell = TypeVar("_Cell", bound=np.generic)


class RowSum(ABC):
    """Σᵢ f(zᵢ) over the rows of a table, f(z) an integer vector of norm at most `bound`.

    Promises: f(z) is a bitwise function of the row z alone, and its norm is verified on the
    integers; `sum` is exact whatever stands in the block. So sums of blocks, in any number and
    order, on any engine, add to the same integers. Frozen, and can be sent to workers.

    `shape` is that of the rows it understands (None: any); an integer of the sum is worth `unit`
    in the cells' units. All of these are public.

    `replaced`: replacing a row u by v changes the sum by f(v) − f(u), whose squared norm is at most
    `replaced`·bound². It is 4 for any f (opposite vectors), 2 for f = c cᵀ (the squared norm is
    ‖c‖⁴ + ‖c'‖⁴ − 2(c·c')²) or for vectors without negative entries, such as a single 1, 1 where
    f is one number, never negative, and 0 for a constant f.

    `symmetric`: whether f(z) is a whole symmetric matrix, row by row.
    """

    shape: Shape | None
    size: int
    bound: int
    unit: Fraction
    replaced: ClassVar[int]
    symmetric: ClassVar[bool] = False

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the most that the sums of two neighbours differ by, in squared norm.

        Requires: add/remove or replace neighbours.
        """
        if neighbours is Neighbours.ADD_REMOVE:
            return self.bound**2
        where = f"{type(self).__name__}.sensitivity_squared"
        relation = Neighbours.parse(neighbours, where, _RELATIONS)
        return self.bound**2 * (self.replaced if relation is Neighbours.REPLACE else 1)

    @abstractmethod
    def sum(self, rows: Floats) -> Integers:
        """Return the sum over a block of rows, `size` integers.

        Requires: shape (dimension, rows), integers in float64, as the pass rounds them; at most
        4096 rows, and at most 2^62/bound. Leaves them as they are.
        """


@dataclass(frozen=True)
class Count(RowSum):
    """The number of rows, or the sum of their weights.

    `varies`: rows may be left out because of what they hold, or carry weights, so that replacing
    one, or a unit's, may change it, too.
    """

    varies: bool = False
    shape: Shape | None = field(default=None, init=False)
    size: int = field(default=1, init=False)
    bound: int = field(default=1, init=False)
    unit: Fraction = field(default=Fraction(1), init=False)
    replaced: ClassVar[int] = 0

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the most that the sums of two neighbours differ by, in squared norm."""
        return 1 if self.varies else super().sensitivity_squared(neighbours)

    def sum(self, rows: Floats) -> Integers:
        """Return the number of rows."""
        return np.array([rows.shape[1]], np.int64)


@dataclass(frozen=True)
class LeftOut(RowSum):
    """The number of rows that are left out of all other sums, for want of a number they need.

    Requires: the first pass over rows: those that were left out are not kept for a second one.
    Promises: `bound` 1, as the weights of a unit's rows that are left out add up to at most 1. The
    accumulator counts them (`Blocks.leave`); rows that are added are none.
    """

    shape: Shape | None = field(default=None, init=False)
    size: int = field(default=1, init=False)
    bound: int = field(default=1, init=False)
    unit: Fraction = field(default=Fraction(1), init=False)
    replaced: ClassVar[int] = 1

    def sum(self, rows: Floats) -> Integers:
        """Return 0: these rows were not left out."""
        return np.zeros(1, np.int64)


@dataclass(frozen=True)
class FilledIn(RowSum):
    """How many cells of each of `size` columns are filled in, among the rows that count.

    Requires: the first pass over rows, as `LeftOut`.
    Promises: a row adds 0 or 1 to each number, and a unit's rows, whose weights add up to at most
    1, from 0 to 1. So neighbours of either kind are at most √size apart: a replaced row, or unit,
    moves each number by at most 1, too. The accumulator counts them (`Blocks.fill`), and verifies
    that no row adds more.
    """

    size: int
    shape: Shape | None = field(default=None, init=False)
    bound: int = field(init=False)
    unit: Fraction = field(default=Fraction(1), init=False)
    replaced: ClassVar[int] = 1

    def __post_init__(self) -> None:
        integer(self.size, "size", "FilledIn", low=1)
        freeze(self, bound=isqrt(self.size - 1) + 1)

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the most that the sums of two neighbours differ by, in squared norm."""
        Neighbours.parse(neighbours, "FilledIn.sensitivity_squared", _RELATIONS)
        return self.size

    def sum(self, rows: Floats) -> Integers:
        """Return 0: rounded rows do not tell which of their cells were missing."""
        return np.zeros(self.size, np.int64)


@dataclass(frozen=True)
class SquaredWeights(RowSum):
    """Σ V², V the total of the weights of a unit, or of a row that is a unit of its own.

    Requires: weighted rows. V ≤ 1, so that a unit moves the sum by at most 1.
    Promises: counted in units of 1/2^48, so `bound` is 2^24 in units of a weight's 1/2^24. The
    accumulator adds v·V for every row (`Blocks.weigh`).
    """

    shape: Shape | None = field(default=None, init=False)
    size: int = field(default=1, init=False)
    bound: int = field(default=WHOLE, init=False)
    unit: Fraction = field(default=Fraction(1, WHOLE), init=False)
    replaced: ClassVar[int] = 1

    def sum(self, rows: Floats) -> Integers:
        """Return 0: rows do not tell their weights."""
        return np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)
class SquaredNorms(RowSum):
    """Σ min(‖x‖², limit), x the chosen cells of a row.

    Requires: `columns`, indices of cells, none twice; `limit`, above 0, in the cells' units.
    Promises: `bound`, the limit in grid units: at least 1, at most the square of a row's norm.
    """

    shape: Shape
    columns: Sequence[int]
    limit: float
    size: int = field(default=1, init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 1

    def __post_init__(self) -> None:
        where = "SquaredNorms"
        check_shape(self.shape, where)
        limit = Fraction(positive(self.limit, "limit", where)) * self.shape.unit
        chosen = chosen_columns(self.columns, self.shape, where)
        freeze(self, columns=chosen, bound=min(max(int(limit), 1), self.shape.sensitivity))
        freeze(self, unit=Fraction(1, self.shape.unit))

    def sum(self, rows: Floats) -> Integers:
        """Return the sum of the limited squared norms."""
        cells = take_columns(rows, self.columns)
        squares = np.minimum(np.einsum("ij,ij->j", cells, cells), float(self.bound))
        return np.array([squares.astype(np.int64).sum()])


@dataclass(frozen=True, eq=False)
class ClippedGram(RowSum):
    """Σ c cᵀ, c the chosen cells of a row, scaled towards zero to norm at most `norm`.

    Requires: `columns`, indices of cells, none twice; `norm`, above 0, in the cells' units.
    Promises: the whole symmetric matrix, row by row, so that `bound` is its sensitivity in
    Frobenius norm: N², where N is the norm in grid units (at least 1, at most a row's norm).
    """

    shape: Shape
    columns: Sequence[int]
    norm: float
    size: int = field(init=False)
    bound: int = field(init=False)
    unit: Fraction = field(init=False)
    replaced: ClassVar[int] = 2
    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        where = "ClippedGram"
        check_shape(self.shape, where)
        norm = int(Fraction(positive(self.norm, "norm", where)) * self.shape.steps_per_unit)
        chosen = chosen_columns(self.columns, self.shape, where)
        freeze(self, columns=chosen, size=len(chosen) ** 2)
        freeze(self, bound=min(max(norm, 1), 1 << self.shape.exponent) ** 2)
        freeze(self, unit=Fraction(1, self.shape.unit))

    def sum(self, rows: Floats) -> Integers:
        """Return the matrix of the clipped rows, flat."""
        cells = take_columns(rows, self.columns)
        squares = np.einsum("ij,ij->j", cells, cells)
        over = np.flatnonzero(squares > self.bound)
        if len(over):
            cells = cells.copy(order="K")
            cells[:, over] = shrink(cells[:, over], squares[over], self.bound)
        return (cells @ cells.T).astype(np.int64).ravel()


def check_shape(shape: Shape, where: str) -> None:
    """Raise unless blocks of such rows multiply exactly."""
    if not isinstance(shape, Shape):
        raise wrong_type("shape", where, "a Shape", shape)
    if not (type(shape.exponent) is int and 1 <= shape.exponent <= _LARGEST_EXPONENT):
        integer(shape.exponent, "shape.exponent", where, low=1, high=_LARGEST_EXPONENT)
    largest = isqrt(2**EXACT // BLOCK_ROWS)
    if min(shape.steps_per_unit, 1 << shape.exponent) > largest:
        rule = f"of at most {largest} cells, so that blocks of products are exact"
        raise rejection("shape", where, rule, shape.steps_per_unit)


def chosen_columns(columns: Any, shape: Shape, where: str) -> tuple[int, ...]:
    """Return the indices of cells, if they are such and differ."""
    if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
        raise wrong_type("columns", where, "a list of indices of cells", columns)
    high = shape.dimension - 1
    chosen = tuple(integer(column, "columns", where, low=0, high=high) for column in columns)
    if not chosen or len(set(chosen)) < len(chosen):
        raise rejection("columns", where, "at least one index of a cell, none twice", columns)
    return chosen


def take_columns(rows: npt.NDArray[_Cell], columns: Sequence[int]) -> npt.NDArray[_Cell]:
    """Return the chosen cells of each row; without a copy where they stand side by side."""
    first, last = columns[0], columns[-1]
    if tuple(columns) == tuple(range(first, last + 1)):
        return rows[first : last + 1]
    return rows[list(columns)]


def freeze(statistic: RowSum, **facts: object) -> None:
    """Set what a frozen statistic derives from its arguments."""
    for name, fact in facts.items():
        object.__setattr__(statistic, name, fact)
