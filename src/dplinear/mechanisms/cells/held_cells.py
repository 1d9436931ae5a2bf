"""Rows held to the sets that their cells are said to come from, on the integers that are released.

How far one cell can move a row follows from the schema (`cells.py`): a number is in [−1, 1], a flag
is 0 or 1, and of a category's levels one is 1. That is derived from how rows are encoded. Here it
is verified, row by row, where the rows meet their noise; what is not so is brought back.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats
from dplinear.exact.shape import Shape
from dplinear.mechanisms.cells.table_cells import cells_of
from dplinear.schema import Schema
from dplinear.schema.columns import Category


@dataclass(frozen=True)
class Levels:
    """A category's features; `zero`: whether a level has none."""

    indices: tuple[int, ...]
    zero: bool


@dataclass(frozen=True)
class HeldCells:
    """The sets that the cells of a schema's columns lie in, in `steps` to 1.

    Promises: `hold` returns integer rows of which every number is within ±steps, every flag within
    0 and steps, and of every category's features one is `steps` and the others are 0, or all are 0
    where a level has no feature. So no two rows that it returns are farther apart, in any cell or
    in all of them, than `cells.Cell` says. A row that is so already is returned as it is; each row
    depends on itself alone, and no value raises.
    """

    steps: int
    flags: tuple[int, ...]
    categories: tuple[Levels, ...]

    @classmethod
    def of(cls, schema: Schema, shape: Shape, where: str) -> "HeldCells":
        """Return the sets of a schema's cells; raises where cells are tied together."""
        flags: list[int] = []
        categories = []
        for cell in cells_of(schema, where):
            column = schema.declared[cell.column]
            if isinstance(column, Category):
                categories.append(Levels(cell.indices, column.drop_first))
            else:
                flags += [p for p in cell.indices if schema.features[p].is_indicator]
        return cls(shape.steps_per_unit, tuple(flags), tuple(categories))

    def hold(self, rows: Floats) -> Floats:
        """Return rows of shape (dimension, rows) held to their sets; leaves them as they are."""
        if not rows.size:
            return rows
        most = float(self.steps)
        odd = not bool((np.abs(rows) <= most).all())  # nor where it is no number
        odd = odd or any(bool((rows[index] < 0).any()) for index in self.flags)
        if not odd and not any(self._odd(rows, levels).any() for levels in self.categories):
            return rows
        held = np.rint(np.clip(np.where(np.isnan(rows), 0.0, rows), -most, most))
        flags = list(self.flags)
        held[flags] = np.maximum(held[flags], 0.0)
        for levels in self.categories:
            indices, wrong = np.array(levels.indices), np.flatnonzero(self._odd(held, levels))
            found = held[np.ix_(indices, wrong)]
            one = np.zeros(found.shape)
            one[found.argmax(axis=0), np.arange(len(wrong))] = most
            if levels.zero:
                one[:, found.max(axis=0) <= 0] = 0.0
            held[np.ix_(indices, wrong)] = one
        return np.asarray(held)

    def _odd(self, rows: Floats, levels: Levels) -> npt.NDArray[np.bool_]:
        """Return which rows hold no level, or more than one, or parts of one."""
        own = rows[list(levels.indices)]
        held = np.count_nonzero(own, axis=0)
        right = (held == 1) & (own.sum(axis=0) == float(self.steps))  # integers: exact
        return np.asarray(~(right | ((held == 0) & levels.zero)))


@dataclass(frozen=True)
class HeldNorm:
    """A ball that the features at `indices` lie in: their squared norm is at most `most`."""

    indices: tuple[int, ...]
    most: int

    def hold(self, rows: Floats) -> Floats:
        """Return rows of shape (dimension, rows) held to the ball; leaves them as they are."""
        own = rows[list(self.indices)]
        if not (np.einsum("ij,ij->j", own, own) > self.most).any():
            return rows
        held = rows.copy()
        held[list(self.indices)] = shorten_to_norm(own, self.most)
        return held


Held = HeldCells | HeldNorm


def cell_sets(
    schema: Schema, shape: Shape, indices: tuple[int, ...], row_square: int | None, where: str
) -> Held:
    """Return the sets of a schema's cells; a ball where a row_norm or derived terms tie them.

    `row_square` is the squared norm that rows of the features at `indices` are then said to have.
    """
    if row_square is None:
        return HeldCells.of(schema, shape, where)
    return HeldNorm(indices, row_square)


def shorten_to_norm(rows: Floats, most: int) -> Floats:
    """Return integer columns scaled towards zero until every squared norm is at most `most`."""
    squares = np.einsum("ij,ij->j", rows, rows)
    factors = np.where(squares > most, np.sqrt(most / np.maximum(squares, 1.0)), 1.0)
    while True:
        shorter = np.trunc(rows * factors)
        # Sums of squares of at most 2^53 are exact.
        over = np.einsum("ij,ij->j", shorter, shorter) > most
        if not over.any():
            return np.asarray(shorter)
        factors = np.where(over, factors * (1 - 2.0**-20), factors)
