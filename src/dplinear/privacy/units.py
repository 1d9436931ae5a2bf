"""The unit of privacy: whose rows, all together, a guarantee keeps apart from their absence."""

from dataclasses import dataclass
from typing import Any

from dplinear.arguments import integer

MOST_ROWS = 2**20


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
