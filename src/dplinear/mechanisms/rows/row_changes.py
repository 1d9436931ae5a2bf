"""What neighbours may do to one row of integers, and how far that goes once a matrix is applied.

A `Changes` is the set of differences of a row between neighbours, on the grid: after clamping and
rounding. Its norms, plain or behind a matrix, are the sensitivities that noise is scaled by.
"""

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dplinear import arguments
from dplinear.arrays import Floats
from dplinear.exact.shape import Shape
from dplinear.mechanisms.cells import cell_moves
from dplinear.mechanisms.cells.cell_moves import Bounded
from dplinear.mechanisms.cells.table_cells import Cell, cells_of
from dplinear.mechanisms.rows.operator_norms import (
    MOST_SIGNS,
    sign_images,
    sign_norm,
    spectral_norm,
)
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.rounding import ULP, ceiling, root_ceiling, up
from dplinear.schema import Schema
from dplinear.schema.columns import Category, Numeric

RELATIONS = (Neighbours.ELEMENT, Neighbours.ROW_L1, Neighbours.ROW_L2)
_FEW_LEVELS = 512  # up to here every pair of levels is looked at
_MOST_WORK = 1 << 28  # products for the widest row; a ball is good enough beyond

_PARAMETER = "change"


class Changes(ABC):
    """A set of differences of one row of integers. All norms are rounded up.

    `row_square`, if any: rows of a larger squared norm are not in any table that this is about. The
    mechanism sees to that, on the integers.
    """

    l1: float
    l2: float
    row_square: int | None = None

    @abstractmethod
    def image_l1(self, integers: Floats) -> float:
        """Return the largest ‖vA‖₁ over the set."""

    @abstractmethod
    def image_l2(self, integers: Floats) -> float:
        """Return the largest ‖vA‖₂ over the set."""


@dataclass(frozen=True)
class RowChanges(Changes):
    """All differences whose norm of the given `order`, 1 or 2, is at most `length`.

    `l1` may be given where it is known to be less than √features·length.
    """

    order: int
    length: float
    features: int
    widest: float = math.inf
    row_square: int | None = None

    @property
    def l1(self) -> float:  # type: ignore[override]  # derived
        """The largest L1 norm."""
        if self.order == 1:
            return self.length
        return min(self.widest, up(math.sqrt(self.features) * self.length))

    @property
    def l2(self) -> float:  # type: ignore[override]  # derived
        """The largest Euclidean norm."""
        return self.length

    def image_l1(self, integers: Floats) -> float:
        """Return length·maxᵢ‖Aᵢ‖₁ (a convex function peaks at a vertex), or length·max‖As‖₂."""
        if self.order == 1:
            return up(self.length * float(np.abs(integers).sum(axis=1).max()), 8)
        return up(self.length * sign_norm(integers), 8)

    def image_l2(self, integers: Floats) -> float:
        """Return length·maxᵢ‖Aᵢ‖₂, or length times the largest singular value."""
        if self.order == 1:
            return up(self.length * _norms(integers, 2).max(), 8)
        return up(self.length * spectral_norm(integers), 8)


@dataclass(frozen=True)
class WholeRows(RowChanges):
    """Any row for any other: each cell of `steps_per_unit` changes at will, within its own set.

    A box is inside the ball around it, so that noise for the box is less, where it can be found.
    """

    cells: "CellChanges | None" = None

    def image_l1(self, integers: Floats) -> float:
        """Return the largest ‖vA‖₁ = max over signs s of v·As, cell by cell the widest v."""
        ball = super().image_l1(integers)
        if self.cells is None or integers.shape[1] > MOST_SIGNS:
            return ball
        if integers.size << (integers.shape[1] - 1) > _MOST_WORK:
            return ball
        widest = max(float(self.cells.support(image).max()) for image in sign_images(integers))
        return min(ball, up(widest, 8))


@dataclass(frozen=True)
class RoundedRows(Changes):
    """Differences v + w: v of a bounded norm, and beyond it |wᵢ| ≤ `beyond`ᵢ in each feature.

    No difference is outside of `whole`, that of any row for any other.
    """

    near: RowChanges
    beyond: tuple[int, ...]
    whole: RowChanges

    @property
    def l1(self) -> float:  # type: ignore[override]  # derived
        """The largest L1 norm."""
        return min(up(self.near.l1 + sum(self.beyond)), self.whole.l1)

    @property
    def l2(self) -> float:  # type: ignore[override]  # derived
        """The largest Euclidean norm."""
        return min(up(self.near.l2 + self._length), self.whole.l2)

    @property
    def _length(self) -> float:
        return root_ceiling(Fraction(sum(width**2 for width in self.beyond)))

    def image_l1(self, integers: Floats) -> float:
        """Return a bound on ‖(v + w)A‖₁, by the triangle inequality."""
        box = float(np.array(self.beyond, np.float64) @ _norms(integers, 1))
        return min(up(self.near.image_l1(integers) + box, 8), self.whole.image_l1(integers))

    def image_l2(self, integers: Floats) -> float:
        """Return a bound on ‖(v + w)A‖₂, likewise."""
        box = float(np.array(self.beyond, np.float64) @ _norms(integers, 2))
        box = min(box, self._length * spectral_norm(integers))
        return min(up(self.near.image_l2(integers) + box, 8), self.whole.image_l2(integers))


@dataclass(frozen=True)
class Span:
    """Differences of a cell that one feature, or a number and its flag, can hold."""

    indices: tuple[int, ...]
    widths: tuple[int, ...]

    def ends(self, integers: Floats) -> Floats:
        """Return vA at the vertices v, up to their sign."""
        signs = [(1, *rest) for rest in itertools.product((1, -1), repeat=len(self.indices) - 1)]
        weights = np.array(signs, np.float64) * np.array(self.widths, np.float64)
        return np.asarray(weights @ integers[list(self.indices)])


@dataclass(frozen=True)
class Levels:
    """Differences of a category's cell: one feature goes to 0, another to `width`."""

    indices: tuple[int, ...]
    width: int
    zero: bool  # whether a level has no feature

    def image(self, integers: Floats, order: int) -> float:
        """Return the largest norm of vA, an upper bound for very many levels."""
        rows = integers[list(self.indices)]
        single = np.sort(_norms(rows, order))[::-1]
        largest = float(single[0]) if self.zero or len(rows) == 1 else 0.0
        if len(rows) > _FEW_LEVELS:
            return up(self.width * float(single[0] + single[1]), 8)
        for first, row in enumerate(rows[:-1]):
            largest = max(largest, float(_norms(rows[first + 1 :] - row, order).max()))
        return up(self.width * largest, 8)


@dataclass(frozen=True)
class CellChanges(Changes):
    """One cell of the source table changes."""

    spans: tuple[Span, ...]
    levels: tuple[Levels, ...]

    @property
    def l1(self) -> float:  # type: ignore[override]  # derived
        """The largest L1 norm."""
        return float(max(sum(widths) for widths in self._widths()))

    @property
    def l2(self) -> float:  # type: ignore[override]  # derived
        """The largest Euclidean norm."""
        squares = (sum(width**2 for width in widths) for widths in self._widths())
        return root_ceiling(Fraction(max(squares)))

    def _widths(self) -> list[tuple[int, ...]]:
        return [span.widths for span in self.spans] + [
            (level.width,) * min(2, len(level.indices)) for level in self.levels
        ]

    def image_l1(self, integers: Floats) -> float:
        """Return the largest ‖vA‖₁, over the vertices of every cell."""
        return self._image(integers, 1)

    def image_l2(self, integers: Floats) -> float:
        """Return the largest ‖vA‖₂."""
        return self._image(integers, 2)

    def _image(self, integers: Floats, order: int) -> float:
        spans = [float(_norms(span.ends(integers), order).max()) for span in self.spans]
        return max(spans + [level.image(integers, order) for level in self.levels])

    def support(self, images: Floats) -> Floats:
        """Return, for each column u, the sum over all cells of the largest v·u, rounded up."""
        total = np.zeros(images.shape[1])
        for span in self.spans:
            for column_index, width in zip(span.indices, span.widths, strict=True):
                total += width * np.abs(images[column_index])
        for level in self.levels:
            own = images[list(level.indices)]
            high, low = own.max(axis=0), own.min(axis=0)
            if level.zero:
                high, low = np.maximum(high, 0.0), np.minimum(low, 0.0)
            total += level.width * (high - low)
        return np.asarray(total * (1 + (len(images) + 4) * ULP))  # of as many terms at the most


def _norms(rows: Floats, order: int) -> Floats:
    """Return the norm of each row, rounded up."""
    if order == 1:
        return np.asarray(np.abs(rows).sum(axis=1) * (1 + 2.0**-40))
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)) * (1 + 2.0**-40))


def changes_of(  # noqa: PLR0917 - public facts, each with its own name
    schema: Schema,
    shape: Shape,
    relation: Neighbours,
    bounded: Bounded,
    indices: tuple[int, ...],
    where: str,
) -> Changes:
    """Return what neighbours may do to the features at `indices`, which are renumbered from 0.

    Requires: a change in half-ranges, in which a column of numbers goes from −1 to 1: of one number
    (None: all of its range; a category's cell, or a yes or no, changes at will), or of a row, in L1
    or L2 (None, L2 only: rows change at will). A changed level moves its row by 1 or more.
    """
    if relation is Neighbours.ELEMENT:
        return _cell_changes(schema, shape, bounded, indices, where)
    if relation is Neighbours.ROW_L2 and bounded.change is None:
        return _whole_rows(schema, shape, indices, where)
    if bounded.change is None:
        hint = 'neighbours="row_l2" without a change are tables with any one row replaced.'
        raise arguments.wrong_type(_PARAMETER, where, "given, for row_l1 neighbours", None, hint)
    if schema.row_norm is not None:
        hint = "clipping may move two rows apart; leave out `change` to protect whole rows."
        rule = "None, and neighbours row_l2, where the schema has a row_norm"
        raise arguments.rejection(_PARAMETER, where, rule, bounded.change, hint)
    derived = [term.label for term in schema.derived_terms]
    if derived:
        hint = "a feature made of others may move further than they do; leave out `change`."
        rule = "None, and neighbours row_l2, where the schema has derived features"
        raise arguments.rejection(_PARAMETER, where, rule, ", ".join(derived), hint)
    order = 1 if relation is Neighbours.ROW_L1 else 2
    return RoundedRows(
        RowChanges(order, ceiling(Fraction(bounded.change) * shape.steps_per_unit), len(indices)),
        tuple(_beyond(schema, shape, bounded, column_index) for column_index in indices),
        _whole_rows(schema, shape, indices, where),
    )


def _beyond(schema: Schema, shape: Shape, bounded: Bounded, column_index: int) -> int:
    """Return by how much a feature may differ beyond its share of a row's change."""
    feature = schema.features[column_index]
    column = schema.declared[feature.factors[0].column]
    if isinstance(column, Category):
        return 0  # a level is 0 or 1, and its change is the row's
    if feature.is_indicator:
        return 0 if bounded.missing_public else shape.steps_per_unit
    return cell_moves.beyond(column, feature, shape, bounded)


def _cell_changes(
    schema: Schema, shape: Shape, bounded: Bounded, indices: tuple[int, ...], where: str
) -> CellChanges:
    index = {column_index: new for new, column_index in enumerate(indices)}
    spans, levels = [], []
    for cell in cells_of(schema, where):
        kept = tuple(index[column_index] for column_index in cell.indices if column_index in index)
        column = schema.declared[cell.column]
        if not kept:
            continue
        if isinstance(column, Category):
            levels.append(Levels(kept, shape.steps_per_unit, column.drop_first))
        else:
            number = schema.features[cell.indices[0]]
            width = cell_moves.number_width(column, number, shape, bounded)
            flag = 0 if bounded.missing_public else shape.steps_per_unit
            spans.append(Span(kept, (width, flag)[: len(kept)]))
    return CellChanges(tuple(spans), tuple(levels))


def _whole_rows(schema: Schema, shape: Shape, indices: tuple[int, ...], where: str) -> RowChanges:
    """Return any change of a row: as wide as all its cells together, or as the ball it is in."""
    count = len(indices)
    if schema.row_norm is not None or schema.derived_terms:
        squares = min(schema.norm_squared - schema.has_intercept, count)
        square = min(squares * shape.steps_per_unit**2, 1 << 2 * shape.exponent)
        return RowChanges(2, root_ceiling(Fraction(4 * square)), count, row_square=square)
    chosen = set(indices)
    kept = [cell for cell in cells_of(schema, where) if chosen.intersection(cell.indices)]
    spread = sum((cell.diameter_squared for cell in kept), Fraction(0))
    widest = sum(_widest(schema, cell) for cell in kept) * shape.steps_per_unit
    cells = _cell_changes(schema, shape, Bounded(), indices, where)
    length = root_ceiling(spread * shape.steps_per_unit**2)
    return WholeRows(2, length, count, float(widest), cells=cells)


def _widest(schema: Schema, cell: Cell) -> int:
    """Return the largest L1 change of a cell."""
    column = schema.declared[cell.column]
    if isinstance(column, Numeric):
        return 2 if len(cell.indices) == 1 else 3
    return min(2, len(cell.indices))
