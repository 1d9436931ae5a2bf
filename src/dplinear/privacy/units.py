"""The unit of privacy: whose rows, all together, a guarantee keeps apart from their absence."""

from dataclasses import dataclass
from typing import Any

from dplinear.arguments import integer
from dplinear.privacy.neighbours import Neighbours

MOST_ROWS = 2**20
_SINGLE_ROWS = "single rows; a person with several rows is protected less"


@dataclass(frozen=True)
class Unit:
    """All rows that share an id in `column`, such as one patient's: they count as at most `rows`.

    Neighbouring tables then differ by all rows of one unit, however many they are. Both fields are
    public, and so is nothing of the ids.
    """

    column: str
    rows: int = 1

    @staticmethod
    def of(column: str, rows: Any, where: str) -> "Unit":
        """Return the unit of a column; None stands for one row."""
        if rows is None:
            return Unit(column)
        return Unit(column, integer(rows, "rows_per_unit", where, low=1, high=MOST_ROWS))

    def __str__(self) -> str:
        counted = "one row" if self.rows == 1 else f"at most {self.rows} rows"
        return f"all rows with one {self.column!r}, counted as {counted}"


def protected(neighbours: Neighbours, change: object = None, unit: Unit | None = None) -> str:
    """Return in a few words what is protected between neighbours that differ by so much."""
    if unit is not None:
        return str(unit)
    if neighbours is Neighbours.ELEMENT:
        return "single cells; a whole row is protected less"
    if neighbours in {Neighbours.ROW_L1, Neighbours.ROW_L2} and change is not None:
        return "small changes of single rows; a whole row is protected less"
    return _SINGLE_ROWS


def size(count: float, unit: str | None, *, exact: bool = False, weight: str | None = None) -> str:
    """Return a number of rows in words, or of units where the rows belong to some.

    Where rows have survey weights, in a column `weight`, it is the sum of these.
    """
    about = "" if exact else "about "
    if weight is not None:
        return f"a total weight (by {weight!r}) of {about}{count:,.0f}"
    counted = "rows" if unit is None else f"units (by {unit!r})"
    return f"{about}{count:,.0f} {counted}"
