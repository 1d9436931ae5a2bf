"""What one cell of the source table can do to a row of features: the neighbours `element`.

A column of numbers is one feature, a category several of which one is 1, so that a cell is a point
in a set that the schema alone decides. Derived features and a clipped row norm would let a cell
move others, so both are refused here: they can be had afterwards, from what was released.
"""

from dataclasses import dataclass
from fractions import Fraction

from dplinear.arguments import rejection
from dplinear.schema import Schema
from dplinear.schema.columns import Category
from dplinear.schema.terms import OwnTerm


@dataclass(frozen=True)
class Cell:
    """The set of vectors that a column's cell can be mapped to, in the cells' units.

    `indices` are its features. Over every prior on the set, the total variance is at most `spread`,
    in `freedom` dimensions; no two of its points are further apart than √`diameter_squared`.
    """

    column: str
    indices: tuple[int, ...]
    spread: Fraction
    freedom: int
    diameter_squared: Fraction


def cells_of(schema: Schema, where: str) -> tuple[Cell, ...]:
    """Return the cells of a schema's columns, in order; refuse what would tie them together."""
    if schema.row_norm is not None:
        rule = "one without row_norm, where single cells are protected"
        hint = "clipping a row to a norm lets each of its cells move the others."
        raise rejection("schema", where, rule, schema, hint)
    derived = [term.label for term in schema.derived_terms]
    if derived:
        rule = "one without derived features, where single cells are protected"
        hint = "derive them from what was released, which costs nothing."
        raise rejection("schema", where, rule, ", ".join(derived), hint)
    return tuple(
        _cell(term.column, schema, indices)
        for term, indices in schema.terms.items()
        if isinstance(term, OwnTerm)
    )


def _cell(name: str, schema: Schema, indices: tuple[int, ...]) -> Cell:
    count = len(indices)
    column = schema.declared[name]
    if not isinstance(column, Category):
        # A number is clamped to [−1, 1] whatever its bounds are; a flag is 0 or 1.
        flags = [schema.features[index].is_indicator for index in indices]
        squares = Fraction(sum(1 if flag else 4 for flag in flags))
        return Cell(name, indices, squares / 4, count, squares)
    if count == 1:
        return Cell(name, indices, Fraction(1, 4), 1, Fraction(1))
    # Points e₁ … e_k, and 0 where a level has no feature: Σ p(1 − p) is largest at p = 1/k.
    zero = column.drop_first
    return Cell(name, indices, 1 - Fraction(1, count), count - (not zero), Fraction(2))
