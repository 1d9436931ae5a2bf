"""How far a table cell moves on the grid when it changes by a bounded amount: the option `change`.

A change is one of the cell as the table holds it. What follows is not continuous: whole numbers
are rounded, dates are read to the second at the worst, and a cell without a number jumps to the
column's `missing` constant. docs/theory/projected-rows.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from dplinear import arguments
from dplinear.exact.shape import Shape
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Feature, Schema
from dplinear.schema.columns import Numeric

# Two values that differ by Δ·cells steps are less than Δ·cells + 4 apart on the grid: float64 reads
# and maps each with an error below a step and a half, and each is rounded by another half. A date
# is divided once more on its way, which is as much again.
STEPS = 4
_SECOND = Fraction(1, 86_400)  # the coarsest that a date is read to, in days
_LEVELS = "A changed level of a category moves its row by 1 or more, which may be too far to hide."
_ROUNDED = (
    "A change is one of the cells as the table holds them: whole numbers and dates are rounded "
    "when they are read, which is allowed for."
)
_MAY_GO = "A changed cell may also lose its number, or get one: the noise is enough for that."
_SAME_GAPS = "Which cells hold no number is public: neighbours agree on it, and nothing hides it."
_ROUNDED_TO = {"integer": Fraction(1), "boolean": Fraction(1), "date": _SECOND}


@dataclass(frozen=True)
class Bounded:
    """What one changed cell may do to itself.

    A number moves by at most `change` half-ranges of its column (None: at will). With
    `missing_public`, neighbours agree on which cells hold no number; otherwise any changed cell may
    also lose its number, or get one.
    """

    change: float | None = None
    missing_public: bool = False

    @classmethod
    def read(cls, change: object, missing_public: object, where: str) -> "Bounded":
        """Return what the arguments say, or raise."""
        if not isinstance(missing_public, bool):
            raise arguments.wrong_type("missing_public", where, "True or False", missing_public)
        if change is None:
            if missing_public:
                hint = "without a bounded change, missing cells are hidden as all others are."
                rule = "left out where no `change` is given"
                raise arguments.rejection("missing_public", where, rule, missing_public, hint)
            return cls()
        return cls(arguments.positive(change, "change", where), missing_public)


def relation_notes(schema: Schema, neighbours: Neighbours, bounded: Bounded) -> tuple[str, ...]:
    """Return what a certificate says of neighbours that differ by a bounded change."""
    if bounded.change is None:
        return ()
    columns = schema.declared.values()
    numeric = [column for column in columns if isinstance(column, Numeric)]
    notes: tuple[str, ...] = ()
    if any(rounding(column) for column in numeric):
        notes += (_ROUNDED,)
    if numeric:
        notes += (_SAME_GAPS if bounded.missing_public else _MAY_GO,)
    if neighbours is not Neighbours.ELEMENT and len(numeric) < len(columns):
        notes += (_LEVELS,)
    return notes


def rounding(column: Numeric) -> Fraction:
    """Return what cells of a column are rounded to when they are read, in its own units."""
    return _ROUNDED_TO.get(column.type, Fraction(0))


def allowance(column: Numeric) -> int:
    """Return the steps by which float64 and the grid's own rounding may add to a difference."""
    return 2 * STEPS if column.type == "date" else STEPS


def number_width(column: Numeric, feature: Feature, shape: Shape, bounded: Bounded) -> int:
    """Return the most that a number's integer differs between neighbours of one changed cell.

    A yes or no has no small changes. Of whole numbers, |a − b| ≤ D makes |rint a − rint b| a whole
    number of at most D + 1; so it is for any rounding to multiples of a unit.
    """
    whole = 2 * shape.steps_per_unit
    if bounded.change is None or column.type == "boolean":
        return whole
    moved, unit = Fraction(bounded.change) * feature.half_width, rounding(column)
    if unit:
        read = STEPS * feature.half_width / shape.steps_per_unit  # values that float64 makes equal
        moved = math.floor((moved + read) / unit + 1) * unit
    width = math.floor(moved / feature.half_width * shape.steps_per_unit) + allowance(column)
    if not bounded.missing_public:
        width = max(width, _jump(column, feature, shape))
    return min(whole, width)


def beyond(column: Numeric, feature: Feature, shape: Shape, bounded: Bounded) -> int:
    """Return by how much a number's integer may differ beyond its share of a row's change."""
    steps = math.ceil(rounding(column) / feature.half_width * shape.steps_per_unit) + allowance(
        column
    )
    if not bounded.missing_public:
        steps = max(steps, _jump(column, feature, shape))
    return min(2 * shape.steps_per_unit, steps)


def _jump(column: Numeric, feature: Feature, shape: Shape) -> int:
    """Return how far the constant of missing cells is from any other: cells are within ±1."""
    constant = abs(feature.cell(column.missing))
    return math.ceil((1 + constant) * shape.steps_per_unit) + allowance(column)
