"""What one cell of the source table can do to a row of features: the neighbours `element`.

A column of numbers is one feature, a category several of which one is 1, so that a cell is a point
in a set that the schema alone decides. Derived features and a clipped row norm would let a cell
move others, so both are refused here: they can be had afterwards, from what was released.
"""

from dataclasses import dataclass
from fractions import Fraction

from dplinear.arguments import rejection
from dplinear.schema import Feature, Schema
from dplinear.schema.columns import Category


@dataclass(frozen=True)
class Cell:
    """The set of vectors that a column's cell can be mapped to, in the cells' units.

    `places` are its features. Over every prior on the set, the total variance is at most `spread`,
    in `freedom` dimensions; no two of its points are further apart than √`diameter_squared`.
    """

    column: str
    places: tuple[int, ...]
    spread: Fraction
    freedom: int
    diameter_squared: Fraction


def cells_of(schema: Schema, where: str) -> tuple[Cell, ...]:
    """Return the cells of a schema's columns, in order; refuse what would tie them together."""
    if schema.row_norm is not None:
        rule = "one without row_norm, where single cells are protected"
        hint = "clipping a row to a norm lets each of its cells move the others."
        raise rejection("schema", where, rule, schema, hint)
    own = [(place, feature) for place, feature in enumerate(schema.features) if feature.factors]
    extra = sorted({f.group for _, f in own if f.group not in schema.declared})
    if extra:
        rule = "one without derived features, where single cells are protected"
        hint = "derive them from what was released, which costs nothing."
        raise rejection("schema", where, rule, ", ".join(extra), hint)
    groups: dict[str, list[tuple[int, Feature]]] = {name: [] for name in schema.columns}
    for place, feature in own:
        groups[feature.group].append((place, feature))
    return tuple(
        _cell(name, schema, tuple(p for p, _ in mine), [f for _, f in mine])
        for name, mine in groups.items()
        if mine
    )


def _cell(name: str, schema: Schema, places: tuple[int, ...], features: list[Feature]) -> Cell:
    count = len(places)
    column = schema.declared[name]
    if not isinstance(column, Category):
        # A number is clamped to [−1, 1] whatever its bounds are; a flag is 0 or 1.
        squares = Fraction(sum(1 if f.is_indicator else 4 for f in features))
        return Cell(name, places, squares / 4, count, squares)
    if count == 1:
        return Cell(name, places, Fraction(1, 4), 1, Fraction(1))
    # Points e₁ … e_k, and 0 where a level has no feature: Σ p(1 − p) is largest at p = 1/k.
    zero = column.drop_first
    return Cell(name, places, 1 - Fraction(1, count), count - (not zero), Fraction(2))
