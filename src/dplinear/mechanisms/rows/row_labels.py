"""A label released beside projected rows: a category by randomised response, a number by Laplace.

Each label is pure ε-DP by itself, for the change that its own cell may make.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dplinear import arguments
from dplinear.exact.shape import Shape
from dplinear.mechanisms.cells.cell_moves import Bounded, number_width
from dplinear.noise import discrete
from dplinear.noise.entropy import Entropy
from dplinear.noise.response import Response
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import PureDP
from dplinear.schema import Feature, Schema
from dplinear.schema.columns import Category, Numeric

Rows = NDArray[np.float64]

_OTHER = "other"
_LARGEST = 2.0**48  # of a scale, in steps of the grid


class RowLabel(ABC):
    """A column of the table that is released beside its rows."""

    field: pa.Field

    @abstractmethod
    def release(self, rows: Rows, entropy: Entropy) -> pa.Array:
        """Return the released labels of a block of integer rows."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what an analyst may know, as plain JSON."""


@dataclass(frozen=True)
class LevelLabel(RowLabel):
    """A level, told truthfully with a known probability, and otherwise any other level."""

    column: str
    indices: tuple[int, ...]
    levels: tuple[str | float | bool, ...]
    zero: bool  # whether the first level has no feature
    response: Response

    @property
    def field(self) -> pa.Field:
        """The released column."""
        kind = {str: pa.string(), bool: pa.bool_(), float: pa.float64()}[type(self.levels[0])]
        return pa.field(self.column, kind, nullable=False)

    def release(self, rows: Rows, entropy: Entropy) -> pa.Array:
        """Draw an answer for each row."""
        marks = rows[list(self.indices)] > 0
        codes = np.zeros(rows.shape[1], np.int64)
        for number, mark in enumerate(marks):
            codes[mark] = number + self.zero
        answers = self.response.draw(codes, entropy)
        return pa.array(self.levels, self.field.type).take(pa.array(answers))

    def facts(self) -> dict[str, Any]:
        """Return the levels and how often each is told."""
        truth = self.response.chance
        return {
            "column": self.column,
            "kind": "randomised response",
            "levels": [None if level != level else level for level in self.levels],  # noqa: PLR0124
            "truth": truth,
            "epsilon": float(self.response.epsilon),
        }


@dataclass(frozen=True)
class NumberLabel(RowLabel):
    """A number plus Laplace noise of `scale` on its grid of `steps_per_unit` steps."""

    feature: Feature
    index: int
    cells: int
    scale: float
    epsilon: float

    @property
    def field(self) -> pa.Field:
        """The released column."""
        return pa.field(self.feature.term.label, pa.float64(), nullable=False)

    def release(self, rows: Rows, entropy: Entropy) -> pa.Array:
        """Add noise on the grid; what follows is a function of the sum alone.

        The noise is for labels within their bounds, to which they are held here.
        """
        noise = discrete.laplace(Fraction(self.scale), rows.shape[1], entropy=entropy)
        labels = np.clip(rows[self.index], -self.cells, self.cells).astype(np.int64)
        sums = (labels + noise).astype(np.float64)
        sums *= float(self.feature.half_width / self.cells)
        return pa.array(sums + float(self.feature.centre))

    def facts(self) -> dict[str, Any]:
        """Return the scale of the noise in the column's own units."""
        unit = float(self.feature.half_width / self.cells)
        scale = self.scale * unit
        return {
            "column": self.feature.term.label,
            "kind": "laplace",
            "scale": scale,
            "epsilon": self.epsilon,
        }


def indices_of(schema: Schema, column: str, where: str) -> tuple[int, ...]:
    """Return the features of a label; refuse what else would show it."""
    arguments.choice(column, "label", where, schema.columns)
    rule = "a column that stands by itself, where it is released beside the rows"
    if schema.row_norm is not None:
        hint = "rows clipped to a row_norm change the label with everything else."
        raise arguments.rejection("label", where, rule, column, hint)
    made_of = {
        factor.column
        for term in schema.derived_terms
        for index in schema.terms[term]
        for factor in schema.features[index].factors
    }
    if column in made_of:
        hint = "a derived feature is made of it."
        raise arguments.rejection("label", where, rule, column, hint)
    declared = schema.declared[column]
    if isinstance(declared, Numeric) and declared.missing_indicator:
        hint = "its missing_indicator is a second feature: leave it out."
        raise arguments.rejection("label", where, rule, column, hint)
    return schema.own_features(column)


def label_of(  # noqa: PLR0917 - public facts, each with its own name
    schema: Schema, shape: Shape, column: str, bounded: Bounded, epsilon: float, where: str
) -> RowLabel:
    """Return the label of a column, released with `epsilon` for what its own cell may do."""
    indices = indices_of(schema, column, where)
    declared = schema.declared[column]
    if isinstance(declared, Category):
        if declared.other is None and not isinstance(declared.levels[0], str):
            hint = "declare the level that unseen numbers join: other=…"
            rule = "a category with names, or with `other`, where it is released beside the rows"
            raise arguments.rejection("label", where, rule, column, hint)
        levels = _levels(declared)
        return LevelLabel(
            column, indices, levels, declared.drop_first, Response(len(levels), epsilon)
        )
    if declared.type == "boolean":
        return LevelLabel(column, indices, (False, True), zero=True, response=Response(2, epsilon))
    width = number_width(declared, schema.features[indices[0]], shape, bounded)
    scale = calibrate.laplace(PureDP(epsilon), float(width))
    if scale > _LARGEST:
        rule = "given enough of the budget to say anything"
        raise arguments.rejection("label", where, rule, f"ε = {epsilon:g}")
    return NumberLabel(
        schema.features[indices[0]], indices[0], shape.steps_per_unit, scale, epsilon
    )


def _levels(column: Category) -> tuple[str | float, ...]:
    known = [level if isinstance(level, str) else float(level) for level in column.levels]
    return tuple(known) if column.other is not None else (*known, _OTHER)
